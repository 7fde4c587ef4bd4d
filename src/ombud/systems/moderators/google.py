"""Google Cloud Natural Language moderateText, versions v1 and v2."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from ombud.data.decisions import Outcome
from ombud.registry import moderator
from ombud.systems.moderators.answers import Answer, highest_ratio
from ombud.systems.moderators.service import Service, digest, number, share

HARM_CATEGORIES = (
    "Toxic",
    "Insult",
    "Profanity",
    "Derogatory",
    "Sexual",
    "Death, Harm & Tragedy",
    "Violent",
    "Firearms & Weapons",
    "Illicit Drugs",
)
"""Categories that count as harm by default."""

TOPIC_CATEGORIES = (
    "Public Safety",
    "Health",
    "Religion & Belief",
    "War & Conflict",
    "Politics",
    "Finance",
    "Legal",
)
"""What a text is about. As harm they would raise religious and disabled people by construction."""


@moderator("google-moderate-text")
@dataclass(kw_only=True)
class GoogleModerateText(Service):
    """Google moderateText: a confidence for each of its categories, comparable between them.

    Parameters
    ----------
    categories
        Which count: ``"harm"``, ``"all"`` (topics such as religion included; for comparison with
        audits that did so), or a list of names.
    threshold
        Flag when a counting category's confidence reaches it.
    thresholds
        By category, where it differs.
    version
        Of the API: v1 or v2.
    model_version
        Sent with v2, such as ``MODEL_VERSION_2``; empty for the service's default.
    auth
        ``"key"`` for an API key, ``"bearer"`` for an access token in `key_env`.
    """

    own_host: ClassVar[str] = "language.googleapis.com"
    known_categories: ClassVar[tuple[str, ...]] = HARM_CATEGORIES + TOPIC_CATEGORIES

    base_url: str = "https://language.googleapis.com"
    key_env: str = "GOOGLE_API_KEY"
    categories: Literal["harm", "all"] | list[str] = "harm"
    threshold: float = 0.5
    thresholds: dict[str, float] = field(default_factory=dict)
    version: Literal["v1", "v2"] = "v2"
    model_version: str = ""
    auth: Literal["key", "bearer"] = "key"

    def __post_init__(self) -> None:
        super().__post_init__()
        share(self.threshold, "threshold", self.name)
        for category, value in self.thresholds.items():
            share(value, f"the threshold of {category}", self.name)

    @property
    def url(self) -> str:
        """Where questions are posted."""
        return f"{self.base_url}/{self.version}/documents:moderateText"

    @property
    def configuration(self) -> str:
        """API and model version."""
        return (
            f"{self.version}#{digest(self.model_version)}" if self.model_version else self.version
        )

    def key_headers(self, key: str) -> Mapping[str, str]:
        """Return the header that carries a key."""
        if self.auth == "bearer":
            return {"Authorization": f"Bearer {key}"}
        return {"X-Goog-Api-Key": key}

    def question(self, text: str) -> Any:
        """Return the JSON of a question about one text."""
        question: dict[str, Any] = {"document": {"type": "PLAIN_TEXT", "content": text}}
        if self.model_version:
            question["modelVersion"] = self.model_version
        return question

    def read(self, reply: Any) -> Answer:
        """Return what the JSON of a good reply means."""
        result = reply["moderationCategories"]
        scores = {entry["name"]: number(entry.get("confidence", 0.0)) for entry in result}
        counting = scores
        if self.categories != "all":
            wanted = HARM_CATEGORIES if self.categories == "harm" else self.categories
            counting = {c: scores[c] for c in wanted if c in scores}
        if not counting:
            raise LookupError("none of the categories that count was scored")
        version = self.model_version or self.version
        if not self.thresholds:
            score = max(counting.values())
            return Answer(Outcome(score >= self.threshold), score, scores, version)
        limits = {c: self.thresholds.get(c, self.threshold) for c in counting}
        flagged = any(s >= limits[c] for c, s in counting.items())
        return Answer(Outcome(flagged), highest_ratio(counting, counting, limits), scores, version)
