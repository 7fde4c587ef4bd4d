"""Components and articulation points against networkx, scipy and brute force."""

from __future__ import annotations

import networkx as nx
import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ombud.link import _kernels as kernels
from ombud.link.clusters import Clusterer, splitting_isbns
from ombud.link.isbn import isbn_text

EDGES = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 9)), max_size=40)


def graph_of(edges: list[tuple[int, int]], nodes: int) -> nx.Graph:
    graph = nx.Graph()
    graph.add_nodes_from(("node", n) for n in range(nodes))
    graph.add_edges_from((("isbn", i), ("node", n)) for i, n in edges)
    return graph


def partition(labels: list[int]) -> set[frozenset[int]]:
    groups: dict[int, set[int]] = {}
    for node, label in enumerate(labels):
        groups.setdefault(label, set()).add(node)
    return {frozenset(g) for g in groups.values()}


@pytest.mark.parametrize("compiled", [True, False])
@given(edges=EDGES, size=st.integers(1, 5))
def test_components_are_those_of_networkx(
    compiled: bool, edges: list[tuple[int, int]], size: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels, "COMPILED", compiled and kernels.COMPILED)
        clusterer = Clusterer(10)
        for low in range(0, len(edges), size):
            part = np.array(edges[low : low + size], dtype=np.int64).reshape(-1, 2)
            # ISBN keys may be negative.
            clusterer.add(3 * part[:, 0] - 20, part[:, 1])
        found = clusterer.finish()
    expected = {
        frozenset(n for kind, n in component if kind == "node")
        for component in nx.connected_components(graph_of(edges, 10))
    }
    assert partition(found.nodes.tolist()) == expected
    # Clusters are numbered by their smallest node.
    first = [found.nodes.tolist().index(c) for c in range(len(found))]
    assert first == sorted(first)
    assert found.isbns.tolist() == sorted({3 * i - 20 for i, _ in edges})
    for isbn, cluster in zip(found.isbns, found.isbn_clusters, strict=True):
        ends = {n for i, n in edges if 3 * i - 20 == isbn}
        assert {int(found.nodes[n]) for n in ends} == {int(cluster)}
    for cluster, least in enumerate(found.least):
        own = found.isbns[found.isbn_clusters == cluster].astype(np.uint64)
        assert int(np.uint64(least)) == (int(own.min()) if len(own) else 2**64 - 1)


def test_a_table_that_grows_many_times() -> None:
    rng = np.random.default_rng(5)
    n = 300_000
    nodes = rng.permutation(n).astype(np.int32)
    isbns = 9_780_000_000_000 + (nodes.astype(np.int64) // 3)
    clusterer = Clusterer(n)
    for part in np.array_split(np.arange(n), 7):
        clusterer.add(isbns[part], nodes[part])
    found = clusterer.finish()
    assert len(found) == n // 3
    assert (found.nodes == np.arange(n) // 3).all()


def test_hand_worked_articulation_points() -> None:
    # Records 0 and 1 share ISBN 1; 1 and 2 share both 2 and 3; 2 and 3 share 4.
    pairs = [(1, 0), (1, 1), (2, 1), (2, 2), (3, 1), (3, 2), (4, 2), (4, 3)]
    edges = pl.DataFrame(pairs, schema=["isbn", "node"], orient="row")
    found = splitting_isbns(edges)
    assert found.rows() == [(isbn_text(1), 2, 1), (isbn_text(4), 2, 1)]


@given(edges=st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), min_size=1, max_size=30))
def test_articulation_points_are_those_of_networkx(edges: list[tuple[int, int]]) -> None:
    graph = graph_of(edges, 0)
    graph = graph.subgraph(max(nx.connected_components(graph), key=len))
    pairs = [(i, n) for i, n in edges if ("isbn", i) in graph]
    found = splitting_isbns(pl.DataFrame(pairs, schema=["isbn", "node"], orient="row"))
    expected = {i for kind, i in nx.articulation_points(graph) if kind == "isbn"}
    assert {int(isbn) for isbn in found["isbn"]} == expected
    for isbn, pieces, cut_off in found.rows():
        left = graph.subgraph(set(graph) - {("isbn", int(isbn))})
        sizes = sorted(len(c) for c in nx.connected_components(left))
        assert (pieces, cut_off) == (len(sizes), sum(sizes) - sizes[-1])


def test_too_many_nodes_are_refused() -> None:
    with pytest.raises(ValueError, match="at most"):
        Clusterer(2**31)
