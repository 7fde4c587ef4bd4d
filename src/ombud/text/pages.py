"""Train, validation and test parts that share no page and no near duplicates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from ombud.errors import PlanError


def assign_splits(
    pages: Sequence[Any],
    *,
    shares: Mapping[str, float],
    repeats: Sequence[int] | NDArray[np.int64] | None = None,
    seed: int = 0,
) -> list[str]:
    """Return the part of every text, so that texts that belong together are in one part.

    Texts belong together when they are of one page, or when one nearly repeats the other, or by
    any chain of these. Each such group goes to a part by a hash of its smallest page and the seed:
    adding texts moves no other group, and shares are met on average, not exactly.

    Parameters
    ----------
    pages
        The page of each text.
    shares
        The parts and their shares, which add up to 1.
    repeats
        For each text the index of a text that it nearly repeats, or -1.
    seed
        Changes the assignment.

    Examples
    --------
    >>> parts = assign_splits(["a", "b", "a", "c"], shares={"train": 0.5, "test": 0.5})
    >>> parts[0] == parts[2]
    True
    """
    if not shares or any(share < 0 for share in shares.values()):
        raise PlanError("shares of splits must be zero or more, with at least one part")
    if abs(sum(shares.values()) - 1) > 1e-6:
        raise PlanError(f"shares of splits add up to {sum(shares.values()):g}; expected 1")
    if not len(pages):
        return []
    names = [str(page) for page in pages]
    order, codes = np.unique(np.array(names, dtype=object), return_inverse=True)
    edges_from, edges_to = codes, codes
    if repeats is not None:
        given = np.asarray(repeats, dtype=np.int64)
        linked = np.flatnonzero(given >= 0)
        edges_from = np.concatenate((codes, codes[linked]))
        edges_to = np.concatenate((codes, codes[given[linked]]))
    graph = sparse.coo_array(
        (np.ones(len(edges_from), dtype=np.int8), (edges_from, edges_to)),
        shape=(len(order), len(order)),
    )
    _, group = connected_components(graph, directed=False)
    # Pages are sorted, so the first of a group is its smallest.
    _, smallest = np.unique(group, return_index=True)
    edges = np.cumsum(list(shares.values()))[:-1]
    parts = list(shares)
    place = [_uniform(str(order[index]), seed) for index in smallest]
    of_group = np.searchsorted(edges, place, side="right")
    return [parts[of_group[group[code]]] for code in codes]


def _uniform(name: str, seed: int) -> float:
    key = f"{seed}\x1f{name}".encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(key, digest_size=8).digest(), "big") / 2**64
