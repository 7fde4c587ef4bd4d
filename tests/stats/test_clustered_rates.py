"""Rates of clustered units: by hand, by another library, and by simulation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ombud.stats.clustered_rates import (
    cluster_score_test,
    design_effect,
    intracluster_correlation,
    score_rate_ratio,
)
from ombud.stats.proportions import normal_quantile


def test_by_hand() -> None:
    # Three clusters of two; residuals 1/2, deviations of x -1/3 and 2/3.
    y, x, c = [1, 1, 0, 0, 1, 0], [1, 1, 0, 0, 0, 0], [0, 0, 1, 1, 2, 2]
    assert intracluster_correlation(y, c) == pytest.approx(
        ((1 - 0.5) + (1 - 0.5) + (0 - 0.5)) / 6 / 0.25
    )
    found = cluster_score_test(y, x, c)
    # Scores of the clusters: 2/3, 1/3, 0; robust 5/9; model 1/4 (4/3 + rho (16/9+4/9+4/9-4/3)).
    model = 0.25 * (4 / 3 + (1 / 3) * (24 / 9 - 4 / 3))
    assert found.statistic == pytest.approx(1 / np.sqrt(max(5 / 9, model)))
    assert found.effect == pytest.approx(max(5 / 9, model) / (0.25 * 4 / 3))
    assert design_effect([0, 0, 1, 0], [0, 0, 1, 1], 0.0) == (pytest.approx(1.0), 2)
    assert design_effect([0, 0, 0], [0, 0, 0], 1.0) == (pytest.approx(3.0), 1)


def test_alone_it_is_pearsons_test() -> None:
    from scipy.stats import chi2_contingency

    y = np.repeat([1, 0, 1, 0], [30, 70, 100, 800])
    x = np.repeat([1, 1, 0, 0], [30, 70, 100, 800])
    table = [[30, 70], [100, 800]]
    found = cluster_score_test(y, x, np.arange(1000))
    chi, p = chi2_contingency(table, correction=False)[:2]
    # Of texts that stand alone both variances are told apart, and the larger counts.
    assert found.statistic**2 <= chi + 1e-9
    assert found.p >= p
    even = np.tile([1, 0], 500)
    balanced = cluster_score_test(even, np.repeat([1, 0], 500), np.arange(1000))
    assert balanced.statistic == pytest.approx(0)


def test_score_intervals_by_another_library() -> None:
    other = pytest.importorskip("statsmodels.stats.proportion").confint_proportions_2indep
    for counts in ((36, 40, 16, 80), (3, 50, 40, 300), (9, 10, 200, 400)):
        expected = other(*counts, method="score", compare="ratio", correction=False)
        assert score_rate_ratio(*counts) == pytest.approx(expected, rel=1e-6)


@given(
    st.integers(0, 40),
    st.integers(40, 400),
    st.integers(1, 90),
    st.integers(90, 900),
    st.booleans(),
)
def test_an_interval_holds_its_ratio_and_agrees_with_the_test(
    events: int, n: int, rest_events: int, rest_n: int, of_whole: bool
) -> None:
    low, high = score_rate_ratio(events, n, rest_events, rest_n, of_whole=of_whole)
    whole = (events + rest_events) / (n + rest_n)
    ratio = events / n / (whole if of_whole else rest_events / rest_n)
    assert 0 <= low <= ratio + 1e-9
    assert ratio <= high + 1e-9
    if whole == 1:  # every unit has the event: no test, and no spread
        assert low <= 1 <= high
        return
    gap = events / n - rest_events / rest_n
    z = gap / np.sqrt(whole * (1 - whole) * (1 / n + 1 / rest_n))
    if abs(abs(z) - normal_quantile(0.95)) > 1e-6:
        assert (abs(z) > normal_quantile(0.95)) == (not low <= 1 <= high)


def test_nothing_to_test() -> None:
    assert np.isnan(cluster_score_test([0, 0], [1, 0], [0, 1]).p)
    assert np.isnan(cluster_score_test([0, 1], [1, 1], [0, 1]).p)
    assert np.isnan(intracluster_correlation([], []))
    assert np.isnan(score_rate_ratio(0, 10, 0, 10)).all()
    assert score_rate_ratio(5, 10, 0, 20)[1] == np.inf
    assert score_rate_ratio(5, 10, 0, 20, of_whole=True)[1] == pytest.approx(3)


def draw(
    rng: np.random.Generator, size: int, share: float, ratio: float, rate: float, shape: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """3,000 texts in clusters with rates of their own; the group is made of whole clusters."""
    count = 3000 // size
    clusters = rng.integers(0, count, 3000)
    member = (rng.random(count) < share)[clusters]
    own = rate * rng.gamma(shape, 1 / shape, count)[clusters] if shape else np.full(3000, rate)
    flags = rng.random(3000) < own * np.where(member, ratio, 1.0)
    return flags.astype(float), member, clusters


DESIGNS = [(1, 0.05, 0.05, 0.0), (3, 0.05, 0.08, 1.0), (10, 0.1, 0.08, 0.3), (10, 0.3, 0.02, 1.0)]


@pytest.mark.simulation
@pytest.mark.parametrize("design", DESIGNS)
def test_false_alarms_below_one_stay_nominal(design: tuple[int, float, float, float]) -> None:
    rng = np.random.default_rng(5)
    size, share, rate, shape = design
    runs, low = 600, 0
    for _ in range(runs):
        found = cluster_score_test(*draw(rng, size, share, 1.0, rate, shape))
        low += found.statistic < 0 and found.p < 0.05
    # One side of a test at 0.05; two standard errors of 600 runs are 0.013.
    assert low / runs <= 0.038


@pytest.mark.simulation
def test_less_is_found_with_power() -> None:
    rng = np.random.default_rng(6)
    halves = [cluster_score_test(*draw(rng, 3, 0.1, 0.4, 0.08, 1.0)) for _ in range(200)]
    nones = [cluster_score_test(*draw(rng, 10, 0.1, 0.0, 0.08, 0.3)) for _ in range(200)]
    assert np.mean([f.p < 0.05 for f in halves]) > 0.8
    assert np.mean([f.p < 0.05 for f in nones]) > 0.95
