"""What each estimate says, sorted: above, below, no clear sign, or not defined."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from ombud.audits.result import MetricInfo, Result
from ombud.stats.estimate import Estimate

__all__ = [
    "EstimateSet",
    "Kind",
    "Sign",
    "by_sign",
    "effect",
    "families",
    "family",
    "labels_of",
    "reading",
]

Sign = Literal[
    "above", "below", "above uncorrected", "below uncorrected", "no sign", "untested", "undefined"
]
"""What an estimate says about its null value. *Uncorrected*: only before the correction."""

Kind = Literal["overall", "group", "group contrast", "system contrast"]
"""What a family of estimates is about."""


@dataclass(frozen=True)
class EstimateSet:
    """The estimates of one metric that answer one kind of question together.

    Parameters
    ----------
    metric
        The metric.
    kind
        Levels of everyone, levels of groups, groups compared, or systems compared.
    estimates
        In the order of the result.
    """

    metric: MetricInfo
    kind: Kind
    estimates: tuple[Estimate, ...]

    @property
    def systems(self) -> tuple[str, ...]:
        """The systems, in order."""
        return tuple(dict.fromkeys(e.system for e in self.estimates))

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels, in order."""
        return labels_of(self.estimates)

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups, in order."""
        return tuple(dict.fromkeys(e.group for e in self.estimates))

    def of(self, *, system: str) -> EstimateSet:
        """Return the part about one system."""
        return EstimateSet(
            self.metric, self.kind, tuple(e for e in self.estimates if e.system == system)
        )


def labels_of(estimates: Iterable[Estimate]) -> tuple[str, ...]:
    """Return the labels that some estimates are about, in order."""
    return tuple(dict.fromkeys(e.label for e in estimates))


def _kind(estimate: Estimate) -> Kind:
    if estimate.kind == "level":
        return "group" if estimate.group else "overall"
    return "group contrast" if estimate.group else "system contrast"


def families(result: Result) -> tuple[EstimateSet, ...]:
    """Return every family of a result, metric by metric; no estimate is left out."""
    infos = {info.key or info.title: info for info in result.metrics}
    found: dict[tuple[str, Kind], list[Estimate]] = {}
    for key in infos:
        for kind in ("overall", "group", "group contrast", "system contrast"):
            found[key, kind] = []
    for estimate in result.estimates:
        found.setdefault((estimate.key or estimate.metric, _kind(estimate)), []).append(estimate)
    return tuple(
        EstimateSet(infos.get(key) or _unknown(estimates[0]), kind, tuple(estimates))
        for (key, kind), estimates in found.items()
        if estimates
    )


def family(result: Result, metric: str, kind: Kind) -> EstimateSet | None:
    """Return one family by the title of its metric, or None when the result has none."""
    for found in families(result):
        if found.metric.title == metric and found.kind == kind:
            return found
    return None


def _unknown(estimate: Estimate) -> MetricInfo:
    return MetricInfo({}, estimate.metric, unit=estimate.unit, null=None)


def reading(estimate: Estimate) -> Sign:
    """Return what an estimate says about its null value.

    The corrected p-value decides where there is one, then the plain one, then the interval.

    Examples
    --------
    >>> e = Estimate(metric="m", value=0.2, interval=(0.1, 0.3), method="x", n=9, null=0.0)
    >>> reading(e), reading(e.replace(p_value=0.01, p_adjusted=0.2))
    ('above', 'above uncorrected')
    """
    if estimate.value is None:
        return "undefined"
    if estimate.null is None or (estimate.interval is None and estimate.p_value is None):
        return "untested"
    higher = estimate.value > estimate.null
    alpha = 1 - estimate.level
    alone = estimate.excludes_null if estimate.p_value is None else estimate.p_value < alpha
    if estimate.p_adjusted is not None:
        if estimate.p_adjusted < alpha:
            return "above" if higher else "below"
        if alone:
            return "above uncorrected" if higher else "below uncorrected"
        return "no sign"
    if not alone:
        return "no sign"
    return "above" if higher else "below"


def by_sign(estimates: Iterable[Estimate]) -> dict[Sign, tuple[Estimate, ...]]:
    """Return estimates by what they say, strongest first."""
    result: dict[Sign, list[Estimate]] = {}
    for estimate in estimates:
        result.setdefault(reading(estimate), []).append(estimate)
    return {sign: tuple(sorted(some, key=effect, reverse=True)) for sign, some in result.items()}


def effect(estimate: Estimate) -> float:
    """Return how far an estimate lies from its null value (or from 0); -1 when undefined."""
    if estimate.value is None:
        return -1.0
    return abs(estimate.value - (estimate.null or 0.0))
