"""What every reader gives: batches of books, of authors, of authority records, or of ratings."""

from __future__ import annotations

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
    """One table of a reader.

    Parameters
    ----------
    kind
        ``"books"``, ``"authors"``, ``"authorities"``, ``"ratings"`` or ``"given"``.
    source
        The data set it comes from, such as ``"openlibrary"``.
    frame
        The rows, with the columns of the kind.
    inferred
        Whether the assertions were inferred (from first names, say) and not made by people.
    scale
        Lowest and highest rating, for ratings.
    refers
        The source whose own ids the rated items are; default, none: they are ISBNs or stay as
        they are.
    """

    kind: str
    source: str
    frame: pl.DataFrame
    inferred: bool = False
    scale: tuple[float, float] | None = None
    refers: str = ""


@dataclass(frozen=True)
class ReaderOptions:
    """What readers are told.

    Parameters
    ----------
    attribute
        The attribute of creators that is asked for.
    marc_field, marc_subfield
        Where MARC authority records assert it; 375 ``$a`` for gender, 370 for places, 374 for
        occupations, 386 for other characteristics.
    wikidata_property
        Which Wikidata property asserts it; P21 is sex or gender.
    column
        Which column of a list of people asserts it; default, the attribute's name.
    platform_authors
        Whether the author names of platforms (BookCrossing, Amazon, GoodReads) are used. They are
        counted apart.
    inferred
        Whether lists whose values were inferred from names are read.
    """

    attribute: str = "gender"
    marc_field: str = "375"
    marc_subfield: str = "a"
    wikidata_property: str = "P21"
    column: str = ""
    platform_authors: bool = False
    inferred: bool = False


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
