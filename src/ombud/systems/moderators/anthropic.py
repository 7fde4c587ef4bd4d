"""Anthropic's Messages API, asked to allow or block."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ombud.data.decisions import Outcome
from ombud.errors import PlanError
from ombud.registry import moderator
from ombud.systems.moderators.answers import Answer, is_refusal, unparseable
from ombud.systems.moderators.service import Service, digest

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
class AnthropicMessages(Service):
    """A general model of Anthropic, prompted to answer ALLOW or BLOCK.

    Only the one word counts (in any case, with quotes or a full stop). A reply that stops with
    ``refusal``, or that begins as refusals begin, is *refused*; any other is *unparseable*.

    Parameters
    ----------
    model
        The model to ask.
    prompt
        What is asked; ``{text}`` stands for the text, and nothing else is replaced.
    max_tokens
        Of the answer.
    temperature
        Of the answer; None to send none.
    api_version
        The ``anthropic-version`` header.
    """

    own_host: ClassVar[str] = "api.anthropic.com"

    base_url: str = "https://api.anthropic.com"
    key_env: str = "ANTHROPIC_API_KEY"
    max_bytes: int = 400_000
    model: str = "claude-3-haiku-20240307"
    prompt: str = PUBLISHED_PROMPT
    max_tokens: int = 10
    temperature: float | None = 0.0
    api_version: str = "2023-06-01"

    def __post_init__(self) -> None:
        super().__post_init__()
        if "{text}" not in self.prompt:
            raise PlanError(f"{self.name}: the prompt does not hold {{text}}")

    @property
    def url(self) -> str:
        """Where questions are posted."""
        return f"{self.base_url}/v1/messages"

    @property
    def configuration(self) -> str:
        """Model, prompt and temperature."""
        return f"{self.model}#{digest(self.prompt, self.max_tokens, self.temperature)}"

    @property
    def prompt_characters(self) -> int:
        """What the prompt adds to each text."""
        return len(self.prompt)

    def headers(self) -> Mapping[str, str]:
        """Return the headers of every question."""
        return {"anthropic-version": self.api_version, **super().headers()}

    def key_headers(self, key: str) -> Mapping[str, str]:
        """Return the header that carries a key."""
        return {"x-api-key": key}

    def question(self, text: str) -> Any:
        """Return the JSON of a question about one text."""
        content = self.prompt.replace("{text}", text)
        question: dict[str, Any] = {
            "model": self.model,
            "max_tokens": self.max_tokens,
            "messages": [{"role": "user", "content": content}],
        }
        if self.temperature is not None:
            question["temperature"] = self.temperature
        return question

    def read(self, reply: Any) -> Answer:
        """Return what the JSON of a good reply means."""
        model = str(reply["model"])
        if reply.get("stop_reason") == "refusal":
            return Answer(Outcome.REFUSED, version=model, reason="the model refused")
        blocks = [block["text"] for block in reply["content"] if block["type"] == "text"]
        text = "".join(blocks)
        word = text.strip().strip("\"'`*.").upper()
        if word in {"ALLOW", "BLOCK"}:
            return Answer(Outcome(word == "BLOCK"), version=model)
        if is_refusal(text):
            return Answer(Outcome.REFUSED, version=model, reason="the model declined to answer")
        return unparseable("the answer is neither ALLOW nor BLOCK", model)
