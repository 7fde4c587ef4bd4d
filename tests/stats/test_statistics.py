from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from ombud.stats.statistics import (
    Custom,
    Mean,
    Median,
    OfSums,
    Quantile,
    RatioOfSums,
    Statistic,
    WeightedMean,
    as_rows,
)

VARIANCE = OfSums(
    ("value",),
    lambda total, squares, n: squares / n - (total / n) ** 2,
    terms=lambda x: np.column_stack([x, x**2]),
)
ROUTES = [
    (Mean(), lambda rows: rows[:, 0].mean()),
    (RatioOfSums(), lambda rows: rows[:, 0].sum() / rows[:, 1].sum()),
    (WeightedMean(), lambda rows: np.average(rows[:, 0], weights=rows[:, 1])),
    (Median(), lambda rows: np.median(rows)),
    (Quantile(0.3), lambda rows: np.quantile(rows, 0.3, method="averaged_inverted_cdf")),
    (Quantile(0.9), lambda rows: np.quantile(rows, 0.9, method="averaged_inverted_cdf")),
    (VARIANCE, lambda rows: rows.var()),
    (Custom(lambda rows: float(np.ptp(rows)), ("value",)), lambda rows: np.ptp(rows)),
]
IDS = ["mean", "ratio", "weighted", "median", "q30", "q90", "variance", "custom"]


@pytest.mark.parametrize(("statistic", "brute"), ROUTES, ids=IDS)
def test_all_three_routes_agree_with_brute_force(statistic, brute, rng) -> None:
    assert isinstance(statistic, Statistic)
    values = np.round(rng.uniform(0.5, 4, size=(31, len(statistic.columns))), 1)
    missing = values.copy()
    missing[[4, 9]] = np.nan
    known = np.delete(values, [4, 9], axis=0)
    assert statistic.point(missing) == pytest.approx(brute(known))
    weights = rng.multinomial(31, np.full(31, 1 / 31), size=20).astype(float)
    expected = [brute(np.repeat(known, np.delete(w, [4, 9]).astype(int), axis=0)) for w in weights]
    np.testing.assert_allclose(statistic.replicates(missing, weights), expected)
    assert statistic.point(missing, weights[0]) == pytest.approx(expected[0])
    left = statistic.jackknife(missing)
    assert left[4] == pytest.approx(brute(known))
    others = np.delete(left, [4, 9])
    brute_left = [brute(np.delete(known, i, axis=0)) for i in range(len(known))]
    np.testing.assert_allclose(others, brute_left)


@pytest.mark.parametrize("statistic", [row[0] for row in ROUTES], ids=IDS)
def test_nothing_known_is_undefined(statistic) -> None:
    values = np.full((3, len(statistic.columns)), np.nan)
    assert np.isnan(statistic.point(values))
    assert np.isnan(statistic.replicates(values, np.ones((2, 3)))).all()


def test_a_zero_denominator_is_undefined_also_when_it_cancels_to_zero() -> None:
    values = as_rows([[1.0, 0.1], [2.0, 0.2], [3.0, 0.0]])
    assert np.isnan(RatioOfSums().point(as_rows([[1.0, 0.0]])))
    values[:, 1] = [0.1 + 0.2, 0.0, 0.0]
    left = RatioOfSums().jackknife(values)
    assert np.isnan(left[0]) and np.isfinite(left[1:]).all()


def test_equal_statistics_are_equal() -> None:
    assert Mean() == Mean() and hash(Mean()) == hash(Mean())
    assert Mean() != RatioOfSums()


@pytest.mark.parametrize("q", [0.0, 1.0, -1.0])
def test_quantiles_outside_are_refused(q: float) -> None:
    with pytest.raises(ValueError, match="0 < q < 1"):
        Quantile(q)


def test_a_custom_statistic_refuses_broken_weights() -> None:
    with pytest.raises(ValueError, match="whole"):
        Custom(lambda rows: 1.0).point(np.ones((2, 1)), np.array([0.5, 1.0]))


@settings(max_examples=50, deadline=None)
@given(
    hnp.arrays(
        float,
        st.tuples(st.integers(2, 12), st.just(1)),
        elements=st.sampled_from([-2.0, 0.0, 0.5, 1.0, 7.0]),
    ),
    st.floats(0.05, 0.95),
    st.randoms(use_true_random=False),
)
def test_order_of_units_does_not_matter_and_quantiles_are_between(values, q, random) -> None:
    shuffled = values[random.sample(range(len(values)), len(values))]
    for statistic in (Mean(), Quantile(q)):
        assert statistic.point(values) == pytest.approx(statistic.point(shuffled))
        assert values.min() <= statistic.point(values) <= values.max()
