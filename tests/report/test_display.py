"""Hidden characters are shown, and names stay distinct."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ombud.report.display import count, joined, plural, shorten, visible


@given(st.text())
def test_nothing_hidden_remains(text: str) -> None:
    shown = visible(text)
    for place, character in enumerate(shown):
        if unicodedata.category(character) in {"Cc", "Cf", "Cs", "Zl", "Zp"}:
            assert character in "\u200c\u200d"
            assert 0 < place < len(shown) - 1


@given(st.text(alphabet=st.characters(codec="ascii", categories=("L", "N", "P", "S", "Zs"))))
def test_plain_text_is_unchanged(text: str) -> None:
    assert visible(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\u202eb", "a⟨U+202E⟩b"),
        ("a\u2066b\u2069", "a⟨U+2066⟩b⟨U+2069⟩"),
        ("zero\u200bwidth", "zero⟨U+200B⟩width"),
        ("\ufeffx", "⟨U+FEFF⟩x"),
        ("\x1b[31m", "␛[31m"),
        ("\x9b31m", "⟨U+009B⟩31m"),
        ("a\0b", "a␀b"),
        ("a\r\nb", "a  b"),
        ("\ud800", "⟨U+D800⟩"),
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("a\u200db", "a⟨U+200D⟩b"),
        ("café", "café"),
    ],
)
def test_hidden_characters(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_stacks_of_marks_are_cut() -> None:
    assert len(visible("Z" + "\u0301" * 100)) == 4


@given(st.text(), st.integers(5, 50))
def test_shortened_text_keeps_the_limit(text: str, limit: int) -> None:
    assert len(shorten(text, limit)) <= limit


def test_words() -> None:
    assert count(1, "user") == "1 user"
    assert count(2_500, "query") == "2,500 queries"
    assert plural("day") == "days"
    assert joined(["a", "b", "c"]) == "a, b and c"
    assert joined([]) == ""
