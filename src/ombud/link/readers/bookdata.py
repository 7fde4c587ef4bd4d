"""The Parquet files that the PIReTship bookdata-tools write, for those who have them already.

Their clusters are kept: each is one work. First authors and VIAF names are read where the files are
there, and resolved by ombud; where ``viaf/`` is missing, the genders that the tools resolved are
taken as they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pyarrow.parquet as pq

from ombud.errors import DataError
from ombud.link.problems import Problems
from ombud.link.readers.base import (
    AUTHORITIES,
    BOOKS,
    GIVEN,
    RATINGS,
    Batch,
    ReaderOptions,
    conformed,
)

_BLOCK = 2_000_000
_RATINGS = {
    "bx-explicit": ("bx/bx-cluster-ratings.parquet", (1.0, 10.0)),
    "bx-implicit": ("bx/bx-cluster-actions.parquet", None),
    "az2014": ("az2014/az-cluster-ratings.parquet", (1.0, 5.0)),
    "az2018": ("az2018/az-cluster-ratings.parquet", (1.0, 5.0)),
    "gr-explicit": ("goodreads/gr-cluster-ratings.parquet", (1.0, 5.0)),
    "gr-implicit": ("goodreads/gr-cluster-actions.parquet", None),
    "gr-simple-explicit": ("goodreads/simple/gr-cluster-ratings.parquet", (1.0, 5.0)),
    "gr-simple-implicit": ("goodreads/simple/gr-cluster-actions.parquet", None),
    "gr-full-explicit": ("goodreads/full/gr-cluster-ratings.parquet", (1.0, 5.0)),
    "gr-full-implicit": ("goodreads/full/gr-cluster-actions.parquet", None),
}
# The tools write some tables once more with users and items of at least so many interactions.
_CORES = ("", "-5core", "-2015-100-10core")
_WORKS = "bookdata-works"


def read_bookdata(path: Path, options: ReaderOptions, problems: Problems) -> Iterator[Batch]:
    """PIReTship bookdata-tools: the project folder with ``book-links/``, ``viaf/``, ``bx/`` ..."""
    clusters = path / "book-links" / "isbn-clusters.parquet"
    if not clusters.is_file():
        raise DataError(path.name, ["there is no book-links/isbn-clusters.parquet in it"])
    yield from _books(path, clusters)
    index, values = path / "viaf/author-name-index.parquet", path / "viaf/author-genders.parquet"
    given = path / "book-links/cluster-genders.parquet"
    if index.is_file() and values.is_file() and options.attribute == "gender":
        yield from _authorities(index, values)
    elif given.is_file() and options.attribute == "gender":
        table = pl.read_parquet(given).select(
            key=pl.col("cluster").cast(pl.String), value=pl.col("gender").cast(pl.String)
        )
        yield Batch("given", "bookdata", conformed(table, GIVEN))
    else:
        problems.add(path.name, f"nothing there asserts {options.attribute}")
    works = False
    for source, (file, scale) in _RATINGS.items():
        for core in _CORES:
            found = path / file.replace(".parquet", f"{core}.parquet")
            if found.is_file():
                yield from _ratings(found, f"{source}{core}", scale, "bookdata")
            found = path / file.replace("-cluster-", "-work-").replace(".p", f"{core}.p")
            if "goodreads/" in file and found.is_file():
                works = True
                yield from _ratings(found, f"{source}-works{core}", scale, _WORKS)
    if works:
        yield from _works(path / "goodreads", options, problems)


def _works(folder: Path, options: ReaderOptions, problems: Problems) -> Iterator[Batch]:
    """Yield GoodReads works, which are items of their own, with the genders that were resolved."""
    for name, key in (("gr-work-item-gender", "item_id"), ("gr-work-gender", "work_id")):
        file = folder / f"{name}.parquet"
        if not file.is_file() or options.attribute != "gender":
            continue
        table = pl.read_parquet(file).drop_nulls(key).unique(key, keep="first", maintain_order=True)
        table = table.select(key=pl.col(key).cast(pl.String), value=pl.col("gender"))
        none = pl.lit([], dtype=pl.List(pl.String))
        lists = dict.fromkeys(("isbns", "cancelled", "authors", "names"), none)
        books = table.select("key", work="key", **lists)
        yield Batch("books", _WORKS, conformed(books, BOOKS))
        yield Batch("given", _WORKS, conformed(table, GIVEN))
        return
    problems.add(folder.name, f"nothing there asserts {options.attribute} of works")


def _books(path: Path, clusters: Path) -> Iterator[Batch]:
    table = pl.scan_parquet(clusters)
    columns = table.collect_schema().names()
    if "isbn" not in columns:
        every = path / "book-links" / "all-isbns.parquet"
        if not every.is_file():
            raise DataError(path.name, ["isbn-clusters.parquet has no isbn; all-isbns is missing"])
        table = table.join(pl.scan_parquet(every).select("isbn_id", "isbn"), on="isbn_id")
    first = path / "book-links" / "cluster-first-authors.parquet"
    named = pl.scan_parquet(first) if first.is_file() else None
    for part in _parts_of(clusters, "cluster"):
        grouped = table.filter(part).group_by("cluster").agg(isbns=pl.col("isbn").cast(pl.String))
        if named is not None:
            authors = named.filter(part).group_by("cluster").agg(found=pl.col("author_name"))
            grouped = grouped.join(authors, on="cluster", how="left")
        else:
            grouped = grouped.with_columns(found=pl.lit([], dtype=pl.List(pl.String)))
        yield _book_batch(grouped.collect(engine="streaming"))


def _parts_of(file: Path, key: str) -> list[pl.Expr]:
    """Return conditions that part a table's rows by a key, about two million rows each."""
    rows = pq.ParquetFile(file).metadata.num_rows
    count = max(1, -(-rows // _BLOCK))
    # Tables may store the same keys as different types.
    part = pl.col(key).cast(pl.String).hash(seed=0) % count
    return [part == number for number in range(count)]


def _book_batch(grouped: pl.DataFrame) -> Batch:
    nothing = pl.lit([], dtype=pl.List(pl.String))
    names = pl.col("found").fill_null([])
    # Every name of a cluster is that of a first author, so each is a record of its own.
    part = grouped.select(key=pl.col("cluster").cast(pl.String), isbns="isbns", found=names)
    books = part.select(
        key="key", work="key", isbns="isbns", cancelled=nothing, authors=nothing, names=nothing
    )
    named = part.select("key", "found").explode("found").drop_nulls("found")
    more = named.select(
        key="key",
        work="key",
        isbns=nothing,
        cancelled=nothing,
        authors=nothing,
        names=pl.concat_list("found"),
    )
    return Batch("books", "bookdata", conformed(pl.concat([books, more]), BOOKS))


def _authorities(index: Path, values: Path) -> Iterator[Batch]:
    assertion = pl.struct(
        attribute=pl.lit("gender"),
        value=pl.col("gender").cast(pl.String),
        vocabulary=pl.lit("viaf-marc"),
        start=pl.lit(None, dtype=pl.String),
        end=pl.lit(None, dtype=pl.String),
    )
    for part in _parts_of(index, "rec_id"):
        names = pl.scan_parquet(index).filter(part)
        found = pl.scan_parquet(values).filter(part)
        people = names.group_by("rec_id").agg(names=pl.col("name").unique())
        asserted = found.group_by("rec_id").agg(assertions=assertion)
        joined = people.join(asserted, on="rec_id", how="left").select(
            key=pl.col("rec_id").cast(pl.String),
            names="names",
            ids=pl.lit([], dtype=pl.List(pl.String)),
            assertions=pl.col("assertions").fill_null([]),
        )
        some = conformed(joined.collect(engine="streaming"), AUTHORITIES)
        yield Batch("authorities", "viaf", some)


def _ratings(
    file: Path, source: str, scale: tuple[float, float] | None, refers: str
) -> Iterator[Batch]:
    lazy = pl.scan_parquet(file)
    names = lazy.collect_schema().names()
    rating = pl.col("rating") if "rating" in names else pl.lit(None)
    time = next((c for c in ("last_time", "timestamp", "first_time") if c in names), None)
    # Newer versions name the columns of users and items as LensKit does.
    user, item = ("user_id", "item_id") if "user_id" in names else ("user", "item")
    if not {user, item} <= set(names):
        raise DataError(file.name, [f"there are no columns user_id and item_id ({names})"])
    columns = {
        "user": pl.col(user),
        "item": pl.col(item),
        "rating": rating,
        "time": pl.lit(None) if time is None else pl.col(time),
    }
    height = int(lazy.select(pl.len()).collect().item())
    for low in range(0, height, _BLOCK):
        part = lazy.slice(low, _BLOCK).select(**columns).collect()
        frame = conformed(part, RATINGS)
        yield Batch("ratings", source, frame, scale=scale, refers=refers)
