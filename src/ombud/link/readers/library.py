"""Library records: MARC bibliographic and authority files, VIAF in its three forms, OpenLibrary."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

import polars as pl

from ombud.link._streams import lines_in_blocks, open_bytes, xml_elements
from ombud.link.marc import BinaryRecord, MarcRecord, read_marc
from ombud.link.problems import Problems
from ombud.link.readers.base import (
    AUTHORITIES,
    AUTHORS,
    BATCH,
    BOOKS,
    Batch,
    ReaderOptions,
    as_frame,
    conformed,
    decode_lines,
)

_BOOK_TAGS = {"001", "008", "010", "020", "024", "035", "100", "400", "700"}
_SCHEMES = {"viaf": "viaf", "wikidata": "wikidata", "isni": "isni", "lc": "lccn", "dlc": "lccn"}
_YEARS = re.compile(r"\d{3,4}")


def book_row(record: MarcRecord, source: str, problems: Problems) -> tuple[Any, ...] | None:
    """Return a bibliographic record as a row of books; None for what is no book, counted.

    A book has ``a`` or ``t`` in byte 06 of the leader, and byte 28 of field 008 is blank, ``|`` or
    absent: government documents are left out.
    """
    if record.leader[6:7] not in {"a", "t"}:
        problems.add(source, "not a book (byte 06 of the leader is neither a nor t)")
        return None
    fixed = record.control("008") or ""
    if fixed[28:29] not in {"", " ", "|"}:
        problems.add(source, "a government document (byte 28 of field 008)")
        return None
    isbns, cancelled = [], []
    for _, pairs in record.fields("020"):
        qualifiers = " ".join(text for code, text in pairs if code == "q")
        # A qualifier such as "set" may stand in its own subfield.
        after = f" ({qualifiers})" if qualifiers else ""
        isbns += [text + after for code, text in pairs if code == "a"]
        cancelled += [text + after for code, text in pairs if code == "z"]
    names = record.subfields("100", "a")[:1]
    if names:
        names += record.subfields("700", "a")
    key = (record.control("001") or "").strip()
    return (key, None, isbns, cancelled, [], names)


def authority_row(
    record: MarcRecord, options: ReaderOptions, source: str, problems: Problems
) -> tuple[Any, ...] | None:
    """Return an authority record as a row of authority records; None where it names nobody."""
    names = [name for tag in ("100", "400", "700") for name in record.subfields(tag, "a")]
    if not names:
        problems.add(source, "the authority record names no person (100, 400, 700)")
        return None
    key = (record.control("001") or "").strip()
    ids = [f"lccn:{_squeezed(text)}" for text in record.subfields("010", "a")]
    for _, pairs in record.fields("024"):
        scheme = next((_SCHEMES.get(t.strip().lower()) for c, t in pairs if c == "2"), None)
        if scheme:
            ids += [f"{scheme}:{_last(text)}" for code, text in pairs if code == "a"]
    if found := re.fullmatch(r"viaf\s*(\d+)", key):
        ids.append(f"viaf:{found.group(1)}")
    assertions = []
    for _, pairs in record.fields(options.marc_field):
        start = next((text for code, text in pairs if code == "s"), None)
        end = next((text for code, text in pairs if code == "t"), None)
        if end is None:
            # Not in the format, but found in records: an end date under $e.
            end = next((text for code, text in pairs if code == "e" and _YEARS.search(text)), None)
        vocabulary = next((text.strip(" .") for code, text in pairs if code == "2"), "")
        assertions += [
            {
                "attribute": options.attribute,
                "value": text,
                "vocabulary": vocabulary,
                "start": start,
                "end": end,
            }
            for code, text in pairs
            if code == options.marc_subfield
        ]
    return (key, names, ids, assertions)


def read_library(path: Path, options: ReaderOptions, problems: Problems) -> Iterator[Batch]:
    """MARC files, binary or XML: bibliographic records are books, authority records authorities."""
    yield from _read_marc(path, options, problems, "library")


def _read_marc(
    path: Path, options: ReaderOptions, problems: Problems, source: str
) -> Iterator[Batch]:
    tags = frozenset(_BOOK_TAGS | {options.marc_field})
    books: list[tuple[Any, ...]] = []
    people: list[tuple[Any, ...]] = []
    for record in read_marc(path, problems, tags=tags):
        kind = record.leader[6:7]
        if kind == "z" or (not kind and source == "viaf"):
            row = authority_row(record, options, path.name, problems)
            if row is not None:
                people.append(row)
        else:
            row = book_row(record, path.name, problems)
            if row is not None:
                books.append(row)
        if isinstance(record, BinaryRecord):
            if record.lost:
                problems.add(path.name, "a record with characters that cannot be decoded")
            if record.mislabelled:
                problems.add(path.name, "a record in UTF-8 whose leader says MARC-8")
        if len(books) >= BATCH:
            yield Batch("books", source, as_frame(books, BOOKS))
            books = []
        if len(people) >= BATCH:
            yield Batch("authorities", source, as_frame(people, AUTHORITIES))
            people = []
    if books:
        yield Batch("books", source, as_frame(books, BOOKS))
    if people:
        yield Batch("authorities", source, as_frame(people, AUTHORITIES))


def read_viaf(path: Path, options: ReaderOptions, problems: Problems) -> Iterator[Batch]:
    """VIAF clusters: native XML, MARCXML or MARC, also with VIAF's number before each line."""
    if not _is_native(path):
        yield from _read_marc(path, options, problems, "viaf")
        return
    rows: list[tuple[Any, ...]] = []
    if options.attribute != "gender":
        reason = (
            f"VIAF's own XML asserts gender alone, nothing about {options.attribute}: only names "
            "and ids are read (its MARCXML has further fields)"
        )
        problems.add(path.name, reason)
    with open_bytes(path) as stream:
        for element in xml_elements(stream, "VIAFCluster", path.name, problems):
            row = _native_row(element, options)
            if row is None:
                problems.add(path.name, "the cluster is no person, or has no name")
            else:
                rows.append(row)
            if len(rows) >= BATCH:
                yield Batch("authorities", "viaf", as_frame(rows, AUTHORITIES))
                rows = []
    if rows:
        yield Batch("authorities", "viaf", as_frame(rows, AUTHORITIES))


def _is_native(path: Path) -> bool:
    with open_bytes(path) as stream:
        return b"VIAFCluster" in stream.read(1 << 16)


def _inner(element: Element, *path: str) -> list[Element]:
    """Return the descendants on a path of local names; prefixes differ from cluster to cluster."""
    level = [element]
    for name in path:
        level = [child for e in level for child in e if child.tag.rpartition("}")[2] == name]
    return level


def _native_row(element: Element, options: ReaderOptions) -> tuple[Any, ...] | None:
    kinds = [e.text for e in _inner(element, "nameType")]
    if kinds and kinds[0] != "Personal":
        return None
    number = next((e.text or "" for e in _inner(element, "viafID")), "")
    headings = _inner(element, "mainHeadings", "mainHeadingEl", "datafield")
    headings += _inner(element, "x400s", "x400", "datafield")
    names = [name for field in headings if (name := _heading(field))]
    names += [e.text for e in _inner(element, "mainHeadings", "data", "text") if e.text]
    if not names:
        return None
    ids = [f"viaf:{number}"] if number else []
    for source in _inner(element, "sources", "source"):
        place, _, value = (source.text or "").partition("|")
        scheme = {"LC": "lccn", "WKP": "wikidata", "ISNI": "isni"}.get(place)
        if scheme and value:
            ids.append(f"{scheme}:{_squeezed(value)}")
    assertions = []
    if options.attribute == "gender":
        assertions = [
            {
                "attribute": "gender",
                "value": e.text,
                "vocabulary": "viaf",
                "start": None,
                "end": None,
            }
            for e in _inner(element, "fixed", "gender")
            if e.text
        ]
    return (number, list(dict.fromkeys(names)), ids, assertions)


def _heading(field: Element) -> str:
    parts = {sub.get("code"): sub.text or "" for sub in field if sub.text}
    name = parts.get("a", "").strip(" ,")
    # UNIMARC keeps the part after the comma in $b.
    if field.get("dtype") == "UNIMARC" and parts.get("b"):
        name = f"{name}, {parts['b'].strip(' ,')}"
    return name


def _squeezed(text: str) -> str:
    return re.sub(r"\s+", "", text)


def _last(text: str) -> str:
    return text.rstrip("/").rpartition("/")[2].strip()


_TEXTS = pl.List(pl.String)
_KEY = pl.Struct({"key": pl.String})
_FIELDS: dict[str, dict[str, Any]] = {
    "edition": {
        "key": pl.String, "isbn_10": _TEXTS, "isbn_13": _TEXTS, "authors": pl.List(_KEY),
        "works": pl.List(_KEY),
    },
    "work": {"key": pl.String, "authors": pl.List(pl.Struct({"author": _KEY}))},
    "author": {
        "key": pl.String, "name": pl.String, "personal_name": pl.String,
        "alternate_names": _TEXTS,
        "remote_ids": pl.Struct(dict.fromkeys(("viaf", "wikidata", "lc_naf", "isni"), pl.String)),
    },
}  # fmt: skip
_REMOTE_IDS = {"viaf": "viaf", "wikidata": "wikidata", "lc_naf": "lccn", "isni": "isni"}


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
        for field, scheme in _REMOTE_IDS.items()
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
