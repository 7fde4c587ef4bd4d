"""The best of many, in a binary heap with the worst on top; the n best columns of rows of scores.

Worse means a lower value, or the same value and a higher code: one strict order, so the content of
a heap does not depend on the order in which things were offered.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ombud.systems.recommenders.kernels._jit import kernel, prange


@kernel()
def _sink(
    value: NDArray[np.float32], code: NDArray[np.int32], size: int, new: np.float32, item: int
) -> None:
    """Put an item in the place of the worst of a heap of some size."""
    k = 0
    while True:
        child = 2 * k + 1
        if child >= size:
            break
        other = child + 1
        if other < size and (
            value[other] < value[child]
            or (value[other] == value[child] and code[other] > code[child])
        ):
            child = other
        if value[child] > new or (value[child] == new and code[child] < item):
            break
        value[k] = value[child]
        code[k] = code[child]
        k = child
    value[k] = new
    code[k] = item


@kernel()
def offer(
    value: NDArray[np.float32], code: NDArray[np.int32], held: int, new: np.float32, item: int
) -> int:
    """Offer an item to a heap; return how many it holds now."""
    size = len(value)
    if held < size:
        k = held
        while k > 0:
            parent = (k - 1) >> 1
            if value[parent] < new or (value[parent] == new and code[parent] > item):
                break
            value[k] = value[parent]
            code[k] = code[parent]
            k = parent
        value[k] = new
        code[k] = item
        return held + 1
    if new > value[0] or (new == value[0] and item < code[0]):
        _sink(value, code, size, new, item)
    return held


@kernel()
def write_sorted(
    value: NDArray[np.float32],
    code: NDArray[np.int32],
    held: int,
    codes: NDArray[np.int32],
    values: NDArray[np.float32],
    empty: np.float32,
) -> None:
    """Write a heap's content, best first, then -1 and ``empty``; the heap is used up."""
    for k in range(held, len(codes)):
        codes[k] = -1
        values[k] = empty
    for last in range(held - 1, -1, -1):
        codes[last] = code[0]
        values[last] = value[0]
        _sink(value, code, last, value[last], code[last])


_TILE = 512


@kernel(parallel=True)
def factor_scores(
    left: NDArray[np.float32],
    right_t: NDArray[np.float32],
    bias: NDArray[np.float32],
    out: NDArray[np.float32],
) -> None:
    """Write ``bias + left @ right_t``, every cell summed in the same order.

    A BLAS product would split its sums by the number of threads and by the shape of the block;
    here a score depends on nothing but the two vectors.
    """
    n_rows, n_factors = left.shape
    n_columns = right_t.shape[1]
    for quad in prange((n_rows + 3) // 4):
        first = 4 * quad
        count = min(4, n_rows - first)
        # A row beyond the last one is computed as a copy of the last, and not written.
        r1, r2, r3 = min(1, count - 1), min(2, count - 1), min(3, count - 1)
        s0 = np.empty(_TILE, np.float32)
        s1 = np.empty(_TILE, np.float32)
        s2 = np.empty(_TILE, np.float32)
        s3 = np.empty(_TILE, np.float32)
        for start in range(0, n_columns, _TILE):
            width = min(_TILE, n_columns - start)
            offset = bias[start : start + width]
            for j in range(width):
                s0[j] = s1[j] = s2[j] = s3[j] = offset[j]
            for f in range(n_factors):
                values = right_t[f, start : start + width]
                a, b = left[first, f], left[first + r1, f]
                c, d = left[first + r2, f], left[first + r3, f]
                for j in range(width):
                    s0[j] += a * values[j]
                    s1[j] += b * values[j]
                    s2[j] += c * values[j]
                    s3[j] += d * values[j]
            for k in range(count):
                line = out[first + k, start : start + width]
                source = s0 if k == 0 else s1 if k == 1 else s2 if k == 2 else s3
                for j in range(width):
                    line[j] = source[j]


@kernel(parallel=True)
def mask_seen(
    scores: NDArray[np.float32],
    rows: NDArray[np.int32],
    indptr: NDArray[np.integer[Any]],
    indices: NDArray[np.int32],
) -> None:
    """Set to -inf what row ``rows[r]`` of a sparse matrix holds; a negative row holds nothing."""
    for r in prange(len(rows)):
        row = rows[r]
        if row >= 0:
            for p in range(indptr[row], indptr[row + 1]):
                scores[r, indices[p]] = -np.inf


@kernel(parallel=True)
def select(
    scores: NDArray[np.float32], items: NDArray[np.int32], best: NDArray[np.float32]
) -> None:
    """Fill ``items`` and ``best`` with the best columns of each row, best first.

    Ties go to the lower column. NaN and -inf are never chosen; where a row has too few columns
    to give, ``items`` is -1 and ``best`` is NaN.
    """
    n = items.shape[1]
    n_columns = scores.shape[1]
    for r in prange(scores.shape[0]):
        value = np.empty(n, np.float32)
        column = np.empty(n, np.int32)
        held = 0
        worst = np.float32(-np.inf)
        for j in range(n_columns):
            score = scores[r, j]
            if not score > worst:
                continue
            # As `heap.offer`, written out: here the call itself would cost more than its work.
            if held < n:
                k = held
                held += 1
                while k > 0:
                    parent = (k - 1) >> 1
                    # Columns come in rising order: on a tie the newcomer is the worse one.
                    if value[parent] < score:
                        break
                    value[k] = value[parent]
                    column[k] = column[parent]
                    k = parent
            else:
                k = 0
                while True:
                    child = 2 * k + 1
                    if child >= n:
                        break
                    other = child + 1
                    if other < n and (
                        value[other] < value[child]
                        or (value[other] == value[child] and column[other] > column[child])
                    ):
                        child = other
                    if value[child] >= score:
                        break
                    value[k] = value[child]
                    column[k] = column[child]
                    k = child
            value[k] = score
            column[k] = j
            if held == n:
                worst = value[0]
        write_sorted(value, column, held, items[r], best[r], np.float32(np.nan))
