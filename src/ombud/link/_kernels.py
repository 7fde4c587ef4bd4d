"""Loops over edges, compiled where numba is installed; plain Python (slow, same answers) without.

Every kernel of this package stands in this file: numba caches by file.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

COMPILED = find_spec("numba") is not None
"""Whether the kernels are compiled."""

EMPTY = np.int64(np.iinfo(np.int64).min)
"""The key of a free slot of the table of ISBNs."""

Function = TypeVar("Function", bound=Callable[..., Any])

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


def _kernel(function: Function) -> Function:
    if not COMPILED:
        return function
    import numba

    njit: Any = numba.njit
    try:
        compiled: Function = njit(cache=True, nogil=True, error_model="numpy")(function)
    except RuntimeError:  # numba found no folder that it may write to
        compiled = njit(nogil=True, error_model="numpy")(function)
    return compiled


@_kernel
def _root(parent: NDArray[np.int32], node: int) -> int:
    while parent[node] != node:
        parent[node] = parent[parent[node]]
        node = parent[node]
    return node


@_kernel
def _union(parent: NDArray[np.int32], a: int, b: int) -> None:
    """Join two sets under the smaller root, so that labels do not depend on the order of edges."""
    a = _root(parent, a)
    b = _root(parent, b)
    if a < b:
        parent[b] = a
    elif b < a:
        parent[a] = b


@_kernel
def insert_edges(
    keys: NDArray[np.int64],
    nodes: NDArray[np.int32],
    parent: NDArray[np.int32],
    isbns: NDArray[np.int64],
    records: NDArray[np.int32],
    shift: int,
) -> int:
    """Join each record with the first record that had the same ISBN; return how many are new."""
    mask = len(keys) - 1
    new = 0
    for edge in range(len(isbns)):
        isbn = isbns[edge]
        slot = np.int64((np.uint64(isbn) * _MULTIPLIER) >> np.uint64(shift))
        while keys[slot] != isbn and keys[slot] != EMPTY:
            slot = (slot + 1) & mask
        if keys[slot] == isbn:
            _union(parent, nodes[slot], records[edge])
        else:
            keys[slot] = isbn
            nodes[slot] = records[edge]
            new += 1
    return new


@_kernel
def rehash(
    old_keys: NDArray[np.int64],
    old_nodes: NDArray[np.int32],
    keys: NDArray[np.int64],
    nodes: NDArray[np.int32],
    shift: int,
) -> None:
    """Move every entry of a table into a larger one."""
    mask = len(keys) - 1
    for place in range(len(old_keys)):
        isbn = old_keys[place]
        if isbn == EMPTY:
            continue
        slot = np.int64((np.uint64(isbn) * _MULTIPLIER) >> np.uint64(shift))
        while keys[slot] != EMPTY:
            slot = (slot + 1) & mask
        keys[slot] = isbn
        nodes[slot] = old_nodes[place]


@_kernel
def label_components(parent: NDArray[np.int32]) -> int:
    """Replace every parent by the number of its component, in the order of their smallest nodes.

    Roots are the smallest nodes of their sets, so one pass from the left finds each root's number
    before anything that points to it.
    """
    count = 0
    for node in range(len(parent)):
        above = parent[node]
        if above == node:
            parent[node] = count
            count += 1
        else:
            parent[node] = parent[above]
    return count


@_kernel
def smallest_key(
    keys: NDArray[np.int64], labels: NDArray[np.int32], least: NDArray[np.int64]
) -> None:
    """Find the smallest key of each component; negative ones (no 13-digit form) come last."""
    for place in range(len(keys)):
        label = labels[place]
        key = keys[place]
        if np.uint64(key) < np.uint64(least[label]):
            least[label] = key


@_kernel
def cut_points(
    starts: NDArray[np.int64], neighbours: NDArray[np.int32]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return for each node of a connected graph the pieces it leaves, and the largest of them.

    Tarjan's depth-first search, without recursion. A node that leaves one piece is no articulation
    point.
    """
    n = len(starts) - 1
    order = np.full(n, -1, dtype=np.int64)
    low = np.zeros(n, dtype=np.int64)
    size = np.ones(n, dtype=np.int64)
    parent = np.full(n, -1, dtype=np.int64)
    following = starts[:-1].copy()
    pieces = np.zeros(n, dtype=np.int64)
    largest = np.zeros(n, dtype=np.int64)
    cut_off = np.zeros(n, dtype=np.int64)
    stack = np.zeros(n, dtype=np.int64)
    if n == 0:
        return pieces, largest
    clock = 0
    height = 1
    order[0] = 0
    while height > 0:
        node = stack[height - 1]
        if following[node] < starts[node + 1]:
            other = np.int64(neighbours[following[node]])
            following[node] += 1
            if order[other] < 0:
                clock += 1
                order[other] = clock
                low[other] = clock
                parent[other] = node
                stack[height] = other
                height += 1
            elif other != parent[node] and order[other] < low[node]:
                low[node] = order[other]
            continue
        height -= 1
        above = parent[node]
        if above >= 0:
            size[above] += size[node]
            if low[node] < low[above]:
                low[above] = low[node]
            if low[node] >= order[above]:
                pieces[above] += 1
                cut_off[above] += size[node]
                if size[node] > largest[above]:
                    largest[above] = size[node]
    for node in range(n):
        if parent[node] >= 0:
            rest = n - 1 - cut_off[node]
            pieces[node] += 1
            if rest > largest[node]:
                largest[node] = rest
    return pieces, largest
