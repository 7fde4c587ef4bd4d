"""Stratified stochastic gradient descent for biased matrix factorisation.

The ratings are cut into ``strata x strata`` cells, user blocks against item blocks. In one step
of an epoch each user block meets one item block and no two cells share a user or an item, so
they can run side by side and the result depends on the number of strata, never on the number of
threads (Gemulla et al. 2011, "Large-scale matrix factorization with distributed stochastic
gradient descent"). Item blocks are ranges of codes, so a cell is a slice of each sorted row: no
copy of the ratings is made, and one block of item factors stays in the cache.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ombud.systems.recommenders.kernels._jit import kernel, prange


def balanced_ranges(counts: NDArray[np.integer[Any]], blocks: int) -> NDArray[np.int64]:
    """Return the bounds of contiguous ranges that hold about equally many interactions."""
    running = np.cumsum(counts, dtype=np.int64)
    targets = running[-1] * np.arange(1, blocks) // blocks
    inner = np.searchsorted(running, targets, side="left") + 1
    return np.concatenate([[0], np.minimum(inner, len(counts)), [len(counts)]]).astype(np.int64)


@kernel(parallel=True)
def row_cuts(
    indptr: NDArray[np.integer[Any]],
    indices: NDArray[np.int32],
    bounds: NDArray[np.int64],
    cuts: NDArray[np.integer[Any]],
) -> None:
    """Find where each sorted row crosses the bounds of the item blocks."""
    blocks = len(bounds) - 1
    for row in prange(len(indptr) - 1):
        p = indptr[row]
        cuts[row, 0] = p
        for block in range(1, blocks + 1):
            while p < indptr[row + 1] and indices[p] < bounds[block]:
                p += 1
            cuts[row, block] = p


@kernel(parallel=True, fastmath=True)
def epoch(
    user_bounds: NDArray[np.int64],
    cuts: NDArray[np.integer[Any]],
    indices: NDArray[np.int32],
    ratings: NDArray[np.float32],
    user_factors: NDArray[np.float32],
    item_factors: NDArray[np.float32],
    user_bias: NDArray[np.float32],
    item_bias: NDArray[np.float32],
    mean: np.float32,
    rate: np.float32,
    penalty: np.float32,
) -> None:
    """Go once through all ratings; for each, with e = r - (mean + b_u + b_i + p_u . q_i)::

    b_u += rate (e - penalty b_u)          b_i += rate (e - penalty b_i)
    p_u += rate (e q_i - penalty p_u)      q_i += rate (e p_u - penalty q_i)
    """
    strata = len(user_bounds) - 1
    n_factors = user_factors.shape[1]
    for step in range(strata):
        for block in prange(strata):
            cell = (block + step) % strata
            for u in range(user_bounds[block], user_bounds[block + 1]):
                p_u = user_factors[u]
                for k in range(cuts[u, cell], cuts[u, cell + 1]):
                    i = indices[k]
                    q_i = item_factors[i]
                    product = np.float32(0)
                    for f in range(n_factors):
                        product += p_u[f] * q_i[f]
                    error = ratings[k] - (mean + user_bias[u] + item_bias[i] + product)
                    user_bias[u] += rate * (error - penalty * user_bias[u])
                    item_bias[i] += rate * (error - penalty * item_bias[i])
                    for f in range(n_factors):
                        p = p_u[f]
                        q = q_i[f]
                        p_u[f] = p + rate * (error * q - penalty * p)
                        q_i[f] = q + rate * (error * p - penalty * q)
