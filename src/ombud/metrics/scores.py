"""How high texts that should not be flagged score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from ombud.metrics.base import Outputs, Rows
from ombud.metrics.engine.text_rows import TextMetric, max_score, measure_texts
from ombud.registry import metric
from ombud.stats.statistics import Median

if TYPE_CHECKING:
    from ombud.data.dataset import Dataset


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
        return measure_texts(
            outputs,
            data,
            lambda decisions: max_score(decisions, self.categories, self.title),
            among=self.among,
            needed="score",
            families=self.families,
        )
