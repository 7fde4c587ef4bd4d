"""Azure AI Content Safety: a severity for each of four categories."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

from ombud.data.decisions import Outcome
from ombud.errors import PlanError
from ombud.registry import moderator
from ombud.systems.moderators.answers import Answer
from ombud.systems.moderators.service import ScoredService, digest, number

CATEGORIES = ("Hate", "SelfHarm", "Sexual", "Violence")


@moderator("azure-content-safety")
@dataclass(kw_only=True)
class AzureContentSafety(ScoredService):
    """Azure AI Content Safety, ``text:analyze``: severities from 0 to 7, and no decision.

    What is flagged is your own choice of severities, so there are no flags without `threshold`;
    one threshold for all categories is a common mistake. A match of a blocklist flags too. All
    eight severities are requested, since four levels make two neighbors one.

    The service takes one text in a request, of at most 10,000 characters, and bills by started
    thousands of characters (`price` with the unit ``started-1k-characters``). Five requests a
    second is the limit of its free tier, and the default here.

    Parameters
    ----------
    base_url
        Your resource: ``https://NAME.cognitiveservices.azure.com``.
    api_version
        At this release ``2024-09-01`` and ``2023-10-01``; no default, because versions end 90
        days after a new one. Replies name no model.
    categories
        Which are requested; all of them count.
    blocklists
        Names of your resource's blocklists.
    auth
        ``"key"`` for a resource key, ``"bearer"`` for an Entra access token in `key_env`.
    """

    own_host: ClassVar[str] = "*.cognitiveservices.azure.com"
    known_categories: ClassVar[tuple[str, ...]] = (*CATEGORIES, "blocklist")
    current_models: ClassVar[tuple[str, ...]] = ("2024-09-01", "2023-10-01")
    pace: ClassVar[Mapping[str, float]] = {"per_second": 5.0}
    largest_threshold: ClassVar[float] = 7.0

    key_env: str = "AZURE_CONTENT_SAFETY_KEY"
    max_characters: int | None = 10_000
    api_version: str = ""
    categories: list[str] = field(default_factory=lambda: list(CATEGORIES))
    blocklists: list[str] = field(default_factory=list)
    auth: Literal["key", "bearer"] = "key"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.api_version:
            raise PlanError(
                f"{self.name}: set api_version; at this release the service has "
                f"{' and '.join(self.current_models)}"
            )
        if strange := sorted({*self.categories, *self.thresholds} - set(CATEGORIES)):
            known = ", ".join(CATEGORIES)
            raise PlanError(f"{self.name}: no category is called {strange[0]!r}; known: {known}")
        if strange := sorted(set(self.thresholds) - set(self.categories)):
            raise PlanError(f"{self.name}: thresholds names {strange[0]}; categories does not")
        decides = self.threshold is not None or set(self.categories) <= set(self.thresholds)
        if self.blocklists and not decides:
            raise PlanError(f"{self.name}: blocklists decide about some texts; set threshold too")

    @property
    def url(self) -> str:
        """Where questions are posted."""
        return f"{self.base_url}/contentsafety/text:analyze?api-version={self.api_version}"

    @property
    def configuration(self) -> str:
        """API version, categories and blocklists."""
        return f"{self.api_version}#{digest(sorted(self.categories), sorted(self.blocklists))}"

    def key_headers(self, key: str) -> Mapping[str, str]:
        """Return the header that carries a key."""
        if self.auth == "bearer":
            return {"Authorization": f"Bearer {key}"}
        return {"Ocp-Apim-Subscription-Key": key}

    def question(self, text: str) -> Any:
        """Return the JSON of a question about one text."""
        question: dict[str, Any] = {
            "text": text,
            "categories": self.categories,
            "outputType": "EightSeverityLevels",
        }
        if self.blocklists:
            question |= {"blocklistNames": self.blocklists, "haltOnBlocklistHit": False}
        return question

    def read(self, reply: Any) -> Answer:
        """Return what the JSON of a good reply means."""
        entries = reply["categoriesAnalysis"]
        # A severity may be absent by the schema, which does not say what that means.
        severities = {str(entry["category"]): number(entry["severity"]) for entry in entries}
        if len(severities) < len(entries):
            raise ValueError("a category is there twice")
        answer = self.answer(severities, self.categories, self.api_version)
        if not reply.get("blocklistsMatch"):
            return answer
        begin = 1.0 if self.thresholds else self.threshold or 1.0
        kept = {**severities, "blocklist": 1.0}
        score = max(answer.score, begin)
        return replace(answer, outcome=Outcome.FLAGGED, score=score, categories=kept)
