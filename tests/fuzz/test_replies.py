"""Whatever a service replies, it is an answer or a reason; nothing is raised, nothing made up."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ombud.data.decisions import Outcome
from ombud.systems.moderators import (
    AnthropicMessages,
    GoogleModerateText,
    HttpModerator,
    LlamaGuard,
    OpenAIModeration,
    Perspective,
)
from ombud.systems.recommenders.adapters.http import GarbledReplyError, read_reply

FUZZ = settings.get_profile("fuzz")
GOOD: dict[str, Any] = {
    "http": {"score": 0.9, "flag": "yes", "cats": {"a": 0.1}},
    "openai": {"model": "m", "results": [{"flagged": True, "categories": {"hate": True}, "category_scores": {"hate": 0.9}}]},
    "perspective": {"attributeScores": {"TOXICITY": {"summaryScore": {"value": 0.9}}}, "languages": ["en"]},
    "google": {"moderationCategories": [{"name": "Toxic", "confidence": 0.9}]},
    "anthropic": {"model": "m", "content": [{"type": "text", "text": "BLOCK"}], "stop_reason": "end_turn"},
    "llama": {"model": "m", "choices": [{"message": {"content": "unsafe\nS1"}, "finish_reason": "stop"}]},
}  # fmt: skip
SERVICES: dict[str, Any] = {
    "http": HttpModerator(
        base_url="https://example.org", score_path="score", threshold=0.5, categories_path="cats"
    ),
    "openai": OpenAIModeration(model="omni-moderation-2024-09-26"),
    "perspective": Perspective(threshold=0.5),
    "google": GoogleModerateText(threshold=0.5),
    "anthropic": AnthropicMessages(model="claude-haiku-5-5"),
    "llama": LlamaGuard(base_url="https://example.org"),
}
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=6)
    | st.just(10**400),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=8,
)


def places(part: Any, here: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    pairs = (
        part.items()
        if isinstance(part, dict)
        else enumerate(part)
        if isinstance(part, list)
        else ()
    )
    return [here, *(place for key, value in pairs for place in places(value, (*here, key)))]


@st.composite
def bodies(draw: st.DrawFn, good: Any) -> bytes:
    """A good reply with a part replaced, cut, doubled, in another encoding; or any JSON, or noise."""
    made = json.loads(json.dumps(good))
    for _ in range(draw(st.integers(0, 2))):
        path = draw(st.sampled_from(places(made)))
        if not path:
            made = draw(JSON)
            break
        holder = made
        for step in path[:-1]:
            holder = holder[step]
        holder[path[-1]] = draw(JSON)
        if not isinstance(made, dict | list):
            break
    raw = json.dumps(made).encode(draw(st.sampled_from(["utf-8", "utf-16", "utf-8-sig", "utf-32"])))
    deed = draw(st.sampled_from(["", "", "", "cut", "double", "noise"]))
    if deed == "cut":
        raw = raw[: draw(st.integers(0, len(raw)))]
    elif deed == "double":
        raw += raw
    elif deed == "noise":
        at = draw(st.integers(0, len(raw)))
        raw = raw[:at] + draw(st.binary(max_size=6)) + raw[at:]
    return raw


@pytest.mark.parametrize("name", sorted(GOOD))
@FUZZ
@given(data=st.data(), status=st.sampled_from([200, 200, 200, 204, 301, 400, 401, 429, 500, 599]))
def test_any_reply_is_an_answer_or_a_reason(name: str, data: st.DataObject, status: int) -> None:
    answer = SERVICES[name].parse(status, data.draw(bodies(GOOD[name])))
    undecided = answer.outcome in {Outcome.ERROR, Outcome.UNPARSEABLE}
    assert bool(answer.reason) >= undecided
    assert status == 200 or undecided
    assert math.isnan(answer.score) or math.isfinite(answer.score)
    assert len(answer.reason) < 1000 and answer.reason.isprintable()
    answer.reason.encode()


@pytest.mark.parametrize("name", sorted(GOOD))
def test_the_reply_that_is_changed_is_good(name: str) -> None:
    answer = SERVICES[name].parse(200, json.dumps(GOOD[name]).encode())
    assert answer.outcome == Outcome.FLAGGED and not answer.reason


LISTS = {
    "recommendations": [
        {"user": 1, "items": [5, 6], "scores": [0.5, 0.4]},
        {"user": "b", "items": ["x"]},
    ]
}


@FUZZ
@given(raw=bodies(LISTS))
@example(raw=json.dumps(LISTS).encode())
def test_any_lists_are_read_or_refused(raw: bytes) -> None:
    try:
        answers = read_reply(raw, [1, "b"])
    except GarbledReplyError as error:
        assert str(error)
        return
    assert len(answers) == 2
