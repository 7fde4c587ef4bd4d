"""Which ISBNs and records belong to one book: connected components, at any size.

The graph has ISBNs on one side and records on the other; a record that belongs to a work is
represented by the work alone. Edges are read in blocks and never held: what stays in memory is one
number a record and one table of the distinct ISBNs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csgraph

from ombud.link.isbn import isbn_texts

_FIRST = 1 << 16

NO_ISBN = -1
"""No number has this key, and read as unsigned it is larger than all of them."""


def _kernels() -> Any:
    # Numba takes a second to import, which an audit that links nothing need not pay.
    from ombud.link import _kernels as kernels

    return kernels


@dataclass(frozen=True, eq=False)
class Clusters:
    """The components of a graph of ISBNs and nodes (records or works)."""

    # The cluster of each node; clusters are numbered by their smallest node.
    nodes: NDArray[np.int32]
    isbns: NDArray[np.int64]  # the distinct ISBN keys, sorted
    isbn_clusters: NDArray[np.int32]  # the cluster of each of them
    least: NDArray[np.int64]  # the smallest ISBN of each cluster, or `NO_ISBN` where it has none

    def __len__(self) -> int:
        return len(self.least)


class Clusterer:
    """Joins records that share an ISBN, block by block.

    Examples
    --------
    >>> clusterer = Clusterer(3)
    >>> clusterer.add(np.array([111, 222, 222]), np.array([0, 1, 2]))
    >>> clusterer.finish().nodes.tolist()
    [0, 1, 1]
    """

    def __init__(self, nodes: int) -> None:
        if nodes >= 2**31:
            raise ValueError(f"{nodes:,} records and works; at most {2**31 - 1:,} can be clustered")
        self._parent = np.arange(nodes, dtype=np.int32)
        self._keys = np.full(_FIRST, _kernels().EMPTY, dtype=np.int64)
        self._nodes = np.zeros(_FIRST, dtype=np.int32)
        self._used = 0
        self._blocks: list[tuple[NDArray[np.int64], NDArray[np.int32]]] = []

    @property
    def _shift(self) -> int:
        return 64 - int(len(self._keys)).bit_length() + 1

    def add(self, isbns: NDArray[np.int64], nodes: NDArray[np.integer[Any]]) -> None:
        """Add edges: the ISBN keys and the nodes they stand in."""
        keys = np.ascontiguousarray(isbns, dtype=np.int64)
        ends = np.ascontiguousarray(nodes, dtype=np.int32)
        if not _kernels().COMPILED:
            self._blocks.append((keys, ends))
            return
        # Half of the slots stay free at worst; a block is cut so that it cannot fill the table.
        done = 0
        while done < len(keys):
            room = int(0.7 * len(self._keys)) - self._used
            if room < min(len(keys) - done, len(self._keys) // 8):
                self._grow()
                continue
            part = slice(done, done + room)
            self._used += int(
                _kernels().insert_edges(
                    self._keys, self._nodes, self._parent, keys[part], ends[part], self._shift
                )
            )
            done += room

    def _grow(self) -> None:
        keys = np.full(2 * len(self._keys), _kernels().EMPTY, dtype=np.int64)
        nodes = np.zeros(len(keys), dtype=np.int32)
        old_keys, old_nodes = self._keys, self._nodes
        self._keys, self._nodes = keys, nodes
        _kernels().rehash(old_keys, old_nodes, keys, nodes, self._shift)

    def finish(self) -> Clusters:
        """Return the components."""
        if not _kernels().COMPILED:
            return self._finish_with_scipy()
        count = int(_kernels().label_components(self._parent))
        labels, self._parent = self._parent, np.empty(0, dtype=np.int32)
        used = np.flatnonzero(self._keys != _kernels().EMPTY)
        isbns, firsts = self._keys[used], self._nodes[used]
        self._keys, self._nodes = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int32)
        del used
        order = np.argsort(isbns)
        isbns = isbns[order]
        firsts = labels[firsts[order]]
        least = np.full(count, NO_ISBN, dtype=np.int64)
        _kernels().smallest_key(isbns, firsts, least)
        return Clusters(labels, isbns, firsts, least)

    def _finish_with_scipy(self) -> Clusters:
        keys = np.concatenate([k for k, _ in self._blocks] or [np.empty(0, np.int64)])
        ends = np.concatenate([n for _, n in self._blocks] or [np.empty(0, np.int32)])
        isbns, codes = np.unique(keys, return_inverse=True)
        n = len(self._parent)
        graph = sparse.coo_array(
            (np.ones(len(ends), np.int8), (ends, codes + n)), shape=(n + len(isbns),) * 2
        )
        _, found = csgraph.connected_components(graph, directed=False)
        # Numbered by their smallest node, as the kernels do.
        _, first, labels = np.unique(found[:n], return_index=True, return_inverse=True)
        rank = np.empty(len(first), dtype=np.int32)
        rank[np.argsort(first)] = np.arange(len(first), dtype=np.int32)
        nodes = rank[labels].astype(np.int32)
        isbn_clusters = np.empty(len(isbns), dtype=np.int32)
        isbn_clusters[codes] = nodes[ends]
        least = np.full(len(first), NO_ISBN, dtype=np.int64)
        order = np.argsort(isbns.astype(np.uint64))[::-1]
        least[isbn_clusters[order]] = isbns[order]
        return Clusters(nodes, isbns, isbn_clusters, least)


def splitting_isbns(edges: pl.DataFrame) -> pl.DataFrame:
    """Return the ISBNs whose removal splits one cluster, those that cut off most first.

    `edges` has `isbn` (key) and `node`, of one cluster.

    Returns
    -------
    polars.DataFrame
        `isbn` (text), `pieces`, and `cut_off`: how many records, works and ISBNs would no longer
        hang together with the largest piece.
    """
    distinct = edges.select("isbn", "node").unique()
    isbns, left = np.unique(distinct["isbn"].to_numpy(), return_inverse=True)
    nodes, right = np.unique(distinct["node"].to_numpy(), return_inverse=True)
    total = len(isbns) + len(nodes)
    ends = np.concatenate([left, right + len(isbns)]), np.concatenate([right + len(isbns), left])
    graph = sparse.coo_array((np.ones(2 * len(left), np.int8), ends), shape=(total, total)).tocsr()
    starts = graph.indptr.astype(np.int64)
    pieces, largest = _kernels().cut_points(starts, graph.indices.astype(np.int32))
    found = pl.DataFrame(
        {
            "isbn": isbns,
            "pieces": pieces[: len(isbns)],
            "cut_off": total - 1 - largest[: len(isbns)],
        }
    )
    found = found.filter(pl.col("pieces") > 1).sort(["cut_off", "isbn"], descending=[True, False])
    return found.with_columns(isbn=isbn_texts(pl.col("isbn")))


def cluster_blocks(
    nodes: int, blocks: Iterable[tuple[NDArray[np.int64], NDArray[np.integer[Any]]]]
) -> Clusters:
    """Cluster blocks of edges one after the other."""
    clusterer = Clusterer(nodes)
    for isbns, ends in blocks:
        clusterer.add(isbns, ends)
    return clusterer.finish()
