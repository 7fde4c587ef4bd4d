"""Suppression with partial pooling over groups."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ombud.metrics.engine.comparisons import WHOLE, Comparisons
from ombud.metrics.engine.estimator import MetricEstimator
from ombud.questions.suppression.largest import comparable_groups
from ombud.questions.suppression.ratio import RatioMetric
from ombud.registry import metric
from ombud.stats.estimate import Estimate
from ombud.stats.pooling import partially_pool

_LEAST = 3


@metric("pooled-suppression")
@dataclass(frozen=True)
class PooledSuppression(RatioMetric):
    r"""Suppression of each group, drawn towards that of all groups as far as it is noisy.

    .. math:: \log \hat\theta_g \sim N(\log \theta_g, V), \qquad
              \log \theta_g \sim N(\mu, \tau^2)

    with V the covariance of the log ratios over joint replicates; :math:`\mu` and :math:`\tau` are
    averaged over. Small groups stop looking extreme by chance; large groups hardly move.

    - **Unit of resampling**: the text, or what texts share (a template, a show).
    - **Undefined**: for groups with too few texts or flagged texts, and with fewer than three
      groups left.
    - **Does not capture**: that groups may differ for reasons of their own; a group that truly is
      an exception is drawn in as well; and it is no test. Read it beside the raw ratio.

    Parameters
    ----------
    families, by, categories, among
        As in `Suppression`.
    events
        Groups with fewer flagged texts are left out.

    References
    ----------
    Rubin (1981), Journal of Educational Statistics 6, 377-401.
    """

    @property
    def title(self) -> str:
        """The name as printed."""
        return self.named("pooled suppression")

    @property
    def comparisons(self) -> Comparisons:
        """Numbers made of all groups together."""
        return Comparisons(
            levels=False, groups=None, systems=False, by_pattern=True, summary=self._pooled
        )

    def _pooled(self, drawn: MetricEstimator, system: int, label: int) -> list[Estimate]:
        sample = drawn.layout.sample(system, label)
        rare = self.policy.whole_is_too_rare(drawn, sample)
        groups = [] if rare else comparable_groups(drawn, self, sample)
        columns = [1 + g for g in groups]
        with np.errstate(all="ignore"):
            logs = np.log(
                drawn.replicates.draws[:, sample, columns] / drawn.replicates.draws[:, sample, :1]
            )
            values = np.log(
                drawn.replicates.point[sample, columns] / drawn.replicates.point[sample, 0]
            )
        complete = np.asarray(np.isfinite(logs)).all(axis=1)
        enough = len(groups) >= _LEAST and 2 * np.count_nonzero(complete) > len(logs)
        pooled = None
        if enough:
            covariance = np.cov(logs[complete], rowvar=False)
            pooled = partially_pool(values, covariance, drawn.settings.level)
        estimates = []
        for g in range(len(drawn.layout.groups)):
            about = drawn.about(system, label, 1 + g)
            about |= {"kind": "ratio", "against": WHOLE}
            n = int(drawn.replicates.n[sample, 1 + g])
            if pooled is None or g not in groups:
                reason = rare or "not enough data: too few texts or flagged texts in the group"
                code = "too-few-events"
                if not rare and g in groups:
                    code = "too-few-groups"
                    reason = f"{len(groups)} groups with enough data; {_LEAST} are needed to pool"
                estimates.append(
                    Estimate.undefined(
                        reason_code=code, metric=self.title, reason=reason, n=n, **about
                    )
                )
                continue
            index = groups.index(g)
            estimates.append(
                Estimate(
                    metric=self.title,
                    value=float(np.exp(pooled.value[index])),
                    interval=(float(np.exp(pooled.low[index])), float(np.exp(pooled.high[index]))),
                    method="partial pooling",
                    n=n,
                    **about,
                )
            )
        return estimates
