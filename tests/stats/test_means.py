from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from ombud.stats import mean_estimate
from ombud.stats.means import mean_interval


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


@pytest.mark.simulation
@pytest.mark.parametrize("n", [8, 30, 101])
def test_coverage(n: int, rng) -> None:
    runs = 8000
    error = np.sqrt(0.05 * 0.95 / runs)
    normal = rng.normal(3, 2, size=(n, runs))
    t = mean_interval(normal)
    assert np.mean((t.low <= 3) & (t.high >= 3)) == pytest.approx(0.95, abs=4 * error)


@given(st.lists(st.floats(-1e3, 1e3), min_size=6, max_size=20), st.floats(-100, 100))
def test_shifting_units_shifts_the_interval(values: list[float], shift: float) -> None:
    x = np.array(values)
    one, two = mean_interval(x), mean_interval(x + shift)
    if not (np.isnan(one.low) or np.isnan(two.low)):
        assert (two.low, two.value, two.high) == pytest.approx(
            (one.low + shift, one.value + shift, one.high + shift), abs=1e-6
        )
        assert one.low <= one.value <= one.high


def test_estimates_say_why_there_is_no_interval() -> None:
    assert mean_estimate([np.nan], metric="m").reason == "no units"
    assert mean_estimate([2.0], metric="m").method == "none: one independent unit shows no spread"
    assert mean_estimate([1.0, 2.0, 4.0], metric="m").method == "t"
    with pytest.raises(ValueError, match="dimensions"):
        mean_interval(np.ones((1, 1, 1)))
