"""What the metrics of texts share: which texts are compared, and how few events are handled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from ombud.metrics.base import MetricBase
from ombud.metrics.comparisons import Comparisons
from ombud.metrics.few_events import GapPolicy
from ombud.stats.statistics import Mean, Median

__all__ = ["TextMetric"]


@dataclass(frozen=True)
class TextMetric(MetricBase):
    """A level on texts, everyone's and each group's, and gaps to the texts outside a group."""

    families: bool = False

    registered_name: ClassVar[str]
    of: ClassVar[Literal["moderator"]] = "moderator"
    compares_systems: ClassVar[bool] = True
    event: ClassVar[str] = "flagged"

    @property
    def statistic(self) -> Mean | Median:
        """How one number is made of many texts."""
        return Mean()

    @property
    def happened(self) -> str:
        """What happened to a text that counts, in a participle."""
        return self.event

    @property
    def comparisons(self) -> Comparisons:
        """Levels, gaps to the texts outside each group, gaps between systems."""
        return Comparisons(
            groups="outside",
            systems=self.compares_systems,
            events=GapPolicy(self.happened, is_rate=isinstance(self.statistic, Mean)),
            by_pattern=True,
        )
