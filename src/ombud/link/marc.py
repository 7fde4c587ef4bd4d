"""MARC records, binary and XML, field by field and no more than is asked for.

A binary file is cut at its record terminators, not by the lengths that the leaders state: a wrong
length then costs nothing. Where the directory of a record does not fit its fields, the fields are
taken in their order; where that does not fit either, the record is counted as broken.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import IO
from xml.etree.ElementTree import Element

from ombud.link._streams import UNPACKING, Blocks, open_bytes, xml_elements
from ombud.link.problems import Problems

_FIELD, _RECORD = b"\x1e", b"\x1d"
_LONGEST = 1 << 24
_NUMBER = re.compile(rb"[0-9]{5}")


class MarcRecord:
    """One record: its leader, control fields and data fields.

    `fields` returns ``(indicators, [(code, text), ...])`` for each field of a tag, in their order.
    """

    leader: str

    def control(self, tag: str) -> str | None:
        """Return the text of the first control field of a tag."""
        raise NotImplementedError

    def fields(self, tag: str) -> list[tuple[str, list[tuple[str, str]]]]:
        """Return the data fields of a tag."""
        raise NotImplementedError

    def tags(self) -> list[str]:
        """Return the tags of all fields, in their order."""
        raise NotImplementedError

    def subfields(self, tag: str, code: str) -> list[str]:
        """Return the texts of one subfield in all fields of a tag."""
        return [text for _, found in self.fields(tag) for c, text in found if c == code]


class BinaryRecord(MarcRecord):
    """A record in ISO 2709 form; text is decoded when it is asked for."""

    __slots__ = ("_places", "_unicode", "leader", "lost", "mislabelled")

    def __init__(self, leader: str, places: dict[str, list[bytes]], in_unicode: bool) -> None:
        self.leader = leader
        self._places = places
        self._unicode = in_unicode
        self.lost = 0
        self.mislabelled = False

    def _text(self, data: bytes) -> str:
        try:
            text = data.decode()
        except UnicodeDecodeError:
            if self._unicode:
                text = data.decode("utf-8", "replace")
                self.lost += 1
                return text
            text, lost = decode_marc8(data)
            self.lost += lost
            return text
        if self._unicode or (data.isascii() and b"\x1b" not in data):
            return text
        if b"\x1b" in data:
            text, lost = decode_marc8(data)
            self.lost += lost
            return text
        # MARC-8 puts a mark before an ASCII letter, so it is never valid UTF-8 by accident.
        self.mislabelled = True
        return text

    def control(self, tag: str) -> str | None:
        """Return the text of the first control field of a tag."""
        found = self._places.get(tag)
        # Its places are counted in bytes, so one byte stays one character.
        return found[0].decode("latin-1") if found else None

    def fields(self, tag: str) -> list[tuple[str, list[tuple[str, str]]]]:
        """Return the data fields of a tag."""
        result = []
        for data in self._places.get(tag, ()):
            if self._unicode or (data.isascii() and b"\x1b" not in data):
                # One decoding for the whole field.
                try:
                    whole = data.decode()
                except UnicodeDecodeError:
                    whole = self._text(data)
                head, *texts = whole.split("\x1f")
                result.append((head, [(text[0], text[1:]) for text in texts if text]))
                continue
            first, *parts = data.split(b"\x1f")
            pairs = [(chr(part[0]), self._text(part[1:])) for part in parts if part]
            result.append((first.decode("latin-1"), pairs))
        return result

    def tags(self) -> list[str]:
        """Return the tags of all fields (those read), grouped."""
        return [tag for tag, found in self._places.items() for _ in found]


class XmlRecord(MarcRecord):
    """A record in MARCXML."""

    __slots__ = ("_control", "_data", "leader")

    def __init__(self, element: Element) -> None:
        self.leader = ""
        self._control: list[tuple[str, str]] = []
        self._data: list[tuple[str, str, list[tuple[str, str]]]] = []
        for child in element:
            name = child.tag.rpartition("}")[2]
            if name == "leader":
                self.leader = child.text or ""
            elif name == "controlfield":
                self._control.append((child.get("tag", ""), child.text or ""))
            elif name == "datafield":
                signs = child.get("ind1", " ") + child.get("ind2", " ")
                pairs = [(sub.get("code", ""), sub.text or "") for sub in child]
                self._data.append((child.get("tag", ""), signs, pairs))

    def control(self, tag: str) -> str | None:
        """Return the text of the first control field of a tag."""
        return next((text for t, text in self._control if t == tag), None)

    def fields(self, tag: str) -> list[tuple[str, list[tuple[str, str]]]]:
        """Return the data fields of a tag."""
        return [(signs, pairs) for t, signs, pairs in self._data if t == tag]

    def tags(self) -> list[str]:
        """Return the tags of all fields, in their order."""
        return [tag for tag, _ in self._control] + [tag for tag, _, _ in self._data]


def read_marc(
    path: str | Path, problems: Problems, *, tags: frozenset[str] | None = None
) -> Iterator[MarcRecord]:
    """Read the records of a MARC file, binary or XML, packed or not, one after the other.

    Broken records are counted. Given `tags`, only these fields are read, which is faster in a
    binary file.
    """
    place = Path(path)
    with open_bytes(place) as stream:
        if _is_xml(place):
            for element in xml_elements(stream, "record", place.name, problems):
                record = XmlRecord(element)
                if not record.leader and not record.tags():
                    problems.add(place.name, "the record has neither leader nor fields")
                    continue
                yield record
        else:
            yield from _binary(stream, place.name, problems, tags)


def _is_xml(path: Path) -> bool:
    with open_bytes(path) as stream:
        try:
            head = stream.read(64)
        except UNPACKING:
            return False
    head = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    # VIAF writes its number and a tab before each record.
    return head.startswith(b"<") or re.match(rb"\d+\t<", head) is not None


def _binary(
    stream: IO[bytes], source: str, problems: Problems, tags: frozenset[str] | None
) -> Iterator[MarcRecord]:
    left, number = b"", 0
    blocks = Blocks(stream, source, problems)
    while True:
        block = blocks.read()
        if not block:
            break
        pieces = (left + block).split(_RECORD)
        left = pieces.pop()
        if len(left) > _LONGEST:
            problems.add(source, "16 MiB without the end of a record are left out")
            left = b""
        for piece in pieces:
            number += 1
            data = piece.lstrip(b"\r\n \x00\x1a") if piece[:1] in b"\r\n \x00\x1a" else piece
            record = _record(data, tags, source, number, problems)
            if record is not None:
                yield record
    if left.strip(b"\r\n \x00\x1a"):
        problems.add(source, "the file is cut in a record", f"record {number + 1}")


def _record(
    data: bytes, wanted: frozenset[str] | None, source: str, number: int, problems: Problems
) -> BinaryRecord | None:
    """Return a record from the bytes before its terminator, or None where it is broken."""
    if len(data) < 25 or not _NUMBER.match(data, 12):
        problems.add(source, "the record has no usable leader", f"record {number}")
        return None
    if data[:5] != b"%05d" % (len(data) + 1):
        problems.add(source, "wrong length in the leader (read all the same)", f"record {number}")
    base = int(data[12:17])
    directory = data[24 : base - 1]
    places: dict[str, list[bytes]] | None = None
    if base <= len(data) and data[base - 1 : base] == _FIELD and len(directory) % 12 == 0:
        places = _by_directory(data, directory, base, wanted)
    if places is None:
        places = _in_order(data, wanted)
        if places is None:
            reason = "the directory of the record does not fit its fields"
            problems.add(source, reason, f"record {number}")
            return None
        reason = "wrong directory; fields taken in their order"
        problems.add(source, reason, f"record {number}")
    leader = data[:24].decode("latin-1")
    return BinaryRecord(leader, places, leader[9] == "a")


def _by_directory(
    data: bytes, directory: bytes, base: int, wanted: frozenset[str] | None
) -> dict[str, list[bytes]] | None:
    places: dict[str, list[bytes]] = {}
    numbered = directory.decode("latin-1")
    try:
        for at in range(0, len(numbered), 12):
            tag = numbered[at : at + 3]
            if wanted is not None and tag not in wanted:
                continue
            length, start = divmod(int(numbered[at + 3 : at + 12]), 100_000)
            start += base
            end = start + length - 1
            if data[end] != 0x1E or data[start - 1] != 0x1E:
                return None
            if tag in places:
                places[tag].append(data[start:end])
            else:
                places[tag] = [data[start:end]]
    except (IndexError, ValueError):
        return None
    return places


def _in_order(data: bytes, wanted: frozenset[str] | None) -> dict[str, list[bytes]] | None:
    """Take tags from the directory and contents from the field terminators, side by side."""
    end = data.find(_FIELD, 24)
    if end < 0:
        return None
    directory = data[24:end]
    contents = data[end + 1 :].split(_FIELD)
    if contents and not contents[-1].strip():
        contents.pop()
    tags = [directory[at : at + 3] for at in range(0, len(directory) - 11, 12)]
    if not tags or len(tags) != len(contents) or not all(len(t) == 3 and t.isalnum() for t in tags):
        return None
    places: dict[str, list[bytes]] = {}
    for tag, content in zip(tags, contents, strict=True):
        name = tag.decode("latin-1")
        if wanted is None or name in wanted:
            places.setdefault(name, []).append(content)
    return places


# MARC-8, the coding of library records before Unicode, to text.


_ESCAPE = 0x1B
_ASCII, _LATIN, _CHINESE = 0x42, 0x45, 0x31
_LOST = "\ufffd"

_Table = dict[int, tuple[str, bool]]


@cache
def _tables() -> dict[int, _Table]:
    tables: dict[int, _Table] = {}
    text = files("ombud.link.files").joinpath("marc8.tsv").read_text(encoding="utf-8")
    for line in text.splitlines()[1:]:
        code_set, code, character = line.split("\t")
        combines = character.endswith("+")
        point = int(character.removesuffix("+"), 16)
        tables.setdefault(int(code_set, 16), {})[int(code, 16)] = (chr(point), combines)
    return tables


def _switch(data: bytes, place: int, sets: list[int]) -> int:
    """Follow an escape sequence; return where the text goes on."""
    rest = data[place + 1 : place + 4]
    wide = rest[:1] == b"$"
    rest = rest[1:] if wide else rest
    length = 2 if wide else 1
    side = 0
    if rest[:1] in (b"(", b",", b")", b"-"):
        side = 1 if rest[:1] in (b")", b"-") else 0
        rest = rest[1:]
        length += 1
        if rest[:1] == b"!":  # ANSEL is designated with an intermediate "!"
            rest = rest[1:]
            length += 1
    final = rest[:1]
    if not final:
        return len(data)
    sets[side] = _ASCII if final == b"s" else final[0]
    return place + length + 1


def decode_marc8(data: bytes) -> tuple[str, int]:
    r"""Return the text of MARC-8 bytes in Unicode form NFC, and how many bytes had no meaning.

    Examples
    --------
    >>> decode_marc8(b"Garc\xe2ia M\xe2arquez")
    ('García Márquez', 0)
    """
    if data.isascii() and _ESCAPE not in data:
        return data.decode("ascii"), 0
    tables = _tables()
    sets = [_ASCII, _LATIN]
    out: list[str] = []
    marks: list[str] = []
    lost = 0
    place = 0
    while place < len(data):
        byte = data[place]
        if byte == _ESCAPE:
            place = _switch(data, place, sets)
            continue
        if byte <= 0x20 or 0x7F <= byte < 0x88:
            out.append(chr(byte) if byte < 0x80 else "")
            place += 1
            continue
        current = sets[1 if byte >= 0x80 else 0]
        table = tables.get(current, {})
        if current == _CHINESE:
            three = data[place : place + 3]
            found = table.get(int.from_bytes(bytes(b & 0x7F for b in three)))
            place += 3
        else:
            found = table.get(byte) or table.get(byte ^ 0x80)
            place += 1
        if found is None:
            lost += 1
            found = (_LOST, False)
        character, combines = found
        if combines:
            marks.append(character)
            continue
        out.append(character)
        # In MARC-8 marks stand before their letter, in Unicode after it.
        out += marks
        marks.clear()
    return unicodedata.normalize("NFC", "".join(out + marks)), lost
