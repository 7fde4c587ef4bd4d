"""Anthropic's Messages API, asked to allow or block."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from ombud.data.decisions import Outcome
from ombud.registry import moderator
from ombud.systems.moderators.answers import Answer, rejected, unparseable
from ombud.systems.moderators.service import ChatService, digest

PUBLISHED_PROMPT = """
You are a content moderation expert tasked with categorizing user-generated text
based on the following guidelines:
BLOCK CATEGORY:
- Promoting violence, illegal activities, or hate speech
- Explicit sexual content
- Harmful misinformation or conspiracy theories
ALLOW CATEGORY:
- Most other content is allowed, as long as it is not explicitly disallowed

Here is the user-generated text to categorize:
<user_text>{text}</user_text>
Based on the guidelines above, classify this text as either ALLOW or BLOCK.
Return nothing else.
"""
"""The prompt of the published audit."""


@moderator("anthropic")
@dataclass(kw_only=True)
class AnthropicMessages(ChatService):
    """A general model of Anthropic, prompted to answer ALLOW or BLOCK.

    Only the one word counts (in any case, with quotes or a full stop). A reply that stops with
    ``refusal``, or that begins as refusals begin, is *refused*, with the category that the service
    names; one that stops at `max_tokens` is *unparseable* because it is cut off; so is any other.

    The plan names the model: at this release ``claude-haiku-5-5`` and, as a legacy model,
    ``claude-haiku-4-5-20251001``. Models since Opus 4.7 refuse a temperature and think before they
    answer, which takes room in `max_tokens`. There is no score: `repeats` shows how sure it is.

    Parameters
    ----------
    effort
        ``output_config.effort``, such as ``low``; empty to send none.
    thinking
        What is sent as ``thinking``, such as ``{type = "disabled"}``; empty to send nothing.
    api_version
        The ``anthropic-version`` header.
    """

    own_host: ClassVar[str] = "api.anthropic.com"
    expected: ClassVar[str] = "the answer is neither ALLOW nor BLOCK"
    current_models: ClassVar[tuple[str, ...]] = ("claude-haiku-5-5", "claude-haiku-4-5-20251001")
    retired_models: ClassVar[Mapping[str, str]] = {
        "claude-3-haiku-20240307": "2026-04-20",
        "claude-3-5-haiku-20241022": "2026-02-19",
        "claude-3-7-sonnet-20250219": "2026-02-19",
        "claude-opus-4-20250514": "2026-06-15",
        "claude-sonnet-4-20250514": "2026-06-15",
    }
    # The limits of a new account.
    pace: ClassVar[Mapping[str, float]] = {"per_minute": 50.0, "tokens_per_minute": 50_000.0}

    base_url: str = "https://api.anthropic.com"
    key_env: str = "ANTHROPIC_API_KEY"
    prompt: str = PUBLISHED_PROMPT
    max_tokens: int = 2048
    temperature: float | None = None
    effort: str = ""
    thinking: dict[str, Any] = field(default_factory=dict)
    api_version: str = "2023-06-01"

    def __post_init__(self) -> None:
        super().__post_init__()
        old = "claude-3-haiku-20240307, the default of earlier versions, was retired on 2026-04-20"
        self.need_model(self.model, f" ({old})")

    @property
    def configuration(self) -> str:
        """Model, and everything that is sent with a text."""
        more = (self.effort, self.thinking) if self.effort or self.thinking else ()
        return f"{self.model}#{digest(self.prompt, self.max_tokens, self.temperature, *more)}"

    def question(self, text: str) -> Any:
        """Return the JSON of a question about one text."""
        question = super().question(text)
        if self.effort:
            question["output_config"] = {"effort": self.effort}
        if self.thinking:
            question["thinking"] = self.thinking
        return question

    def read(self, reply: Any) -> Answer:
        """Return what the JSON of a good reply means."""
        stop, model = reply.get("stop_reason"), str(reply.get("model") or "")
        if stop == "model_context_window_exceeded":
            return rejected("the text is too long for the model's context", model)
        if stop == "pause_turn":
            return unparseable("the model paused before it answered (pause_turn)", model)
        answer = super().read(reply)
        if stop == "max_tokens" and answer.outcome == Outcome.UNPARSEABLE:
            return unparseable(
                f"cut off at max_tokens = {self.max_tokens} before the answer", model
            )
        return answer

    def as_published(self) -> Mapping[str, Any]:
        """Return the model, the prompt and the settings of the paper."""
        return {
            "model": "claude-3-haiku-20240307",
            "prompt": PUBLISHED_PROMPT,
            "max_tokens": 10,
            "temperature": 0.0,
        }

    @property
    def url(self) -> str:
        """Where questions are posted."""
        return f"{self.base_url}/v1/messages"

    def headers(self) -> Mapping[str, str]:
        """Return the headers of every question."""
        return {"anthropic-version": self.api_version, **super().headers()}

    def key_headers(self, key: str) -> Mapping[str, str]:
        """Return the header that carries a key."""
        return {"x-api-key": key}

    def reply_text(self, reply: Any) -> tuple[str, str, str]:
        """Return what a reply says, the model that says it, and why it refuses, if it does."""
        refusal = ""
        if reply.get("stop_reason") == "refusal":
            details = reply.get("stop_details") or {}
            why = (str(details.get(name) or "") for name in ("category", "explanation"))
            refusal = ": ".join(filter(None, ("the model refused", *why)))
        blocks = () if refusal else reply["content"]
        text = "".join(block["text"] for block in blocks if block["type"] == "text")
        return text, str(reply["model"]), refusal

    def read_text(self, text: str) -> Answer | None:
        """Return ALLOW or BLOCK, in any case, with quotes or a full stop."""
        word = text.strip().strip("\"'`*.").upper()
        return Answer(Outcome(word == "BLOCK")) if word in {"ALLOW", "BLOCK"} else None
