"""The most similar items of each item, by cosine, exactly.

`all_pairs` visits each unordered pair of items once. Items are renumbered from the most to the
least frequent, so the running sums of a row lie close together; each worker keeps the best so far
of every item, and the workers' lists are merged. `some_rows` computes only the rows asked for.
Both add up a pair's products in the order of the users and keep the best under one strict order
(higher similarity, then lower code), so they agree to the bit, for any number of workers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ombud.systems.recommenders.kernels._jit import kernel, prange
from ombud.systems.recommenders.kernels.topn import offer, write_sorted


@kernel()
def by_frequency(
    indptr: NDArray[np.integer[Any]],
    indices: NDArray[np.int32],
    values: NDArray[np.float32],
    rank: NDArray[np.int32],
    starts: NDArray[np.integer[Any]],
    users: NDArray[np.int32],
    place: NDArray[np.integer[Any]],
    row_items: NDArray[np.int32],
    row_values: NDArray[np.float32],
) -> None:
    """Renumber the columns and write the matrix by column and by row.

    ``starts`` are the starts of the renumbered columns; ``users`` their entries' rows and
    ``place`` where each entry lies in ``row_items``. Empty ``values`` count as all ones.
    """
    free = starts.copy()
    for u in range(len(indptr) - 1):
        for p in range(indptr[u], indptr[u + 1]):
            j = rank[indices[p]]
            users[free[j]] = u
            place[free[j]] = p
            free[j] += 1
    spot = indptr.copy()
    for j in range(len(starts) - 1):
        for q in range(starts[j], starts[j + 1]):
            u = users[q]
            row_items[spot[u]] = j
            if len(values) > 0:
                row_values[spot[u]] = values[place[q]]
            place[q] = spot[u]
            spot[u] += 1


@kernel(parallel=True)
def all_pairs(
    first: int,
    last: int,
    starts: NDArray[np.integer[Any]],
    users: NDArray[np.int32],
    place: NDArray[np.integer[Any]],
    indptr: NDArray[np.integer[Any]],
    row_items: NDArray[np.int32],
    row_values: NDArray[np.float32],
    scale: NDArray[np.float32],
    original: NDArray[np.int32],
    value: NDArray[np.float32],
    code: NDArray[np.int32],
    held: NDArray[np.int32],
    bar: NDArray[np.float32],
) -> None:
    """Offer each pair (i, j), first <= i < last and j < i, to the lists of both items.

    ``scale`` holds one over the length of each item's vector. ``value``, ``code`` and ``held`` are
    the lists of each worker, worker x item (x place). ``bar`` is what a similarity must reach to
    enter a list, worker x item: it lies close together, where the lists of a large catalogue lie
    all over the memory.
    """
    workers, size = len(value), value.shape[2]
    weighted = len(row_values) > 0
    for worker in prange(workers):
        sums = np.zeros(last, np.float32)
        touched = np.empty(last, np.int32)
        for i in range(first + worker, last, workers):
            work = 0
            for q in range(starts[i], starts[i + 1]):
                work += place[q] - indptr[users[q]]
            few = 4 * work < i
            n = 0
            for q in range(starts[i], starts[i + 1]):
                begin = indptr[users[q]]
                end = place[q]
                if few:
                    for p in range(begin, end):
                        touched[n] = row_items[p]
                        n += 1
                if weighted:
                    own = row_values[end]
                    for p in range(begin, end):
                        sums[row_items[p]] += own * row_values[p]
                else:
                    for p in range(begin, end):
                        sums[row_items[p]] += np.float32(1)
            n = n if few else i
            for k in range(n):
                j = touched[k] if few else k
                total = sums[j]
                if total == 0:
                    continue
                sums[j] = np.float32(0)
                similar = total * (scale[i] * scale[j])
                if similar >= bar[worker, i]:
                    here = offer(
                        value[worker, i], code[worker, i], held[worker, i], similar, original[j]
                    )
                    held[worker, i] = here
                    if here == size:
                        bar[worker, i] = value[worker, i, 0]
                if similar >= bar[worker, j]:
                    there = offer(
                        value[worker, j], code[worker, j], held[worker, j], similar, original[i]
                    )
                    held[worker, j] = there
                    if there == size:
                        bar[worker, j] = value[worker, j, 0]


@kernel(parallel=True)
def merge(
    value: NDArray[np.float32],
    code: NDArray[np.int32],
    held: NDArray[np.int32],
    original: NDArray[np.int32],
    codes: NDArray[np.int32],
    similarities: NDArray[np.float32],
) -> None:
    """Merge the workers' lists and write them in the original numbering, best first."""
    for i in prange(value.shape[1]):
        count = held[0, i]
        for worker in range(1, len(value)):
            for k in range(held[worker, i]):
                count = offer(
                    value[0, i], code[0, i], count, value[worker, i, k], code[worker, i, k]
                )
        item = original[i]
        write_sorted(value[0, i], code[0, i], count, codes[item], similarities[item], np.float32(0))


@kernel(parallel=True)
def some_rows(
    rows: NDArray[np.int32],
    workers: int,
    starts: NDArray[np.integer[Any]],
    users: NDArray[np.int32],
    column_values: NDArray[np.float32],
    indptr: NDArray[np.integer[Any]],
    indices: NDArray[np.int32],
    values: NDArray[np.float32],
    scale: NDArray[np.float32],
    least: np.float32,
    codes: NDArray[np.int32],
    similarities: NDArray[np.float32],
) -> None:
    """Write the lists of some items, in the original numbering; nothing else is computed."""
    weighted = len(values) > 0
    size = codes.shape[1]
    for worker in prange(workers):
        sums = np.zeros(len(scale), np.float32)
        seen = np.zeros(len(scale), np.bool_)
        touched = np.empty(len(scale), np.int32)
        value = np.empty(size, np.float32)
        code = np.empty(size, np.int32)
        for r in range(worker, len(rows), workers):
            i = rows[r]
            n = 0
            for q in range(starts[i], starts[i + 1]):
                own = column_values[q] if weighted else np.float32(1)
                for p in range(indptr[users[q]], indptr[users[q] + 1]):
                    j = indices[p]
                    if not seen[j]:
                        seen[j] = True
                        touched[n] = j
                        n += 1
                    sums[j] += own * values[p] if weighted else np.float32(1)
            held = 0
            for k in range(n):
                j = touched[k]
                similar = sums[j] * (scale[i] * scale[j])
                sums[j] = np.float32(0)
                seen[j] = False
                if j != i and similar >= least:
                    held = offer(value, code, held, similar, j)
            write_sorted(value, code, held, codes[r], similarities[r], np.float32(0))
