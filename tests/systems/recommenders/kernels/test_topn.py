"""Selection and factor scores against plain numpy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("numba")
from ombud.systems.recommenders.kernels import topn
from ombud.systems.recommenders.kernels._jit import workers


def plain_select(scores: np.ndarray, n: int) -> np.ndarray:
    out = np.full((len(scores), n), -1)
    for r, row in enumerate(scores):
        usable = [j for j in range(len(row)) if row[j] > -np.inf]
        best = sorted(usable, key=lambda j: (-row[j], j))[:n]
        out[r, : len(best)] = best
    return out


@given(st.integers(0, 10_000), st.integers(1, 12), st.integers(1, 30), st.integers(2, 6))
def test_select_keeps_the_best_and_breaks_ties_by_column(seed, n, columns, levels):
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, levels, (5, columns)).astype(np.float32)  # few levels: many ties
    scores[rng.random(scores.shape) < 0.2] = np.nan
    scores[rng.random(scores.shape) < 0.2] = -np.inf
    items, best = np.empty((5, n), np.int32), np.empty((5, n), np.float32)
    topn.select(scores, items, best)
    np.testing.assert_array_equal(items, plain_select(scores, n))
    there = items >= 0
    rows = np.nonzero(there)[0]
    np.testing.assert_array_equal(best[there], scores[rows, items[there]])
    assert np.isnan(best[~there]).all()


@pytest.mark.parametrize("rows", [1, 3, 4, 7])
def test_factor_scores_equal_the_product_and_do_not_depend_on_the_block(rng, rows):
    left = rng.normal(size=(rows, 9)).astype(np.float32)
    right = np.ascontiguousarray(rng.normal(size=(9, 1100)).astype(np.float32))
    bias = rng.normal(size=1100).astype(np.float32)
    out = np.empty((rows, 1100), np.float32)
    topn.factor_scores(left, right, bias, out)
    np.testing.assert_allclose(out, bias + left.astype(float) @ right, rtol=2e-5, atol=2e-5)
    alone = np.empty((1, 1100), np.float32)
    with workers(1):
        topn.factor_scores(left[-1:].copy(), right, bias, alone)
    assert alone.tobytes() == out[-1:].tobytes()


def test_seen_items_are_masked(rng):
    scores = np.ones((2, 4), np.float32)
    indptr, indices = np.array([0, 2, 3], np.int32), np.array([0, 2, 1], np.int32)
    topn.mask_seen(scores, np.array([1, -1], np.int32), indptr, indices)
    assert scores.tolist() == [[1, -np.inf, 1, 1], [1, 1, 1, 1]]
