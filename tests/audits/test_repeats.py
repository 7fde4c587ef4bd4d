"""Repeats of an audit: other splits and trainings, and their chance in the intervals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ombud.audits import Audit, Plan
from ombud.audits.audit import rescore
from ombud.audits.collect import randomness_of, repeated_plan
from ombud.audits.load import load_data
from ombud.errors import PlanError
from ombud.metrics import Settings, ShareGap, estimate_metric
from ombud.metrics.base import Rows
from ombud.report import Report


def plan_of(**fields: Any) -> Plan:
    plan = {
        "seed": 1,
        "repeat": 3,
        "data": {"source": "small", "options": {"seed": 3, "ratings": True}},
        "by": ["gender"],
        "split": {"method": "per-user", "share": 0.2},
        "systems": {"any": {"type": "random"}, "liked": {"type": "popular", "by": "count"}},
        "metrics": [{"name": "recall", "k": 20}, {"name": "label-share", "k": 10}],
        "statistics": {"replicates": 100},
    }
    return Plan.from_dict(plan | fields)


def test_numbers_are_means_over_repeats_and_come_back_from_the_folder(tmp_path: Path) -> None:
    plan = plan_of()
    result = Audit.from_plan(plan).run(tmp_path / "r")
    alone = [Audit.from_plan(repeated_plan(plan, n)).run() for n in range(3)]
    for e in result.estimates:
        if e.kind == "level" and e.value is not None:
            about = {"key": e.key, "system": e.system, "label": e.label, "group": e.group}
            values = [one.select(**about, kind="level")[0].value for one in alone]
            assert e.details["repeats"] == pytest.approx(values)
            assert e.value == pytest.approx(np.mean(values))
    spread = result.select(key="recall(k=20)", system="any", kind="level", group="")[0]
    assert len(set(spread.details["repeats"])) == 3
    again = rescore(tmp_path / "r", into=tmp_path / "again")
    assert [e.to_dict() for e in again.estimates] == [e.to_dict() for e in result.estimates]
    assert rescore(tmp_path / "again").estimates == again.estimates
    words = Report(result).markdown()
    assert "what was held out and the chance in training (over 3 repeats)" in words


def test_folds_take_turns_and_together_are_the_whole() -> None:
    plan = plan_of(split={"method": "k-fold", "folds": 3, "by": "user"})
    tests = [load_data(repeated_plan(plan, n)).test for n in range(3)]
    pairs = [set(t.to_frame().select("user", "item").rows()) for t in tests]
    assert not pairs[0] & pairs[1] and not pairs[1] & pairs[2]
    with pytest.raises(PlanError, match="repeat = 3, but the split has 2 folds"):
        Audit.from_plan(plan_of(split={"method": "k-fold", "folds": 2}))


def test_what_would_be_the_same_is_refused() -> None:
    only = {"liked": {"type": "popular", "by": "count"}}
    metrics = [{"name": "label-share", "k": 10}]
    with pytest.raises(PlanError, match="would repeat the same"):
        Audit.from_plan(plan_of(split={}, systems=only, metrics=metrics))


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"repeat": 1}, "does not cover what was held out or the chance in training"),
        ({"repeat": 1, "split": {}}, "does not cover the chance in training, which was drawn once"),
        ({}, "what was held out and the chance in training (over 3 repeats)."),
    ],
)
def test_every_report_says_which_randomness_is_in_it(fields: dict[str, Any], said: str) -> None:
    assert said in randomness_of(plan_of(**fields)).said


def test_systems_inside_others_are_seeded_too() -> None:
    inner = {"type": "avoid-list", "labels": ["x"], "inner": {"type": "svd", "seed": 4}}
    plan = repeated_plan(plan_of(systems={"a": inner}), 2)
    assert plan.systems["a"]["inner"]["seed"] == 6 and plan.split["seed"] == 3


def repeats_of(
    rng: np.random.Generator, users: int, repeats: int, sd: tuple[float, float, float]
) -> list[dict[str, Rows]]:
    a, b, c = sd
    own = rng.normal(0, a, users)
    parts = []
    for _ in range(repeats):
        values = own + rng.normal(0, b) + rng.normal(0, c, users)
        parts.append({"s": Rows("user", np.arange(users), {"value": values[:, None]})})
    return parts


def covered(sd: tuple[float, float, float], repeats: int, runs: int) -> float:
    """Return how often the interval of a mean over repeats holds the true value, 0."""
    rng = np.random.default_rng(8)
    held = 0
    for run in range(runs):
        first, *rest = repeats_of(rng, 60, repeats, sd)
        settings = Settings(replicates=300, seed=run)
        (e,) = estimate_metric(ShareGap(), first, None, settings, rest)
        held += e.interval[0] <= 0 <= e.interval[1]
    return held / runs


def test_coverage_with_the_chance_of_repeats() -> None:
    assert covered((1.0, 0.3, 1.0), 5, 60) >= 0.87


@pytest.mark.slow
@pytest.mark.simulation
def test_coverage_whole() -> None:
    for sd in ((1.0, 0.0, 0.0), (1.0, 0.3, 0.0), (1.0, 0.3, 1.0), (0.2, 0.5, 0.2)):
        held = [covered(sd, repeats, 600) for repeats in (2, 3, 5, 10)]
        # One of 600 runs has a standard error of .009, all four together of less than .005.
        assert min(held) >= 0.91 and np.mean(held) >= 0.93, (sd, held)


@given(st.integers(0, 1000))
def test_repeats_that_agree_change_nothing_but_the_method(seed: int) -> None:
    values = np.random.default_rng(seed).normal(size=30)
    rows = {"s": Rows("user", np.arange(30), {"value": values[:, None]})}
    settings = Settings(replicates=100, interval="expanded")
    (once,) = estimate_metric(ShareGap(), rows, None, settings)
    (thrice,) = estimate_metric(ShareGap(), rows, None, settings, [rows, rows])
    assert thrice.value == pytest.approx(once.value)
    assert thrice.interval == pytest.approx(once.interval)


def test_more_spread_between_repeats_gives_a_longer_interval() -> None:
    lengths = []
    for b in (0.0, 0.5, 2.0):
        first, *rest = repeats_of(np.random.default_rng(1), 80, 4, (1.0, b, 0.0))
        (e,) = estimate_metric(ShareGap(), first, None, Settings(replicates=300), rest)
        lengths.append(e.interval[1] - e.interval[0])
    assert lengths[0] < lengths[1] < lengths[2]
