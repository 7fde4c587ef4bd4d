"""Prices, and texts that UTF-8 cannot hold."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ombud.http.store import hash_of
from ombud.systems.moderators import Price
from ombud.systems.moderators.answers import without_surrogates


def test_prices() -> None:
    assert Price(None).of([10], 0) is None
    assert Price(2.0).of([3, 3, 4], 0) == 6
    assert Price(2.0, "1k-characters").of([300] * 5, 100) == 4
    assert Price(3.0, "1m-tokens").of([4_000_000], 0) == 3


@given(st.text(st.characters()))
def test_any_text_can_be_hashed_once_cleaned(text: str) -> None:
    clean = without_surrogates(text)
    assert len(hash_of(clean)) == 16
    assert clean == without_surrogates(clean)
    if not any(0xD800 <= ord(c) <= 0xDFFF for c in text):
        assert clean == text
