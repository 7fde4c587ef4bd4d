"""Columns of large CSV files, one at a time, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from ombud.data.faults import first_rows, readable
from ombud.data.ids import Vocabulary
from ombud.errors import DataError
from ombud.files import without_advice

_BLOCK = 1 << 22


class CsvColumns:
    """The columns of one CSV file, rewritten so that each can be read alone.

    Use `open_columns` to make one.
    """

    def __init__(self, stored: Path, name: str) -> None:
        self._stored = stored
        self._name = name
        self._lazy = pl.scan_parquet(stored)
        self.height = int(self._lazy.select(pl.len()).collect().item())

    def column(self, name: str) -> pl.Series:
        """Return one column."""
        return self._lazy.select(name).collect(engine="streaming").to_series()

    def encode(self, name: str) -> tuple[Vocabulary, NDArray[np.int32]]:
        """Return the ids of a column, and the 32-bit code of each value."""
        value = pl.col(name)
        dtype = self._lazy.collect_schema()[name]
        if not dtype.is_integer():
            return self._encode_texts(name)
        low, high = self._lazy.select(low=value.min(), high=value.max()).collect().row(0)
        if low < -(2**31) or high >= 2**31:
            return Vocabulary.encode(self.column(name).to_arrow())
        small = self._lazy.select(value.cast(pl.Int32)).collect(engine="streaming").to_series()
        vocabulary, codes = Vocabulary.encode(small.to_arrow())
        return Vocabulary(vocabulary.arrow.cast(pa.int64())), codes

    def _encode_texts(self, name: str) -> tuple[Vocabulary, NDArray[np.int32]]:
        """Encode block by block: texts of all rows at once may not fit."""
        distinct = self._lazy.select(pl.col(name).unique().sort()).collect(engine="streaming")
        vocabulary = Vocabulary(distinct.to_series().to_arrow())
        codes = np.empty(self.height, dtype=np.int32)
        for low in range(0, self.height, _BLOCK):
            part = self._lazy.slice(low, _BLOCK).select(name).collect().to_series()
            codes[low : low + len(part)] = vocabulary.codes(part.to_arrow())
        return vocabulary, codes


@contextmanager
def open_columns(
    path: Path,
    columns: Mapping[str, tuple[str | int, Any]],
    *,
    header: bool = True,
    separator: str = ",",
    scratch: Path | None = None,
) -> Iterator[CsvColumns]:
    """Read some columns of a CSV file of any size; its faults come in one error.

    A column wanted has its name (or place, from 0) in the file and its Polars type. None as type
    means an id: a whole number when the first rows hold whole numbers, a text otherwise. Without a
    header, columns are named by their places. A temporary copy goes to `scratch`.
    """
    if not path.is_file():
        raise DataError(path.name, [f"there is no file {path}"])
    if path.stat().st_size == 0:
        raise DataError(path.name, ["the file is empty (0 bytes); a table with rows was expected"])
    options: dict[str, Any] = {"has_header": header, "separator": separator}
    with readable(path.name):
        result = pl.scan_csv(path, **options).collect_schema()
    absent = [column for column, _ in columns.values() if not _has(result, column)]
    if absent:
        names = ", ".join(result.names()[:12])
        faults = [f"column {column!r} is missing (found: {names})" for column in absent]
        raise DataError(path.name, faults)
    types: dict[str, Any] = {}
    wanted: list[pl.Expr] = []
    for name, (column, asked) in columns.items():
        called = result.names()[column] if isinstance(column, int) else column
        whole = pl.Int64 if result[called].is_integer() else pl.String
        types[called] = whole if asked is None else asked
        wanted.append(pl.col(called).alias(name))
    with TemporaryDirectory(dir=scratch, prefix="ombud-columns-") as folder:
        stored = Path(folder) / "columns.parquet"
        try:
            lazy = pl.scan_csv(path, schema_overrides=types, **options)
            lazy.select(wanted).sink_parquet(stored, compression="lz4", statistics=True)
        except pl.exceptions.PolarsError as error:
            raise DataError(path.name, _faults(path, types, options) or [str(error)]) from None
        opened = CsvColumns(stored, path.name)
        if opened.height == 0:
            raise DataError(path.name, ["the table has no rows"])
        nulls = pl.scan_parquet(stored).select(pl.all().null_count()).collect().row(0)
        if any(nulls):
            raise DataError(path.name, _faults(path, types, options))
        yield opened


def _has(found: pl.Schema, column: str | int) -> bool:
    return column < len(found) if isinstance(column, int) else column in found


def _faults(path: Path, types: Mapping[str, Any], options: Mapping[str, Any]) -> list[str]:
    """Find the first rows of each column that cannot be read; slow, and only for messages."""
    lazy = pl.scan_csv(path, infer_schema=False, **options).with_row_index("row", offset=1)
    faults = []
    try:
        for column, dtype in types.items():
            value = pl.col(column)
            checks = {"is missing": value.is_null()}
            if dtype != pl.String:
                unread = value.is_not_null() & value.cast(dtype, strict=False).is_null()
                kind = "a whole number" if dtype.is_integer() else "a number"
                checks[f"is not {kind}"] = unread
            for text, wrong in checks.items():
                result = lazy.filter(wrong).select("row")
                total = int(result.select(pl.len()).collect(engine="streaming").item())
                if total:
                    rows = result.head(5).collect(engine="streaming")["row"].to_list()
                    faults.append(f"column {column!r} {text} in {first_rows(rows, total)}")
    except pl.exceptions.PolarsError as error:
        faults.append(f"it cannot be read as a table: {without_advice(error)}")
    return faults
