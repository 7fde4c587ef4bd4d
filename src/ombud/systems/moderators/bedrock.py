"""AWS Bedrock: guardrail checks, which state severities, and guardrails, which decide.

Both take a Bedrock API key as a bearer token. Signed requests (SigV4) are not supported: they need
a signature of each request, with its time.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal
from urllib.parse import quote

from ombud.data.decisions import Outcome
from ombud.errors import PlanError
from ombud.registry import moderator
from ombud.systems.moderators.answers import Answer, rejected
from ombud.systems.moderators.service import ScoredService, Service, digest, number

CATEGORIES = ("HATE", "INSULTS", "SEXUAL", "VIOLENCE", "MISCONDUCT")
CONFIDENCES = {"NONE": 0.0, "LOW": 1.0, "MEDIUM": 2.0, "HIGH": 3.0}
_OWN_HOST = "bedrock-runtime.*.amazonaws.com"
_KEY = "AWS_BEARER_TOKEN_BEDROCK"


def _address(base_url: str, region: str, name: str) -> str:
    if base_url or region:
        return base_url or f"https://bedrock-runtime.{region}.amazonaws.com"
    raise PlanError(f"{name}: set region, such as us-east-1")


@moderator("bedrock-checks")
@dataclass(kw_only=True)
class BedrockChecks(ScoredService):
    """AWS Bedrock InvokeGuardrailChecks: a severity from 0 to 1 for each category, no decision.

    It needs no guardrail of your own. The key is a Bedrock API key, sent as a bearer token;
    short-term keys end after at most 12 hours, and the run then stops and can be resumed. Requests
    signed with SigV4 are not supported. Billed by started thousands of characters.

    Parameters
    ----------
    region
        The AWS region, such as ``us-east-1``.
    categories
        Which are requested; all of them count.
    """

    own_host: ClassVar[str] = _OWN_HOST
    known_categories: ClassVar[tuple[str, ...]] = CATEGORIES

    key_env: str = _KEY
    region: str = ""
    categories: list[str] = field(default_factory=lambda: list(CATEGORIES))

    def __post_init__(self) -> None:
        self.base_url = _address(self.base_url, self.region, self.name or self.cache_name)
        super().__post_init__()
        if strange := sorted(set(self.categories) - set(self.known_categories)):
            known = ", ".join(self.known_categories)
            raise PlanError(f"{self.name}: no category is called {strange[0]!r}; known: {known}")
        if strange := sorted(set(self.thresholds) - set(self.categories)):
            raise PlanError(f"{self.name}: thresholds names {strange[0]}; categories does not")

    @property
    def url(self) -> str:
        """Where questions are posted."""
        return f"{self.base_url}/guardrail-checks/invoke"

    @property
    def configuration(self) -> str:
        """The categories that are requested."""
        return f"content-filter#{digest(sorted(self.categories))}"

    def question(self, text: str) -> Any:
        """Return the JSON of a question about one text."""
        categories = [{"category": category} for category in self.categories]
        return {
            "checks": {"contentFilter": {"categories": categories}},
            "messages": [{"role": "user", "content": [{"text": text}]}],
        }

    def read(self, reply: Any) -> Answer:
        """Return what the JSON of a good reply means."""
        entries = reply["results"]["contentFilter"]["results"]
        scores = {str(entry["category"]): number(entry["severityScore"]) for entry in entries}
        if len(scores) < len(entries):
            raise ValueError("a category is there twice")
        return self.answer(scores, self.categories, "content-filter")


@moderator("bedrock-guardrail")
@dataclass(kw_only=True)
class BedrockGuardrail(Service):
    """AWS Bedrock ApplyGuardrail: a guardrail of your own decides.

    A text is flagged when the guardrail intervenes. The score is the largest confidence of its
    content filters: 0 for none, 1 low, 2 medium, 3 high; other policies state none. A text of
    which only a part was examined is an error. The key is a Bedrock API key, sent as a bearer
    token; requests signed with SigV4 are not supported.

    Parameters
    ----------
    region
        The AWS region, such as ``us-east-1``.
    guardrail
        Its id.
    guardrail_version
        Its version; ``DRAFT`` moves.
    source
        Whether texts are judged as what a user writes or as what a model answers.
    """

    own_host: ClassVar[str] = _OWN_HOST
    known_categories: ClassVar[tuple[str, ...]] = (*CATEGORIES, "PROMPT_ATTACK")

    key_env: str = _KEY
    region: str = ""
    guardrail: str = ""
    guardrail_version: str = ""
    source: Literal["INPUT", "OUTPUT"] = "INPUT"

    def __post_init__(self) -> None:
        self.base_url = _address(self.base_url, self.region, self.name or self.cache_name)
        super().__post_init__()
        if not (self.guardrail and self.guardrail_version):
            raise PlanError(f"{self.name}: set guardrail and guardrail_version")

    @property
    def notices(self) -> tuple[str, ...]:
        """That a draft moves."""
        draft = self.guardrail_version.upper() == "DRAFT"
        return ("DRAFT is a version that changes with the guardrail",) if draft else ()

    @property
    def url(self) -> str:
        """Where questions are posted."""
        name, version = quote(self.guardrail, safe=""), quote(self.guardrail_version, safe="")
        return f"{self.base_url}/guardrail/{name}/version/{version}/apply"

    @property
    def configuration(self) -> str:
        """Guardrail, version and source."""
        return f"{self.guardrail}@{self.guardrail_version}#{self.source}"

    def question(self, text: str) -> Any:
        """Return the JSON of a question about one text."""
        content = [{"text": {"text": text}}]
        return {"source": self.source, "content": content, "outputScope": "FULL"}

    def read(self, reply: Any) -> Answer:
        """Return what the JSON of a good reply means."""
        version = f"{self.guardrail}@{self.guardrail_version}"
        action = reply["action"]
        if action not in {"NONE", "GUARDRAIL_INTERVENED"}:
            raise ValueError(f"the action {action!r:.40} means neither flagged nor allowed")
        coverage = (reply.get("guardrailCoverage") or {}).get("textCharacters") or {}
        if coverage and coverage["guarded"] < coverage["total"]:
            some = f"{coverage['guarded']:,} of {coverage['total']:,}"
            return rejected(f"the guardrail examined only {some} characters", version)
        scores: dict[str, float] = {}
        for assessment in reply.get("assessments") or ():
            for one in (assessment.get("contentPolicy") or {}).get("filters") or ():
                score = CONFIDENCES[one["confidence"]]
                scores[one["type"]] = max(score, scores.get(one["type"], 0.0))
                if one.get("action") == "BLOCKED" and action == "NONE":
                    raise ValueError(f"{one['type']} is blocked though the action is NONE")
        worst = max(scores.values(), default=float("nan"))
        return Answer(Outcome(action != "NONE"), worst, scores, version)
