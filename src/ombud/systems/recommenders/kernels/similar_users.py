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

# Below this length values are put into order one by one.
_FEW = 16


@kernel()
def _parts(values: NDArray[Any], low: int, high: int) -> tuple[int, int]:
    """Cut ``values[low..high]`` at a middle value; return where what is above and below it ends.

    Afterwards values up to the second number are at most the pivot, from the first one on at
    least, and any between equal it.
    """
    pivot, other, last = values[low], values[(low + high) >> 1], values[high]
    if other < pivot:
        pivot, other = other, pivot
    if last < other:  # the middle one of the three
        other = pivot if last < pivot else last
    pivot = other
    i, j = low, high
    while i <= j:
        while values[i] < pivot:
            i += 1
        while values[j] > pivot:
            j -= 1
        if i <= j:
            values[i], values[j] = values[j], values[i]
            i += 1
            j -= 1
    return i, j


@kernel()
def split(values: NDArray[Any], k: int) -> None:
    """Reorder so that ``values[k]`` is where sorting would put it, and none before it is larger."""
    low, high = 0, len(values) - 1
    while low < high:
        i, j = _parts(values, low, high)
        if k <= j:
            high = j
        elif k >= i:
            low = i
        else:
            return


@kernel()
def sort(values: NDArray[Any]) -> None:
    """Sort in rising order."""
    kept = np.empty((64, 2), np.int64)
    kept[0, 0], kept[0, 1] = 0, len(values) - 1
    depth = 1
    while depth > 0:
        depth -= 1
        low, high = kept[depth, 0], kept[depth, 1]
        while high - low > _FEW:
            i, j = _parts(values, low, high)
            # The longer part waits, so that no more wait than the length has binary digits.
            if j - low < high - i:
                kept[depth, 0], kept[depth, 1] = i, high
                high = j
            else:
                kept[depth, 0], kept[depth, 1] = low, j
                low = i
            depth += 1
        for k in range(low + 1, high + 1):
            value = values[k]
            m = k - 1
            while m >= low and values[m] > value:
                values[m + 1] = values[m]
                m -= 1
            values[m + 1] = value


_LOW = np.uint64(0xFFFFFFFF)


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
    for v in range(len(sums)):
        sums[v] = np.float32(0)
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
    split(known, n_items - n)
    last = known[n_items - n]
    if last < 0:
        return False
    for j in range(n_items):
        if not own[j] and count[j] < most:
            # A little more than the bound itself, for the rounding of the sums.
            reach = (total[j] + np.float32(most - count[j]) * next_best) * np.float32(1.00001)
            if reach >= last:
                return False
    return True


@kernel()
def _order(
    similar: NDArray[np.float32], least: np.float32, keys: NDArray[np.uint64]
) -> NDArray[np.uint64]:
    """Return one key per neighbour; keys rise as similarity falls, then as the user rises."""
    bits = similar.view(np.uint32)
    result = 0
    for v in range(len(similar)):
        if similar[v] >= least:
            # The bits of positive numbers rise with the numbers.
            keys[result] = ((_LOW - np.uint64(bits[v])) << np.uint64(32)) | np.uint64(v)
            result += 1
    return keys[:result]


@kernel()
def _visit(
    neighbours: NDArray[np.uint64],
    similar: NDArray[np.float32],
    indptr: NDArray[np.integer[Any]],
    indices: NDArray[np.int32],
    deviations: NDArray[np.float32],
    most: int,
    total: NDArray[np.float32],
    weight: NDArray[np.float32],
    count: NDArray[np.int32],
) -> None:
    """Let some neighbours, nearest first, add to the scores of the items they have."""
    average = len(deviations) > 0
    for k in range(len(neighbours)):
        v = np.int64(neighbours[k] & _LOW)
        s = similar[v]
        for p in range(indptr[v], indptr[v + 1]):
            j = indices[p]
            if count[j] < most:
                count[j] += 1
                if average:
                    total[j] += s * deviations[p]
                    weight[j] += s
                else:
                    total[j] += s


@kernel()
def _score_one(
    neighbours: NDArray[np.uint64],
    similar: NDArray[np.float32],
    indptr: NDArray[np.integer[Any]],
    indices: NDArray[np.int32],
    deviations: NDArray[np.float32],
    own: NDArray[np.bool_],
    most: int,
    least_count: int,
    n: int,
    total: NDArray[np.float32],
    weight: NDArray[np.float32],
    count: NDArray[np.int32],
) -> int:
    """Visit neighbours in growing portions until the first n are settled; return how many."""
    average = len(deviations) > 0
    left = neighbours
    portion = 512
    done = 0
    while len(left) > 0:
        if portion < len(left):
            split(left, portion)
        near = left[:portion]
        sort(near)
        _visit(near, similar, indptr, indices, deviations, most, total, weight, count)
        done += len(near)
        left = left[len(near) :]
        portion *= 4
        last = similar[np.int64(near[len(near) - 1] & _LOW)]
        if not average and _settled(total, count, own, most, least_count, n, last):
            break
    return done


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
        keys = np.empty(n_users, np.uint64)
        count = np.empty(n_items, np.int32)
        weight = np.empty(n_items, np.float32)
        own = np.zeros(n_items, np.bool_)
        for r in range(worker, len(out), workers):
            items = indices[indptr[r] : indptr[r + 1]]
            own_weights = weights[indptr[r] : indptr[r + 1]]
            _similarities(
                items, own_weights, own_scale[r], starts, users, column_values, scale, similar
            )
            if myself[r] >= 0:
                similar[myself[r]] = np.float32(0)
            total = out[r]
            for j in range(n_items):
                total[j] = weight[j] = np.float32(0)
                count[j] = 0
            for k in range(len(items)):
                own[items[k]] = exclude
            visited[r] = _score_one(
                _order(similar, least, keys), similar, train_indptr, train_indices, deviations,
                own, most, least_count, n, total, weight, count,
            )  # fmt: skip
            for j in range(n_items):
                if count[j] < least_count:
                    total[j] = np.nan
                elif average:
                    total[j] = centre[r] + total[j] / weight[j]
            for k in range(len(items)):
                own[items[k]] = False
