"""Perspective (Comment Analyzer API), version v1alpha1."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar
from urllib.parse import urlsplit

from ombud.errors import PlanError
from ombud.http.keys import host_matches
from ombud.http.store import hash_of
from ombud.registry import moderator
from ombud.systems.moderators.answers import Answer
from ombud.systems.moderators.service import ScoredService, digest, number
from ombud.systems.quote import Price


@moderator("perspective")
@dataclass(kw_only=True)
class Perspective(ScoredService):
    """Perspective: the probability that readers find a comment toxic.

    The service ends with 2026 and takes no new users. Its replies stay readable: from the cache,
    and as recorded decisions (`RecordedDecisions`). Its address can be changed, but a compatible
    server has another model behind it. The key travels in a header, not in the address, where
    logs would keep it. One question a second is its default quota, and the default here.

    Parameters
    ----------
    attributes
        What to score, such as ``TOXICITY``, ``IDENTITY_ATTACK``; all that are named count.
    language
        Of the texts; empty to let the service guess, which it often does wrongly for short ones.
    version
        Of the API.
    """

    own_host: ClassVar[str] = "commentanalyzer.googleapis.com"
    former_threshold: ClassVar[float | None] = 0.7
    pace: ClassVar[Mapping[str, float]] = {"per_second": 1.0}

    base_url: str = "https://commentanalyzer.googleapis.com"
    key_env: str = "PERSPECTIVE_API_KEY"
    price: Price = field(default_factory=lambda: Price(0.0))
    max_bytes: int = 20_480
    attributes: list[str] = field(default_factory=lambda: ["TOXICITY"])
    language: str = "en"
    version: str = "v1alpha1"

    def __post_init__(self) -> None:
        super().__post_init__()
        if strange := sorted(set(self.thresholds) - set(self.attributes)):
            raise PlanError(
                f"{self.name}: thresholds names {', '.join(strange)}; attributes does not"
            )

    def as_published(self) -> Mapping[str, Any]:
        """Return the attribute and the version of the API of the paper."""
        return {"attributes": ["TOXICITY"], "version": "v1alpha1"}

    @property
    def notices(self) -> tuple[str, ...]:
        """That the service ends."""
        own = host_matches(urlsplit(self.base_url).hostname or "", self.own_host)
        return ("Perspective ends with 2026: store its replies before that",) if own else ()

    @property
    def url(self) -> str:
        """Where questions are posted."""
        return f"{self.base_url}/{self.version}/comments:analyze"

    @property
    def configuration(self) -> str:
        """Version, attributes and language."""
        return f"{self.version}#{digest(sorted(self.attributes), self.language)}"

    def key_headers(self, key: str) -> Mapping[str, str]:
        """Return the header that carries a key."""
        return {"X-Goog-Api-Key": key}

    def question(self, text: str) -> Any:
        """Return the JSON of a question about one text."""
        question: dict[str, Any] = {
            "comment": {"text": text},
            "requestedAttributes": {attribute: {} for attribute in self.attributes},
            "doNotStore": True,
            "clientToken": hash_of(text).hex(),
        }
        if self.language:
            question["languages"] = [self.language]
        return question

    @property
    def echoes(self) -> bool:
        """The service repeats the client's token."""
        return True

    def echoed(self, reply: Any, text: str) -> bool:
        """Return whether the token that the service repeats is that of the text."""
        return reply.get("clientToken") in {None, "", hash_of(text).hex()}

    def read(self, reply: Any) -> Answer:
        """Return what the JSON of a good reply means."""
        result = reply["attributeScores"]
        scores = {a: number(result[a]["summaryScore"]["value"]) for a in self.attributes}
        return self.answer(scores, scores, self.version)
