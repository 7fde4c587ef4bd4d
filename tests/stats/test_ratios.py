from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ombud.stats import Mean, Sample, resample
from ombud.stats.ratios import rate_ratio, ratio_of_means, ratio_of_means_estimate


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
