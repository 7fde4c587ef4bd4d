"""What a result holds of a suppression audit, by key and option."""

from __future__ import annotations

from ombud.audits.result import MetricInfo, Result
from ombud.metrics.engine.text_rows import EVENTS
from ombud.report.findings import estimates_of, infos_of
from ombud.stats.estimate import Estimate

DRIFT = "drift/false-positive-rate"
"""The key of the change between two versions."""

MIGRATION = ("migration/false-positive-rate", "migration/true-positive-rate")
"""The keys of what changes with a new moderator: for acceptable texts, and for the others."""

REGRESSIONS = {"flag-regression": "Odds ratio", "score-regression": "Change of score"}
"""The keys of the regressions, and what their numbers are."""

_OTHERS = ("pooled-suppression", "false-positive-rate", "median-score", "undecided-share")


def chief(result: Result, by: str = "flags") -> MetricInfo | None:
    """Return the ratio of each group to all texts, of flags or of scores."""
    infos = infos_of(result, "suppression", by=by, against="all")
    return infos[0] if infos else None


def happened(info: MetricInfo | None) -> str:
    """Return what happened to the texts that an audit counts: flagged, refused, or either."""
    outcome = "flagged" if info is None else str(info.spec.get("outcome", "flagged"))
    return {str(key): word for key, word in EVENTS.items()}.get(outcome, "flagged")


def largest(result: Result, system: str) -> Estimate | None:
    """Return the largest suppression by a system, over all families."""
    for info in infos_of(result, "worst-suppression", by="flags"):
        for e in estimates_of(result, info):
            if e.system == system and not e.label and e.value is not None:
                return e
    return None


def undecided(result: Result) -> tuple[Estimate, ...]:
    """Return the shares of texts without a decision, and their differences."""
    return estimates_of(result, *infos_of(result, "undecided-share"))


def about_groups(result: Result) -> tuple[MetricInfo, ...]:
    """Return every metric that says something about a group, the ratios first."""
    ratios = infos_of(result, "suppression")
    return (*ratios, *(info for name in _OTHERS for info in infos_of(result, name)))
