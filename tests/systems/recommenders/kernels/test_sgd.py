"""Gradient descent against a plain loop, and the gradient against differences."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("numba")
from ombud.systems.recommenders.kernels import sgd


def plain_epoch(matrix, strata_order, p, q, bu, bi, mean, rate, penalty):
    """Surprise's update, one rating after the other, in double precision."""
    for u, i, r in strata_order(matrix):
        e = r - (mean + bu[u] + bi[i] + p[u] @ q[i])
        bu[u] += rate * (e - penalty * bu[u])
        bi[i] += rate * (e - penalty * bi[i])
        p[u], q[i] = (
            p[u] + rate * (e * q[i] - penalty * p[u]),
            q[i] + rate * (e * p[u] - penalty * q[i]),
        )


def order_of(user_bounds, item_bounds):
    strata = len(user_bounds) - 1

    def walk(matrix):
        for step in range(strata):
            for block in range(strata):
                cell = (block + step) % strata
                for u in range(user_bounds[block], user_bounds[block + 1]):
                    for k in range(matrix.indptr[u], matrix.indptr[u + 1]):
                        i = matrix.indices[k]
                        if item_bounds[cell] <= i < item_bounds[cell + 1]:
                            yield u, i, float(matrix.data[k])

    return walk


@pytest.mark.parametrize("strata", [1, 3])
def test_epochs_follow_the_plain_loop(ratings, rng, strata):
    matrix = ratings.matrix
    n_users, n_items = matrix.shape
    p = rng.normal(0, 0.1, (n_users, 5)).astype(np.float32)
    q = rng.normal(0, 0.1, (n_items, 5)).astype(np.float32)
    bu, bi = np.zeros(n_users, np.float32), np.zeros(n_items, np.float32)
    plain = [a.astype(float) for a in (p, q, bu, bi)]
    user_bounds = sgd.balanced_ranges(np.diff(matrix.indptr), strata)
    item_bounds = sgd.balanced_ranges(np.bincount(matrix.indices, minlength=n_items), strata)
    cuts = np.empty((n_users, strata + 1), matrix.indptr.dtype)
    sgd.row_cuts(matrix.indptr, matrix.indices, item_bounds, cuts)
    mean, rate, penalty = np.float32(3.1), np.float32(0.02), np.float32(0.05)
    for _ in range(3):
        sgd.epoch(user_bounds, cuts, matrix.indices, matrix.data, p, q, bu, bi, mean, rate, penalty)
        walk = order_of(user_bounds, item_bounds)
        plain_epoch(matrix, walk, *plain, float(mean), float(rate), float(penalty))
    for ours, reference in zip((p, q, bu, bi), plain, strict=True):
        np.testing.assert_allclose(ours, reference, rtol=1e-3, atol=2e-5)


def test_one_update_is_the_gradient_of_the_penalised_error(rng):
    p, q = rng.normal(size=(1, 4)).astype(np.float32), rng.normal(size=(1, 4)).astype(np.float32)
    bu, bi = np.array([0.3], np.float32), np.array([-0.2], np.float32)
    rating, mean, rate, penalty = 4.0, 3.0, 1e-3, 0.1

    def loss(x):
        pu, qi, b, c = x[:4], x[4:8], x[8], x[9]
        return (rating - mean - b - c - pu @ qi) ** 2 / 2 + penalty / 2 * (x @ x)

    x = np.concatenate([p[0], q[0], bu, bi]).astype(float)
    steps = np.eye(10) * 1e-6
    gradient = np.array([(loss(x + s) - loss(x - s)) / 2e-6 for s in steps])
    one = np.array([0, 1], np.int64)
    sgd.epoch(
        one, np.array([[0, 1]], np.int32), np.zeros(1, np.int32), np.array([rating], np.float32),
        p, q, bu, bi, np.float32(mean), np.float32(rate), np.float32(penalty),
    )  # fmt: skip
    moved = np.concatenate([p[0], q[0], bu, bi]) - x
    np.testing.assert_allclose(moved, -rate * gradient, rtol=2e-3, atol=1e-6)


def test_ranges_cover_everything_and_hold_about_equally_many(rng):
    counts = rng.integers(0, 50, 200)
    bounds = sgd.balanced_ranges(counts, 7)
    assert bounds[0] == 0 and bounds[-1] == 200 and (np.diff(bounds) >= 0).all()
    held = [counts[a:b].sum() for a, b in zip(bounds[:-1], bounds[1:], strict=True)]
    assert max(held) <= counts.sum() / 7 + 50
    assert sgd.balanced_ranges(np.array([3]), 4).tolist()[-1] == 1
