"""MARC-8, the coding of library records before Unicode, to text."""

from __future__ import annotations

import unicodedata
from functools import cache
from importlib.resources import files

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
