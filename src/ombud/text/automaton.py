"""The automaton that finds folded patterns as whole words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import islice
from typing import Any

import ahocorasick_rs
import numpy as np
from numpy.typing import NDArray

from ombud.text.folding import fold

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Codes = NDArray[np.uint32]
_BLOCK_TEXTS = 4_000
_BLOCK_CHARACTERS = 1_000_000
# Patterns hold no NUL, so none can reach across the seam of two texts.
_SEAM = "\0"


@cache
def word_table() -> Bools:
    r"""Return which characters ``\w`` matches."""
    every = (chr(code).isalnum() or code == ord("_") for code in range(0x110000))
    return np.fromiter(every, dtype=np.bool_, count=0x110000)


def _codes(folded: str) -> Codes:
    """Return the characters with a seam on either side: entry p + 1 is character p."""
    return np.frombuffer((_SEAM + folded + _SEAM).encode("utf-32-le"), dtype=np.uint32)


class Automaton:
    """Finds all of many folded patterns as whole words (Aho-Corasick, then a test of both ends).

    Parameters
    ----------
    patterns
        Folded, distinct, not empty, without NUL.
    """

    def __init__(self, patterns: Sequence[str]) -> None:
        self._patterns = list(patterns)
        self._automaton: Any = ahocorasick_rs.AhoCorasick(
            self._patterns,
            matchkind=ahocorasick_rs.MatchKind.Standard,
            implementation=ahocorasick_rs.Implementation.DFA,
        )

    def pairs(self, texts: Iterable[str]) -> tuple[Ints, Ints]:
        """Return text and pattern indices, each pair once."""
        rows, result, _, _ = self.occurrences(texts)
        width = len(self._patterns)
        unique = np.unique(rows * width + result)
        return unique // width, unique % width

    def occurrences(self, texts: Iterable[str]) -> tuple[Ints, Ints, Ints, Ints]:
        """Return text and pattern index, start and end in the folded text, in order of texts."""
        parts = [(np.empty(0, dtype=np.int64),) * 4]
        offset = 0
        for block in _blocks(texts):
            folded, first = _fold_block(block)
            result, starts, ends = self._find(folded)
            rows = np.searchsorted(first, starts, side="right") - 1
            order = np.argsort(rows, kind="stable")
            rows, result, starts, ends = rows[order], result[order], starts[order], ends[order]
            parts.append((rows + offset, result, starts - first[rows], ends - first[rows]))
            offset += len(block)
        rows, result, starts, ends = (np.concatenate(part) for part in zip(*parts, strict=True))
        return rows, result, starts, ends

    def _find(self, folded: str) -> tuple[Ints, Ints, Ints]:
        """Return pattern, start and end of all whole-word matches in a folded block."""
        word = word_table()[_codes(folded)]
        hits = self._automaton.find_matches_as_indexes(folded, overlapping=True)
        result, starts, ends = np.asarray(hits, dtype=np.int64).reshape(-1, 3).T
        whole = ~word[starts] & ~word[ends + 1]
        return result[whole], starts[whole], ends[whole]


def _fold_block(block: list[str]) -> tuple[str, Ints]:
    """Return the folded texts joined by seams, and where each begins."""
    parts = [text.lower() if text.isascii() else fold(text) for text in block]
    sizes = np.fromiter(map(len, parts), dtype=np.int64, count=len(parts))
    first = np.zeros(len(block), dtype=np.int64)
    np.cumsum(sizes[:-1] + 1, out=first[1:])
    return _SEAM.join(parts), first


def _blocks(texts: Iterable[str]) -> Iterator[list[str]]:
    stream = iter(texts)
    while block := list(islice(stream, _BLOCK_TEXTS)):
        piece: list[str] = []
        size = 0
        for text in block:
            if piece and size + len(text) > _BLOCK_CHARACTERS:
                yield piece
                piece, size = [], 0
            piece.append(text)
            size += len(text)
        yield piece
