"""Kinds of units: those with the same values and groups."""

from __future__ import annotations

import numpy as np
import pytest

from ombud.stats import Sample
from ombud.stats.patterns import _kinds


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
