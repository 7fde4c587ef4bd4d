"""People and what is asserted about them: lists, Wikidata statements."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.resources import files
from io import BytesIO
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl
import pyarrow.parquet as pq

from ombud.data.faults import need_columns, readable
from ombud.data.frames import open_frame
from ombud.errors import DataError
from ombud.files import without_advice
from ombud.link._streams import UNPACKING, lines_in_blocks, open_bytes
from ombud.link.problems import Problems
from ombud.link.readers.base import AUTHORITIES, Batch, ReaderOptions, conformed, decode_lines

_IDS = ("viaf", "lccn", "wikidata", "isni", "openlibrary")


@dataclass(frozen=True)
class AuthorList:
    """How one published list is laid out."""

    source: str  # its short name; also the vocabulary of its terms
    names: tuple[str, ...]  # the columns that hold names
    attributes: dict[str, str]  # the column of each attribute
    key: str = ""  # the column of the person's id; default, the first name
    # A column with further names, parted by commas, and remarks in quotation marks.
    aliases: str = ""
    ids: dict[str, str] | None = None  # columns with ids in other files, by scheme
    separator: str = ","  # what stands between columns
    # Whether a cell may hold several people and as many values, parted by semicolons.
    several: bool = False
    inferred: bool = False  # whether the values were inferred from names


AUTHOR_LISTS = {
    path: AuthorList(**{**layout, "names": tuple(layout["names"])})
    for path, layout in tomllib.loads(
        (files("ombud.link.files") / "author_lists.toml").read_text(encoding="utf-8")
    ).items()
}
"""Published lists of authors, by their path in a folder of lists."""


def read_author_lists(path: Path, options: ReaderOptions, problems: Problems) -> Iterator[Batch]:
    """Published lists of authors (IBM, Post45, Pantheon, NovelTM ...): a folder, or one of them."""
    found = {name: path / name for name in AUTHOR_LISTS} if path.is_dir() else {}
    if path.is_file():
        name = next((n for n in AUTHOR_LISTS if str(path).replace("\\", "/").endswith(n)), None)
        if name is None:
            fault = "it is none of the lists known; give a list of your own as people=FILE"
            raise DataError(path.name, [fault])
        found = {name: path}
    present = {name: file for name, file in found.items() if file.is_file()}
    if not present:
        raise DataError(path.name, [f"none of the lists known is in {path}"])
    for name, file in present.items():
        layout = AUTHOR_LISTS[name]
        if layout.inferred and not options.inferred:
            problems.add(
                layout.source, "a list inferred from names, not read (inferred = true reads it)"
            )
            continue
        column = options.column or layout.attributes.get(options.attribute, "")
        if not column:
            problems.add(layout.source, f"the list says nothing about {options.attribute}")
            continue
        table = _list_table(file, layout)
        frame = _people(table, layout, column, options.attribute, problems)
        yield Batch("authorities", layout.source, frame, inferred=layout.inferred)


def _list_table(path: Path, layout: AuthorList) -> pl.DataFrame:
    try:
        with open_bytes(path) as stream:
            data = stream.read().removeprefix(b"\xef\xbb\xbf")
        return pl.read_csv(
            BytesIO(data),
            separator=layout.separator,
            infer_schema=False,
            encoding="utf8-lossy",
            truncate_ragged_lines=True,
        )
    except (pl.exceptions.PolarsError, *UNPACKING) as error:
        raise DataError(
            path.name, [f"it cannot be read as a table: {without_advice(error)}"]
        ) from None


def _repaired(text: str | None) -> str | None:
    """Undo UTF-8 that was once read as Mac Roman (``Garc√≠a`` is ``García``)."""
    if text is None or "√" not in text and "‚" not in text:
        return text
    try:
        return text.encode("mac_roman").decode("utf-8")
    except UnicodeError:
        return text


def _people(
    table: pl.DataFrame, layout: AuthorList, column: str, attribute: str, problems: Problems
) -> pl.DataFrame:
    absent = [c for c in (*layout.names[:1], column) if c not in table.columns]
    if absent:
        raise DataError(layout.source, [f"column {c!r} is missing" for c in absent])
    names = [c for c in layout.names if c in table.columns]
    broken = table.select(pl.any_horizontal(pl.col(names).str.contains("√", literal=True)).sum())
    problems.add(
        layout.source, "a name whose accents were damaged, repaired", count=broken.item() or 0
    )
    fixed = table.with_columns(pl.col(names).map_elements(_repaired, return_dtype=pl.String))
    if layout.several:
        fixed = _one_person_a_row(fixed, names[0], column, layout.source, problems)
    ids = [
        pl.format("{}:{}", pl.lit(scheme), pl.col(c).str.replace_all(r"\s|\.0$", ""))
        for scheme, c in (layout.ids or {}).items()
        if c in fixed.columns
    ]
    damaged = r"[eE]\+\d"
    for scheme, c in (layout.ids or {}).items():
        if c in fixed.columns:
            lost = fixed.select(pl.col(c).str.contains(damaged).sum()).item() or 0
            problems.add(layout.source, f"a {scheme} number damaged by a spreadsheet", count=lost)
    key = layout.key if layout.key in fixed.columns else names[0]
    listed = (
        pl.concat_list(ids).list.eval(
            pl.element().filter(pl.element().is_not_null() & ~pl.element().str.contains(damaged))
        )
        if ids
        else pl.lit([], dtype=pl.List(pl.String))
    )
    every: list[pl.Expr] = [pl.col(c) for c in names]
    if layout.aliases in fixed.columns:
        remark = pl.col(layout.aliases).str.contains('"', literal=True)
        more = pl.when(~remark).then(pl.col(layout.aliases)).str.split(", ")
        every.append(more.fill_null([]))
    rows = fixed.select(
        key=pl.col(key),
        names=pl.concat_list(every).list.drop_nulls(),
        ids=listed,
        value=pl.col(column).str.strip_chars(),
    )
    return _grouped(rows, attribute, layout.source, problems)


def _grouped(rows: pl.DataFrame, attribute: str, source: str, problems: Problems) -> pl.DataFrame:
    """Return one authority record a person, with every distinct value that the list has."""
    nameless = rows.filter(pl.col("names").list.len() == 0).height
    problems.add(source, "a person without a name", count=nameless)
    person = pl.col("names").list.first()
    people = (
        rows.filter(pl.col("names").list.len() > 0)
        .group_by(key=pl.coalesce("key", person), maintain_order=True)
        .agg(
            names=pl.col("names").explode().unique(maintain_order=True),
            ids=pl.col("ids").explode().drop_nulls().unique(maintain_order=True),
            values=pl.col("value").drop_nulls().unique(maintain_order=True),
        )
    )
    assertion = pl.struct(
        attribute=pl.lit(attribute),
        value=pl.element(),
        vocabulary=pl.lit(source),
        start=pl.lit(None, dtype=pl.String),
        end=pl.lit(None, dtype=pl.String),
    )
    people = people.with_columns(assertions=pl.col("values").list.eval(assertion))
    return conformed(people, AUTHORITIES)


def _one_person_a_row(
    table: pl.DataFrame, name: str, value: str, source: str, problems: Problems
) -> pl.DataFrame:
    people = pl.col(name).str.split(";")
    values = pl.col(value).str.replace_all(",", ";", literal=True).str.split(";")
    parted = table.with_columns(people.alias(name), values.alias(value))
    fits = (pl.col(name).list.len() == pl.col(value).list.len()).fill_null(False)
    kept = parted.filter(fits)
    reason = "a row whose people and values are not as many"
    problems.add(source, reason, count=parted.height - kept.height)
    kept = kept.explode(name, value)
    return kept.with_columns(pl.col(name, value).str.strip_chars())


def read_people(path: Path, options: ReaderOptions, problems: Problems) -> Iterator[Batch]:
    """A list of your own: `name`, the attribute, and optionally `id`, `viaf`, `start`, `end` ..."""
    lazy, source = open_frame(path)
    table: pl.DataFrame = lazy.collect(backend="polars").to_native()
    column = options.column or options.attribute
    need_columns(source, {"name": "", column: ""}, table.columns)
    table = table.cast(pl.String)
    own = [c for c in _IDS if c in table.columns]
    empty = pl.lit(None, dtype=pl.String)
    frame = table.with_row_index("n").select(
        key=pl.coalesce("id", "name") if "id" in table.columns else pl.col("name"),
        names=pl.concat_list("name").list.drop_nulls(),
        ids=pl.concat_list(
            [pl.format("{}:{}", pl.lit(c), pl.col(c)) for c in own] or [empty]
        ).list.drop_nulls(),
        assertion=pl.struct(
            attribute=pl.lit(options.attribute),
            value=pl.col(column),
            vocabulary=pl.lit("people"),
            start=pl.col("start") if "start" in table.columns else empty,
            end=pl.col("end") if "end" in table.columns else empty,
        ),
    )
    kept = frame.filter(pl.col("names").list.len() > 0)
    problems.add(source, "a person without a name", count=frame.height - kept.height)
    # One person may stand in several rows, one a period.
    people = kept.group_by("key", maintain_order=True).agg(
        pl.col("names").explode().unique(maintain_order=True),
        pl.col("ids").explode().drop_nulls().unique(maintain_order=True),
        assertions=pl.col("assertion"),
    )
    yield Batch("authorities", "people", conformed(people, AUTHORITIES))


_STATEMENT: dict[str, Any] = dict.fromkeys(("item", "property", "value", "start", "end"), pl.String)
_NAME_PROPERTIES = (
    "label",
    "alias",
    "name",
    "rdfs:label",
    "skos:altlabel",
    "p1559",
    "p1477",
    "p742",
)
_ID_PROPERTIES = {"p214": "viaf", "p244": "lccn", "p213": "isni", "p648": "openlibrary"}


def read_wikidata(path: Path, options: ReaderOptions, problems: Problems) -> Iterator[Batch]:
    """Wikidata statements: CSV, TSV or JSON lines of `item`, `property`, `value`."""
    wanted = options.wikidata_property.lower()
    used = {wanted, *_NAME_PROPERTIES, *_ID_PROPERTIES}
    statements = (_plain(block, used, path, problems) for block in _statements(path, problems))
    bare = 0
    for table in by_key(statements, "item"):
        people = _wikidata_people(table, wanted, options.attribute)
        bare += people.filter(pl.col("names").list.len() == 0).height
        yield Batch("authorities", "wikidata", conformed(people, AUTHORITIES))
    problems.add(path.name, "an item without a name: it is found by its ids alone", count=bare)


def _plain(
    statements: pl.DataFrame, used: set[str], path: Path, problems: Problems
) -> pl.DataFrame:
    """Return statements by plain names; of an item with none that is used, one."""
    last = pl.col("item", "property").str.replace(r"^.*[/#](?:statement/)?", "")
    table = statements.with_columns(last).with_columns(
        pl.col("property").str.to_lowercase().str.replace(r"^wdt?:", "")
    )
    table = table.drop_nulls(["item", "property", "value"])
    lost = statements.height - table.height
    problems.add(path.name, "a statement without item, property or value", count=lost)
    return table.filter(pl.col("property").is_in(list(used)) | pl.col("item").is_first_distinct())


def _wikidata_people(table: pl.DataFrame, wanted: str, attribute: str) -> pl.DataFrame:
    kind = pl.col("property")
    assertion = pl.struct(
        attribute=pl.lit(attribute),
        value="value",
        vocabulary=pl.lit("wikidata"),
        start="start",
        end="end",
    )
    scheme = kind.replace_strict(_ID_PROPERTIES, default=None, return_dtype=pl.String)
    people = table.group_by(key="item", maintain_order=True).agg(
        names=pl.col("value").filter(kind.is_in(_NAME_PROPERTIES)),
        ids=pl.format("{}:{}", scheme, pl.col("value")).drop_nulls(),
        assertions=assertion.filter(kind == wanted),
    )
    own = pl.concat_list(pl.format("wikidata:{}", pl.col("key")), pl.col("ids"))
    return people.with_columns(ids=own, names=_without_language(pl.col("names")))


def _without_language(names: pl.Expr) -> pl.Expr:
    """Take ``"Name"@en`` for ``Name``."""
    return names.list.eval(
        pl.element().str.replace(r'^"(.*)"@[\w-]+$', "${1}").str.strip_chars().unique()
    )


def _statements(path: Path, problems: Problems) -> Iterator[pl.DataFrame]:
    """Return the statements, some ten MiB of text at a time."""
    name = re.sub(r"\.(?:gz|bz2|xz|zip)$", "", path.name.lower())
    empty = pl.DataFrame(schema=_STATEMENT)
    with open_bytes(path) as stream:
        blocks = lines_in_blocks(stream, path.name, problems)
        if name.endswith((".json", ".jsonl", ".ndjson")):
            for lines in blocks:
                yield decode_lines(lines, _STATEMENT, path.name, problems)
            return
        header = b""
        for lines in _whole_rows(blocks):
            header = header or lines.pop(0)
            table = _table([header, *lines], "\t" if name.endswith(".tsv") else ",", path.name)
            absent = {"item", "property", "value"} - set(table.columns)
            if absent:
                raise DataError(path.name, [f"column {c!r} is missing" for c in sorted(absent)])
            yield pl.concat([empty, table], how="diagonal").select(list(_STATEMENT))
        if not header:
            raise DataError(path.name, ["it cannot be read as a table: it is empty"])


_QUOTED_BLOCKS = 4


def _whole_rows(blocks: Iterator[list[bytes]]) -> Iterator[list[bytes]]:
    """Return blocks that do not end within a quoted value, unless a quote is never closed."""
    pending: list[bytes] = []
    held = quotes = 0
    for lines in blocks:
        pending += lines
        held += 1
        quotes += sum(line.count(b'"') for line in lines)
        if quotes % 2 == 0 or held == _QUOTED_BLOCKS:
            yield pending
            pending, held, quotes = [], 0, 0
    if pending:
        yield pending


def _table(lines: list[bytes], separator: str, source: str) -> pl.DataFrame:
    with readable(source):
        return pl.read_csv(
            BytesIO(b"\n".join(lines)),
            separator=separator,
            infer_schema=False,
            truncate_ragged_lines=True,
        )


# Rows of one key brought together, however many rows there are.


_PARTS = 32


def by_key(blocks: Iterator[pl.DataFrame], key: str) -> Iterator[pl.DataFrame]:
    """Return the rows of all blocks in parts; all rows of a key are in one of them, in order.

    A single block is returned as it is; more are parted on disk, so that no more than a block, or
    a 32nd of all rows, is in memory.
    """
    start = [block for _, block in zip(range(2), blocks, strict=False)]
    if len(start) < 2:
        yield from start
        return
    with TemporaryDirectory(prefix="ombud-link-") as folder:
        files = [Path(folder) / f"{part}.parquet" for part in range(_PARTS)]
        schema = start[0].to_arrow(compat_level=pl.CompatLevel.oldest()).schema
        with ExitStack() as opened:
            writers = [opened.enter_context(pq.ParquetWriter(file, schema)) for file in files]
            for block in chain(start, blocks):
                part = block[key].hash(seed=0) % _PARTS
                for number, writer in enumerate(writers):
                    some = block.filter(part == number)
                    if some.height:
                        table = some.to_arrow(compat_level=pl.CompatLevel.oldest())
                        writer.write_table(table.cast(schema))
        for file in files:
            rows = pl.read_parquet(file)
            if rows.height:
                yield rows
