"""Sorting in place, written out: numba takes 18 CPU seconds to compile numpy's own within a kernel.

Values must not be NaN. Equal values cannot be told apart, so the result is numpy's to the bit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ombud.systems.recommenders.kernels._jit import kernel

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
