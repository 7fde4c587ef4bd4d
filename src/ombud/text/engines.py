"""Two engines that find folded patterns as whole words; both give the same answer."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import islice
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ombud.errors import require
from ombud.text.folding import fold

__all__ = ["AutomatonEngine", "Engine", "Ints", "TokenEngine"]

Ints = NDArray[np.int64]
_TOKEN = re.compile(r"\w+")
_BLOCK_TEXTS = 4_000
_BLOCK_CHARACTERS = 1_000_000
# Patterns hold no NUL, so none can reach across the seam of two texts.
_SEAM = "\0"


class Engine(Protocol):
    """Finds patterns in texts."""

    def pairs(self, texts: Iterable[str]) -> tuple[Ints, Ints]:
        """Return text and pattern indices, each pair once."""
        ...

    def occurrences(self, texts: Iterable[str]) -> tuple[Ints, Ints, Ints, Ints]:
        """Return text and pattern indices, start and end in the folded text, of all matches."""
        ...


def _is_word(char: str) -> bool:
    return char.isalnum() or char == "_"


def _positions(text: str, pattern: str) -> Iterator[int]:
    start = text.find(pattern)
    while start >= 0:
        end = start + len(pattern)
        if (start == 0 or not _is_word(text[start - 1])) and (
            end == len(text) or not _is_word(text[end])
        ):
            yield start
        start = text.find(pattern, start + 1)


class TokenEngine:
    """Splits texts into words, looks words up, and verifies patterns of several words.

    Every run of word characters inside a pattern must be a whole word of a text that contains the
    pattern. So one such run, the longest, is looked up among the words of the text, and only then
    is the text searched for the pattern.

    Parameters
    ----------
    patterns
        Folded, distinct, not empty.
    """

    def __init__(self, patterns: Sequence[str]) -> None:
        self._patterns = patterns
        self._single: dict[str, int] = {}
        self._several: dict[str, list[int]] = {}
        self._wordless: list[int] = []
        for index, pattern in enumerate(patterns):
            runs = _TOKEN.findall(pattern)
            if not runs:
                self._wordless.append(index)
            elif runs[0] == pattern:
                self._single[pattern] = index
            else:
                self._several.setdefault(max(runs, key=len), []).append(index)
        self._words = frozenset((*self._single, *self._several))
        heads = sorted({re.escape(patterns[index][0]) for index in self._wordless})
        self._wordless_head = re.compile("|".join(heads)).search if heads else None

    def _candidates(self, text: str) -> Iterator[int]:
        for word in self._words.intersection(_TOKEN.findall(text)):
            if word in self._single:
                yield self._single[word]
            for index in self._several.get(word, ()):
                if self._patterns[index] in text:
                    yield index
        if self._wordless_head is not None and self._wordless_head(text):
            for index in self._wordless:
                if self._patterns[index] in text:
                    yield index

    def pairs(self, texts: Iterable[str]) -> tuple[Ints, Ints]:
        """Return text and pattern indices, each pair once."""
        rows: list[int] = []
        found: list[int] = []
        words, single, several = self._words, self._single, self._several
        split: Callable[[str], list[str]] = _TOKEN.findall
        simple = self._wordless_head is None
        for row, text in enumerate(texts):
            text = fold(text)
            # The plain case is spelt out here: this loop is the hot path of tagging.
            if simple:
                for word in words.intersection(split(text)):
                    if word in single:
                        rows.append(row)
                        found.append(single[word])
                    if word in several:
                        for index in several[word]:
                            if next(_positions(text, self._patterns[index]), None) is not None:
                                rows.append(row)
                                found.append(index)
                continue
            for index in self._candidates(text):
                if next(_positions(text, self._patterns[index]), None) is not None:
                    rows.append(row)
                    found.append(index)
        return np.asarray(rows, dtype=np.int64), np.asarray(found, dtype=np.int64)

    def occurrences(self, texts: Iterable[str]) -> tuple[Ints, Ints, Ints, Ints]:
        """Return text and pattern indices, start and end in the folded text, of all matches."""
        hits: list[tuple[int, int, int]] = []
        for row, text in enumerate(texts):
            text = fold(text)
            hits += [
                (row, index, start)
                for index in self._candidates(text)
                for start in _positions(text, self._patterns[index])
            ]
        rows, found, starts = np.asarray(hits, dtype=np.int64).reshape(-1, 3).T
        sizes = np.asarray([len(pattern) for pattern in self._patterns], dtype=np.int64)
        return rows, found, starts, starts + sizes[found]


@cache
def _word_table() -> NDArray[np.bool_]:
    every = (_is_word(chr(code)) for code in range(0x110000))
    return np.fromiter(every, dtype=np.bool_, count=0x110000)


class AutomatonEngine:
    """Aho-Corasick automaton (``ahocorasick_rs``) over blocks of texts.

    Parameters
    ----------
    patterns
        Folded, distinct, not empty, without NUL.
    """

    def __init__(self, patterns: Sequence[str]) -> None:
        require("ahocorasick_rs", "matching")
        import ahocorasick_rs as automata

        self._automaton: Any = automata.AhoCorasick(
            list(patterns),
            matchkind=automata.MatchKind.Standard,
            implementation=automata.Implementation.DFA,
        )

    def pairs(self, texts: Iterable[str]) -> tuple[Ints, Ints]:
        """Return text and pattern indices, each pair once."""
        rows, found, _, _ = self.occurrences(texts)
        if not len(rows):
            return rows, found
        width = int(found.max()) + 1
        unique = np.unique(rows * width + found)
        return unique // width, unique % width

    def occurrences(self, texts: Iterable[str]) -> tuple[Ints, Ints, Ints, Ints]:
        """Return text and pattern indices, start and end in the folded text, of all matches."""
        parts = []
        offset = 0
        for block in _blocks(texts):
            rows, found, starts, ends = self._scan(block)
            parts.append((rows + offset, found, starts, ends))
            offset += len(block)
        if not parts:
            parts = [(np.empty(0, dtype=np.int64),) * 4]
        rows, found, starts, ends = (np.concatenate(part) for part in zip(*parts, strict=True))
        return rows, found, starts, ends

    def _scan(self, block: list[str]) -> tuple[Ints, Ints, Ints, Ints]:
        joined = _SEAM.join(block)
        if joined.isascii():
            folded, sizes = joined.lower(), [len(text) for text in block]
        else:
            parts = [fold(text) for text in block]
            folded, sizes = _SEAM.join(parts), [len(text) for text in parts]
        hits = self._automaton.find_matches_as_indexes(folded, overlapping=True)
        found, starts, ends = np.asarray(hits, dtype=np.int64).reshape(-1, 3).T
        codes = np.frombuffer((_SEAM + folded + _SEAM).encode("utf-32-le"), dtype=np.uint32)
        word = _word_table()[codes]
        # word[p] is about the character before position p of the folded block.
        whole = ~word[starts] & ~word[ends + 1]
        found, starts, ends = found[whole], starts[whole], ends[whole]
        first = np.concatenate(([0], np.cumsum(np.asarray(sizes, dtype=np.int64) + 1)[:-1]))
        rows = np.searchsorted(first, starts, side="right") - 1
        return rows, found, starts - first[rows], ends - first[rows]


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
