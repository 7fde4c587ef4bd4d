"""Suppression: how much more a group's acceptable speech is flagged than everyone's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from scipy.special import stdtr, stdtrit

from ombud.metrics.base import Outputs, Rows
from ombud.metrics.engine import correct
from ombud.metrics.estimator import Correction, MetricEstimator
from ombud.metrics.event_counts import (
    FEW,
    Counts,
    counts_of,
    events_of,
    is_independent,
)
from ombud.metrics.text_metric import OUTSIDE, WHOLE, TextMetric
from ombud.metrics.text_rows import max_score, measure_texts, was_flagged
from ombud.registry import metric
from ombud.stats.estimate import Estimate
from ombud.stats.proportions import fisher
from ombud.stats.ratios import Against, rate_ratio
from ombud.stats.statistics import Mean, Median

if TYPE_CHECKING:
    from ombud.data.dataset import Dataset

__all__ = ["RatioMetric", "Suppression"]


@dataclass(frozen=True)
class RatioMetric(TextMetric):
    """What suppression, its largest and its pooled values have in common."""

    by: Literal["flags", "scores"] = "flags"
    categories: tuple[str, ...] = ()
    among: Literal["all", "identity"] = "all"
    events: int = 5

    null: ClassVar[float | None] = 1.0
    contrast: ClassVar[Literal["difference", "ratio"]] = "ratio"

    @property
    def statistic(self) -> Mean | Median:
        """How one number is made of many texts."""
        return Mean() if self.by == "flags" else Median()

    def measure(self, outputs: Outputs, data: Dataset) -> Rows:
        """Return the flag or the score of each text that should not be flagged."""
        if self.by == "flags":
            return measure_texts(
                outputs, data, was_flagged, among=self.among, families=self.families
            )
        return measure_texts(
            outputs,
            data,
            lambda decisions: max_score(decisions, self.categories, self.title),
            among=self.among,
            needed="score",
            families=self.families,
        )

    @property
    def title(self) -> str:
        """The name as printed."""
        return self.named("suppression")

    def named(self, name: str) -> str:
        """Return a title that says what the ratio is of."""
        return name if self.by == "flags" else f"{name} by median score"

    def whole_is_too_rare(self, drawn: MetricEstimator, sample: int) -> str:
        """Return why nothing can be compared with the whole; empty when it can."""
        if self.by == "scores":
            whole = float(drawn.replicates.point[sample, 0])
            if np.isnan(whole):
                return "the system gives no scores"
            return "" if whole > 0 else f"the median score of all texts is {whole:g}"
        flagged = events_of(drawn, sample, 0)
        if flagged >= self.events:
            return ""
        return f"not enough data: {flagged:g} flagged texts in all, at least {self.events} wanted"


@metric("suppression")
@dataclass(frozen=True)
class Suppression(RatioMetric):
    r"""False-positive rate of a group over that of all texts; or of median scores.

    .. math:: \frac{FPR_g}{FPR_{all}} \quad\text{or}\quad \frac{med_g}{med_{all}}

    1 means that the group's acceptable texts are flagged as often as all acceptable texts; above 1,
    more often. A group is part of the whole, so both move together when texts are resampled. With
    fewer than 10 flagged or allowed texts in the group, and independent texts, the interval is the
    closed form for a rate within its whole. The p-value of independent texts is Fisher's; groups
    with too few flags count in the correction, since their flags decide whether they are tested.

    - **Unit of resampling**: the text, or what texts share (a template, a show).
    - **Undefined**: when the group has too few texts, when too few texts are flagged in all, when
      too few are flagged in the group and no more were to be expected, or when the median score
      of all texts is 0.
    - **Does not capture**: how often anyone is flagged (read it beside the rate), who speaks (the
      group is named in the text), or whether the labels are right for all groups alike.

    Parameters
    ----------
    families
        Whether each family of texts (traditional, generative) is also measured alone.
    by
        ``flags``: rates of flags; ``scores``: medians of the score.
    categories, among
        As in `MedianScore`.
    events
        With fewer flagged texts in all, there is no ratio; nor for a group with fewer (in so many
        clusters, where texts share something), unless so many would be flagged at the rate of all
        texts and fewer are: so no flag in a large group is a finding, and two in a small one none.
    against
        ``all``: over all texts, the group's own included; ``outside``: over the texts that do
        not name the group, which says more about large groups.

    References
    ----------
    Proebsting et al., *Identity-related Speech Suppression in Generative AI Content Moderation*.
    """

    against: Literal["all", "outside"] = "all"

    @property
    def title(self) -> str:
        """The name as printed."""
        name = "suppression" if self.against == "all" else "suppression against other texts"
        return self.named(name)

    def estimates(self, drawn: MetricEstimator) -> list[Estimate]:
        """Return each group over all texts, or over the texts outside it."""
        layout = drawn.layout
        cells = [
            (s, w, g)
            for s in range(len(layout.systems))
            for w in range(len(layout.labels))
            for g in range(len(layout.groups))
        ]
        against = WHOLE if self.against == "all" else OUTSIDE
        result = [self._ratio(drawn, *cell, against) for cell in cells]
        return _correct(result, drawn.settings.correction)

    def _ratio(
        self, drawn: MetricEstimator, system: int, label: int, group: int, against: str
    ) -> Estimate:
        here, sample = 1 + group, drawn.layout.sample(system, label)
        other = 0 if against == WHOLE else drawn.layout.rest(group)
        rare = self.whole_is_too_rare(drawn, sample)
        if rare:
            about = drawn.about(system, label, here) | {"kind": "ratio", "against": against}
            n = int(drawn.replicates.n[sample, here])
            return Estimate.undefined(metric=self.title, reason=rare, n=n, null=1.0, **about)
        result = drawn.between(system, label, here, other, against)
        if result.value is None:
            return result
        # What stands behind a ratio is its smaller part, which is the group.
        result = result.replace(n=int(drawn.replicates.n[sample, here]))
        if self.by == "scores":
            return result
        part, whole = counts_of(drawn, sample, here), counts_of(drawn, sample, 0)
        details = {
            "events": part.events,
            "texts": part.texts,
            "other_events": whole.events,
            "other_texts": whole.texts,
        }
        if few := self._too_few(part, whole, is_independent(drawn, sample)):
            about = drawn.about(system, label, here) | {"kind": "ratio", "against": against}
            about["details"] = details | {"few_events": True}
            return Estimate.undefined(metric=self.title, reason=few, n=result.n, null=1.0, **about)
        note = "; ".join(filter(None, [_support(part), result.note]))
        result = result.replace(note=note, details=details)
        if not is_independent(drawn, sample):
            return _with_clusters_counted(result, part)
        if min(part.events, part.texts - part.events) < FEW:
            result = _closed_form(result, part, whole, "whole" if other == 0 else "complement")
        return _exactly_tested(result, part, whole)

    def _too_few(self, part: Counts, whole: Counts, independent: bool) -> str:
        """Return why the flags of a group say nothing; empty when they do.

        Few flags say something where many were to be expected: that there is little suppression.
        """
        expected = part.texts * whole.events / whole.texts
        seen = part.events if independent else min(part.events, part.with_event)
        if seen >= self.events or part.events < expected >= self.events:
            return ""
        where = "" if independent else f" in {part.with_event} clusters"
        wanted = f"at least {self.events} wanted, or expected from the rate of all texts"
        return f"not enough data: only {_support(part)}{where}, {wanted}"


def _with_clusters_counted(found: Estimate, part: Counts) -> Estimate:
    """Say so when the flags of a group stand in few clusters."""
    count = part.with_event
    if count >= FEW:
        return found
    if count < 2:
        where = "1 cluster" if count else "0 clusters"
        reason = f"none: flags in {where}, so there is no spread between clusters"
        return found.replace(interval=None, method=reason, p_value=None)
    text = f"flags in {count} clusters only: the interval is rough and rather too short"
    p = found.p_value
    if p is not None:
        # The clusters with a flag carry the test, so they set its degrees of freedom.
        t = float(stdtrit(max(found.n - 1, 1), 1 - p / 2))
        p = float(2 * stdtr(count - 1, -t))
    return found.replace(p_value=p, note="; ".join(filter(None, [found.note, text])))


def _support(part: Counts) -> str:
    return f"{part.events:,.6g} of {part.texts:,} texts flagged"


def _closed_form(found: Estimate, part: Counts, whole: Counts, against: Against) -> Estimate:
    counts = (part.events, part.texts, whole.events, whole.texts)
    ratio = rate_ratio(*counts, level=found.level, against=against)
    low, high = float(ratio.low), float(ratio.high)
    if np.isnan(low):
        return found
    return found.replace(
        interval=(low, high),
        method="log-delta" if part.events > 0 else "log-delta with one half added",
        undefined_replicates=0,
        note=_support(part),
    )


def _exactly_tested(found: Estimate, part: Counts, whole: Counts) -> Estimate:
    """Test that a group's rate is that of its whole, which it is just when it is the rest's.

    The log of a ratio alarms too often above 1: there its standard error is small by chance.
    """
    rest = (whole.events - part.events, whole.texts - part.texts)
    p = fisher(part.events, part.texts, *rest)
    return found if np.isnan(p) else found.replace(p_value=p)


def _correct(found: Sequence[Estimate], correction: Correction) -> list[Estimate]:
    """Correct over all groups that could have been tested, had they had more flags.

    Whether a small group is tested hangs on its flags; left out of the count, those that happen
    to have many would be corrected over too few.
    """
    hidden = [bool(e.details.get("few_events")) for e in found]
    counted = [e.replace(p_value=1.0) if few else e for e, few in zip(found, hidden, strict=True)]
    corrected = correct(counted, correction)
    return [e if few else other for e, few, other in zip(found, hidden, corrected, strict=True)]
