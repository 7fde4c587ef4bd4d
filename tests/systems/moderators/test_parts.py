"""Prices, paces, words of errors, hosts, and texts that UTF-8 cannot hold."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ombud.errors import PlanError
from ombud.http.keys import host_matches
from ombud.http.pace import RateLimit
from ombud.http.store import hash_of
from ombud.systems.moderators import Price
from ombud.systems.moderators.answers import is_refusal, without_surrogates
from ombud.systems.moderators.service import said


def test_prices() -> None:
    assert Price(None).of([10], 0) is None
    assert Price(2.0).of([3, 3, 4], 0) == 6
    assert Price(2.0, "1k-characters").of([300] * 5, 100) == 4
    assert Price(3.0, "1m-tokens").of([4_000_000], 0) == 3


def test_prices_of_services_that_round_up_and_of_answers() -> None:
    """By hand: 1,000 posts of 60 characters are 1,000 started thousands, at 0.38 USD a thousand."""
    posts = [60] * 1000
    assert Price(0.00038, "started-1k-characters").of(posts, 0) == pytest.approx(0.38)
    assert Price(0.00038, "1k-characters").of(posts, 0) == pytest.approx(0.0228)
    assert Price(1.0, "started-1k-characters").of([1000, 1001, 1], 0) == 4
    assert Price(1.0, "started-100-characters").of([100, 101, 0], 0) == 4
    assert Price(1.0, "started-1k-characters").of([999], 2) == 2
    # A million tokens of questions, at three characters a token, and ten tokens of each answer.
    claude = Price(0.10, "1m-tokens", output=0.50, characters_per_token=3.0)
    assert claude.of([3_000_000], 0, 10) == pytest.approx(0.10 + 0.50 * 10 / 1e6)
    for settings in ({"characters_per_token": 0.0}, {"output": 1.0}):
        with pytest.raises(PlanError, match="price"):
            Price(1.0, "text", **settings)


@given(st.lists(st.integers(1, 5000), max_size=20), st.integers(0, 50))
def test_rounding_up_is_never_cheaper_and_at_most_a_unit_a_text_dearer(
    lengths: list[int], overhead: int
) -> None:
    exact = Price(1.0, "1k-characters").of(lengths, overhead)
    billed = Price(1.0, "started-1k-characters").of(lengths, overhead)
    assert exact is not None and billed is not None
    assert exact - 1e-9 <= billed <= exact + len(lengths)


def test_the_pace_counts_tokens() -> None:
    """By hand: 600 tokens a minute are a tenth of a second each, beyond the slot of the request."""
    now = [0.0]
    limit = RateLimit(2.0, None, lambda: now[0], 600.0)
    assert limit.wait() == 0
    limit.spend(20)
    assert limit.wait() == pytest.approx(2.0)
    limit.spend(1)  # less than the half second between requests
    assert limit.wait() == pytest.approx(2.5)
    free = RateLimit(None, None, lambda: now[0])
    free.wait()
    free.spend(1e9)
    assert free.wait() == 0


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        ({"error": {"message": "no"}}, "no"),
        ({"Message": "Signature expired"}, "Signature expired"),
        ({"message": "slow"}, "slow"),
        ({"error": "plain"}, "plain"),
        (
            {"detail": [{"loc": ["body", "input"], "msg": "Field required", "type": "missing"}]},
            "body.input: Field required",
        ),
        ({"errors": [{"title": "one"}, {"message": "two"}]}, "one; two"),
        ({"error": {"code": "server_error"}}, "server_error"),
        ({"odd": 1}, ""),
        ([], ""),
        (None, ""),
    ],
)
def test_the_words_of_an_error_are_found_in_any_form(reply: object, words: str) -> None:
    """Fault 10."""
    assert said(reply) == words


def test_a_refusal_is_recognized_in_several_languages() -> None:
    """Fault 18."""
    for text in (
        "I can't help with that.",
        "Es tut mir leid, das geht nicht.",
        "Lo siento, pero no.",
        "Je ne peux pas répondre.",
        "对不起，我不能回答。",
        "Извините, но нет.",
    ):
        assert is_refusal(text), text
    for text in ("ALLOW", "Sorrow is allowed here", "no", "Ikke", "The text says sorry"):
        assert not is_refusal(text), text


def test_a_host_pattern_stands_for_whole_labels_only() -> None:
    azure, aws = "*.cognitiveservices.azure.com", "bedrock-runtime.*.amazonaws.com"
    assert host_matches("a.cognitiveservices.azure.com", azure)
    assert host_matches("BEDROCK-runtime.us-east-1.amazonaws.com", aws)
    for host, pattern in (
        ("cognitiveservices.azure.com", azure),
        (".cognitiveservices.azure.com", azure),
        ("a.b.cognitiveservices.azure.com", azure),
        ("acognitiveservices.azure.com", azure),
        ("bedrock-runtime.x.amazonaws.com.evil.example", aws),
        ("evil.example", ""),
        ("", ""),
    ):
        assert not host_matches(host, pattern), (host, pattern)


@given(st.text(st.characters()))
def test_any_text_can_be_hashed_once_cleaned(text: str) -> None:
    clean = without_surrogates(text)
    assert len(hash_of(clean)) == 16
    assert clean == without_surrogates(clean)
    if not any(0xD800 <= ord(c) <= 0xDFFF for c in text):
        assert clean == text
