from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from ombud.stats.effects import cliffs_delta, welch


def test_welch_equals_scipy(rng) -> None:
    a, b = rng.normal(size=12), rng.normal(1, 3, size=30)
    theirs = scipy_stats.ttest_ind(a, b, equal_var=False).confidence_interval(0.9)
    assert welch(a, b, 0.9) == pytest.approx((a.mean() - b.mean(), theirs.low, theirs.high))


def test_delta_equals_all_pairs_and_the_area_of_sklearn(rng) -> None:
    a, b = rng.integers(0, 6, 15).astype(float), rng.integers(0, 5, 22).astype(float)
    brute = np.sign(a[:, None] - b).mean()
    assert cliffs_delta(a, b).value == pytest.approx(brute)
    metrics = pytest.importorskip("sklearn.metrics")
    area = metrics.roc_auc_score(np.r_[np.ones(15), np.zeros(22)], np.r_[a, b])
    assert cliffs_delta(a, b).value == pytest.approx(2 * area - 1)


def test_delta_error_equals_delong_by_brute_force(rng) -> None:
    a, b = rng.normal(0.5, 1, 30), rng.normal(size=40)
    wins = (a[:, None] > b).astype(float)
    variance = wins.mean(axis=1).var(ddof=1) / 30 + wins.mean(axis=0).var(ddof=1) / 40
    area = wins.mean()
    found = cliffs_delta(a, b)
    half = 1.959964 * np.sqrt(variance) / (area * (1 - area))
    expected = 1 / (1 + np.exp(-(np.log(area / (1 - area)) + np.array([-half, half]))))
    assert (found.low, found.high) == pytest.approx(2 * expected - 1, rel=1e-5)


@pytest.mark.simulation
@pytest.mark.parametrize(("n", "m", "shift"), [(25, 60, 0.0), (40, 40, 1.0), (15, 300, 0.5)])
def test_coverage(n: int, m: int, shift: float, rng) -> None:
    runs = 1500
    truth = 2 * scipy_stats.norm.cdf(shift / np.sqrt(2)) - 1
    deltas = np.array(
        [cliffs_delta(rng.normal(shift, 1, n), rng.normal(size=m))[1:] for _ in range(runs)]
    )
    means = np.array([welch(rng.normal(shift, 2, n), rng.normal(size=m))[1:] for _ in range(runs)])
    error = np.sqrt(0.05 * 0.95 / runs)
    for ends, value in ((deltas, truth), (means, shift)):
        covered = np.mean((ends[:, 0] <= value) & (value <= ends[:, 1]))
        assert covered == pytest.approx(0.95, abs=4 * error + 0.008)


@given(
    st.lists(st.integers(-3, 3), min_size=2, max_size=10),
    st.lists(st.integers(-3, 3), min_size=2, max_size=10),
)
def test_order_alone_matters_and_sides_mirror(a: list[int], b: list[int]) -> None:
    x, y = np.array(a, float), np.array(b, float)
    found = cliffs_delta(x, y)
    assert found.value == pytest.approx(-cliffs_delta(y, x).value)
    assert found.value == pytest.approx(cliffs_delta(np.exp(x), np.exp(y)).value)
    assert np.isnan(found.low) or -1 <= found.low <= found.value <= found.high <= 1


def test_no_interval_where_nothing_overlaps_or_varies() -> None:
    apart = cliffs_delta(np.array([3.0, 4.0]), np.array([1.0, 2.0]))
    assert apart.value == 1 and np.isnan(apart.low)
    assert np.isnan(cliffs_delta(np.array([]), np.array([1.0])).value)
    assert np.isnan(cliffs_delta(np.ones(3), np.ones(3)).low)
    flat = welch(np.ones(3), np.zeros(3))
    assert flat.value == 1 and np.isnan(flat.low)
    assert np.isnan(welch(np.ones(1), np.zeros(3)).low)
    assert np.isnan(welch(np.ones(0), np.zeros(3)).value)
