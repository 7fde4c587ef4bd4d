"""Case-folding and Unicode normalisation, with a way back to the original text."""

from __future__ import annotations

import re
import unicodedata
from functools import cache

import numpy as np
from numpy.typing import NDArray

_SURROGATE = re.compile("[\ud800-\udfff]")
# Only where an iota subscript may hide in a letter must decomposition come before case-folding
# (Unicode 3.13, D145).
_RARE = re.compile("[\ud800-\udfff\u0345\u1f80-\u1fff]")


def fold(text: str) -> str:
    """Return the form in which texts and terms are compared.

    Canonical decomposition, full case-folding, canonical composition (NFC). Two texts that differ
    only in case or in the encoding of accents become equal. Lone surrogates, which no engine can
    read, become U+FFFD.

    Examples
    --------
    >>> fold("STRASSE") == fold("straße")
    True
    >>> fold("Cafe\u0301") == fold("CAFÉ")
    True
    """
    if text.isascii():
        return text.lower()
    if not _RARE.search(text):
        return unicodedata.normalize("NFC", text.casefold())
    text = _SURROGATE.sub("\ufffd", text)
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", text).casefold())


@cache
def _joining() -> frozenset[str]:
    """Characters that are no combining marks and yet may compose with the one before them."""
    result = {chr(code) for code in (*range(0x1161, 0x1176), *range(0x11A8, 0x11C3))}
    for code in range(0x110000):
        parts = unicodedata.decomposition(chr(code))
        if parts and not parts.startswith("<"):
            result.update(chr(int(part, 16)) for part in parts.split()[1:])
    return frozenset(result)


@cache
def _starts_piece(char: str) -> bool:
    first = unicodedata.normalize("NFD", unicodedata.normalize("NFD", char).casefold())[0]
    return not unicodedata.combining(first) and first not in _joining()


def fold_offsets(text: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return, for every character of ``fold(text)``, the span of `text` that it comes from.

    Folding changes lengths (one letter may become two, a letter and its accent one); the span is
    the smallest piece of the original that folds on its own.

    Parameters
    ----------
    text
        The original text.

    Returns
    -------
    tuple
        First position and end position, one entry per character of the folded text.

    Examples
    --------
    >>> first, end = fold_offsets("aßb")
    >>> first.tolist(), end.tolist()
    ([0, 1, 1, 2], [1, 2, 2, 3])
    """
    if text.isascii():
        positions = np.arange(len(text), dtype=np.int64)
        return positions, positions + 1
    cuts = [0, *(i for i in range(1, len(text)) if _starts_piece(text[i])), len(text)]
    lengths = [len(fold(text[a:b])) for a, b in zip(cuts, cuts[1:], strict=False)]
    edges = np.asarray(cuts, dtype=np.int64)
    return np.repeat(edges[:-1], lengths), np.repeat(edges[1:], lengths)
