"""Folding: equal where texts differ only in case or accents' encoding; offsets lead back."""

from __future__ import annotations

import unicodedata

from hypothesis import example, given
from hypothesis import strategies as st

from ombud.text.folding import fold, fold_offsets

NASTY = st.text(
    st.one_of(
        st.sampled_from(
            "aAsSßẞſKkÅåİıΣσς ﬁŉǰΐᾳᾼ\u0345\u0301\u0308\u0307\u0327\u05d0\u0627\u200d\u200f_-'\0"
            "\u1100\u1161\u11a8\uac00\u09c7\u09be\u0f71\u0f73\u0cc6\u0cc2👩🏽\ud800"
        ),
        st.characters(),
    ),
    max_size=12,
)


@given(NASTY)
@example("\u1fb3\u0301")
@example("a\u0345\u0301")
def test_fold_is_the_definition(text: str) -> None:
    clean = "".join("\ufffd" if "\ud800" <= char <= "\udfff" else char for char in text)
    decomposed = unicodedata.normalize("NFD", clean)
    assert fold(text) == unicodedata.normalize("NFC", decomposed.casefold())


def test_fold_is_the_definition_for_every_character() -> None:
    for code in (*range(0xD800), *range(0xE000, 0x110000)):
        char = chr(code)
        decomposed = unicodedata.normalize("NFD", char)
        assert fold(char) == unicodedata.normalize("NFC", decomposed.casefold())


@given(NASTY)
def test_encodings_of_accents_are_alike(text: str) -> None:
    assert fold(unicodedata.normalize("NFD", text)) == fold(unicodedata.normalize("NFC", text))


def test_known_foldings() -> None:
    assert fold("MASSE") == fold("Maße") == fold("ma\u017f\u017fe") == "masse"
    assert fold("ΟΔΟΣ") == fold("οδος")
    assert fold("\ud800x") == "\ufffdx"


@given(NASTY)
def test_offsets_lead_back(text: str) -> None:
    folded = fold(text)
    first, end = fold_offsets(text)
    assert len(first) == len(end) == len(folded)
    pieces = sorted(set(zip(first.tolist(), end.tolist(), strict=True)))
    # Pieces fold on their own to the same characters, in order, and cover the text.
    assert "".join(fold(text[a:b]) for a, b in pieces) == folded
    assert [a for a, _ in pieces] == [0, *(b for _, b in pieces)][: len(pieces)]
    assert (pieces[-1][1] if pieces else 0) == len(text)
