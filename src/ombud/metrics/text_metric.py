"""What the metrics of texts share: who is outside a group, and how texts are resampled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from ombud.metrics.engine import correct
from ombud.metrics.estimator import MetricEstimator
from ombud.metrics.event_counts import FEW, Counts, counts_of, is_independent
from ombud.stats.bootstrap import resample
from ombud.stats.estimate import Estimate
from ombud.stats.patterns import resample_patterns
from ombud.stats.proportions import exact_difference, fisher
from ombud.stats.ranks import resample_medians
from ombud.stats.replicates import Replicates, Sample
from ombud.stats.statistics import Mean, Median

__all__ = ["OUTSIDE", "WHOLE", "TextMetric", "resample_texts"]

WHOLE = "all texts"
"""What a group is compared with: all texts that should not be flagged, its own included."""

OUTSIDE = "texts outside the group"
"""What a group is compared with on request: the texts that do not name it."""


def resample_texts(
    samples: Sequence[Sample],
    groups: NDArray[np.bool_] | None,
    clusters: NDArray[np.int32] | None,
    replicates: int,
    rng: np.random.Generator,
) -> Replicates:
    """Resample texts (or clusters), by the fastest way that the values allow."""
    everyone = np.ones((len(samples[0].values), 1), dtype=bool) if groups is None else groups
    if isinstance(samples[0].statistic, Median):
        values = [sample.values[:, 0] for sample in samples]
        return resample_medians(
            values, groups=everyone, clusters=clusters, replicates=replicates, rng=rng
        )
    if clusters is None:
        result = resample_patterns(samples, groups=everyone, replicates=replicates, rng=rng)
        if result is not None:
            return result
    return resample(samples, groups=everyone, clusters=clusters, replicates=replicates, rng=rng)


@dataclass(frozen=True)
class TextMetric:
    """A level on texts, everyone's and each group's, and gaps to the texts outside a group."""

    families: bool = False

    registered_name: ClassVar[str]
    of: ClassVar[Literal["moderator"]] = "moderator"
    null: ClassVar[float | None] = None
    depth: ClassVar[int] = 0
    outside: ClassVar[Literal["all"]] = "all"
    contrast: ClassVar[Literal["difference", "ratio"]] = "difference"
    compares_systems: ClassVar[bool] = True
    event: ClassVar[str] = "flagged"

    @property
    def statistic(self) -> Mean | Median:
        """How one number is made of many texts."""
        return Mean()

    def resample(
        self,
        samples: Sequence[Sample],
        groups: NDArray[np.bool_] | None,
        clusters: NDArray[np.int32] | None,
        replicates: int,
        rng: np.random.Generator,
    ) -> Replicates:
        """Resample texts, or what they share."""
        return resample_texts(samples, groups, clusters, replicates, rng)

    def estimates(self, drawn: MetricEstimator) -> list[Estimate]:
        """Return levels, gaps to the texts outside each group, and gaps between systems."""
        systems, groups = range(len(drawn.layout.systems)), range(len(drawn.layout.groups))
        labels = range(len(drawn.layout.labels))
        here = [(s, w) for s in systems for w in labels]
        everyone = [drawn.level(s, w, 0) for s, w in here]
        by_group = [drawn.level(s, w, 1 + g) for s, w in here for g in groups]
        gaps = [self._gap(drawn, s, w, g) for s, w in here for g in groups]
        between = []
        if self.compares_systems:
            between = [
                drawn.system_gap(a, b, w) for a in systems for b in systems for w in labels if a < b
            ]
        families = (everyone, by_group, gaps, between)
        return [e for some in families for e in correct(some, drawn.settings.correction)]

    def _gap(self, drawn: MetricEstimator, system: int, label: int, group: int) -> Estimate:
        """Return the gap of a group to the texts outside it, exact where events are few."""
        result = drawn.group_gap(system, label, group, OUTSIDE)
        if result.value is None:
            return result
        sample = drawn.layout.sample(system, label)
        columns = (1 + group, drawn.layout.rest(group))
        # Of all texts in both parts, the smaller one limits what can be known.
        n = min(int(drawn.replicates.n[sample, column]) for column in columns)
        result = result.replace(n=n)
        if not isinstance(self.statistic, Mean):
            return result
        parts = [counts_of(drawn, sample, column) for column in columns]
        text = ", ".join(
            f"{part.events:,.6g} of {part.texts:,} {where} {self.event}"
            for part, where in zip(parts, ("texts", "others"), strict=True)
        )
        counts = {
            "events": parts[0].events,
            "texts": parts[0].texts,
            "other_events": parts[1].events,
            "other_texts": parts[1].texts,
        }
        result = result.replace(note="; ".join(filter(None, [text, result.note])), details=counts)
        if not any(part.are_few for part in parts):
            return result
        if is_independent(drawn, sample):
            return _exact_gap(result, parts[0], parts[1], text)
        about = drawn.about(system, label, 1 + group) | {"kind": result.kind, "against": OUTSIDE}
        reason = f"not enough data: {text}; {FEW} clusters with and without wanted in each part"
        return Estimate.undefined(
            metric=result.metric,
            reason=reason,
            n=n,
            null=0.0,
            details=counts,
            **about,
        )


def _exact_gap(found: Estimate, one: Counts, other: Counts, words: str) -> Estimate:
    counts = (one.events, one.texts, other.events, other.texts)
    return found.replace(
        interval=exact_difference(*counts, found.level),
        method="exact (Newcombe from Clopper-Pearson; p by Fisher)",
        p_value=fisher(*counts),
        undefined_replicates=0,
        note=words,
    )
