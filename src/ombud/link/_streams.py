"""Files as streams of bytes, whatever they are packed in, and pieces of XML out of a stream."""

from __future__ import annotations

import bz2
import gzip
import lzma
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any
from xml.etree import ElementTree

from ombud.errors import DataError
from ombud.link.problems import Problems

UNPACKING = (OSError, EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile)
"""What a damaged archive may raise while it is read."""

_BLOCK = 1 << 22
_PIECE = 1 << 17
_LONGEST = 1 << 26


def _open_plain(path: Path) -> IO[bytes]:
    return path.open("rb")


@contextmanager
def open_bytes(path: Path, member: str = "") -> Iterator[IO[bytes]]:
    """Open a plain, gzip, bzip2, xz or ZIP file as a stream.

    `member` is the last name of the member of a ZIP archive; default, its only file.
    """
    if not path.is_file():
        raise DataError(path.name, [f"there is no file {path}"])
    kind = path.suffix.lower()
    try:
        if kind == ".zip":
            with zipfile.ZipFile(path) as archive:
                names = [n for n in archive.namelist() if not n.endswith("/")]
                wanted = [n for n in names if not member or n.rpartition("/")[2] == member]
                if len(wanted) != 1:
                    fault = f"one file {member!r} was expected in it; found {len(wanted)}"
                    raise DataError(path.name, [fault])
                with archive.open(wanted[0]) as stream:
                    yield stream
            return
        openers: dict[str, Callable[[Path], Any]] = {
            ".gz": gzip.open,
            ".bz2": bz2.open,
            ".xz": lzma.open,
        }
        with openers.get(kind, _open_plain)(path) as opened:
            yield opened
    except zipfile.BadZipFile as error:
        raise DataError(path.name, [f"it cannot be read as a ZIP archive: {error}"]) from None


class Blocks:
    """A stream, block by block; of a damaged archive, all that is unpacked before the damage.

    Damage is counted in `problems`, under `source`.

    Attributes
    ----------
    damaged
        Whether reading ended before the end of the archive.
    """

    def __init__(
        self, stream: IO[bytes], source: str, problems: Problems, size: int = _BLOCK
    ) -> None:
        # A read of many bytes that fails takes those with it that were unpacked before.
        self._read: Callable[[int], bytes] = getattr(stream, "read1", stream.read)
        self._source, self._problems, self._size = source, problems, size
        self.damaged = False

    def read(self) -> bytes:
        """Return the next block; none at the end."""
        pieces: list[bytes] = []
        missing = self._size
        while missing and not self.damaged:
            try:
                piece = self._read(min(missing, _PIECE))
            except UNPACKING as error:
                self.damaged = True
                reason = "the archive is damaged; the rest of it is not read"
                self._problems.add(self._source, reason, str(error))
                break
            if not piece:
                break
            pieces.append(piece)
            missing -= len(piece)
        return b"".join(pieces)


def lines_in_blocks(
    stream: IO[bytes], source: str, problems: Problems, size: int = 1 << 25
) -> Iterator[list[bytes]]:
    """Return the lines of a stream, about `size` bytes at a time; a damaged end is reported."""
    blocks = Blocks(stream, source, problems, size)
    left = b""
    pending: list[bytes] = []
    while True:
        block = blocks.read()
        if not block:
            break
        if pending:
            yield pending
        lines = (left + block).split(b"\n")
        left = lines.pop()
        if len(left) > _LONGEST:
            problems.add(
                source, "a line of more than 64 MiB is left out", left[:40].decode("latin-1")
            )
            left = b""
        pending = [line for line in lines if line.strip()]
    if left.strip() and blocks.damaged:
        reason = "the line that the damage cuts is left out"
        problems.add(source, reason, left[:60].decode("utf-8", "replace"))
    elif left.strip():
        pending.append(left)
    if pending:
        yield pending


_DECLARED = re.compile(rb"""\sxmlns(?::[\w.-]+)?\s*=\s*(?:"[^"]*"|'[^']*')""")
_ENCODING = re.compile(rb"""^\s*<\?xml[^>]*encoding\s*=\s*["']([\w.-]+)["']""")


def xml_elements(
    stream: IO[bytes], name: str, source: str, problems: Problems
) -> Iterator[ElementTree.Element]:
    """Return the elements of a name, each parsed alone: a broken one costs only itself.

    There is no document type and no entity of one: what an element holds is all that is read.

    The stream is XML, or lines with one element each, as VIAF publishes them; the name has no
    prefix. What cannot be read is counted in `problems`.
    """
    start = re.compile(rb"<(?:([\w.-]+):)?" + name.encode() + rb"(?=[\s>/])")
    declared: list[bytes] | None = None
    coding = b"utf-8"
    left, number = b"", 0
    blocks = Blocks(stream, source, problems)
    while True:
        block = blocks.read()
        data = left + block
        if declared is None:
            if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
                raise DataError(source, ["it is UTF-16; convert it to UTF-8 first"])
            found = _ENCODING.match(data.removeprefix(b"\xef\xbb\xbf"))
            coding = found.group(1) if found else coding
        place = 0
        while (begin := start.search(data, place)) is not None:
            if declared is None:
                declared = list(dict.fromkeys(_DECLARED.findall(data[: begin.start()])))
            prefix = begin.group(1)
            end_tag = b"</" + (prefix + b":" if prefix else b"") + name.encode() + b">"
            end = data.find(end_tag, begin.end())
            if end < 0:
                break
            place = end + len(end_tag)
            number += 1
            element = _parsed(data[begin.start() : place], prefix, declared, coding)
            if element is None:
                problems.add(source, "the XML of the record is broken", f"record {number}")
            else:
                yield element
        left = data[place:] if begin is not None else data[max(place, len(data) - 200) :]
        if not block or len(left) > _LONGEST:
            if begin is not None:
                problems.add(source, "the file is cut in a record", f"record {number + 1}")
            if not block:
                return
            left = b""


def _parsed(
    piece: bytes, prefix: bytes | None, declared: list[bytes], coding: bytes
) -> ElementTree.Element | None:
    """Parse one element with the namespaces of its document; None where it is broken."""
    spaces = list(declared)
    if prefix and not any(b"xmlns:" + prefix + b"=" in d.replace(b" ", b"") for d in spaces):
        spaces.append(b" xmlns:" + prefix + b'="urn:unknown"')
    head = b'<?xml version="1.0" encoding="' + coding + b'"?><piece' + b"".join(spaces) + b">"
    try:
        return ElementTree.fromstring(head + piece + b"</piece>")[0]
    except (ElementTree.ParseError, LookupError, ValueError, IndexError):
        return None
