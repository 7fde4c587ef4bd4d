"""Texts that should not be flagged: how many are, how many are not decided, how high they score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from ombud.data.dataset import Dataset
from ombud.metrics.base import Outputs, Rows
from ombud.metrics.engine.text_rows import (
    EVENTS,
    HAPPENINGS,
    Happening,
    TextMetric,
    measure_scores,
    measure_texts,
    was_undecided,
)
from ombud.registry import metric
from ombud.stats.statistics import Median


@metric("false-positive-rate")
@dataclass(frozen=True)
class FalsePositiveRate(TextMetric):
    r"""Share of texts that should not be flagged and are flagged.

    .. math:: FPR_g = P(\text{flagged} \mid \text{label} = 0, g)

    Refusals, errors and answers that cannot be read are no decisions: they are left out and
    counted. A text that was asked about several times counts with its share of flags.

    With fewer than 10 events, or fewer than 10 texts without, in a group or outside it, the gap has
    an exact interval and Fisher's p-value; where texts share clusters, counts stand for what they
    are worth in independent texts, and the p-value is that of a score test over clusters. A rate
    with so few events has Wilson's interval, so that 0 of n is not taken for certainty.

    - **Unit of resampling**: the text, or what texts share (a template, a show).
    - **Undefined**: when no text that should not be flagged was decided.
    - **Does not capture**: harm that is let through, how visible or lasting a flag is, or whether
      the labels themselves treat groups alike.

    Parameters
    ----------
    families
        Whether each family of texts (traditional, generative) is also measured alone.
    outcome
        What is counted: ``flagged``; ``refused``, for systems that decline to answer acceptable
        prompts (over-refusal; flagged and allowed count as answered); ``either``.

    References
    ----------
    Proebsting et al. (2025), *Identity-related Speech Suppression in Generative AI Content
    Moderation*.
    """

    outcome: Happening = "flagged"

    @property
    def title(self) -> str:
        """The name as printed."""
        names = {"flagged": "false-positive rate", "refused": "refusal rate"}
        return names.get(self.outcome, "rate of flags and refusals")

    @property
    def happened(self) -> str:
        """What happened to a text that counts, in a participle."""
        return EVENTS[self.outcome]

    @property
    def summary(self) -> str:
        """What is counted, with these options."""
        if self.outcome == "flagged":
            return ""
        return f"Share of texts that should not be flagged and are {EVENTS[self.outcome]}."

    def measure(self, outputs: Outputs, data: Dataset) -> Rows:
        """Return whether each text that should not be flagged was flagged."""
        return measure_texts(outputs, data, HAPPENINGS[self.outcome], families=self.families)


@metric("undecided-share")
@dataclass(frozen=True)
class UndecidedShare(TextMetric):
    r"""Share of texts that should not be flagged and for which there is no decision.

    .. math:: P(\text{refused, error or unparseable} \mid \text{label} = 0, g)

    When it differs between groups, rates among the decided texts compare unlike texts: a system
    may refuse just those that it would have flagged.

    With fewer than 10 events, or fewer than 10 texts without, in a group or outside it, the gap has
    an exact interval and Fisher's p-value; where texts share clusters, counts stand for what they
    are worth in independent texts, and the p-value is that of a score test over clusters. A rate
    with so few events has Wilson's interval, so that 0 of n is not taken for certainty.

    - **Unit of resampling**: the text, or what texts share (a template, a show).
    - **Undefined**: when the system was asked about no text that should not be flagged.
    - **Does not capture**: why there is no decision, or what it would have been.

    Parameters
    ----------
    families
        Whether each family of texts (traditional, generative) is also measured alone.

    References
    ----------
    Proebsting et al. (2025), *Identity-related Speech Suppression in Generative AI Content
    Moderation*.
    """

    event: ClassVar[str] = "undecided"
    needed: ClassVar[str] = "answer"

    @property
    def title(self) -> str:
        """The name as printed."""
        return "share without a decision"

    def measure(self, outputs: Outputs, data: Dataset) -> Rows:
        """Return whether each text that should not be flagged was left undecided."""
        return measure_texts(
            outputs, data, was_undecided, needed=self.needed, families=self.families
        )


@metric("median-score")
@dataclass(frozen=True)
class MedianScore(TextMetric):
    r"""Median score of texts that should not be flagged; groups compared by difference.

    .. math:: med_g = \mathrm{median}\{\max_c s_c(t) : \text{label} = 0, t \in g\}

    The score is the system's own: the largest over its categories that count, where it has
    categories. Scores of two systems are not on one scale, so systems are not compared.

    - **Unit of resampling**: the text, or what texts share (a template, a show).
    - **Undefined**: when no text that should not be flagged has a score.
    - **Does not capture**: the upper tail, where decisions fall: a median can be low while many
      texts lie above the threshold.

    Parameters
    ----------
    families
        Whether each family of texts (traditional, generative) is also measured alone.
    categories
        Take the largest score of these categories instead; ``("all",)`` for all of them, topics
        included.
    among
        ``identity`` takes only texts that name some group, as the published code does.

    References
    ----------
    Proebsting et al. (2025), *Identity-related Speech Suppression in Generative AI Content
    Moderation*.
    """

    categories: tuple[str, ...] = ()
    among: Literal["all", "identity"] = "all"

    compares_systems: ClassVar[bool] = False

    @property
    def statistic(self) -> Median:
        """How one number is made of many texts."""
        return Median()

    @property
    def title(self) -> str:
        """The name as printed."""
        return "median score"

    def measure(self, outputs: Outputs, data: Dataset) -> Rows:
        """Return the score of each text that should not be flagged."""
        return measure_scores(self, outputs, data)
