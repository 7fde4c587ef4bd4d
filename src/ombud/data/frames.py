"""Any frame or file in, a checked Polars frame out, with all its faults in one error.

Frames come through narwhals (Polars, pandas, Arrow, DuckDB, PySpark), and only the columns that are
needed are brought over, once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any, Literal

import narwhals as nw
import polars as pl

from ombud.errors import DataError
from ombud.files import is_plain_file

FLOAT32_MAX = 3.4028234663852886e38
"""What is stored in 32 bits becomes infinite beyond this."""

Frame = Any
"""A path, a `MappedFile`, or any frame that narwhals knows."""

Kind = Literal["category", "count", "flag", "id", "number", "text", "time"]

# A name is a name, also with brackets and stars in it (JSON lines have no such setting).
# Types are inferred from the whole file: one odd id, or a column's first value, may stand far down.
_SCANNERS: dict[str, Callable[..., pl.LazyFrame]] = {
    ".parquet": partial(pl.scan_parquet, glob=False),
    ".csv": partial(pl.scan_csv, infer_schema_length=None, glob=False),
    ".tsv": partial(pl.scan_csv, separator="\t", infer_schema_length=None, glob=False),
    ".jsonl": partial(pl.scan_ndjson, infer_schema_length=None),
    ".ndjson": partial(pl.scan_ndjson, infer_schema_length=None),
}
_SPELLED = (".csv", ".tsv")
# The reader's own words can hold a whole broken file.
_LONGEST_FAULT = 300
_HALF = "a text holds half a character (a lone surrogate), which UTF-8 cannot hold"


@dataclass(frozen=True)
class MappedFile:
    """A file (or frame) whose columns have other names than ombud's.

    Parameters
    ----------
    path
        The file (Parquet, CSV, TSV, JSONL).
    columns
        By ombud's name, the name that the column has in the file. The others keep theirs.
    only
        Whether the other columns are left out.
    """

    path: Frame
    columns: Mapping[str, str]
    only: bool = False


@dataclass(frozen=True)
class Column:
    """What one column of a table must be.

    Parameters
    ----------
    name
        Its name.
    kind
        ``id`` (whole numbers or strings, never missing), ``number``, ``count`` (0 or more, whole),
        ``flag`` (true/false or 0/1), ``category`` (few distinct values), ``text``, ``time`` (a
        number or a date).
    required
        Whether the table must have it.
    low, high
        The permitted range of a number, ends included.
    nullable
        Whether single values may be missing.
    """

    name: str
    kind: Kind
    required: bool = True
    low: float | None = None
    high: float | None = None
    nullable: bool = False


def first_rows(rows: Sequence[int], total: int) -> str:
    """Return row numbers as words: the first few, and how many there are in all."""
    shown = ", ".join(str(row) for row in rows[:5])
    more = ", ..." if total > 5 else ""
    return f"row{'s' if total != 1 else ''} {shown}{more} ({total:,} in all)"


def open_frame(
    frame: Frame, source: str = "", ids: Sequence[str] = ()
) -> tuple[nw.LazyFrame[Any], str]:
    """Return a frame or file as a lazy narwhals frame, and the name to use in messages.

    Parameters
    ----------
    frame
        A path, or any frame that narwhals knows.
    source
        The table's name in messages; default, the file's name.
    ids
        Columns that are read as they are spelled, where the file has no types: 001 is not 1.
    """
    if isinstance(frame, MappedFile):
        return _open_mapped(frame, source, ids)
    if isinstance(frame, str | Path):
        return _open_file(Path(frame), source, ids)
    name = source or f"the {type(frame).__name__} given"
    if isinstance(frame, dict):
        try:
            frame = pl.DataFrame(frame)
        except UnicodeEncodeError:
            raise DataError(name, [_HALF]) from None
        except (TypeError, pl.exceptions.PolarsError) as error:
            raise DataError(name, [f"the columns do not make a table: {error}"]) from None
    try:
        return nw.from_native(frame).lazy(), name
    except UnicodeEncodeError:
        raise DataError(name, [_HALF]) from None
    except TypeError:
        fault = (
            f"a {type(frame).__name__} is not a table; give a path, or a pandas, Polars, Arrow, "
            "DuckDB or PySpark frame"
        )
        raise DataError(name, [fault]) from None


def _open_mapped(
    file: MappedFile, source: str, ids: Sequence[str]
) -> tuple[nw.LazyFrame[Any], str]:
    own = [file.columns.get(column, column) for column in ids]
    lazy, name = open_frame(file.path, source, own)
    try:
        found = lazy.collect_schema().names()
    except pl.exceptions.PolarsError as error:
        raise DataError(name, [unreadable(error)]) from None
    absent = {ours: theirs for ours, theirs in file.columns.items() if theirs not in found}
    if absent:
        names = ", ".join(found)
        raise DataError(
            name,
            [
                f"column {theirs!r}, which is said to be {ours!r}, is missing (found: {names})"
                for ours, theirs in absent.items()
            ],
        )
    given = set(file.columns.values())
    # A column that happens to have the name of another one's meaning gives way to it.
    kept = [column for column in found if column not in given and column not in file.columns]
    kept = [] if file.only else kept
    renamed = [nw.col(theirs).alias(ours) for ours, theirs in file.columns.items()]
    return lazy.select(*renamed, *kept), name


def _file_of(frame: Frame) -> Path | None:
    if isinstance(frame, MappedFile):
        return _file_of(frame.path)
    return Path(frame) if isinstance(frame, str | Path) else None


def _open_file(path: Path, source: str, ids: Sequence[str]) -> tuple[nw.LazyFrame[Any], str]:
    name = source or path.name
    scan = _SCANNERS.get(path.suffix.lower())
    if scan is None:
        fault = f"files of type {path.suffix or '(none)'!r} are not read"
        raise DataError(name, [f"{fault}; use one of {', '.join(_SCANNERS)}"])
    if not is_plain_file(path):
        raise DataError(name, [f"there is no file {path}"])
    if path.stat().st_size == 0:
        raise DataError(name, ["the file is empty (0 bytes); a table with rows was expected"])
    if not ids or path.suffix.lower() not in _SPELLED:
        return nw.from_native(scan(path)), name
    try:
        present = scan(path, n_rows=0).collect_schema().names()
    except pl.exceptions.PolarsError as error:
        raise DataError(name, [unreadable(error)]) from None
    spelled = {column: pl.String for column in ids if column in present}
    return nw.from_native(scan(path, schema_overrides=spelled)), name


def unreadable_names(found: Sequence[str]) -> list[str]:
    """Return a fault when names of columns hold what the reader puts in place of a bad byte."""
    wrong = [name for name in found if "\ufffd" in name]
    return [f"the name of column {name[:40]!r} is not UTF-8" for name in wrong[:3]]


def unreadable(error: Exception) -> str:
    """Return why a file is no table, in the reader's words, of which there may be many."""
    text = " ".join(str(error).split())
    more = "" if len(text) <= _LONGEST_FAULT else "..."
    return f"it cannot be read as a table: {text[:_LONGEST_FAULT]}{more}"


def read_table(frame: Frame, columns: Sequence[Column], source: str = "") -> pl.DataFrame:
    """Return the named columns of a frame or file as a Polars frame, checked.

    Parameters
    ----------
    frame
        A path (Parquet, CSV, TSV, JSONL) or any frame that narwhals knows.
    columns
        What the columns must be; others are ignored.
    source
        The name of the table in messages; default, the file's name.

    Raises
    ------
    DataError
        With every fault found, and the first rows of each (counted from 1).
    """
    ids = [column.name for column in columns if column.kind == "id"]
    lazy, name = open_frame(frame, source, ids)
    try:
        result = lazy.collect_schema()
        faults = _missing(columns, result.names())
        present = [column for column in columns if column.name in result.names()]
        mixed = [column for column in present if result[column.name] == nw.Object]
        for column in mixed:
            fault = f"column {column.name!r}: holds values of several types"
            faults.append(f"{fault}; {_EXPECTED[column.kind]} were expected")
        present = [column for column in present if column not in mixed]
        selected = lazy.select([column.name for column in present])
        table: pl.DataFrame = selected.collect(backend="polars").to_native()
    except UnicodeEncodeError:
        raise DataError(name, [_HALF]) from None
    except (
        pl.exceptions.PolarsError, nw.exceptions.NarwhalsError, OSError, RecursionError
    ) as error:  # fmt: skip
        raise DataError(name, [unreadable(error)]) from None
    except Exception as error:
        # DuckDB and Spark have errors of their own, and need not be there to be named.
        if lazy.implementation.is_polars():
            raise
        raise DataError(name, [unreadable(error)]) from error
    file = _file_of(frame)
    if file is not None and file.suffix.lower() in _SPELLED:
        table = numbered(table, [column for column in ids if column in table.columns])
    if present and table.height == 0:
        faults.append("the table has no rows")
    counts = _count_faults(table, present) if present else {}
    for column in present:
        faults += _faults_of(column, table, counts)
    if faults:
        raise DataError(name, faults)
    return table.with_columns(_cast(column, table.schema[column.name]) for column in present)


def numbered(table: pl.DataFrame, ids: Sequence[str]) -> pl.DataFrame:
    """Return ids that are spelled as whole numbers are as numbers; 007 and +7 stay text."""
    plain = table.select(
        pl.col(name).str.contains(r"^(0|-?[1-9][0-9]{0,17})$").fill_null(True).all() for name in ids
    )
    return table.with_columns(pl.col(name).cast(pl.Int64) for name in ids if plain[name][0])


def _missing(columns: Sequence[Column], found: Sequence[str]) -> list[str]:
    # This is how the reader tells two columns of one name apart.
    again = [c.name for c in columns if c.name in found and f"{c.name}_duplicated_0" in found]
    faults = [f"column {name!r} is there twice; remove or rename one" for name in again]
    faults += unreadable_names(found)
    for column in columns:
        if column.required and column.name not in found:
            near = get_close_matches(column.name, found, n=1)
            hint = f"; is {near[0]!r} meant? rename it" if near else ""
            names = ", ".join(name[:40] for name in found[:12]) or "no columns"
            names += f", and {len(found) - 12:,} more" if len(found) > 12 else ""
            faults.append(f"column {column.name!r} is missing (found: {names}){hint}")
    return faults


def _count_faults(table: pl.DataFrame, columns: Sequence[Column]) -> dict[str, int]:
    """Count missing and out-of-range values of all columns in one pass."""
    wanted = {}
    for column in columns:
        value = pl.col(column.name)
        dtype = table.schema[column.name]
        wanted[f"{column.name}:null"] = value.null_count()
        if dtype.is_float():
            wanted[f"{column.name}:nan"] = value.is_nan().sum()
            wanted[f"{column.name}:infinite"] = value.is_infinite().sum()
        if column.kind == "flag" and dtype.is_integer():
            wanted[f"{column.name}:flag"] = (~value.is_in([0, 1])).sum()
        if column.kind == "count" and _is_wide(dtype):
            wanted[f"{column.name}:large"] = (value > _LARGEST).sum()
        if column.kind == "time" and dtype == pl.String:
            wanted[f"{column.name}:time"] = (value.is_not_null() & _date(value).is_null()).sum()
        if dtype.is_numeric() and column.low is not None:
            wanted[f"{column.name}:low"] = (value < column.low).sum()
        if dtype.is_numeric() and column.high is not None:
            above = value > column.high
            # Polars sorts NaN above every number.
            wanted[f"{column.name}:high"] = (
                above.and_(value.is_not_nan()) if dtype.is_float() else above
            ).sum()
    counts = table.select(**wanted)
    return {key: int(counts[key][0] or 0) for key in wanted}


def _is_wide(dtype: pl.DataType) -> bool:
    """Whether whole numbers of a type may not fit into 64 signed bits."""
    return dtype.is_integer() and dtype not in {
        pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32,
    }  # fmt: skip


def _faults_of(column: Column, table: pl.DataFrame, counts: dict[str, int]) -> list[str]:
    wrong = _wrong_type(column, table.schema[column.name])
    if wrong:
        return [f"column {column.name!r}: {wrong}"]
    value = pl.col(column.name)
    checks: dict[str, tuple[Callable[[], pl.Expr], str]] = {
        "null": (value.is_null, "missing"),
        "nan": (value.is_nan, "not a number (NaN)"),
        "infinite": (value.is_infinite, "infinite"),
        "low": (lambda: value < column.low, f"below {column.low}"),
        "flag": (lambda: ~value.is_in([0, 1]), "neither 0 nor 1"),
        "large": (lambda: value > _LARGEST, f"above {_LARGEST:,}"),
        "time": (lambda: value.is_not_null() & _date(value).is_null(), "no date (2024-12-31)"),
        "high": (lambda: (value > column.high).and_(value.is_not_nan()), f"above {column.high}"),
    }
    faults = []
    for key, (condition, text) in checks.items():
        total = counts.get(f"{column.name}:{key}", 0)
        if total and not (column.nullable and key in {"null", "nan"}):
            rows = table.select((condition().arg_true() + 1).head(5)).to_series().to_list()
            faults.append(f"column {column.name!r} is {text} in {first_rows(rows, total)}")
    return faults


_LARGEST = 2**63 - 1

_EXPECTED: dict[Kind, str] = {
    "category": "strings, whole numbers or true/false (cut numbers into bands first)",
    "count": "whole numbers",
    "flag": "true/false or 0/1",
    "id": "whole numbers or strings, all of one type",
    "number": "numbers",
    "text": "strings",
    "time": "numbers or dates",
}


def _wrong_type(column: Column, dtype: pl.DataType) -> str:
    # Tuples, not sets: Datetime("ms") equals Datetime, and has another hash.
    text = dtype in (pl.String, pl.Categorical) or isinstance(dtype, pl.Enum)
    accepted = {
        "category": text or dtype.is_integer() or dtype == pl.Boolean,
        "count": dtype.is_integer(),
        "flag": dtype == pl.Boolean or dtype.is_integer(),
        "id": text or dtype.is_integer(),
        "number": dtype.is_numeric(),
        "text": text,
        "time": dtype.is_numeric() or dtype in (pl.Date, pl.Datetime, pl.String),
    }[column.kind]
    if accepted or (dtype == pl.Null and column.nullable):
        return ""
    return f"holds {dtype}; {_EXPECTED[column.kind]} were expected"


def _cast(column: Column, dtype: pl.DataType) -> pl.Expr:
    value = pl.col(column.name)
    if column.kind == "id":
        # Wider numbers need not fit; they are ids, so their digits are as good.
        whole = dtype.is_integer() and not _is_wide(dtype)
        return value.cast(pl.Int64) if whole else value.cast(pl.String)
    if column.kind == "time" and dtype == pl.String:
        return _date(value)
    if column.kind == "number":
        return value if dtype.is_float() else value.cast(pl.Float64)
    casts = {"category": pl.String, "count": pl.Int64, "flag": pl.Boolean, "text": pl.String}
    return value.cast(casts[column.kind]) if column.kind in casts else value


def has_columns(frame: Frame | None, *names: str) -> bool:
    """Return whether a table has some columns; False for no table, or a file that is not there."""
    if frame is None or (isinstance(frame, str | Path) and not Path(frame).is_file()):
        return False
    return set(names) <= set(open_frame(frame)[0].collect_schema().names())


def seconds_of(times: pl.Series) -> pl.Series:
    """Return times as seconds since 1970, whether they are dates, moments or numbers."""
    if times.dtype.is_temporal():
        times = times.cast(pl.Datetime("us")).dt.timestamp("us") / 1e6
    return times.cast(pl.Float64)


def _date(value: pl.Expr) -> pl.Expr:
    """Return ISO dates and times as such, in UTC where they name a zone; null for other words."""
    return pl.coalesce(
        value.str.to_datetime(
            "%+", strict=False, time_zone="UTC", time_unit="us"
        ).dt.replace_time_zone(None),
        value.str.to_datetime("%Y-%m-%dT%H:%M:%S%.f", strict=False, time_unit="us"),
        value.str.to_datetime("%Y-%m-%d %H:%M:%S%.f", strict=False, time_unit="us"),
        value.str.to_date("%Y-%m-%d", strict=False).cast(pl.Datetime("us")),
    )
