"""Compiled passes over the scores of many edits."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ombud.systems.recommenders.kernels._jit import kernel


@kernel()
def thresholds(
    scores: NDArray[np.float32],
    seen: NDArray[np.bool_],
    items: NDArray[np.int32],
    adds: NDArray[np.bool_],
    removes: NDArray[np.bool_],
    k: int,
    top: NDArray[np.float32],
    last: NDArray[np.float32],
    after: NDArray[np.float32],
) -> None:
    """Mask what is seen after each edit (-inf) and find the best, k-th and next score of each row.

    ``top``, ``last`` and ``after`` are -inf where a row has too few scores.
    """
    n_items = scores.shape[1]
    low = np.float32(-np.inf)
    for r in range(scores.shape[0]):
        row = scores[r]
        came_back = items[r] if removes[r] else -1
        for j in range(n_items):
            if (seen[j] and j != came_back) or row[j] != row[j]:
                row[j] = low
        if adds[r]:
            row[items[r]] = low
        heap = np.full(k + 1, low, np.float32)
        for j in range(n_items):
            value = row[j]
            if value > heap[0]:
                # Sift down a heap whose root is the least of the k + 1 best.
                place = 0
                while True:
                    child = 2 * place + 1
                    if child > k:
                        break
                    if child + 1 <= k and heap[child + 1] < heap[child]:
                        child += 1
                    if heap[child] >= value:
                        break
                    heap[place] = heap[child]
                    place = child
                heap[place] = value
        after[r] = heap[0]
        second, best = np.float32(np.inf), low
        for p in range(k + 1):
            best = max(best, heap[p])
            if p > 0:
                second = min(second, heap[p])
        last[r] = second
        top[r] = best


@kernel()
def scan(
    scores: NDArray[np.float32],
    scale: np.float32,
    shift: NDArray[np.float32],
    last: NDArray[np.float32],
    after: NDArray[np.float32],
    first: int,
    best: NDArray[np.float32],
    arg: NDArray[np.int32],
    margin: NDArray[np.float32],
    margin_arg: NDArray[np.int32],
) -> None:
    """Keep, for each item, the edit of greatest log-probability and of greatest margin.

    The log-probability is ``scale score - shift``; with a scale of 0 it is not kept. The margin is
    the score less the k-th best of the other items: zero or more for an item in the list.
    """
    for r in range(scores.shape[0]):
        row = scores[r]
        a, b = last[r], after[r]
        number = np.int32(first + r)
        if scale > 0:
            move = shift[r]
            for j in range(row.shape[0]):
                value = scale * row[j] - move
                if value > best[j]:
                    best[j] = value
                    arg[j] = number
        for j in range(row.shape[0]):
            value = row[j] - a if row[j] < a else row[j] - b
            if value > margin[j]:
                margin[j] = value
                margin_arg[j] = number


@kernel()
def item_edits(
    items: NDArray[np.int32],
    values: NDArray[np.float32],
    removed: NDArray[np.bool_],
    row_of: NDArray[np.int32],
    codes: NDArray[np.int32],
    similarities: NDArray[np.float32],
    starts: NDArray[np.int64],
    near: NDArray[np.float32],
    near_values: NDArray[np.float32],
    near_items: NDArray[np.int32],
    average: bool,
    least_count: int,
    most: int,
    base: NDArray[np.float32],
    mean: NDArray[np.float32],
    out: NDArray[np.float32],
) -> None:
    """Write item-kNN's scores after each single edit: only the edited item's neighbours change.

    ``near``, ``near_values`` and ``near_items`` are what the history brings to each item, from
    ``starts``, nearest first and on a tie the lower item. ``values`` and ``near_values`` are less
    the item's mean where scores are averages, and ``mean`` is added again.
    """
    for r in range(len(items)):
        line = out[r]
        for j in range(len(base)):
            line[j] = base[j]
        item = items[r]
        row = row_of[item]
        for q in range(codes.shape[1]):
            j = codes[row, q]
            if j < 0:
                break
            own = similarities[row, q]
            pending = not removed[r]
            total = np.float32(0)
            weight = np.float32(0)
            count = 0
            p = starts[j]
            while count < most:
                if p < starts[j + 1] and near_items[p] == item:
                    p += 1
                    continue
                there = p < starts[j + 1]
                if pending and (
                    not there or own > near[p] or (own == near[p] and item < near_items[p])
                ):
                    total += own * values[r]
                    weight += own
                    pending = False
                elif there:
                    total += near[p] * near_values[p]
                    weight += near[p]
                    p += 1
                else:
                    break
                count += 1
            if count < least_count:
                line[j] = np.nan
            elif average:
                line[j] = total / weight + mean[j]
            else:
                line[j] = total
