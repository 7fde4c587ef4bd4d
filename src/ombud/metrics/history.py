"""Histories and lists as sparse matrices, and which part of a history counts as relevant."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ombud.data.ids import Vocabulary
from ombud.data.interactions import Interactions

History = Literal["all", "relevant"]
"""Which interactions are compared with: all, or the user's own top quartile of ratings."""

Weighting = Literal["exposure", "share"]
"""Whether the places of a list count alike or by 1 / log2(rank + 1)."""

# Entries ranked at once: as many as the processor's cache holds.
_BLOCK = 2**16


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
    lengths = np.diff(starts)
    threshold = _upper_quartiles(starts[:-1], lengths, values) - 1e-9
    top = np.empty(len(values), dtype=np.bool_)
    first = 0
    while first < len(lengths):
        # As many rows as fit in one block, and at least one.
        last = int(np.searchsorted(starts, starts[first] + _BLOCK, side="right")) - 1
        last = max(last, first + 1)
        part = slice(starts[first], starts[last])
        top[part] = values[part] >= np.repeat(threshold[first:last], lengths[first:last])
        first = last
    return top


def _upper_quartiles(
    starts: NDArray[np.int64], lengths: NDArray[np.int64], values: NDArray[Any]
) -> NDArray[np.float64]:
    """Return the 75th percentile of each row; infinity for an empty one."""
    quartiles = np.full(len(lengths), np.inf)
    values = values.astype(np.result_type(values, np.float32), copy=False)
    # Rows of similar length are padded to a table, whose rows numpy sorts many times faster than
    # one array of pairs (row, value).
    order = np.argsort(lengths, kind="stable")
    first = int(np.searchsorted(lengths[order], 1))
    while first < len(order):
        rows = order[first : first + max(1, _BLOCK // int(lengths[order[first]]))]
        rows = rows[: max(1, _BLOCK // int(lengths[rows[-1]]))]
        length, each = lengths[rows], np.arange(len(rows))
        place = np.arange(length[-1])
        table = values.take(starts[rows, None] + place, mode="clip")
        if length[0] < length[-1]:
            np.copyto(table, np.inf, where=place >= length[:, None])
        table.sort(axis=1)
        index = 0.75 * (length - 1)
        below = np.floor(index).astype(np.int64)
        low = table[each, below].astype(np.float64)
        high = table[each, np.minimum(below + 1, length - 1)].astype(np.float64)
        quartiles[rows] = low + (index - below) * (high - low)
        first += len(rows)
    return quartiles


def history_matrix(
    interactions: Interactions, history: History, users: NDArray[np.integer[Any]], items: Vocabulary
) -> sparse.csr_array:
    """Return users x (items + 1) with a 1 for each item that counts; the last is any other item.

    ``"relevant"`` is the user's own top quartile of ratings (see `top_quartile`), and everything
    where there are no ratings.

    `users` are codes of the users wanted, in order.
    """
    matrix = interactions.matrix
    if not np.array_equal(users, np.arange(matrix.shape[0])):
        matrix = matrix[users]
    columns, starts = matrix.indices, matrix.indptr
    if history == "relevant" and interactions.explicit:
        top = top_quartile(matrix)
        filled = np.diff(starts) > 0
        counts = np.zeros(matrix.shape[0] + 1, dtype=starts.dtype)
        counts[1:][filled] = np.add.reduceat(top, starts[:-1][filled], dtype=starts.dtype)
        # Taking by number is several times faster than by a mask that looks random.
        columns, starts = columns[np.flatnonzero(top)], np.cumsum(counts, dtype=starts.dtype)
    codes = items.codes(interactions.items.arrow)
    codes[codes < 0] = len(items)
    ones = np.ones(len(columns), dtype=np.float32)
    shape = (matrix.shape[0], len(items) + 1)
    return sparse.csr_array((ones, codes[columns], starts), shape=shape)


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
    counts = np.full(len(codes), codes.shape[1]) if used.all() else np.count_nonzero(used, axis=1)
    starts = np.concatenate([[0], np.cumsum(counts)])
    if starts[-1] < 2**31:
        # Indices are made as wide as the starts are.
        starts = starts.astype(np.int32)
    columns = np.where(codes < 0, np.int32(n_items), codes)
    data = np.broadcast_to(weights, codes.shape)
    # A flat copy is faster than a choice, and most lists are full.
    columns, data = (part.ravel() if used.all() else part[used] for part in (columns, data))
    return sparse.csr_array((data, columns, starts), shape=(len(codes), n_items + 1))


def table_width(labels: int) -> int:
    """Return how many columns a table for `count_items` must have: the next multiple of eight."""
    return -(-labels // 8) * 8


def count_items(
    lists: sparse.csr_array, table: NDArray[np.uint8], labels: int
) -> NDArray[np.unsignedinteger[Any]]:
    """Return for each list and label how many of its items have a one in the table.

    Two neighboring bytes are added as one 16-bit number, which no carry can disturb as long as
    a list has fewer than 256 items; longer lists are counted in wider numbers. Of all integers,
    processors multiply 16-bit ones fastest, and scipy's product multiplies by one.

    `lists` is lists x items, every stored entry counting once; `table` is items x `table_width` of
    the labels, zeros and ones.
    """
    longest = int(np.diff(lists.indptr).max(initial=0))
    small = np.uint8 if longest < 2**8 else np.uint16 if longest < 2**16 else np.uint32
    words: NDArray[Any] = table.view(np.uint16) if small is np.uint8 else table.astype(small)
    ones = np.ones(lists.nnz, dtype=words.dtype)
    items: Any = sparse.csr_array((ones, lists.indices, lists.indptr), shape=lists.shape)
    result: NDArray[np.unsignedinteger[Any]] = (items @ words).view(small)
    return result[:, :labels]
