"""What a result holds of the authors study."""

from __future__ import annotations

from ombud.audits.result import MetricInfo, Result
from ombud.questions.authors.stages import ORDER, PIPELINE, STAGE
from ombud.report.findings import estimates_of, infos_of
from ombud.stats.estimate import Estimate

_OWN = ("creator-", "propagation")


def attribute(result: Result) -> str:
    """Return the attribute that was studied, in a word."""
    known = result.one("creator-catalogue/known-share")
    if known is not None:
        return str(known.details["attribute"])
    return str(result.plan.options.get("attribute") or "identity")


def inferred(result: Result) -> bool:
    """Return whether identities were inferred rather than asserted."""
    said = result.plan.options.get("inferred") is True
    return said or result.card.facts.get("inferred_identities") == "yes"


def with_source(result: Result, caption: str) -> str:
    """Return the caption of a figure, with how identities are known where they were inferred."""
    return f"{caption} Identities were inferred, not asserted." if inferred(result) else caption


def pipeline(result: Result, *stages: str) -> tuple[Estimate, ...]:
    """Return the shares of some stages, or of all, from the catalogue on."""
    wanted = stages or ORDER
    found = [e for e in estimates_of(result, PIPELINE) if e.details.get(STAGE) in wanted]
    return tuple(sorted(found, key=lambda e: ORDER.index(str(e.details[STAGE]))))


def identities(result: Result) -> tuple[str, ...]:
    """Return the identities, from the most to the least frequent on the platform."""
    some = pipeline(result, "platform")
    return tuple(e.label for e in sorted(some, key=lambda e: (-(e.value or 0.0), e.label)))


def told(result: Result) -> tuple[str, ...]:
    """Return the identities that are told: of two, the less frequent alone."""
    gaps = chief_gap(result)
    if gaps is not None:
        return tuple(dict.fromkeys(e.label for e in estimates_of(result, gaps)))
    names = identities(result)
    return names[-1:] if len(names) == 2 else names


def chief_gap(result: Result) -> MetricInfo | None:
    """Return the metric that answers the question: lists against profiles, all places alike."""
    found = [i for i in infos_of(result, "balance-gap") if not i.spec.get("exposure")]
    return found[0] if found else None


def own_keys(result: Result) -> frozenset[str]:
    """Return the keys of everything that the sections of this question tell."""
    return frozenset(key for key in result.keys if key.startswith(_OWN))
