"""What the engine makes of a metric: which levels, which contrasts, and what few events mean."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from ombud.metrics.engine.estimator import MetricEstimator
    from ombud.stats.estimate import Estimate


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
    """Which numbers the engine makes of a metric's rows.

    Parameters
    ----------
    levels
        Whether there is a number for everyone and for each group.
    groups
        What a group is compared with: the ``rest`` of its attribute whose group is known, all
        units ``outside`` it, or the ``whole`` that it is part of; None for no comparison.
    systems
        Whether systems are compared with each other.
    events
        What to do where events are few; None leaves everything to the bootstrap.
    by_pattern
        Whether units with the same values may be resampled together: faster for flags.
    summary
        Further numbers made of the groups of one system and label.
    """

    levels: bool = True
    groups: Literal["outside", "rest", "whole"] | None = "rest"
    systems: bool = True
    events: EventPolicy | None = None
    by_pattern: bool = False
    summary: Summary | None = None


@dataclass(frozen=True)
class Needs:
    """What a metric needs beside enough units.

    Parameters
    ----------
    column
        The column of the statistic that must not be zero,
    smallest
        for at least so many units,
    description
        and what those units are, as in "3 users with the label in their history".
    """

    column: str
    smallest: int
    description: str
