"""Masking hides terms and nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ombud.text import TermMatcher, mask


def test_first_letter_and_asterisks() -> None:
    assert mask("some darn thing", [(5, 9)]) == "some d*** thing"
    assert mask("no spans", []) == "no spans"
    assert mask("two words", [(0, 9)]) == "t** *****"


def test_overlapping_terms_show_one_letter_only() -> None:
    assert mask("abcdef", [(2, 4), (0, 6), (3, 5)]) == "a*****"
    assert mask("abcdef", [(0, 4), (3, 6)]) == "a*****"
    assert mask("abcdef", [(0, 3), (3, 6)]) == "a**d**"


def test_with_a_matcher_on_folded_text() -> None:
    text = "Die STRASSE und die Straße"
    found = TermMatcher(["straße"]).match([text], spans=True)
    assert found.start is not None and found.end is not None
    spans = zip(found.start, found.end, strict=True)
    assert mask(text, spans) == "Die S****** und die S*****"


@pytest.mark.parametrize("span", [(-1, 2), (2, 2), (3, 2), (0, 9)])
def test_a_span_outside_the_text(span: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="not inside a text of 4 characters"):
        mask("text", [span])


@given(st.text(min_size=1, max_size=30), st.data())
def test_length_and_the_rest_stay(text: str, data: st.DataObject) -> None:
    cut = st.tuples(st.integers(0, len(text)), st.integers(0, len(text)))
    spans = data.draw(st.lists(cut.map(sorted).filter(lambda cut: cut[0] < cut[1]).map(tuple)))
    masked = mask(text, spans)
    assert len(masked) == len(text)
    starts = {start for start, _ in spans}
    for position, (old, new) in enumerate(zip(text, masked, strict=True)):
        inside = any(start <= position < end for start, end in spans)
        if not inside or old.isspace():
            assert new == old
        elif position not in starts:
            assert new == "*"
