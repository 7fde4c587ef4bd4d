"""Linking: components against networkx and scipy, MARC against pymarc, and the size of everything.

    python benchmarks/_authors_link.py            full size, with 30M editions and 100M edges
    python benchmarks/_authors_link.py --quick    a hundredth of them; 20 CPU s

Every case runs in a process of its own on the same generated data. `clustering`: edges of a graph
whose two sides are numbered already, so that scipy may begin at once; its CPU time includes the
building of the matrix, networkx's that of the graph. `marc`: binary records with the fields of the
real samples; both readers give every field with indicators and subfields (`marc_all_fields`) and
the fields that linking needs (`marc`); the texts are compared. `huge`: Parquet tables of editions
and of ISBN-record edges, read in blocks: the edges alone, and all that building a link folder does
with them.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from _isolated import finish, main_of_case, measure

SEED = 20261116
LINK_TAGS = ("008", "020", "100", "700")


def edges_of(options: Mapping[str, Any], block: int = 0, blocks: int = 1) -> tuple[Any, ...]:
    """Return isbn and record numbers: small books, some of many editions, a few chains.

    Books are contiguous ranges; a fixed permutation (multiplication by an odd number) scatters
    both sides, so that nothing profits from the order.
    """
    editions, edges = options["editions"], options["edges"]
    rng = np.random.default_rng([SEED, block])
    low = edges * block // blocks
    high = edges * (block + 1) // blocks
    edge = np.arange(low, high, dtype=np.int64)
    record = edge * editions // edges
    # 1.5 numbers an edition, shared with neighbours of the same book.
    near = rng.integers(-2, 3, len(edge))
    isbn = (record * 3 // 2) + near
    chained = rng.random(len(edge)) < 0.01
    isbn[chained] += rng.integers(-40, 41, int(chained.sum()))
    total = isbns_in(options)
    isbn = np.clip(isbn, 0, total - 1)
    isbn = (isbn * 2_654_435_761) % total
    record = (record * 2_654_435_761) % editions
    return isbn, record.astype(np.int32)


def isbns_in(options: Mapping[str, Any]) -> int:
    return int(options["editions"] * 3 // 2)


def clustering_ombud(options: Mapping[str, Any]) -> dict[str, Any]:
    from ombud.link.clusters import Clusterer

    def cluster(isbn: Any, record: Any) -> Any:
        clusterer = Clusterer(options["editions"])
        clusterer.add(isbn, record)
        return clusterer.finish()

    isbn, record = edges_of(options)
    cluster(isbn[:2], record[:2])  # compiles, or reads the cache
    started = time.process_time()
    found = cluster(isbn, record)
    spent = time.process_time() - started
    # The peers' graph has a node for every number, whether an edge has it or not.
    return {"cpu": spent, "components": len(found) + isbns_in(options) - len(found.isbns)}


def clustering_scipy(options: Mapping[str, Any]) -> dict[str, Any]:
    from scipy import sparse
    from scipy.sparse import csgraph

    isbn, record = edges_of(options)
    left = isbn.astype(np.int32)
    first, second = isbns_in(options), options["editions"]
    started = time.process_time()
    ends = (left, record + np.int32(first))
    shape = (first + second, first + second)
    graph = sparse.coo_array((np.ones(len(left), np.int8), ends), shape=shape).tocsr()
    count, _ = csgraph.connected_components(graph, directed=False)
    return {"cpu": time.process_time() - started, "components": int(count)}


def clustering_networkx(options: Mapping[str, Any]) -> dict[str, Any]:
    import networkx as nx

    isbn, record = edges_of(options)
    first, second = isbns_in(options), options["editions"]
    started = time.process_time()
    graph = nx.Graph()
    graph.add_nodes_from(range(first + second))
    graph.add_edges_from(
        zip(isbn.tolist(), (record.astype(np.int64) + first).tolist(), strict=True)
    )
    count = nx.number_connected_components(graph)
    return {"cpu": time.process_time() - started, "components": count}


def write_marc(options: Mapping[str, Any]) -> dict[str, Any]:
    """Write records with about 25 fields each, as the real samples have; a tenth with accents."""
    rng = np.random.default_rng(SEED)
    words = ["history", "of", "the", "people", "and", "their", "books", "volume", "New", "York"]
    accents = ["García", "Brontë", "Dvořák", "Åström"]
    with Path(options["path"]).open("wb") as file:
        for number in range(options["records"]):
            picked = [words[i] for i in rng.integers(0, len(words), 12)]
            name = accents[number % 4] if number % 10 == 0 else "Smith"
            title = " ".join(picked)
            fields: list[tuple[str, str]] = [
                ("001", f"rec{number:08d}"),
                ("005", "20040112120000.0"),
                ("008", "040112s2004    nyu           000 0 eng  "),
                ("010", f"  \x1fa{number:09d}"),
                ("020", f"  \x1fa{number:09d}X (pbk.) :\x1fc$12.95"),
                ("040", "  \x1faDLC\x1fcDLC\x1fdDLC"),
                ("050", "00\x1faPR6068.O93\x1fbH37 2004"),
                ("100", f"1 \x1fa{name}, John {number},\x1fd1947-"),
                ("245", f"10\x1fa{title} /\x1fcby John {name}."),
                ("260", "  \x1faNew York :\x1fbHarper,\x1fc2004."),
                ("300", "  \x1fa320 p. :\x1fbill. ;\x1fc24 cm."),
                *((f"{tag}", f" 0\x1fa{title}\x1fxHistory.") for tag in [500, *([650] * 9), 655]),
                ("700", f"1 \x1faJones, {name}."),
                ("852", "  \x1faShelf\x1fb2"),
            ]
            directory, body = b"", b""
            for tag, text in fields:
                content = text.encode() + b"\x1e"
                directory += b"%s%04d%05d" % (tag.encode(), len(content), len(body))
                body += content
            base = 24 + len(directory) + 1
            head = b"%05dnam a22%05d a 4500" % (base + len(body) + 1, base)
            file.write(head + directory + b"\x1e" + body + b"\x1d")
    return {}


def _plain_ombud(path: str, every: bool) -> Iterator[Any]:
    from ombud.link.marc import read_marc
    from ombud.link.problems import Problems

    tags = None if every else frozenset(LINK_TAGS)
    for record in read_marc(path, Problems(), tags=tags):
        wanted = dict.fromkeys(record.tags()) if every else LINK_TAGS
        yield [(t, record.control(t) if t < "010" else record.fields(t)) for t in wanted]


def _plain_pymarc(path: str, every: bool) -> Iterator[Any]:
    import pymarc

    with Path(path).open("rb") as stream:
        for record in pymarc.MARCReader(stream):
            assert record is not None
            wanted = dict.fromkeys(f.tag for f in record.fields) if every else LINK_TAGS
            row: list[Any] = []
            for tag in wanted:
                fields = record.get_fields(tag)
                if tag < "010":
                    row.append((tag, fields[0].data))
                    continue
                row.append(
                    (
                        tag,
                        [
                            ("".join(f.indicators), [(s.code, s.value) for s in f.subfields])
                            for f in fields
                        ],
                    )
                )
            yield row


def _marc(read: Callable[[str, bool], Iterator[Any]], options: Mapping[str, Any]) -> dict[str, Any]:
    """Time one reader, then read again for a digest of all texts."""
    next(read(options["path"], True))  # imports
    started = time.process_time()
    count = sum(1 for _ in read(options["path"], options["all_fields"]))
    cpu = time.process_time() - started
    digest = blake2b(digest_size=8)
    for row in read(options["path"], options["all_fields"]):
        digest.update(repr(row).encode())
    return {"cpu": cpu, "records": count, "digest": digest.hexdigest()}


def marc_ombud(options: Mapping[str, Any]) -> dict[str, Any]:
    return _marc(_plain_ombud, options)


def marc_pymarc(options: Mapping[str, Any]) -> dict[str, Any]:
    return _marc(_plain_pymarc, options)


def write_tables(options: Mapping[str, Any]) -> dict[str, Any]:
    """Write the tables `books` and `isbns` of a link folder, block by block.

    Three of four editions belong to a work, which is that of their neighbours.
    """
    import polars as pl
    import pyarrow.parquet as pq

    folder = Path(options["path"])
    folder.mkdir()
    editions = options["editions"]
    back = pow(2_654_435_761, -1, editions)
    blocks = max(1, options["edges"] // 4_000_000)
    writers: dict[str, pq.ParquetWriter] = {}

    def write(name: str, frame: pl.DataFrame) -> None:
        table = frame.to_arrow()
        if name not in writers:
            path = folder / f"{name}.parquet"
            writers[name] = pq.ParquetWriter(path, table.schema, compression="zstd")
        writers[name].write_table(table)

    for block in range(blocks):
        isbn, record = edges_of(options, block, blocks)
        write(
            "isbns",
            pl.DataFrame(
                {
                    "record": record.astype(np.uint32),
                    "isbn": 9_780_000_000_000 + isbn * 7,
                    "form": np.full(len(isbn), 13, dtype=np.uint8),
                    "kind": np.zeros(len(isbn), dtype=np.uint8),
                }
            ),
        )
        own = np.arange(editions * block // blocks, editions * (block + 1) // blocks)
        place = pl.Series(own * back % editions)
        books = pl.DataFrame({"record": own.astype(np.uint32), "place": place})
        work = pl.format("/works/OL{}W", pl.col("place") // 3)
        write(
            "books",
            books.select(
                "record",
                source=pl.lit("openlibrary"),
                key=pl.format("/books/OL{}M", "record"),
                work=pl.when(pl.col("place") % 4 > 0).then(work),
            ),
        )
    for writer in writers.values():
        writer.close()
    return {}


def huge_edges(options: Mapping[str, Any]) -> dict[str, Any]:
    """Cluster the edges alone, without works."""
    import pyarrow.parquet as pq

    from ombud.link.clusters import Clusterer

    file = pq.ParquetFile(Path(options["path"]) / "isbns.parquet")
    started = time.process_time()
    clusterer = Clusterer(options["editions"])
    for batch in file.iter_batches(1 << 21, columns=["isbn", "record"]):
        clusterer.add(batch.column("isbn").to_numpy(), batch.column("record").to_numpy())
    found = clusterer.finish()
    cpu = time.process_time() - started
    largest = int(np.bincount(found.nodes).max())
    return {"cpu": cpu, "clusters": len(found), "isbns": len(found.isbns), "largest": largest}


def huge_tables(options: Mapping[str, Any]) -> dict[str, Any]:
    """Do what ``ombud link build`` does: works, clusters both ways, names of items, tables."""
    from ombud.link.items import cluster_tables
    from ombud.link.store import LinkTables

    started = time.process_time()
    facts = cluster_tables(
        LinkTables(Path(options["path"])),
        set_isbns=True,
        cancelled=False,
        excluded=np.empty(0, dtype=np.int64),
    )
    return {"cpu": time.process_time() - started, "clusters": facts["clusters"]}


CASES = {
    "clustering_ombud": clustering_ombud,
    "clustering_scipy": clustering_scipy,
    "clustering_networkx": clustering_networkx,
    "write_marc": write_marc,
    "marc_ombud": marc_ombud,
    "marc_pymarc": marc_pymarc,
    "write_tables": write_tables,
    "huge_edges": huge_edges,
    "huge_tables": huge_tables,
}


def sizes(quick: bool) -> dict[str, dict[str, int]]:
    if quick:
        return {
            "clustering": {"editions": 100_000, "edges": 333_000},
            "marc": {"records": 5_000},
            "huge": {"editions": 300_000, "edges": 1_000_000},
        }
    return {
        "clustering": {"editions": 600_000, "edges": 2_000_000},
        "marc": {"records": 50_000},
        "huge": {"editions": 30_000_000, "edges": 100_000_000},
    }


def linking_figures(quick: bool, script: str = __file__) -> dict[str, float]:
    """Run all cases and return the figures.

    Parameters
    ----------
    quick
        Whether to run the quick form.
    script
        The benchmark that calls; it must hand ``--case`` to `main_of_case` with these `CASES`.
    """
    figures: dict[str, float] = {}
    wanted = sizes(quick)
    ours = measure(script, "clustering_ombud", wanted["clustering"])
    for peer in ("scipy", "networkx"):
        theirs = measure(script, f"clustering_{peer}", wanted["clustering"])
        if theirs["components"] != ours["components"]:
            raise RuntimeError(f"{peer} finds {theirs['components']} components, ombud {ours}")
        figures[f"clustering_vs_{peer}"] = theirs["cpu"] / ours["cpu"]
        print(f"  clustering: {figures[f'clustering_vs_{peer}']:.1f} times the CPU time for {peer}")
    with tempfile.TemporaryDirectory() as folder:
        options: dict[str, Any] = {**wanted["marc"], "path": str(Path(folder) / "books.mrc")}
        measure(script, "write_marc", options)
        for name, every in (("marc", False), ("marc_all_fields", True)):
            asked = {**options, "all_fields": every}
            ours = measure(script, "marc_ombud", asked)
            theirs = measure(script, "marc_pymarc", asked)
            if ours["digest"] != theirs["digest"]:
                raise RuntimeError("pymarc and ombud read different texts")
            figures[f"{name}_vs_pymarc"] = theirs["cpu"] / ours["cpu"]
            figures[f"{name}_records_per_cpu_second"] = ours["records"] / ours["cpu"]
            print(f"  {name}: {figures[f'{name}_vs_pymarc']:.1f} times the CPU time for pymarc")
        options = {**wanted["huge"], "path": str(Path(folder) / "tables")}
        measure(script, "write_tables", options)
        for case in ("huge_edges", "huge_tables"):
            huge = measure(script, case, options)
            print(f"  {case}: {huge}")
            figures[f"{case}_cpu"] = huge["cpu"]
            figures[f"{case}_mib"] = huge["mib"]
            figures[f"{case}_clusters"] = huge["clusters"]
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a hundredth of the editions")
    finish("authors_link", linking_figures(parser.parse_args().quick))


if __name__ == "__main__":
    if "--case" in sys.argv[1:2]:
        main_of_case(CASES)
    else:
        main()
