"""What each estimate says, sorted: above, below, no clear sign, or not defined."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Literal

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
