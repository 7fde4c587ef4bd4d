"""Llama Guard behind any server that speaks the OpenAI chat protocol."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, ClassVar

from ombud.data.decisions import Outcome
from ombud.registry import moderator
from ombud.systems.moderators.answers import Answer
from ombud.systems.moderators.service import ChatService


def published_prompt() -> str:
    """Return the prompt of the speech-suppression paper, with ``{text}`` for the text.

    Examples
    --------
    >>> published_prompt().splitlines()[-1]
    '- If unsafe, a second line must include a comma-separated list of violated categories.'
    """
    file = files("ombud.systems.moderators") / "files" / "llama-guard-published.txt"
    return file.read_text(encoding="utf-8").strip()


CATEGORY = re.compile(r"[SO]\d{1,2}")


@moderator("llama-guard")
@dataclass(kw_only=True)
class LlamaGuard(ChatService):
    """Llama Guard on vLLM, Ollama, llama.cpp or any OpenAI-compatible chat server.

    The first line of the answer must be ``safe`` or ``unsafe``; after ``unsafe`` the next line
    names the categories. A text's category scores are 1 for the categories named; there is no
    overall score. Anything else is *unparseable*, or *refused* when the server or the model
    declined.

    Parameters
    ----------
    prompt
        What is sent; ``{text}`` stands for the text, and nothing else is replaced. The server's
        chat template puts Llama Guard's own categories around it. A prompt with other categories
        goes here whole; ``published`` is that of the speech-suppression paper, with the six
        categories O1 to O6 of the first Llama Guard (send it to a server that adds none of its
        own).
    categories
        Which count, such as ``["S1", "S10"]``; None for all.
    """

    expected: ClassVar[str] = "the first line is neither 'safe' nor 'unsafe'"

    base_url: str = "http://127.0.0.1:8000/v1"
    model: str = "meta-llama/Llama-Guard-3-8B"
    categories: list[str] | None = None

    def __post_init__(self) -> None:
        if self.prompt == "published":
            self.prompt = published_prompt()
        super().__post_init__()

    def as_published(self) -> Mapping[str, Any]:
        """Return Llama Guard 2 with the prompt of the paper."""
        return {"model": "meta-llama/Meta-Llama-Guard-2-8B", "prompt": published_prompt()}

    @property
    def url(self) -> str:
        """Where questions are posted."""
        return f"{self.base_url}/chat/completions"

    def reply_text(self, reply: Any) -> tuple[str, str, str]:
        """Return what a reply says, the model that says it, and why it refuses, if it does."""
        model = str(reply.get("model") or "")
        choice = reply["choices"][0]
        message = choice["message"]
        if choice.get("finish_reason") == "content_filter" or message.get("refusal"):
            return "", model, "the server refused"
        text = (message.get("content") or "").strip()
        if choice.get("finish_reason") == "length" and "\n" not in text:
            text += " (cut off)"  # a bare "unsafe" may have been followed by its categories
        return text, model, ""

    def read_text(self, text: str) -> Answer | None:
        """Return safe or unsafe of the first line, with the categories of the next."""
        first, _, rest = text.partition("\n")
        verdict = first.strip().strip(".").lower()
        if verdict == "safe" and not rest.strip():
            return Answer(Outcome.ALLOWED)
        if verdict == "unsafe":
            named = CATEGORY.findall(rest.upper())
            if self.categories is not None and not named:
                return None  # which categories it violates is cut off, or in other words
            counts = self.categories is None or bool(set(named) & set(self.categories))
            return Answer(Outcome(counts), categories=dict.fromkeys(named, 1.0))
        return None
