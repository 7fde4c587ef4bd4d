"""Read tables as people have them: detect how a file is written, and report what was assumed.

`open_file` turns a file into a lazy Polars frame, and `reshape` brings wide tables into long form.
What the cells mean is the work of `ombud.data.values`.
"""

from __future__ import annotations

import ast
import bz2
import codecs
import csv
import gzip
import io
import json
import lzma
import math
import os
import re
import tomllib
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np
import polars as pl

from ombud.data.exclusions import Exclusion
from ombud.data.faults import HALF_CHARACTER, need_columns
from ombud.errors import DataError, PlanError
from ombud.files import is_plain_file, without_advice
from ombud.registry import hint

MAX_UNPACKED = 2 << 30
"""Bytes that a compressed or re-encoded file may have in memory; larger ones must be unpacked."""
MAX_COLUMNS = 20_000
"""Columns of a text file."""
MAX_RECORD = 64 << 20
"""Bytes of one line of JSON."""
MAX_DEPTH = 64
"""How deeply JSON may be nested."""

ENDINGS = (
    ".parquet", ".csv", ".tsv", ".tab", ".psv", ".txt", ".dat", ".data",
    ".jsonl", ".ndjson", ".json", ".arrow", ".feather", ".run", ".trec", ".inter", ".item", ".user",
)  # fmt: skip
"""The file types that are read; each also compressed: .gz, .bz2, .xz, .zst, .zip."""
_PACKED = (".gz", ".bz2", ".xz", ".zst", ".zip")
_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "pipes"}
_SAMPLE = 1 << 18
_PADDING = ("-1", "-1.0")  # what arrays hold after the end of a short list
_UNIT = "\x1f"  # stands for a separator of several characters
WORDS: dict[str, tuple[str, ...]] = {
    name: tuple(words)
    for name, words in tomllib.loads(
        Path(__file__).with_name("words.toml").read_text(encoding="utf-8")
    ).items()
}
"""Words for what a cell means: the file says what each list is for."""
MISSING, MISSING_GROUPS, GRADES = WORDS["missing"], WORDS["missing_groups"], WORDS["grades"]
YES, NO = WORDS["yes"], WORDS["no"]
_PAIR = r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"


@dataclass(frozen=True)
class Reading:
    """How a file is written, where detection should not decide: ``[data.reading.TABLE]``.

    Parameters
    ----------
    separator
        The character between columns.
    encoding
        The encoding, as Python names it, such as ``cp1252``.
    decimal
        The decimal mark, ``.`` or ``,``; the other one separates thousands.
    dates
        ``day-first`` or ``month-first``.
    time_unit
        What numbers in a time column count since 1970: ``s``, ``ms``, ``us`` or ``ns``.
    yes, no, missing
        Words that mean yes, no, and that nothing is known. If only ``yes`` is given, every other
        word means no.
    yes_from
        The number from which on a value means yes, such as 0.5.
    names
        The names of the columns, for a file without a header row.
    where
        Read only rows in which these columns have these values, as in ``{model = "A"}``; several
        values are separated by commas.
    labels
        Columns that are labels, one each, with a flag for every item (wide form).
    split
        What separates several labels in one cell, such as ``|``.
    items
        Columns that hold a recommendation list, best first; or one column that holds it as an
        array.
    first_rank
        The rank of the first item of a list: 0 or 1.
    best
        Which score of a list is the best, ``highest`` or ``lowest`` (distances).
    votes
        Whether several rows about the same thing are votes of several annotators.
    fold
        Whether labels and groups that differ only in capitals and spaces are the same.
    numbered
        Whether rows have no id: they are named by their number, counted from 1.
    ids
        ``numbers``: 0017 and 1,017 are the ids 17 and 1017 of other tables; ``lowercase``: {0A1B}
        is the id 0a1b.
    fill_down
        Whether an empty cell means the user (or item, or text) of the row above, as in a pivot
        table.
    duplicates
        What several rows about one text are: ``last`` reads the last row (an appeal), ``repeats``
        takes them for repeated decisions.
    """

    separator: str = ""
    encoding: str = ""
    decimal: Literal["", ".", ","] = ""
    dates: Literal["", "day-first", "month-first"] = ""
    time_unit: Literal["", "s", "ms", "us", "ns"] = ""
    yes: tuple[str, ...] = ()
    no: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    yes_from: float | None = None
    names: tuple[str, ...] = ()
    where: tuple[tuple[str, str], ...] = ()
    labels: tuple[str, ...] = ()
    split: str = ""
    items: tuple[str, ...] = ()
    first_rank: int | None = None
    best: Literal["", "highest", "lowest"] = ""
    votes: bool = False
    fold: bool = False
    numbered: bool = False
    ids: Literal["", "numbers", "lowercase"] = ""
    fill_down: bool = False
    duplicates: Literal["", "last", "repeats"] = ""

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], place: str) -> Reading:
        """Check the values of a plan, and return them."""
        known = [one.name for one in fields(cls)]
        problems = [f"{place}: no setting is called {k!r}; {hint(k, known)}" for k in values
                    if k not in known]  # fmt: skip
        allowed = {
            "decimal": (".", ","),
            "dates": ("day-first", "month-first"),
            "time_unit": ("s", "ms", "us", "ns"),
            "first_rank": (0, 1),
            "best": ("highest", "lowest"),
            **dict.fromkeys(("votes", "fold", "numbered", "fill_down"), (True, False)),
            "ids": ("numbers", "lowercase"),
            "duplicates": ("last", "repeats"),
        }
        made: dict[str, Any] = {}
        for key, value in values.items():
            if key in allowed and value not in allowed[key]:
                some = ", ".join(map(repr, allowed[key]))
                problems.append(f"{place}: {key} is {value!r}; expected one of {some}")
            elif key == "where":
                made[key] = tuple((str(k), str(v)) for k, v in dict(value).items())
            elif key in {"yes", "no", "missing", "names", "labels", "items"}:
                made[key] = (value,) if isinstance(value, str) else tuple(map(str, value))
            elif key in {"separator", "encoding", "split"} and not isinstance(value, str):
                problems.append(f"{place}: {key} is {value!r}; expected a string")
            elif key == "yes_from" and not (type(value) in {int, float} and math.isfinite(value)):
                problems.append(f"{place}: {key} is {value!r}; expected a number")
            elif key in known:
                made[key] = value
        if made.get("encoding"):
            try:
                codecs.lookup(made["encoding"])
            except LookupError:
                problems.append(f"{place}: no encoding is called {made['encoding']!r}")
        if problems:
            raise PlanError("\n".join(problems))
        return cls(**made)

    @property
    def reshapes(self) -> bool:
        """Whether rows of the file become other rows."""
        names = ("labels", "split", "items", "where", "votes", "fold", "numbered", "missing")
        return any(getattr(self, name) for name in (*names, "fill_down", "duplicates"))


PLAIN = Reading()
"""Everything is detected."""


def word_of(cell: Any) -> Any:
    """Return cells of a column, or an expression of them, as words that can be compared.

    Of an answer in several lines, such as that of Llama Guard, the first one counts.
    """
    first = cell.cast(pl.String).str.strip_chars().str.extract(r"^([^\r\n]*)")
    return first.str.strip_chars().str.to_lowercase()


_NOTES: ContextVar[list[Exclusion] | None] = ContextVar("notes", default=None)


@contextmanager
def noting() -> Iterator[list[Exclusion]]:
    """Collect what is assumed while files are read."""
    notes: list[Exclusion] = []
    token = _NOTES.set(notes)
    try:
        yield notes
    finally:
        _NOTES.reset(token)


def note(source: str, text: str, key: str, count: int = 0, of: int | None = None) -> None:
    """Record an assumption (``assumed/...``), or rows that were not read."""
    notes = _NOTES.get()
    made = Exclusion(source, "rows" if count else "", count, text, of, key)
    if notes is not None and made not in notes:
        notes.append(made)


# --- files -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Layout:
    """How one text file is written."""

    separator: str
    encoding: str
    skipped: int
    header: bool
    quoted: bool
    returns: bool
    """Whether lines end with a carriage return alone."""
    whole: bool
    """Whether the file must be re-encoded in memory."""
    columns: int = 0
    """How many columns its first row has."""
    rewritten: bool = False
    """Whether only Python's csv module cuts its lines into cells."""


def file_type(path: Path) -> tuple[str, str]:
    """Return the ending that says what a file holds, and that of its compression, if any."""
    suffix = path.suffix.lower()
    if suffix in _PACKED:
        return Path(path.stem).suffix.lower(), suffix
    return suffix, ""


def open_file(path: Path, name: str, reading: Reading, spelled: tuple[str, ...]) -> pl.LazyFrame:
    """Return a file as a lazy frame.

    `name` is what messages call the table; `reading` says how it is written, as far as somebody
    said so. Columns of `spelled` are read as they are spelled, where the file has no types: 001 is
    not 1.
    """
    ending, packed = file_type(path)
    if (ending or not packed) and ending not in (*ENDINGS, ""):
        known = ", ".join(ENDINGS)
        advice = "; save the sheet as CSV" if ending in {".xlsx", ".xls", ".ods"} else ""
        fault = f"files of type {ending!r} are not read{advice}; use one of {known}"
        raise DataError(name, [fault])
    if not is_plain_file(path):
        odd = f"{path} is not a regular file; folders and devices are not read"
        raise DataError(name, [odd if os.path.exists(path) else f"there is no file {path}"])
    if path.stat().st_size == 0:
        raise DataError(name, ["the file is empty (0 bytes); a table with rows was expected"])
    with path.open("rb") as opened:
        start = opened.read(8)
    if not packed:
        packed = _packing(start) if ending != ".parquet" else ""
    if start.startswith(b"PAR1") or ending == ".parquet":
        return pl.scan_parquet(path, glob=False)
    if ending in {".arrow", ".feather"} or start.startswith(b"ARROW1"):
        return pl.scan_ipc(path, glob=False)
    content = _unpacked(path, name, packed) if packed else b""
    if ending in {".run", ".trec"}:
        # TREC run files: query, Q0, document, rank, score, tag, without a header.
        raw = content or _bounded_file(path, name)
        content = re.sub(rb"[ \t]+", b"\t", raw)
        names = ("user", "q0", "item", "rank", "score", "model")
        reading = replace(reading, names=reading.names or names, separator="\t")
    if packed and content.startswith(b"PAR1"):
        return pl.scan_parquet(content)
    if ending in {".jsonl", ".ndjson", ".json"} or (
        ending in {"", ".txt"} and (content or start).lstrip()[:1] in {b"{", b"["}
    ):
        return _open_json(path, name, content, reading)
    return with_nested(_open_csv(path, name, content, reading, spelled), name)


def nested_columns(start: pl.DataFrame) -> list[str]:
    """Return the columns that seem to hold JSON or Python lists, by the first rows."""
    some = start.select(pl.col(pl.String).str.contains(r"^\s*[\[({]").any())
    # In files of ombud's own, this column holds JSON that `Decisions` reads.
    return [one.name for one in some if one[0] and one.name != "categories"]


def with_nested(lazy: pl.LazyFrame, name: str) -> pl.LazyFrame:
    """Return a table whose cells of JSON, or of Python lists, are lists and objects."""
    for column in nested_columns(lazy.head(64).collect()):
        cells = lazy.select(column).collect().to_series().to_list()
        made = [_nested(cell) for cell in cells]
        if all(
            new is not None or not (cell or "").strip()
            for cell, new in zip(cells, made, strict=True)
        ):
            found = _frame_of_rows([{column: one} for one in made], name).collect()
            lazy = lazy.with_columns(found.to_series())
            note(name, f"cells of column {column!r} hold lists or objects", "assumed/nested")
    return lazy


def _nested(cell: str | None) -> Any:
    """Return the list or object that a cell holds; None for other words."""
    try:
        try:
            found = json.loads(cell or "")
        except ValueError:  # as Python and numpy print it
            plain = re.sub(r"np\.\w+\(([^()]*)\)", r"\1", (cell or "").strip())
            found = ast.literal_eval(re.sub(r"(['\"])\s+(['\"])", r"\1, \2", plain))
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None
    if not isinstance(found, list | tuple | set):
        return found if isinstance(found, dict) else None
    pairs = [one for one in found if isinstance(one, list | tuple) and len(one) == 2]
    if pairs and len(pairs) == len(found):  # items with their scores
        return [{"item": item, "score": score} for item, score in pairs]
    return sorted(found) if isinstance(found, set) else list(found)


def _packing(start: bytes) -> str:
    """Return how a file is compressed, by its first bytes."""
    magic = {
        b"\x1f\x8b": ".gz", b"BZh": ".bz2", b"\xfd7zXZ": ".xz",
        b"\x28\xb5\x2f\xfd": ".zst", b"PK\x03\x04": ".zip",
    }  # fmt: skip
    return next((kind for first, kind in magic.items() if start.startswith(first)), "")


def _unpacked(path: Path, name: str, packed: str) -> bytes:
    seen = path.stat()
    try:
        content, member = _unpack(path, packed, seen.st_mtime_ns, seen.st_size)
    except Exception as error:  # each of five packages fails in its own ways
        reason = str(error) or type(error).__name__
        raise DataError(name, [f"it cannot be unpacked: {reason}"]) from None
    if member:
        note(name, f"read {member!r}, the only table in the archive", "assumed/archive-member")
    if not content:
        raise DataError(name, ["the unpacked file is empty (0 bytes)"])
    return content


@lru_cache(maxsize=2)
def _unpack(path: Path, packed: str, *state: int) -> tuple[bytes, str]:
    """Return the content of a compressed file, at most `MAX_UNPACKED` bytes of it."""
    if packed == ".zip":
        with zipfile.ZipFile(path) as archive:
            inside = [
                one for one in archive.infolist()
                if not one.is_dir() and not one.filename.startswith("__MACOSX/")
                and Path(one.filename).suffix.lower() in ENDINGS
                and not re.match("(?i)(read_?me|licen[cs]e)", Path(one.filename).name)
            ]  # fmt: skip
            if len(inside) != 1:
                some = ", ".join(one.filename for one in inside[:5]) or "none"
                raise ValueError(
                    f"one table is expected in an archive, found {some}; unpack it, and "
                    "name the files"
                )
            with archive.open(inside[0]) as opened:
                return _bounded(opened), inside[0].filename
    if packed == ".zst":
        import zstandard

        with path.open("rb") as raw, zstandard.ZstdDecompressor().stream_reader(raw) as opened:
            return _bounded(opened), ""
    openers: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
    with openers[packed](path, "rb") as opened:
        return _bounded(opened), ""


def _bounded(opened: IO[bytes]) -> bytes:
    content = bytearray()  # in blocks: asked for all at once, some set the whole limit aside
    while block := opened.read(1 << 20):
        content += block
        if len(content) > MAX_UNPACKED:
            raise ValueError(f"it unpacks to more than {MAX_UNPACKED >> 20:,} MB; unpack it first")
    return bytes(content)


# --- CSV ---------------------------------------------------------------------------------------


def _open_csv(
    path: Path, name: str, content: bytes, reading: Reading, spelled: tuple[str, ...]
) -> pl.LazyFrame:
    seen = path.stat()
    if content:
        layout = _layout(content[:_SAMPLE], path, reading, _encoding_of(io.BytesIO(content)))
    else:
        layout = _known_layout(path, reading, seen.st_mtime_ns, seen.st_size)
    if layout.columns > MAX_COLUMNS:
        fault = f"it has {layout.columns:,} columns; at most {MAX_COLUMNS:,} are read"
        raise DataError(name, [fault])
    source: Path | bytes = content or path
    if layout.whole:
        raw = content or _bounded_file(path, name)
        source = _decoded(raw, layout, name)
        if layout.rewritten:
            source, layout = _rewritten(source, layout, name), replace(layout, skipped=0)
    _note_layout(name, layout, reading)
    if layout.header is False and not reading.names:
        note(name, "the first row holds values, so the file has no header", "assumed/no-header")
    options: dict[str, Any] = {
        "separator": layout.separator if len(layout.separator) == 1 else _UNIT,
        "skip_lines": layout.skipped,
        "has_header": layout.header,
        "quote_char": '"' if layout.quoted else None,
        "glob": False,
    }
    if reading.names:
        options["has_header"] = False
    options["with_column_names"] = lambda names: _clean_names(names, reading.names)
    # Where commas may be decimal marks, no type is inferred: 1.234 may be 1234.
    if layout.separator == ";" or reading.decimal == ",":
        return pl.scan_csv(source, infer_schema=False, **options)
    # Types are inferred from the whole file: one odd id, or a column's first value, may be far
    # down.
    options["infer_schema_length"] = None
    if spelled:
        wanted = {column.casefold() for column in spelled}
        present = pl.scan_csv(source, **options | {"n_rows": 0}).collect_schema().names()
        options["schema_overrides"] = {c: pl.String for c in present if c.casefold() in wanted}
    return pl.scan_csv(source, **options)


def _clean_names(found: list[str], given: tuple[str, ...]) -> list[str]:
    """Return the names of columns without spaces, quotes and byte-order marks around them."""
    if given:
        return [*given, *found[len(given) :]][: len(found)]
    # A column without a name is the index of a frame: a name makes it possible to choose it.
    clean = [one.strip().strip("\ufeff").strip('"').strip() or "index" for one in found]
    # RecBole states types in the header: user_id:token.
    if all(re.search(r":(token|float|token_seq|float_seq)$", one) for one in clean):
        clean = [one.rpartition(":")[0] for one in clean]
    return clean if len(set(clean)) == len(found) else found


@lru_cache(maxsize=64)
def _known_layout(path: Path, reading: Reading, *state: int) -> _Layout:
    with path.open("rb") as opened:
        encoding = _encoding_of(opened)
        opened.seek(0)
        return _layout(opened.read(_SAMPLE), path, reading, encoding)


def _encoding_of(opened: IO[bytes]) -> str:
    """Return the encoding of a file: by its byte-order mark, else by whether it is UTF-8."""
    start = opened.read(4096)
    for mark, encoding in (
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16"),
        (codecs.BOM_UTF16_BE, "utf-16"),
    ):
        if start.startswith(mark):
            return encoding
    odd, even = start[1::2].count(0), start[0::2].count(0)
    if len(start) >= 4 and max(odd, even) > len(start) // 5 and min(odd, even) <= len(start) // 50:
        return "utf-16-le" if odd > even else "utf-16-be"
    opened.seek(0)
    decoder = codecs.getincrementaldecoder("utf-8")()
    good = bad = 0
    while block := opened.read(1 << 20):
        try:
            text = decoder.decode(block)
            good += 0 if text.isascii() else 1
        except UnicodeDecodeError:
            loose = block.decode("utf-8", "replace")
            bad += loose.count("\ufffd")
            good += sum(1 for c in loose if c > "\x7f" and c != "\ufffd")
            decoder.reset()
    if not bad:
        return "utf-8"
    # A few bad bytes among many good characters are damage; otherwise it is another encoding.
    return "utf-8-damaged" if good > bad else "cp1252"


def _layout(sample: bytes, path: Path, reading: Reading, encoding: str) -> _Layout:
    """Return how a text file is written, from its beginning."""
    encoding = reading.encoding or encoding
    plain = {"utf-8-damaged": "utf-8"}.get(encoding, encoding)
    text = sample.decode(plain, "replace").removeprefix("\ufeff")
    returns = "\n" not in text and "\r" in text
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if len(sample) >= _SAMPLE and len(lines) > 2:
        lines = lines[:-1]
    skipped, told = 0, reading.separator
    while skipped < len(lines) - 1:
        line = lines[skipped].strip()
        declared = re.fullmatch(r'"?sep=(.|\\t)"?', line, re.IGNORECASE)
        if declared and not told:
            told = "\t" if declared[1] == "\\t" else declared[1]
        elif line and not (line.startswith("#") and not _is_header(line, lines[skipped + 1])):
            break
        skipped += 1
    body = [line for line in lines[skipped:] if line.strip()][:200]
    ending = file_type(path)[0]
    separator = told or _separator(body, "\t" if ending in {".tsv", ".tab"} else "")
    if not told:
        # A title above the table: one field, where all other lines have more.
        titles = _titles(body, separator)
        if titles:
            later = body[titles:]
            skipped = next(i for i in range(skipped, len(lines)) if lines[i] == later[0])
            body = later
    rows = _cells(body[:50], separator)
    header = not (rows and len(rows) > 1 and _holds_values(rows))
    quoted = separator != "\t" or bool(re.search(r'(^|\t)"[^\t]*"(\t|$)', "\n".join(body), re.M))
    # Cells may hold tabs and line breaks: only as quoted ones do all rows have as many.
    quoted = quoted or len({len(row) for row in rows[:-1]}) == 1 < len(
        {line.count("\t") for line in body[:50]}
    )
    whole = plain.lower().replace("_", "-") not in {"utf-8", "utf8", "ascii", "utf-8-sig"}
    rewritten = quoted and len(separator) == 1 and not _cut_alike(lines[skipped:], separator)
    whole = whole or encoding == "utf-8-damaged" or len(separator) != 1 or returns or rewritten
    columns = len(rows[0]) if rows else 0
    return _Layout(separator, encoding, skipped, header, quoted, returns, whole, columns, rewritten)


def _cut_alike(lines: list[str], separator: str) -> bool:
    """Whether Polars cuts lines into the cells that Python's csv module finds."""
    reader = csv.reader((line + "\n" for line in lines), delimiter=separator)
    try:
        found = [(row, reader.line_num) for row in reader]
    except csv.Error:
        return True
    if len(found) < 3:
        return True
    text = "\n".join(lines[: found[-2][1]])  # the last row of a sample may be cut
    try:
        cells = pl.read_csv(text.encode(), separator=separator, has_header=False,
                            infer_schema=False, quote_char='"')  # fmt: skip
    except pl.exceptions.PolarsError:
        return False
    rows = [row for row, _ in found[:-1] if any(row)]
    if not rows:
        return True
    return len(rows) == sum(map(any, cells.iter_rows())) and len(rows[0]) == cells.width


def _rewritten(raw: bytes, layout: _Layout, name: str) -> bytes:
    """Return a table whose quotes and empty last cells Polars does not read, in plain CSV.

    Quotes within a cell may stand alone or behind a backslash.
    """
    text = raw.decode().split("\n", layout.skipped)[-1]
    forms: list[dict[str, Any]] = [{}, {"escapechar": "\\", "doublequote": False}]
    for form in forms:
        reader = csv.reader(io.StringIO(text), delimiter=layout.separator, **form)
        try:
            rows = [row for row in reader if any(row)]
        except csv.Error as error:
            raise DataError(name, [f"it cannot be read as a table: {error}"]) from None
        width = len(rows[0])
        long = any(any(row[width:]) for row in rows)
        if all(len(row) == width for row in rows) if form else not long:
            made = io.StringIO(newline="")
            csv.writer(made, delimiter=layout.separator).writerows(row[:width] for row in rows)
            return made.getvalue().encode()
    fault = f"found more fields than the {width} of the header; put cells that hold "
    raise DataError(name, [f"{fault}{layout.separator!r} in quotes"])


def _cells(lines: list[str], separator: str) -> list[list[str]]:
    """Return the cells of some lines; none if they cannot be cut."""
    if len(separator) > 1:
        lines, separator = [line.replace(separator, _UNIT) for line in lines], _UNIT
    try:
        return list(csv.reader(lines, delimiter=separator))
    except csv.Error:
        return []


def _is_header(line: str, following: str) -> bool:
    """Whether a line that starts with # names columns: ``#user,item`` above ``1,2``."""
    counts = [(line.count(s), following.count(s)) for s in _SEPARATORS]
    return (
        any(a and a == b for a, b in counts)
        and not following.lstrip().startswith("#")
        and (any(c.isdigit() for c in following))
    )


def _separator(body: list[str], usual: str) -> str:
    """Return the separator that cuts most lines into as many fields as the header has."""
    best, score = usual or ",", 0.0
    for one in [*([usual] if usual else []), *_SEPARATORS]:
        counts = [len(row) for row in _cells(body, one)]
        common = max(set(counts), key=counts.count) if counts else 1
        if common < 2:
            continue
        agree = counts.count(common) / len(counts)
        # The header decides where lines have several candidates: texts hold commas too.
        found = agree + (1.0 if counts[0] == common else 0.0) + (0.2 if one == usual else 0.0)
        if found > score + 1e-9:
            best, score = one, found
    if body and all("::" in line for line in body[:20]) and score < 2:
        return "::"
    return best


def _titles(body: list[str], separator: str) -> int:
    """Return how many lines stand above the header."""
    rows = _cells(body[:60], separator)
    counts = [sum(bool(cell.strip()) for cell in row) for row in rows]
    if len(counts) < 4 or len(counts) != len(body[:60]):
        return 0
    common = max(set(counts[3:]), key=counts[3:].count)
    above = next((i for i, n in enumerate(counts) if n >= common), 0)
    # A frame's header has no name for the index: it is no title.
    index = any(len(row) > 1 and not row[0].strip() and all(row[1:]) for row in rows[:above])
    few = max(counts[:above], default=0) <= 1 and not index
    titles = above if common > 1 and above <= 10 and few else 0
    if len(rows) < titles + 2:
        return titles
    first, names, *values = rows[titles:]
    # Merged cells above the header leave others empty; names are where values are numbers.
    full = len(first) == len(names) and not all(first) and all(names) and len(values) > 1
    return titles + (full and any(
        not _is_number(name) and all(map(_is_number, column))
        for name, *column in zip(names, *values, strict=False)
    ))  # fmt: skip


def _is_number(cell: str) -> bool:
    return bool(re.fullmatch(r"[-+]?[\d.,:/ -]+", cell.strip()))


def _holds_values(rows: list[list[str]]) -> bool:
    """Whether the first row holds values like the others, and no names."""
    first = [cell.strip() for cell in rows[0]]
    if [cell for cell in first if cell] == [str(n) for n in range(sum(map(bool, first)))]:
        return False  # a matrix was saved: its columns are numbered from 0
    numbers = [_is_number(cell) for cell in first]
    if any(re.search(r"[A-Za-z]", cell) for cell in first):
        # Words that come again in their column are values: 17,violence,0.
        words = [i for i, cell in enumerate(first) if cell and not numbers[i]]
        again = all(any(first[i] == row[i].strip() for row in rows[1:] if len(row) > i)
                    for i in words)  # fmt: skip
        # Nobody calls the first column 1: such a row is the first of a file without a header.
        return numbers[0] or (again and any(numbers))
    return len(first) > 1 and sum(numbers) >= 2


def _bounded_file(path: Path, name: str) -> bytes:
    with path.open("rb") as opened:
        try:
            return _bounded(opened)
        except ValueError:
            fault = (
                f"it is larger than {MAX_UNPACKED >> 20:,} MB; files of this size are read as "
                "Parquet, CSV in UTF-8 or JSON lines. Convert it first"
            )
            raise DataError(name, [fault]) from None


def _decoded(raw: bytes, layout: _Layout, name: str) -> bytes:
    """Return the content as UTF-8 with lines that end in line feeds."""
    encoding = layout.encoding
    if encoding == "utf-8-damaged":
        text = raw.decode("utf-8", "replace")
        count = text.count("\ufffd")
        note(name, f"{count:,} characters are damaged (not UTF-8)", "warning/damaged-characters")
    else:
        try:
            text = raw.decode(encoding)
        except UnicodeDecodeError:
            if encoding != "cp1252":
                fault = f"it cannot be read as {encoding}; set encoding in [data.reading.TABLE]"
                raise DataError(name, [fault]) from None
            text = raw.decode("latin-1")
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    if len(layout.separator) > 1:
        if _UNIT in text:
            raise DataError(name, ["it holds control characters beside its separators"])
        text = text.replace(layout.separator, _UNIT)
    return text.encode("utf-8", "replace")


def _note_layout(name: str, layout: _Layout, reading: Reading) -> None:
    if layout.separator != "," and not reading.separator:
        word = _SEPARATORS.get(layout.separator, repr(layout.separator))
        if layout.separator != "\t" or not name.endswith((".tsv", ".tab")):
            note(name, f"columns are separated by {word}", "assumed/separator")
    if layout.encoding not in {"utf-8", "utf-8-damaged"} and not reading.encoding:
        shown = "Windows-1252 (Western European)" if layout.encoding == "cp1252" else "UTF-16"
        note(name, f"the encoding is {shown}", "assumed/encoding")
    if layout.skipped:
        lines = "1 line" if layout.skipped == 1 else f"{layout.skipped} lines"
        note(name, f"{lines} above the header skipped", "assumed/skipped-lines")


# --- JSON --------------------------------------------------------------------------------------


def _open_json(path: Path, name: str, content: bytes, reading: Reading) -> pl.LazyFrame:
    if not content:
        with path.open("rb") as opened:
            encoding = _encoding_of(opened)
        if encoding != "utf-8" or reading.encoding:
            raw = _bounded_file(path, name)
            chosen = reading.encoding or encoding
            layout = _Layout(",", chosen, 0, True, True, False, True)
            content = _decoded(raw, layout, name)
            _note_layout(name, layout, reading)
    with io.BytesIO(content) if content else path.open("rb") as opened:
        first = opened.read(4096).lstrip()[:1]
    if path.name.lower().endswith(".json") or first == b"[":
        raw = content or _bounded_file(path, name)
        rows = _json_rows(raw, name)
        if rows is not None:
            return _frame_of_rows(rows, name)
    # JSON escapes control characters, so one of them separates nothing here.
    lines = pl.scan_csv(
        content or path, has_header=False, new_columns=["line"], separator="\x01",
        quote_char=None, infer_schema=False, glob=False,
    )  # fmt: skip
    has_nan = _check_lines(lines, name)
    if has_nan or first == b"[":
        found = lines.filter(pl.col("line").str.strip_chars() != "").collect()["line"]
        return _frame_of_rows([_loads(line, name) for line in found.to_list()], name)
    return pl.scan_ndjson(content or path, infer_schema_length=None)


def _check_lines(lines: pl.LazyFrame, name: str) -> bool:
    """Refuse what a JSON reader would change in silence; return whether a number is NaN."""
    line = pl.col("line")
    half = line.str.replace_all(_PAIR, "").str.contains(r"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
    faults = lines.select(
        long=(line.str.len_bytes() > MAX_RECORD).any(),
        half=half.any(),
        deep=(line.str.count_matches(r"[\[{]") > MAX_DEPTH).any(),
        nan=line.str.contains(r"[:\[,]\s*(NaN|-?Infinity)\s*[,}\]]").any(),
    ).collect()
    if faults["long"][0]:
        raise DataError(name, [f"a line has more than {MAX_RECORD >> 20} MB"])
    if faults["half"][0]:
        first = lines.with_row_index("row", offset=1).filter(half).head(1).collect()["row"][0]
        raise DataError(name, [f"line {first}: {HALF_CHARACTER}"])
    if faults["deep"][0]:
        many = lines.filter(line.str.count_matches(r"[\[{]") > MAX_DEPTH).collect()["line"]
        if max(_depth(one) for one in many.to_list()) > MAX_DEPTH:
            raise DataError(name, [_TOO_DEEP])
    spelled = line.str.extract_all(r'"(?:[^"\\]|\\.)*"\s*:')
    keys = spelled.list.eval(pl.element().str.strip_chars(" \t:"))
    again = lines.with_row_index("row", offset=1).filter(keys.list.n_unique() < keys.list.len())
    # A nested object may have the key too: these lines are parsed.
    for row, text in again.collect().iter_rows():
        _loads(text, f"{name}, line {row}")
    return bool(faults["nan"][0])


_TOO_DEEP = f"it cannot be read as a table: JSON is nested more than {MAX_DEPTH} levels deep"


def _depth(text: str) -> int:
    """Return how deeply brackets are nested, at most; those within strings count too."""
    codes = np.frombuffer(text.encode("utf-8", "replace"), dtype=np.uint8)
    steps = np.isin(codes, [91, 123]).astype(np.int32) - np.isin(codes, [93, 125])
    return int(np.cumsum(steps).max(initial=0))


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        again = next(k for k, _ in pairs if sum(k == other for other, _ in pairs) > 1)
        raise KeyError(again)
    return made


def _loads(text: str | bytes, name: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_unique_keys)
    except KeyError as error:
        raise DataError(name, [f"an object has the key {error} twice; keep one"]) from None
    except (ValueError, RecursionError) as error:
        raise DataError(name, [f"it cannot be read as a table: {error}"]) from None


def _json_rows(raw: bytes, name: str) -> list[Any] | None:
    """Return the rows of a file that is one JSON value; None if it has one value per line."""
    if _depth(raw.decode("utf-8", "replace")) > MAX_DEPTH:
        raise DataError(name, [_TOO_DEEP])
    lines = raw.strip().split(b"\n", 1)
    try:
        json.loads(lines[0])
        if len(lines) > 1:
            return None
    except (ValueError, RecursionError):
        pass
    found = _loads(raw, name)
    if re.search(rb"\\u[dD][89a-fA-F]", re.sub(_PAIR.encode(), b"", raw)):
        raise DataError(name, [HALF_CHARACTER])
    if isinstance(found, Mapping):
        if keyed := keyed_rows(found):
            if "id" in keyed[0] or len(keyed[0]) == 2:
                note(name, "the keys of the object are ids", "assumed/json-keys")
            return keyed
        if {"columns", "data"} <= set(found) <= {"columns", "data", "index", "schema"}:
            return [dict(zip(found["columns"], row, strict=False)) for row in found["data"]]
        inner = [value for value in found.values() if isinstance(value, list)]
        if len(inner) == 1 and inner[0] and isinstance(inner[0][0], Mapping):
            note(name, "rows are taken from the list in the object", "assumed/json-list")
            return inner[0]
        if inner and all(isinstance(v, list) and len(v) == len(inner[0]) for v in found.values()):
            return [dict(zip(found, row, strict=True)) for row in zip(*found.values(), strict=True)]
        return [found]
    return found if isinstance(found, list) else [found]


def keyed_rows(found: Mapping[Any, Any]) -> list[Any]:
    """Return one row per key of ``{user: [items]}`` or ``{id: {...}}``; none of other objects."""
    values = list(found.values())
    if len(values) > 1 and all(isinstance(one, Mapping) for one in values):
        rows = list(values[0])
        if rows == [str(n) for n in range(len(rows))] and all(list(v) == rows for v in values):
            return [{name: one[row] for name, one in found.items()} for row in rows]  # by column
    if len(values) > 2 and all(isinstance(one, Mapping) for one in values):
        common = set(values[0]).intersection(*values[1:])
        return [{"id": key, **one} for key, one in found.items()] if common else []
    keys = all(re.search(r"\d", str(key)) for key in found)
    if len(values) > 2 and keys and all(isinstance(one, float | int | str) for one in values):
        kind = "flagged" if isinstance(values[0], str) or {*values} <= {0, 1} else "score"
        return [{"id": key, kind: one} for key, one in found.items()]
    if len(values) > 1 and all(isinstance(one, list) for one in values):
        parts = [part for one in values for part in one]
        if keys and len(values) > 2 and parts and all(isinstance(part, Mapping) for part in parts):
            return [{"user": key, "items": one} for key, one in found.items()]
        if not parts or any(isinstance(part, Mapping | list) for part in parts):
            return []
        unlike = len(set(map(len, values))) > 1
        if unlike and not any(re.search(r"\d", str(key)) for key in found):
            # {"violence": [17, 4]}: by label, the items that have it.
            return [{"item": part, "label": key} for key, one in found.items() for part in one]
        if len(values) < 3:
            return []
        # Names without digits that come again are labels of items: {17: ["violence", "gore"]}.
        # Lists of recommendations are mostly of one length.
        words = unlike and all(
            isinstance(part, str) and not re.search(r"\d", part) for part in parts
        )
        if words and len(set(parts)) <= len(parts) / 2:
            return [{"item": key, "labels": one} for key, one in found.items()]
        if keys:
            return [{"user": key, "items": one} for key, one in found.items()]
    return []


def read_json(path: Path, name: str) -> list[Any]:
    """Return the values of a JSON file: of its array, or one per line.

    The file has at most `MAX_UNPACKED` bytes; messages call it `name`.
    """
    packed = file_type(path)[1]
    raw = _unpacked(path, name, packed) if packed else _bounded_file(path, name)
    raw = raw.removeprefix(codecs.BOM_UTF8)
    rows = _json_rows(raw, name)
    return (
        [_loads(line, name) for line in raw.split(b"\n") if line.strip()] if rows is None else rows
    )


def _frame_of_rows(rows: list[Any], name: str) -> pl.LazyFrame:
    if rows and all(isinstance(row, list) for row in rows):
        rows = [{"output": row} for row in rows]  # all labels of each text, as a pipeline returns
    if not all(isinstance(row, Mapping) for row in rows):
        fault = "it cannot be read as a table: expected to contain JSON objects, one for each row"
        raise DataError(name, [fault])
    try:
        return pl.DataFrame(rows, infer_schema_length=None, strict=False).lazy()
    except (TypeError, OverflowError, pl.exceptions.PolarsError) as error:
        raise DataError(
            name, [f"it cannot be read as a table: {without_advice(error)[:200]}"]
        ) from None


# --- shapes ------------------------------------------------------------------------------------


def reshape(lazy: pl.LazyFrame, reading: Reading, name: str) -> pl.LazyFrame:
    """Return the rows that the settings of a file describe, in long form.

    Columns have ombud's names already, apart from those that the settings name.
    """
    schema = lazy.collect_schema()
    named = [*(column for column, _ in reading.where), *reading.labels, *reading.items]
    need_columns(name, dict.fromkeys(named, ", which [data.reading] names,"), schema.names())
    subject = next((one for one in ("user", "item", "id") if one in schema), "")
    if reading.fill_down and subject:
        lazy = lazy.with_columns(pl.col(subject).forward_fill())
    if reading.duplicates == "last" and subject:
        lazy = lazy.unique(subject, keep="last", maintain_order=True)
    elif reading.duplicates and subject:
        lazy = lazy.with_columns(repeat=pl.int_range(pl.len()).over(subject))
    if reading.numbered:
        lazy = lazy.with_row_index("id", offset=1).with_columns(pl.col("id").cast(pl.Int64))
    for column, value in reading.where:
        wanted = [value, *(one.strip() for one in value.split(","))]
        lazy = lazy.filter(pl.col(column).cast(pl.String).str.strip_chars().is_in(wanted))
    if reading.missing and {"item", "label"} <= set(schema):  # a word that says: no label
        word = pl.col("label").cast(pl.String).str.strip_chars()
        none = word.is_in(reading.missing).fill_null(False)
        lazy = lazy.with_columns(pl.when(none).then(None).otherwise("label").alias("label"))
    if reading.labels:
        lazy = _wide_labels(lazy, reading, [c for c in schema.names() if c not in reading.labels])
    if reading.split:
        unit, column = ("item", "label") if "item" in schema else ("id", "group")
        cell = pl.col(column)
        nested = schema.get(column)
        if isinstance(nested, pl.List) and isinstance(nested.inner, pl.Struct):
            names = [one.name for one in nested.inner.fields]
            called = next((n for n in ("name", "label", "tag") if n in names), names[-1])
            lazy = lazy.with_columns(cell.list.eval(pl.element().struct.field(called)))
        elif not isinstance(nested, pl.List):
            cells = cell.str.strip_chars(" []").str.split(reading.split)
            lazy = lazy.with_columns(cells.alias(column))
        lazy = lazy.explode(column).with_columns(cell.cast(pl.String).str.strip_chars(" \t\"'"))
        blank = cell.str.len_bytes() == 0
        lazy = lazy.with_columns(pl.when(blank).then(None).otherwise(cell).alias(column))
        named_too = cell.is_not_null().any().over(unit)
        # An item without a label was looked at; a text without a group is in none.
        lazy = lazy.filter(cell.is_not_null() | (~named_too if unit == "item" else False))
        lazy = lazy.unique([unit, column], maintain_order=True)
    if reading.fold:
        ids = {"user", "item", "id", "text"}
        words = [c for c, d in lazy.collect_schema().items() if d == pl.String and c not in ids]
        lazy = lazy.with_columns(pl.col(words).str.strip_chars().str.to_lowercase())
        if {"item", "label"} <= set(lazy.collect_schema().names()) and not reading.votes:
            lazy = lazy.unique(maintain_order=True)
    if reading.votes:
        lazy = _votes(lazy, reading, name)
    if reading.items:
        lazy = _lists(lazy, reading.items, schema)
    return lazy


def _wide_labels(lazy: pl.LazyFrame, reading: Reading, others: list[str]) -> pl.LazyFrame:
    """Return one row per flag: of an item's labels, a text's groups, or a text's annotators."""
    texts = "item" not in others and reading.votes
    kept = ["item"] if "item" in others else others if texts else ["id"]
    lazy = lazy.select(*kept, pl.col(reading.labels).cast(pl.String)).unpivot(
        list(reading.labels), index=kept, variable_name="_name", value_name="_said"
    )
    if texts:
        return lazy.drop("_name").rename({"_said": "label"})
    word = word_of(pl.col("_said"))
    if kept == ["id"]:
        yes = word.is_in([one.lower() for one in reading.yes] or list(YES))
        return lazy.filter(yes).select("id", group="_name").unique(maintain_order=True)
    graded = {*GRADES} & {one.strip().lower() for one in reading.yes}
    missing = [one for one in MISSING if one != "none" or not graded]
    return lazy.filter(~word.is_in(missing)).rename({"_name": "label", "_said": "present"})


def _votes(lazy: pl.LazyFrame, reading: Reading, name: str) -> pl.LazyFrame:
    """Return one row per thing, with the votes of its annotators."""
    names = lazy.collect_schema().names()
    vote, keys = ("present", ["item", "label"]) if "item" in names else ("label", ["id"])
    keys = [key for key in keys if key in names] or ["text"]
    if "id" in names and not {"label", "present"} & set(names):
        # Facts about texts stand in the row of each annotator; what differs is none.
        facts = [c for c in names if c != "id"]
        differs = lazy.group_by("id").agg(pl.col(facts).n_unique() > 1).select(pl.col(facts).any())
        unlike = {c for c, one in zip(facts, differs.collect().row(0), strict=True) if one}
        once = lazy.select("id", *(c for c in facts if c not in unlike))
        return once.unique("id", keep="first", maintain_order=True)
    if vote not in names and {"item", "label"} <= set(names):
        return lazy.unique(["item", "label"], maintain_order=True)  # several applied it
    if vote not in names:
        raise DataError(name, [f"votes need a column {vote!r} with what each annotator said"])
    word = word_of(pl.col(vote))
    yes = [one.lower() for one in reading.yes] or list(YES)
    no = [one.lower() for one in reading.no] or list(NO)
    said = {"yes": word.is_in(yes), "no": word.is_in(no)}
    if reading.yes and not reading.no:
        said["no"] = word.is_not_null() & ~word.is_in([*yes, *MISSING])
        graded = word.is_in(GRADES).any()
        if lazy.select(graded | ~said["no"].any()).collect().item():
            said["no"] |= word == "none"  # hate or none: here it is an answer
    known = said["yes"] | said["no"] | word.is_in(list(MISSING))
    odd = lazy.filter(word.is_not_null() & ~known)
    found = odd.select(word).unique().head(4).collect().to_series().to_list()
    if found:
        raise DataError(name, [f"column {vote!r} holds {found}; say which words mean yes"])
    others = [c for c in names if c not in (*keys, vote)]
    return lazy.group_by(keys, maintain_order=True).agg(
        *(pl.col(c).first() for c in others),
        **{c: condition.sum().cast(pl.Int64) for c, condition in said.items()},
    )


def _lists(lazy: pl.LazyFrame, items: tuple[str, ...], schema: pl.Schema) -> pl.LazyFrame:
    """Return one row per recommendation, in the order of the lists."""
    if len(items) > 1:
        long = lazy.select("user", *(pl.col(c).cast(pl.String) for c in items))
        rows = long.with_row_index("row").unpivot(
            list(items), index=["row", "user"], variable_name="place", value_name="item"
        )
        order = {c: i for i, c in enumerate(items)}
        rows = rows.with_columns(pl.col("place").replace_strict(order, return_dtype=pl.Int32))
        rows = rows.sort("row", "place").select("user", "item")
        return rows.filter(~word_of(pl.col("item")).is_in([*MISSING_GROUPS, *_PADDING]))
    (column,) = items
    dtype = schema[column]
    if isinstance(dtype, pl.List | pl.Array):
        together = [column]
        if "score" in schema and isinstance(schema["score"], pl.List | pl.Array):
            together.append("score")
        lazy = lazy.select("user", *together).explode(together)
        inner = dtype.inner
        if isinstance(inner, pl.Struct):
            lazy = lazy.select("user", pl.col(column).struct.unnest())
            names = lazy.collect_schema().names()
            ids = next((n for n in names if n in {"item", "item_id", "id", "itemId"}), names[1])
            lazy = lazy.rename({ids: "item"}) if ids != "item" else lazy
            if isinstance(held := lazy.collect_schema()["item"], pl.Struct):
                one = next((f.name for f in held.fields if f.name == "id"), held.fields[0].name)
                lazy = lazy.with_columns(pl.col("item").struct.field(one).alias("item"))
        elif column != "item":
            lazy = lazy.rename({column: "item"})
        return lazy.filter(~pl.col("item").cast(pl.String).is_in(_PADDING))
    cells = pl.col(column).str.strip_chars().str.strip_chars("[](){}")
    mark = cells.str.extract(r"([,|;])").fill_null(" ")
    lazy = lazy.select("user", item=cells.str.split(mark)).explode("item")
    lazy = lazy.with_columns(pl.col("item").str.strip_chars(" \t\"'"))
    lazy = lazy.filter(~pl.col("item").is_in(["", *_PADDING]))
    # 17:0.9|18:0.8 are items with their scores; in movie:17|movie:18 the first parts come again.
    pairs = pl.col("item").str.extract_groups(r"^(?<item>.+):(?<score>-?\d*\.?\d+)$")
    parts = lazy.select("user", pairs.struct.unnest())
    start = parts.head(_SAMPLE).collect()
    if start["score"].null_count() or start.select("user", "item").is_duplicated().any():
        return lazy
    return parts.with_columns(pl.col("score").cast(pl.Float64))
