"""What every reader gives: batches of books, authors, authority records or ratings.

Lines of JSON are read here for all of them; a line that is no JSON costs only itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from ombud.link.problems import Problems

BATCH = 20_000
"""Records in one batch of readers that go record by record."""

_TEXTS = pl.List(pl.String)

BOOKS: dict[str, Any] = {
    "key": pl.String,
    "work": pl.String,
    "isbns": _TEXTS,
    "cancelled": _TEXTS,
    "authors": _TEXTS,
    "names": _TEXTS,
}
"""Books: the source's own id, its work, texts with ISBNs, and creators in order, by id or name."""

AUTHORS: dict[str, Any] = {"author": pl.String, "names": _TEXTS, "ids": _TEXTS}
"""Authors to whom books refer by id; `ids` such as ``"viaf:96992551"`` beat names."""

AUTHORITIES: dict[str, Any] = {
    "key": pl.String,
    "names": _TEXTS,
    "ids": _TEXTS,
    "assertions": pl.List(
        pl.Struct(
            {
                "attribute": pl.String,
                "value": pl.String,
                "vocabulary": pl.String,
                "start": pl.String,
                "end": pl.String,
            }
        )
    ),
}
"""Authority records: names, ids, and what they assert, with dates where there are any."""

RATINGS: dict[str, Any] = {
    "user": pl.String,
    "item": pl.String,
    "rating": pl.Float32,
    "time": pl.Float64,
}
"""Ratings: a missing rating is an interaction without one."""

GIVEN: dict[str, Any] = {"key": pl.String, "value": pl.String}
"""Identities that a source has resolved itself, by the book's key."""


@dataclass(frozen=True, eq=False)
class Batch:
    """One table of a reader."""

    kind: str  # ``"books"``, ``"authors"``, ``"authorities"``, ``"ratings"`` or ``"given"``
    source: str  # the data set it comes from, such as ``"openlibrary"``
    frame: pl.DataFrame  # the rows, with the columns of the kind
    # Whether the assertions were inferred (from first names, say) and not made by people.
    inferred: bool = False
    scale: tuple[float, float] | None = None  # Lowest and highest rating, for ratings
    # The source whose own ids the rated items are; default, none: they are ISBNs or stay as they
    # are.
    refers: str = ""


@dataclass(frozen=True)
class ReaderOptions:
    """The options of a reader."""

    attribute: str = "gender"  # the attribute of creators that is asked for
    # Where MARC authority records assert it; 375 ``$a`` for gender, 370 for places, 374 for
    # occupations, 386 for other characteristics.
    marc_field: str = "375"
    marc_subfield: str = "a"
    wikidata_property: str = "P21"  # which Wikidata property asserts it; P21 is sex or gender
    column: str = ""  # which column of a list of people asserts it; default, the attribute's name
    # Whether the author names of platforms (BookCrossing, Amazon, GoodReads) are used. They are
    # counted apart.
    platform_authors: bool = False
    inferred: bool = False  # whether lists whose values were inferred from names are read


@dataclass(frozen=True)
class Reader:
    """A format: its name, what it is, and the function that reads it."""

    name: str
    about: str
    read: Callable[[Path, ReaderOptions, Problems], Iterator[Batch]] = field(repr=False)


def conformed(frame: pl.DataFrame, schema: dict[str, Any]) -> pl.DataFrame:
    """Return the columns of one kind, with their types."""
    return frame.select(list(schema)).cast(pl.Schema(schema))


def as_frame(rows: Sequence[tuple[Any, ...]], schema: dict[str, Any]) -> pl.DataFrame:
    """Return rows as a frame of one kind."""
    return pl.DataFrame(rows, schema=schema, orient="row")


def decode_lines(
    lines: list[bytes], fields: dict[str, Any], source: str, problems: Problems
) -> pl.DataFrame:
    """Return some fields of JSON objects, one row a line that can be read.

    Fields that are not wanted are not looked at; lines that are not JSON objects, and fields of
    another type, are counted.

    Returns
    -------
    polars.DataFrame
        A field of another type is null; where a number was expected, NaN, so that it can be told
        from one that is not there.
    """
    texts = pl.Series([line.decode("utf-8", "replace") for line in lines], dtype=pl.String)
    # Polars makes another character of half a one.
    slow = _has_truth(texts, fields) or texts.str.contains(r"\\u[dD][89a-fA-F]").any()
    found = None if slow else _decoded_at_once(texts, fields)
    if found is not None:
        return found
    kept: list[Any] = []
    for text in texts:
        try:
            content = json.loads(text)
        except (ValueError, RecursionError):
            problems.add(source, "a line that is not JSON", text[:60])
            continue
        if not isinstance(content, dict):
            problems.add(source, "a line that is no JSON object", text[:60])
            continue
        row: dict[str, Any] = {}
        for name, kind in fields.items():
            odd: list[Any] = []
            row[name] = _fitted(content.get(name), kind, odd)
            if odd:
                reason = "a field of another type than expected (not used)"
                problems.add(source, reason, f"{name}: {odd[0]!r:.60}")
        kept.append(row)
    return pl.DataFrame(kept, schema=fields)


def _has_truth(texts: pl.Series, fields: dict[str, Any]) -> bool:
    """Return whether a number is true or false, which Polars takes for 1 and 0."""
    names = "|".join(re.escape(name) for name, kind in fields.items() if kind == pl.Float64)
    return bool(names) and texts.str.contains(rf'"(?:{names})"\s*:\s*(?:true|false)').any()


def _decoded_at_once(texts: pl.Series, fields: dict[str, Any]) -> pl.DataFrame | None:
    """Return all lines, or None where one of them is no object or a field does not fit."""
    try:
        rows = texts.str.json_decode(pl.Struct(fields))
    except pl.exceptions.PolarsError:
        return None
    # A line that is no more than ``null`` is decoded too.
    return None if rows.null_count() else rows.struct.unnest()


def _fitted(value: Any, kind: Any, odd: list[Any]) -> Any:
    """Return a value as its type wants it; what does not fit is added to `odd`."""
    if value is None:
        return None
    if isinstance(kind, pl.List):
        values = value if isinstance(value, list) else [value]
        return [_fitted(v, kind.inner, odd) for v in values]
    if isinstance(kind, pl.Struct) and isinstance(value, dict):
        return {f.name: _fitted(value.get(f.name), f.dtype, odd) for f in kind.fields}
    if kind == pl.String and not isinstance(value, list | dict):
        text = value if isinstance(value, str) else json.dumps(value)
        # Half a character, which JSON can hold and UTF-8 cannot, becomes U+FFFD.
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if kind == pl.Float64:
        return _number(value, odd)
    odd.append(value)
    return None


def _number(value: Any, odd: list[Any]) -> float | None:
    if isinstance(value, str) and not value.strip():
        return None
    try:
        if not isinstance(value, bool):
            return float(value)
    except (TypeError, ValueError, OverflowError):
        pass
    odd.append(value)
    return float("nan")
