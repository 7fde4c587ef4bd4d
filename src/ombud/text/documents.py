"""Documents from files of any common form, a batch at a time, in bounded memory.

JSONL, CSV, TSV, Parquet and plain text, also as gzip, and WARC and WET archives. In plain text,
what stands between blank lines is a document. What cannot be read is counted and never silently
skipped: see `Damage`.
"""

from __future__ import annotations

import gzip
import io
import json
import re
import struct
import subprocess
import sys
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
from pyarrow import csv, parquet

from ombud.errors import DataError, require
from ombud.files import without_advice

BLOCK = 8 << 20
"""Bytes, or characters, of a batch of documents."""

_LONGEST_LINE = 64 << 20
_CUT_OFF = "pieces cut off by the end of a damaged file"
_BROKEN = (EOFError, zlib.error, gzip.BadGzipFile)
_BLANK_LINES = re.compile(r"\r?\n[ \t\r]*\n\s*")
_SCHEMA = dict.fromkeys(("text", "url", "date", "language", "id"), pl.String)


@dataclass(frozen=True, slots=True)
class Columns:
    """Where a table keeps what a document needs."""

    text: str = "text"  # the column of texts
    # Columns of the page's address, of the time of its crawl and of its language; ignored where a
    # table has none.
    url: str = "url"
    date: str = "date"
    language: str = "language"
    # The column of the text's own name, for those who put texts and scores together again.
    id: str = "id"

    def named(self) -> dict[str, str]:
        """Return the standard names with the names in the file."""
        return {
            "text": self.text,
            "url": self.url,
            "date": self.date,
            "language": self.language,
            "id": self.id,
        }


@dataclass
class Damage:
    """What could not be read, counted, with the first example of each kind."""

    # How often each thing happened, such as ``"lines that are not JSON"``.
    counts: dict[str, int] = field(default_factory=dict)
    # Files that could not be read to their end, or not all between: name and reason.
    files: dict[str, str] = field(default_factory=dict)
    # What is used, but with replacement characters where bytes are not text: how often.
    mended: dict[str, int] = field(default_factory=dict)

    def add(self, what: str, count: int = 1) -> None:
        """Count something that was left out."""
        if count:
            self.counts[what] = self.counts.get(what, 0) + count

    def mend(self, what: str) -> None:
        """Count something that was read with replacement characters."""
        self.mended[what] = self.mended.get(what, 0) + 1


@dataclass(frozen=True, slots=True)
class Documents:
    """A batch of documents."""

    # Columns `text`, `url`, `date`, `language`, `id`; strings, all but text may be missing. The
    # column `row` says where each stands in its file, from 1, what was excluded counted (but for
    # CSV rows with another number of fields, and records of archives).
    frame: pl.DataFrame
    bytes_read: int  # bytes of the file (as it lies on disk) read so far, for progress
    # Whether every line is a paragraph of its own (archives of plain text), rather than blocks of
    # lines between blank lines.
    lines: bool = False


def read_documents(
    path: Path, *, columns: Columns | None = None, damage: Damage | None = None
) -> Iterator[Documents]:
    """Yield the documents of a file, a batch of about 8 MiB of it at a time.

    The form is known by the suffix, ``.gz`` included. A file that ends in the middle gives the
    documents before that place and is listed in `damage`.

    Raises
    ------
    DataError
        If the file is of no known form, is not there, or has no column of texts.
    """
    columns, damage = columns or Columns(), damage if damage is not None else Damage()
    if not path.is_file():
        odd = "it is not a regular file" if path.exists() else "there is no such file"
        raise DataError(str(path), [odd])
    form = _form(path)
    try:
        yield from _READERS[form](path, columns, damage)
    except _BROKEN as fault:
        damage.files[path.name] = (
            f"the compressed data is cut or damaged ({fault}); what stands before is used"
        )
    except (OSError, UnicodeDecodeError, pa.ArrowException, pl.exceptions.PolarsError) as fault:
        reason = without_advice(fault)
        damage.files[path.name] = f"damaged ({reason}); what stands before is used"
    except pl.exceptions.PanicException:
        damage.files[path.name] = "damaged; what stands before is used"


def _form(path: Path) -> str:
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() != ".gz"]
    form = suffixes[-1] if suffixes else ""
    if form not in _READERS:
        known = ", ".join(sorted(_READERS))
        raise DataError(
            str(path), [f"files of type {form or '(none)'!r} are not read; use one of {known}"]
        )
    return form


class _Source:
    """A file, unpacked if need be, that knows how much of it was read."""

    def __init__(self, path: Path) -> None:
        self.raw = path.open("rb")
        packed = path.suffix.lower() == ".gz"
        self.stream: io.BufferedIOBase = gzip.GzipFile(fileobj=self.raw) if packed else self.raw
        self.fault: Exception | None = None

    def read(self, size: int) -> bytes:
        """Return up to so many bytes; what stands before a fault comes out before it is kept."""
        pieces = []
        while size > 0 and self.fault is None:
            try:
                piece = self.stream.read1(size)
            except _BROKEN as fault:
                self.fault = fault
                break
            if not piece:
                break
            pieces.append(piece)
            size -= len(piece)
        return b"".join(pieces)

    def position(self) -> int:
        return self.raw.tell()

    def __enter__(self) -> _Source:
        return self

    def __exit__(self, *_: object) -> None:
        self.raw.close()


class _WholeLines(io.RawIOBase):
    """A source for readers that take bytes as they come: a line that a fault cut is left out."""

    def __init__(self, source: _Source, damage: Damage) -> None:
        self.source, self.damage = source, damage
        self.rest = b""

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        size = BLOCK if size < 0 else size
        block = self.source.read(max(0, size - len(self.rest)))
        data, self.rest = self.rest + block, b""
        if not block and self.source.fault is None:
            return data
        head, found, tail = data.rpartition(b"\n")
        if self.source.fault is not None:
            self.damage.add(_CUT_OFF, int(bool(tail)))
            return head + found
        if not found:
            return data
        self.rest = tail
        return head + found


def _blocks(source: _Source, name: str, end: bytes, damage: Damage) -> Iterator[bytes]:
    """Yield blocks that end at `end`; what was read before a fault comes out first."""
    rest = b""
    while block := source.read(BLOCK):
        head, found, tail = block.rpartition(end)
        if not found:
            rest += block
            if len(rest) > _LONGEST_LINE:
                damage.add(f"pieces of more than {_LONGEST_LINE >> 20} MiB without a break")
                rest = b""
            continue
        yield rest + head + found
        rest = tail
    if source.fault is not None:
        # The last piece has no end: it may be cut in the middle.
        damage.add(_CUT_OFF, int(bool(rest)))
        raise source.fault
    if rest.strip():
        yield rest


def _frame(rows: pl.DataFrame, row: int | pl.Series) -> pl.DataFrame:
    """Return the columns of documents, of which the first is, or all are, at these rows."""
    numbers = row if isinstance(row, pl.Series) else pl.int_range(row, row + rows.height)
    frame = rows.select(
        (pl.col(name).cast(pl.String) if name in rows.columns else pl.lit(None, pl.String)).alias(
            name
        )
        for name in _SCHEMA
    )
    return frame.with_columns(row=numbers)


def _with_text(rows: pl.DataFrame, damage: Damage) -> pl.DataFrame:
    kept = rows.filter(pl.col("text").is_not_null())
    damage.add("rows without a text", rows.height - kept.height)
    return kept


def _jsonl(path: Path, columns: Columns, damage: Damage) -> Iterator[Documents]:
    found, row = False, 1
    with _Source(path) as source:
        for block in _blocks(source, path.name, b"\n", damage):
            rows, read = _json_rows(block, columns, damage, row)
            row += read
            found = found or rows["text"].null_count() < rows.height
            yield Documents(_with_text(rows, damage), source.position())
    if not found:
        raise DataError(str(path), [f"no line has a text under {columns.text!r}"])


def _json_rows(
    block: bytes, columns: Columns, damage: Damage, row: int
) -> tuple[pl.DataFrame, int]:
    """Return the documents of some lines, and how many lines these were, blank ones apart."""
    wanted = columns.named()
    schema = {name: pl.String for name in wanted.values()}
    # All lines at once, which is fast; one bad line fails them all, and then each is read alone.
    # Polars may also panic on what it cannot read.
    try:
        table = pl.read_ndjson(io.BytesIO(block), schema=schema)
        table = table.rename({there: here for here, there in wanted.items()})
        return _frame(table, row), table.height
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, UnicodeDecodeError):
        pass
    rows: list[list[str | None]] = []
    numbers: list[int] = []
    lines = [line for line in block.splitlines() if line.strip()]
    for number, line in enumerate(lines, start=row):
        try:
            text = line.decode("utf-8")
        except UnicodeDecodeError:
            text = line.decode("utf-8", "replace")
            damage.mend("lines with bytes that are not UTF-8")
        try:
            content = json.loads(text)
        except (ValueError, RecursionError):
            damage.add("lines that are not JSON")
            continue
        if not isinstance(content, dict):
            damage.add("lines that hold no JSON object")
            continue
        values = [content.get(name) for name in wanted.values()]
        rows.append([value if isinstance(value, str) else _as_text(value) for value in values])
        numbers.append(number)
    frame = pl.DataFrame(
        {name: [_utf8(one[i]) for one in rows] for i, name in enumerate(wanted)}, schema=_SCHEMA
    )
    return _frame(frame, pl.Series(numbers, dtype=pl.Int64)), len(lines)


def _as_text(value: Any) -> str | None:
    return None if value is None or isinstance(value, dict | list) else str(value)


def _utf8(text: str | None) -> str | None:
    """Return a text without lone surrogates, which JSON can hold and UTF-8 cannot."""
    if text is None or text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _csv(path: Path, columns: Columns, damage: Damage) -> Iterator[Documents]:
    wanted = columns.named()

    def odd_row(row: Any) -> str:
        damage.add("rows with another number of fields than the header")
        return "skip"

    with _Source(path) as source:
        try:
            reader = csv.open_csv(
                _WholeLines(source, damage),
                read_options=csv.ReadOptions(block_size=BLOCK),
                parse_options=csv.ParseOptions(
                    delimiter="\t" if _form(path) == ".tsv" else ",",
                    newlines_in_values=True,
                    invalid_row_handler=odd_row,
                ),
                convert_options=csv.ConvertOptions(
                    # As bytes: one bad letter must not stop a file of millions.
                    column_types={name: pa.binary() for name in wanted.values()},
                    include_columns=[n for n in wanted.values()],
                    include_missing_columns=True,
                    strings_can_be_null=False,
                ),
            )
        except (pa.ArrowInvalid, StopIteration) as fault:
            fault_text = f"it is not a table of comma-separated values: {fault}"
            raise DataError(str(path), [fault_text]) from None
        # A missing column comes as nulls; a text column that is all null is no text column.
        found, row = False, 1
        while True:
            try:
                batch = reader.read_next_batch()
            except StopIteration:
                break
            except pa.ArrowInvalid as fault:
                damage.files[path.name] = f"{fault}; what stands before is used"
                break
            table = pl.DataFrame(pl.from_arrow(batch))
            table = table.rename({there: here for here, there in wanted.items()})
            rows = table.select(_decoded(table[name], damage) for name in wanted)
            found = found or rows["text"].null_count() < rows.height
            yield Documents(_with_text(_frame(rows, row), damage), source.position())
            row += rows.height
        if source.fault is not None:
            raise source.fault
    if not found:
        raise DataError(str(path), [f"it has no column {columns.text!r}, or the column is empty"])


def _decoded(column: pl.Series, damage: Damage) -> pl.Series:
    """Return bytes as strings, and replace what is not UTF-8."""
    if column.dtype != pl.Binary:
        return column.cast(pl.String)
    try:
        return column.cast(pl.String)
    except pl.exceptions.PolarsError:
        texts: list[str | None] = []
        for value in column.to_list():
            try:
                texts.append(None if value is None else value.decode("utf-8"))
            except UnicodeDecodeError:
                texts.append(value.decode("utf-8", "replace"))
                damage.mend("fields with bytes that are not UTF-8")
        return pl.Series(column.name, texts, dtype=pl.String)


def _parquet(path: Path, columns: Columns, damage: Damage) -> Iterator[Documents]:
    wanted = columns.named()
    try:
        file = parquet.ParquetFile(path, memory_map=False)
    except (pa.ArrowInvalid, OSError) as fault:
        raise DataError(str(path), [f"it is not Parquet, or is damaged: {fault}"]) from None
    with file:
        names = file.schema_arrow.names
        if columns.text not in names:
            raise DataError(
                str(path), [f"it has no column {columns.text!r}; found {', '.join(names)}"]
            )
        size = path.stat().st_size
        rows_in_all = max(file.metadata.num_rows, 1)
        done = 0
        present = {here: there for here, there in wanted.items() if there in names}
        batches = file.iter_batches(batch_size=8192, columns=list(present.values()))
        while True:
            try:
                batch = next(batches, None)
            except (pa.ArrowInvalid, OSError) as fault:
                damage.files[path.name] = f"damaged ({fault}); what stands before is used"
                return
            if batch is None:
                return
            table = pl.DataFrame(pl.from_arrow(batch))
            table = table.rename({there: here for here, there in present.items()})
            rows = _with_text(_frame(table, done + 1), damage)
            done += table.height
            yield Documents(rows, size * done // rows_in_all)


def _plain(path: Path, columns: Columns, damage: Damage) -> Iterator[Documents]:
    row = 1
    with _Source(path) as source:
        for texts in _paragraphs(_blocks(source, path.name, b"\n", damage), damage):
            frame = pl.DataFrame({"text": texts}).with_columns(url=pl.lit(path.name))
            yield Documents(_frame(frame, row), source.position())
            row += len(texts)


def _paragraphs(blocks: Iterator[bytes], damage: Damage) -> Iterator[list[str]]:
    """Yield what stands between blank lines, also across blocks."""
    rest, fault, more = "", None, True
    while more:
        try:
            block = next(blocks, None)
        except _BROKEN as error:
            block, fault = None, error
        more = block is not None
        parts = _BLANK_LINES.split(rest + _text(block or b"", damage))
        # The last may go on in the next block, unless it is far too long for a paragraph.
        rest = parts.pop() if more and len(parts[-1]) <= BLOCK else ""
        texts = [text for part in parts if (text := part.strip())]
        if texts:
            yield texts
    if fault is not None:
        raise fault


def _text(block: bytes, damage: Damage) -> str:
    try:
        return block.decode("utf-8")
    except UnicodeDecodeError:
        damage.mend("blocks with bytes that are not UTF-8")
        return block.decode("utf-8", "replace")


def _archive(path: Path, columns: Columns, damage: Damage) -> Iterator[Documents]:
    yield from read_archive(path, damage)


_READERS: dict[str, Callable[[Path, Columns, Damage], Iterator[Documents]]] = {
    ".jsonl": _jsonl,
    ".ndjson": _jsonl,
    ".csv": _csv,
    ".tsv": _csv,
    ".parquet": _parquet,
    ".txt": _plain,
    ".warc": _archive,
    ".wet": _archive,
}


# Web archives (WARC, WET), read with the package ``fastwarc``.


_CHARSET = re.compile(r"charset=[\"']?([\w.:-]+)", re.IGNORECASE)
_LONGEST = 16 << 20
_PAGE_SECONDS, _PAGE_MEMORY = 10.0, 2 << 30
_CUT = "the archive is cut in the middle"
_MOST_FAULTS = 100
_MEMBER = re.compile(rb"(?P<begin>\x1f\x8b\x08)")
_RECORD = re.compile(rb"\r?\n\r?\n(?P<begin>WARC/1\.\d\r?\n[A-Za-z-]+:)")

_Row = tuple[str, str | None, str | None, str | None]


def read_archive(path: Path, damage: Damage) -> Iterator[Documents]:
    """Yield the texts of an archive: plain-text records (WET), or the pages of responses (WARC).

    Needs the extra ``warc``. A record is used only when the next one, or the end of the file,
    stands where its length says; so a length that lies spoils no text. Reading then goes on where
    the next record begins, but for archives that are one gzip member as a whole.
    """
    require("fastwarc", "warc")
    from fastwarc.warc import ArchiveIterator, WarcRecordType

    kinds = WarcRecordType.conversion | WarcRecordType.response
    rows: list[_Row] = []
    row = 1
    size, lines, last, declared = 0, False, 0, 0
    held: _Row | None = None
    places = _Places(path, damage)
    with path.open("rb") as raw, closing(_PageReader()) as pages:
        records = iter(ArchiveIterator(raw, parse_http=True, auto_decode="all"))
        while True:
            record, fault = None, ""
            try:
                record = next(records, None)
            except (OSError, ValueError, RuntimeError) as error:
                fault = f"there is no record where one should begin ({error})"
            if record is None and not fault and _ends_early(path, last, declared):
                fault = _CUT
            if held is not None and not fault:
                rows.append(held)
                size += len(held[0])
            dropped, held = held is not None, None
            if record is not None:
                last, declared = int(record.stream_pos), _length(record)
                if record.record_type & kinds:
                    lines = lines or record.record_type == WarcRecordType.conversion
                    try:
                        body = record.reader.read(_LONGEST + 1)
                        held = _row(record, body, damage, pages)
                    except OSError as error:
                        fault, dropped = f"the data is damaged ({error})", True
            if fault:
                begins = places.after(last, fault, dropped)
                if begins is None:
                    break
                raw.seek(begins)
                records = iter(ArchiveIterator(raw, parse_http=True, auto_decode="all"))
                declared = 0
            elif record is None:
                break
            if size > BLOCK:
                yield Documents(_table(rows, row), raw.tell(), lines)
                row += len(rows)
                rows, size = [], 0
    if rows:
        yield Documents(_table(rows, row), path.stat().st_size, lines)


class _Places:
    """Where reading goes on after a record that does not end where it says."""

    def __init__(self, path: Path, damage: Damage) -> None:
        self.path, self.damage = path, damage
        self.packed = path.suffix.lower() == ".gz"
        self.reached = -1
        self.faults = 0
        self.first = ""

    def after(self, last: int, fault: str, dropped: bool) -> int | None:
        """Say what is wrong after the record at byte `last`; return where the next one begins."""
        self.reached = max(self.reached, last)
        self.faults += 1
        self.first = self.first or f"after byte {last:,} {fault}"
        begins = self._next(self.reached + 1) if self.faults <= _MOST_FAULTS else None
        if begins is None:
            self.damage.add("archive records shorter than they say", int(dropped))
            end = fault if fault == _CUT else f"after byte {last:,} {fault}"
            before = "" if self.faults == 1 else f"{self._places(self.faults - 1)}; later, "
            self.damage.files[self.path.name] = f"{before}{end}; what stands before is used"
            return None
        self.damage.add("archive records whose length is not true, or damaged", int(dropped))
        self.damage.files[self.path.name] = f"{self._places(self.faults)}; the rest is used"
        self.reached = begins
        return begins

    def _places(self, count: int) -> str:
        places = "1 place" if count == 1 else f"{count} places"
        return f"at {places} reading went on at the next record ({self.first})"

    def _next(self, start: int) -> int | None:
        """Return where the next record begins; None where none is found."""
        mark = _MEMBER if self.packed else _RECORD
        with self.path.open("rb") as raw:
            raw.seek(start)
            at, kept = start, b""
            while block := raw.read(1 << 16):
                kept += block
                for found in mark.finditer(kept):
                    place = at + found.start("begin")
                    if not self.packed or self._is_record(place):
                        return place
                # A mark may lie across two blocks.
                at, kept = at + len(kept) - len(kept[-64:]), kept[-64:]
        return None

    def _is_record(self, place: int) -> bool:
        with self.path.open("rb") as raw:
            raw.seek(place)
            try:
                return zlib.decompressobj(wbits=31).decompress(raw.read(4096), 5) == b"WARC/"
            except zlib.error:
                return False


def _table(rows: list[_Row], row: int) -> pl.DataFrame:
    names = ["text", "url", "date", "language"]
    frame = pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String), orient="row")
    numbers = pl.int_range(row, row + frame.height)
    return frame.with_columns(id=pl.lit(None, pl.String), row=numbers)


def _row(record: Any, body: bytes, damage: Damage, pages: _PageReader) -> _Row | None:
    from fastwarc.warc import WarcRecordType

    if len(body) > _LONGEST:
        damage.add(f"archive records of more than {_LONGEST >> 20} MiB")
        return None
    if record.record_type == WarcRecordType.conversion:
        text = _decoded_page(body, "utf-8", damage)
    else:
        headers = record.http_headers
        kind = (headers.get("Content-Type", "") or "") if headers is not None else ""
        if "html" not in kind.lower() and "text/plain" not in kind.lower():
            damage.add("archive records that are no text")
            return None
        charset = _CHARSET.search(kind)
        text = _decoded_page(body, charset.group(1) if charset else "utf-8", damage)
        if "html" in kind.lower():
            found = pages.text(text)
            if found is None:
                damage.add(f"pages that take over {_PAGE_SECONDS:g} s, or too much memory, to read")
                return None
            text = found
    uri = record.headers.get("WARC-Target-URI")
    date = record.headers.get("WARC-Date")
    language = record.headers.get("WARC-Identified-Content-Language")
    return text, uri and uri.strip("<>"), date, language and language.split(",")[0]


def _decoded_page(body: bytes, charset: str, damage: Damage) -> str:
    try:
        return body.decode(charset)
    except (UnicodeDecodeError, LookupError):
        damage.mend("archive records that are not in their charset")
        return body.decode("utf-8", "replace")


# The parser takes time and memory that grow with the square of how deeply tags are nested, and
# nothing interrupts it: so it runs in a process of its own, which can be ended.
_WORKER = """
import struct, sys
try:
    import resource
    resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[1]), resource.RLIM_INFINITY))
except (ImportError, ValueError, OSError):
    pass
from resiliparse.extract.html2text import extract_plain_text
read, write = sys.stdin.buffer, sys.stdout.buffer
while head := read.read(8):
    page = read.read(struct.unpack("<Q", head)[0]).decode("utf-8", "replace")
    text = extract_plain_text(page, main_content=True, alt_texts=False, links=False).encode()
    write.write(struct.pack("<Q", len(text)) + text)
    write.flush()
"""


class _PageReader:
    """Takes the text out of pages, each within a time and a size; a process that fails is ended."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def text(self, page: str) -> str | None:
        """Return the text of a page; None where it takes too long, or the parser fails."""
        require("resiliparse", "warc")
        if self._process is None or self._process.poll() is not None:
            words = [sys.executable, "-c", _WORKER, str(_PAGE_MEMORY)]
            pipe, null = subprocess.PIPE, subprocess.DEVNULL
            self._process = subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=null)
        process = self._process
        late = threading.Timer(_PAGE_SECONDS, process.kill)
        late.start()
        try:
            assert process.stdin is not None and process.stdout is not None
            data = page.encode("utf-8", "replace")
            process.stdin.write(struct.pack("<Q", len(data)) + data)
            process.stdin.flush()
            head = process.stdout.read(8)
            size = struct.unpack("<Q", head)[0] if len(head) == 8 else 0
            body = process.stdout.read(size)
            if len(head) == 8 and len(body) == size:
                return body.decode()
        except OSError:  # it ended while it was written to
            pass
        finally:
            late.cancel()
        self.close()
        return None

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            with suppress(OSError):
                self._process.communicate()
            self._process = None


def _length(record: Any) -> int:
    declared = record.headers.get("Content-Length", "") or ""
    return int(declared) if declared.isdigit() else 0


def _ends_early(path: Path, last: int, declared: int) -> bool:
    """Say whether a file ends before its last record does, which the reader does not tell."""
    with path.open("rb") as raw:
        raw.seek(last)
        if path.suffix.lower() != ".gz":
            head = raw.read(1 << 16).find(b"\r\n\r\n") + 4
            return path.stat().st_size < last + head + declared
        raw.seek(last)
        # Archives that are one gzip member as a whole are looked through from their beginning.
        raw.seek(last if raw.read(2) == b"\x1f\x8b" else 0)
        unpack = zlib.decompressobj(wbits=31)
        unpacked, whole = 0, True
        while block := raw.read(1 << 20):
            while block:
                unpacked += len(unpack.decompress(block))
                whole = unpack.eof
                if not whole:
                    break
                block, unpack = unpack.unused_data, zlib.decompressobj(wbits=31)
    return not whole or unpacked < declared
