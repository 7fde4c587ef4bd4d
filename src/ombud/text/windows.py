"""Long texts in windows: where they lie, and one number from many."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

_Ints = NDArray[np.int64]


class Windows(NamedTuple):
    """Windows over texts: which text, and from where to where (in tokens)."""

    text: _Ints
    start: _Ints
    end: _Ints


def slide(lengths: ArrayLike, size: int, step: int = 0) -> Windows:
    """Return windows that cover texts of some lengths.

    A text that fits has one window. Of a longer one, windows begin every `step` tokens, and the
    last ends where the text ends, so that no token is left out and none is alone in a short rest.

    `lengths` and `size`, the most of a window, count tokens; so does `step` between the beginnings
    of two windows, 0 for half a window.

    Examples
    --------
    >>> slide([3, 10], size=4, step=3)
    Windows(text=array([0, 1, 1, 1]), start=array([0, 0, 3, 6]), end=array([ 3,  4,  7, 10]))
    """
    if size < 1:
        raise ValueError(f"a window of {size} tokens holds nothing")
    step = step or max(1, size // 2)
    if not 0 < step <= size:
        raise ValueError(f"a step of {step} leaves gaps between windows of {size} tokens")
    length = np.asarray(lengths, dtype=np.int64)
    more = np.maximum(length - size, 0)
    counts = 1 + -(-more // step)
    text = np.repeat(np.arange(len(length)), counts)
    number = np.arange(len(text)) - np.repeat(np.cumsum(counts) - counts, counts)
    start = np.minimum(number * step, more[text])
    return Windows(text, start, np.minimum(start + size, length[text]))


def join_windows(
    values: ArrayLike, text: ArrayLike, how: Literal["max", "mean", "first"], texts: int
) -> NDArray[np.float64]:
    """Return one value for each text from the values of its windows.

    Parameters
    ----------
    values
        One value, or one row of values, for each window.
    text
        The text of each window; windows of a text lie together and in order.
    how
        The highest, the mean, or the first window alone (a text that was cut).
    texts
        How many texts there are; each has at least one window.

    Examples
    --------
    >>> join_windows([0.2, 0.9, 0.4], [0, 0, 1], "max", 2).tolist()
    [0.9, 0.4]
    """
    rows = np.asarray(values, dtype=np.float64)
    begins = np.searchsorted(np.asarray(text), np.arange(texts))
    if how == "first":
        return rows[begins]
    if not texts:
        return rows
    if how == "max":
        return np.asarray(np.maximum.reduceat(rows, begins, axis=0))
    counts = np.diff(np.append(begins, len(rows))).astype(np.float64)
    sums = np.add.reduceat(rows, begins, axis=0)
    return np.asarray((sums.T / counts).T)
