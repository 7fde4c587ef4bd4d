"""Anthropic's Messages API, asked to allow or block."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ombud.data.decisions import Outcome
from ombud.registry import moderator
from ombud.systems.moderators.answers import Answer
from ombud.systems.moderators.service import ChatService

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
    ``refusal``, or that begins as refusals begin, is *refused*; any other is *unparseable*.

    Parameters
    ----------
    api_version
        The ``anthropic-version`` header.
    """

    own_host: ClassVar[str] = "api.anthropic.com"
    expected: ClassVar[str] = "the answer is neither ALLOW nor BLOCK"

    base_url: str = "https://api.anthropic.com"
    key_env: str = "ANTHROPIC_API_KEY"
    model: str = "claude-3-haiku-20240307"
    prompt: str = PUBLISHED_PROMPT
    max_tokens: int = 10
    api_version: str = "2023-06-01"

    def as_published(self) -> Mapping[str, Any]:
        """Return the model and the prompt of the paper."""
        return {"model": "claude-3-haiku-20240307", "prompt": PUBLISHED_PROMPT}

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
        refusal = "the model refused" if reply.get("stop_reason") == "refusal" else ""
        blocks = () if refusal else reply["content"]
        text = "".join(block["text"] for block in blocks if block["type"] == "text")
        return text, str(reply["model"]), refusal

    def read_text(self, text: str) -> Answer | None:
        """Return ALLOW or BLOCK, in any case, with quotes or a full stop."""
        word = text.strip().strip("\"'`*.").upper()
        return Answer(Outcome(word == "BLOCK")) if word in {"ALLOW", "BLOCK"} else None
