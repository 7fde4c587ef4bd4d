"""OpenAI's moderation endpoint."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from ombud.data.decisions import Outcome
from ombud.errors import PlanError
from ombud.registry import moderator
from ombud.systems.moderators.answers import Answer, highest_ratio
from ombud.systems.moderators.service import Service, number, share
from ombud.systems.quote import Price

MODERATION_007: Mapping[str, tuple[float, float]] = {
    "harassment": (0.439995, 0.440000),
    "harassment/threatening": (0.309992, 0.310037),
    "hate": (0.399998, 0.400002),
    "hate/threatening": (0.109729, 0.110140),
    "self-harm": (0.398208, 0.400014),
    "self-harm/instructions": (0.119107, 0.120300),
    "self-harm/intent": (0.274655, 0.282941),
    "sexual": (0.529768, 0.530200),
    "sexual/minors": (0.319917, 0.320319),
    "violence": (0.580000, 0.580124),
    "violence/graphic": (0.708829, 0.711442),
}
"""Bounds of the threshold of each category in text-moderation-007 (the paper's Table 10).

The highest score that was not flagged, and the lowest that was. They hold for that model only:
derive them again for another with ``ombud thresholds`` or `thresholds_from_replies`.
"""


@moderator("openai-moderation")
@dataclass(kw_only=True)
class OpenAIModeration(Service):
    """OpenAI moderation: a flag and a score for each category.

    Scores of different categories are not comparable, so the score of a text is the largest
    *score divided by threshold* over the categories that count, where thresholds are known (given
    here, or those of text-moderation-007 when that model answered); 1 is where flags begin.
    Without thresholds it is the largest score.

    Parameters
    ----------
    model
        The model to query, which has no default: at this release ``omni-moderation-2024-09-26``.
        ``omni-moderation-latest`` may change. The model that answered is recorded.
    categories
        Which count; None for all, with the service's own overall flag.
    flag_by
        ``"service"``: the service's flags; ``"thresholds"``: the score reaches 1.
    thresholds
        By category.
    """

    own_host: ClassVar[str] = "api.openai.com"
    known_categories: ClassVar[tuple[str, ...]] = (*MODERATION_007, "illicit", "illicit/violent")
    current_models: ClassVar[tuple[str, ...]] = ("omni-moderation-2024-09-26",)
    retired_models: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("text-moderation-latest", "text-moderation-stable", "text-moderation-007"), "2025-10-27"
    )
    # The limits of the lowest tier, where tokens bind rather than requests.
    pace: ClassVar[Mapping[str, float]] = {"per_minute": 250.0, "tokens_per_minute": 10_000.0}
    steady_categories: ClassVar[bool] = True

    base_url: str = "https://api.openai.com/v1"
    key_env: str = "OPENAI_API_KEY"
    price: Price = field(default_factory=lambda: Price(0.0))
    model: str = ""
    categories: list[str] | None = None
    flag_by: Literal["service", "thresholds"] = "service"
    thresholds: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        old = "earlier versions used omni-moderation-latest, which today is that model"
        self.need_model(self.model, f" ({old})")
        for category, value in self.thresholds.items():
            share(value, f"the threshold of {category}", self.name)
        if self.flag_by == "thresholds" and not self.thresholds and self.model[:4] != "text":
            raise PlanError(
                f"{self.name}: thresholds of {self.model} are not known to ombud; give them, or "
                "derive them from replies with ombud thresholds or thresholds_from_replies"
            )

    def as_published(self) -> Mapping[str, Any]:
        """Return the model of the paper and the thresholds of its Table 10."""
        return {
            "model": "text-moderation-007",
            "thresholds": {category: high for category, (_, high) in MODERATION_007.items()},
        }

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
        """The model asked for."""
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
        scores = {c: number(s) for c, s in result["category_scores"].items() if s is not None}
        flags = result["categories"]
        counting = scores if self.categories is None else self.categories
        thresholds: Mapping[str, float] = self.thresholds
        if not thresholds and model == "text-moderation-007":
            thresholds = {c: upper for c, (_, upper) in MODERATION_007.items()}
        score = highest_ratio(scores, counting, thresholds)
        if self.flag_by == "thresholds":
            if not thresholds:
                raise LookupError(f"thresholds of {model}, which answered, are not known")
            flagged: Any = score >= 1
        elif self.categories is None:
            flagged = result["flagged"]
        else:
            flagged = any(flags[c] for c in self.categories)
        if not isinstance(flagged, bool):
            raise TypeError("'flagged' is neither true nor false")
        return Answer(Outcome(flagged), score, scores, model)


def moderations_body(model: str, texts: Sequence[str]) -> bytes:
    """Return the body of a question to an endpoint ``/moderations``."""
    content = texts[0] if len(texts) == 1 else list(texts)
    return json.dumps({"model": model, "input": content}, ensure_ascii=False).encode()


def split_results(body: bytes, count: int) -> list[bytes]:
    """Return a reply about several texts as one reply a text."""
    reply = json.loads(body)
    results = reply.get("results") if isinstance(reply, dict) else None
    if not isinstance(results, list) or len(results) != count:
        found = len(results) if isinstance(results, list) else "no"
        raise ValueError(f"{count} results were expected, and there are {found}")
    return [json.dumps({**reply, "results": [result]}).encode() for result in results]


def thresholds_from_replies(
    replies: Iterable[bytes],
) -> dict[str, tuple[float | None, float | None]]:
    """Return, for each category, the highest score not flagged and the lowest score flagged.

    The category's threshold lies between the two; None where no reply shows that side. A
    category whose two bounds are the wrong way round has no single threshold.

    The replies are raw, of one model, such as an answer cache keeps.
    """
    low: dict[str, float] = {}
    high: dict[str, float] = {}
    for raw in replies:
        reply = json.loads(raw)
        # A cache also holds bodies of errors, and categories that were not scored.
        for result in reply.get("results", ()) if isinstance(reply, dict) else ():
            for category, score in result.get("category_scores", {}).items():
                if score is None or category not in result.get("categories", {}):
                    continue
                if result["categories"][category]:
                    high[category] = min(score, high.get(category, score))
                else:
                    low[category] = max(score, low.get(category, score))
    return {c: (low.get(c), high.get(c)) for c in sorted(low.keys() | high.keys())}
