"""How many texts, and how many independent ones, stand behind a rate."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ombud.metrics.estimator import MetricEstimator

__all__ = ["FEW", "Counts", "counts_of", "events_of", "is_independent"]

FEW = 10
"""With fewer events (or texts without) in a part, the bootstrap shows too little spread."""


@dataclass(frozen=True)
class Counts:
    """What stands behind the rate of one part.

    Parameters
    ----------
    events, texts
        How many texts have the event (a text that was asked about repeatedly counts with its
        share), and how many there are.
    with_event, without
        In how many clusters there is an event, and a text without it; texts that stand alone are
        clusters of their own.
    """

    events: float
    texts: int
    with_event: int
    without: int

    @property
    def are_few(self) -> bool:
        """Whether the events, or the texts without, are too few to be resampled."""
        others = self.texts - self.events
        return min(self.events, others, self.with_event, self.without) < FEW


def counts_of(drawn: MetricEstimator, sample: int, column: int) -> Counts:
    """Return what stands behind a column of the replicates."""
    design = drawn.replicates.design
    values = drawn.replicates.samples[sample].values[:, 0]
    known = design.member[:, column] & ~np.isnan(values)
    some = values[known]
    cluster = design.cluster[known] if design.order is not None else np.arange(len(some))
    return Counts(
        float(some.sum()),
        len(some),
        len(np.unique(cluster[some > 0])),
        len(np.unique(cluster[some < 1])),
    )


def events_of(drawn: MetricEstimator, sample: int, column: int) -> float:
    """Return how many texts of a column of the replicates were flagged."""
    return counts_of(drawn, sample, column).events


def is_independent(drawn: MetricEstimator, sample: int) -> bool:
    """Whether every text that counts stands alone."""
    design = drawn.replicates.design
    if design.order is None:
        return True
    known = ~np.isnan(drawn.replicates.samples[sample].values[:, 0])
    return len(np.unique(design.cluster[known])) == int(np.count_nonzero(known))
