"""What the metrics of texts share: which texts are compared, and how few events are handled."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from ombud.metrics.base import Metric, Notes
from ombud.metrics.engine.comparisons import Comparisons
from ombud.metrics.engine.few_events import GapPolicy
from ombud.metrics.engine.text_rows import LACKING, left_out, sizes_told
from ombud.stats.statistics import Mean, Median


@dataclass(frozen=True)
class TextMetric(Metric):
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
    def needed(self) -> str:
        """What a text without a value lacks, in a word."""
        return "decision"

    def block_fault(self, tables: Collection[str]) -> str:
        """Return why texts cannot be measured in blocks; empty when they can."""
        del tables
        if self.families:
            return "families=true makes labels of what all texts together have; leave it out"
        return ""

    def notes(self, tallies: Mapping[str, NDArray[np.float64]], labels: tuple[str, ...]) -> Notes:
        """Return how many texts there are beside the clusters, and how many have no value."""
        lost = tuple(left_out(tallies, self.needed)) if LACKING in tallies else ()
        return Notes(sizes_told(tallies, labels), exclusions=lost)

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
