"""The matcher against one ``re`` pattern per term, on texts made to break them."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ombud.errors import DataError
from ombud.text import TermMatcher, fold
from ombud.text.matching import Automaton

PIECES = st.sampled_from(
    ["a", "A", "b", "ab", "ba", "s", "ß", "ẞ", "ſ", "ss", "İ", "ı", "é", "e\u0301", "e", "\u0301"]
    + [" ", " ", "  ", "-", "'", ".", "_", "+", "#", "\t", "\n", "1", "٣", "\u200d", "\u00ad"]
    + ["שלום", "של", "אב", "مرحبا", "\u200f", "한", "ㅎ", "\u1112\u1161\u11ab", "中", "中文"]
    + ["👩\u200d🚀", "👩", "ﬁ", "fi", "Σ", "ς", "\ufffd", "𝒜", "\u0345", "ᾳ"]
)
# Few characters, so that near misses at word boundaries are common.
TERM = st.one_of(
    st.lists(PIECES, min_size=1, max_size=4).map("".join), st.text("aab -+", min_size=1, max_size=5)
).filter(lambda term: term.strip())
TEXT = st.one_of(
    st.text("aab -+", max_size=16),
    st.lists(PIECES, max_size=14).map("".join),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=10),
    st.just("a\0b"),
)


def by_re(terms: list[str], texts: list[str]) -> set[tuple[int, int]]:
    return {
        (row, column)
        for row, text in enumerate(texts)
        for column, term in enumerate(terms)
        if re.search(rf"(?<!\w){re.escape(fold(term))}(?!\w)", fold(text))
    }


def occurrences_by_re(terms: list[str], texts: list[str]) -> set[tuple[int, int, int, int]]:
    return {
        (row, column, hit.start(1), hit.end(1))
        for row, text in enumerate(texts)
        for column, term in enumerate(terms)
        for hit in re.finditer(rf"(?<!\w)(?=({re.escape(fold(term))})(?!\w))", fold(text))
    }


@given(terms=st.lists(TERM, min_size=1, max_size=6), texts=st.lists(TEXT, max_size=6))
def test_same_pairs_as_re(terms: list[str], texts: list[str]) -> None:
    found = TermMatcher(terms).match(texts)
    pairs = list(zip(found.text_index.tolist(), found.term_index.tolist(), strict=True))
    assert pairs == sorted(by_re(terms, texts))


@given(terms=st.lists(TERM, min_size=1, max_size=5), texts=st.lists(TEXT, max_size=5))
def test_same_occurrences_as_re(terms: list[str], texts: list[str]) -> None:
    folded = list(dict.fromkeys(fold(term) for term in terms))
    columns = [column.tolist() for column in Automaton(folded).occurrences(texts)]
    assert set(zip(*columns, strict=True)) == occurrences_by_re(folded, texts)
    assert columns[0] == sorted(columns[0])


@given(terms=st.lists(TERM, min_size=1, max_size=5), texts=st.lists(TEXT, max_size=5))
def test_spans_are_of_the_original_text(terms: list[str], texts: list[str]) -> None:
    found = TermMatcher(terms).match(texts, spans=True)
    assert found.start is not None and found.end is not None
    for row, column, start, end in zip(
        found.text_index, found.term_index, found.start, found.end, strict=True
    ):
        assert 0 <= start < end <= len(texts[row])
        assert fold(terms[column]) in fold(texts[row][start:end])
    pairs = set(zip(found.text_index.tolist(), found.term_index.tolist(), strict=True))
    assert pairs == by_re(terms, texts)


def test_a_hand_worked_example() -> None:
    terms = ["new york", "york", "York-born", "straße", "c++", "👩"]
    texts = ["New York-born!", "STRASSE; c++", "xYork York", "", "👩👩 c+++"]
    matcher = TermMatcher(terms)
    assert matcher.contains(texts).toarray().astype(int).tolist() == [
        [1, 1, 1, 0, 0, 0],
        [0, 0, 0, 1, 1, 0],
        [0, 1, 0, 0, 0, 0],
        [0, 0, 0, 0, 0, 0],
        [0, 0, 0, 0, 1, 1],
    ]
    found = matcher.match(["eine Straße, York york"], spans=True)
    assert found.start is not None and found.end is not None
    assert found.start.tolist() == [5, 13, 18]
    assert found.end.tolist() == [11, 17, 22]
    assert found.term_index.tolist() == [3, 1, 1]


@pytest.mark.parametrize(
    ("term", "text", "there"),
    [
        ("b aaa", "b aaa", True),
        ("b aaa", "xb aaa", False),
        ("aaa b", "aaa bx", False),
        ("aaa b", "aaa b_", False),
        ("+aaa", "x+aaa", False),
        ("+aaa", "x +aaa", True),
        ("aaa+", "aaa+x", False),
        ("+", "a+ b", False),
        ("+", "a +b", False),
        ("+", "a + b", True),
        ("+", "++", True),
        ("aaa", "aaa\u0301", False),
        ("bbb", "bbb\u0301", True),
    ],
)
def test_edges_of_words(term: str, text: str, there: bool) -> None:
    assert TermMatcher([term]).contains([text]).toarray().tolist() == [[there]]
    assert bool(by_re([term], [text])) == there


def test_self_overlap_and_equal_spellings() -> None:
    found = TermMatcher(["a a", "A A"]).match(["a a a"], spans=True)
    assert found.start is not None
    assert found.start.tolist() == [0, 0, 2, 2]
    assert found.term_index.tolist() == [0, 1, 0, 1]


def test_suffixes() -> None:
    matcher = TermMatcher(["church", "churches", "son"], suffixes=("", "s", "es"))
    assert matcher.n_patterns == 8
    found = matcher.contains(["Churches", "sons", "sonata", "churchess"]).toarray()
    assert found.astype(int).tolist() == [[1, 1, 0], [0, 0, 1], [0, 0, 0], [0, 1, 0]]


def test_many_texts_cross_blocks_and_a_huge_text(rng: np.random.Generator) -> None:
    words = np.array(["aa", "bb", "aa-bb", "ée", "cc", "\0"], dtype=object)
    texts = [" ".join(words[rng.integers(0, 6, 3)]) for _ in range(9_001)]
    texts[5_000] = "aa bb " * 400_000
    texts[5_001] = ""
    terms = ["AA", "aa bb", "bb-aa", "É", "ÉE"]
    found = TermMatcher(terms).match(texts)
    expected = by_re(terms, texts)
    assert set(zip(found.text_index.tolist(), found.term_index.tolist(), strict=True)) == expected
    assert found.shape == (9_001, 5)


@pytest.mark.parametrize(
    "wrap", [list, tuple, np.array, pd.Series, pl.Series, pa.array, lambda texts: iter(texts)]
)
def test_any_kind_of_sequence(wrap: type) -> None:
    found = TermMatcher(["b"]).contains(wrap(["a", "b c"]))
    assert found.toarray().tolist() == [[False], [True]]


def test_no_texts() -> None:
    matcher = TermMatcher(["a"])
    assert matcher.contains([]).shape == (0, 1)
    assert len(matcher.match([], spans=True)) == 0


def test_lone_surrogates_do_not_stop_a_run() -> None:
    found = TermMatcher(["x"]).contains(["\ud800x\udfff", "y"])
    assert found.toarray().tolist() == [[True], [False]]


def test_bad_input_says_what_and_where() -> None:
    with pytest.raises(DataError, match="found a single text"):
        TermMatcher(["a"]).match("abc")
    with pytest.raises(DataError, match=r"2 rows are not text \(NoneType, float\), first at 1, 2"):
        TermMatcher(["a"]).match(["a", None, 1.5])
    with pytest.raises(DataError) as caught:
        TermMatcher(["a", " ", "b\0"])
    assert len(caught.value.faults) == 2
    with pytest.raises(DataError, match="no terms"):
        TermMatcher([])
    with pytest.raises(DataError, match="no suffixes"):
        TermMatcher(["a"], suffixes=())


def test_no_term_in_the_representation() -> None:
    matcher = TermMatcher(["secret"])
    assert "secret" not in repr(matcher) + repr(matcher.match(["secret"]))
