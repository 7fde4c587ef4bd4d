"""Counts by identity, shares, bounds and baselines, by hand and by brute force."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ombud.audits.analysis import Context
from ombud.data.dataset import Dataset
from ombud.data.interactions import Interactions
from ombud.data.items import Items
from ombud.data.recommendations import Recommendations
from ombud.errors import PlanError
from ombud.metrics.engine.estimator import Settings
from ombud.questions.authors.creators import creators_of, profile_users
from ombud.questions.authors.metrics import BalanceGap, ListBalance
from ombud.questions.authors.pipeline import CreatorCatalogue, CreatorLists, popularity_percentile
from ombud.questions.authors.reranking import CreatorReranking
from ombud.questions.authors.shares import ALL_CREATORS, among_users


def small() -> Dataset:
    """Return three users, five items: a and b by f, c and d by m, e unknown."""
    pairs = [("1", "a"), ("1", "c"), ("1", "d"), ("2", "a"), ("2", "e"), ("3", "c"), ("3", "d")]
    users, items = zip(*pairs, strict=True)
    table = {"item": list("abcde"), "gender": ["f", "f", "m", "m", None]}
    table["gender_status"] = ["known"] * 4 + ["ambiguous"]
    return Dataset(
        Interactions.from_arrays(list(users), list(items)),
        items=Items.from_frame(pl.DataFrame(table)),
    )


def lists(rows: dict[str, str]) -> Recommendations:
    frame = [(u, i, r + 1) for u, items in rows.items() for r, i in enumerate(items)]
    return Recommendations.from_frame(
        pl.DataFrame(frame, schema=["user", "item", "rank"], orient="row")
    )


def lists_of(rows: dict[int, list[int]]) -> Recommendations:
    frame = [(u, i, r + 1) for u, items in rows.items() for r, i in enumerate(items)]
    return Recommendations.from_frame(
        pl.DataFrame(frame, schema=["user", "item", "rank"], orient="row")
    )


def test_profiles_and_lists_are_counted_by_identity() -> None:
    data = small()
    creators = creators_of(data, "", "a test")
    # b is in no history, so m has two items on the platform and f one.
    assert creators.names == ("m", "f") and creators.chief == "f" and creators.told == ("f",)
    assert data.interactions is not None
    assert creators.in_profiles(data.interactions, ["1", "2", "3", "9"]).tolist() == [
        [2, 1], [0, 1], [2, 0], [0, 0],
    ]  # fmt: skip
    made = lists({"1": "bez", "2": "cda"})
    assert creators.in_lists(made, 2).tolist() == [[0, 1], [2, 0]]
    assert creators.in_lists(made, 3, np.array([1.0, 0.5, 0.25])).tolist() == [[0, 1], [1.5, 0.25]]


def test_balance_and_gap_by_hand() -> None:
    data, made = small(), lists({"1": "bec", "2": "cda", "3": "e"})
    rows = ListBalance(k=3, least=1).measure(made, data)
    assert rows.labels == ("m", "f") and rows.ids.tolist() == ["1", "2"]
    np.testing.assert_allclose(rows.columns["value"], [[0.5, 0.5], [2 / 3, 1 / 3]])
    assert [(e.count, e.of) for e in rows.exclusions] == [(1, 3)]
    gap = BalanceGap(k=3, least=1).measure(made, data)
    assert gap.labels == ("f",)
    np.testing.assert_allclose(gap.columns["value"][:, 0], [0.5 - 1 / 3, 1 / 3 - 1])
    assert gap.details["f"]["profile"] == pytest.approx((1 / 3 + 1) / 2)
    weights = 1 / np.log2([2, 3, 4])
    seen = ListBalance(k=3, least=1, exposure=True).measure(made, data)
    assert seen.columns["value"][1, 1] == pytest.approx(weights[2] / weights.sum())


def test_users_with_few_known_items_are_counted() -> None:
    rows = ListBalance(k=3, least=2).measure(lists({"1": "b", "2": "c", "3": "a"}), small())
    assert rows.ids.tolist() == ["1", "3"]
    assert "fewer than 2 items of known gender" in rows.exclusions[0].reason


@given(st.integers(0, 10_000))
@settings(max_examples=25, deadline=None)
def test_counts_equal_a_plain_loop(seed: int) -> None:
    rng = np.random.default_rng(seed)
    names = np.array(["f", "m", "x", None], dtype=object)[rng.integers(0, 4, 12)]
    names[0] = "f"
    users = np.repeat(np.arange(6), 4)
    items = np.concatenate([rng.choice(12, 4, replace=False) for _ in range(6)])
    table = pl.DataFrame(
        {"item": np.arange(12), "who": names.tolist()}, schema_overrides={"who": pl.String}
    )
    data = Dataset(Interactions.from_arrays(users, items), items=Items.from_frame(table))
    creators = creators_of(data, "who", "a test")
    assert data.interactions is not None
    found = creators.in_profiles(data.interactions, np.arange(6))
    for user in range(6):
        for g, name in enumerate(creators.names):
            assert found[user, g] == sum(names[i] == name for i in items[users == user])
    # From the most to the least frequent among items that somebody met.
    met = np.unique(items)
    often = [sum(names[i] == name for i in met) for name in creators.names]
    assert often == sorted(often, reverse=True)


def test_percentiles_follow_average_ranks() -> None:
    assert popularity_percentile(np.array([1, 1, 5, 9])).tolist() == [38, 38, 75, 100]
    assert popularity_percentile(np.array([3, 3])).tolist() == [100, 100]


def test_catalogue_shares_bounds_and_resolution() -> None:
    found = CreatorCatalogue().analyze(Context(small(), {}, Settings()))
    at = {(e.key, e.label, e.details.get("stage")): e for e in found.estimates}
    platform = at["creator-pipeline/share", "f", "platform"]
    # a, c, d, e were met; a is by f, c and d by m.
    assert platform.value == pytest.approx(1 / 3)
    assert (platform.details["lowest"], platform.details["highest"]) == (1 / 4, 2 / 4)
    read = at["creator-pipeline/share", "f", "interactions"]
    assert read.value == pytest.approx(2 / 6) and read.unit == "user"
    assert (read.details["lowest"], read.details["highest"]) == (2 / 7, 3 / 7)
    table = found.tables["creator-resolution"].to_dicts()
    assert [(r["outcome"], r["items"], r["interactions"]) for r in table] == [
        ("m", 2, 4), ("f", 1, 2), ("ambiguous", 1, 1),
    ]  # fmt: skip
    assert "flagged_items" not in found.tables["creator-resolution"].columns
    per_item = [e for e in found.estimates if "per-item" in e.key]
    assert per_item and all("not enough data" in e.reason for e in per_item)


def test_flagged_items_stand_beside_every_outcome() -> None:
    data = small()
    assert data.items is not None
    flagged = np.array([True, True, False, True, False])
    data = replace(data, items=replace(data.items, flagged=flagged))
    table = CreatorCatalogue().analyze(Context(data, {}, Settings())).tables["creator-resolution"]
    columns = ("outcome", "items", "flagged_items", "flagged_interactions")
    assert table.select(columns).rows() == [("m", 2, 1, 2), ("f", 1, 1, 2), ("ambiguous", 1, 0, 0)]


def test_identities_that_are_catalogued_and_met_by_nobody_are_told(tmp_path: Path) -> None:
    catalogue = tmp_path / "items.csv"
    who = ["f"] * 2 + ["m"] * 2 + ["agender"] * 4 + [None] * 2
    pl.DataFrame({"item": range(10), "gender": who}).write_csv(catalogue)
    found = (
        CreatorCatalogue(catalogue=catalogue).analyze(Context(small(), {}, Settings())).estimates
    )
    at = {e.label: e for e in found if e.details.get("stage") == "catalogue"}
    assert {name: e.value for name, e in at.items()} == {"f": 0.25, "m": 0.25, "agender": 0.5}
    assert (at["agender"].details["lowest"], at["agender"].details["highest"]) == (0.4, 0.6)
    platform = {e.label for e in found if e.details.get("stage") == "platform"}
    assert platform == {"f", "m"}


@pytest.mark.parametrize("how", ["all", "any"])
def test_shares_with_all_creators_by_hand(tmp_path: Path, how: str) -> None:
    # Forty items; each has a creator f, m or neither, and every second one a further creator m.
    first = [["f", "m", None][i % 3] for i in range(40)]
    data = Dataset(
        Interactions.from_arrays([i % 7 for i in range(40)], list(range(40))),
        items=Items.from_frame(pl.DataFrame({"item": range(40), "who": first})),
    )
    rows: list[tuple[int, str | None, float]] = []
    share: dict[str, float] = {"f": 0.0, "m": 0.0}
    known = 0.0
    for i, own in enumerate(first):
        made = [own, "m"] if i % 2 else [own]
        if how == "all":
            rows += [(i, who, 1 / len(made)) for who in made]
            known += sum(1 / len(made) for who in made if who)
        else:
            rows += [(i, who, 1.0) for who in {who for who in made if who}]
            known += any(made)
        for who in share:
            share[who] += made.count(who) / len(made) if how == "all" else who in made
    table = pl.DataFrame(rows, schema=["item", "who", "weight"], orient="row")
    file, catalogue = tmp_path / "creators.parquet", tmp_path / "items.parquet"
    table.write_parquet(file)
    pl.DataFrame({"item": range(40), "who": first}).write_parquet(catalogue)
    analysis = CreatorCatalogue(catalogue=catalogue, creators=file)
    found = analysis.analyze(Context(data, {}, Settings())).estimates
    at = {(e.label, e.details["stage"]): e for e in found if e.key == ALL_CREATORS}
    for who, of in share.items():
        for stage in ("catalogue", "platform", "interactions"):
            e = at[who, stage]
            assert e.value == pytest.approx(of / known), (who, stage)
            assert e.interval is not None and e.interval[0] < of / known < e.interval[1]
            assert e.details["lowest"] == pytest.approx(of / 40)
            assert e.details["highest"] == pytest.approx((of + 40 - known) / 40)
            assert e.unit == ("user" if stage == "interactions" else "item")
    # Lists of two: the first and last item of the history, and one that the table does not have.
    made = lists_of({u: [u, u + 7, 99] for u in range(7)})
    told = CreatorLists(creators=file, least=0, k=3).analyze(Context(data, {"s": made}, Settings()))
    of_lists = {(e.label, e.details["stage"]): e for e in told.estimates if e.key == ALL_CREATORS}
    weight: dict[tuple[int, str | None], float] = {}
    for item, creator, part in rows:
        weight[item, creator] = weight.get((item, creator), 0.0) + part
    for stage, having in (
        ("profiles", {u: range(u, 40, 7) for u in range(7)}),
        ("lists", {u: [u, u + 7] for u in range(7)}),
    ):
        for who in share:
            expected = []
            for items in having.values():
                own = [[weight.get((i, w), 0.0) for w in ("f", "m")] for i in items]
                certain = sum(min(1.0, sum(both)) for both in own)
                if certain:
                    expected.append(sum(both["fm".index(who)] for both in own) / certain)
            e = of_lists[who, stage]
            assert e.value == pytest.approx(np.mean(expected)), (who, stage)
            assert (e.system == "s") == (stage == "lists")
            assert e.details["without"] == 7 - len(expected)


def test_interactions_per_item_agree_with_scipy() -> None:
    from scipy.stats import mannwhitneyu

    rng = np.random.default_rng(3)
    counts = rng.integers(1, 30, 60)
    items = np.repeat(np.arange(60), counts)
    users = np.concatenate([np.arange(c) for c in counts])
    who = ["f"] * 25 + ["m"] * 35
    table = pl.DataFrame({"item": np.arange(60), "who": who})
    data = Dataset(Interactions.from_arrays(users, items), items=Items.from_frame(table))
    found = CreatorCatalogue().analyze(Context(data, {}, Settings()))
    at = {(e.key.rpartition("/")[2], e.label): e for e in found.estimates if "per-item" in e.key}
    own, others = counts[:25], counts[25:]
    assert at["interactions-per-item", "f"].value == pytest.approx(own.mean())
    assert at["interactions-per-item-ratio", "f"].value == pytest.approx(own.mean() / others.mean())
    area = mannwhitneyu(own, others).statistic / 25 / 35
    assert at["interactions-per-item-delta", "f"].value == pytest.approx(2 * area - 1)


def test_shares_of_users_have_intervals_that_cover() -> None:
    rng = np.random.default_rng(5)
    hits = 0
    for _ in range(300):
        theta = rng.beta(2, 3, 150)
        sizes = rng.integers(5, 40, 150)
        e = among_users(rng.binomial(sizes, theta), sizes, metric="m", level=0.95)
        assert e.interval is not None
        hits += e.interval[0] <= 0.4 <= e.interval[1]
    assert 0.91 <= hits / 300 <= 0.985


def test_baselines_are_one_list_with_counts() -> None:
    outputs = {"s": lists({"1": "bc", "2": "cd", "3": "ab"})}
    found = CreatorLists(k=3, least=1).analyze(Context(small(), outputs, Settings()))
    base = [e for e in found.estimates if e.details.get("stage") == "baseline" and e.label == "f"]
    # a, c and d were met twice each; nothing is taken out for having been seen.
    assert [(e.group, e.details["count"], e.details["of"]) for e in base] == [
        ("most popular", 1, 3)
    ]
    assert base[0].interval is None
    row = found.tables["creator-list-coverage"].to_dicts()[0]
    assert (row["recommendations"], row["distinct"], row["short"]) == (6, 4, 3)


def test_users_of_whom_something_is_held_out_are_no_profiles() -> None:
    data = small()
    assert data.interactions is not None
    users = np.array(["1", "2", "3"])
    assert profile_users(data, users).tolist() == [True, True, True]
    held = np.zeros(len(data.interactions), dtype=bool)
    held[0] = True
    test = Dataset(data.interactions, items=data.items, test=data.interactions.select(held))
    assert profile_users(test, users).tolist() == [False, True, True]


@pytest.mark.parametrize(
    ("table", "attribute", "said"),
    [
        ({"item": ["a"], "gender": [None], "x": ["1"]}, "", "name one attribute"),
        ({"item": ["a"], "gender": ["f"]}, "sex", "items have no 'sex'"),
        ({"item": ["a", "c"], "gender": [None, None]}, "", "no item has a known gender"),
    ],
)
def test_what_is_missing_is_one_clear_error(
    table: dict[str, list[str]], attribute: str, said: str
) -> None:
    frame = pl.DataFrame(table, schema_overrides={"gender": pl.String})
    data = Dataset(small().interactions, items=Items.from_frame(frame))
    with pytest.raises(PlanError, match=said):
        creators_of(data, attribute, "a test")
    with pytest.raises(PlanError, match="no table of items"):
        creators_of(Dataset(small().interactions), "", "a test")


def test_unknown_strategies_and_too_few_candidates_are_refused() -> None:
    with pytest.raises(PlanError, match="no strategy is called Fair"):
        CreatorReranking(strategies=("Fair",))
    with pytest.raises(PlanError, match="candidates is 10"):
        CreatorReranking(candidates=10)
    with pytest.raises(PlanError, match="FA.IR counts positions"):
        CreatorReranking(strategies=("FA*IR",), exposure=True)


def test_exposure_is_balanced_in_place_of_places() -> None:
    # Items 0 to 19 are of m, 20 to 39 of f; every list has all of m before all of f.
    users = np.repeat(np.arange(30), 40)
    table = {"item": np.arange(40), "gender": ["m"] * 20 + ["f"] * 20}
    data = Dataset(
        Interactions.from_arrays(users, np.tile(np.arange(40), 30)),
        items=Items.from_frame(pl.DataFrame(table)),
    )
    made = Recommendations.from_frame(
        pl.DataFrame({"user": users, "item": np.tile(np.arange(40), 30),
                      "rank": np.tile(np.arange(1, 41), 30)})
    )  # fmt: skip
    weights = 1 / np.log2(np.arange(5) + 2)
    for exposure, order in ((False, "mfmfm"), (True, "mffmf")):
        asked = CreatorReranking(
            k=5, accuracy_at=5, candidates=40, strategies=("GreedyEQ",), fewest_items=1,
            exposure=exposure,
        )  # fmt: skip
        found = asked.analyze(Context(data, {"s": made}, Settings())).estimates
        told = next(e for e in found if e.label == "f" and e.details.get("stage") == "reranked")
        women = np.array([who == "f" for who in order])
        assert told.value == pytest.approx(women.mean())
        assert told.details["exposure_mean"] == pytest.approx(weights[women].sum() / weights.sum())
