"""Analyses that also need what the systems answered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from ombud.audits.analyses.base import Analysed, Analysis
from ombud.data.decisions import Decisions
from ombud.errors import PlanError

if TYPE_CHECKING:
    from ombud.data.dataset import Dataset
    from ombud.metrics.base import Outputs
    from ombud.metrics.engine import Settings

__all__ = ["OutputAnalysis", "decisions_in", "run_analysis"]


@runtime_checkable
class OutputAnalysis(Protocol):
    """An analysis of the data and of what the systems answered."""

    def analyse_outputs(
        self, data: Dataset, outputs: Mapping[str, Outputs], settings: Settings
    ) -> Analysed:
        """Return what is found."""
        ...


def run_analysis(
    analysis: Analysis, data: Dataset, outputs: Mapping[str, Outputs], settings: Settings
) -> Analysed:
    """Run an analysis, with what the systems answered if it wants that."""
    if isinstance(analysis, OutputAnalysis):
        return analysis.analyse_outputs(data, outputs, settings)
    return analysis.analyse(data, settings)


def decisions_in(outputs: Mapping[str, Outputs], analysis: str) -> dict[str, Decisions]:
    """Return the answers of the moderators, by system."""
    found = {name: some for name, some in outputs.items() if isinstance(some, Decisions)}
    if not found:
        raise PlanError(f"{analysis} needs a moderator's decisions; the audit has no moderator")
    return found
