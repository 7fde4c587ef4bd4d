"""Sorting within kernels gives what numpy gives."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("numba")

from ombud.systems.recommenders.kernels.similar_users import sort, split


@pytest.mark.parametrize("kinds", [2, 40, 2**40])
@pytest.mark.parametrize("length", [0, 1, 2, 16, 17, 18, 100, 3000])
def test_values_are_in_numpys_order(length: int, kinds: int) -> None:
    rng = np.random.default_rng(length)
    drawn = rng.integers(0, kinds, length).astype(np.uint64)
    for values in (drawn, np.sort(drawn), np.sort(drawn)[::-1].copy()):
        expected = np.sort(values)
        for k in {0, length // 3, length - 1} if length else ():
            parts = values.copy()
            split(parts, k)
            assert parts[k] == expected[k]
            assert (parts[:k] <= parts[k]).all() and (parts[k:] >= parts[k]).all()
            np.testing.assert_array_equal(np.sort(parts), expected)
        sort(values)
        np.testing.assert_array_equal(values, expected)
