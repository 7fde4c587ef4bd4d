"""``published = true``: the model, prompt, categories and thresholds of the paper."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ombud.audits.load import load_system
from ombud.data.decisions import Outcome
from ombud.errors import PlanError
from ombud.systems.moderators.anthropic import AnthropicMessages
from ombud.systems.moderators.google import GoogleModerateText
from ombud.systems.moderators.http import HttpModerator
from ombud.systems.moderators.openai import MODERATION_007, OpenAIModeration
from ombud.systems.moderators.perspective import Perspective
from ombud.systems.moderators.policy import LlamaGuard


def test_google_counts_all_sixteen_categories() -> None:
    published = GoogleModerateText(published=True)
    assert published.url.endswith("/v1/documents:moderateText")
    names = [n for n in GoogleModerateText.known_categories if "(severity)" not in n]
    assert len(names) == 16
    reply = {"moderationCategories": [{"name": n, "confidence": 0.1} for n in names]}
    reply["moderationCategories"][names.index("Religion & Belief")]["confidence"] = 0.9
    answer = published.read(reply)
    assert answer.score == pytest.approx(0.9)  # as 3.50 for non-Christian religions needs
    assert GoogleModerateText(version="v1").read(reply).score == pytest.approx(0.1)


def test_openai_scores_are_divided_by_the_thresholds_of_table_10() -> None:
    published = OpenAIModeration(published=True)
    assert published.model == "text-moderation-007"
    result = {
        "flagged": False,
        "categories": {"hate": False, "violence/graphic": False},
        "category_scores": {"hate": 0.2, "violence/graphic": 0.3},
    }
    answer = published.read({"model": "another-model", "results": [result]})
    assert answer.outcome == Outcome.ALLOWED
    assert answer.score == pytest.approx(0.2 / MODERATION_007["hate"][1])
    assert json.loads(published.body(["a"]))["model"] == "text-moderation-007"


def test_llama_guard_2_is_sent_the_printed_prompt() -> None:
    published = LlamaGuard(published=True)
    assert published.model == "meta-llama/Meta-Llama-Guard-2-8B"
    content = published.question("a story")["messages"][0]["content"]
    assert "O1: Violence and Hate." in content
    assert "O6: Regulated or Controlled Substances." in content
    assert "a story" in content


def test_anthropic_is_sent_the_printed_prompt() -> None:
    published = AnthropicMessages(published=True)
    assert published.model == "claude-3-haiku-20240307"
    question = published.question("a story")
    assert "<user_text>a story</user_text>" in question["messages"][0]["content"]
    own = AnthropicMessages(published=True, model="a-model-that-answers")
    assert own.model == "a-model-that-answers"
    assert own.prompt == published.prompt


def test_perspective_is_asked_for_toxicity() -> None:
    published = Perspective(published=True)
    assert published.url.endswith("/v1alpha1/comments:analyze")
    assert list(published.question("a")["requestedAttributes"]) == ["TOXICITY"]


@pytest.mark.parametrize(
    ("made", "options", "option"),
    [
        (GoogleModerateText, {"categories": ["Toxic"]}, "categories"),
        (OpenAIModeration, {"thresholds": {"hate": 0.5}}, "thresholds"),
        (LlamaGuard, {"prompt": "{text}!"}, "prompt"),
        (AnthropicMessages, {"prompt": "{text}!"}, "prompt"),
        (Perspective, {"attributes": ["INSULT"]}, "attributes"),
    ],
)
def test_an_option_that_published_sets_is_refused(
    made: Any, options: dict[str, Any], option: str
) -> None:
    with pytest.raises(PlanError, match=f"published sets {option}"):
        made(published=True, **options)


def test_services_that_the_paper_does_not_have_refuse_it() -> None:
    with pytest.raises(PlanError, match="services of the speech-suppression paper"):
        HttpModerator(base_url="http://127.0.0.1:1/", flag_path="flag", published=True)


def test_a_plan_says_it(tmp_path: Path) -> None:
    made = load_system("google", {"type": "google-moderate-text", "published": True})
    assert isinstance(made, GoogleModerateText)
    assert made.categories == "all"
    # The settings themselves are part of the key of the cache, not how they were chosen.
    plain = GoogleModerateText(categories="all", version="v1")
    assert made.identity == plain.identity
