"""Many small ridge regressions: one half-step of alternating least squares.

Row u of a sparse matrix with entries v_k at columns i_k asks for the x that solves::

    (G + lambda_u I + sum_k w_k y_k y_k') x = sum_k t_k y_k,       y_k = fixed[i_k]
    w_k = weight_slope v_k + weight_base,    t_k = target_slope v_k + target_base
    lambda_u = ridge + ridge_per_entry * (number of entries)

Implicit feedback (Hu, Koren & Volinsky 2008, "Collaborative filtering for implicit feedback
datasets") has G = fixed' fixed, w = alpha v and t = 1 + alpha v; explicit ratings (Zhou et al.
2008, "Large-scale parallel collaborative filtering for the Netflix prize") have no G, w = 1 and t
= v.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ombud.systems.recommenders.kernels._jit import kernel, prange

_GRAM_ROWS = 2048
_TOGETHER = 8


@kernel(parallel=True, fastmath=True)
def _gram_parts(factors: NDArray[np.float32], parts: NDArray[np.float32]) -> None:
    n_rows, n_factors = factors.shape
    for part in prange(len(parts)):
        total = parts[part]
        for row in range(part * _GRAM_ROWS, min((part + 1) * _GRAM_ROWS, n_rows)):
            for f in range(n_factors):
                value = factors[row, f]
                for g in range(n_factors):
                    total[f, g] += value * factors[row, g]


def gram(factors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return ``factors' factors``, added up in an order that does not depend on threads."""
    n_rows, n_factors = factors.shape
    total = np.zeros((n_factors, n_factors))
    batch = 256
    for start in range(0, n_rows, batch * _GRAM_ROWS):
        rows = factors[start : start + batch * _GRAM_ROWS]
        parts = np.zeros((-(-len(rows) // _GRAM_ROWS), n_factors, n_factors), np.float32)
        _gram_parts(rows, parts)
        total += parts.sum(axis=0, dtype=np.float64)
    return total.astype(np.float32)


@kernel(fastmath=True)
def _add_residuals(
    near: NDArray[np.float32],
    weight: NDArray[np.float32],
    target: NDArray[np.float32],
    share: np.float32,
    n: int,
    x: NDArray[np.float32],
    out: NDArray[np.float32],
) -> None:
    """Add ``sum_k (share t_k - w_k y_k . x) y_k`` to out, four rows at a time."""
    n_factors = len(x)
    k = 0
    while k + 4 <= n:
        d0 = d1 = d2 = d3 = np.float32(0)
        for f in range(n_factors):
            value = x[f]
            d0 += near[k, f] * value
            d1 += near[k + 1, f] * value
            d2 += near[k + 2, f] * value
            d3 += near[k + 3, f] * value
        d0 = share * target[k] - weight[k] * d0
        d1 = share * target[k + 1] - weight[k + 1] * d1
        d2 = share * target[k + 2] - weight[k + 2] * d2
        d3 = share * target[k + 3] - weight[k + 3] * d3
        for f in range(n_factors):
            out[f] += (
                d0 * near[k, f] + d1 * near[k + 1, f] + (d2 * near[k + 2, f] + d3 * near[k + 3, f])
            )
        k += 4
    while k < n:
        d0 = np.float32(0)
        for f in range(n_factors):
            d0 += near[k, f] * x[f]
        d0 = share * target[k] - weight[k] * d0
        for f in range(n_factors):
            out[f] += d0 * near[k, f]
        k += 1


@kernel(fastmath=True)
def _subtract_dense(
    dense: NDArray[np.float32], ridge: np.float32, x: NDArray[np.float32], out: NDArray[np.float32]
) -> None:
    """Subtract ``(G + ridge I) x`` from out; an empty G counts as zero."""
    n_factors = len(x)
    for f in range(n_factors):
        out[f] -= ridge * x[f]
    for g in range(len(dense)):
        value = x[g]
        for f in range(n_factors):
            out[f] -= value * dense[g, f]


@kernel(parallel=True, fastmath=True)
def solve_cg(
    bounds: NDArray[np.int64],
    indptr: NDArray[np.integer[Any]],
    indices: NDArray[np.int32],
    values: NDArray[np.float32],
    fixed: NDArray[np.float32],
    dense: NDArray[np.float32],
    weight_slope: np.float32,
    weight_base: np.float32,
    target_slope: np.float32,
    target_base: np.float32,
    ridge: np.float32,
    ridge_per_entry: np.float32,
    steps: int,
    out: NDArray[np.float32],
) -> None:
    """Improve each row of ``out`` by a few steps of conjugate gradients from where it stands.

    ``bounds`` cuts the rows into batches of about equal work. The factors of a row's entries are
    copied together first, so that the later passes read them from the cache.
    """
    n_factors = fixed.shape[1]
    for batch in prange(len(bounds) - 1):
        longest = 0
        for row in range(bounds[batch], bounds[batch + 1]):
            longest = max(longest, indptr[row + 1] - indptr[row])
        near = np.empty((longest, n_factors), np.float32)
        weight = np.empty(longest, np.float32)
        target = np.empty(longest, np.float32)
        residual = np.empty(n_factors, np.float32)
        direction = np.empty(n_factors, np.float32)
        image = np.empty(n_factors, np.float32)
        for row in range(bounds[batch], bounds[batch + 1]):
            start = indptr[row]
            n = indptr[row + 1] - start
            x = out[row]
            if n == 0:
                for f in range(n_factors):
                    x[f] = np.float32(0)
                continue
            for k in range(n):
                source = fixed[indices[start + k]]
                for f in range(n_factors):
                    near[k, f] = source[f]
                weight[k] = weight_slope * values[start + k] + weight_base
                target[k] = target_slope * values[start + k] + target_base
            shrink = ridge + ridge_per_entry * np.float32(n)
            for f in range(n_factors):
                residual[f] = np.float32(0)
            _subtract_dense(dense, shrink, x, residual)
            _add_residuals(near, weight, target, np.float32(1), n, x, residual)
            error = np.float32(0)
            for f in range(n_factors):
                direction[f] = residual[f]
                error += residual[f] * residual[f]
            for _ in range(steps):
                if error < np.float32(1e-20):
                    break
                for f in range(n_factors):
                    image[f] = np.float32(0)
                _subtract_dense(dense, shrink, direction, image)
                _add_residuals(near, weight, target, np.float32(0), n, direction, image)
                curve = np.float32(0)
                for f in range(n_factors):
                    curve -= direction[f] * image[f]
                length = error / curve
                rest = np.float32(0)
                for f in range(n_factors):
                    x[f] += length * direction[f]
                    residual[f] += length * image[f]
                    rest += residual[f] * residual[f]
                turn = rest / error
                error = rest
                for f in range(n_factors):
                    direction[f] = residual[f] + turn * direction[f]


@kernel(fastmath=True)
def _solve_in_place(a: NDArray[np.float64], b: NDArray[np.float64]) -> None:
    """Solve ``a x = b`` for a positive definite a (lower triangle given); x replaces b."""
    n = len(b)
    for j in range(n):
        for k in range(j):
            value = a[j, k]
            for m in range(k):
                value -= a[j, m] * a[k, m]
            a[j, k] = value / a[k, k]
        value = a[j, j]
        for m in range(j):
            value -= a[j, m] * a[j, m]
        a[j, j] = np.sqrt(value)
    for j in range(n):
        value = b[j]
        for m in range(j):
            value -= a[j, m] * b[m]
        b[j] = value / a[j, j]
    for j in range(n - 1, -1, -1):
        b[j] /= a[j, j]
        for m in range(j):
            b[m] -= a[j, m] * b[j]


@kernel(parallel=True, fastmath=True)
def solve_cholesky(
    bounds: NDArray[np.int64],
    indptr: NDArray[np.integer[Any]],
    indices: NDArray[np.int32],
    values: NDArray[np.float32],
    fixed: NDArray[np.float32],
    dense: NDArray[np.float32],
    weight_slope: np.float32,
    weight_base: np.float32,
    target_slope: np.float32,
    target_base: np.float32,
    ridge: np.float32,
    ridge_per_entry: np.float32,
    steps: int,
    out: NDArray[np.float32],
) -> None:
    """Write the exact solution of each row; ``steps`` is not used.

    Eight products at a time are added in single precision, everything else in double.
    """
    n_factors = fixed.shape[1]
    for batch in prange(len(bounds) - 1):
        a = np.empty((n_factors, n_factors))
        b = np.empty(n_factors)
        near = np.empty((_TOGETHER, n_factors), np.float32)
        scaled = np.empty(_TOGETHER, np.float32)
        weight = np.empty(_TOGETHER, np.float32)
        for row in range(bounds[batch], bounds[batch + 1]):
            n = indptr[row + 1] - indptr[row]
            if n == 0:
                for f in range(n_factors):
                    out[row, f] = np.float32(0)
                continue
            for f in range(n_factors):
                b[f] = 0.0
                for g in range(f + 1):
                    a[f, g] = 0.0
            for f in range(len(dense)):
                for g in range(f + 1):
                    a[f, g] = dense[f, g]
            for start in range(indptr[row], indptr[row + 1], _TOGETHER):
                count = min(_TOGETHER, indptr[row + 1] - start)
                for k in range(count, _TOGETHER):
                    weight[k] = np.float32(0)
                    for f in range(n_factors):
                        near[k, f] = np.float32(0)
                for k in range(count):
                    y = fixed[indices[start + k]]
                    value = values[start + k]
                    weight[k] = weight_slope * value + weight_base
                    target = np.float64(target_slope * value + target_base)
                    for f in range(n_factors):
                        near[k, f] = y[f]
                        b[f] += target * y[f]
                y0, y1, y2, y3 = near[0], near[1], near[2], near[3]
                y4, y5, y6, y7 = near[4], near[5], near[6], near[7]
                for f in range(n_factors):
                    for k in range(_TOGETHER):
                        scaled[k] = weight[k] * near[k, f]
                    s0, s1, s2, s3 = scaled[0], scaled[1], scaled[2], scaled[3]
                    s4, s5, s6, s7 = scaled[4], scaled[5], scaled[6], scaled[7]
                    line = a[f]
                    for g in range(f + 1):
                        line[g] += np.float64(
                            (s0 * y0[g] + s1 * y1[g]) + (s2 * y2[g] + s3 * y3[g])
                            + (s4 * y4[g] + s5 * y5[g]) + (s6 * y6[g] + s7 * y7[g])
                        )  # fmt: skip
            shrink = np.float64(ridge) + np.float64(ridge_per_entry) * n
            for f in range(n_factors):
                a[f, f] += shrink
            _solve_in_place(a, b)
            for f in range(n_factors):
                out[row, f] = b[f]
