"""What is wrong with a table, in words that name its rows and columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import narwhals as nw
import polars as pl

from ombud.errors import DataError, OmbudError
from ombud.files import without_advice

HALF_CHARACTER = "a text holds half a character (a lone surrogate), which UTF-8 cannot hold"
# The reader's own words can hold a whole broken file.
_LONGEST_FAULT = 300


def first_rows(rows: Sequence[int], total: int) -> str:
    """Return row numbers as words: the first few, and how many there are in all."""
    shown = ", ".join(str(row) for row in rows[:5])
    more = ", ..." if total > 5 else ""
    return f"row{'s' if total != 1 else ''} {shown}{more} ({total:,} in all)"


def rows_where(table: pl.DataFrame, wrong: pl.Expr | pl.Series) -> str:
    """Return the rows of a table for which a condition holds, as `first_rows`; empty for none."""
    rows = table.select((pl.lit(wrong) if isinstance(wrong, pl.Series) else wrong).arg_true() + 1)
    return first_rows(rows.head(5).to_series().to_list(), rows.height) if rows.height else ""


def need_columns(source: str, wanted: Mapping[str, str], found: Sequence[str]) -> None:
    """Refuse a table without some columns; `wanted` has, by name, who wants it, or nothing."""
    names = ", ".join(name[:40] for name in found[:20]) or "no columns"
    absent = {column: who for column, who in wanted.items() if column not in found}
    if absent:
        raise DataError(source, [f"column {column!r}{who} is missing (found: {names})"
                                 for column, who in absent.items()])  # fmt: skip


@contextmanager
def readable(name: str, others: bool = False) -> Iterator[None]:
    """Refuse what is no table, in the reader's words, of which there may be many.

    `others` is for engines whose errors need not be there to be named, such as DuckDB and Spark.
    """
    known = pl.exceptions.PolarsError, nw.exceptions.NarwhalsError, OSError, RecursionError
    native = pl.exceptions.PanicException, MemoryError, OverflowError
    try:
        yield
    except UnicodeEncodeError:
        raise DataError(name, [HALF_CHARACTER]) from None
    except (Exception, pl.exceptions.PanicException) as error:
        if isinstance(error, OmbudError) or not (others or isinstance(error, (*known, *native))):
            raise
        text = without_advice(error)
        more = "" if len(text) <= _LONGEST_FAULT else "..."
        fault = f"it cannot be read as a table: {text[:_LONGEST_FAULT]}{more}"
        raise DataError(name, [fault]) from None
