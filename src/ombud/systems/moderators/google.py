"""Google Cloud Natural Language moderateText, versions v1 and v2."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from ombud.errors import PlanError
from ombud.registry import moderator
from ombud.systems.moderators.answers import Answer
from ombud.systems.moderators.service import ScoredService, digest, number

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
class GoogleModerateText(ScoredService):
    """Google moderateText: a confidence for each of its categories, comparable between them.

    Parameters
    ----------
    categories
        Which count: ``"harm"``, ``"all"`` (topics such as religion included; for comparison with
        audits that did so), or a list of names.
    version
        Of the API: v1 or v2.
    model_version
        Sent with v2, such as ``MODEL_VERSION_2``; empty for the service's default.
    auth
        ``"key"`` for an API key, ``"bearer"`` for an access token in `key_env`.
    """

    own_host: ClassVar[str] = "language.googleapis.com"
    former_threshold: ClassVar[float | None] = 0.5
    known_categories: ClassVar[tuple[str, ...]] = HARM_CATEGORIES + TOPIC_CATEGORIES

    base_url: str = "https://language.googleapis.com"
    key_env: str = "GOOGLE_API_KEY"
    categories: Literal["harm", "all"] | list[str] = "harm"
    version: Literal["v1", "v2"] = "v2"
    model_version: str = ""
    auth: Literal["key", "bearer"] = "key"

    def __post_init__(self) -> None:
        super().__post_init__()
        counting = self.thresholds if self.categories == "all" else self.counting
        if strange := sorted(set(self.thresholds) - set(counting)):
            raise PlanError(
                f"{self.name}: thresholds names {', '.join(strange)}, which do not count"
            )

    @property
    def counting(self) -> Sequence[str]:
        """The categories that count, where they are not all."""
        return HARM_CATEGORIES if isinstance(self.categories, str) else self.categories

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
        counting = scores if self.categories == "all" else self.counting
        return self.answer(scores, counting, self.model_version or self.version)
