"""What the engine makes of a metric: which levels, which contrasts, and what few events mean."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from ombud.errors import PlanError
from ombud.registry import hint
from ombud.stats.estimate import Estimate

if TYPE_CHECKING:
    from ombud.metrics.engine.estimator import MetricEstimator


WHOLE = "all texts"
"""What a group is compared with: all texts that should not be flagged, its own included."""

OUTSIDE = "texts outside the group"
"""What a group is compared with on request: the texts that do not name it."""

Summary = Callable[["MetricEstimator", int, int], "list[Estimate]"]
"""Makes further numbers of the groups of one system and label, such as the largest."""


class EventPolicy(Protocol):
    """What to do where a rate rests on few events."""

    def whole_is_too_rare(self, estimator: MetricEstimator, sample: int) -> str:
        """Return why no group can be compared; empty when it can."""
        ...

    def level(
        self, estimate: Estimate, estimator: MetricEstimator, sample: int, column: int
    ) -> Estimate:
        """Return the number of one column with an interval that few events bear."""
        ...

    def refine(
        self, estimate: Estimate, estimator: MetricEstimator, sample: int, here: int, other: int
    ) -> Estimate:
        """Return the contrast of two columns with a method that few events bear, or undefined."""
        ...


@dataclass(frozen=True)
class Comparisons:
    """Which numbers the engine makes of a metric's rows."""

    levels: bool = True  # whether there is a number for everyone and for each group
    # What a group is compared with: the ``rest`` of its attribute whose group is known, all units
    # ``outside`` it, or the ``whole`` that it is part of; None for no comparison.
    groups: Literal["outside", "rest", "whole"] | None = "rest"
    systems: bool = True  # whether systems are compared with each other
    # What to do where events are few; None leaves everything to the bootstrap.
    events: EventPolicy | None = None
    # Whether units with the same values may be resampled together: faster for flags.
    by_pattern: bool = False
    summary: Summary | None = None  # Further numbers made of the groups of one system and label


@dataclass(frozen=True)
class Needs:
    """What a metric needs beside enough units."""

    column: str  # the column of the statistic that must not be zero,
    smallest: int  # for at least so many units,
    description: str  # and what those units are, as in "3 users with the label in their history"


# The smallest difference that matters: declared beforehand, carried with every estimate.


Matters: TypeAlias = float | Mapping[str, float] | None
"""One size for all measures, one for each named measure, or none."""

MATTERS = "matters"
"""The name under which `Estimate.details` holds the declared size."""


def name_of(estimate: Estimate) -> str:
    """Return the registered name of the metric or analysis that an estimate is of.

    Examples
    --------
    >>> name_of(Estimate.undefined(metric="m", reason="none", n=0, key="recall(k=50)"))
    'recall'
    """
    return estimate.key.partition("/")[0].partition("(")[0]


def declare(estimates: Iterable[Estimate], matters: Matters) -> list[Estimate]:
    """Return estimates with the declared size among their details, where they can be tested."""
    if matters is None:
        return list(estimates)
    result = []
    for e in estimates:
        size = matters.get(name_of(e)) if isinstance(matters, Mapping) else matters
        if size is not None and e.null is not None:
            e = e.replace(details={**e.details, MATTERS: size})
        result.append(e)
    return result


def check_measures(matters: Matters, known: Iterable[str]) -> None:
    """Refuse a size for a measure that is not in the audit: it would not be used."""
    if not isinstance(matters, Mapping):
        return
    names = sorted(set(known))
    missing = [name for name in matters if name not in names]
    if missing:
        told = ", ".join(map(repr, missing))
        raise PlanError(f"matters names {told}; {hint(missing[0], names)}")


def is_beyond(estimate: Estimate) -> bool:
    """Whether the whole interval lies beyond the declared size; True where none is declared.

    The size is a distance from the value that means *no difference*; of a ratio, 0.02 means beyond
    1.02 or below 1 / 1.02. Without an interval nothing is known to lie beyond.

    Examples
    --------
    >>> e = Estimate(metric="m", value=0.03, interval=(0.01, 0.05), method="x", n=9, null=0.0)
    >>> (small,) = declare([e], 0.02)
    >>> is_beyond(e), is_beyond(small), is_beyond(small.replace(interval=(0.021, 0.05)))
    (True, False, True)
    """
    size = estimate.details.get(MATTERS)
    if size is None or estimate.null is None:
        return True
    if estimate.interval is None:
        return False
    low, high = estimate.interval
    if estimate.null == 1:
        return bool(low > 1 + size or high < 1 / (1 + size))
    return bool(low > estimate.null + size or high < estimate.null - size)
