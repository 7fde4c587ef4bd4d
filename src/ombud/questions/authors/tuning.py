"""What the search for parameters reached, to stand beside what is reached on other users."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ombud.audits.analysis import Analysis, AnalysisResult, Context
from ombud.registry import analysis
from ombud.stats.estimate import Estimate

if TYPE_CHECKING:
    pass


TUNED = "creator-tuning/value"
"""The key of what a search reached."""


@analysis("creator-tuning")
@dataclass(frozen=True)
class CreatorTuning(Analysis):
    """The best value that ``ombud tune`` found for each system, to be set beside the audit's own.

    Nothing is measured here. The preset ``authors`` adds it where it takes tuned parameters.

    - **Unit**: the user of the tuning sample.
    - **Undefined**: never.
    - **Does not capture**: that the best of many trials flatters; there is no interval.

    Parameters
    ----------
    metric
        What was searched for, such as ``mrr@100``.
    values
        The best value of each system.
    """

    metric: str = ""
    values: Mapping[str, float] = field(default_factory=dict)

    def analyze(self, context: Context) -> AnalysisResult:
        """Return the values as they were found."""
        method = "none: the best of many trials, on other users"
        return AnalysisResult(
            tuple(
                Estimate(
                    metric=f"{self.metric} at tuning", key=TUNED, value=float(value),
                    interval=None, method=method, n=0, system=system, unit="user",
                    details={"metric": self.metric},
                )
                for system, value in self.values.items()
            )
        )  # fmt: skip
