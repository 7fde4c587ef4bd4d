"""Rates that rest on few events: exact intervals and tests, or the words "not enough data"."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import stdtr, stdtrit

from ombud.stats.estimate import Estimate
from ombud.stats.proportions import exact_difference, fisher
from ombud.stats.ratios import Against, rate_ratio

if TYPE_CHECKING:
    from ombud.metrics.estimator import MetricEstimator

__all__ = ["FEW", "Counts", "GapPolicy", "RatioPolicy", "counts_of", "events_of", "is_independent"]

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


def _both(part: Counts, other: Counts) -> dict[str, Any]:
    return {
        "events": part.events,
        "texts": part.texts,
        "other_events": other.events,
        "other_texts": other.texts,
    }


def _joined(*notes: str) -> str:
    return "; ".join(filter(None, notes))


@dataclass(frozen=True)
class GapPolicy:
    """A difference of two rates: exact where events are few, refused where clusters are.

    Parameters
    ----------
    event
        What happened to a text, in a participle.
    is_rate
        Whether the metric is a rate at all; a median is only given its number of texts.
    """

    event: str = "flagged"
    is_rate: bool = True

    def whole_is_too_rare(self, estimator: MetricEstimator, sample: int) -> str:
        """Return nothing: a gap needs no whole."""
        del estimator, sample
        return ""

    def refine(
        self, estimate: Estimate, estimator: MetricEstimator, sample: int, here: int, other: int
    ) -> Estimate:
        """Return the gap, exact where events are few."""
        columns = (here, other)
        # Of all texts in both parts, the smaller one limits what can be known.
        n = min(int(estimator.replicates.n[sample, column]) for column in columns)
        estimate = estimate.replace(n=n)
        if not self.is_rate:
            return estimate
        parts = [counts_of(estimator, sample, column) for column in columns]
        text = ", ".join(
            f"{part.events:,.6g} of {part.texts:,} {where} {self.event}"
            for part, where in zip(parts, ("texts", "others"), strict=True)
        )
        estimate = estimate.replace(note=_joined(text, estimate.note), details=_both(*parts))
        if not any(part.are_few for part in parts):
            return estimate
        if is_independent(estimator, sample):
            return _exact_gap(estimate, parts[0], parts[1], text)
        reason = f"not enough data: {text}; {FEW} clusters with and without wanted in each part"
        return estimate.without_value(reason, null=0.0)


def _exact_gap(estimate: Estimate, one: Counts, other: Counts, text: str) -> Estimate:
    counts = (one.events, one.texts, other.events, other.texts)
    return estimate.replace(
        interval=exact_difference(*counts, estimate.level),
        method="exact (Newcombe from Clopper-Pearson; p by Fisher)",
        p_value=fisher(*counts),
        undefined_replicates=0,
        note=text,
    )


@dataclass(frozen=True)
class RatioPolicy:
    """A rate over that of a whole: closed forms and exact tests where texts stand alone.

    Parameters
    ----------
    smallest
        With fewer events in all there is no ratio; nor for a group with fewer, unless so many
        were to be expected.
    of_medians
        Whether the ratio is of medians, not of rates.
    """

    smallest: int = 5
    of_medians: bool = False

    def whole_is_too_rare(self, estimator: MetricEstimator, sample: int) -> str:
        """Return why nothing can be compared with the whole; empty when it can."""
        if self.of_medians:
            whole = float(estimator.replicates.point[sample, 0])
            if np.isnan(whole):
                return "the system gives no scores"
            return "" if whole > 0 else f"the median score of all texts is {whole:g}"
        flagged = events_of(estimator, sample, 0)
        if flagged >= self.smallest:
            return ""
        return f"not enough data: {flagged:g} flagged texts in all, at least {self.smallest} wanted"

    def refine(
        self, estimate: Estimate, estimator: MetricEstimator, sample: int, here: int, other: int
    ) -> Estimate:
        """Return the ratio with the closed form and the exact test, or why there is none."""
        # What stands behind a ratio is its smaller part, which is the group.
        estimate = estimate.replace(n=int(estimator.replicates.n[sample, here]))
        if self.of_medians:
            return estimate
        independent = is_independent(estimator, sample)
        part, whole = counts_of(estimator, sample, here), counts_of(estimator, sample, 0)
        note = _joined(_support(part), estimate.note)
        if few := self._too_few(part, whole, independent):
            details = _both(part, whole) | {"few_events": True}
            return estimate.replace(details=details).without_value(few, null=1.0)
        estimate = estimate.replace(note=note, details=_both(part, whole))
        if not independent:
            return _with_clusters_counted(estimate, part, len(estimator.replicates.draws))
        if min(part.events, part.texts - part.events) < FEW:
            estimate = _closed_form(estimate, part, whole, "complement" if other else "whole")
        return _exactly_tested(estimate, part, whole)

    def _too_few(self, part: Counts, whole: Counts, independent: bool) -> str:
        """Return why the flags of a group say nothing; empty when they do.

        Few flags say something where many were to be expected: that there is little suppression.
        """
        expected = part.texts * whole.events / whole.texts
        seen = part.events if independent else min(part.events, part.with_event)
        if seen >= self.smallest or part.events < expected >= self.smallest:
            return ""
        where = "" if independent else f" in {part.with_event} clusters"
        wanted = f"at least {self.smallest} wanted, or expected from the rate of all texts"
        return f"not enough data: only {_support(part)}{where}, {wanted}"


def _with_clusters_counted(estimate: Estimate, part: Counts, replicates: int) -> Estimate:
    """Say so when the flags of a group stand in few clusters."""
    count = part.with_event
    if count >= FEW:
        return estimate
    if count < 2:
        where = "1 cluster" if count else "0 clusters"
        reason = f"none: flags in {where}, so there is no spread between clusters"
        return estimate.replace(interval=None, method=reason, p_value=None)
    text = f"flags in {count} clusters only: the interval is rough and rather too short"
    p = estimate.p_value if estimate.p_tail is None else estimate.p_tail
    if p is not None:
        # The clusters with a flag carry the test, so they set its degrees of freedom.
        t = -float(stdtrit(max(estimate.n - 1, 1), p / 2))
        estimate = estimate.resampled_p(float(2 * stdtr(count - 1, -t)), replicates)
    return estimate.replace(note="; ".join(filter(None, [estimate.note, text])))


def _support(part: Counts) -> str:
    return f"{part.events:,.6g} of {part.texts:,} texts flagged"


def _closed_form(estimate: Estimate, part: Counts, whole: Counts, against: Against) -> Estimate:
    counts = (part.events, part.texts, whole.events, whole.texts)
    ratio = rate_ratio(*counts, level=estimate.level, against=against)
    low, high = float(ratio.low), float(ratio.high)
    if np.isnan(low):
        return estimate
    return estimate.replace(
        interval=(low, high),
        method="log-delta" if part.events > 0 else "log-delta with one half added",
        undefined_replicates=0,
        note=_support(part),
    )


def _exactly_tested(estimate: Estimate, part: Counts, whole: Counts) -> Estimate:
    """Test that a group's rate is that of its whole, which it is just when it is the rest's.

    The log of a ratio alarms too often above 1: there its standard error is small by chance.
    """
    rest = (whole.events - part.events, whole.texts - part.texts)
    p = fisher(part.events, part.texts, *rest)
    return estimate if np.isnan(p) else estimate.replace(p_value=p)
