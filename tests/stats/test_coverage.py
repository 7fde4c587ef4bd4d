"""Do bootstrap intervals cover, and do tests reject, as often as they claim?

Each column of values is one simulated data set, so one call audits all of them. A tolerance is
four binomial errors of the simulation and, where a bootstrap of few units is known to be short,
an allowance that is stated.
"""

from __future__ import annotations

import os

import numpy as np
import pytest

from ombud.stats import Median, Quantile, RatioOfSums, Sample, resample
from ombud.stats.bootstrap.replicates import Replicates

pytestmark = pytest.mark.simulation


WHOLE = os.environ.get("OMBUD_SLOW", "") not in {"", "0"}


def some(runs: int) -> int:
    """Return how many worlds are simulated: in CI a sixth of them."""
    return runs if WHOLE else runs // 6


def within(runs: int, allowance: float = 0.0, rate: float = 0.05) -> float:
    return 4 * np.sqrt(rate * (1 - rate) / runs) + allowance


def share_covered(drawn: Replicates, truth: float, method: str) -> float:
    found = drawn.intervals(method=method)
    assert not (found.reason != "").any()
    return float(np.mean((found.low <= truth) & (truth <= found.high)))


@pytest.mark.parametrize("method", ["bca", "percentile"])
@pytest.mark.parametrize(("n", "allowance"), [(30, 0.04), (200, 0.012)])
def test_means_of_skewed_units(method: str, n: int, allowance: float, rng) -> None:
    runs = some(2000)
    drawn = resample(Sample.many(rng.exponential(size=(n, runs))), replicates=1000, rng=rng)
    covered = share_covered(drawn, 1.0, method)
    assert covered == pytest.approx(0.95, abs=within(runs, allowance))


@pytest.mark.parametrize("n", [8, 15, 40])
def test_expanded_intervals_of_few_units(n: int, rng) -> None:
    runs = some(3000)
    values = rng.normal(size=(n, runs))
    drawn = resample(Sample.many(values), replicates=2000, rng=rng)
    covered = share_covered(drawn, 0.0, "expanded")
    assert covered == pytest.approx(0.95, abs=within(runs, 0.01))
    assert share_covered(drawn, 0.0, "percentile") < covered


@pytest.mark.parametrize("statistic", [Median(), Quantile(0.8)], ids=["median", "q80"])
def test_quantiles(statistic, rng) -> None:
    runs, n = some(600), 100
    truth = -np.log(1 - statistic.q)
    samples = Sample.many(rng.exponential(size=(n, runs)), statistic)
    drawn = resample(samples, replicates=600, rng=rng)
    covered = share_covered(drawn, truth, "percentile")
    assert covered == pytest.approx(0.95, abs=within(runs, 0.015))


def test_ratio_of_sums_over_unequal_units(rng) -> None:
    runs, n = some(1500), 120
    trials = rng.poisson(4, size=(runs, n)) + 1.0
    rate = rng.beta(2, 18, size=(runs, n))
    events = rng.binomial(trials.astype(int), rate)
    samples = [
        Sample(np.column_stack([e, t]), RatioOfSums()) for e, t in zip(events, trials, strict=True)
    ]
    drawn = resample(samples, replicates=1000, rng=rng)
    assert share_covered(drawn, 0.1, "bca") == pytest.approx(0.95, abs=within(runs, 0.015))


def test_clusters_are_needed_and_suffice(rng) -> None:
    runs, clusters, size = some(1500), 60, 6
    cluster = np.repeat(np.arange(clusters), size)
    shared = rng.normal(size=(clusters, runs))[cluster]
    values = shared + rng.normal(size=(clusters * size, runs))
    honest = resample(Sample.many(values), clusters=cluster, replicates=1000, rng=rng)
    naive = resample(Sample.many(values), replicates=1000, rng=rng)
    assert share_covered(honest, 0.0, "bca") == pytest.approx(0.95, abs=within(runs, 0.015))
    assert share_covered(naive, 0.0, "bca") < 0.80


def grouped(runs: int, n: int, chances: tuple[float, float], rng) -> Replicates:
    """Every data set has its own events; the group is a fixed third of the units."""
    group = np.arange(n) % 3 == 0
    chance = np.where(group, *chances)[:, None]
    events = (rng.random((n, runs)) < chance).astype(float)
    groups = np.column_stack([np.ones(n, bool), group, ~group])
    return resample(Sample.many(events), groups=groups, replicates=1000, rng=rng)


@pytest.mark.parametrize("method", ["bca", "percentile"])
@pytest.mark.parametrize(("against", "how"), [(0, "ratio"), (2, "ratio"), (2, "difference")])
def test_groups_against_whole_and_rest(method, against: int, how, rng) -> None:
    runs, n, chances = some(600), 450, (0.25, 0.15)
    drawn = grouped(runs, n, chances, rng)
    other = (chances[0] + 2 * chances[1]) / 3 if against == 0 else chances[1]
    truth = chances[0] / other if how == "ratio" else chances[0] - other
    hits = 0
    for s in range(runs):
        interval = drawn.contrast((s, 1), (s, against), how).interval(method=method)
        hits += interval.low <= truth <= interval.high
    assert hits / runs == pytest.approx(0.95, abs=within(runs, 0.012))


def test_paired_systems(rng) -> None:
    runs, n = some(800), 60
    person = rng.gamma(2, 1, size=(n, runs))
    first, second = person + rng.gamma(1, 1, (n, runs)), person + rng.gamma(1, 1, (n, runs))
    drawn = resample(Sample.many(np.hstack([first, second])), replicates=1000, rng=rng)
    hits = 0
    for s in range(runs):
        interval = drawn.contrast((s, 0), (runs + s, 0)).interval()
        hits += interval.low <= 0 <= interval.high
    assert hits / runs == pytest.approx(0.95, abs=within(runs, 0.015))


@pytest.mark.parametrize(("against", "how"), [(0, "ratio"), (2, "ratio"), (2, "difference")])
def test_p_values_under_the_null(against: int, how, rng) -> None:
    runs = some(4000)
    drawn = grouped(runs, 300, (0.2, 0.2), rng)
    null = 1.0 if how == "ratio" else 0.0
    p = np.array([drawn.contrast((s, 1), (s, against), how).p_value(null) for s in range(runs)])
    assert not np.isnan(p).any()
    for level, allowance in ((0.05, 0.008), (0.01, 0.004), (0.001, 0.001)):
        alarms = np.mean(p <= level)
        assert alarms <= level + within(runs, allowance, level)
        if level > 0.001:
            assert alarms >= level - within(runs, allowance, level)
