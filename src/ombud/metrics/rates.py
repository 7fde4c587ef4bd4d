"""How often texts that should not be flagged are flagged, or not decided at all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from ombud.metrics.base import Outputs, Rows
from ombud.metrics.text_metric import TextMetric
from ombud.metrics.text_rows import measure_texts, was_flagged, was_undecided
from ombud.registry import metric

if TYPE_CHECKING:
    from ombud.data.dataset import Dataset

__all__ = ["FalsePositiveRate", "UndecidedShare"]


@metric("false-positive-rate")
@dataclass(frozen=True)
class FalsePositiveRate(TextMetric):
    r"""Share of texts that should not be flagged and are flagged.

    .. math:: FPR_g = P(\text{flagged} \mid \text{label} = 0, g)

    Refusals, errors and answers that cannot be read are no decisions: they are left out and
    counted. A text that was asked about several times counts with its share of flags.

    With fewer than 10 events, or fewer than 10 texts without, in a group or outside it, the gap has
    an exact interval and Fisher's p-value (independent texts) or is not enough data (clusters).

    - **Unit of resampling**: the text, or what texts share (a template, a show).
    - **Undefined**: when no text that should not be flagged was decided.
    - **Does not capture**: harm that is let through, how visible or lasting a flag is, or whether
      the labels themselves treat groups alike.

    Parameters
    ----------
    families
        Whether each family of texts (traditional, generative) is also measured alone.

    References
    ----------
    Proebsting et al. (2025), *Identity-related Speech Suppression in Generative AI Content
    Moderation*.
    """

    @property
    def title(self) -> str:
        """The name as printed."""
        return "false-positive rate"

    def measure(self, outputs: Outputs, data: Dataset) -> Rows:
        """Return whether each text that should not be flagged was flagged."""
        return measure_texts(outputs, data, was_flagged, families=self.families)


@metric("undecided-share")
@dataclass(frozen=True)
class UndecidedShare(TextMetric):
    r"""Share of texts that should not be flagged and for which there is no decision.

    .. math:: P(\text{refused, error or unparseable} \mid \text{label} = 0, g)

    When it differs between groups, rates among the decided texts compare unlike texts: a system
    may refuse just those that it would have flagged.

    With fewer than 10 events, or fewer than 10 texts without, in a group or outside it, the gap has
    an exact interval and Fisher's p-value (independent texts) or is not enough data (clusters).

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

    @property
    def title(self) -> str:
        """The name as printed."""
        return "share without a decision"

    def measure(self, outputs: Outputs, data: Dataset) -> Rows:
        """Return whether each text that should not be flagged was left undecided."""
        return measure_texts(outputs, data, was_undecided, needed="answer", families=self.families)
