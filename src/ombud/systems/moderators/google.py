"""Google Cloud Natural Language moderateText, versions v1 and v2."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

from ombud.errors import PlanError
from ombud.registry import moderator
from ombud.systems.moderators.answers import Answer, rejected
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

    Severities, where the service states them, are kept beside the confidences. It bills by started
    hundreds of characters and silently ignores what follows its first 100,000 tokens, so longer
    texts are not sent.

    Parameters
    ----------
    categories
        Which count: ``"harm"``, ``"all"`` (topics such as religion included; for comparison with
        audits that did so), or a list of names.
    version
        Of the API: v1 or v2.
    model_version
        With v2: ``MODEL_VERSION_1`` or ``MODEL_VERSION_2``, which are current at this release;
        empty to let the service choose, which may change.
    language
        Of the texts, such as ``en``; empty to let the service detect it. A text in a language that
        the service does not support is an error: its confidences mean nothing.
    score
        ``confidence``, or the ``severity`` that model version 2 states for some categories. They
        are different numbers: a text may be slightly insulting with great confidence.
    auth
        ``"key"`` for an API key, ``"bearer"`` for an access token in `key_env`.
    """

    own_host: ClassVar[str] = "language.googleapis.com"
    former_threshold: ClassVar[float | None] = 0.5
    known_categories: ClassVar[tuple[str, ...]] = (
        *HARM_CATEGORIES,
        *TOPIC_CATEGORIES,
        *(f"{name} (severity)" for name in HARM_CATEGORIES + TOPIC_CATEGORIES),
    )
    # Replies leave out what is zero, and severities of some categories.
    steady_categories: ClassVar[bool] = False
    current_models: ClassVar[tuple[str, ...]] = ("MODEL_VERSION_1", "MODEL_VERSION_2")

    base_url: str = "https://language.googleapis.com"
    key_env: str = "GOOGLE_API_KEY"
    categories: Literal["harm", "all"] | list[str] = "harm"
    version: Literal["v1", "v2"] = "v2"
    model_version: str = ""
    auth: Literal["key", "bearer"] = "key"
    language: str = ""
    score: Literal["confidence", "severity"] = "confidence"
    max_characters: int | None = 100_000

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.model_version and self.version == "v1":
            raise PlanError(f"{self.name}: model_version needs version = 'v2'; v1 has one model")
        if self.score == "severity" and self.model_version != "MODEL_VERSION_2":
            raise PlanError(f"{self.name}: severities need model_version = 'MODEL_VERSION_2'")
        counting = self.thresholds if self.categories == "all" else self.counting
        if strange := sorted(set(self.thresholds) - set(counting)):
            raise PlanError(
                f"{self.name}: thresholds names {', '.join(strange)}, which do not count"
            )

    def as_published(self) -> Mapping[str, Any]:
        """Return all sixteen categories of the first version of the API."""
        return {"categories": "all", "version": "v1"}

    @property
    def counting(self) -> Sequence[str]:
        """The categories that count, where they are not all."""
        return HARM_CATEGORIES if isinstance(self.categories, str) else self.categories

    @property
    def url(self) -> str:
        """Where questions are posted."""
        return f"{self.base_url}/{self.version}/documents:moderateText"

    @property
    def notices(self) -> tuple[str, ...]:
        """That the service chooses the model, where it does."""
        if self.model_version or self.version == "v1":
            return ()
        return ("no model_version is set: the service chooses its model, which may change",)

    @property
    def configuration(self) -> str:
        """API and model version, and language."""
        parts = (self.model_version, self.language) if self.language else (self.model_version,)
        return f"{self.version}#{digest(*parts)}" if any(parts) else self.version

    def key_headers(self, key: str) -> Mapping[str, str]:
        """Return the header that carries a key."""
        if self.auth == "bearer":
            return {"Authorization": f"Bearer {key}"}
        return {"X-Goog-Api-Key": key}

    def question(self, text: str) -> Any:
        """Return the JSON of a question about one text."""
        document = {"type": "PLAIN_TEXT", "content": text}
        if self.language:
            document["languageCode" if self.version == "v2" else "language"] = self.language
        question: dict[str, Any] = {"document": document}
        if self.model_version:
            question["modelVersion"] = self.model_version
        return question

    def read(self, reply: Any) -> Answer:
        """Return what the JSON of a good reply means."""
        version = self.model_version or self.version
        if reply.get("languageSupported") is False:
            language = reply.get("languageCode") or "unknown"
            return rejected(
                f"the service does not support the text's language ({language})", version
            )
        entries = reply.get("moderationCategories")
        if not entries:
            raise LookupError("it has no moderationCategories")
        confidences = {entry["name"]: number(entry.get("confidence", 0.0)) for entry in entries}
        severities = {e["name"]: number(e["severity"]) for e in entries if "severity" in e}
        kept = confidences | {f"{name} (severity)": s for name, s in severities.items()}
        scores = confidences if self.score == "confidence" else severities
        counting = list(scores) if self.categories == "all" else self.counting
        return replace(self.answer(scores, counting, version), categories=kept)
