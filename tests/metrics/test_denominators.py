"""Denominators: what a share is a share of, who is excluded, and how far unlabeled items carry."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import sparse

from ombud import Audit, Plan
from ombud.data import Labels, LabelState
from ombud.data.ids import Vocabulary
from ombud.metrics.history import count_items, table_width
from ombud.stats.estimate import Estimate

USERS = 60


def tables(seed: int = 3) -> dict[str, pl.DataFrame]:
    """Histories and lists of random items, of which some are labeled; user 0 meets none of them."""
    rng = np.random.default_rng(seed)
    labeled = sorted(rng.choice(np.arange(5, 100), 60, replace=False).tolist())
    labels = [(i, "v", bool(rng.random() < (0.15 if i < 60 else 0.6))) for i in labeled]
    history = [(0, i) for i in range(5)]
    history += [(u, int(i)) for u in range(1, USERS) for i in rng.choice(60, 12, replace=False)]
    lists = [
        (u, int(i), rank)
        for u in range(USERS)
        for rank, i in enumerate(rng.choice(np.arange(60, 100), 8, replace=False), 1)
    ]
    # The second system shows its first ten users only items that nobody has labeled.
    others = [(u, 200 + rank if u < 10 else i, rank) for u, i, rank in lists]
    return {
        "history": pl.DataFrame(history, schema=["user", "item"], orient="row"),
        "labels": pl.DataFrame(labels, schema=["item", "label", "present"], orient="row"),
        "one": pl.DataFrame(lists, schema=["user", "item", "rank"], orient="row"),
        "two": pl.DataFrame(others, schema=["user", "item", "rank"], orient="row"),
    }


def run(folder: Path, metric: dict[str, Any], engine: str, **more: Any) -> Any:
    for name, frame in tables().items():
        frame.write_parquet(folder / f"{name}.parquet")
    data = {
        "interactions": str(folder / "history.parquet"),
        "labels": str(folder / "labels.parquet"),
    }
    plan = Plan.from_dict(
        {
            "data": data | more.pop("data", {}),
            "systems": {
                name: {"type": "recorded", "path": str(folder / f"{name}.parquet")}
                for name in ("one", "two")
            },
            "metrics": [metric],
            "engine": {"type": engine},
            **more,
        }
    )
    return Audit.from_plan(plan).run()


def by_hand(system: str) -> dict[str, float]:
    """Means over users of rate and labeled share, on both sides, by plain loops."""
    some = tables()
    known = {row["item"]: row["present"] for row in some["labels"].iter_rows(named=True)}

    def side(name: str) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {}
        for row in some[name].iter_rows(named=True):
            found.setdefault(row["user"], []).append(row["item"])
        return found

    rows = []
    past, shown = side("history"), side(system)
    for user in past:
        one = []
        for items in (shown[user], past[user]):
            labeled = [known[i] for i in items if i in known]
            one += [sum(labeled) / len(labeled) if labeled else np.nan, len(labeled) / len(items)]
        if not np.isnan(one).any():
            rows.append(one)
    p_r, c_r, p_h, c_h = np.mean(rows, axis=0)
    return {"p_r": p_r, "c_r": c_r, "p_h": p_h, "c_h": c_h, "n": len(rows)}


def level(result: Any, system: str) -> Estimate:
    (found,) = [e for e in result.select(system=system, kind="level") if not e.group]
    return found


@pytest.mark.parametrize("engine", ["memory", "stream"])
def test_tipping_point_of_a_gap_is_counted_as_the_metric_counts(
    tmp_path: Path, engine: str
) -> None:
    result = run(tmp_path, {"name": "share-gap", "k": 8}, engine)
    for system in ("one", "two"):
        e, hand = level(result, system), by_hand(system)
        assert e.n == hand["n"]
        assert e.value == pytest.approx(hand["p_r"] - hand["p_h"])
        assert e.interval is not None and e.tipping is not None
        g = min(e.interval, key=abs)
        assert e.tipping.labeled_recommended == pytest.approx(hand["c_r"])
        assert e.tipping.labeled_history == pytest.approx(hand["c_h"])
        r = 1 - g / (hand["p_r"] * (1 - hand["c_r"]))
        h = 1 + g / (hand["p_h"] * (1 - hand["c_h"]))
        assert e.tipping.recommended == (None if r < 0 else pytest.approx(r))
        assert e.tipping.history == (None if h * hand["p_h"] > 1 else pytest.approx(h))
        assert e.tipping.decides


@pytest.mark.parametrize("engine", ["memory", "stream"])
@pytest.mark.parametrize("unknown", ["exclude", "no"])
def test_tipping_point_of_an_amplification(tmp_path: Path, engine: str, unknown: str) -> None:
    metric = {"name": "amplification", "k": 8, "form": "ratio-of-means", "unknown": unknown}
    e = level(run(tmp_path, metric, engine), "one")
    assert e.interval is not None and e.tipping is not None
    assert e.value is not None and e.value > 0
    c_r, c_h = e.tipping.labeled_recommended, e.tipping.labeled_history
    ratio = 1 + e.interval[0]
    if e.tipping.history is not None:
        assumed = 1 if unknown == "exclude" else 0
        there = (c_h + (1 - c_h) * e.tipping.history) / (c_h + (1 - c_h) * assumed)
        assert ratio / there == pytest.approx(1)
    if unknown == "exclude":
        assert (c_r, c_h) == pytest.approx((by_hand("one")["c_r"], by_hand("one")["c_h"]))


@pytest.mark.parametrize("engine", ["memory", "stream"])
def test_a_declaration_does_not_let_tipping_points_decide(tmp_path: Path, engine: str) -> None:
    more = {"data": {"unlabeled": "no"}}
    e = level(run(tmp_path, {"name": "share-gap", "k": 8}, engine, **more), "one")
    assert e.tipping is not None and not e.tipping.decides
    assert e.n == USERS


@pytest.mark.parametrize("engine", ["memory", "stream"])
def test_a_plan_declares_another_range_with_a_reason(tmp_path: Path, engine: str) -> None:
    told = {"lowest": 0.9, "highest": 1.1, "reason": "unlabeled items were drawn at random"}
    more = {"statistics": {"unlabeled": told}}
    e = level(run(tmp_path, {"name": "share-gap", "k": 8}, engine, **more), "one")
    assert e.tipping is not None
    assert (e.tipping.lowest, e.tipping.highest) == (0.9, 1.1)


@pytest.mark.parametrize("engine", ["memory", "stream"])
@pytest.mark.parametrize("name", ["share-gap", "amplification"])
def test_every_excluded_user_is_counted_for_each_system(
    tmp_path: Path, engine: str, name: str
) -> None:
    metric = {"name": name, "k": 8, "unknown": "exclude"}
    result = run(tmp_path, metric, engine)
    left = {
        system: {e.key: (e.count, e.of) for e in result.exclusions if e.system == system}
        for system in ("one", "two")
    }
    for system in ("one", "two"):
        lost = sum(n for key, (n, _) in left[system].items() if key.startswith("unlabeled/"))
        assert level(result, system).n + lost == USERS
    assert left["two"]["unlabeled/list"] == (10, USERS)
    assert left["one"]["unlabeled/history"] == (1, USERS)
    (differ,) = [e for e in result.exclusions if e.key == "systems/different-units"]
    assert "one 59, two 50" in differ.reason
    assert (differ.count, differ.of) == (9, 59)


def test_a_label_that_no_item_is_known_not_to_carry_has_no_share(tmp_path: Path) -> None:
    yes = tables()["labels"].filter(pl.col("present")).drop("present")
    yes.write_csv(tmp_path / "yes.csv")
    for name in ("share-gap", "label-share", "amplification", "amplification-user"):
        metric = {"name": name, "k": 8, "unknown": "exclude"}
        data = {"labels": str(tmp_path / "yes.csv"), "unlabeled": "unknown"}
        e = level(run(tmp_path, metric, "memory", data=data), "one")
        assert e.value is None
        assert e.reason.startswith("no item is known not to carry this label")


def test_no_interval_holds_values_that_cannot_exist(tmp_path: Path) -> None:
    """Few users make a wide interval; a list cannot hold less than none of a label."""
    for name, frame in tables().items():
        frame.filter(pl.col("user") < 12).write_parquet(
            tmp_path / f"{name}.parquet"
        ) if "user" in frame.columns else frame.write_parquet(tmp_path / f"{name}.parquet")
    plan = Plan.from_dict(
        {
            "data": {
                "interactions": str(tmp_path / "history.parquet"),
                "labels": str(tmp_path / "labels.parquet"),
            },
            "systems": {"two": {"type": "recorded", "path": str(tmp_path / "two.parquet")}},
            "metrics": [{"name": "amplification", "k": 8}, {"name": "share-gap", "k": 8}],
            "statistics": {"interval": "expanded"},
        }
    )
    for e in Audit.from_plan(plan).run().select(kind="level"):
        if e.interval is not None:
            assert e.interval[0] >= -1


@pytest.mark.parametrize("engine", ["memory", "stream"])
def test_groups_have_tipping_points_of_their_own(tmp_path: Path, engine: str) -> None:
    ages = pl.DataFrame({"user": range(USERS), "age": ["a", "b"] * (USERS // 2)})
    ages.write_parquet(tmp_path / "users.parquet")
    more = {"data": {"users": str(tmp_path / "users.parquet")}}
    result = run(tmp_path, {"name": "share-gap", "k": 8}, engine, **more)
    for group in ("age=a", "age=b"):
        (e,) = result.select(system="one", kind="level", group=group)
        assert e.interval is not None and e.tipping is not None
        d = e.details
        g = min(e.interval, key=abs)
        h = 1 + g / (d["history"] * (1 - d["labeled_history"]))
        assert e.tipping.history == (None if h * d["history"] > 1 else pytest.approx(h))
        assert d["lists"] - d["history"] == pytest.approx(e.value)
    everyone = level(result, "one")
    parts = [result.select(system="one", kind="level", group=f"age={x}")[0] for x in "ab"]
    mean = sum(p.n * p.details["labeled_history"] for p in parts) / everyone.n
    assert everyone.details["labeled_history"] == pytest.approx(mean)


@pytest.mark.parametrize("engine", ["memory", "stream"])
def test_only_a_disputed_label_is_undefined_because_of_disputes(
    tmp_path: Path, engine: str
) -> None:
    votes = [(i, "often yes", 4, 0) for i in range(100)]
    votes += [(i, "disputed", 2 + 2 * (i % 2), 2 - 2 * (i % 2)) for i in range(100)]
    votes += [(i, "usual", 4 * (i % 2), 4 - 4 * (i % 2)) for i in range(100)]
    some = tables() | {
        "labels": pl.DataFrame(votes, schema=["item", "label", "yes", "no"], orient="row")
    }
    for name, frame in some.items():
        frame.write_parquet(tmp_path / f"{name}.parquet")
    paths = {"interactions": "history", "labels": "labels"}
    plan = {
        "data": {key: str(tmp_path / f"{name}.parquet") for key, name in paths.items()},
        "systems": {"one": {"type": "recorded", "path": str(tmp_path / "one.parquet")}},
        "metrics": [{"name": "share-gap", "k": 8}],
        "engine": {"type": engine},
    }
    result = Audit.from_plan(Plan.from_dict(plan)).run()
    why = {e.label: e.reason for e in result.select("share-gap(k=8)") if not e.group}
    assert "annotators disagree" in why["disputed"]
    assert "add rows that say no" in why["often yes"]


@pytest.mark.parametrize("engine", ["memory", "stream"])
def test_systems_and_extreme_groups_have_tipping_points(tmp_path: Path, engine: str) -> None:
    """The second system shows every other user items that are seldom labeled so."""
    some = tables()
    rows = [
        {**row, "item": 5 + row["item"] % 30 if row["user"] % 2 else row["item"]}
        for row in some["one"].iter_rows(named=True)
    ]
    shown = pl.DataFrame(rows).unique(["user", "item"], maintain_order=True)
    shown = shown.with_columns(rank=pl.int_range(1, pl.len() + 1).over("user"))
    for name in ("history", "labels", "one"):
        some[name].write_parquet(tmp_path / f"{name}.parquet")
    shown.write_parquet(tmp_path / "two.parquet")
    ages = pl.DataFrame({"user": range(USERS), "age": ["a", "b", "c", "b"] * (USERS // 4)})
    ages.write_parquet(tmp_path / "users.parquet")
    paths = {"interactions": "history", "labels": "labels", "users": "users"}
    plan = Plan.from_dict(
        {
            "data": {key: str(tmp_path / f"{name}.parquet") for key, name in paths.items()},
            "systems": {
                name: {"type": "recorded", "path": str(tmp_path / f"{name}.parquet")}
                for name in ("one", "two")
            },
            "metrics": [
                {"name": "share-gap", "k": 8},
                {"name": "amplification", "k": 8, "form": "ratio-of-means", "unknown": "exclude"},
            ],
            "engine": {"type": engine},
        }
    )
    result = Audit.from_plan(plan).run()

    def labeled(group: str, system: str) -> dict[str, Any]:
        (e,) = result.select(system=system, kind="level", group=group, metric="share gap@8")
        return dict(e.details)

    def slopes(details: dict[str, Any]) -> tuple[float, float]:
        up = details["lists"] * (1 - details["labeled_recommended"])
        return up, details["history"] * (1 - details["labeled_history"])

    (systems,) = [e for e in result.select(metric="share gap@8", kind="gap") if e.against == "two"]
    (extreme,) = [
        e for e in result.estimates
        if e.key.endswith("/attribute-gap") and e.system == "two" and e.metric.startswith("share")
    ]  # fmt: skip
    d = extreme.details
    for e, one, other in (
        (systems, labeled("", "one"), labeled("", "two")),
        (extreme, labeled(d["largest"], "two"), labeled(d["smallest"], "two")),
    ):
        assert e.interval is not None and e.tipping is not None
        g = min(e.interval, key=abs)
        up, down = (a - b for a, b in zip(slopes(one), slopes(other), strict=True))
        r = 1 - g / up
        rate = max(one["lists"], other["lists"])
        assert e.tipping.recommended == (pytest.approx(r) if r >= 0 and r * rate <= 1 else None)
        h = 1 + g / down if abs(down) > 1e-12 else -1.0
        rate = max(one["history"], other["history"])
        assert e.tipping.history == (pytest.approx(h) if h >= 0 and h * rate <= 1 else None)
    (ratios,) = [
        e for e in result.estimates if e.metric.startswith("amplification") and e.against == "two"
    ]
    assert ratios.interval is not None and ratios.tipping is not None
    groups = [
        e for e in result.estimates
        if e.metric.startswith("amplification") and e.group == "age=b" and e.kind == "gap"
    ]  # fmt: skip
    assert all(e.tipping is None for e in groups)
    clear = [e for e in groups if e.interval and e.interval[0] * e.interval[1] > 0]
    assert clear and all("not known for both sides" in e.details["no_tipping"] for e in clear)


def test_systems_that_measured_different_users_have_a_reason_instead(tmp_path: Path) -> None:
    for name, frame in tables().items():
        if name == "two":  # its lists hold the label far less often
            frame = (
                frame.with_columns(
                    item=pl.when(pl.col("item") < 200)
                    .then(5 + pl.col("item") % 30)
                    .otherwise("item")
                )
                .unique(["user", "item"], maintain_order=True)
                .with_columns(rank=pl.int_range(1, pl.len() + 1).over("user"))
            )
        frame.write_parquet(tmp_path / f"{name}.parquet")
    plan = {
        "data": {
            "interactions": str(tmp_path / "history.parquet"),
            "labels": str(tmp_path / "labels.parquet"),
        },
        "systems": {
            name: {"type": "recorded", "path": str(tmp_path / f"{name}.parquet")}
            for name in ("one", "two")
        },
        "metrics": [{"name": "share-gap", "k": 8}],
    }  # fmt: skip
    result = Audit.from_plan(Plan.from_dict(plan)).run()
    (e,) = [one for one in result.select(kind="gap") if one.against == "two"]
    assert e.tipping is None
    assert "the systems were measured on different users" in e.details["no_tipping"]


@pytest.mark.parametrize("longest", [3, 255, 256, 70_000])
@pytest.mark.parametrize("labels", [1, 7, 8, 9])
def test_items_are_counted_without_a_carry(longest: int, labels: int) -> None:
    rng = np.random.default_rng(longest + labels)
    table = np.zeros((50, table_width(labels)), dtype=np.uint8)
    table[:, :labels] = rng.random((50, labels)) < 0.5
    table[:, 0] = 1  # the largest count there can be, beside others
    lengths = [longest, 0, 2]
    items = rng.integers(0, 50, sum(lengths))
    starts = np.cumsum([0, *lengths])
    lists = sparse.csr_array((np.ones(len(items)), items, starts), shape=(3, 50))
    expected = [
        table[items[low:high], :labels].astype(np.int64).sum(axis=0)
        for low, high in pairwise(starts)
    ]
    np.testing.assert_array_equal(count_items(lists, table, labels), expected)


def test_states_that_occur_are_seen_in_every_row() -> None:
    for rows in (0, 1, 15, 16, 17, 40):
        for place in range(rows):
            states = np.full((rows, 3), LabelState.UNKNOWN, dtype=np.int8)
            states[place] = LabelState.NO, LabelState.DISPUTED, LabelState.YES
            labels = Labels(Vocabulary(np.arange(rows)), ("a", "b", "c"), states)
            assert labels.some_no.tolist() == [True, False, False]
            assert labels.some_disputed.tolist() == [False, True, False]
    none = Labels(Vocabulary(np.arange(0)), ("a",), np.zeros((0, 1), dtype=np.int8))
    assert not none.some_no.any()
    assert replace(none, unlabeled="no").some_no.all()
