"""Mistral's moderation endpoint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from ombud.data.decisions import Outcome
from ombud.errors import PlanError
from ombud.registry import moderator
from ombud.systems.moderators.answers import Answer
from ombud.systems.moderators.openai import moderations_body, split_results
from ombud.systems.moderators.service import ScoredService, number

TOPICS = ("health", "financial", "law", "pii", "jailbreaking")
"""What a text is about, or tries: not harm to readers, and not counted by default."""

HARMS = (
    "sexual",
    "hate_and_discrimination",
    "violence_and_threats",
    "dangerous",
    "criminal",
    "dangerous_and_criminal_content",
    "selfharm",
)


@moderator("mistral-moderation")
@dataclass(kw_only=True)
class MistralModeration(ScoredService):
    """Mistral moderation: a flag and a score for each category, and no overall flag.

    A text is flagged when the service flags a category that counts; its thresholds are not
    published, and change with the model. With `threshold` or `thresholds` the scores decide
    instead. The score of a text is its largest; scores of categories are not said to be
    comparable.

    Parameters
    ----------
    model
        At this release ``mistral-moderation-2603``; no default, because a default would change.
    categories
        Which count: ``"harm"`` (every category but health, financial, law, pii and jailbreaking),
        ``"all"``, or a list of names.
    """

    own_host: ClassVar[str] = "api.mistral.ai"
    known_categories: ClassVar[tuple[str, ...]] = HARMS + TOPICS
    current_models: ClassVar[tuple[str, ...]] = ("mistral-moderation-2603",)
    retired_models: ClassVar[Mapping[str, str]] = {"mistral-moderation-2411": "2026-06-30"}

    base_url: str = "https://api.mistral.ai/v1"
    key_env: str = "MISTRAL_API_KEY"
    model: str = ""
    categories: Literal["harm", "all"] | list[str] = "harm"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.need_model(self.model)
        if self.categories == "harm" and (strange := sorted(set(self.thresholds) & set(TOPICS))):
            raise PlanError(f"{self.name}: thresholds names {strange[0]}, which is not counted")

    @property
    def queried_model(self) -> str:
        """The model that the plan names."""
        return self.model

    @property
    def notices(self) -> tuple[str, ...]:
        """That the name of the model moves, where it does."""
        moves = self.model.endswith("-latest")
        return (f"{self.model} is a name that moves to new models",) if moves else ()

    @property
    def url(self) -> str:
        """Where questions are posted."""
        return f"{self.base_url}/moderations"

    @property
    def configuration(self) -> str:
        """The model that is named."""
        return self.model

    def body(self, texts: Sequence[str]) -> bytes:
        """Return the body of a question about one or more texts."""
        return moderations_body(self.model, texts)

    def split(self, body: bytes, count: int) -> list[bytes]:
        """Return the reply to several texts as one reply a text."""
        return split_results(body, count)

    def read(self, reply: Any) -> Answer:
        """Return what the JSON of a good reply means."""
        model = str(reply["model"])
        (result,) = reply["results"]
        scores = {c: number(s) for c, s in result["category_scores"].items()}
        flags = result["categories"]
        if isinstance(self.categories, list):
            counting = self.categories
        else:
            left_out = TOPICS if self.categories == "harm" else ()
            counting = [name for name in scores if name not in left_out]
        answer = self.answer(scores, counting, model)
        if self.threshold is not None or self.thresholds:
            return answer
        if not all(isinstance(flags[c], bool) for c in counting):
            raise TypeError("a flag is neither true nor false")
        return Answer(Outcome(any(flags[c] for c in counting)), answer.score, scores, model)
