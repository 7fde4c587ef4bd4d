"""Rates that rest on few events: exact intervals and tests, or the words "not enough data"."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit

from ombud.metrics.engine.estimator import MetricEstimator
from ombud.stats.bootstrap.binned import BinnedReplicates
from ombud.stats.bootstrap.patterns import PatternReplicates
from ombud.stats.clustered_rates import (
    ClusterScore,
    RateSums,
    cluster_moments,
    cluster_score_test,
    design_effect,
    intracluster_correlation,
    log_ratio_error,
    score_rate_ratio,
)
from ombud.stats.estimate import Estimate
from ombud.stats.proportions import exact_difference, fisher, wilson
from ombud.stats.ratios import Against, rate_ratio, selected_rate_ratio

FEW = 10
"""With fewer events (or texts without) in a part, the bootstrap shows too little spread."""


@dataclass(frozen=True)
class Counts:
    """What stands behind the rate of one part."""

    # How many texts have the event (a text that was asked about repeatedly counts with its share),
    # and how many there are.
    events: float
    texts: int
    # In how many clusters there is an event, and a text without it; texts that stand alone are
    # clusters of their own.
    with_event: int
    without: int

    @property
    def are_few(self) -> bool:
        """Whether the events, or the texts without, are too few to be resampled."""
        others = self.texts - self.events
        return min(self.events, others, self.with_event, self.without) < FEW


def counts_of(drawn: MetricEstimator, sample: int, column: int) -> Counts:
    """Return what stands behind a column of the replicates."""
    if (rates := _rates(drawn)) is not None:
        place = (column, sample)
        return Counts(
            float(rates.events[place]),
            int(rates.units[place]),
            int(rates.with_event[place]),
            int(rates.without[place]),
        )
    replicates = drawn.replicates
    values = replicates.samples[sample].values[:, 0]
    if isinstance(replicates, PatternReplicates):
        values = values[replicates.first]
        known = replicates.member[:, column] & ~np.isnan(values)
        some, many = values[known], replicates.counts[known]
        alone = int(many[some > 0].sum()), int(many[some < 1].sum())
        return Counts(float(many @ some), int(many.sum()), *alone)
    design = replicates.design
    known = design.member[:, column] & ~np.isnan(values)
    some = values[known]
    if design.order is None:
        alone = int(np.count_nonzero(some > 0)), int(np.count_nonzero(some < 1))
        return Counts(float(some.sum()), len(some), *alone)
    cluster = design.cluster[known]
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
    if (rates := _rates(drawn)) is not None:
        return bool(rates.independent[sample])
    design = drawn.replicates.design
    if design.order is None:
        return True
    known = ~np.isnan(drawn.replicates.samples[sample].values[:, 0])
    return len(np.unique(design.cluster[known])) == int(np.count_nonzero(known))


def _units(
    drawn: MetricEstimator, sample: int
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.bool_]]:
    """Return the values, clusters and memberships of the texts that count."""
    design = drawn.replicates.design
    values = drawn.replicates.samples[sample].values[:, 0]
    known = ~np.isnan(values)
    clusters = np.arange(len(values)) if design.order is None else design.cluster
    return values[known], clusters[known], design.member[known]


def _rates(drawn: MetricEstimator) -> RateSums | None:
    """Return the sums behind rates that were measured in blocks; None where texts are at hand."""
    replicates = drawn.replicates
    return replicates.rates if isinstance(replicates, BinnedReplicates) else None


def _score_of(drawn: MetricEstimator, sample: int, here: int) -> ClusterScore:
    if (rates := _rates(drawn)) is not None:
        return rates.score(here, sample)
    values, clusters, member = _units(drawn, sample)
    return cluster_score_test(values, member[:, here], clusters)


def _worth(drawn: MetricEstimator, sample: int, column: int) -> float:
    """Return the design effect of a part's rate; without any spread, clusters count as one text."""
    if (rates := _rates(drawn)) is not None:
        return rates.effect(column, sample)
    values, clusters, member = _units(drawn, sample)
    correlation = intracluster_correlation(values, clusters)
    if np.isnan(correlation):
        correlation = 1.0
    inside = member[:, column]
    return design_effect(values[inside], clusters[inside], correlation)[0]


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
    """A difference of two rates: exact where events are few, by their worth where clusters are."""

    event: str = "flagged"  # what happened to a text, in a participle
    # Whether the metric is a rate at all; a median is only given its number of texts.
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
        estimate = estimate.replace(
            note=_joined(text, estimate.note), details={**estimate.details, **_both(*parts)}
        )
        if not any(part.are_few for part in parts):
            return estimate
        if is_independent(estimator, sample):
            return _exact_gap(estimate, parts[0], parts[1], text)
        return _worth_gap(estimate, parts[0], parts[1], _score_of(estimator, sample, here))

    def level(
        self, estimate: Estimate, estimator: MetricEstimator, sample: int, column: int
    ) -> Estimate:
        """Return a rate, with Wilson's interval where events (or texts without) are few."""
        if not self.is_rate or estimate.value is None:
            return estimate
        part = counts_of(estimator, sample, column)
        estimate = estimate.replace(
            details=dict(estimate.details) | {"events": part.events, "texts": part.texts}
        )
        if not part.are_few:
            return estimate
        effect, method = 1.0, "wilson"
        if not is_independent(estimator, sample):
            effect = _worth(estimator, sample, column)
            method = f"wilson on {part.texts / effect:,.4g} effective texts"
        low, high = wilson(part.events / effect, part.texts / effect, estimate.level)
        note = _joined(f"{part.events:,.6g} of {part.texts:,} {self.event}", estimate.note)
        return estimate.replace(
            interval=(float(low), float(high)), method=method, undefined_replicates=0, note=note
        )


def _worth_gap(estimate: Estimate, one: Counts, other: Counts, score: ClusterScore) -> Estimate:
    """Return a gap with few clusters: each count for what it is worth in independent texts."""
    if np.isnan(score.p):
        reason = "no text, or every text, has the event in both parts"
        return estimate.replace(interval=None, method=f"none: {reason}", p_value=None)
    effect = max(score.effect, 1.0)
    counts = [count / effect for count in (one.events, one.texts, other.events, other.texts)]
    return estimate.replace(
        interval=exact_difference(counts[0], counts[1], counts[2], counts[3], estimate.level),
        method=f"Newcombe from Clopper-Pearson on texts over {effect:.3g}; p by cluster score test",
        p_value=score.p,
        undefined_replicates=0,
    )


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
    """A rate over that of a whole: closed forms and exact tests where texts stand alone."""

    # With fewer events in all there is no ratio; nor for a group with fewer, unless so many were to
    # be expected.
    smallest: int = 5
    of_medians: bool = False  # whether the ratio is of medians, not of rates
    event: str = "flagged"  # what happened to a text, in a participle

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
        seen = f"{flagged:g} {self.event} texts in all"
        return f"not enough data: {seen}, at least {self.smallest} wanted"

    def level(
        self, estimate: Estimate, estimator: MetricEstimator, sample: int, column: int
    ) -> Estimate:
        """Return the number as it is: ratios have no levels."""
        del estimator, sample, column
        return estimate

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
        note = _joined(_support(part, self.event), estimate.note)
        if few := self._too_few(part, whole, independent):
            details = {**estimate.details, **_both(part, whole), "few_events": True}
            return estimate.replace(details=details).without_value(few, "too-few-events", null=1.0)
        compared = counts_of(estimator, sample, other) if other else whole
        estimate = estimate.replace(
            note=note, details={**estimate.details, **_both(part, compared)}
        )
        expected = part.texts * whole.events / whole.texts
        if expected < self.smallest:
            return self._selected(estimate, estimator, (sample, here), expected, of_whole=not other)
        if not independent:
            moments = _moments(estimator, sample, here)
            counts = (part.events, float(part.texts), whole.events, float(whole.texts))
            error = log_ratio_error(counts, moments, of_whole=not other) if part.events else 0.0
            error *= float(np.sqrt(estimate.n / max(estimate.n - 1, 1)))
            estimate = _with_clusters_counted(estimate, part, error)
            if estimate.value is not None and estimate.value < 1:
                score = _score_of(estimator, sample, here)
                return _scored_below(estimate, part, whole, score, of_whole=not other, said=note)
            return estimate
        if min(part.events, part.texts - part.events) < FEW:
            against: Against = "complement" if other else "whole"
            estimate = _closed_form(estimate, part, whole, against, _support(part, self.event))
        return _exactly_tested(estimate, part, whole)

    def _selected(
        self,
        estimate: Estimate,
        estimator: MetricEstimator,
        place: tuple[int, int],
        expected: float,
        *,
        of_whole: bool,
    ) -> Estimate:
        """Return a ratio that is shown only because many were flagged, valid among those shown."""
        sample, here = place
        part, whole = counts_of(estimator, sample, here), counts_of(estimator, sample, 0)
        rest = whole.events - part.events, float(whole.texts - part.texts)
        units, spread = (part.events, float(part.texts), float(self.smallest)), 0.0
        if not is_independent(estimator, sample):
            effect = max(_score_of(estimator, sample, here).effect, 1.0)
            rest = rest[0] / effect, rest[1] / effect
            hit = float(part.with_event)
            units = hit, float(estimate.n), float(self.smallest)
            squares = float(_moments(estimator, sample, here)[0, 0])
            spread = float(np.sqrt(max(squares * hit / part.events**2 - 1, 0.0) / hit))

        def ends(level: float) -> tuple[float, float]:
            return selected_rate_ratio(
                units,
                rest,
                share=part.texts / whole.texts if of_whole else None,
                rate=part.events / part.texts,
                spread=spread,
                level=level,
            )

        # The p-value is one minus the level of the widest interval without 1.
        low, high = 0.0, 1.0
        for _ in range(30):
            p = (low + high) / 2
            bottom, top = ends(1 - p)
            low, high = (low, p) if not bottom <= 1 <= top else (p, high)
        text = (
            f"shown because {part.events:,.6g} were {self.event} where {expected:.2g} were "
            "expected: too high on average, which the interval allows for"
        )
        return estimate.replace(
            interval=ends(estimate.level),
            p_value=high,
            method="exact, given that enough were flagged for a ratio (MOVER)",
            undefined_replicates=0,
            note=_joined(estimate.note, text),
            details={**estimate.details, "selected": True},
        )

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
        return f"not enough data: only {_support(part, self.event)}{where}, {wanted}"


def _scored_below(
    estimate: Estimate,
    part: Counts,
    whole: Counts,
    score: ClusterScore,
    *,
    of_whole: bool,
    said: str,
) -> Estimate:
    """Return a ratio below 1 with the test, and where events are few the interval, of the score.

    There the log ratio takes its spread from the few flags of the group, and hardly ever alarms.
    """
    if np.isnan(score.p):
        return estimate
    estimate = estimate.replace(
        p_value=score.p, details=dict(estimate.details) | {"test": "cluster score"}
    )
    enough = not part.are_few and estimate.n >= 2 * FEW
    if estimate.interval is not None and enough:
        return estimate
    counts = (part.events, part.texts, whole.events - part.events, whole.texts - part.texts)
    low, high = score_rate_ratio(
        *(count / score.effect for count in counts), level=estimate.level, of_whole=of_whole
    )
    if not np.isfinite([low, high]).all():
        return estimate
    return estimate.replace(
        interval=(low, high),
        method=f"score, on texts over their design effect of {score.effect:.3g}",
        undefined_replicates=0,
        note=_joined(said, f"in {part.with_event} clusters"),
    )


def _with_clusters_counted(estimate: Estimate, part: Counts, error: float) -> Estimate:
    """Return a ratio with the interval and test of a log ratio whose spread few clusters carry.

    The clusters with a flag carry the spread, so they set the degrees of freedom.
    """
    hit = part.with_event
    if hit < 2:
        where = "1 cluster" if hit else "0 clusters"
        reason = f"none: events in {where}, so there is no spread between clusters"
        return estimate.replace(interval=None, method=reason, p_value=None)
    if estimate.value is None or estimate.interval is None or not error > 0:
        return estimate
    reach = -float(stdtrit(hit - 1, (1 - estimate.level) / 2)) * error
    value = estimate.value
    estimate = estimate.replace(
        interval=(value * float(np.exp(-reach)), value * float(np.exp(reach))),
        method=f"log ratio, t with {hit - 1:,} degrees of freedom",
        undefined_replicates=0,
        p_value=float(2 * stdtr(hit - 1, -abs(np.log(value)) / error)),
    )
    if hit >= FEW:
        return estimate
    return estimate.replace(note=_joined(estimate.note, f"in {hit} clusters only"))


def _moments(drawn: MetricEstimator, sample: int, column: int) -> NDArray[np.float64]:
    """Return the sums over clusters behind the rate of a part."""
    if (rates := _rates(drawn)) is not None:
        return np.asarray(rates.moments[column, sample])
    values, clusters, member = _units(drawn, sample)
    return cluster_moments(values, member[:, column], clusters)


def _support(part: Counts, event: str = "flagged") -> str:
    return f"{part.events:,.6g} of {part.texts:,} texts {event}"


def _closed_form(
    estimate: Estimate, part: Counts, whole: Counts, against: Against, said: str
) -> Estimate:
    counts = (part.events, part.texts, whole.events, whole.texts)
    ratio = rate_ratio(*counts, level=estimate.level, against=against)
    low, high = float(ratio.low), float(ratio.high)
    if np.isnan(low):
        return estimate
    return estimate.replace(
        interval=(low, high),
        method="log-delta" if part.events > 0 else "log-delta with one half added",
        undefined_replicates=0,
        note=said,
    )


def _exactly_tested(estimate: Estimate, part: Counts, whole: Counts) -> Estimate:
    """Test that a group's rate is that of its whole, which it is just when it is the rest's.

    The log of a ratio alarms too often above 1: there its standard error is small by chance.
    """
    rest = (whole.events - part.events, whole.texts - part.texts)
    p = fisher(part.events, part.texts, *rest)
    return estimate if np.isnan(p) else estimate.replace(p_value=p)
