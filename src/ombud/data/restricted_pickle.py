"""Read pickled dictionaries of texts and numbers without giving them any power.

A pickle is a program. This module first reads the whole program and refuses it unless it consists
of the few instructions that build dictionaries of texts and whole numbers, and unless what they
build stays in proportion to the file; then it runs it in an unpickler that can import nothing.
"""

from __future__ import annotations

import io
import pickle
import pickletools
import re
import struct
from pathlib import Path
from typing import Any, NoReturn

from ombud.errors import DataError

_NAMES = {ord(code.code): code.name for code in pickletools.opcodes}
_SIZED = {"SHORT_BINUNICODE": "<B", "BINUNICODE": "<I", "BINUNICODE8": "<Q", "LONG1": "<B"}
_LONGEST_TEXT = 10_000
_LONGEST_NUMBER = 8
# Bytes of memory: of an empty dictionary, of its first entry, of a number and its place as a key,
# of a text, and of the places of one instruction on the stack and in the memo.
_EMPTY, _FIRST, _NUMBER, _TEXT, _PLACES = 72, 168, 100, 60, 8
_PROPORTION = 48
_SMALL = 16 << 20


def _plain_run(size: int) -> re.Pattern[bytes]:
    """Return a pattern of the permitted instructions of fixed length, one after the other.

    MARK, EMPTY_DICT, SETITEM, SETITEMS, MEMOIZE; BININT1, BINGET, BINPUT, PROTO with one byte;
    BININT2 with two; BININT, LONG_BINGET with four; FRAME with eight. LONG_BINPUT names a slot, and
    the unpickler makes room for all slots below it: none may be far above the size of the file.
    """
    top = max(0, (size.bit_length() - 1) // 8)  # the highest byte of the size that is not zero
    slot = b"...."
    if top < 4:
        most = re.escape(bytes([size >> 8 * top]))
        slot = b"." * top + b"[\x00-%s]" % most + b"\x00" * (3 - top)
    fixed = (b"[(}su\x94]", b"[Khq\x80].", b"M..", b"[Jj]....", b"\x95.{8}", b"r" + slot)
    return re.compile(b"(?:" + b"|".join(fixed) + b")++", re.DOTALL)


class _Restricted(pickle.Unpickler):  # noqa: S301 - it imports nothing, and the scan came first
    """Imports nothing and follows no persistent ids; the scan has refused both already."""

    def find_class(self, module: str, name: str) -> NoReturn:
        raise pickle.UnpicklingError(f"it asks for {module}.{name}")

    def persistent_load(self, pid: Any) -> NoReturn:
        raise pickle.UnpicklingError("it holds persistent ids")


def _memory(data: bytes) -> int:
    """Return how much memory running a pickle can take, at most.

    Every byte that could be an instruction is counted as one, also where it is part of a number
    or a text. A vote, which takes about 20 bytes here, takes about 20 times as much in memory; a
    file of nothing but empty dictionaries would take 72 times as much.
    """
    made = data.count(b"}")
    filled = min(made, data.count(b"s") + data.count(b"u"))
    numbers = data.count(b"J") + data.count(b"M") + data.count(b"\x8a")
    texts = data.count(b"\x8c") + data.count(b"X") + data.count(b"\x8d")
    each = _EMPTY * made + _FIRST * filled + _NUMBER * numbers + _TEXT * texts
    return each + _PLACES * len(data)


def _scan(data: bytes) -> str:
    """Return what is wrong with a pickle, or an empty text."""
    index, size = 0, len(data)
    plain = _plain_run(size)
    while index < size:
        if run := plain.match(data, index):
            index = run.end()
            continue
        name = _NAMES.get(data[index], "")
        if name == "STOP":
            return "" if index + 1 == size else "bytes follow its end"
        if name == "LONG_BINPUT":
            return f"at byte {index:,} it asks for room for more things than it can hold"
        if name not in _SIZED:
            what = name or f"the unknown instruction {data[index]:#x}"
            return f"at byte {index:,} stands {what}; texts, whole numbers and dictionaries may"
        form = _SIZED[name]
        if index + 1 + struct.calcsize(form) > size:
            break
        (length,) = struct.unpack_from(form, data, index + 1)
        if length > (_LONGEST_NUMBER if name == "LONG1" else _LONGEST_TEXT):
            return f"at byte {index:,} stands something of {length:,} bytes"
        index += 1 + struct.calcsize(form) + length
    return "it ends in the middle"


def _out_of_proportion(memory: int, limit: int) -> str:
    return f"it may take {memory:,} bytes of memory, and {limit:,} at most are allowed"


def load_dictionary(
    path: str | Path, *, largest: int = 1 << 30, most_memory: int = 2 << 30
) -> dict[Any, Any]:
    """Return the dictionary in a pickle file that holds nothing but texts, numbers, dictionaries.

    Parameters
    ----------
    path
        The file.
    largest
        Refuse files of more bytes.
    most_memory
        Refuse files that may take more bytes of memory; also those that may take 48 times their
        own size (and over 16 MiB).

    Raises
    ------
    DataError
        When the file is anything else; nothing of it has been run then.

    Notes
    -----
    The pickle may share one dictionary in many places: what is small here can be large when it is
    written out. Count entries before expanding them.
    """
    file = Path(path)
    if not file.is_file():
        raise DataError(file.name, [f"there is no file {file}"])
    size = file.stat().st_size
    if size > largest:
        raise DataError(file.name, [f"it has {size:,} bytes; at most {largest:,} are read"])
    data = file.read_bytes()
    memory = _memory(data)
    limit = min(most_memory, max(_SMALL, _PROPORTION * size))
    fault = _scan(data) if memory <= limit else _out_of_proportion(memory, limit)
    content: Any = None
    if not fault:
        try:
            content = _Restricted(io.BytesIO(data)).load()
        except (pickle.UnpicklingError, EOFError, ValueError, TypeError, KeyError) as error:
            fault = str(error) or type(error).__name__
        except (IndexError, AttributeError, UnicodeDecodeError, OverflowError) as error:
            fault = str(error) or type(error).__name__
    if not fault and not isinstance(content, dict):
        fault = f"it holds a {type(content).__name__}; a dictionary was expected"
    if fault:
        raise DataError(
            file.name,
            [
                f"this pickle is refused: {fault}. A dictionary of texts and whole numbers, "
                "pickled with protocol 2 or later, is read; convert others where you trust them"
            ],
        )
    return content  # type: ignore[no-any-return]
