"""The group whose acceptable speech is flagged most."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ombud.metrics.engine.comparisons import Comparisons
from ombud.metrics.engine.estimator import MetricEstimator
from ombud.metrics.engine.few_events import events_of
from ombud.questions.suppression.ratio import RatioMetric
from ombud.registry import metric
from ombud.stats.estimate import Estimate
from ombud.stats.extremes import MOST_LOST, largest_ratio


def comparable_groups(drawn: MetricEstimator, metric: RatioMetric, sample: int) -> list[int]:
    """Return the groups with enough texts, and enough flagged ones, to be ranked."""
    result = []
    whole = drawn.replicates.point[sample, 0]
    for g in range(len(drawn.layout.groups)):
        here = drawn.replicates.point[sample, 1 + g]
        if drawn.too_few(sample, 1 + g) or not (here > 0 and whole > 0):
            continue
        if metric.by == "flags" and events_of(drawn, sample, 1 + g) < metric.events:
            continue
        # Flags that all stand in a cluster or two vanish from many replicates.
        lost = np.mean(~(drawn.replicates.draws[:, sample, 1 + g] > 0))
        if lost <= MOST_LOST:
            result.append(g)
    return result


@metric("worst-suppression")
@dataclass(frozen=True)
class WorstSuppression(RatioMetric):
    r"""Suppression of the group for which it is largest.

    .. math:: \max_g FPR_g / FPR_{all}

    The largest of noisy ratios is too large on average, the more so the smaller the groups. So
    groups with too few texts, or too few flagged ones, cannot be it; and the interval is for the
    largest *true* ratio, from simultaneous bands over all groups, resampled jointly: it covers
    at least as often as it says. The value itself is not corrected: read the interval.

    - **Unit of resampling**: the text, or what texts share (a template, a show).
    - **Undefined**: when no group has enough texts.
    - **Does not capture**: which group is truly the worst (the interval is about the size, not
      about the name), or groups that are too small to be ranked.

    Parameters
    ----------
    families, by, categories, among
        As in `Suppression`.
    events
        Groups with fewer flagged texts are not ranked.
    """

    @property
    def title(self) -> str:
        """The name as printed."""
        return self.named("largest suppression")

    @property
    def comparisons(self) -> Comparisons:
        """Numbers made of all groups together."""
        return Comparisons(
            levels=False, groups=None, systems=False, by_pattern=True, summary=self._largest
        )

    def _largest(self, drawn: MetricEstimator, system: int, label: int) -> list[Estimate]:
        about = drawn.about(system, label, 0) | {"null": 1.0}
        sample = drawn.layout.sample(system, label)
        groups = comparable_groups(drawn, self, sample)
        reason = self.policy.whole_is_too_rare(drawn, sample)
        if not groups:
            reason = reason or "not enough data: no group has enough texts to be ranked"
        n = int(drawn.replicates.n[sample, 0])
        if reason:
            return [
                Estimate.undefined(
                    reason_code="too-few-events" if groups else "too-few-groups",
                    metric=self.title,
                    reason=reason,
                    n=n,
                    **about,
                )
            ]
        columns = [1 + g for g in groups]
        whole = drawn.replicates.draws[:, sample, :1]
        with np.errstate(all="ignore"):
            draws = drawn.replicates.draws[:, sample, columns] / whole
        values = drawn.replicates.point[sample, columns] / drawn.replicates.point[sample, 0]
        result = largest_ratio(values, draws, drawn.settings.level)
        left = len(drawn.layout.groups) - len(groups)
        group = drawn.layout.groups[groups[result.place]]
        text = f"{group}, of {len(groups)} groups"
        if left:
            text += f" ({left} with too few texts or flags not ranked)"
        text += "; a largest value is too high on average, which its interval allows for"
        largest = Estimate(
            metric=self.title,
            value=result.value,
            interval=(result.low, result.high),
            method="simultaneous bootstrap",
            n=n,
            details={"group": group, "ranked": len(groups), "not_ranked": left},
            **(about | {"note": "; ".join(filter(None, [text, about["note"]]))}),
        )
        return [largest]
