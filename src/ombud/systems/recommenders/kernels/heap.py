"""The best of many, in a binary heap with the worst on top.

Worse means a lower value, or the same value and a higher code: one strict order, so the content of
a heap does not depend on the order in which things were offered.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ombud.systems.recommenders.kernels._jit import kernel


@kernel()
def _sink(
    value: NDArray[np.float32], code: NDArray[np.int32], size: int, new: np.float32, item: int
) -> None:
    """Put an item in the place of the worst of a heap of some size."""
    k = 0
    while True:
        child = 2 * k + 1
        if child >= size:
            break
        other = child + 1
        if other < size and (
            value[other] < value[child]
            or (value[other] == value[child] and code[other] > code[child])
        ):
            child = other
        if value[child] > new or (value[child] == new and code[child] < item):
            break
        value[k] = value[child]
        code[k] = code[child]
        k = child
    value[k] = new
    code[k] = item


@kernel()
def offer(
    value: NDArray[np.float32], code: NDArray[np.int32], held: int, new: np.float32, item: int
) -> int:
    """Offer an item to a heap; return how many it holds now."""
    size = len(value)
    if held < size:
        k = held
        while k > 0:
            parent = (k - 1) >> 1
            if value[parent] < new or (value[parent] == new and code[parent] > item):
                break
            value[k] = value[parent]
            code[k] = code[parent]
            k = parent
        value[k] = new
        code[k] = item
        return held + 1
    if new > value[0] or (new == value[0] and item < code[0]):
        _sink(value, code, size, new, item)
    return held


@kernel()
def write_sorted(
    value: NDArray[np.float32],
    code: NDArray[np.int32],
    held: int,
    codes: NDArray[np.int32],
    values: NDArray[np.float32],
    empty: np.float32,
) -> None:
    """Write a heap's content, best first, then -1 and ``empty``; the heap is used up."""
    for k in range(held, len(codes)):
        codes[k] = -1
        values[k] = empty
    for last in range(held - 1, -1, -1):
        codes[last] = code[0]
        values[last] = value[0]
        _sink(value, code, last, value[last], code[last])
