"""Dated requests and dated lists: by hand, by a loop, and in a report."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ombud.audits import Audit, Plan
from ombud.audits.analysis import Context
from ombud.data.dataset import Dataset
from ombud.data.dated import DatedLists, Requests
from ombud.data.interactions import Interactions
from ombud.data.labels import Labels
from ombud.data.recommendations import Recommendations
from ombud.errors import DataError, PlanError
from ombud.metrics.engine.estimator import Settings
from ombud.questions.hide_requests import (
    DAY,
    HideRequestAnalysis,
    HideRequestLeak,
    pairs_of,
    rows_of,
)
from ombud.report import Report
from ombud.report.markdown import section_lines
from ombud.report.model import plain

LABELS = Labels.from_applied(
    {
        "item": ["gore", "cute", "gore", "cute", "odd"],
        "label": ["blood", "blood", "spiders", "spiders", "spiders"],
        "present": [True, False, False, False, True],
    }
)


def day(number: float) -> float:
    return 1_700_000_000 + number * DAY


def written(folder: Path, shown: Any, asked: Any) -> tuple[Path, Path]:
    pl.DataFrame(asked).write_parquet(folder / "requests.parquet")
    pl.DataFrame(shown).write_parquet(folder / "lists.parquet")
    return folder / "requests.parquet", folder / "lists.parquet"


def test_hand_worked() -> None:
    asked = Requests.from_frame({"user": ["ann"], "label": ["blood"], "time": [day(10)]})
    rows = [("gore", 9), ("gore", 10.5), ("cute", 12), ("odd", 30), ("other", 50)]
    shown = DatedLists.from_frame(
        {
            "user": ["ann"] * 5,
            "item": [item for item, _ in rows],
            "time": [day(at) for _, at in rows],
        }
    )
    pairs = pairs_of(asked, shown, LABELS)
    after = pairs.filter(pl.col("delay") > 0)
    assert after["leak"].to_list() == [True, False, False, False]
    assert after["unknown"].to_list() == [False, False, True, True]  # odd and other: not known
    made = rows_of(after, LABELS.names)
    assert made.columns["numerator"][0].tolist() == [1.0, 1.0]
    assert made.columns["denominator"][0].tolist() == [4.0, 4.0]
    assert made.details["blood"] == {
        "leaks": 1, "places": 4, "unknown": 2, "users": 1, "users_with_leak": 1
    }  # fmt: skip


def brute(asked: list[tuple], shown: list[tuple], states: dict, before: float) -> dict:
    """Count by three loops."""
    found: dict = {}
    for user, label, start, until in asked:
        for who, item, at in shown:
            if who != user or at >= until or at == start:
                continue
            others = [u for o, w, s, u in asked if (o, w) == (user, label) and s < start]
            if at < max(others, default=-np.inf):
                continue
            side = "after" if at > start else "before"
            if side == "before" and start - at > before:
                continue
            cell = found.setdefault((side, user, label), [0, 0, 0])
            state = states.get((item, label), -2)
            cell[0] += state == 1
            cell[1] += 1
            cell[2] += state < 0
    return found


@settings(max_examples=30)
@given(st.integers(0, 100_000))
def test_equals_three_loops(seed: int) -> None:
    rng = np.random.default_rng(seed)
    names = ("blood", "spiders")
    asked = []
    for user in range(3):
        for label in names:
            start = 0.0
            for _ in range(int(rng.integers(0, 3))):
                start += float(rng.integers(1, 20))
                until = start + float(rng.integers(1, 20)) if rng.random() < 0.7 else np.inf
                asked.append((user, label, start * DAY, until * DAY))
                start = until
                if not np.isfinite(until):
                    break
    items = ["gore", "cute", "odd", "none"]
    shown = [
        (int(rng.integers(0, 4)), str(rng.choice(items)), float(rng.integers(0, 60)) * DAY)
        for _ in range(40)
    ]
    if not any(user == who for user, *_ in asked for who, *_ in shown):
        return
    frame = pl.DataFrame(asked, schema=["user", "label", "time", "until"], orient="row")
    frame = frame.with_columns(
        until=pl.when(pl.col("until").is_infinite()).then(None).otherwise("until")
    )
    lists = pl.DataFrame(shown, schema=["user", "item", "time"], orient="row")
    pairs = pairs_of(Requests.from_frame(frame), DatedLists.from_frame(lists), LABELS)
    pairs = pairs.filter(pl.col("delay") >= -30 * DAY)
    states = {(r["item"], r["label"]): r["state"] for r in LABELS.to_frame().to_dicts()}
    wanted = brute(asked, shown, states, 30 * DAY)
    side = pl.when(pl.col("delay") > 0).then(pl.lit("after")).otherwise(pl.lit("before"))
    got = pairs.group_by(side.alias("side"), "user", "label").agg(
        pl.col("leak").sum(), pl.len(), pl.col("unknown").sum()
    )
    assert {(r[0], r[1], LABELS.names[r[2]]): [r[3], r[4], r[5]] for r in got.iter_rows()} == wanted
    after = pairs.filter(pl.col("delay") > 0)
    made, bound = rows_of(after, LABELS.names), rows_of(after, LABELS.names, as_yes=True)
    top, low = bound.columns["numerator"], made.columns["numerator"]
    assert np.all((top >= low) | np.isnan(low))
    assert np.all((top <= made.columns["denominator"]) | np.isnan(low))


def simulated(folder: Path, leak: float, users: int = 60) -> tuple[Path, Path]:
    """Write a service that shows gore to 40% before and to `leak` after requests for blood."""
    rng = np.random.default_rng(4)
    shown: dict[str, list] = {"user": [], "item": [], "time": [], "rank": []}
    for user in range(users):
        for at in np.arange(0.5, 60):
            rate = 0.4 if at < 30 else leak
            item = "gore" if rng.random() < rate else rng.choice(["cute", "other"], p=[0.9, 0.1])
            shown["user"].append(user)
            shown["item"].append(str(item))
            shown["time"].append(day(at))
            shown["rank"].append(1 + int(at) % 2)
    asked = {"user": list(range(users)), "label": ["blood"] * users, "time": [day(30)] * users}
    return written(folder, shown, asked)


def data() -> Dataset:
    return Dataset(Interactions.from_arrays([0, 1], ["gore", "cute"]), LABELS)


def test_what_was_planted_is_found_by_label_and_delay(tmp_path: Path) -> None:
    requests, lists = simulated(tmp_path, 0.1)
    made = HideRequestAnalysis(requests=requests, lists=lists).analyze(
        Context(data(), {}, Settings(replicates=300))
    )
    at = {(e.key.partition("/")[2], e.label): e for e in made.estimates if not e.group}
    after, before = at["leak-after", ""], at["leak-before", ""]
    assert after.interval[0] < 0.1 < after.interval[1]
    assert before.interval[0] < 0.4 < before.interval[1]
    change = at["change", "blood"]
    assert change.value == pytest.approx(after.value - before.value)
    assert change.interval[1] < -0.2 and change.p_value < 0.01
    late = [e for e in made.estimates if e.key.endswith("by-delay")]
    assert [e.label for e in late] == ["within 1 day", "1 to 7 days", "7 to 30 days"]
    assert sum(e.details["places"] for e in late) == after.details["places"]
    assert at["leak-if-unknown-yes", ""].value > after.value
    top = HideRequestAnalysis(requests=requests, lists=lists, k=1).analyze(
        Context(data(), {}, Settings(replicates=100))
    )
    assert top.estimates[0].details["places"] == after.details["places"] // 2


def test_no_leak_at_all_has_a_bound(tmp_path: Path) -> None:
    requests, lists = simulated(tmp_path, 0.0)
    made = HideRequestAnalysis(requests=requests, lists=lists).analyze(
        Context(data(), {}, Settings(replicates=100))
    )
    users = next(e for e in made.estimates if e.key.endswith("users-with-leak") and not e.label)
    assert users.value == 0 and 0.03 < users.interval[1] < 0.1


def test_faults(tmp_path: Path) -> None:
    requests, lists = written(
        tmp_path,
        {"user": [1], "item": ["gore"], "time": [day(1)]},
        {"user": [2], "label": ["blood"], "time": [day(1)]},
    )
    with pytest.raises(DataError, match="do the ids of both files mean the same"):
        HideRequestAnalysis(requests=requests, lists=lists).analyze(Context(data(), {}, Settings()))
    with pytest.raises(PlanError, match="no column rank"):
        HideRequestAnalysis(requests=requests, lists=lists, k=3).analyze(
            Context(data(), {}, Settings())
        )
    with pytest.raises(PlanError, match="requests: Field required"):
        HideRequestAnalysis()
    with pytest.raises(PlanError, match="in ascending order"):
        HideRequestAnalysis(requests=requests, lists=lists, days=(7.0, 1.0))
    with pytest.raises(PlanError, match="a date such as"):
        HideRequestLeak(requests, at="yesterday")
    strange = Requests.from_frame({"user": [1], "label": ["knives"], "time": [1]})
    with pytest.raises(DataError, match="'knives' was asked not to be shown"):
        pairs_of(strange, DatedLists.from_frame(str(lists)), LABELS)
    for until, said in ((0, "ends before it begins"), (9, "while an earlier one")):
        with pytest.raises(DataError, match=said):
            Requests.from_frame(
                {"user": [1, 1], "label": ["a", "a"], "time": [1, 5], "until": [until, 10]}
            )


def test_only_requests_of_that_age_count(tmp_path: Path) -> None:
    asked = {"user": ["ann", "bob", "cid"], "label": ["blood"] * 3, "time": [0.0, 5.0, 6.0]}
    asked["time"] = [day(number) for number in asked["time"]]  # type: ignore[arg-type]
    pl.DataFrame(asked).write_parquet(tmp_path / "requests.parquet")
    lists = {"user": ["ann", "bob", "cid"], "item": ["gore"] * 3, "rank": [1, 1, 1]}
    moment = datetime.fromtimestamp(day(10), UTC).isoformat()

    def users(**options: Any) -> list[str]:
        metric = HideRequestLeak(tmp_path / "requests.parquet", **options)
        rows = metric.measure(Recommendations.from_frame(lists), data())
        assert sum(one.count for one in rows.exclusions) == 3 - len(rows.ids)
        return sorted(map(str, rows.ids))

    assert users(at=moment) == users() == users(older_than=1) == ["ann", "bob", "cid"]
    assert users(at=moment, older_than=5) == ["ann", "bob"]  # five days old to the second: counts
    assert users(at=moment, older_than=5.5) == ["ann"]


def plan_of(tmp_path: Path, leak: float) -> Plan:
    requests, lists = simulated(tmp_path, leak)
    shown = {"user": [*range(30)] * 2, "item": ["gore"] * 30 + ["cute"] * 30}
    frame = pl.DataFrame(shown)
    frame.write_parquet(tmp_path / "now.parquet")
    frame.write_parquet(tmp_path / "met.parquet")
    LABELS.to_frame().write_parquet(tmp_path / "labels.parquet")
    return Plan.from_dict(
        {
            "data": {
                "interactions": str(tmp_path / "met.parquet"),
                "labels": str(tmp_path / "labels.parquet"),
            },
            "systems": {"now": {"type": "recorded", "path": str(tmp_path / "now.parquet")}},
            "metrics": [
                {"name": "request-leak", "path": str(requests), "k": 2},
                {"name": "request-leak", "path": str(requests), "k": 2, "at": "2023-01-01"},
            ],
            "analyses": [{"name": "requests", "requests": str(requests), "lists": str(lists)}],
            "statistics": {"replicates": 100},
        }
    )


def test_metric_section_and_answer(tmp_path: Path) -> None:
    result = Audit.from_plan(plan_of(tmp_path, 0.1)).run(tmp_path / "r")
    now = {(e.metric, e.label): e for e in result.select(system="now", kind="level")}
    assert now["request leak@2", "blood"].value == 0.5  # gore of gore and cute
    early = [e for (title, _), e in now.items() if "at 2023" in title]
    assert all(e.value is None for e in early)  # nobody had asked by then
    report = Report(result)
    verdict = next(v for v in report.verdicts if v.name == "requests")
    assert verdict.answer == "yes"
    said = plain(verdict.findings[0].sentence)
    assert "of the recommendations shown after a hide request carry the hidden label" in said
    assert "Before the request it was" in said
    words = "\n".join(section_lines(report.sections))
    assert "within 1 day" in words and "all requests" in words
    assert len(report.lines()) <= 24


def test_nothing_known_got_through_is_said_with_a_bound(tmp_path: Path) -> None:
    result = Audit.from_plan(plan_of(tmp_path, 0.0)).run()
    verdict = next(v for v in Report(result).verdicts if v.name == "requests")
    assert not verdict.findings and verdict.answer != "yes"
