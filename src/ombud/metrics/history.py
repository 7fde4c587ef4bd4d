"""Histories and lists as sparse matrices, and which part of a history counts as relevant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

if TYPE_CHECKING:
    from ombud.data.interactions import Interactions


History = Literal["all", "relevant"]
"""Which interactions are compared with: all, or the user's own top quartile of ratings."""

Weighting = Literal["exposure", "share"]
"""Whether the places of a list count alike or by 1 / log2(rank + 1)."""

# Entries ranked at once.
_BLOCK = 2**21


def top_quartile(matrix: sparse.csr_array) -> NDArray[np.bool_]:
    """Return which stored entries are in the top quartile of their own row.

    An entry is in when its value reaches the 75th percentile of its row, interpolated linearly
    between the two nearest ranks (the definition of `numpy.quantile`). Entries that tie with
    the threshold are all in, so at least a quarter of a row is in, and a row of equal values
    is in whole.

    Examples
    --------
    >>> row = sparse.csr_array(np.array([[5.0, 4.0, 4.0, 3.0, 1.0]]))
    >>> top_quartile(row).tolist()
    [True, True, True, False, False]
    """
    starts, values = matrix.indptr.astype(np.int64), matrix.data
    top = np.empty(len(values), dtype=np.bool_)
    first = 0
    while first < len(starts) - 1:
        # As many rows as fit in one block, and at least one.
        last = int(np.searchsorted(starts, starts[first] + _BLOCK, side="right")) - 1
        last = max(last, first + 1)
        low, high = starts[first], starts[last]
        top[low:high] = _top(starts[first : last + 1] - low, values[low:high])
        first = last
    return top


def _top(starts: NDArray[np.int64], values: NDArray[Any]) -> NDArray[np.bool_]:
    lengths = np.diff(starts)
    rows = np.repeat(np.arange(len(lengths), dtype=np.int64), lengths)
    ordered = _sorted_within(rows, values)
    filled = lengths > 0
    index = 0.75 * (lengths[filled] - 1)
    below = np.floor(index).astype(np.int64)
    above = np.minimum(below + 1, lengths[filled] - 1)
    low, high = ordered[starts[:-1][filled] + below], ordered[starts[:-1][filled] + above]
    threshold = np.full(len(lengths), np.inf)
    threshold[filled] = low + (index - below) * (high - low)
    return np.asarray(values >= threshold[rows] - 1e-9, dtype=np.bool_)


def _sorted_within(rows: NDArray[np.int64], values: NDArray[Any]) -> NDArray[np.float64]:
    """Return the values in the order of (row, value); rows are sorted."""
    if values.dtype != np.float32:
        return values[np.lexsort((values, rows))].astype(np.float64)
    # One integer sort on (row, bits of the value) is many times faster than two passes. The bits
    # of floats are ordered as integers once those of negative numbers are turned round.
    bits = (values + np.float32(0)).view(np.int32)
    keys = (rows << 32) + (bits ^ ((bits >> 31) & np.int32(0x7FFFFFFF))) + 2**31
    keys.sort()
    low = ((keys & 0xFFFFFFFF) - 2**31).astype(np.int32)
    return (low ^ ((low >> 31) & np.int32(0x7FFFFFFF))).view(np.float32).astype(np.float64)


def history_matrix(
    interactions: Interactions, history: History, users: NDArray[np.integer[Any]] | None = None
) -> sparse.csr_array:
    """Return users x items with a 1 for each item that counts.

    ``"relevant"`` is the user's own top quartile of ratings (see `top_quartile`), and everything
    where there are no ratings.

    Parameters
    ----------
    interactions
        The histories.
    history
        Which part of them counts.
    users
        Codes of the users wanted, in order; default, all.
    """
    matrix = interactions.matrix if users is None else interactions.matrix[users]
    columns, starts = matrix.indices, matrix.indptr
    if history == "relevant" and interactions.explicit:
        top = top_quartile(matrix)
        within = np.concatenate([[0], np.cumsum(top)])
        columns, starts = columns[top], within[starts]
    ones = np.ones(len(columns), dtype=np.float32)
    return sparse.csr_array((ones, columns, starts), shape=matrix.shape)


def places(codes: NDArray[np.int32], n_items: int, weights: NDArray[Any]) -> Any:
    """Return lists x (items + 1) as a sparse matrix; the last column is any item not known.

    Parameters
    ----------
    codes
        Lists x places: item codes, -1 where a list has ended, -2 for an item not known.
    n_items
        How many items are known.
    weights
        The weight of each place.
    """
    used = codes != -1
    starts = np.concatenate([[0], np.cumsum(np.count_nonzero(used, axis=1))])
    columns = np.where(codes < 0, np.int32(n_items), codes)[used]
    data = np.broadcast_to(weights, codes.shape)[used]
    return sparse.csr_array((data, columns, starts), shape=(len(codes), n_items + 1))
