"""Rows of an audit in blocks, sorted into them on disk."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from ombud.audits.backends.block_texts import tagged_members, with_clusters
from ombud.audits.backends.tables import (
    GROUP_TABLES,
    Found,
    Tables,
    checked_members,
    checked_values,
    plain_batch,
    refuse_missing,
    tagger_members,
)
from ombud.data.lake import (
    BlockWriter,
    block_of,
    blocks_for,
    distinct_of,
    read_block,
)
from ombud.errors import PlanError
from ombud.files import open_files, read_json, write_json, write_parquet
from ombud.systems.base import Progress

_MARKER = "sorted.json"
_ROWS_IN_BLOCK = {"interactions": 4_000_000, "texts": 1_000_000}
"""Rows of a block, by default: about 600 MiB while it is measured."""


def is_sorted(scratch: Path, identity: str | None = None) -> bool:
    """Whether a folder holds sorted blocks; of a plan and files, where their digest is given."""
    marker = scratch / _MARKER
    if not marker.exists():
        return False
    return identity is None or read_json(marker).get("identity") == identity


def sort_into_blocks(
    tables: Tables, scratch: Path, wanted: int | None, progress: Progress, identity: str
) -> Found:
    """Sort the rows of all tables by a hash of their unit, unless that was done before.

    Parameters
    ----------
    tables
        What is sorted.
    scratch
        Where the blocks go.
    wanted
        How many blocks; default, by the number of interactions or texts.
    progress
        Called with (done, total, note).
    identity
        A digest of the plan and its files: blocks of others are not used, but sorted anew.
    """
    marker = scratch / _MARKER
    if is_sorted(scratch, identity):
        return _sorted_before(scratch, read_json(marker))
    # What a killed run has left half sorted; what is known of measured blocks may lie there too.
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    rows = {name: table.count() for name, table in tables.tables.items()}
    empty = [name for name, count in rows.items() if not count and name not in GROUP_TABLES]
    if empty:
        raise PlanError("\n".join(f"{tables.tables[n].told}: the table has no rows" for n in empty))
    count = blocks_for(rows[tables.main], wanted, _ROWS_IN_BLOCK[tables.main])
    sorting = _Sorting(tables, scratch, count)
    # Groups that texts name are written while texts are.
    with _permitted(count * (1 if tables.tagger is None else 2), count):
        _sort(sorting, tables, sum(rows.values()), progress)
        if tables.is_clustered:
            _sort_by_cluster(tables, scratch, count, progress)
    found = sorting.found(rows.get(tables.groups))
    if found.items is not None:
        write_parquet(scratch / "items.parquet", pl.DataFrame({"item": found.items}))
    values = {attribute: list(some) for attribute, some in found.values.items()}
    members = [list(pair) for pair in found.members]
    told = {"identity": identity, "count": count, "values": values, "members": members}
    write_json(marker, told)
    return found


@contextmanager
def _permitted(files: int, blocks: int) -> Iterator[None]:
    """Permit that so many files are open; refuse, in one sentence, what the system does not."""
    with ExitStack() as stack:
        try:
            stack.enter_context(open_files(files))
        except OSError as error:
            raise PlanError(
                f"{blocks:,} blocks are too many here: {files:,} files are open at once while a "
                f"table is sorted, and {error}; choose fewer ([engine] blocks), or permit more "
                "files (ulimit -n)"
            ) from None
        yield


def _sort(sorting: _Sorting, tables: Tables, total: int, progress: Progress) -> None:
    """Sort by id, a table at a time."""
    done = 0
    for name, table in tables.tables.items():
        for batch in table.batches(tables.columns[name]):
            progress(done, total, f"sorting {table.told} into {sorting.count:,} blocks")
            sorting.add(name, batch)
            done += batch.num_rows
        sorting.close()


class _Sorting:
    """Rows of tables on their way into blocks, and what is seen of them."""

    def __init__(self, tables: Tables, scratch: Path, count: int) -> None:
        self.tables, self.count = tables, count
        self.folder = scratch / "by-id" if tables.is_clustered else scratch
        self.writers: dict[str, BlockWriter] = {}
        self.items: pa.Array | None = None
        self.kinds: dict[str, pa.Array] = {}
        self.pairs: set[tuple[str, str]] = set()

    def add(self, name: str, batch: pa.RecordBatch) -> None:
        """Sort a part of a table."""
        plain = plain_batch(batch, name, self.tables.tables[name].told)
        self._write(name, plain)
        if name in ("interactions", "test"):
            self.items = distinct_of(self.items, plain.column("item"))
        elif name == "texts" and self.tables.tagger is not None:
            self._write("text_groups", tagged_members(self.tables.tagger, batch))
        elif name == self.tables.groups and self.tables.has_members:
            self.pairs |= _members_of(plain)
        elif name == self.tables.groups:
            for attribute in plain.schema.names[1:]:
                some = plain.column(attribute).drop_null()
                self.kinds[attribute] = distinct_of(self.kinds.get(attribute), some)

    def _write(self, name: str, batch: pa.RecordBatch) -> None:
        if name not in self.writers:
            self.writers[name] = BlockWriter(self.folder / name, self.count, batch.schema)
        self.writers[name].write(batch, block_of(batch.column(0), self.count))

    def close(self) -> None:
        """Finish the files of a table: those of all tables are more than a process may open."""
        for writer in self.writers.values():
            writer.close()
        self.writers.clear()

    def found(self, units: int | None) -> Found:
        """Return what was seen; `units` are the rows of the table of groups."""
        if self.tables.tagger is not None:
            return Found(self.count, self.items, members=tagger_members(self.tables.tagger))
        if self.tables.has_members:
            members = checked_members(self.pairs, self.tables.by)
            return Found(self.count, self.items, members=members)
        values = checked_values({a: k.to_pylist() for a, k in self.kinds.items()}, units)
        return Found(self.count, self.items, values)


def _members_of(batch: pa.RecordBatch) -> set[tuple[str, str]]:
    """Return the attributes and names of groups among some memberships."""
    frame = pl.from_arrow(batch)
    assert isinstance(frame, pl.DataFrame)  # a batch never becomes a series
    if "attribute" not in frame.columns:
        frame = frame.with_columns(attribute=pl.lit("group"))
    refuse_missing(name for name in ("group", "attribute") if frame[name].null_count())
    return set(frame.select("attribute", "group").unique().iter_rows())


def _sort_by_cluster(tables: Tables, scratch: Path, count: int, progress: Progress) -> None:
    """Sort once more, by what texts share: only a text's own row says what that is."""
    by_id, total = scratch / "by-id", count * len(tables.parts)
    for number, name in enumerate(tables.parts):  # one by one: each block is an open file
        with ExitStack() as stack:
            writer: BlockWriter | None = None
            for block in range(count):
                note = f"sorting {name} by what texts share"
                progress(number * count + block, total, note)
                frames = {n: read_block(by_id / n, block) for n in {"texts": 0, name: 0}}
                frame = with_clusters(frames)[name]
                table = frame.rechunk().to_arrow(compat_level=pl.CompatLevel.oldest())
                for batch in table.to_batches():
                    if writer is None:
                        writer = BlockWriter(scratch / name, count, batch.schema)
                        stack.enter_context(writer)
                    key = batch.column("cluster").to_numpy().view(np.uint64)
                    writer.write(batch, (key % np.uint64(count)).astype(np.int64))
    shutil.rmtree(scratch / "by-id")


def _sorted_before(scratch: Path, told: Mapping[str, Any]) -> Found:
    path = scratch / "items.parquet"
    items = pl.read_parquet(path)["item"].to_arrow() if path.exists() else None
    values = {attribute: tuple(some) for attribute, some in told["values"].items()}
    members = tuple((attribute, name) for attribute, name in told["members"])
    return Found(int(told["count"]), items, values, members)
