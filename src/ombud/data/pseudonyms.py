"""Random ids for people, with no key kept, and histories taken out in their order."""

from __future__ import annotations

import secrets

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

_BLOCK = 1 << 22


def pseudonymous_order(
    users: NDArray[np.bool_], rng: np.random.Generator | None = None
) -> NDArray[np.int64]:
    """Return the users that stay in a random order; the place in it is the pseudonym.

    Parameters
    ----------
    users
        Whether each user stays.
    rng
        Where the order comes from; default, the randomness of the operating system, which nobody
        can repeat. A generator with a seed is a key: give one in tests only.
    """
    source = rng if rng is not None else np.random.default_rng(secrets.randbits(256))
    return source.permutation(np.flatnonzero(users))


def take(
    matrix: sparse.csr_array, rows: NDArray[np.int64], columns: NDArray[np.bool_]
) -> sparse.csr_array:
    """Return some rows in the order given, with only some columns, block by block.

    Parameters
    ----------
    matrix
        Has sorted column indices.
    rows
        The rows wanted, each at most once.
    columns
        Whether each column stays.
    """
    places = (np.cumsum(columns) - 1).astype(np.int32)
    lengths = np.diff(matrix.indptr)[rows]
    ends = np.cumsum(lengths, dtype=np.int64)
    total = int(ends[-1]) if len(ends) else 0
    indices = np.empty(total, dtype=np.int32)
    data = np.empty(total, dtype=matrix.data.dtype)
    counts = np.zeros(len(rows) + 1, dtype=np.int64)
    filled, low = 0, 0
    while low < len(rows):
        begin = int(ends[low] - lengths[low])
        # At least one row a block, however long it is.
        high = max(low + 1, int(np.searchsorted(ends, begin + _BLOCK, side="right")))
        size = lengths[low:high].astype(np.int64)
        shift = matrix.indptr[rows[low:high]] - (ends[low:high] - size - begin)
        entries = np.arange(int(size.sum())) + np.repeat(shift, size)
        met = matrix.indices[entries]
        kept = columns[met]
        owner = np.repeat(np.arange(high - low), size)[kept]
        counts[low + 1 : high + 1] = np.bincount(owner, minlength=high - low)
        number = len(owner)
        indices[filled : filled + number] = places[met[kept]]
        data[filled : filled + number] = matrix.data[entries[kept]]
        filled, low = filled + number, high
    starts = np.cumsum(counts)
    if filled < 2**31:
        starts = starts.astype(np.int32)
    shape = (len(rows), int(np.count_nonzero(columns)))
    taken = sparse.csr_array((data[:filled], indices[:filled], starts), shape=shape)
    taken.has_sorted_indices = True
    return taken
