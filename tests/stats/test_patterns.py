"""Kinds of units: those with the same values and groups."""

from __future__ import annotations

import numpy as np
import pytest

from ombud.stats import Sample
from ombud.stats.bootstrap.patterns import _kinds, _KindsDrawn


@pytest.mark.parametrize("units", [0, 1, 5, 300, 6000])
@pytest.mark.parametrize("values", [2, 3, 30])
@pytest.mark.parametrize("most", [20_000, 50])
def test_kinds_are_those_of_sorting(units: int, values: int, most: int) -> None:
    rng = np.random.default_rng(units + values)
    samples = [
        Sample(np.where(rng.random(units) < 0.1, np.nan, rng.integers(0, values, units) / 2))
        for _ in range(3)
    ]
    if units:
        # A value that the first units do not have.
        samples[0].values[-1] = 99.0
    groups = rng.random((units, 9)) < 0.3
    rows = np.column_stack([np.packbits(groups, axis=1), *(s.values for s in samples)])
    rows = np.where(np.isnan(rows), np.inf, rows)
    _, first, counts = np.unique(rows, axis=0, return_index=True, return_counts=True)
    found = _kinds(samples, groups, most)
    assert (found is None) == (len(first) > most)
    if found is not None:
        np.testing.assert_array_equal(found[0], first)
        np.testing.assert_array_equal(found[1], counts)


def test_kinds_of_few_units_are_drawn_as_often_as_others() -> None:
    rng = np.random.default_rng(5)
    counts = np.concatenate([rng.integers(1, 9, 400), rng.integers(9, 60, 80)])
    rng.shuffle(counts)
    kinds, units = _KindsDrawn(counts), int(counts.sum())
    drawn = kinds.draw(6000, rng)
    expected = counts[kinds.order]
    assert (drawn.sum(axis=1) == units).all()
    # The mean and the variance of a multinomial; 480 kinds, so four and a half standard errors.
    mean_error = np.sqrt(expected * (1 - expected / units) / 6000)
    assert np.abs((drawn.mean(axis=0) - expected) / mean_error).max() < 4.5
    variance = expected * (1 - expected / units)
    np.testing.assert_allclose(drawn.var(axis=0).mean(), variance.mean(), rtol=0.02)
    # Two rare kinds, and a rare with a common one: covariance -n p q.
    rare = expected <= 8
    both = np.cov(drawn[:, rare].sum(axis=1), drawn[:, ~rare].sum(axis=1))
    share = expected[rare].sum() / units
    np.testing.assert_allclose(both[0, 1], -units * share * (1 - share), rtol=0.1)
    one, other = expected[rare][:200].sum() / units, expected[rare][200:].sum() / units
    halves = np.cov(drawn[:, rare][:, :200].sum(axis=1), drawn[:, rare][:, 200:].sum(axis=1))
    np.testing.assert_allclose(halves[0, 1], -units * one * other, rtol=0.15)


def test_few_kinds_are_drawn_as_numpy_draws_them() -> None:
    counts = np.array([1, 7, 30, 2])
    kinds = _KindsDrawn(counts)
    drawn = kinds.draw(50, np.random.default_rng(3))
    expected = np.random.default_rng(3).multinomial(40, counts / 40, size=50)
    np.testing.assert_array_equal(drawn, expected)
    np.testing.assert_array_equal(kinds.order, np.arange(4))
