"""Exact whole-word matching of thousands of terms in many texts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import islice
from typing import Any

import ahocorasick_rs
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ombud.errors import DataError
from ombud.text.folding import fold, fold_offsets

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

    Patterns are folded, distinct, not empty, without NUL.
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


def as_texts(texts: Any, source: str = "texts") -> Sequence[str]:
    """Return texts as a sequence of strings, or say which rows are none.

    `texts` are a list, an array, or a series of any data frame library; `source` is what an error
    calls them.
    """
    if isinstance(texts, str | bytes):
        raise DataError(source, ["found a single text; expected a list or series of texts"])
    if hasattr(texts, "to_list"):
        texts = texts.to_list()
    elif hasattr(texts, "tolist"):
        texts = texts.tolist()
    elif hasattr(texts, "to_pylist"):
        texts = texts.to_pylist()
    rows: Sequence[Any] = texts if isinstance(texts, list | tuple) else list(texts)
    bad = [row for row, text in enumerate(rows) if not isinstance(text, str)]
    if bad:
        shown = ", ".join(str(row) for row in bad[:10])
        kinds = ", ".join(sorted({type(rows[row]).__name__ for row in bad}))
        raise DataError(
            source,
            [f"{len(bad)} rows are not text ({kinds}), first at {shown}: drop or fill them first"],
        )
    return rows


@dataclass(frozen=True, slots=True)
class Matches:
    """Which terms occur in which texts."""

    # One entry per match, sorted by text, then start, then term.
    text_index: Ints = field(repr=False)
    term_index: Ints = field(repr=False)
    shape: tuple[int, int]  # number of texts and of terms
    # Where, in the *original* text; None if not asked for (then every pair stands once).
    start: Ints | None = field(default=None, repr=False)
    end: Ints | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.text_index)

    def to_sparse(self) -> sparse.csr_array[Any]:
        """Return a Boolean matrix, texts x terms."""
        seen = np.ones(len(self), dtype=np.int64)
        counts = sparse.csr_array((seen, (self.text_index, self.term_index)), shape=self.shape)
        counts.sum_duplicates()
        return counts.astype(np.bool_)


class TermMatcher:
    r"""Finds all of many terms in texts, as whole words, in one pass.

    A term matches where ``(?<!\w)term(?!\w)`` does, after `ombud.text.fold` of both: upper and
    lower case, and composed and decomposed accents, are alike. Terms may have several words and
    punctuation. Overlapping terms are all reported. As in ``re``, a combining mark without a
    composed form ends a word; a hyphen or a second space in the text is not the term's space.

    Parameters
    ----------
    terms
        The terms. Spellings that fold to the same are each reported.
    suffixes
        Endings that a term may have; ``("", "s", "es")`` also finds plurals.

    Examples
    --------
    >>> matcher = TermMatcher(["new york", "York", "c++"])
    >>> matcher.contains(["In New York, C++!", "a yorkshire"]).toarray().tolist()
    [[True, True, True], [False, False, False]]
    """

    def __init__(self, terms: Sequence[str], *, suffixes: Sequence[str] = ("",)) -> None:
        terms = as_texts(terms, "terms")
        blank = [index for index, term in enumerate(terms) if not term.strip() or "\0" in term]
        faults = [f"term {index} is empty or holds a NUL character" for index in blank]
        if not terms:
            faults.append("found no terms; expected at least one")
        if not suffixes:
            faults.append("found no suffixes; use ('',) for the terms as they are")
        if faults:
            raise DataError("terms", faults)
        self.n_terms = len(terms)
        owners: dict[str, set[int]] = {}
        for index, term in enumerate(terms):
            for suffix in suffixes:
                owners.setdefault(fold(term + suffix), set()).add(index)
        self.n_patterns = len(owners)
        # Pattern p belongs to the terms owner[first[p]:first[p + 1]].
        sizes = [len(indices) for indices in owners.values()]
        self._first = np.concatenate(([0], np.cumsum(sizes, dtype=np.int64)))
        self._owner = np.asarray(
            [index for indices in owners.values() for index in sorted(indices)], dtype=np.int64
        )
        self._automaton = Automaton(list(owners))

    def __repr__(self) -> str:
        return f"TermMatcher({self.n_terms} terms, {self.n_patterns} patterns)"

    def _spread(self, patterns: Ints) -> tuple[Ints, Ints]:
        """Return, for matched patterns, which match and which term: one row per owner."""
        counts = (self._first[1:] - self._first[:-1])[patterns]
        match = np.repeat(np.arange(len(patterns), dtype=np.int64), counts)
        within = np.arange(len(match), dtype=np.int64) - np.repeat(
            np.cumsum(counts) - counts, counts
        )
        return match, self._owner[self._first[patterns][match] + within]

    def match(self, texts: Iterable[str], *, spans: bool = False) -> Matches:
        """Return all matches.

        Parameters
        ----------
        texts
            A list, an array, or a series of any data frame library.
        spans
            Also say where. Every occurrence is then reported, otherwise every pair once.
        """
        rows = as_texts(texts)
        shape = (len(rows), self.n_terms)
        if not spans:
            text, pattern = self._automaton.pairs(rows)
            at, term = self._spread(pattern)
            unique = np.unique(text[at] * self.n_terms + term)
            return Matches(unique // self.n_terms, unique % self.n_terms, shape)
        text, pattern, start, end = self._automaton.occurrences(rows)
        # The automaton goes through the texts in order, so a text's matches lie together.
        matched, begins = np.unique(text, return_index=True)
        edges = np.append(begins, len(text))
        for row, a, b in zip(matched, edges[:-1], edges[1:], strict=True):
            if not rows[row].isascii():
                first, last = fold_offsets(rows[row])
                start[a:b], end[a:b] = first[start[a:b]], last[end[a:b] - 1]
        at, term = self._spread(pattern)
        result = np.unique(np.column_stack((text[at], start[at], end[at], term)), axis=0)
        return Matches(result[:, 0], result[:, 3], shape, result[:, 1], result[:, 2])

    def contains(self, texts: Iterable[str]) -> sparse.csr_array[Any]:
        """Return a Boolean matrix, texts x terms: which text contains which term."""
        return self.match(texts).to_sparse()
