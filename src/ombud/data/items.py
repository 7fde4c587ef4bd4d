"""Attributes of items: who made them, what kind they are, and how well that is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import narwhals as nw
import numpy as np
import polars as pl
from numpy.typing import NDArray

from ombud.data.faults import rows_where
from ombud.data.frames import Column, Frame, open_frame, read_table
from ombud.data.groups import Grouping
from ombud.data.ids import Vocabulary
from ombud.data.labels import Labels, LabelState
from ombud.errors import DataError

LABEL = "label"
"""The name by which item groups are crossed with content labels."""
LABEL_WORDS = (LABEL, "warning")
"""What a plan may call it."""

CREATOR = "creator"
"""The attribute that names who made an item: an id of a person, and no group of items."""

_STATUS = "_status"
_KNOWN, _UNKNOWN = "known", "unknown"


@dataclass(frozen=True, eq=False)
class Items:
    """Items x attributes, each with the status of what is known.

    Parameters
    ----------
    items
        The ids of the items.
    values
        By attribute, the value of each item; None where it is not known.
    status
        By attribute, why the value is known or not, such as the outcomes of ``ombud link``.
    flagged
        Which items may hold several works, so that their values may be another work's; None where
        nobody looked.
    """

    items: Vocabulary
    values: Mapping[str, NDArray[np.object_]]
    status: Mapping[str, NDArray[np.object_]]
    flagged: NDArray[np.bool_] | None = None

    @classmethod
    def from_frame(
        cls, frame: Frame, *, by: Sequence[str] = (), others: bool = False, source: str = ""
    ) -> Self:
        """Read one row per item: `item`, one column an attribute, and ``<attribute>_status``.

        Parameters
        ----------
        frame
            The table. A missing value is unknown; without a status column the status is
            ``known`` or ``unknown``.
        by
            The attributes to read; default, every column that is not the status of another.
        others
            Whether columns beside `by` are read too where they can be attributes: strings, whole
            numbers, true and false.
        source
            The table's name in messages.
        """
        lazy, name = open_frame(frame, source)
        schema = lazy.collect_schema()
        found = schema.names()
        possible = [
            c for c in found if c != "item" and not (c.endswith(_STATUS) and c[:-7] in found)
        ]
        attributes = tuple(by) or tuple(possible)
        if by and others:
            fitting = [c for c in possible if c not in by and _can_be_attribute(schema[c])]
            attributes += tuple(fitting)
        if not attributes:
            raise DataError(name, ["it has no attribute: one column beside 'item' is expected"])
        columns = [Column("item", "id")]
        columns += [Column(c, "category", nullable=True) for c in attributes]
        columns += [
            Column(f"{c}{_STATUS}", "category", required=False, nullable=True) for c in attributes
        ]
        table = read_table(frame, columns, source)
        if rows := rows_where(table, ~pl.col("item").is_first_distinct()):
            raise DataError(name, [f"the same item again in {rows}; one row for each is expected"])
        values, status = {}, {}
        for attribute in attributes:
            values[attribute] = table[attribute].to_numpy().astype(object)
            known = table[attribute].is_not_null().to_numpy()
            status[attribute] = np.where(known, _KNOWN, _UNKNOWN).astype(object)
            if f"{attribute}{_STATUS}" in table.columns:
                said = table[f"{attribute}{_STATUS}"]
                status[attribute] = np.where(
                    said.is_null().to_numpy(), status[attribute], said.to_numpy().astype(object)
                )
        return cls(Vocabulary(table["item"].to_arrow()), values, status)

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes, in order."""
        return tuple(self.values)

    @property
    def descriptive(self) -> tuple[str, ...]:
        """The attributes by which items may be grouped: all but the one that names the creator.

        Examples
        --------
        >>> Items.from_frame({"item": [1], "gender": ["f"], "creator": ["a b"]}).descriptive
        ('gender',)
        """
        found = tuple(name for name in self.attributes if name != CREATOR)
        return found or self.attributes

    def to_frame(self) -> pl.DataFrame:
        """Return the form that `from_frame` reads."""
        columns: dict[str, Any] = {"item": self.items.ids}
        for attribute in self.attributes:
            columns[attribute] = pl.Series(self.values[attribute].tolist(), dtype=pl.String)
            said = self.status[attribute].tolist()
            columns[f"{attribute}{_STATUS}"] = pl.Series(said, dtype=pl.String)
        return pl.DataFrame(columns)

    def grouping(self, by: Sequence[str] = ()) -> Grouping:
        """Return one group of items per value of each attribute."""
        wanted = tuple(by) or self.descriptive
        self._check(wanted)
        return Grouping.from_values(self.items.arrow, {name: self.values[name] for name in wanted})

    def crossed(self, groups: Grouping, labels: Labels) -> Grouping:
        """Return groups of items, and their crossings with labels.

        Parameters
        ----------
        groups
            Groups of these items.
        labels
            As `as_labels` returns them, with the crossings among them.
        """
        inside = groups.aligned(self.items.arrow)
        states = labels.aligned(self.items)
        place = {name: column for column, name in enumerate(labels.names)}
        names, attributes, members = list(groups.names), list(groups.attributes), [inside]
        for group, attribute in zip(groups.names, groups.attributes, strict=True):
            for label in labels.names:
                crossing = f"{group} & {label}"
                if crossing in place:
                    names.append(crossing)
                    attributes.append(f"{attribute} & {LABEL}")
                    members.append(states[:, [place[crossing]]] == LabelState.YES)
        return Grouping(
            self.items, tuple(names), np.concatenate(members, axis=1), tuple(attributes)
        )

    def as_labels(self, by: Sequence[str], labels: Labels | None = None) -> Labels:
        """Return the groups of items as labels, so that what measures labels measures groups.

        An item whose value is another one has the state *no*, one without a value *unknown*.

        Parameters
        ----------
        by
            Attributes, and `LABEL` to cross the groups of the others with content labels.
        labels
            The content labels; their names stay as they are, before the groups.

        Examples
        --------
        >>> items = Items.from_frame({"item": [1, 2], "gender": ["f", None]})
        >>> items.as_labels(["gender"]).to_frame().rows()
        [(1, 'gender=f', 1)]
        """
        attributes = [name for name in by if name != LABEL]
        self._check(attributes)
        if labels is not None and labels.errors is not None:
            raise DataError(
                "labels",
                ["labels of a system, whose errors were measured, cannot be joined with groups of "
                 "items: their errors would be lost; leave out by_item"],
            )  # fmt: skip
        groups = self.grouping(attributes)
        ids = (
            self.items
            if labels is None
            else Vocabulary.union({"items": self.items, "labels": labels.items})
        )
        names, columns = list(groups.names), []
        for name, attribute in zip(groups.names, groups.attributes, strict=True):
            rows = self.items.codes(ids.arrow)
            known = pl.Series(self.values[attribute].tolist()).is_not_null().to_numpy()
            inside = groups.aligned(self.items.arrow)[:, groups.names.index(name)]
            state = np.where(known, inside.astype(np.int8), np.int8(LabelState.UNKNOWN))
            columns.append(np.where(rows >= 0, state[rows], np.int8(LabelState.UNKNOWN)))
        if labels is None:
            rule = f"groups of items by {', '.join(attributes)}"
            return Labels(ids, tuple(names), np.stack(columns, axis=1), None, None, rule, ())
        states = labels.aligned(ids)
        if LABEL in by:
            crossed = [
                (f"{name} & {label}", _both(column, states[:, place]))
                for name, column in zip(groups.names, list(columns), strict=True)
                for place, label in enumerate(labels.names)
            ]
            names += [name for name, _ in crossed]
            columns += [column for _, column in crossed]
        every = np.concatenate([states, np.stack(columns, axis=1)], axis=1)
        stated = None
        if labels.unlabeled == "no":  # groups of items are stated, or unknown
            own = labels.labeled[labels.items.codes(ids.arrow)]
            stated = np.concatenate([own, np.ones((len(ids), len(columns)), dtype=bool)], axis=1)
        return Labels(
            ids,
            (*labels.names, *names),
            every,
            rule=labels.rule,
            exclusions=labels.exclusions,
            unlabeled=labels.unlabeled,
            stated=stated,
            attributes=frozenset(names),
        )

    def _check(self, by: Sequence[str]) -> None:
        missing = [name for name in by if name not in self.values]
        if missing:
            known = ", ".join(self.attributes)
            raise DataError(
                "items", [f"no attribute is called {m!r}; known: {known}" for m in missing]
            )

    def __len__(self) -> int:
        return len(self.items)

    def __repr__(self) -> str:
        return f"Items({len(self):,} items; {', '.join(self.attributes)})"


def _can_be_attribute(dtype: Any) -> bool:
    texts = (nw.String, nw.Categorical, nw.Enum, nw.Boolean)
    return bool(dtype.is_integer() or isinstance(dtype, texts))


def _both(one: NDArray[np.int8], other: NDArray[np.int8]) -> NDArray[np.int8]:
    """Return *and*; unknown where either is unknown, so that all crossings count the same items.

    An item of another group is not of this crossing, whatever its label; to count it as *no* where
    the label is unknown would draw down the crossings whose own items with unknown labels are left
    out.
    """
    unknown = (one == LabelState.UNKNOWN) | (other == LabelState.UNKNOWN)
    yes = (one == LabelState.YES) & (other == LabelState.YES)
    known = np.where(yes, np.int8(LabelState.YES), np.int8(LabelState.NO))
    return np.where(unknown, np.int8(LabelState.UNKNOWN), known)
