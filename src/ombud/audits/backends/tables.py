"""The tables of an audit in blocks: which columns are read, and what is found in them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ombud.audits.backends.blocks import decisions_table, lists_table
from ombud.audits.plan import Plan
from ombud.audits.presets import Tagger
from ombud.data.groups import Grouping
from ombud.data.ids import Vocabulary, hash_ids
from ombud.data.lake import LakeTable
from ombud.errors import DataError, PlanError

MOST_GROUPS = 1000
"""More values of one attribute than this are no groups that anyone compares."""

GROUP_TABLES = ("users", "text_groups")
"""Tables that say who or what is in which group; they may be empty."""


def _is_text(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    return bool(text or pa.types.is_string_view(kind))


def _is_id(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return _is_text(kind) or bool(pa.types.is_integer(kind))


def _is_number(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    )


def _is_place(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))  # whole ones, as of pandas


def _is_flag(kind: pa.DataType) -> bool:
    return bool(pa.types.is_boolean(kind) or pa.types.is_integer(kind))


_IDS = ("user", "item", "id", "cluster")
_KINDS: dict[str, tuple[Callable[[pa.DataType], bool], str]] = {
    **dict.fromkeys(_IDS, (_is_id, "whole numbers or strings")),
    "rank": (_is_place, "whole numbers"),
    "rating": (_is_number, "numbers"),
    "score": (_is_number, "numbers"),
    "text": (_is_text, "strings"),
    "outcome": (_is_text, "strings"),
    "label": (_is_flag, "true/false or 0/1"),
    "flagged": (_is_flag, "true/false or 0/1"),
    "yes": (pa.types.is_integer, "whole numbers"),
    "no": (pa.types.is_integer, "whole numbers"),
    "repeat": (pa.types.is_integer, "whole numbers"),
}
"""What the columns of tables that are not groups must hold."""


@dataclass(frozen=True)
class Tables:
    """The tables of a plan that are read in blocks, and which of their columns."""

    # By name: ``interactions``, ``test``, ``users`` and, for each system, its lists; or ``texts``,
    # ``text_groups`` and, for each system, its decisions.
    tables: Mapping[str, LakeTable]
    # By the same names: the columns that are read, the id first.
    columns: Mapping[str, tuple[str, ...]]
    tagger: Tagger | None = None  # what finds the groups that texts name, where no table has them
    by: tuple[str, ...] | None = None  # the attributes to compare by; None for all

    @property
    def main(self) -> str:
        """The table whose ids are the units."""
        return "texts" if "texts" in self.tables else "interactions"

    @property
    def unit(self) -> str:
        """The column of ids that every table has."""
        return "id" if self.main == "texts" else "user"

    @property
    def what(self) -> str:
        """What the units are, in a word."""
        return "texts" if self.main == "texts" else "users"

    @property
    def groups(self) -> str:
        """The name of the table of groups, whether there is one or not."""
        return "text_groups" if self.main == "texts" else "users"

    @property
    def parts(self) -> tuple[str, ...]:
        """The tables of a block: those that are read, and the groups that texts name."""
        return (*self.tables, *(() if self.tagger is None else ("text_groups",)))

    @property
    def is_clustered(self) -> bool:
        """Whether texts share clusters, which must not be torn apart."""
        return "cluster" in self.columns.get("texts", ())

    @property
    def has_members(self) -> bool:
        """Whether groups are given as memberships, one row each."""
        named = "group" in self.columns.get(self.groups, ()) and "group" not in (self.by or ())
        return self.tagger is not None or named

    @classmethod
    def of(
        cls,
        plan: Plan,
        given: Mapping[str, Mapping[str, pa.DataType]] | None = None,
        tagger: Tagger | None = None,
    ) -> Self:
        """Return the tables of a plan, their columns checked; all faults in one error.

        `given` has, by table, the types of the columns of those that do not come from files.
        """
        about_texts = plan.data.texts is not None
        names = ("texts", "text_groups") if about_texts else ("interactions", "test", "users")
        tables = {
            name: LakeTable(path, plan.data.columns.get(name, {}), name)
            for name in names
            if (path := getattr(plan.data, name)) is not None
            and not (name == "text_groups" and tagger is not None)
        }
        for system, config in plan.systems.items():
            name = decisions_table(system) if about_texts else lists_table(system)
            tables[name] = LakeTable(str(config["path"]), dict(config.get("columns", {})), system)
        chosen, kinds, faults = {}, {}, []
        for name, table in tables.items():
            try:
                types = (given or {}).get(name)
                types = dict(table.schema() if types is None else types)
                if "/" in name and table.columns:  # a record with names of its own has no others
                    types = {ours: types[ours] for ours in table.columns if ours in types}
                chosen[name] = _wanted(name, table, plan, types)
                kinds[table.told] = types[chosen[name][0]]
            except DataError as error:
                faults.append(str(error))
        if len({_is_text(kind) for kind in kinds.values()}) > 1:
            told = ", ".join(f"{kind} in {name}" for name, kind in kinds.items())
            faults.append(f"ids are {told}, so nothing would match; cast one of them")
        if faults:
            raise PlanError("\n".join(faults))
        return cls(tables, chosen, tagger, plan.by)


def _wanted(
    name: str, table: LakeTable, plan: Plan, types: Mapping[str, pa.DataType]
) -> tuple[str, ...]:
    """Return the columns of a table that are read; refuse those of a wrong type."""
    needed, more, faults = _columns_of(name, plan, types)
    faults += [
        f"column {column!r} is missing (found: {', '.join(types)})"
        for column in needed
        if column not in types
    ]
    checked = needed[:1] if name in GROUP_TABLES else (*needed, *more)
    for column in checked:
        if column in types and column in _KINDS:
            fits, kind = _KINDS[column]
            if not fits(types[column]):
                faults.append(f"column {column!r}: holds {types[column]}; {kind} were expected")
    if faults:
        raise DataError(table.told, faults)
    return (*needed, *(column for column in more if column in types))


def _columns_of(
    name: str, plan: Plan, types: Mapping[str, pa.DataType]
) -> tuple[tuple[str, ...], tuple[str, ...], list[str]]:
    """Return the columns that a table must have, those that it may have, and what is wrong."""
    if name in GROUP_TABLES:
        return _columns_of_groups(name, plan, types)
    if name == "texts":
        faults = []
        if "set" in types and plan.preset is not None and plan.data.text_groups is not None:
            faults.append(
                "it has a column 'set': whether groups are stated or tagged for each set is looked "
                "up in memory only"
            )
        votes = ("yes", "no") if "label" not in types else ("label",)
        return ("id", "text"), (*votes, "cluster"), faults
    if name.startswith("decisions/"):
        return _columns_of_decisions(types)
    more = {
        "interactions": ("rating", *(["time"] if plan.data.duplicates == "last" else [])),
        "test": ("rating",),
    }.get(name, ("rank",) if "rank" in types else ("score",))
    faults = []
    if name == "interactions" and "set" in types and (plan.by is None or "set" in plan.by):
        faults.append("it has a column 'set', by which only an audit in memory makes groups; name "
                      "the attributes to compare by: by = [...]")  # fmt: skip
    return ("user", "item"), more, faults


def _columns_of_groups(
    name: str, plan: Plan, types: Mapping[str, pa.DataType]
) -> tuple[tuple[str, ...], tuple[str, ...], list[str]]:
    unit = "user" if name == "users" else "id"
    members = "group" in types and "group" not in (plan.by or ())
    if members:
        return (unit, "group"), ("attribute",), []
    missing = [column for column in plan.by or () if column not in types]
    faults = []
    if missing:
        told = ", ".join(column for column in types if column != unit) or "none"
        faults = [f"by names {', '.join(missing)}; the table has the attributes {told}"]
    named = plan.by if plan.by is not None else [c for c in types if c != unit]
    return (unit,), tuple(named), faults


def _columns_of_decisions(
    types: Mapping[str, pa.DataType],
) -> tuple[tuple[str, ...], tuple[str, ...], list[str]]:
    for column in ("outcome", "flagged", "score"):
        if column in types:
            return ("id", column), ("repeat",), []
    return ("id",), (), ["one of the columns 'outcome', 'flagged' or 'score' is needed"]


@dataclass(frozen=True)
class Found:
    """What sorting has found out about the tables."""

    count: int  # how many blocks there are
    # The distinct items of all histories; None where texts are audited.
    items: pa.Array | None = None
    # For each attribute of units its values, in order.
    values: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    # Where groups are given as memberships: the attribute and the name of each, in order.
    members: tuple[tuple[str, str], ...] = ()

    def grouping(self) -> Grouping | None:
        """Return the names and attributes of all groups, without members; None for none."""
        pairs = self.members or tuple(
            (attribute, f"{attribute}={value}")
            for attribute, some in self.values.items()
            for value in some
        )
        if not pairs:
            return None
        return Grouping(
            Vocabulary(np.empty(0, dtype=np.int64)),
            tuple(name for _, name in pairs),
            np.zeros((0, len(pairs)), dtype=np.bool_),
            tuple(attribute for attribute, _ in pairs),
        )


def checked_values(
    kinds: Mapping[str, Iterable[Any]], units: int | None = None
) -> dict[str, tuple[str, ...]]:
    """Return the values of each attribute in order; refuse an attribute with too many.

    `kinds` has the distinct values of each attribute; `units` is None where nobody counted them.
    """
    named = {a: tuple(sorted(map(str, some))) for a, some in kinds.items()}
    for attribute, values in named.items():
        most = MOST_GROUPS if units is None else min(MOST_GROUPS, max(2, units // 2))
        if len(values) > most:
            told = f"{attribute!r} has more than {most:,} values"
            raise PlanError(f"groups: {told}; choose a coarser attribute")
    return named


def refuse_missing(columns: Iterable[str]) -> None:
    """Refuse memberships of which some columns, if any are given, are not filled in."""
    if faults := [f"column {column!r} is missing in some rows" for column in columns]:
        raise DataError("groups", faults)


def checked_members(
    pairs: Iterable[tuple[str | None, str | None]], by: Sequence[str] | None
) -> tuple[tuple[str, str], ...]:
    """Return attributes and names of groups in order; refuse those that cannot be compared by."""
    given = set(pairs)
    found = sorted((a, name) for a, name in given if a is not None and name is not None)
    if len(found) < len(given):
        columns = zip(("attribute", "group"), zip(*given, strict=True), strict=True)
        refuse_missing(column for column, values in columns if None in values)
    if len(found) > MOST_GROUPS:
        raise PlanError(f"groups: there are more than {MOST_GROUPS:,}; choose coarser ones")
    names = [name for _, name in found]
    if len(set(names)) < len(names):
        raise DataError("groups", ["a group has two attributes; give each group one attribute"])
    known = dict.fromkeys(attribute for attribute, _ in found)
    missing = [attribute for attribute in by or () if attribute not in known]
    if missing:
        told = ", ".join(known) or "none"
        raise PlanError(f"by names {', '.join(missing)}; the data has the attributes {told}")
    return tuple(pair for pair in found if by is None or pair[0] in by)


def plain_batch(batch: pa.RecordBatch, name: str, told: str) -> pa.RecordBatch:
    """Return a part of a table with ids of one type; refuse missing ids.

    Of texts only whether they are there is kept, and of clusters a 64-bit key.

    Columns have ombud's names; `told` is what the table is called in messages.
    """
    arrays = []
    for place, (column_name, column) in enumerate(
        zip(batch.schema.names, batch.columns, strict=True)
    ):
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        if place == 0 or (column_name in _IDS and name not in GROUP_TABLES):
            if column.null_count:
                fault = f"column {column_name!r} is missing in {column.null_count:,} rows or more"
                raise DataError(told, [fault])
            column = _plain_ids(column, column_name, told)
            if column_name == "cluster":
                column = pa.array(hash_ids(column).view(np.int64))
        elif name in GROUP_TABLES:
            column = pc.cast(column, pa.large_string())
        elif column_name == "text":
            column = pc.is_valid(column)
        arrays.append(column)
    return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)


def _plain_ids(column: pa.Array, name: str, told: str) -> pa.Array:
    """Return ids as 64-bit numbers with a sign, or as strings."""
    if not pa.types.is_integer(column.type):
        return pc.cast(column, pa.large_string())
    try:
        return pc.cast(column, pa.int64())
    except pa.ArrowInvalid:
        fault = (
            f"column {name!r} holds {column.type} above {2**63 - 1:,}, which blocks cannot hold; "
            "cast these ids to strings, in all tables"
        )
        raise DataError(told, [fault]) from None


def tagger_members(tagger: Tagger) -> tuple[tuple[str, str], ...]:
    """Return attribute and name of each group that a tagger knows, in its order."""
    return tuple(zip(tagger.attributes, tagger.names, strict=True))
