"""Where systems, labels, groups and those outside them stand in the arrays of every engine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ombud.data.groups import Grouping
from ombud.data.ids import Vocabulary
from ombud.metrics.base import Rows

Against: TypeAlias = Literal["outside", "rest", "whole"] | None
Flags: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True)
class Layout:
    """Where each system, label and group stands in the arrays of the bootstrap."""

    # Their names, in order.
    systems: tuple[str, ...]
    labels: tuple[str, ...]
    groups: tuple[str, ...] = ()
    attributes: tuple[str, ...] = ()  # the attribute of each group
    against: Against = None  # what a group is compared with

    @classmethod
    def of(
        cls,
        systems: Sequence[str],
        labels: Sequence[str],
        groups: Grouping | None,
        against: Against,
    ) -> Layout:
        """Return the layout of some groups; of their members nothing is asked."""
        names = ((), ()) if groups is None else (groups.names, groups.attributes)
        return cls(tuple(systems), tuple(labels), *names, against)

    def sample(self, system: int, label: int) -> int:
        """Place of a system and label among the samples."""
        return system * len(self.labels) + label

    def rest(self, group: int) -> int:
        """Column of those outside the group, as the metric wants them."""
        return 1 + len(self.groups) + group

    def other(self, group: int) -> int:
        """Column that a group is compared with."""
        return 0 if self.against == "whole" else self.rest(group)

    def pairs(self) -> Iterator[tuple[int, int, int]]:
        """Yield each pair of systems with each label."""
        for one, other in combinations(range(len(self.systems)), 2):
            for label in range(len(self.labels)):
                yield one, other, label

    def shared_out(self) -> dict[str, list[int]]:
        """Return the groups of each attribute, where a group is compared with the rest of it."""
        found: dict[str, list[int]] = {}
        for group, attribute in enumerate(self.attributes if self.against == "rest" else ()):
            found.setdefault(attribute, []).append(group)
        return found

    def columns(self, members: Flags) -> Flags:
        """Return units x (everyone, each group, those outside each group)."""
        rest = ~members
        for same in self.shared_out().values():
            rest[:, same] &= members[:, same].any(axis=1, keepdims=True)
        everyone = np.ones((len(members), 1), dtype=np.bool_)
        return np.concatenate([everyone, members, rest], axis=1)

    def overlap(self, members: Flags) -> NDArray[np.int64]:
        """Return groups x groups: how many units are in both."""
        result = np.zeros((members.shape[1], members.shape[1]), dtype=np.int64)
        for g, column in enumerate(members.T):
            result[g] = np.count_nonzero(members[column], axis=0)
        return result


def all_units(ids: Sequence[NDArray[Any]]) -> Vocabulary:
    """Return all units; most often every system measured the same ones in the same order."""
    first = ids[0]
    same = all(other is first or np.array_equal(other, first) for other in ids[1:])
    return Vocabulary.encode(first if same else np.concatenate(ids))[0]


EVENTS = "events"
"""The name under which sums of events stand beside those of context."""


def sums_beside(
    rows: Mapping[str, Rows], units: Vocabulary, columns: Flags, known: Flags
) -> dict[str, NDArray[np.float64]]:
    """Return sums of what rows tell beside their number, by name: parts x samples.

    Parameters
    ----------
    rows
        What was measured, by system.
    units
        All units.
    columns
        Units x parts (everyone, each group, those outside each group).
    known
        Units x samples (system and label): whether the unit contributes.
    """
    found: dict[str, list[NDArray[np.float64]]] = {}
    for measured in rows.values():
        index = units.codes(measured.ids)
        told = dict(measured.context)
        if measured.events is not None:
            told[EVENTS] = measured.events
        for name, values in told.items():
            whole = np.full((len(units), len(measured.labels)), np.nan)
            whole[index] = values
            found.setdefault(name, []).append(whole)
    wide = columns.T.astype(np.float64)
    return {
        name: np.asarray(wide @ np.where(known, np.concatenate(parts, axis=1), 0.0))
        for name, parts in found.items()
    }


def aligned(rows: Rows, units: Vocabulary, columns: tuple[str, ...]) -> NDArray[np.float64]:
    """Return all units x labels x columns; NaN where a unit is missing."""
    index = units.codes(rows.ids)
    cube = np.full((len(units), len(rows.labels), len(columns)), np.nan)
    for c, column in enumerate(columns):
        cube[index, :, c] = rows.columns[column]
    return cube
