"""Two engines that find folded patterns as whole words; both give the same answer."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ombud.errors import require
from ombud.text.folding import fold

__all__ = ["AutomatonEngine", "Engine", "Ints", "TokenEngine", "word_table"]

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Codes = NDArray[np.uint32]
_BLOCK_TEXTS = 4_000
_BLOCK_CHARACTERS = 1_000_000
# Patterns hold no NUL, so none can reach across the seam of two texts.
_SEAM = "\0"
_RUN = re.compile(r"\w+")
_FILTER_BITS = 20


@cache
def word_table() -> Bools:
    r"""Return which characters ``\w`` matches."""
    every = (chr(code).isalnum() or code == ord("_") for code in range(0x110000))
    return np.fromiter(every, dtype=np.bool_, count=0x110000)


def _codes(folded: str) -> Codes:
    """Return the characters with a seam on either side: entry p + 1 is character p."""
    return np.frombuffer((_SEAM + folded + _SEAM).encode("utf-32-le"), dtype=np.uint32)


class Engine(ABC):
    """Finds patterns in texts, block by block.

    Parameters
    ----------
    patterns
        Folded, distinct, not empty, without NUL.
    """

    def __init__(self, patterns: Sequence[str]) -> None:
        self._patterns = list(patterns)

    @abstractmethod
    def _find(self, folded: str, codes: Codes, word: Bools) -> tuple[Ints, Ints, Ints]:
        """Return pattern, start and end of all whole-word matches in a folded block."""

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
            codes = _codes(folded)
            result, starts, ends = self._find(folded, codes, word_table()[codes])
            rows = np.searchsorted(first, starts, side="right") - 1
            order = np.argsort(rows, kind="stable")
            rows, result, starts, ends = rows[order], result[order], starts[order], ends[order]
            parts.append((rows + offset, result, starts - first[rows], ends - first[rows]))
            offset += len(block)
        rows, result, starts, ends = (np.concatenate(part) for part in zip(*parts, strict=True))
        return rows, result, starts, ends


class TokenEngine(Engine):
    r"""Looks words up, many at a time, and verifies patterns of several words.

    Every run of word characters inside a pattern must be a whole word of a text that contains the
    pattern. So only the longest run of each pattern is looked up. Words of a block are hashed
    together in numpy; those that pass a Bloom-like filter are compared exactly.

    Parameters
    ----------
    patterns
        Folded, distinct, not empty, without NUL.
    """

    def __init__(self, patterns: Sequence[str]) -> None:
        super().__init__(patterns)
        # Word -> the patterns that it is part of, and where in them it stands.
        self._holders: dict[str, list[tuple[int, int]]] = {}
        self._wordless: list[int] = []
        for index, pattern in enumerate(self._patterns):
            longest = max(_RUN.finditer(pattern), key=lambda run: len(run[0]), default=None)
            if longest is None:
                self._wordless.append(index)
            else:
                self._holders.setdefault(longest[0], []).append((index, longest.start()))
        self._filter = np.zeros(1 << _FILTER_BITS, dtype=np.bool_)
        codes = _codes(_SEAM.join(self._holders))
        _, _, hashes = _hashed_words(codes, word_table()[codes])
        self._filter[hashes] = True

    def _find(self, folded: str, codes: Codes, word: Bools) -> tuple[Ints, Ints, Ints]:
        starts, ends, hashes = _hashed_words(codes, word)
        likely = self._filter[hashes]
        hits: list[tuple[int, int]] = []
        for start, end in zip(starts[likely].tolist(), ends[likely].tolist(), strict=True):
            for index, within in self._holders.get(folded[start:end], ()):
                pattern = self._patterns[index]
                begin = start - within
                if len(pattern) == end - start or (
                    begin >= 0
                    and folded.startswith(pattern, begin)
                    and not word[begin]
                    and not word[begin + len(pattern) + 1]
                ):
                    hits.append((index, begin))
        hits += self._find_wordless(folded, word)
        result, begins = np.asarray(hits, dtype=np.int64).reshape(-1, 2).T
        sizes = np.asarray([len(pattern) for pattern in self._patterns], dtype=np.int64)
        return result, begins, begins + sizes[result]

    def _find_wordless(self, folded: str, word: Bools) -> Iterator[tuple[int, int]]:
        present = set(folded) if self._wordless else set()
        for index in self._wordless:
            pattern = self._patterns[index]
            begin = folded.find(pattern) if pattern[0] in present else -1
            while begin >= 0:
                if not word[begin] and not word[begin + len(pattern) + 1]:
                    yield index, begin
                begin = folded.find(pattern, begin + 1)


class AutomatonEngine(Engine):
    """Aho-Corasick automaton (``ahocorasick_rs``), then a test for whole words.

    Parameters
    ----------
    patterns
        Folded, distinct, not empty, without NUL.
    """

    def __init__(self, patterns: Sequence[str]) -> None:
        super().__init__(patterns)
        require("ahocorasick_rs", "matching")
        import ahocorasick_rs as automata

        self._automaton: Any = automata.AhoCorasick(
            self._patterns,
            matchkind=automata.MatchKind.Standard,
            implementation=automata.Implementation.DFA,
        )

    def _find(self, folded: str, codes: Codes, word: Bools) -> tuple[Ints, Ints, Ints]:
        hits = self._automaton.find_matches_as_indexes(folded, overlapping=True)
        result, starts, ends = np.asarray(hits, dtype=np.int64).reshape(-1, 3).T
        whole = ~word[starts] & ~word[ends + 1]
        return result[whole], starts[whole], ends[whole]


def _hashed_words(codes: Codes, word: Bools) -> tuple[Ints, Ints, NDArray[np.uint32]]:
    """Return start, end and hash of every word; equal words have equal hashes."""
    edges = np.flatnonzero(word[1:] != word[:-1])
    starts, ends = edges[0::2], edges[1::2]
    body = codes[1:]
    # A sum over neighbouring letters, wrapping round: one running sum gives the hash of any word.
    left = body[:-1] * np.uint32(0x9E3779B1) + np.uint32(0x7F4A7C15)
    right = body[1:] * np.uint32(0x85EBCA6B) + np.uint32(0x165667B1)
    sums = np.zeros(len(body), dtype=np.uint32)
    np.cumsum(left * right, dtype=np.uint32, out=sums[1:])
    hashes = (sums[ends - 1] - sums[starts] + left[starts]) * np.uint32(0xC2B2AE35)
    return starts, ends, hashes >> np.uint32(32 - _FILTER_BITS)


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
