"""Llama Guard behind any server that speaks the OpenAI chat protocol."""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from ombud.data.decisions import Outcome
from ombud.registry import moderator
from ombud.systems.moderators.answers import Answer, is_refusal, unparseable
from ombud.systems.moderators.service import Service, digest


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
class LlamaGuard(Service):
    """Llama Guard on vLLM, Ollama, llama.cpp or any OpenAI-compatible chat server.

    The first line of the answer must be ``safe`` or ``unsafe``; after ``unsafe`` the next line
    names the categories. A text's category scores are 1 for the categories named; there is no
    overall score. Anything else is *unparseable*, or *refused* when the server or the model
    declined.

    Parameters
    ----------
    model
        As the server names it.
    prompt
        What is sent; ``{text}`` stands for the text. The server's chat template puts Llama Guard's
        own categories around it. A prompt with other categories goes here whole; ``published`` is
        that of the speech-suppression paper, with the six categories O1 to O6 of the first Llama
        Guard (send it to a server that adds none of its own).
    categories
        Which count, such as ``["S1", "S10"]``; None for all.
    max_tokens, temperature
        Of the answer.
    """

    base_url: str = "http://127.0.0.1:8000/v1"
    max_bytes: int = 400_000
    model: str = "meta-llama/Llama-Guard-3-8B"
    prompt: str = "{text}"
    categories: list[str] | None = None
    max_tokens: int = 50
    temperature: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.prompt == "published":
            self.prompt = published_prompt()

    @property
    def url(self) -> str:
        """Where questions are posted."""
        return f"{self.base_url}/chat/completions"

    @property
    def configuration(self) -> str:
        """Model, prompt and temperature."""
        return f"{self.model}#{digest(self.prompt, self.max_tokens, self.temperature)}"

    @property
    def prompt_characters(self) -> int:
        """What the prompt adds to each text."""
        return len(self.prompt)

    def question(self, text: str) -> Any:
        """Return the JSON of a question about one text."""
        content = self.prompt.replace("{text}", text)
        return {
            "model": self.model,
            "messages": [{"role": "user", "content": content}],
            "max_tokens": self.max_tokens,
            "temperature": self.temperature,
        }

    def read(self, reply: Any) -> Answer:
        """Return what the JSON of a good reply means."""
        model = str(reply.get("model") or "")
        choice = reply["choices"][0]
        message = choice["message"]
        if choice.get("finish_reason") == "content_filter" or message.get("refusal"):
            return Answer(Outcome.REFUSED, version=model, reason="the server refused")
        text = message["content"].strip()
        first, _, rest = text.partition("\n")
        verdict = first.strip().strip(".").lower()
        if verdict == "safe" and not rest.strip():
            return Answer(Outcome.ALLOWED, version=model)
        if verdict == "unsafe":
            named = CATEGORY.findall(rest.upper())
            counts = self.categories is None or bool(set(named) & set(self.categories))
            return Answer(Outcome(counts), categories=dict.fromkeys(named, 1.0), version=model)
        if is_refusal(text):
            return Answer(Outcome.REFUSED, version=model, reason="the model declined to answer")
        return unparseable("the first line is neither 'safe' nor 'unsafe'", model)
