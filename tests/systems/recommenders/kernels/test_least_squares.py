"""Row systems against numpy.linalg.solve."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("numba")
from ombud.systems.recommenders.kernels import least_squares
from ombud.systems.recommenders.ridge import solve_rows


def plain(matrix, fixed, ridge, per_entry, alpha):
    out = np.zeros((matrix.shape[0], fixed.shape[1]))
    y = fixed.astype(float)
    for u in range(matrix.shape[0]):
        part = slice(matrix.indptr[u], matrix.indptr[u + 1])
        near, v = y[matrix.indices[part]], matrix.data[part].astype(float)
        a = (ridge + per_entry * len(v)) * np.eye(y.shape[1])
        if alpha is None:
            a += near.T @ near
            b = near.T @ v
        else:
            a += y.T @ y + near.T @ (alpha * v[:, None] * near)
            b = near.T @ (1 + alpha * v)
        if len(v):
            out[u] = np.linalg.solve(a, b)
    return out


@pytest.mark.parametrize("alpha", [None, 4.0])
@pytest.mark.parametrize(("solver", "steps"), [("cholesky", 1), ("cg", 60)])
def test_rows_solve_their_system(ratings, rng, alpha, solver, steps):
    fixed = rng.normal(0, 0.5, (ratings.n_items, 6)).astype(np.float32)
    m = ratings.matrix
    found = solve_rows(
        m.indptr, m.indices, m.data, fixed, ridge=0.3, ridge_per_entry=0.1, alpha=alpha,
        solver=solver, steps=steps,
    )  # fmt: skip
    np.testing.assert_allclose(found, plain(m, fixed, 0.3, 0.1, alpha), rtol=2e-3, atol=2e-4)


def test_a_step_of_conjugate_gradients_lowers_the_error_and_empty_rows_are_zero(rng):
    indptr, indices = np.array([0, 0, 3], np.int32), np.array([0, 2, 4], np.int32)
    values = np.ones(3, np.float32)
    fixed = rng.normal(size=(5, 3)).astype(np.float32)
    exact = solve_rows(indptr, indices, values, fixed, ridge=0.1, alpha=2.0)
    start = rng.normal(size=(2, 3)).astype(np.float32)
    a = fixed.T @ fixed + 0.1 * np.eye(3) + 2 * fixed[indices].T @ fixed[indices]

    def energy(x):
        return (x - exact[1]) @ a @ (x - exact[1])

    before = energy(start[1])
    for _ in range(3):
        solve_rows(
            indptr, indices, values, fixed, ridge=0.1, alpha=2.0, out=start, solver="cg", steps=1
        )
        after = energy(start[1])
        assert after < before
        before = after
    assert not start[0].any()


def test_gram_is_the_product(rng):
    factors = rng.normal(size=(5000, 7)).astype(np.float32)
    expected = factors.astype(float).T @ factors
    np.testing.assert_allclose(least_squares.gram(factors), expected, rtol=1e-4, atol=1e-2)
