"""An analysis is computed from the data and what systems answered, or asks the systems more."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import polars as pl
from scipy import sparse

from ombud.data.dataset import Dataset
from ombud.data.decisions import Decisions
from ombud.data.exclusions import Exclusion
from ombud.data.interactions import Interactions
from ombud.data.labels import Labels
from ombud.errors import PlanError
from ombud.metrics.base import Outputs
from ombud.metrics.engine.estimator import Settings
from ombud.stats.estimate import Estimate
from ombud.systems.base import Moderator, Progress, Recommender, silent


@dataclass(frozen=True, eq=False)
class AnalysisResult:
    """What an analysis found.

    Parameters
    ----------
    estimates
        Every number, with its uncertainty.
    tables
        Tables by name, stored with the result.
    exclusions
        What was left out, and why.
    """

    estimates: tuple[Estimate, ...] = ()
    tables: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    exclusions: tuple[Exclusion, ...] = ()


@dataclass(frozen=True, eq=False)
class Context:
    """What an analysis may read, and whom it may ask.

    Parameters
    ----------
    data
        The audited data.
    outputs
        What the systems answered, by name.
    settings
        How uncertainty is computed.
    systems
        The systems by name, ready to be asked more; those that ombud trains are trained when the
        analysis says that it `asks_systems`. When a stored result is measured again there are
        only recorded systems.
    progress
        Called with (done, total, note).
    folder
        Where answers may be kept, or None.
    """

    data: Dataset
    outputs: Mapping[str, Outputs] = field(default_factory=dict)
    settings: Settings = field(default_factory=Settings)
    systems: Mapping[str, Recommender | Moderator] = field(default_factory=dict)
    progress: Progress = silent
    folder: Path | None = None


class Analysis(ABC):
    """Something computed beside the metrics: from the data, the outputs, or by asking the systems.

    An analysis is a frozen dataclass whose fields are its options, registered with
    ``@ombud.registry.analysis("name")``. It must give `analyze`.
    """

    registered_name: ClassVar[str]
    """The name in plans; set by the decorator."""

    asks_systems: ClassVar[bool] = False
    """Whether it asks the systems themselves, so that they are trained even if their answers are
    stored. Of recorded systems, it must say which it cannot ask."""

    @property
    def depth(self) -> int:
        """How many places of a list it looks at, so that lists are asked for deep enough."""
        return 0

    @property
    def chooses_thresholds(self) -> tuple[str, ...]:
        """The systems whose thresholds it chooses, so that scores without decisions suffice."""
        return ()

    @abstractmethod
    def analyze(self, context: Context) -> AnalysisResult:
        """Return what is found."""


def decisions_in(outputs: Mapping[str, Outputs], analysis: str) -> dict[str, Decisions]:
    """Return the answers of the moderators, by system."""
    decisions = {name: some for name, some in outputs.items() if isinstance(some, Decisions)}
    if not decisions:
        raise PlanError(f"{analysis} needs a moderator's decisions; the audit has no moderator")
    return decisions


def needed(data: Dataset, analysis: str) -> tuple[Interactions, Labels]:
    """Return all interactions, held out or not, and labels; or say which of them is missing."""
    if data.interactions is None or data.labels is None:
        lacking = "interactions" if data.interactions is None else "labels"
        raise PlanError(f"{analysis} needs interactions and labels; the data has no {lacking}")
    return all_interactions(data, analysis), data.labels


def all_interactions(data: Dataset, analysis: str) -> Interactions:
    """Return all interactions, held out or not; or say that there are none."""
    train: Interactions = data.need("interactions", analysis)
    return train if data.test is None else _joined(train, data.test)


def _joined(train: Interactions, test: Interactions) -> Interactions:
    """Return both parts of a split together; they share users and items, and no entry."""
    parts = [part.matrix.tocoo() for part in (train, test)]
    where = tuple(np.concatenate([part.coords[axis] for part in parts]) for axis in (0, 1))
    values = np.concatenate([part.data for part in parts])
    matrix = sparse.coo_array((values, where), shape=train.matrix.shape).tocsr()
    matrix.sort_indices()
    return replace(train, matrix=matrix, times=None)
