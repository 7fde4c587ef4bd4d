"""Scores from stored item neighbours: what each item of a history adds to the items like it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ombud.systems.recommenders.kernels._jit import kernel, prange


@kernel(parallel=True)
def score_all(
    workers: int,
    indptr: NDArray[np.integer[Any]],
    indices: NDArray[np.int32],
    values: NDArray[np.float32],
    row_of: NDArray[np.int32],
    codes: NDArray[np.int32],
    similarities: NDArray[np.float32],
    average: bool,
    least_count: int,
    out: NDArray[np.float32],
) -> None:
    """Write ``sum s_hj v_h`` (or, averaging, divided by ``sum s_hj``) over a history's items h.

    ``row_of`` gives the row of `codes` that holds an item's neighbours. Items with fewer than
    ``least_count`` neighbours in the history get NaN.
    """
    n_items = out.shape[1]
    size = codes.shape[1]
    for worker in prange(workers):
        count = np.zeros(n_items, np.int32)
        weight = np.zeros(n_items if average else 0, np.float32)
        for r in range(worker, len(out), workers):
            total = out[r]
            for j in range(n_items):
                total[j] = np.float32(0)
            for p in range(indptr[r], indptr[r + 1]):
                row = row_of[indices[p]]
                value = values[p]
                for k in range(size):
                    j = codes[row, k]
                    if j < 0:
                        break
                    total[j] += similarities[row, k] * value
                    count[j] += 1
                    if average:
                        weight[j] += similarities[row, k]
            for j in range(n_items):
                if count[j] < least_count:
                    total[j] = np.nan
                elif average:
                    total[j] /= weight[j]
                count[j] = 0
                if average:
                    weight[j] = np.float32(0)


@kernel(parallel=True)
def score_best(
    workers: int,
    indptr: NDArray[np.integer[Any]],
    indices: NDArray[np.int32],
    values: NDArray[np.float32],
    row_of: NDArray[np.int32],
    codes: NDArray[np.int32],
    similarities: NDArray[np.float32],
    average: bool,
    least_count: int,
    most: int,
    out: NDArray[np.float32],
) -> None:
    """As `score_all`, but only the ``most`` nearest items of the history count for a score."""
    n_items = out.shape[1]
    size = codes.shape[1]
    for worker in prange(workers):
        count = np.zeros(n_items, np.int32)
        near = np.empty((n_items, most), np.float32)
        part = np.empty((n_items, most), np.float32)
        for r in range(worker, len(out), workers):
            for p in range(indptr[r], indptr[r + 1]):
                row = row_of[indices[p]]
                for k in range(size):
                    j = codes[row, k]
                    if j < 0:
                        break
                    similar = similarities[row, k]
                    # Insert in order, nearest first; on a tie the earlier item stays.
                    held = count[j]
                    if held == most:
                        if not similar > near[j, most - 1]:
                            continue
                        index = most - 1
                    else:
                        index = held
                        count[j] = held + 1
                    while index > 0 and near[j, index - 1] < similar:
                        near[j, index] = near[j, index - 1]
                        part[j, index] = part[j, index - 1]
                        index -= 1
                    near[j, index] = similar
                    part[j, index] = similar * values[p]
            for j in range(n_items):
                if count[j] < least_count:
                    out[r, j] = np.nan
                else:
                    total = np.float32(0)
                    weight = np.float32(0)
                    for k in range(count[j]):
                        total += part[j, k]
                        weight += near[j, k]
                    out[r, j] = total / weight if average else total
                count[j] = 0
