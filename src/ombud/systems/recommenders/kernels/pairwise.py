"""Stratified sampling and updates for Bayesian personalised ranking.

As in `sgd`, users and items are cut into blocks (of items at least as many as of users) and an
epoch meets every user block with every item block, cells that share neither user nor item side by
side. A positive item is compared with a negative of its own item block only, so the items are dealt
into blocks anew in each epoch: every pair of items can meet, and the result does not depend on the
number of threads.

Within an epoch items go by their place: block by block, in order within a block. Interactions and
factors are laid out the same way, so that what a cell works on is close together in memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ombud.systems.recommenders.kernels._jit import kernel, prange


def deal_items(
    counts: NDArray[np.int64], blocks: int, rng: np.random.Generator
) -> tuple[NDArray[np.uint8], NDArray[np.int32], NDArray[np.int64], NDArray[np.int64]]:
    """Deal items into blocks that hold about equally many interactions.

    Returns
    -------
    tuple
        The block of each item; all items, block by block, as they were dealt; where each block
        starts in them; all items by their place.
    """
    order = rng.permutation(len(counts)).astype(np.int32)
    running = np.cumsum(counts[order])
    middle = running - counts[order] / 2
    block = np.minimum(middle * blocks / max(int(running[-1]), 1), blocks - 1).astype(np.uint8)
    of_item = np.empty(len(counts), np.uint8)
    of_item[order] = block
    starts = np.searchsorted(block, np.arange(blocks + 1)).astype(np.int64)
    return of_item, order, starts, np.argsort(of_item, kind="stable")


@kernel(parallel=True)
def alias_tables(
    items: NDArray[np.int32],
    starts: NDArray[np.int64],
    counts: NDArray[np.int64],
    keep: NDArray[np.float32],
    other: NDArray[np.int32],
) -> None:
    """Prepare drawing an item of a block in proportion to its count (Walker's alias method)."""
    for block in prange(len(starts) - 1):
        start = starts[block]
        n = starts[block + 1] - start
        total = 0
        for k in range(n):
            total += counts[items[start + k]]
        if n == 0 or total == 0:
            continue
        scaled = np.empty(n)
        small = np.empty(n, np.int32)
        large = np.empty(n, np.int32)
        n_small = 0
        n_large = 0
        for k in range(n):
            scaled[k] = counts[items[start + k]] * n / total
            if scaled[k] < 1.0:
                small[n_small] = k
                n_small += 1
            else:
                large[n_large] = k
                n_large += 1
        while n_small > 0 and n_large > 0:
            n_small -= 1
            less = small[n_small]
            more = large[n_large - 1]
            keep[start + less] = scaled[less]
            other[start + less] = items[start + more]
            scaled[more] -= 1.0 - scaled[less]
            if scaled[more] < 1.0:
                n_large -= 1
                small[n_small] = more
                n_small += 1
        for k in range(n_small):
            keep[start + small[k]] = np.float32(1)
            other[start + small[k]] = items[start + small[k]]
        for k in range(n_large):
            keep[start + large[k]] = np.float32(1)
            other[start + large[k]] = items[start + large[k]]


@kernel(parallel=True)
def lay_out(
    user_bounds: NDArray[np.int64],
    indptr: NDArray[np.integer[Any]],
    indices: NDArray[np.int32],
    of_item: NDArray[np.uint8],
    place_of: NDArray[np.int32],
    who: NDArray[np.int32],
    what: NDArray[np.int32],
    cells: NDArray[np.int64],
) -> None:
    """Write the interactions cell by cell: users in order, and the places of each one's items.

    ``cells[block, cell]`` says where the user block's interactions with an item block start in
    ``who`` and ``what``; the last column, where they end.
    """
    n_cells = cells.shape[1] - 1
    for block in prange(len(cells)):
        first = indptr[user_bounds[block]]
        last = indptr[user_bounds[block + 1]]
        counts = np.zeros(n_cells, np.int64)
        for k in range(first, last):
            counts[of_item[indices[k]]] += 1
        at = np.empty(n_cells, np.int64)
        running = np.int64(first)
        for cell in range(n_cells):
            cells[block, cell] = running
            at[cell] = running
            running += counts[cell]
        cells[block, n_cells] = running
        for u in range(user_bounds[block], user_bounds[block + 1]):
            for k in range(indptr[u], indptr[u + 1]):
                cell = of_item[indices[k]]
                who[at[cell]] = u
                what[at[cell]] = place_of[indices[k]]
                at[cell] += 1


@kernel()
def _next(state: np.uint64) -> np.uint64:
    """Return the next state of a xorshift generator."""
    state ^= state << np.uint64(13)
    state ^= state >> np.uint64(7)
    state ^= state << np.uint64(17)
    return state


@kernel(parallel=True, fastmath=True)
def epoch(
    cells: NDArray[np.int64],
    who: NDArray[np.int32],
    what: NDArray[np.int32],
    items: NDArray[np.int32],
    starts: NDArray[np.int64],
    keep: NDArray[np.float32],
    other: NDArray[np.int32],
    seeds: NDArray[np.uint64],
    user_factors: NDArray[np.float32],
    item_factors: NDArray[np.float32],
    item_bias: NDArray[np.float32],
    rate: np.float32,
    penalty: np.float32,
    met: NDArray[np.int64],
) -> None:
    """Compare each interaction once with a drawn item that the user does not have.

    The drawn item is of the interaction's own cell, so only the user's items there are looked at,
    which are in order.

    With x = b_i - b_j + p_u . (q_i - q_j) and z = 1 / (1 + exp(x)), one step climbs
    ``log sigmoid(x) - penalty / 2 (...)^2``. A drawn item that the user has is passed over, as in
    ``implicit``; ``met`` counts the comparisons made.
    """
    blocks = len(cells)
    n_cells = cells.shape[1] - 1
    apart = n_cells // blocks
    n_factors = user_factors.shape[1]
    unit = np.float32(1.0 / 4294967296.0)
    for step in range(n_cells):
        for block in prange(blocks):
            cell = (block * apart + step) % n_cells
            start = starts[cell]
            size = np.uint64(starts[cell + 1] - start)
            state = seeds[block * n_cells + cell]
            done = 0
            last = cells[block, cell]
            end = cells[block, cell + 1]
            while last < end:
                first = last
                u = who[first]
                while last < end and who[last] == u:
                    last += 1
                p_u = user_factors[u]
                for k in range(first, last):
                    i = what[k]
                    state = _next(state)
                    index = start + np.int64(((state >> np.uint64(32)) * size) >> np.uint64(32))
                    coin = np.float32(state & np.uint64(0xFFFFFFFF)) * unit
                    j = items[index] if coin < keep[index] else other[index]
                    low = first
                    high = last
                    while low < high:
                        middle = (low + high) >> 1
                        if what[middle] < j:
                            low = middle + 1
                        else:
                            high = middle
                    if low < last and what[low] == j:
                        continue
                    done += 1
                    q_i = item_factors[i]
                    q_j = item_factors[j]
                    x = item_bias[i] - item_bias[j]
                    for f in range(n_factors):
                        x += p_u[f] * (q_i[f] - q_j[f])
                    z = np.float32(1) / (np.float32(1) + np.exp(x))
                    for f in range(n_factors):
                        p = p_u[f]
                        a = q_i[f]
                        b = q_j[f]
                        p_u[f] = p + rate * (z * (a - b) - penalty * p)
                        q_i[f] = a + rate * (z * p - penalty * a)
                        q_j[f] = b - rate * (z * p + penalty * b)
                    item_bias[i] += rate * (z - penalty * item_bias[i])
                    item_bias[j] -= rate * (z + penalty * item_bias[j])
            met[block] += done
