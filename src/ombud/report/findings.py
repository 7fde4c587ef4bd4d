"""What each estimate says, sorted: above, below, no clear sign, or not defined."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from ombud.audits.result import Estimates, MetricInfo, Result
from ombud.metrics.engine.comparisons import is_beyond
from ombud.stats.estimate import Estimate

Sign = Literal[
    "above",
    "below",
    "small",
    "above uncorrected",
    "below uncorrected",
    "no sign",
    "untested",
    "undefined",
]
"""What an estimate says about its null value.

*Small*: there is a difference, but its interval does not lie wholly beyond the smallest one that
was declared to matter. *Uncorrected*: only before the correction.
"""

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
    infos = {key_of_metric(info): info for info in result.metrics}
    found: dict[tuple[str, Kind], list[Estimate]] = {}
    for key in infos:
        for kind in ("overall", "group", "group contrast", "system contrast"):
            found[key, kind] = []
    for estimate in result.estimates:
        found.setdefault((key_of_estimate(estimate), _kind(estimate)), []).append(estimate)
    return tuple(
        EstimateSet(infos.get(key) or _unknown(estimates[0]), kind, tuple(estimates))
        for (key, kind), estimates in found.items()
        if estimates
    )


def key_of_metric(info: MetricInfo) -> str:
    """Return what tells a metric from others; older results have only its title."""
    return info.key or info.title


def key_of_estimate(estimate: Estimate) -> str:
    """Return the key of the metric or analysis that an estimate is of."""
    return estimate.key or estimate.metric


def infos_of(result: Result, name: str, **options: object) -> tuple[MetricInfo, ...]:
    """Return the metrics of a registered name whose options are as asked."""
    return result.infos(name, **options)


def estimates_of(result: Result, *about: MetricInfo | str) -> Estimates:
    """Return the estimates of some metrics, or of analyses by their keys."""
    return result.select([key_of_metric(a) if isinstance(a, MetricInfo) else a for a in about])


def _unknown(estimate: Estimate) -> MetricInfo:
    return MetricInfo({}, estimate.metric, unit=estimate.unit, null=None, key=estimate.key)


def reading(estimate: Estimate) -> Sign:
    """Return what an estimate says about its null value.

    The corrected p-value decides where there is one, then the plain one, then the interval. Where
    a smallest difference that matters was declared, the whole interval must lie beyond it too.

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
    higher: Sign = "above" if estimate.value > estimate.null else "below"
    stands: Sign = higher if is_beyond(estimate) else "small"
    alpha = 1 - estimate.level
    alone = estimate.excludes_null if estimate.p_value is None else estimate.p_value < alpha
    if estimate.p_adjusted is not None:
        if estimate.p_adjusted < alpha:
            return stands
        if alone:
            return "above uncorrected" if higher == "above" else "below uncorrected"
        return "no sign"
    return stands if alone else "no sign"


def nearest_end(estimate: Estimate) -> float:
    """Return how far the end of the interval that is nearest to *no effect* lies from it.

    Ratios are measured by their logarithm. An interval that holds *no effect*, or none at all,
    gives 0: nothing is certain there, however large the estimate.

    Examples
    --------
    >>> e = Estimate(metric="m", value=0.3, interval=(0.1, 0.5), method="x", n=9, null=0.0)
    >>> nearest_end(e), nearest_end(e.replace(interval=(-0.1, 0.7)))
    (0.1, 0.0)
    """
    if estimate.value is None or estimate.interval is None:
        return 0.0
    null = estimate.null or 0.0
    low, high = estimate.interval
    if estimate.null == 1:
        null = 0.0
        low, high = (math.log(end) if end > 0 else -math.inf for end in (low, high))
    if low <= null <= high:
        return 0.0
    return min(abs(low - null), abs(high - null))


def by_sign(estimates: Iterable[Estimate]) -> dict[Sign, tuple[Estimate, ...]]:
    """Return estimates by what they say, in order of the end that is nearest to no effect.

    The largest estimates are often the noisiest; what comes first is certain to be large.
    """
    result: dict[Sign, list[Estimate]] = {}
    for estimate in estimates:
        result.setdefault(reading(estimate), []).append(estimate)
    return {sign: tuple(sorted(some, key=weight, reverse=True)) for sign, some in result.items()}


def weight(estimate: Estimate) -> tuple[float, float]:
    """Return by what estimates are ordered: the nearest end first, then the size."""
    return nearest_end(estimate), effect(estimate)


def effect(estimate: Estimate) -> float:
    """Return how far an estimate lies from its null value (or from 0); -1 when undefined."""
    if estimate.value is None:
        return -1.0
    return abs(estimate.value - (estimate.null or 0.0))
