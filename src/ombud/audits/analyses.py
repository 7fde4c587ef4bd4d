"""An analysis is computed from the data and what systems answered, or asks the systems more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Protocol, TypeGuard, runtime_checkable

import numpy as np
import polars as pl
from scipy import sparse

from ombud.data.decisions import Decisions
from ombud.data.exclusions import Exclusion
from ombud.errors import PlanError
from ombud.stats.estimate import Estimate

if TYPE_CHECKING:
    from ombud.data.dataset import Dataset
    from ombud.data.interactions import Interactions
    from ombud.data.labels import Labels
    from ombud.metrics.base import Outputs
    from ombud.metrics.engine.estimator import Settings
    from ombud.systems.base import Moderator, Progress, Recommender


@dataclass(frozen=True, eq=False)
class Analysed:
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


@runtime_checkable
class Analysis(Protocol):
    """What an audit needs to know of an analysis.

    An analysis is a frozen dataclass whose fields are its options, registered with
    ``@ombud.registry.analysis("name")``. One that looks further down the lists than the metrics
    do says so by a property `depth`.
    """

    registered_name: ClassVar[str]
    """The name in plans; set by the decorator."""

    def analyse(
        self, data: Dataset, outputs: Mapping[str, Outputs], settings: Settings
    ) -> Analysed:
        """Return what is found.

        Parameters
        ----------
        data
            The audited data.
        outputs
            What the systems answered, by system; an analysis of the data alone ignores it.
        settings
            How uncertainty is computed.
        """
        ...


@dataclass(frozen=True, eq=False)
class LiveSystems:
    """The systems of an audit, ready to be asked more than their lists.

    Parameters
    ----------
    systems
        By name; those that ombud trains are trained.
    outputs
        What they answered, by name.
    progress
        Called with (done, total, note).
    folder
        Where answers may be kept, or None.
    """

    systems: Mapping[str, Recommender | Moderator]
    outputs: Mapping[str, Outputs]
    progress: Progress
    folder: Path | None = None


@runtime_checkable
class SystemAnalysis(Protocol):
    """An analysis that asks the systems themselves, such as what they would show otherwise.

    It is registered as an `Analysis` is. When a stored result is measured again there are only
    recorded systems: it must say which of them it cannot ask.
    """

    registered_name: ClassVar[str]
    """The name in plans; set by the decorator."""

    def analyse_systems(self, data: Dataset, live: LiveSystems, settings: Settings) -> Analysed:
        """Return what is found.

        Parameters
        ----------
        data
            The audited data.
        live
            The systems, and what they answered.
        settings
            How uncertainty is computed.
        """
        ...


class LongAnalysis(Protocol):
    """An analysis that takes long enough to say where it is: `analyse` takes ``progress`` too."""

    registered_name: ClassVar[str]
    """The name in plans; set by the decorator."""

    def analyse(
        self,
        data: Dataset,
        outputs: Mapping[str, Outputs],
        settings: Settings,
        *,
        progress: Progress | None = None,
    ) -> Analysed:
        """Return what is found; progress is called with (done, total, note)."""
        ...


def is_long(analysis: Analysis) -> TypeGuard[LongAnalysis]:
    """Whether an analysis takes ``progress``."""
    return "progress" in signature(analysis.analyse).parameters


@runtime_checkable
class ListAnalysis(Protocol):
    """An analysis that looks at lists, so that they must be asked for deep enough."""

    @property
    def depth(self) -> int:
        """How many places of a list it looks at."""
        ...


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
    if data.interactions is None:
        raise PlanError(f"{analysis} needs interactions; the data has none")
    return data.interactions if data.test is None else _joined(data.interactions, data.test)


def _joined(train: Interactions, test: Interactions) -> Interactions:
    """Return both parts of a split together; they share users and items, and no entry."""
    parts = [part.matrix.tocoo() for part in (train, test)]
    where = tuple(np.concatenate([part.coords[axis] for part in parts]) for axis in (0, 1))
    values = np.concatenate([part.data for part in parts])
    matrix = sparse.coo_array((values, where), shape=train.matrix.shape).tocsr()
    matrix.sort_indices()
    return replace(train, matrix=matrix, times=None)
