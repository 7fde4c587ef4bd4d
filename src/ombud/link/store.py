"""The tables of a link folder: appended batch by batch, read back lazily."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow.parquet as pq

from ombud.errors import ResultError
from ombud.files import write_parquet
from ombud.link.isbn import extract_isbns
from ombud.link.problems import Problems
from ombud.link.readers.base import RATINGS, Batch, conformed

KINDS_OF_ISBN = {"usual": 0, "cancelled": 1, "set": 2}
"""How the column `kind` of the table of ISBNs says where an ISBN comes from."""


def kinds_of_isbn(set_isbns: bool, cancelled: bool) -> list[int]:
    """Return the kinds that tie records together: the usual ones, and others where asked for."""
    others = {"set": set_isbns, "cancelled": cancelled}
    return [KINDS_OF_ISBN["usual"], *(KINDS_OF_ISBN[name] for name, used in others.items() if used)]


TABLES: dict[str, dict[str, Any]] = {
    "books": {"record": pl.UInt32, "source": pl.String, "key": pl.String, "work": pl.String},
    "isbns": {"record": pl.UInt32, "isbn": pl.Int64, "form": pl.UInt8, "kind": pl.UInt8},
    "creators": {
        "record": pl.UInt32, "position": pl.UInt32, "source": pl.String, "author": pl.String,
        "name": pl.String,
    },
    "author_names": {"source": pl.String, "author": pl.String, "name": pl.String},
    "author_ids": {"source": pl.String, "author": pl.String, "id": pl.String},
    "authorities": {
        "authority": pl.UInt32, "source": pl.String, "key": pl.String, "inferred": pl.Boolean,
    },
    "authority_names": {"authority": pl.UInt32, "name": pl.String},
    "authority_ids": {"authority": pl.UInt32, "id": pl.String},
    "assertions": {
        "authority": pl.UInt32, "attribute": pl.String, "value": pl.String,
        "vocabulary": pl.String, "start": pl.String, "end": pl.String, "inferred": pl.Boolean,
    },
    "given": {"source": pl.String, "key": pl.String, "value": pl.String},
}  # fmt: skip
"""The tables that readers fill."""


@dataclass
class RatingSet:
    """What is known about one source of ratings."""

    source: str
    refers: str = ""
    scale: tuple[float, float] | None = None
    rows: int = 0


@dataclass(frozen=True)
class LinkTables:
    """The tables of a link folder, read lazily."""

    folder: Path  # where the Parquet files are

    def scan(self, name: str) -> pl.LazyFrame:
        """Return a table."""
        path = self.folder / f"{name}.parquet"
        if not path.is_file():
            raise ResultError(f"{path} is missing; build the folder again with 'ombud link build'")
        return pl.scan_parquet(path)

    def write(self, name: str, frame: pl.DataFrame) -> None:
        """Write a table whole."""
        write_parquet(self.folder / f"{name}.parquet", frame)


@dataclass
class Store:
    """Takes the batches of readers apart and appends them to the tables."""

    folder: Path  # an empty folder
    problems: Problems  # where faults are counted
    records: int = 0
    authorities: int = 0
    ratings: dict[str, RatingSet] = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=dict)
    _writers: dict[str, pq.ParquetWriter] = field(default_factory=dict)

    def append(self, batch: Batch) -> None:
        """Add one batch of a reader."""
        if batch.frame.height:
            getattr(self, f"_add_{batch.kind}")(batch)

    def close(self) -> LinkTables:
        """Finish all tables, the empty ones too."""
        for name, schema in TABLES.items():
            if name not in self._writers:
                self._write(name, pl.DataFrame(schema=schema))
        for writer in self._writers.values():
            writer.close()
        return LinkTables(self.folder)

    def _write(self, name: str, frame: pl.DataFrame, schema: dict[str, Any] | None = None) -> None:
        types = schema or TABLES[name]
        table = conformed(frame, types).to_arrow()
        writer = self._writers.get(name)
        if writer is None:
            path = self.folder / f"{name}.parquet"
            path.parent.mkdir(parents=True, exist_ok=True)
            writer = self._writers[name] = pq.ParquetWriter(path, table.schema, compression="zstd")
        self.rows[name] = self.rows.get(name, 0) + frame.height
        if frame.height:
            writer.write_table(table.cast(writer.schema))

    def _add_books(self, batch: Batch) -> None:
        frame = batch.frame.with_row_index("record", offset=self.records)
        self.records += frame.height
        self._write("books", frame.with_columns(source=pl.lit(batch.source)))
        for column, kind in (("isbns", "usual"), ("cancelled", "cancelled")):
            self._add_isbns(frame.select("record", text=column), kind, batch.source)
        named = frame.select("record", "authors", "names")
        by_id = named.filter(pl.col("authors").list.len() > 0).select("record", author="authors")
        by_name = named.filter(pl.col("authors").list.len() == 0).select("record", name="names")
        for part, column in ((by_id, "author"), (by_name, "name")):
            part = part.filter(pl.col(column).list.len() > 0)
            long = part.filter(pl.col(column).list.len() > 100).height
            self.problems.add(batch.source, "a record with more than 100 creators", count=long)
            part = part.explode(column).with_columns(
                position=pl.int_range(pl.len(), dtype=pl.UInt32).over("record"),
                source=pl.lit(batch.source),
            )
            other = pl.lit(None, dtype=pl.String).alias("name" if column == "author" else "author")
            self._write("creators", part.with_columns(other))

    def _add_isbns(self, texts: pl.DataFrame, kind: str, source: str) -> None:
        texts = texts.explode("text").drop_nulls().filter(pl.col("text").str.contains(r"\S"))
        if not texts.height:
            return
        found = extract_isbns(texts["text"])
        without = texts.height - found["row"].n_unique()
        self.problems.add(source, "a text in an ISBN field without an ISBN", count=without)
        wrong = found.height - int(found["valid"].sum())
        self.problems.add(
            source, "an ISBN whose check digit is wrong (used all the same)", count=wrong
        )
        if kind == "cancelled":
            self.problems.add(source, "a cancelled ISBN (020 $z), kept apart", count=found.height)
        code = pl.when("set").then(KINDS_OF_ISBN["set"]).otherwise(KINDS_OF_ISBN[kind])
        if kind == "cancelled":
            code = pl.lit(KINDS_OF_ISBN["cancelled"])
        rows = found.with_columns(record=texts["record"].gather(found["row"]), kind=code)
        self._write("isbns", rows.unique(["record", "isbn", "form", "kind"], maintain_order=True))

    def _add_authors(self, batch: Batch) -> None:
        frame = batch.frame.with_columns(source=pl.lit(batch.source))
        names = frame.select("source", "author", name="names").explode("name").drop_nulls()
        self._write("author_names", names)
        ids = frame.select("source", "author", id="ids").explode("id")
        ids = ids.with_columns(normalised_ids(pl.col("id"))).drop_nulls()
        self._write("author_ids", ids)

    def _add_authorities(self, batch: Batch) -> None:
        frame = batch.frame.with_row_index("authority", offset=self.authorities).with_columns(
            source=pl.lit(batch.source), inferred=pl.lit(batch.inferred)
        )
        self.authorities += frame.height
        self._write("authorities", frame)
        names = frame.select("authority", name="names").explode("name").drop_nulls()
        self._write("authority_names", names)
        ids = frame.select("authority", id="ids").explode("id")
        self._write("authority_ids", ids.with_columns(normalised_ids(pl.col("id"))).drop_nulls())
        said = frame.select("authority", "inferred", "assertions").explode("assertions")
        said = said.drop_nulls("assertions").unnest("assertions")
        self._write("assertions", said.drop_nulls("value"))

    def _add_ratings(self, batch: Batch) -> None:
        known = self.ratings.setdefault(
            batch.source, RatingSet(batch.source, batch.refers, batch.scale)
        )
        known.rows += batch.frame.height
        self._write(f"ratings/{batch.source}", batch.frame, RATINGS)

    def _add_given(self, batch: Batch) -> None:
        self._write("given", batch.frame.with_columns(source=pl.lit(batch.source)))


# Ids of people in one form, so that two sources that write them differently still meet.


def normalised_ids(ids: pl.Expr) -> pl.Expr:
    """Return ids such as ``"viaf:96992551"`` in one form; missing where nothing is left.

    They are a scheme, a colon, and the id or an address that ends in it.

    Examples
    --------
    >>> frame = pl.DataFrame({"id": ["isni:0000 0001 2136 482x", "viaf:", "openlibrary:/a/OL1A"]})
    >>> frame.select(normalised_ids(pl.col("id"))).to_series().to_list()
    ['isni:000000012136482X', None, 'openlibrary:OL1A']
    """
    scheme = ids.str.extract(r"^([^:]+):", 1).str.to_lowercase()
    own = ids.str.extract(r"^[^:]+:(.*)$", 1).str.replace_all(r"\s", "")
    own = own.str.replace(r"/+$", "").str.replace(r"^(?:https?:/)?/.*/", "")
    own = own.str.replace(r"\.0$", "")
    # A dash is part of no id here but is written in ISNI, and in old numbers of the Library.
    own = pl.when(scheme.is_in(["isni", "lccn"])).then(own.str.replace_all("-", "")).otherwise(own)
    own = pl.when(scheme == "lccn").then(own.str.to_lowercase()).otherwise(own.str.to_uppercase())
    return pl.when(own.str.len_chars() > 0).then(pl.concat_str(scheme, own, separator=":"))
