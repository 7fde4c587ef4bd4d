"""Who is compared with whom: groups of units, overlapping if need be, and their intersections."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, Self

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from ombud.data.frames import Column, Frame, read_table
from ombud.data.ids import Ids, Vocabulary
from ombud.errors import DataError


@dataclass(frozen=True, eq=False)
class Grouping:
    """Units x groups: who belongs to what. A unit may be in several groups or in none.

    Parameters
    ----------
    units
        The ids of the units.
    names
        The groups, such as ``"age=18-24"``; an intersection is ``"age=18-24 & gender=f"``.
    members
        Units x groups.
    attributes
        The attribute (or attributes, for an intersection) of each group. Gaps are formed between
        a group and the rest of the units for which the attribute is known.
    """

    units: Vocabulary
    names: tuple[str, ...]
    members: NDArray[np.bool_]
    attributes: tuple[str, ...]

    @classmethod
    def from_frame(
        cls, frame: Frame, *, unit: str = "user", by: Sequence[str], source: str = ""
    ) -> Self:
        """Read one group per value of each attribute column.

        Parameters
        ----------
        frame
            Has the unit's id and one column per attribute; a missing value is *unknown*, and its
            unit is in no group of that attribute.
        unit
            The name of the id column.
        by
            The attribute columns.
        source
            The table's name in messages.
        """
        name = source or (str(frame) if isinstance(frame, str | Path) else "groups")
        columns = [Column(unit, "id"), *(Column(c, "category", nullable=True) for c in by)]
        table = read_table(frame, columns, source)
        if table[unit].n_unique() < table.height:
            raise DataError(name, [f"column {unit!r} repeats an id; one row for each is expected"])
        values = {column: table[column].to_numpy() for column in by}
        units = table[unit].to_arrow()
        return cls.from_values(units, values, source=name)

    @classmethod
    def from_values(cls, units: Ids, values: dict[str, Any], *, source: str = "groups") -> Self:
        """Build groups from one array of values per attribute; None is unknown."""
        vocabulary, codes = Vocabulary.encode(units)
        names: list[str] = []
        attributes: list[str] = []
        columns: list[NDArray[np.bool_]] = []
        for attribute, column in values.items():
            ordered = np.empty(len(vocabulary), dtype=object)
            ordered[codes] = np.asarray(column, dtype=object)
            kinds = sorted({value for value in ordered.tolist() if value is not None}, key=str)
            if len(kinds) > max(2, len(vocabulary) // 2):
                raise DataError(
                    source,
                    [
                        f"{attribute!r} has {len(kinds):,} values for {len(vocabulary):,} units: "
                        "nearly every unit would be a group of its own; choose a coarser attribute"
                    ],
                )
            for kind in kinds:
                names.append(f"{attribute}={kind}")
                attributes.append(attribute)
                columns.append(ordered == kind)
        members = np.array(columns, dtype=bool).T.reshape(len(vocabulary), len(names))
        return cls(vocabulary, tuple(names), members, tuple(attributes))

    @classmethod
    def from_members(cls, frame: Frame, *, unit: str = "user", source: str = "") -> Self:
        """Read memberships, one row each: the unit's id, `group`, and optionally `attribute`.

        This form lets a unit be in several groups of one attribute, as texts often are.
        """
        columns = [
            Column(unit, "id"),
            Column("group", "category"),
            Column("attribute", "category", required=False),
        ]
        table = read_table(frame, columns, source)
        if "attribute" not in table.columns:
            table = table.with_columns(attribute=pl.lit("group"))
        kinds = table.select("attribute", "group").unique(maintain_order=True)
        if kinds["group"].n_unique() < kinds.height:
            fault = "a group has two attributes; give each group one attribute"
            name = source or (str(frame) if isinstance(frame, str | Path) else "groups")
            raise DataError(name, [fault])
        units, rows = Vocabulary.encode(table[unit].to_arrow())
        members = np.zeros((len(units), kinds.height), dtype=bool)
        places = Vocabulary(kinds["group"].to_arrow()).codes(table["group"].to_arrow())
        members[rows, places] = True
        names = tuple(kinds["group"].to_list())
        return cls(units, names, members, tuple(kinds["attribute"].to_list()))

    def to_members(self, unit: str = "user") -> pl.DataFrame:
        """Return the form that `from_members` reads."""
        places, rows = np.nonzero(self.members.T)
        return pl.DataFrame(
            {
                # By way of Arrow, so that no member at all is still an empty column of ids.
                unit: pl.Series(pl.from_arrow(self.units.arrow.take(pa.array(rows)))),
                "group": np.array(self.names, dtype=object)[places],
                "attribute": np.array(self.attributes, dtype=object)[places],
            },
            schema_overrides={"group": pl.String, "attribute": pl.String},
        )

    def with_intersections(self, *, minimum: int = 1) -> Self:
        """Return the groups and every non-empty pair of groups of different attributes.

        Parameters
        ----------
        minimum
            Pairs with fewer members are left out.
        """
        names, attributes = list(self.names), list(self.attributes)
        columns = list(self.members.T)
        for a, b in combinations(range(len(self.names)), 2):
            both = self.members[:, a] & self.members[:, b]
            if self.attributes[a] != self.attributes[b] and np.count_nonzero(both) >= minimum:
                names.append(f"{self.names[a]} & {self.names[b]}")
                attributes.append(f"{self.attributes[a]} & {self.attributes[b]}")
                columns.append(both)
        members = np.array(columns, dtype=bool).T.reshape(len(self.units), len(names))
        return type(self)(self.units, tuple(names), members, tuple(attributes))

    def select(self, by: Sequence[str]) -> Self:
        """Return the groups of some attributes only.

        Raises
        ------
        DataError
            If an attribute is not there.
        """
        missing = sorted(set(by) - set(self.attributes))
        if missing:
            known = ", ".join(dict.fromkeys(self.attributes)) or "none"
            raise DataError(
                "groups", [f"no attribute is called {w!r}; known: {known}" for w in missing]
            )
        kept = [g for g, attribute in enumerate(self.attributes) if attribute in set(by)]
        return type(self)(
            self.units,
            tuple(self.names[g] for g in kept),
            self.members[:, kept],
            tuple(self.attributes[g] for g in kept),
        )

    def aligned(self, units: Ids) -> NDArray[np.bool_]:
        """Return the membership of some units, in their order; an unknown unit is in no group."""
        rows = self.units.codes(units)
        if not len(self.units):
            return np.zeros((len(rows), len(self.names)), dtype=np.bool_)
        return np.where(rows[:, None] >= 0, self.members[rows], False)

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        return f"Grouping({len(self.names)} groups of {len(self.units):,} units)"
