from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from ombud.stats import mean_estimate
from ombud.stats.means import mean_interval, median_estimate, median_interval


def test_means_equal_scipy_column_by_column(rng) -> None:
    values = rng.exponential(size=(25, 4))
    values[:3, 1] = np.nan
    values[1:, 2] = np.nan
    values[:, 3] = 4.2
    found = mean_interval(values, 0.9)
    for column in (0, 1):
        x = values[~np.isnan(values[:, column]), column]
        theirs = scipy_stats.ttest_1samp(x, 0).confidence_interval(0.9)
        assert (found.low[column], found.high[column]) == pytest.approx(tuple(theirs))
        assert found.value[column] == pytest.approx(x.mean())
    assert found.n.tolist() == [25, 22, 1, 25]
    assert np.isnan(found.low[2:]).all() and found.value[3] == pytest.approx(4.2)


@pytest.mark.parametrize("n", [5, 6, 9, 17, 60])
def test_median_ends_equal_brute_force(n: int, rng) -> None:
    x = np.sort(rng.normal(size=n))
    found = median_interval(x)
    best = None
    for k in range(1, n // 2 + 1):
        coverage = 1 - 2 * scipy_stats.binom.cdf(k - 1, n, 0.5)
        if coverage >= 0.95:
            best = (x[k - 1], x[n - k], coverage)
    if best is None:
        assert n == 5 and np.isnan(found.low)
    else:
        assert (found.low, found.high, found.coverage) == pytest.approx(best)
    assert found.value == np.median(x)


def test_median_columns_with_missing_units(rng) -> None:
    values = rng.normal(size=(30, 3))
    values[:11, 1] = np.nan
    values[:, 2] = np.nan
    found = median_interval(values)
    for column in range(2):
        x = values[~np.isnan(values[:, column]), column]
        single = median_interval(x)
        assert found.low[column] == single.low and found.high[column] == single.high
    assert np.isnan(found.value[2]) and found.n.tolist() == [30, 19, 0]


@pytest.mark.simulation
@pytest.mark.parametrize("n", [8, 30, 101])
def test_coverage(n: int, rng) -> None:
    runs = 8000
    error = np.sqrt(0.05 * 0.95 / runs)
    normal = rng.normal(3, 2, size=(n, runs))
    t = mean_interval(normal)
    assert np.mean((t.low <= 3) & (t.high >= 3)) == pytest.approx(0.95, abs=4 * error)
    skewed = rng.exponential(size=(n, runs))
    m = median_interval(skewed)
    covered = np.mean((m.low <= np.log(2)) & (m.high >= np.log(2)))
    assert covered == pytest.approx(m.coverage[0], abs=4 * error)
    assert m.coverage[0] >= 0.95


@given(st.lists(st.floats(-1e3, 1e3), min_size=6, max_size=20), st.floats(-100, 100))
def test_shifting_units_shifts_the_interval(values: list[float], shift: float) -> None:
    x = np.array(values)
    for method in (mean_interval, median_interval):
        one, two = method(x), method(x + shift)
        if not (np.isnan(one.low) or np.isnan(two.low)):
            assert (two.low, two.value, two.high) == pytest.approx(
                (one.low + shift, one.value + shift, one.high + shift), abs=1e-6
            )
            assert one.low <= one.value <= one.high


def test_estimates_say_why_there_is_no_interval() -> None:
    assert mean_estimate([np.nan], metric="m").reason == "no units"
    assert mean_estimate([2.0], metric="m").method == "none: one independent unit shows no spread"
    assert mean_estimate([1.0, 2.0, 4.0], metric="m").method == "t"
    assert median_estimate([], metric="m").reason == "no units"
    same = median_estimate([1.0, *[2.0] * 30, 3.0], metric="m")
    assert same.value == 2 and same.interval is None and "same value" in same.method
    good = median_estimate(np.arange(30.0), metric="m", unit="user")
    assert good.interval == (9.0, 20.0) and good.method == "order statistics (covers 95.7%)"
    with pytest.raises(ValueError, match="dimensions"):
        mean_interval(np.ones((1, 1, 1)))
