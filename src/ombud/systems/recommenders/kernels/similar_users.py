"""Scores from the nearest users, computed for the asked users only, with an exact early stop.

A user's neighbours are visited from the most similar downwards, in growing portions. Where scores
are sums of similarities, no later neighbour is nearer than the last one visited, which bounds
what an item can still gain; the visit ends when no item outside the first n can enter them and
those inside are complete.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ombud.systems.recommenders.kernels._jit import kernel, prange

__all__ = ["score"]


@kernel()
def _similarities(
    items: NDArray[np.int32],
    weights: NDArray[np.float32],
    own_scale: np.float32,
    starts: NDArray[np.integer[Any]],
    users: NDArray[np.int32],
    column_values: NDArray[np.float32],
    scale: NDArray[np.float32],
    sums: NDArray[np.float32],
) -> None:
    """Write the cosine of one history with every user's."""
    sums[:] = np.float32(0)
    weighted = len(column_values) > 0
    for k in range(len(items)):
        own = weights[k]
        for q in range(starts[items[k]], starts[items[k] + 1]):
            sums[users[q]] += own * column_values[q] if weighted else own
    for v in range(len(sums)):
        sums[v] *= own_scale * scale[v]


@kernel()
def _settled(
    total: NDArray[np.float32],
    count: NDArray[np.int32],
    own: NDArray[np.bool_],
    most: int,
    least_count: int,
    n: int,
    next_best: np.float32,
) -> bool:
    """Whether later neighbours, none nearer than ``next_best``, can still change the first n."""
    n_items = len(total)
    if n >= n_items:
        return False
    known = np.empty(n_items, np.float32)
    for j in range(n_items):
        known[j] = total[j] if not own[j] and count[j] >= least_count else np.float32(-1)
    last = np.partition(known, n_items - n)[n_items - n]
    if last < 0:
        return False
    for j in range(n_items):
        if not own[j] and count[j] < most:
            # A little more than the bound itself, for the rounding of the sums.
            reach = (total[j] + np.float32(most - count[j]) * next_best) * np.float32(1.00001)
            if reach >= last:
                return False
    return True


@kernel(parallel=True)
def score(
    workers: int,
    indptr: NDArray[np.integer[Any]],
    indices: NDArray[np.int32],
    weights: NDArray[np.float32],
    own_scale: NDArray[np.float32],
    centre: NDArray[np.float32],
    myself: NDArray[np.int32],
    train_indptr: NDArray[np.integer[Any]],
    train_indices: NDArray[np.int32],
    deviations: NDArray[np.float32],
    starts: NDArray[np.integer[Any]],
    users: NDArray[np.int32],
    column_values: NDArray[np.float32],
    scale: NDArray[np.float32],
    most: int,
    least_count: int,
    least: np.float32,
    n: int,
    exclude: bool,
    out: NDArray[np.float32],
    visited: NDArray[np.int32],
) -> None:
    """Score all items for each history; ``n`` is how many of the best have to be right.

    With ``deviations`` (ratings minus their user's mean), a score is ``centre`` plus the average
    of the ``most`` nearest raters' deviations, weighted by similarity; without, it is the sum of
    the similarities of the ``most`` nearest users who have the item. Items with fewer than
    ``least_count`` such users get NaN. ``myself`` is the history's own row among the users, or -1.
    ``visited`` counts the neighbours looked at.
    """
    n_items = out.shape[1]
    n_users = len(scale)
    average = len(deviations) > 0
    for worker in prange(workers):
        similar = np.empty(n_users, np.float32)
        count = np.empty(n_items, np.int32)
        weight = np.empty(n_items if average else 0, np.float32)
        own = np.zeros(n_items, np.bool_)
        for r in range(worker, len(out), workers):
            items = indices[indptr[r] : indptr[r + 1]]
            _similarities(
                items, weights[indptr[r] : indptr[r + 1]], own_scale[r],
                starts, users, column_values, scale, similar,
            )  # fmt: skip
            if myself[r] >= 0:
                similar[myself[r]] = np.float32(0)
            near = np.flatnonzero(similar >= least).astype(np.int32)
            total = out[r]
            total[:] = np.float32(0)
            count[:] = 0
            weight[:] = np.float32(0)
            if exclude:
                for k in range(len(items)):
                    own[items[k]] = True
            above = np.float32(np.inf)
            portion = 512
            done = 0
            while done < len(near):
                if done + portion < len(near):
                    left = len(near) - done - portion
                    below = np.partition(similar[near], left)[left]
                else:
                    below = least
                chosen = near[(similar[near] >= below) & (similar[near] < above)]
                # Users are in rising order and the sort is stable: ties go to the lower user.
                order = np.argsort(-similar[chosen], kind="mergesort")
                for k in order:
                    v = chosen[k]
                    s = similar[v]
                    for p in range(train_indptr[v], train_indptr[v + 1]):
                        j = train_indices[p]
                        if count[j] < most:
                            count[j] += 1
                            if average:
                                total[j] += s * deviations[p]
                                weight[j] += s
                            else:
                                total[j] += s
                done += len(chosen)
                above = below
                portion *= 4
                if not average and _settled(total, count, own, most, least_count, n, below):
                    break
            visited[r] = done
            for j in range(n_items):
                if count[j] < least_count:
                    total[j] = np.nan
                elif average:
                    total[j] = centre[r] + total[j] / weight[j]
            if exclude:
                for k in range(len(items)):
                    own[items[k]] = False
