"""The first n items of a fixed order, without those already seen; no scores are computed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["unseen_places"]


def unseen_places(seen: NDArray[np.int64], starts: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """Return the places of the first n entries of an order that are not seen, per row.

    Parameters
    ----------
    seen
        Places that row r has seen, in ``seen[starts[r]:starts[r + 1]]``, rising.
    starts
        Where each row starts, and the end.
    n
        How many places to return.

    Notes
    -----
    With k places seen before it, the m-th unseen entry stands at place m + k; and the j-th seen
    place s_j stands before it just when s_j - j <= m. So one sorted search answers for all rows.

    Examples
    --------
    >>> unseen_places(np.array([0, 2, 1]), np.array([0, 2, 3]), 3).tolist()
    [[1, 3, 4], [0, 2, 3]]
    """
    rows = len(starts) - 1
    row_of = np.repeat(np.arange(rows), np.diff(starts))
    free_before = seen - (np.arange(len(seen)) - starts[row_of])
    span = max(int(free_before.max(initial=0)), n) + 1
    wanted = np.arange(rows)[:, None] * span + np.arange(n)
    skipped = np.searchsorted(row_of * span + free_before, wanted, side="right") - starts[:-1, None]
    return np.asarray(np.arange(n) + skipped, dtype=np.int64)
