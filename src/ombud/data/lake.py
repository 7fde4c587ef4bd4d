"""Tables that are larger than memory: Parquet files and folders, read row by row and sorted in
blocks on disk, so that all rows of a user or text stand in one block.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as fs
from numpy.typing import NDArray

from ombud.data.faults import need_columns
from ombud.data.ids import hash_ids
from ombud.errors import DataError, OmbudError, require
from ombud.files import is_plain_file

_ROWS = 1 << 19
"""Rows that are read at once."""

_LARGEST_BLOCKS = 256
"""Each block of each table is an open file while tables are sorted."""


def is_remote(path: str) -> bool:
    """Whether a path names an object store, such as ``s3://bucket/folder``.

    Examples
    --------
    >>> is_remote("s3://bucket/lists"), is_remote("/data/lists"), is_remote("lists.parquet")
    (True, False, False)
    """
    return "://" in path


@dataclass(frozen=True)
class LakeTable:
    """A table in Parquet: a file, a folder of files (also in Hive partitions), or an address."""

    path: str  # The file, the folder, or the address in an object store
    # By ombud's name, the name that a column has in the files; the others keep theirs.
    columns: Mapping[str, str] = field(default_factory=dict)
    name: str = ""  # Its name in messages

    @property
    def told(self) -> str:
        """The name in messages."""
        return self.name or self.path

    def files(self) -> list[str]:
        """Return the files of the table in order, or the address of a remote one.

        Raises
        ------
        DataError
            If there is nothing to read.
        """
        chosen = self.version_files()
        if chosen is not None:
            return chosen
        if is_remote(self.path):
            return [self.path]
        path = Path(self.path)
        if path.is_dir():
            return [str(file) for file in self._in_folder(path)]
        if not is_plain_file(path):
            raise DataError(self.told, [f"there is no file or folder {path}"])
        if path.suffix.lower() != ".parquet":
            fault = f"{path.name} is no Parquet; an engine that streams reads Parquet only"
            raise DataError(self.told, [fault])
        return [str(path)]

    def _in_folder(self, path: Path) -> list[Path]:
        """Return the files of a folder; refuse those that would be left out without a word."""
        found, others = [], []
        for file in sorted(path.rglob("*")):
            name = file.relative_to(path)
            # What begins with a point or a bar is of those who wrote the folder (`_SUCCESS`).
            hidden = any(part.startswith((".", "_")) for part in name.parts)
            if hidden or file.suffix.lower() == ".crc" or file.is_dir():
                continue
            if file.suffix.lower() == ".parquet":
                found.append(file)
            else:
                others.append(name.as_posix())
        if others:
            told = ", ".join(others[:3]) + (f" and {len(others) - 3:,} more" * (len(others) > 3))
            fault = (
                f"the folder {path} also holds what is not named .parquet: {told}; rename the "
                "files that belong to the table, and move the others away (or begin their names "
                "with _)"
            )
            raise DataError(self.told, [fault])
        if not found:
            raise DataError(self.told, [f"the folder {path} holds no .parquet file"])
        return found

    def listing(self) -> list[str]:
        """Return what the store of a remote table says of its files: names, sizes, times, tags.

        No file is opened. Where a line differs, a file has been written since.
        """
        chosen = self.version_files()
        if chosen is not None:  # files of such tables are never written twice
            return chosen
        with self._faults(self.path):
            store, place = _store(self.path)
            if isinstance(store, fs.PyFileSystem):  # Arrow would leave out tags and some times
                store.handler.fs.invalidate_cache()
                found = store.handler.fs.find(place, detail=True)
                return [f"{name} {sorted(found[name].items(), key=str)}" for name in sorted(found)]
            files = [store.get_file_info(place)]
            if files[0].type == fs.FileType.Directory:
                files = store.get_file_info(fs.FileSelector(place, recursive=True))
            return sorted(f"{f.path} {f.size} {f.mtime_ns}" for f in files if f.is_file)

    @property
    def is_iceberg(self) -> bool:
        """Whether the path is the metadata file of an Iceberg table."""
        return self.path.endswith(_METADATA)

    def version_files(self) -> list[str] | None:
        """Return the files of one version of a Delta or Iceberg table; None for a plain folder.

        The folder of such a table also holds files that are no longer, or not yet, part of it.
        """
        if self.is_iceberg:
            return self._iceberg_files()
        if is_remote(self.path):
            with self._faults(self.path):
                store, place = _store(self.path)
                log, metadata = store.get_file_info([f"{place}/_delta_log", f"{place}/metadata"])
            is_delta = log.type == fs.FileType.Directory
            is_iceberg = metadata.type == fs.FileType.Directory
        else:
            is_delta = Path(self.path, "_delta_log").is_dir()
            is_iceberg = any(Path(self.path, "metadata").glob(f"*{_METADATA}"))
        if is_iceberg:
            raise DataError(self.told, [_is_iceberg(self.path)])
        return self._delta_files() if is_delta else None

    def _delta_files(self) -> list[str]:
        """Return the files that a Delta table consists of now: its folder holds old ones too."""
        require("deltalake", "delta")
        from deltalake import DeltaTable
        from deltalake.exceptions import DeltaError

        try:
            table = DeltaTable(self.path)
            features = set(table.protocol().reader_features or ())
            files = sorted(table.file_uris())
        except (DeltaError, OSError, ValueError) as error:
            raise DataError(self.told, [f"it cannot be read as a Delta table: {error}"]) from None
        if unread := features & _NOT_IN_FILES:
            fault = (
                f"the Delta table has {', '.join(sorted(unread))}: its files alone do not say "
                "which rows and columns it has; give it to Spark as a frame (`Audit.from_plan`)"
            )
            raise DataError(self.told, [fault])
        return files

    def _iceberg_files(self) -> list[str]:
        """Return the files of the snapshot that a metadata file of an Iceberg table describes."""
        require("pyiceberg", "iceberg")
        from pyiceberg.table import StaticTable

        try:
            parts = list(StaticTable.from_metadata(self.path).scan().plan_files())
        except Exception as error:  # what it raises depends on the store and on the file
            text = " ".join(str(error).split())[:300]
            raise DataError(self.told, [f"it cannot be read as an Iceberg table: {text}"]) from None
        if any(part.delete_files for part in parts):
            fault = (
                "the Iceberg table has rows that are deleted in files beside its own; rewrite it "
                "(compaction), or give it to Spark as a frame (`Audit.from_plan`)"
            )
            raise DataError(self.told, [fault])
        return sorted(part.file.file_path.removeprefix("file://") for part in parts)

    def _dataset(self) -> Any:
        # It imports pandas where that is installed, which audits in memory need not pay for.
        import pyarrow.dataset as ds

        base = self.path if Path(self.path).is_dir() else None
        with self._faults(self.path):
            source: Any = self.files()
            options: dict[str, Any] = {"format": "parquet"}
            if not self.is_iceberg:  # whose files hold all columns, whatever their folders say
                options["partitioning"] = "hive"
            if is_remote(self.path):
                options["filesystem"], place = _store(self.path)
                alone = source == [self.path]
                source = place if alone else [_store(file)[1] for file in source]
                base = None if alone or self.is_iceberg else place
            return ds.dataset(source, partition_base_dir=base, **options)

    @contextmanager
    def _faults(self, path: str) -> Iterator[None]:
        """Say what went wrong with a path; what a store of fsspec raises is its package's own."""
        try:
            yield
        except OmbudError:
            raise
        except Exception as error:
            known = (OSError, pa.ArrowException, ValueError, ImportError)
            if not is_remote(self.path) and not isinstance(error, known):
                raise
            raise DataError(self.told, [_told(error, path)]) from None

    def schema(self) -> dict[str, pa.DataType]:
        """Return the type of each column, by ombud's names; refuse files that do not agree."""
        data = self._dataset()
        faults = []
        first: pa.Schema | None = None
        for fragment in data.get_fragments():
            with self._faults(fragment.path):
                here = fragment.physical_schema
            if first is None:
                first = here
            elif {f.name: f.type for f in here} != {f.name: f.type for f in first}:
                faults.append(
                    f"{fragment.path} has other columns than the first file: {_apart(first, here)}"
                )
        if faults:
            more = [f"and {len(faults) - 3:,} files more"] if len(faults) > 3 else []
            raise DataError(self.told, faults[:3] + more)
        back = {theirs: ours for ours, theirs in self.columns.items()}
        types = {field.name: field.type for field in data.schema}
        about = {t: f", mapped to {ours!r}," for ours, t in self.columns.items()}
        need_columns(self.told, about, list(types))
        return {back.get(name, name): kind for name, kind in types.items()}

    def count(self) -> int:
        """Return the number of rows, from the files' own notes."""
        data = self._dataset()
        with self._faults(self.path):
            return int(data.count_rows())

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Go through the rows of some columns, a part at a time, in order."""
        theirs = [self.columns.get(name, name) for name in columns]
        scanner = self._dataset().scanner(
            columns=theirs,
            batch_size=_ROWS,
            batch_readahead=1,
            fragment_readahead=1,
            use_threads=True,
        )
        with self._faults(self.path):
            for batch in scanner.to_batches():
                if batch.num_rows:
                    yield batch.rename_columns(list(columns))


def _store(path: str) -> tuple[Any, str]:
    """Return the object store of an address, and the place within it.

    Arrow reads some itself (s3, gs, hdfs, abfs); the others go through fsspec, where it is there.
    """
    if _SECRET.match(path):
        fault = (
            "the address holds a key, which would be stored with the result; keys belong into the "
            "environment"
        )
        raise DataError(path.partition("://")[0] + "://...", [fault])
    if path.startswith("s3a://"):  # as Spark says
        path = "s3" + path[3:]
    kind = path.partition("://")[0]
    if kind in _OF_GOOGLE and "retry_limit_seconds=" not in path:
        # Arrow asks for a key for 15 minutes by default, also where there is none.
        path += f"{'&' if '?' in path else '?'}retry_limit_seconds={_PATIENCE}"
    if kind in _OF_ARROW:
        found: tuple[Any, str] = fs.FileSystem.from_uri(path)
        return found
    require("fsspec", "lake")
    from fsspec.core import url_to_fs

    store, place = url_to_fs(path)
    return fs.PyFileSystem(fs.FSSpecHandler(store)), place


_METADATA = ".metadata.json"
_NOT_IN_FILES = {"deletionVectors", "columnMapping"}
"""What a Delta table can have that its files do not show."""


def _is_iceberg(path: str) -> str:
    return (
        f"{path} is an Iceberg table, whose folder also holds rows that were deleted; name the "
        "metadata file of the version to read (metadata/...metadata.json), or give the table to "
        "Spark as a frame (`Audit.from_plan`)"
    )


_OF_ARROW = {"s3", "gs", "gcs", "hdfs", "abfs", "abfss", "file"}
_OF_GOOGLE = {"gs", "gcs"}
_PATIENCE = 30
_SECRET = re.compile(r"\w+://[^/@]*:[^/@]+@")


def _apart(first: pa.Schema, here: pa.Schema) -> str:
    one, other = ({f.name: str(f.type) for f in schema} for schema in (first, here))
    differing = [name for name in {**one, **other} if one.get(name) != other.get(name)]
    return ", ".join(
        f"{n} is {other.get(n, 'absent')}, not {one.get(n, 'absent')}" for n in differing[:3]
    )


def _told(error: Exception, path: str) -> str:
    text = " ".join(str(error).split())[:300] or type(error).__name__
    if isinstance(error, FileNotFoundError):
        return f"there is nothing at {path}, or it may not be listed"
    if isinstance(error, ImportError):
        return f"{path} needs a package that is not installed: {text}"
    if isinstance(error, PermissionError):
        return f"{path} cannot be listed or read: permission denied"
    return f"{path} cannot be listed or read as Parquet: {text}"


def block_of(ids: pa.Array, blocks: int) -> NDArray[np.int64]:
    """Return the block of each id: the same for all rows and tables."""
    return (hash_ids(ids) % np.uint64(blocks)).astype(np.int64)


class BlockWriter:
    """Sorts the rows of a table into blocks, one Arrow file each.

    Every table has a folder of its own.
    """

    def __init__(self, folder: Path, blocks: int, schema: pa.Schema) -> None:
        self.folder, self.blocks, self.schema = folder, blocks, schema
        folder.mkdir(parents=True, exist_ok=True)
        options = pa.ipc.IpcWriteOptions(compression="lz4")
        self._files = [
            pa.ipc.new_file(str(folder / f"{b:04d}.arrow"), schema, options=options)
            for b in range(blocks)
        ]

    def write(self, batch: pa.RecordBatch, block: NDArray[np.int64]) -> None:
        """Write the rows of a batch, each into its block, in their order."""
        order = np.argsort(block.astype(np.int16), kind="stable")
        ends = np.searchsorted(block[order], np.arange(self.blocks + 1))
        ordered = batch.take(pa.array(order))
        for b in np.flatnonzero(np.diff(ends)):
            low, high = int(ends[b]), int(ends[b + 1])
            self._files[b].write_batch(ordered.slice(low, high - low))

    def close(self) -> None:
        """Finish the files."""
        for file in self._files:
            file.close()

    def __enter__(self) -> BlockWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def read_block(folder: Path, block: int) -> pl.DataFrame:
    """Return one block of a table."""
    with pa.memory_map(str(folder / f"{block:04d}.arrow")) as source:
        table = pa.ipc.open_file(source).read_all()
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)  # a table never becomes a series
    return frame


def distinct_of(known: pa.Array | None, values: pa.Array) -> pa.Array:
    """Return what is known and what is new of some values, each once."""
    new = pc.unique(values)
    if known is None:
        return new
    return pc.unique(pa.concat_arrays([known, new.cast(known.type)]))


def blocks_for(rows: int, wanted: int | None, rows_in_block: int) -> int:
    """Return into how many blocks so many rows are sorted."""
    return wanted or min(_LARGEST_BLOCKS, max(1, -(-rows // rows_in_block)))
