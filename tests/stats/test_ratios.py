from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from ombud.stats import Mean, Sample, resample
from ombud.stats.clustered_rates import cluster_moments, log_ratio_error
from ombud.stats.proportions import exact
from ombud.stats.ratios import (
    rate_ratio,
    ratio_of_means,
    ratio_of_means_estimate,
    selected_rate_ratio,
    truncated_rate,
)


def world(e: int, n: int, all_e: int, all_n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return who is in the group and who has the event."""
    group = np.arange(all_n) < n
    event = np.zeros(all_n)
    event[:e] = 1
    event[n : n + all_e - e] = 1
    return group, event


def test_counts_and_units_give_the_same_interval() -> None:
    group, event = world(12, 80, 60, 700)
    counts = rate_ratio(12, 80, 60, 700)
    units = ratio_of_means(np.where(group, event, np.nan), event)
    assert units.ratio == pytest.approx(counts.ratio)
    # The unit form has n / (n - 1), here 80 / 79, under the root.
    assert np.log(units.high / units.ratio) == pytest.approx(
        np.log(counts.high / counts.ratio) * np.sqrt(80 / 79)
    )


def test_against_the_rest_it_is_the_usual_relative_risk() -> None:
    module = pytest.importorskip("statsmodels.stats.contingency_tables")
    table = module.Table2x2(np.array([[12, 68], [48, 572]]))
    found = rate_ratio(12, 80, 60, 700, against="complement")
    assert found.ratio == pytest.approx(table.riskratio)
    assert (found.low, found.high) == pytest.approx(table.riskratio_confint())


def test_bootstrap_agrees_for_a_group_in_its_whole(rng) -> None:
    group, event = world(60, 400, 300, 3000)
    groups = np.column_stack([group, np.ones(3000, bool)])
    drawn = resample([Sample(event, Mean())], groups=groups, replicates=4000, rng=rng)
    boot = drawn.contrast((0, 0), (0, 1), "ratio").interval()
    found = rate_ratio(60, 400, 300, 3000)
    assert (found.low, found.high) == pytest.approx(boot.ends, rel=0.03)


def test_clusters_widen_the_interval_as_the_cluster_bootstrap_does(rng) -> None:
    cluster = np.repeat(np.arange(150), 8)
    level = rng.gamma(2, 1, size=150)[cluster]
    x, y = level + rng.gamma(2, 1, 1200), level + rng.gamma(1, 1, 1200)
    plain, robust = ratio_of_means(x, y), ratio_of_means(x, y, clusters=cluster)
    drawn = resample([Sample(x), Sample(y)], clusters=cluster, replicates=4000, rng=rng)
    boot = drawn.contrast((0, 0), (1, 0), "ratio").interval()
    assert (robust.low, robust.high) == pytest.approx(boot.ends, rel=0.02)
    assert robust.high - robust.low > 1.1 * (plain.high - plain.low)
    e = ratio_of_means_estimate(x, y, metric="r", clusters=cluster, unit="show")
    assert e.n == 150 and e.kind == "ratio" and e.null == 1


@pytest.mark.simulation
@pytest.mark.parametrize("against", ["whole", "complement"])
@pytest.mark.parametrize(("n", "p"), [(200, 0.05), (60, 0.3), (1000, 0.1)])
def test_coverage_of_rates(against, n: int, p: float, rng) -> None:
    runs, rest, q = 20_000, 1500, 0.1
    e, f = rng.binomial(n, p, runs), rng.binomial(rest, q, runs)
    truth = p / q if against == "complement" else p / ((n * p + rest * q) / (n + rest))
    found = rate_ratio(e, n, e + f, n + rest, against=against)
    covered = np.mean((found.low <= truth) & (truth <= found.high))
    # With group sizes held fixed the whole's rate varies a little less than the formula says.
    assert 0.95 - 4 * np.sqrt(0.05 * 0.95 / runs) - 0.004 <= covered <= 0.965


@pytest.mark.simulation
def test_coverage_with_hardly_any_events_stays_at_or_above_the_level(rng) -> None:
    runs, n, rest, p, q = 20_000, 50, 1500, 0.04, 0.1
    e, f = rng.binomial(n, p, runs), rng.binomial(rest, q, runs)
    truth = p / ((n * p + rest * q) / (n + rest))
    found = rate_ratio(e, n, e + f, n + rest)
    covered = np.mean((found.low <= truth) & (truth <= found.high))
    assert np.mean(found.adjusted) == pytest.approx(0.96**50, abs=0.012)
    assert covered >= 0.945


def test_zero_counts_are_handled() -> None:
    none = rate_ratio(0, 30, 40, 500)
    assert none.ratio == 0 and none.low == 0 and 0.3 < none.high < 10 and none.adjusted
    assert np.isnan(rate_ratio(0, 30, 0, 500).ratio)
    assert np.isnan(rate_ratio(5, 30, 5, 500, against="complement").ratio)
    every = rate_ratio(30, 30, 500, 500)
    assert every.ratio == 1 and np.isnan(every.low)


def test_undefined_means() -> None:
    assert ratio_of_means_estimate([1.0, -1.0], [1.0, 2.0], metric="r").value == 0
    assert ratio_of_means_estimate([1.0, 2.0], [0.0, 0.0], metric="r").value is None
    assert ratio_of_means_estimate([np.nan], [1.0], metric="r").reason == "no units in one part"
    assert ratio_of_means_estimate([1.0, 2.0], [-1.0, -3.0], metric="r").value is None
    single = ratio_of_means_estimate([1.0, np.nan], [2.0, 3.0], metric="r")
    assert single.value == pytest.approx(0.4) and single.interval is None
    with pytest.raises(ValueError, match="same units"):
        ratio_of_means([1.0], [1.0, 2.0])
    with pytest.raises(ValueError, match="more events than units"):
        rate_ratio(5, 4, 10, 20)


@given(
    st.lists(st.tuples(st.floats(0.1, 9), st.floats(0.1, 9)), min_size=3, max_size=20),
    st.floats(0.01, 100),
)
def test_scaling_a_part_scales_the_ratio(pairs: list[tuple[float, float]], scale: float) -> None:
    x, y = np.array(pairs).T
    one, two = ratio_of_means(x, y), ratio_of_means(scale * x, y)
    inverse = ratio_of_means(y, x)
    assert two.ratio == pytest.approx(scale * one.ratio)
    if not np.isnan(one.low) and not np.isnan(two.low):
        ends = (float(scale * one.low), float(scale * one.high))
        assert (two.low, two.high) == pytest.approx(ends, rel=1e-6)
        assert 1 / inverse.high == pytest.approx(float(one.low), rel=1e-6)


def test_everyone_against_the_whole_is_one_without_spread() -> None:
    found = rate_ratio(40, 500, 40, 500)
    assert found.ratio == 1 and np.isnan(found.low)


# Ratios that are only given where enough units have the event.


def test_a_truncated_rate_by_the_binomial_of_scipy() -> None:
    for x, n, m in ((6, 15, 5), (9, 15, 5), (14, 40, 5), (15, 15, 5), (5, 20, 5)):
        low, high = truncated_rate(x, n, m)
        if x > m:
            more = binom.sf(x - 1, n, low) / binom.sf(m - 1, n, low)
            assert more == pytest.approx(0.025, rel=1e-6)
        else:
            assert low == 0.0
        if x < n:
            less = 1 - binom.sf(x, n, high) / binom.sf(m - 1, n, high)
            assert less == pytest.approx(0.025, rel=1e-6)
        else:
            assert high == 1.0


def test_a_truncated_rate_by_hand() -> None:
    # Three of three, seen with two or more: P(3 | 2 or 3) = p^3 / (3 p^2 (1 - p) + p^3), which is
    # p / (3 - 2 p) = 0.025 at p = 0.075 / 1.05.
    assert truncated_rate(3, 3, 2) == pytest.approx((0.075 / 1.05, 1.0))


@given(st.integers(1, 12), st.integers(0, 30), st.integers(0, 60))
def test_truncation_only_lowers_the_lower_end(m: int, more: int, rest: int) -> None:
    x = m + more
    n = x + rest
    low, high = truncated_rate(x, n, m)
    ends = exact(x, n)
    assert 0 <= low <= x / n <= high <= 1
    assert low <= float(ends.low) + 1e-9
    assert high <= float(ends.high) + 1e-9
    tighter = truncated_rate(x, n, m, 0.8)
    assert low <= tighter[0] + 1e-12
    assert tighter[1] <= high + 1e-12


def test_a_truncated_rate_refuses_fewer_events_than_the_least() -> None:
    with pytest.raises(ValueError, match="4 of 10 units have an event; expected 5 or more"):
        truncated_rate(4, 10, 5)


def test_a_selected_ratio_covers_among_those_that_are_shown() -> None:
    """Every outcome of a group of 15 that is shown, weighted by its probability."""
    n, rest = 15, (300.0, 2985.0)
    for rate in (0.02, 0.1, 0.2, 0.3):
        true = rate / ((15 * rate + 298.5) / 3000)
        shown = covered = 0.0
        for x in range(5, n + 1):
            weight = float(binom.pmf(x, n, rate))
            low, high = selected_rate_ratio((x, n, 5), rest, share=15 / 3000, rate=x / n)
            shown += weight
            covered += weight * (low <= true <= high)
        assert covered / shown >= 0.95


def test_a_selected_ratio_beside_a_rest_without_events() -> None:
    low, high = selected_rate_ratio((8, 20, 5), (0.0, 50.0), share=20 / 70, rate=0.4)
    assert 0 < low < 0.4 / (8 / 70)
    assert high == pytest.approx(70 / 20)
    assert selected_rate_ratio((8, 20, 5), (0.0, 50.0), share=None, rate=0.4)[1] == np.inf


@given(st.integers(0, 2**32 - 1))
def test_the_error_of_a_log_ratio_from_sums_is_that_of_the_units(seed: int) -> None:
    """A second route: influences of single units, summed by cluster."""
    rng = np.random.default_rng(seed)
    clusters = rng.integers(0, 12, 80)
    member = (rng.random(12) < 0.5)[clusters] | (rng.random(80) < 0.1)
    y = (rng.random(80) < 0.4).astype(float)
    inside, outside = np.where(member, y, np.nan), np.where(member, np.nan, y)
    counts = (y[member].sum(), float(member.sum()), y.sum(), 80.0)
    if not (0 < counts[0] < counts[2]) or member.all():
        return
    moments = cluster_moments(y, member, clusters)
    groups = len(np.unique(clusters[member]))
    for of_whole, other in ((True, y), (False, outside)):
        units = ratio_of_means(inside, other, clusters=clusters)
        if np.isnan(units.low):
            continue
        least = min(groups, len(np.unique(clusters[~np.isnan(other)])))
        error = log_ratio_error(counts, moments, of_whole=of_whole) * np.sqrt(least / (least - 1))
        assert np.log(units.high / units.ratio) == pytest.approx(1.959964 * error, rel=1e-5)
