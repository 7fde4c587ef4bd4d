"""Suppression: how much more a group's acceptable speech is flagged than everyone's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from ombud.metrics.base import Outputs, Rows
from ombud.metrics.engine.comparisons import Comparisons
from ombud.metrics.engine.few_events import RatioPolicy
from ombud.metrics.engine.text_rows import (
    EVENTS,
    HAPPENINGS,
    Happening,
    TextMetric,
    max_score,
    measure_texts,
)
from ombud.registry import metric
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
