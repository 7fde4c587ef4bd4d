"""A metric has two halves: measure each unit, then make one number of many units.

The engine (`ombud.metrics.engine`) gives every metric its interval, groups, gaps and corrections;
a metric's author writes no statistics.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, Self, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pydantic import BaseModel

from ombud.data.dataset import Dataset
from ombud.data.decisions import Decisions
from ombud.data.exclusions import Exclusion
from ombud.data.predictions import Predictions
from ombud.data.recommendations import Recommendations
from ombud.errors import PlanError, ResultError
from ombud.metrics.engine.comparisons import Comparisons, Needs
from ombud.metrics.engine.label_uncertainty import LabelDraws
from ombud.stats.estimate import Estimate, ReasonCode, TippingPoint
from ombud.stats.statistics import Statistic

Outputs: TypeAlias = "Recommendations | Decisions | Predictions"


class Notes(NamedTuple):
    """What a metric says beside its numbers, made of tallies alone."""

    # For each label (or ``""`` for all) what a reader must know.
    by_label: Mapping[str, str] = MappingProxyType({})
    # For each label (or ``""`` for all) the same as plain values by name.
    details: Mapping[str, Mapping[str, Any]] = MappingProxyType({})
    # What was excluded, where the words hold counts: each has a key, and is not added up over
    # blocks by its words.
    exclusions: tuple[Exclusion, ...] = ()


@dataclass(frozen=True, eq=False)
class Rows:
    """What a metric measured: one row per unit, one layer per label.

    Parameters
    ----------
    unit
        What a unit is, in the singular: ``"user"``, ``"text"``.
    ids
        The unit of each row.
    columns
        For each column the statistic needs, an array of units x labels. NaN means that the unit
        says nothing about that label.
    labels
        The content labels of the second axis; ``("",)`` when there are none.
    clusters
        What units share, as codes: clusters are resampled instead of units. None when units are
        independent.
    exclusions
        Units that were left out, and why.
    notes
        For each label (or ``""`` for all) what a reader must know beside the numbers.
    details
        For each label (or ``""`` for all) the same as plain values by name.
    shared
        What would have been measured under other states of what all units share (doubtful
        labels), to be carried into the intervals; None when nothing of the kind is known.
    undefined
        Why none of it makes a number, such as lists that are too short; empty when it does.
    tallies
        Sums over units that notes and details are made of, by name: those of two blocks of units
        add up (`Metric.notes`).
    context
        Further columns of units x labels, known wherever the unit contributes. They are averaged
        for everyone and for each group, but not tested, and stand in `Estimate.details` by name:
        the share in users' histories beside a share gap.
    events
        Units x labels: how many events each unit has, of which the numbers are made (flagged
        texts, hits, users whose difference is not zero). None where there is nothing to count.
    """

    unit: str
    ids: NDArray[Any]
    columns: Mapping[str, NDArray[np.floating[Any]]]
    labels: tuple[str, ...] = ("",)
    clusters: NDArray[np.int32] | None = None
    exclusions: tuple[Exclusion, ...] = ()
    notes: Mapping[str, str] = field(default_factory=dict)
    details: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    shared: LabelDraws | None = None
    undefined: str = ""
    tallies: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    context: Mapping[str, NDArray[np.floating[Any]]] = field(default_factory=dict)
    events: NDArray[Any] | None = None

    def __post_init__(self) -> None:
        events = {} if self.events is None else {"events": self.events}
        for name, values in {**self.context, **events, **self.columns}.items():
            if values.shape != (len(self.ids), len(self.labels)):
                raise ValueError(
                    f"column {name!r} has shape {values.shape}; "
                    f"({len(self.ids)} units, {len(self.labels)} labels) was expected"
                )

    def why_undefined(self, label: str) -> tuple[ReasonCode, str] | None:
        """Return why there is no number for a label; None if there is one."""
        if self.undefined:
            return "lists-too-short", self.undefined
        details = self.details.get(label, self.details.get("", {}))
        if details.get("lacks_decisions"):
            return "no-decisions", str(details["undefined"])
        unlabeled = self.details.get(label, {}).get("undefined")
        return ("no-labels", str(unlabeled)) if unlabeled else None

    def to_frame(self) -> pl.DataFrame:
        """Return one row per unit, with a column ``name|label`` for each column and label."""
        columns: dict[str, Any] = {"unit": self.ids}
        if self.clusters is not None:
            columns["cluster"] = self.clusters
        for name, values in self.columns.items():
            for index, label in enumerate(self.labels):
                columns[f"{name}|{label}"] = values[:, index]
        return pl.DataFrame(columns)

    @classmethod
    def from_frame(cls, frame: pl.DataFrame, unit: str) -> Self:
        """Rebuild rows from `to_frame`."""
        pairs = [column.split("|", 1) for column in frame.columns if "|" in column]
        names = list(dict.fromkeys(name for name, _ in pairs))
        labels = tuple(dict.fromkeys(label for _, label in pairs))
        if len(names) * len(labels) != len(pairs):
            raise ResultError("the rows of a metric do not have one column for each label")
        columns = {
            name: np.stack([frame[f"{name}|{label}"].to_numpy() for label in labels], axis=1)
            for name in names
        }
        clusters = frame["cluster"].to_numpy() if "cluster" in frame.columns else None
        return cls(unit, frame["unit"].to_numpy(), columns, labels, clusters)


class Metric(ABC):
    """What the engine needs to know of a metric.

    A metric is a frozen dataclass whose fields are its options, registered with
    ``@ombud.registry.metric("name")``; name and fields are stored with a result, so that it can
    be computed again. Four members must be given; the others have a default that most share.
    """

    registered_name: ClassVar[str]
    """The name in plans; set by the decorator."""

    @property
    @abstractmethod
    def title(self) -> str:
        """The name as printed, such as ``"share gap@10"``."""

    @property
    @abstractmethod
    def of(self) -> Literal["recommender", "moderator"]:
        """The kind of system it measures."""

    @property
    @abstractmethod
    def statistic(self) -> Statistic:
        """How one number is made of many units."""

    @abstractmethod
    def measure(self, outputs: Outputs, data: Dataset) -> Rows:
        """Return one row per unit."""

    @property
    def seed_name(self) -> str:
        """The name that seeds the bootstrap.

        It must never change: a metric whose title is reworded returns its first title here, so
        that rewording moves no number. `tests/metrics/test_seed_names.py` holds them.
        """
        return self.title

    @property
    def null(self) -> float | None:
        """The value that would mean "nothing found"; none by default."""
        return None

    @property
    def possible(self) -> tuple[float, float]:
        """The least and the greatest value that can exist; no interval goes beyond."""
        return (-math.inf, math.inf)

    def tipping(
        self, estimate: Estimate, lowest: float, highest: float, *groups: Mapping[str, Any]
    ) -> TippingPoint | None:
        """Return what unlabeled items would have to be like to reverse an estimate.

        Parameters
        ----------
        estimate
            A level whose details hold those that `notes` returns; or a comparison of two groups or
            systems, with the `level` of one and the `other_level`.
        lowest, highest
            The plausible range of the ratio of rates among unlabeled and labeled items.
        groups
            The details of both groups or systems, where two are compared.
        """
        del estimate, lowest, highest, groups
        return None

    @property
    def contrast(self) -> Literal["difference", "ratio"]:
        """How two groups or two systems are compared."""
        return "difference"

    @property
    def depth(self) -> int:
        """How many places of a list it looks at; 0 for a moderator's metric."""
        return 0

    @property
    def reads(self) -> Literal["outputs", "predictions"]:
        """Whether it reads lists or decisions, or predictions of held-out ratings."""
        return "outputs"

    @property
    def reads_ratings(self) -> bool:
        """Whether it reads how items were rated, not only which; other columns need not be read."""
        return self.reads == "predictions"

    @property
    def systems(self) -> tuple[str, ...]:
        """The systems it is about, such as those with an avoid list; empty for all."""
        return ()

    @property
    def comparisons(self) -> Comparisons:
        """Which levels and contrasts the engine makes of its rows."""
        return Comparisons()

    @property
    def needs(self) -> Needs | None:
        """What its statistic needs beside enough units."""
        return None

    @property
    def sides(self) -> tuple[str, str] | None:
        """What its number is the difference (or ratio) of: two columns or names of `Rows.context`.

        Their means stand in `Estimate.details` as ``level`` and ``other_level``.
        """
        return None

    @property
    def summary(self) -> str:
        """What it is with these options, where its description says another thing; else empty."""
        return ""

    @property
    def variant(self) -> str:
        """What the chosen options make of it, in sentences; empty for the defaults."""
        chosen = ", ".join(f"{name} = {value}" for name, value in sorted(options_of(self).items()))
        return f"Here with {chosen}." if chosen else ""

    @property
    def spread(self) -> bool:
        """Whether a result keeps how units are spread, for the figures of a report."""
        return False

    @property
    def by_item(self) -> Literal["catalogue", "held-out", "labels"]:
        """What is cut to a group of items: the catalogue, what was held out, or nothing.

        A metric of labels measures groups of items among its labels.
        """
        return "labels"

    @property
    def shallow_lists(self) -> Literal["undefined", "said", "unread"]:
        """What lists mean for it that all end before `depth`, though the catalogue has more.

        There is no number, or it is said beside the number; or it does not read lists.
        """
        return "undefined"

    def block_fault(self, tables: Collection[str]) -> str:
        """Return why units cannot be measured in blocks that do not know of each other.

        Empty when they can: a unit's row then depends on that unit, on labels and on the catalogue
        alone. `tables` are the names of the tables that the data has; `LABEL_ERRORS` is among them
        where labels have measured errors.
        """
        del tables
        return "what it measures on a unit may depend on other units"

    def notes(self, tallies: Mapping[str, NDArray[np.float64]], labels: tuple[str, ...]) -> Notes:
        """Return what to say beside the numbers, from what `measure` has tallied.

        Sums of tallies say the same in memory and in blocks; words would not add up.
        """
        del tallies, labels
        return Notes()


class ListMetric(Metric):
    """A metric of the first `k` positions of recommendation lists."""

    k: int
    of: ClassVar[Literal["recommender"]] = "recommender"

    def __post_init__(self) -> None:
        if self.k < 1:
            raise PlanError(f"k is {self.k}; a list has at least 1 place")

    @property
    def depth(self) -> int:
        """How many positions of a list are read."""
        return self.k


class _Registered(Protocol):
    registered_name: ClassVar[str]


def spec_of(thing: _Registered) -> dict[str, Any]:
    """Return the registered name and the options of a metric, as a plan would hold them.

    Anything that is registered as a dataclass or a pydantic model of its options can be given.
    """
    if isinstance(thing, BaseModel):
        options = {name: getattr(thing, name) for name in type(thing).model_fields}
    else:
        options = {f.name: getattr(thing, f.name) for f in fields(thing) if f.init}  # type: ignore[arg-type]
    options = {k: str(v) if isinstance(v, Path) else v for k, v in options.items()}
    return {"name": thing.registered_name} | {k: v for k, v in options.items() if v is not None}


def key_of(thing: _Registered) -> str:
    """Return what a metric measures, for programs: its name and the options that were set.

    Unlike its title it does not change when wording does.

    Examples
    --------
    >>> from ombud.metrics.shares import LabelShare
    >>> key_of(LabelShare(k=5)), key_of(LabelShare())
    ('label-share(k=5)', 'label-share')
    """
    options = [f"{name}={value}" for name, value in sorted(options_of(thing).items())]
    return f"{thing.registered_name}({','.join(options)})" if options else thing.registered_name


def options_of(thing: object) -> dict[str, str]:
    """Return the options of a dataclass that are not the default, as plain words.

    Examples
    --------
    >>> from ombud.metrics.shares import LabelShare
    >>> options_of(LabelShare(k=5))
    {'k': '5'}
    """
    options = {}
    for option in fields(thing) if is_dataclass(thing) else ():
        default = option.default if option.default_factory is MISSING else option.default_factory()
        value = getattr(thing, option.name)
        if option.init and value != default:
            options[option.name] = _plain(value)
    return options


def _plain(value: Any) -> str:
    if isinstance(value, list | tuple):
        return "+".join(_plain(one) for one in value)
    if isinstance(value, Path):
        return value.name  # the folder is whose machine it is
    return f"{value:g}" if isinstance(value, float) else str(value)
