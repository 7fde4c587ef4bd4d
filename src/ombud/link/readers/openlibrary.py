"""OpenLibrary dumps: one tab-separated line each, with JSON in the last column."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

from ombud.link._streams import lines_in_blocks, open_bytes
from ombud.link.problems import Problems
from ombud.link.readers._json import decode_lines
from ombud.link.readers.base import AUTHORS, BOOKS, Batch, ReaderOptions, conformed

_TEXTS = pl.List(pl.String)
_KEY = pl.Struct({"key": pl.String})
_FIELDS: dict[str, dict[str, Any]] = {
    "edition": {
        "key": pl.String,
        "isbn_10": _TEXTS,
        "isbn_13": _TEXTS,
        "authors": pl.List(_KEY),
        "works": pl.List(_KEY),
    },
    "work": {
        "key": pl.String,
        "authors": pl.List(pl.Struct({"author": _KEY})),
    },
    "author": {
        "key": pl.String,
        "name": pl.String,
        "personal_name": pl.String,
        "alternate_names": _TEXTS,
        "remote_ids": pl.Struct(dict.fromkeys(("viaf", "wikidata", "lc_naf", "isni"), pl.String)),
    },
}
_SCHEMES = {"viaf": "viaf", "wikidata": "wikidata", "lc_naf": "lccn", "isni": "isni"}


def read_openlibrary(path: Path, options: ReaderOptions, problems: Problems) -> Iterator[Batch]:
    """OpenLibrary dumps of authors, editions or works, one file or the dump of everything."""
    with open_bytes(path) as stream:
        for lines in lines_in_blocks(stream, path.name, problems):
            yield from _block(lines, path.name, problems)


def _block(lines: list[bytes], source: str, problems: Problems) -> Iterator[Batch]:
    by_kind: dict[str, list[bytes]] = {kind: [] for kind in _FIELDS}
    other = short = 0
    for line in lines:
        cells = line.split(b"\t", 4)
        if len(cells) < 5:
            short += 1
            continue
        kind = cells[0].rpartition(b"/")[2].decode("latin-1")
        if kind in by_kind:
            by_kind[kind].append(cells[4])
        else:
            other += 1
    problems.add(source, "a line with fewer than five columns", count=short)
    problems.add(source, "neither author, edition nor work", count=other)
    for kind, texts in by_kind.items():
        if not texts:
            continue
        frame = decode_lines(texts, _FIELDS[kind], source, problems)
        if kind == "author":
            yield Batch("authors", "openlibrary", _authors(frame))
        else:
            yield Batch("books", "openlibrary", _books(frame, kind))


def _authors(frame: pl.DataFrame) -> pl.DataFrame:
    remote = [
        pl.format("{}:{}", pl.lit(scheme), pl.col("remote_ids").struct.field(field))
        for field, scheme in _SCHEMES.items()
    ]
    own = pl.format("openlibrary:{}", pl.col("key").str.replace(r"^.*/", ""))
    ids = pl.concat_list(own, *remote).list.drop_nulls()
    names = pl.concat_list("name", "personal_name", pl.col("alternate_names").fill_null([]))
    names = names.list.drop_nulls().list.unique(maintain_order=True)
    return conformed(frame.select(author=pl.col("key"), names=names, ids=ids), AUTHORS)


def _books(frame: pl.DataFrame, kind: str) -> pl.DataFrame:
    nothing = pl.lit([], dtype=_TEXTS)
    if kind == "work":
        author = pl.element().struct.field("author").struct.field("key")
        work: pl.Expr = pl.col("key")
        isbns: pl.Expr = nothing
    else:
        author = pl.element().struct.field("key")
        work = pl.col("works").list.first().struct.field("key")
        isbns = pl.concat_list(pl.col("isbn_10").fill_null([]), pl.col("isbn_13").fill_null([]))
    authors = pl.col("authors").fill_null([]).list.eval(author).list.drop_nulls()
    table = frame.select(
        key="key", work=work, isbns=isbns, cancelled=nothing, authors=authors, names=nothing
    )
    return conformed(table, BOOKS)
