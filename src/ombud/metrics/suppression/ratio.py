"""Suppression: how much more a group's acceptable speech is flagged than everyone's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from scipy.special import ndtr, stdtr, stdtrit

from ombud.metrics.base import Outputs, Rows
from ombud.metrics.drawn import Drawn
from ombud.metrics.engine import correct
from ombud.metrics.suppression.base import OUTSIDE, WHOLE, TextMetric
from ombud.metrics.suppression.texts import max_score, measure_texts, was_flagged
from ombud.registry import metric
from ombud.stats.estimate import Estimate
from ombud.stats.proportions import normal_quantile
from ombud.stats.ratios import Against, rate_ratio
from ombud.stats.statistics import Mean, Median

if TYPE_CHECKING:
    from ombud.data.dataset import Dataset

__all__ = ["FEW", "RatioMetric", "Suppression", "events_of"]

FEW = 10
"""With fewer flagged (or allowed) texts, the closed form replaces the bootstrap."""


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

    def whole_is_too_rare(self, drawn: Drawn, sample: int) -> str:
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


def events_of(drawn: Drawn, sample: int, column: int) -> float:
    """Return how many texts of a column of the replicates were flagged."""
    values = drawn.replicates.samples[sample].values[:, 0]
    inside = drawn.replicates.design.member[:, column]
    return float(np.nansum(values[inside]))


def _texts_of(drawn: Drawn, sample: int, column: int) -> int:
    values = drawn.replicates.samples[sample].values[:, 0]
    return int(np.count_nonzero(~np.isnan(values[drawn.replicates.design.member[:, column]])))


@metric("suppression")
@dataclass(frozen=True)
class Suppression(RatioMetric):
    r"""False-positive rate of a group over that of all texts; or of median scores.

    .. math:: \frac{FPR_g}{FPR_{all}} \quad\text{or}\quad \frac{med_g}{med_{all}}

    1 means that the group's acceptable texts are flagged as often as all acceptable texts; above 1,
    more often. A group is part of the whole, so both move together when texts are resampled. With
    fewer than 10 flagged or allowed texts in the group, and independent texts, the interval is the
    closed form for a rate within its whole.

    - **Unit of resampling**: the text, or what texts share (a template, a show).
    - **Undefined**: when the group has too few texts, when too few texts are flagged in all, or
      when the median score of all texts is 0.
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
        With fewer flagged texts in all, there is no ratio.
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

    def estimates(self, drawn: Drawn) -> list[Estimate]:
        """Return each group over all texts, or over the texts outside it."""
        layout = drawn.layout
        cells = [
            (s, w, g)
            for s in range(len(layout.systems))
            for w in range(len(layout.labels))
            for g in range(len(layout.groups))
        ]
        against = WHOLE if self.against == "all" else OUTSIDE
        found = [self._ratio(drawn, *cell, against) for cell in cells]
        return correct(found, drawn.settings.correction)

    def _ratio(self, drawn: Drawn, system: int, label: int, group: int, against: str) -> Estimate:
        here, sample = 1 + group, drawn.layout.sample(system, label)
        other = 0 if against == WHOLE else drawn.layout.rest(group)
        rare = self.whole_is_too_rare(drawn, sample)
        if rare:
            about = drawn.about(system, label, here) | {"kind": "ratio", "against": against}
            n = int(drawn.replicates.n[sample, here])
            return Estimate.undefined(metric=self.title, reason=rare, n=n, null=1.0, **about)
        found = drawn.between(system, label, here, other, against)
        if found.value is None:
            return found
        # What stands behind a ratio is its smaller part, which is the group.
        found = found.with_(n=int(drawn.replicates.n[sample, here]))
        if self.by == "scores":
            return found
        flagged, texts = events_of(drawn, sample, here), _texts_of(drawn, sample, here)
        found = found.with_(note="; ".join(filter(None, [_support(flagged, texts), found.note])))
        if not _independent(drawn, sample):
            return _with_clusters_counted(drawn, found, sample, here)
        if min(flagged, texts - flagged) >= FEW:
            return found
        return _closed_form(drawn, found, sample, here, "whole" if other == 0 else "complement")


def _independent(drawn: Drawn, sample: int) -> bool:
    """Whether every text that counts stands alone."""
    design = drawn.replicates.design
    if design.order is None:
        return True
    known = ~np.isnan(drawn.replicates.samples[sample].values[:, 0])
    return len(np.unique(design.cluster[known])) == int(np.count_nonzero(known))


def _with_clusters_counted(drawn: Drawn, found: Estimate, sample: int, column: int) -> Estimate:
    """Say so when the flags of a group stand in few clusters."""
    design = drawn.replicates.design
    flagged = design.member[:, column] & (drawn.replicates.samples[sample].values[:, 0] > 0)
    count = len(np.unique(design.cluster[flagged]))
    if count >= FEW:
        return found
    words = f"flags in {count} clusters only: the interval is rough and rather too short"
    p = found.p_value
    if p is not None and count > 1:
        # The clusters with a flag carry the test, so they set its degrees of freedom.
        t = float(stdtrit(max(found.n - 1, 1), 1 - p / 2))
        p = float(2 * stdtr(count - 1, -t))
    return found.with_(p_value=p, note="; ".join(filter(None, [found.note, words])))


def _support(flagged: float, texts: int) -> str:
    return f"{flagged:,.6g} of {texts:,} texts flagged"


def _closed_form(
    drawn: Drawn, found: Estimate, sample: int, column: int, against: Against
) -> Estimate:
    e, n = events_of(drawn, sample, column), _texts_of(drawn, sample, column)
    whole = (events_of(drawn, sample, 0), _texts_of(drawn, sample, 0))
    ratio = rate_ratio(e, n, *whole, level=found.level, against=against)
    low, high = float(ratio.low), float(ratio.high)
    if np.isnan(low):
        return found
    p = None
    if low > 0 and ratio.ratio > 0:
        error = np.log(high / low) / (2 * normal_quantile(found.level))
        p = float(2 * ndtr(-abs(np.log(float(ratio.ratio)) / error)))
    return found.with_(
        interval=(low, high),
        method="log-delta" if e > 0 else "log-delta with one half added",
        p_value=p,
        undefined_replicates=0,
        note=_support(e, n),
    )
