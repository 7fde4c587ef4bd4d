"""Any frame or file in, a checked Polars frame out, with all its faults in one error.

Frames come through narwhals (Polars, pandas, Arrow, DuckDB, PySpark), and only the columns that are
needed are brought over, once.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import narwhals as nw
import polars as pl

from ombud.data.exclusions import Exclusion
from ombud.data.faults import HALF_CHARACTER, need_columns, readable, rows_where
from ombud.data.reading import (
    PLAIN,
    Reading,
    file_type,
    keyed_rows,
    nested_columns,
    note,
    open_file,
    reshape,
    with_nested,
)
from ombud.data.values import Kind, lacks_id, understand
from ombud.errors import DataError

FLOAT32_MAX = 3.4028234663852886e38
"""What is stored in 32 bits becomes infinite beyond this."""

Frame = Any
"""A path, a `MappedFile`, or any frame that narwhals knows."""

_SETTING = "[data.reading.TABLE]"
_TYPED = (".parquet", ".arrow", ".feather", ".jsonl", ".ndjson", ".json")

# What the last row of a report may be called.
_TOTALS = ("total", "totals", "grand total", "sum", "summe", "gesamt", "gesamtsumme", "somme")
_RULER = r"^\s*[-+=|: ]{3,}$|^\s*\([0-9]+ rows?\)\s*$"  # as psql prints them


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
    reading
        How the file is written, where detection should not decide.
    setting
        Where `reading` is set, for messages.
    """

    path: Frame
    columns: Mapping[str, str] = field(default_factory=dict)
    only: bool = False
    reading: Reading = PLAIN
    setting: str = _SETTING


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
    unread
        Whether nothing reads the column: if it cannot be read, it is ignored, and that is noted.
    """

    name: str
    kind: Kind
    required: bool = True
    low: float | None = None
    high: float | None = None
    nullable: bool = False
    unread: bool = False


def open_frame(
    frame: Frame, source: str = "", ids: Sequence[str] = (), wanted: Sequence[str] = ()
) -> tuple[nw.LazyFrame[Any], str]:
    """Return a frame or file as a lazy narwhals frame, and the name to use in messages.

    In messages the table is called `source`; default, the file's name. Columns of `ids` are read as
    they are spelled, where the file has no types: 001 is not 1. Columns of `wanted` may be written
    with other capitals: ``User`` is read as ``user``.
    """
    file = frame if isinstance(frame, MappedFile) else MappedFile(frame)
    lazy, name = _open(file, source, ids)
    if file.columns or file.reading.reshapes:
        lazy = _in_our_names(lazy, file, name)
    return (_capitals(_with_parts(lazy, wanted), wanted, name) if wanted else lazy), name


def _open(file: MappedFile, source: str, ids: Sequence[str]) -> tuple[nw.LazyFrame[Any], str]:
    frame = file.path
    if isinstance(frame, MappedFile):
        return open_frame(frame, source, ids)
    if isinstance(frame, str | Path):
        name = source or Path(frame).name
        spelled = tuple(file.columns.get(column, column) for column in ids)
        with readable(name):
            lazy = open_file(Path(frame), name, file.reading, (*spelled, *file.reading.items))
            lazy.collect_schema()  # what cannot be read fails here, where its file is named
        return nw.from_native(lazy), name
    name = source or f"the {type(frame).__name__} given"
    if isinstance(frame, dict):
        try:
            keyed = keyed_rows(frame) if all(re.search(r"\d", str(key)) for key in frame) else []
            frame = pl.DataFrame(keyed or frame, infer_schema_length=None)
        except UnicodeEncodeError:
            raise DataError(name, [HALF_CHARACTER]) from None
        except (TypeError, pl.exceptions.PolarsError) as error:
            raise DataError(name, [f"the columns do not make a table: {error}"]) from None
    try:
        with readable(name):
            opened = nw.from_native(frame)
            if isinstance(opened, nw.DataFrame) and _holds_nested(opened):
                native = opened.lazy().collect(backend="polars").to_native().lazy()
                opened = nw.from_native(with_nested(native, name))
            return opened.lazy(), name
    except TypeError:
        fault = (
            f"a {type(frame).__name__} is not a table; give a path, or a pandas, Polars, Arrow, "
            "DuckDB or PySpark frame"
        )
        raise DataError(name, [fault]) from None


def _holds_nested(frame: nw.DataFrame[Any]) -> bool:
    """Whether cells hold lists and objects, or words for them, that only Polars can open."""
    try:
        start: pl.DataFrame = frame.head(64).lazy().collect(backend="polars").to_native()
    except Exception:  # of mixed values; the error comes where the column is read
        return False
    return bool(nested_columns(start)) or any(d.is_nested() for d in start.schema.values())


def _in_our_names(lazy: nw.LazyFrame[Any], file: MappedFile, name: str) -> nw.LazyFrame[Any]:
    with readable(name):
        lazy = _with_parts(lazy, [*file.columns.values(), *file.reading.labels])
        found = lazy.collect_schema().names()
    theirs_of = {ours: _nearest(theirs, found, name) for ours, theirs in file.columns.items()}
    about = {theirs: f", mapped to {ours!r}," for ours, theirs in theirs_of.items()}
    need_columns(name, about, found)
    given = set(theirs_of.values())
    # A column that happens to have the name of another one's meaning gives way to it.
    kept = [column for column in found if column not in given and column not in theirs_of]
    reading = file.reading
    if file.only:
        shaped = {*reading.labels, *reading.items, *(column for column, _ in reading.where)}
        kept = [column for column in kept if column in shaped]
    renamed = [nw.col(theirs).alias(ours) for ours, theirs in theirs_of.items()]
    lazy = lazy.select(*renamed, *kept)
    if not reading.reshapes:
        return lazy
    native = lazy.to_native()
    if not isinstance(native, pl.LazyFrame):
        native = lazy.collect(backend="polars").to_native().lazy()
    return nw.from_native(reshape(native, reading, name))


def parts_of(name: str, dtype: Any, value: nw.Expr | None = None) -> dict[str, nw.Expr]:
    """Return what an object in a column holds, by its path: ``user.id``."""
    made: dict[str, nw.Expr] = {}
    for one in dtype.fields if isinstance(dtype, nw.Struct) else ():
        path = f"{name}.{one.name}"
        made[path] = (nw.col(name) if value is None else value).struct.field(one.name)
        made |= parts_of(path, one.dtype, made[path])
    return made


def flat(lazy: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
    """Return a table with the parts of objects as columns, instead of the objects."""
    schema = lazy.collect_schema()
    parts = {k: v for name, dtype in schema.items() for k, v in parts_of(name, dtype).items()}
    if not parts:
        return lazy
    made = lazy.with_columns(**parts)
    return made.drop([n for n, d in made.collect_schema().items() if isinstance(d, nw.Struct)])


def _with_parts(lazy: nw.LazyFrame[Any], wanted: Sequence[str]) -> nw.LazyFrame[Any]:
    """Return a table with the parts of objects that are wanted as columns."""
    if not any("." in name for name in wanted):
        return lazy
    schema = lazy.collect_schema()
    parts = {k: v for name, dtype in schema.items() for k, v in parts_of(name, dtype).items()}
    absent = {name: parts[name] for name in wanted if name not in schema and name in parts}
    return lazy.with_columns(**absent) if absent else lazy


def _nearest(theirs: str, found: Sequence[str], name: str) -> str:
    """Return the column of that name, else the only one that differs in capitals and spaces."""
    if theirs in found:
        return theirs
    near = [one for one in found if one.strip().casefold() == theirs.strip().casefold()]
    if len(near) != 1:
        return theirs
    note(name, f"column {near[0]!r} is read as {theirs!r}", "assumed/capitals")
    return near[0]


def _capitals(lazy: nw.LazyFrame[Any], wanted: Sequence[str], name: str) -> nw.LazyFrame[Any]:
    try:
        found = lazy.collect_schema().names()
    except Exception:  # of any engine; the error comes where the frame is read
        return lazy
    near = {c: _nearest(c, found, name) for c in wanted if c not in found}
    renamed = {theirs: ours for ours, theirs in near.items() if theirs in found}
    return lazy.rename(renamed) if renamed else lazy


def _source_of(frame: Frame) -> tuple[Path | None, Reading, str, dict[str, str]]:
    """Return the file behind a frame, how it is read, where that is set, and its headers."""
    if isinstance(frame, MappedFile):
        path, reading, setting, names = _source_of(frame.path)
        inner = frame.reading if frame.reading != PLAIN else reading
        chosen = frame.setting if frame.setting != _SETTING else setting
        return path, inner, chosen, names | dict(frame.columns)
    path = Path(frame) if isinstance(frame, str | Path) else None
    return path, PLAIN, _SETTING, {}


def unreadable_names(found: Sequence[str]) -> list[str]:
    """Return a fault when names of columns hold what the reader puts in place of a bad byte."""
    wrong = [name for name in found if "\ufffd" in name]
    return [f"the name of column {name[:40]!r} is not UTF-8" for name in wrong[:3]]


def read_table(
    frame: Frame, columns: Sequence[Column], source: str = "", further: Column | None = None
) -> pl.DataFrame:
    """Return the named columns of a frame or file as a Polars frame, checked.

    Parameters
    ----------
    frame
        A path (Parquet, CSV, TSV, JSONL) or any frame that narwhals knows.
    columns
        What the columns must be; others are ignored.
    source
        The name of the table in messages; default, the file's name.
    further
        What columns must be whose names begin with the name of this one.

    Raises
    ------
    DataError
        With every fault found, and the first rows of each (counted from 1).
    """
    ids = [column.name for column in columns if column.kind == "id"]
    lazy, name = open_frame(frame, source, ids, [column.name for column in columns])
    with readable(name, others=not lazy.implementation.is_polars()):
        result = lazy.collect_schema()
        faults = _missing(columns, result.names())
        if further is not None:
            more = [c for c in result.names() if c.startswith(further.name) and c != further.name]
            columns = [*columns, *(replace(further, name=name) for name in more)]
        present = [column for column in columns if column.name in result.names()]
        mixed = [column for column in present if result[column.name] == nw.Object]
        for column in mixed:
            fault = f"column {column.name!r}: holds values of several types"
            faults.append(f"{fault}; {_EXPECTED[column.kind]} were expected")
        present = [column for column in present if column not in mixed]
        selected = lazy.select([column.name for column in present])
        table: pl.DataFrame = selected.collect(backend="polars").to_native()
    file, reading, setting, headers = _source_of(frame)
    spelled = file is not None and file_type(file)[0] not in _TYPED
    if spelled and present:
        table = without_odd_rows(table, name, ids, headers)
    for column in present:
        made = understand(table[column.name], column.kind, reading, name, setting, spelled=spelled)
        missing = made.values.null_count()
        if column.unread and (made.faults or (missing and not column.nullable)):
            table = table.drop(column.name)
            why = f"{missing:,} of {table.height:,} cells are empty"
            kind = "warning" if made.faults else "assumed"
            note(name, f"column {column.name!r} is ignored ({(*made.faults, why)[0]}): nothing "
                 "in this audit reads it", f"{kind}/unread-column")  # fmt: skip
        elif made.faults:
            table = table.drop(column.name)
            faults += made.faults
        else:
            table = table.with_columns(made.values.alias(column.name))
    if present and table.height == 0 and table.width:
        faults.append("the table has no rows")
    present = [column for column in present if column.name in table.columns]
    faults += _faults(present, table)
    if faults:
        raise DataError(name, faults)
    return table.with_columns(_cast(column, table.schema[column.name]) for column in present)


def _last(value: pl.Expr) -> pl.Expr:
    """The place of the last row that is not empty."""
    return value.is_not_null().arg_true().max()


def without_odd_rows(
    table: pl.DataFrame,
    name: str,
    ids: Sequence[str] = (),
    headers: Mapping[str, str] | None = None,
) -> pl.DataFrame:
    """Return a table without rows that are no data, such as blank lines and totals; count them.

    The rows are of a file without types. `ids` are the columns that hold ids; default, the first
    column. `headers` has, by name of a column here, its name in the file.
    """
    words = [c for c in table.columns if table.schema[c] == pl.String]
    filled = [c for c in table.columns if table[c].null_count() < table.height][:1]
    first = next((c for c in ids or filled if c in words), None)
    if first is None or table.width == 1:
        return table
    others = pl.all_horizontal(pl.col(c).is_null() for c in table.columns if c != first)
    word = pl.col(first).str.strip_chars().str.strip_chars(":").str.to_lowercase()
    odd = {
        "blank lines": pl.col(first).is_null() & others,
        "comments (# ...)": pl.col(first).str.starts_with("#") & others,
        "rulers and row counts": pl.col(first).str.contains(_RULER) & others,
        "totals": word.is_in(_TOTALS) & (pl.int_range(pl.len()) == _last(pl.col(first))),
    }
    for name_of in (c for c in ids if c in words):
        # A few rows may lack an id; a column that often does is the wrong one.
        none = pl.col(name_of).str.strip_chars().fill_null("") == ""
        lacks = lacks_id(pl.col(name_of)) | (none & (none.mean() < 0.1))
        odd[f"rows without an id (NULL in column {name_of!r})"] = lacks
    if len(words) == table.width:
        named = headers or {}
        odd["repeated header rows"] = pl.all_horizontal(
            pl.col(c).str.strip_chars(" \t\ufeff").str.to_lowercase()
            == named.get(c, c).strip().lower()
            for c in words
        )
    found = table.select(**{what: condition.fill_null(False) for what, condition in odd.items()})
    for what in odd:
        count = int(found[what].sum())
        if count:
            note(name, f"{what} are not read", "skipped-rows", count, table.height)
    drop = found.select(pl.any_horizontal(pl.all())).to_series()
    return table.filter(~drop) if drop.any() else table


def without_copies(table: pl.DataFrame, where: str) -> tuple[pl.DataFrame, list[Exclusion]]:
    """Return a table without rows that repeat another one in every column, and their number."""
    kept = table.unique(maintain_order=True)
    gone, reason = table.height - kept.height, "they repeat another row in every column"
    return kept, [Exclusion(where, "rows", gone, reason, table.height)] if gone else []


def numbered(table: pl.DataFrame, ids: Sequence[str]) -> pl.DataFrame:
    """Return ids that are spelled as whole numbers are as numbers; 007 and +7 stay text."""
    return table.with_columns(understand(table[name], "id").values for name in ids)


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


def _is_wide(dtype: pl.DataType) -> bool:
    """Whether whole numbers of a type may not fit into 64 signed bits."""
    return dtype.is_integer() and dtype not in {
        pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32,
    }  # fmt: skip


def _faults(columns: Sequence[Column], table: pl.DataFrame) -> list[str]:
    """Return what is wrong with columns: their types, or the values of some rows."""
    wrong = {c.name: text for c in columns if (text := _wrong_type(c, table.schema[c.name]))}
    checks = [
        (column.name, text, condition)
        for column in columns
        for text, condition in _checks(column, table.schema[column.name]).items()
        if column.name not in wrong
    ]
    totals = table.select(**{str(i): check[2].sum() for i, check in enumerate(checks)})
    faults = {name: [f"column {name!r}: {text}"] for name, text in wrong.items()}
    for (name, text, condition), total in zip(checks, totals.row(0) if checks else (), strict=True):
        if total:
            shown = f"column {name!r} is {text} in {rows_where(table, condition)}"
            faults.setdefault(name, []).append(shown)
    return [fault for column in columns for fault in faults.get(column.name, ())]


def _checks(column: Column, dtype: pl.DataType) -> dict[str, pl.Expr]:
    """Return what a value of a column must not be."""
    value, made = pl.col(column.name), {}
    if not column.nullable:
        made["missing"] = value.is_null()
    if dtype.is_float():
        made |= {} if column.nullable else {"not a number (NaN)": value.is_nan()}
        made["infinite"] = value.is_infinite()
    if dtype.is_numeric() and column.low is not None:
        made[f"below {column.low}"] = value < column.low
    if column.kind == "flag" and dtype.is_integer():
        made["neither 0 nor 1"] = ~value.is_in([0, 1])
    if column.kind == "count" and _is_wide(dtype):
        made[f"above {_LARGEST:,}"] = value > _LARGEST
    if dtype.is_numeric() and column.high is not None:
        # Polars sorts NaN above every number.
        number = value.is_not_nan() if dtype.is_float() else pl.lit(True)
        made[f"above {column.high}"] = (value > column.high) & number
    return made


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
        "time": dtype.is_numeric() or dtype in (pl.Date, pl.Datetime),
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
