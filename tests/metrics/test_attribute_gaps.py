"""One gap per attribute: largest minus smallest group."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ombud.audits import Audit
from ombud.audits.plan import StatisticsPlan
from ombud.data.groups import Grouping
from ombud.metrics import Settings, ShareGap, estimate_metric
from ombud.metrics.base import Rows
from ombud.stats.extremes import largest_gap
from ombud.worlds import small_world


def of_groups(values: np.ndarray, codes: np.ndarray, seed: int = 0, **settings):
    users = np.arange(len(values))
    rows = Rows("user", users, {"value": values[:, None]})
    groups = Grouping.from_values(users, {"age": [f"g{c}" for c in codes]})
    made = estimate_metric(ShareGap(), {"a": rows}, groups, Settings(seed=seed, **settings))
    return next(e for e in made if e.key.endswith("/attribute-gap")), made


def test_hand_worked() -> None:
    values = np.repeat([1.0, 2.0, 4.0], 12) + np.tile([-0.5, 0.5], 18)
    gap, _ = of_groups(values, np.repeat([0, 1, 2], 12))
    assert gap.value == pytest.approx(3.0)  # 4 - 1
    assert (gap.group, gap.details["largest"], gap.details["smallest"]) == (
        "age",
        "age=g2",
        "age=g0",
    )
    assert gap.interval is not None and gap.interval[0] > 2 and gap.p_value < 0.01
    assert gap.details["by_chance"] > 0 and "were all alike" in gap.note


def test_small_groups_take_no_part_and_are_counted() -> None:
    values = np.concatenate([np.tile([0.0, 1.0], 20), [9.0] * 3])
    gap, _ = of_groups(values, np.concatenate([np.repeat([0, 1], 20), [2] * 3]))
    assert gap.details["groups"] == 2 and gap.details["groups_left_out"] == 1
    alone, _ = of_groups(np.tile([0.0, 1.0], 10), np.repeat([0, 1, 2], [12, 4, 4]))
    assert alone.value is None and "two are wanted" in alone.reason


@given(st.integers(0, 10_000), st.integers(2, 6))
def test_the_interval_is_that_of_bands_by_hand(seed: int, groups: int) -> None:
    rng = np.random.default_rng(seed)
    values = rng.normal(size=groups)
    draws = values + rng.normal(scale=rng.uniform(0.1, 1, groups), size=(200, groups))
    found = largest_gap(values, draws)
    assert found.ends[0] <= found.value <= found.ends[1]
    assert 0 < found.p <= 1 and found.by_chance > 0
    off, errors, gaps = [], [], []
    for i, j in combinations(range(groups), 2):
        d = draws[:, i] - draws[:, j] - (values[i] - values[j])
        errors.append(np.sqrt((d**2).sum() / 199))
        off.append(np.abs(d) / errors[-1])
        gaps.append(abs(values[i] - values[j]))
    c = np.sort(np.max(off, axis=0))[int(np.ceil(0.95 * 200)) - 1]
    low = max(0.0, max(g - c * s for g, s in zip(gaps, errors, strict=True)))
    high = max(g + c * s for g, s in zip(gaps, errors, strict=True))
    assert found.ends == pytest.approx((low, high))
    shifted = largest_gap(values + 7, draws + 7)
    assert shifted.ends == pytest.approx(found.ends)


def simulated(truth: np.ndarray, runs: int) -> tuple[float, float]:
    """Return how often the interval holds the true gap, and how often *all alike* is refused."""
    rng = np.random.default_rng(3)
    codes = np.repeat(np.arange(len(truth)), 40)
    held = alarms = 0
    wanted = truth.max() - truth.min()
    for run in range(runs):
        values = truth[codes] + rng.exponential(1.0, len(codes))
        gap, _ = of_groups(values, codes, seed=run, replicates=300)
        held += gap.interval[0] <= wanted <= gap.interval[1]
        alarms += gap.p_value < 0.05
    return held / runs, alarms / runs


def test_coverage_and_false_alarms() -> None:
    held, alarms = simulated(np.zeros(5), 60)
    assert held >= 0.88 and alarms <= 0.14
    held, _ = simulated(np.array([0.0, 0.2, 0.5]), 60)
    assert held >= 0.88


@pytest.mark.slow
@pytest.mark.simulation
def test_coverage_whole() -> None:
    for truth in (
        np.zeros(3),
        np.zeros(7),
        np.array([0.0, 0.1, 0.2, 0.5]),
        np.array([0.0, 1.0, 1.0]),
    ):
        held, alarms = simulated(truth, 600)
        assert held >= 0.93
        if not truth.any():
            assert alarms <= 0.07


def test_every_metric_of_three_groups_has_one_a_label() -> None:
    world = small_world(seed=1)
    statistics = StatisticsPlan(replicates=100)
    audit = Audit(
        world.dataset,
        world.recommenders(),
        [ShareGap(k=10)],
        by=["age", "gender"],
        statistics=statistics,
    )
    result = audit.run()
    gaps = [e for e in result.estimates if e.key.endswith("/attribute-gap")]
    labels = {e.label for e in result.estimates}
    assert len(gaps) == 2 * len(labels) * len(result.systems)
    for gap in gaps:
        values = {
            e.group: e.value
            for e in result.select(system=gap.system, label=gap.label, kind="level")
            if e.group.startswith(f"{gap.group}=") and e.value is not None
        }
        assert gap.value == pytest.approx(max(values.values()) - min(values.values()))
