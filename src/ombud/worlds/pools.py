"""Pools: what a user would meet. Histories and lists are random parts of them.

A pool is drawn from the user's own weights without replacement. The history is a uniformly random
part of the pool, so given the pool, every expected share is a plain fraction: that is what makes
the truth of a world exact.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse


def draw_pools(
    weights: NDArray[np.float32], sizes: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.int32]:
    """Draw items without replacement, each draw proportional to what weight is left.

    An exponential race: the item with the least ``Exp(1) / weight`` comes first.

    `weights` is users x items, above zero; `sizes` has the pool size of each user.

    Returns
    -------
    Users x the largest size: item codes, -1 beyond a user's size.
    """
    arrivals = rng.standard_exponential(weights.shape, dtype=np.float32) / weights
    width = int(sizes.max())
    if width < weights.shape[1] // 3:
        near = np.argpartition(arrivals, width, axis=1)[:, :width]
        order = np.argsort(np.take_along_axis(arrivals, near, axis=1), axis=1)
        first = np.take_along_axis(near, order, axis=1)
    else:
        first = np.argsort(arrivals, axis=1)[:, :width]
    return np.where(np.arange(width) < sizes[:, None], first, -1).astype(np.int32)


def shuffled(pools: NDArray[np.int32], rng: np.random.Generator) -> NDArray[np.int32]:
    """Return each row in uniformly random order, the places that are -1 still last."""
    keys = rng.random(pools.shape)
    keys[pools < 0] = 2.0
    return np.take_along_axis(pools, np.argsort(keys, axis=1), axis=1)


def history_matrix(
    pools: NDArray[np.int32], activity: NDArray[np.int64], n_items: int
) -> sparse.csr_array:
    """Return users x items with a 1 for each of the first `activity` items of the pool."""
    width = int(activity.max())
    mask = np.arange(width) < activity[:, None]
    part = np.where(mask, pools[:, :width], np.int32(n_items))
    part.sort(axis=1)
    starts = np.concatenate([[0], np.cumsum(activity)]).astype(np.int32)
    data = np.ones(int(starts[-1]), dtype=np.float32)
    matrix = sparse.csr_array((data, part[mask], starts), shape=(len(pools), n_items))
    matrix.has_sorted_indices = True
    return matrix
