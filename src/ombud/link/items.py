"""Books as items: clusters, their names, their sizes, and those that hold too much."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow.parquet as pq
from numpy.typing import NDArray

from ombud.errors import DataError
from ombud.files import read_plain
from ombud.link.clusters import NO_ISBN, Clusters, cluster_blocks, splitting_isbns
from ombud.link.isbn import extract_isbns, isbn_texts
from ombud.link.store import LinkTables, kinds_of_isbn

_BLOCK = 1 << 21
# Moves the 10-digit form of a number away from its 13-digit form.
_APART = 10**14


def read_exclusions(path: str | Path | None) -> NDArray[np.int64]:
    """Return the keys of the ISBNs in an exclusion file, sorted.

    It is text, one ISBN a line; what follows ``#`` is a remark.
    """
    if path is None:
        return np.empty(0, dtype=np.int64)
    file = Path(path)
    try:
        lines = read_plain(file).decode("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(file.name, [f"it cannot be read as a list of ISBNs: {error}"]) from None
    texts = [(n, line.partition("#")[0].strip()) for n, line in enumerate(lines, 1)]
    texts = [(n, text) for n, text in texts if text]
    found = extract_isbns(pl.Series([text for _, text in texts], dtype=pl.String))
    missed = sorted(set(range(len(texts))) - set(found["row"].to_list()))
    if missed:
        faults = [f"line {texts[row][0]}: {texts[row][1]!r:.60} is no ISBN" for row in missed[:20]]
        raise DataError(file.name, faults)
    return np.unique(found["isbn"].to_numpy())


def _nodes(tables: LinkTables) -> tuple[NDArray[np.int32], int]:
    """Return the node of each record: its work, or itself."""
    books = tables.scan("books").select("source", "work").collect()
    work = pl.when(pl.col("work").is_not_null()).then(
        pl.concat_str("source", "work", separator="\x1f")
    )
    codes = books.select(work).to_series().to_arrow().dictionary_encode()
    indices = codes.indices.to_numpy(zero_copy_only=False)
    lone = np.isnan(indices) if indices.dtype.kind == "f" else np.zeros(len(indices), dtype=bool)
    works = len(codes.dictionary)
    nodes = np.where(lone, 0, indices).astype(np.int32)
    nodes[lone] = works + np.arange(int(lone.sum()), dtype=np.int32)
    return nodes, works + int(lone.sum())


def _edges(
    tables: LinkTables,
    nodes: NDArray[np.int32],
    kinds: list[int],
    excluded: NDArray[np.int64],
    apart: bool = False,
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int32]]]:
    file = pq.ParquetFile(tables.folder / "isbns.parquet")
    for batch in file.iter_batches(_BLOCK, columns=["record", "isbn", "form", "kind"]):
        isbns = batch.column("isbn").to_numpy()
        keep = np.isin(batch.column("kind").to_numpy(), kinds)
        if len(excluded):
            keep &= ~np.isin(isbns, excluded)
        ends = nodes[batch.column("record").to_numpy()[keep]]
        isbns = isbns[keep]
        if apart:
            short = batch.column("form").to_numpy()[keep] == 10
            isbns = np.where(short & (isbns > 0), isbns + _APART, isbns)
        yield isbns, ends


def cluster_tables(
    tables: LinkTables, *, set_isbns: bool, cancelled: bool, excluded: NDArray[np.int64]
) -> dict[str, Any]:
    """Cluster all records; write `clusters`, `isbn_clusters`, `cluster_items`; return counts."""
    kinds = kinds_of_isbn(set_isbns, cancelled)
    nodes, count = _nodes(tables)
    found = cluster_blocks(count, _edges(tables, nodes, kinds, excluded))
    apart = cluster_blocks(count, _edges(tables, nodes, kinds, excluded, apart=True))
    clusters = found.nodes[nodes]
    tables.write(
        "clusters",
        pl.DataFrame(
            {"record": np.arange(len(nodes), dtype=np.uint32), "node": nodes, "cluster": clusters}
        ),
    )
    tables.write(
        "isbn_clusters", pl.DataFrame({"isbn": found.isbns, "cluster": found.isbn_clusters})
    )
    items = _name_clusters(tables, found)
    tables.write("cluster_items", items)
    sizes = items["n_isbns"] + items["n_records"]
    steps = [1, 2, 5, 10, 20, 50, 100, 1000]
    spread = {f"up to {n}": int((sizes <= n).sum()) for n in steps}
    return {
        "clusters": len(found),
        "isbns": len(found.isbns),
        "works_and_lone_records": count,
        "clusters_of_size": {**spread, "any": len(found)},
        "clusters_that_the_published_way_would_split": _differing(found, apart),
        "excluded_isbns": len(excluded),
    }


def _differing(ours: Clusters, apart: Clusters) -> int:
    """Count our clusters that fall apart when 10- and 13-digit forms are not merged."""
    pairs = np.unique(ours.nodes.astype(np.int64) * max(1, len(apart)) + apart.nodes)
    parts = np.bincount(pairs // max(1, len(apart)), minlength=len(ours))
    return int(np.count_nonzero(parts > 1))


def _name_clusters(tables: LinkTables, found: Clusters) -> pl.DataFrame:
    """Return `cluster`, its `item` (the smallest ISBN, or the id of a record), and its size."""
    none = NO_ISBN
    table = pl.DataFrame(
        {"cluster": np.arange(len(found), dtype=np.int32), "least": found.least}
    ).with_columns(n_isbns=np.bincount(found.isbn_clusters, minlength=len(found)).astype(np.uint32))
    members = tables.scan("clusters").group_by("cluster")
    counts = members.agg(
        n_records=pl.len().cast(pl.UInt32),
        n_works=pl.col("node").n_unique().cast(pl.UInt32),
        first=pl.col("record").min(),
    ).collect(engine="streaming")
    table = table.join(counts, on="cluster", how="left", maintain_order="left")
    bare = table.filter(pl.col("least") == none).select("cluster", record="first")
    books = tables.scan("books").join(bare.lazy(), on="record", how="inner")
    ids = books.select(
        "cluster", own=pl.format("{}:{}", pl.col("source"), pl.coalesce("work", "key", pl.lit("")))
    ).collect(engine="streaming")
    # Two records without ISBN and with the same key (or none) would share a name.
    again = pl.len().over("own") > 1
    ids = ids.with_columns(
        own=pl.when(again).then(pl.format("{}#{}", "own", "cluster")).otherwise("own")
    )
    table = table.join(ids, on="cluster", how="left", maintain_order="left")
    item = pl.when(pl.col("least") == none).then("own").otherwise(isbn_texts(pl.col("least")))
    return table.select("cluster", "n_isbns", "n_records", "n_works", item=item)


def largest_clusters(
    tables: LinkTables, *, excluded: NDArray[np.int64], kinds: list[int], count: int = 20
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the largest clusters, and for each of them the ISBNs whose removal splits it."""
    size = pl.col("n_isbns") + pl.col("n_records")
    sizes = tables.scan("cluster_items").filter(pl.col("n_records") > 1)
    ranked = sizes.with_columns(size=size).sort("size", "item", descending=[True, False])
    top = ranked.head(count).collect()
    chosen = tables.scan("clusters").join(top.select("cluster").lazy(), on="cluster", how="semi")
    usable = tables.scan("isbns").filter(pl.col("kind").is_in(kinds)).join(chosen, on="record")
    edges = usable.select("cluster", "isbn", "node").unique().collect(engine="streaming")
    edges = edges.filter(~pl.col("isbn").is_in(excluded.tolist()))
    parts = [
        splitting_isbns(own).with_columns(item=pl.lit(item))
        for cluster, item in top.select("cluster", "item").rows()
        if (own := edges.filter(pl.col("cluster") == cluster)).height
    ]
    schema = {"isbn": pl.String, "pieces": pl.Int64, "cut_off": pl.Int64, "item": pl.String}
    splits = pl.concat([pl.DataFrame(schema=schema), *parts])
    return top, splits
