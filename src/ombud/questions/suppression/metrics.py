"""Suppression: how much more often a group's acceptable texts are flagged than all of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from ombud.data.decisions import Decisions, Outcome
from ombud.data.exclusions import Exclusion
from ombud.data.ids import Vocabulary
from ombud.data.texts import Texts
from ombud.errors import PlanError
from ombud.metrics.base import Outputs, Rows
from ombud.metrics.engine.comparisons import WHOLE, Comparisons
from ombud.metrics.engine.estimator import MetricEstimator
from ombud.metrics.engine.few_events import RatioPolicy, events_of
from ombud.metrics.engine.text_rows import (
    EVENTS,
    HAPPENINGS,
    WITHOUT_DECISIONS,
    Happening,
    TextMetric,
    by_part,
    measure_scores,
    measure_texts,
)
from ombud.registry import metric
from ombud.stats.estimate import Estimate, ReasonCode
from ombud.stats.extremes import MOST_LOST, largest_ratio
from ombud.stats.pooling import partially_pool
from ombud.stats.statistics import Mean, Median

if TYPE_CHECKING:
    from ombud.data.dataset import Dataset


@dataclass(frozen=True)
class RatioMetric(TextMetric):
    """What suppression, its largest and its pooled values have in common."""

    by: Literal["flags", "scores"] = "flags"
    categories: tuple[str, ...] = ()
    among: Literal["all", "identity"] = "all"
    events: int = 5
    outcome: Happening = "flagged"

    @property
    def null(self) -> float | None:
        """The group's texts fare as all do."""
        return 1.0

    @property
    def contrast(self) -> Literal["difference", "ratio"]:
        """A ratio."""
        return "ratio"

    @property
    def statistic(self) -> Mean | Median:
        """How one number is made of many texts."""
        return Mean() if self.by == "flags" else Median()

    def measure(self, outputs: Outputs, data: Dataset) -> Rows:
        """Return the flag or the score of each text that should not be flagged."""
        if self.by == "flags":
            value = HAPPENINGS[self.outcome]
            return measure_texts(outputs, data, value, among=self.among, families=self.families)
        return measure_scores(self, outputs, data)

    @property
    def title(self) -> str:
        """The name as printed."""
        return self.named("suppression")

    def named(self, name: str) -> str:
        """Return a title that says what the ratio is of."""
        if self.by == "scores":
            return f"{name} by median score"
        more = {"flagged": "", "refused": " by refusals", "either": " by flags and refusals"}
        return name + more[self.outcome]

    @property
    def policy(self) -> RatioPolicy:
        """What to do where flags are few."""
        return RatioPolicy(self.events, of_medians=self.by == "scores", event=EVENTS[self.outcome])


@metric("suppression")
@dataclass(frozen=True)
class Suppression(RatioMetric):
    r"""False-positive rate of a group over that of all texts; or of median scores.

    .. math:: \frac{FPR_g}{FPR_{all}} \quad\text{or}\quad \frac{med_g}{med_{all}}

    1 means that the group's acceptable texts are flagged as often as all acceptable texts; above 1,
    more often. A group is part of the whole, so both move together when texts are resampled. With
    fewer than 10 flagged or allowed texts in the group, and independent texts, the interval is the
    closed form for a rate within its whole. The p-value of independent texts is Fisher's; where
    texts share clusters, a ratio below 1 is tested by a score test over clusters (and has its
    interval where flags are few), since the few flags of a group that is flagged less show no
    spread of their own. Groups with too few flags count in the correction, since their flags
    decide whether they are tested.

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
    outcome
        As in `FalsePositiveRate`: what is counted as a flag, such as a refusal to answer.
    against
        ``all``: over all texts, the group's own included; ``outside``: over the texts that do
        not name the group, which says more about large groups.

    References
    ----------
    Proebsting et al. (2025), *Identity-related Speech Suppression in Generative AI Content
    Moderation*.
    """

    against: Literal["all", "outside"] = "all"

    @property
    def title(self) -> str:
        """The name as printed."""
        name = "suppression" if self.against == "all" else "suppression against other texts"
        return self.named(name)

    @property
    def summary(self) -> str:
        """What is over what, with these options."""
        rates = {"flagged": "False-positive rate", "refused": "Refusal rate"}
        what = rates.get(self.outcome, "Rate of flags and refusals")
        what = what if self.by == "flags" else "Median score"
        whole = "all texts" if self.against == "all" else "the texts that do not name it"
        only = " Only texts that name some group count." if self.among == "identity" else ""
        about = f"{what} of a group over that of {whole}"
        return f"{about}, among texts that should not be flagged.{only}"

    @property
    def comparisons(self) -> Comparisons:
        """Each group over all texts, or over the texts outside it."""
        return Comparisons(
            levels=False,
            groups="whole" if self.against == "all" else "outside",
            systems=False,
            events=self.policy,
            by_pattern=True,
        )


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
        # Flags that all stand in a cluster or two vanish from many replicates, and so does the
        # median of scores that are mostly 0: that of the group, or that of all texts.
        if _lost(drawn, sample, [0, 1 + g]) <= MOST_LOST:
            result.append(g)
    return result


def _lost(drawn: MetricEstimator, sample: int, columns: list[int]) -> float:
    """Return the share of replicates in which one of some columns is zero or undefined."""
    return float(np.mean(~(drawn.replicates.draws[:, sample, columns] > 0).all(axis=1)))


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
    - **Undefined**: when no group has enough texts, or when the median score of all texts is 0 in
      more than one of a hundred resamples.
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
        code: ReasonCode = "too-few-events" if groups else "too-few-groups"
        if not groups and not reason:
            reason = "not enough data: no group has enough texts to be ranked"
            if (lost := _lost(drawn, sample, [0])) > MOST_LOST:
                what = "median score" if self.by == "scores" else "rate"
                reason = f"the {what} of all texts is 0 or undefined in {lost:.0%} of resamples"
        code, reason = drawn.why_undefined(label, system) or (code, reason)
        n = int(drawn.replicates.n[sample, 0])
        if reason:
            return [
                Estimate.undefined(reason_code=code, metric=self.title, reason=reason, n=n, **about)
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
        Groups with fewer flagged texts are excluded.

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
        code: ReasonCode = "too-few-events"
        code, rare = drawn.why_undefined(label, system) or (code, rare)
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
                why = code
                if not rare and g in groups:
                    why = "too-few-groups"
                    reason = f"{len(groups)} groups with enough data; {_LEAST} are needed to pool"
                estimates.append(
                    Estimate.undefined(
                        reason_code=why, metric=self.title, reason=reason, n=n, **about
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


@metric("decision-instability")
@dataclass(frozen=True)
class DecisionInstability(TextMetric):
    r"""Probability that two answers about the same text differ, over texts asked repeatedly.

    .. math:: 1 - \sum_o \frac{k_o (k_o - 1)}{m (m - 1)}

    for a text with m answers, of which :math:`k_o` have the outcome o: flagged, allowed or refused.
    Errors and answers that cannot be read are no answers. Where a decision is a matter of luck, a
    rate measured once is one of many that could have come out, and a person's appeal is a lottery.

    - **Unit of resampling**: the text, or what texts share (a template, a show).
    - **Undefined**: when no text has two answers; ask with ``run = { repeats = 3 }``, or record a
      column `repeat`.
    - **Does not capture**: which of the answers is right, or changes over a longer time.

    Parameters
    ----------
    families
        Whether each family of texts, and each data set, is also measured alone.
    """

    event: ClassVar[str] = "answered otherwise"

    @property
    def title(self) -> str:
        """The name as printed."""
        return "decision instability"

    def measure(self, outputs: Outputs, data: Dataset) -> Rows:
        """Return how likely two answers about each text differ."""
        if not isinstance(outputs, Decisions):
            raise PlanError("decision instability is measured on a moderator's decisions")
        texts: Texts = data.need("texts", "decision instability")
        place = Vocabulary(texts.ids).codes(outputs.ids)
        answered = outputs.outcomes <= Outcome.REFUSED
        counts = np.zeros((len(texts), 3))
        here = answered & (place >= 0)
        np.add.at(counts, (place[here], outputs.outcomes[here]), 1)
        total = counts.sum(axis=1)
        kept = total >= 2
        some, m = counts[kept], total[kept]
        with np.errstate(all="ignore"):
            differ = 1 - (some * (some - 1)).sum(axis=1) / (m * (m - 1))
        exclusions = []
        lacking = int(np.count_nonzero(~kept))
        if lacking:
            reason = "they have fewer than two answers"
            exclusions.append(Exclusion("texts", "texts", lacking, reason, len(texts)))
        clusters = None if texts.clusters is None else texts.clusters[kept]
        labels: tuple[str, ...] = ("",)
        values = differ[:, None]
        if self.families:
            labels, values = by_part(texts, kept, values)
        return Rows(
            unit="text" if clusters is None else "cluster",
            ids=np.asarray(texts.ids)[kept],
            columns={"value": values},
            labels=labels,
            clusters=clusters,
            exclusions=tuple(exclusions),
            details={"": WITHOUT_DECISIONS} if outputs.lacks_decisions else {},
            events=values > 0,
        )
