"""The tables of one audit, held together and checked against each other."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from html import escape
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
from pydantic import ValidationError

from ombud.data.card import Card
from ombud.data.exclusions import Exclusion, near_identical
from ombud.data.groups import Grouping
from ombud.data.ids import FROM_ZERO, Ids, Vocabulary, counted_from_zero
from ombud.data.interactions import Interactions
from ombud.data.items import Items
from ombud.data.labels import Labels
from ombud.data.tables import TABLES, TableOptions, read_table_file, read_tables
from ombud.data.texts import Texts
from ombud.errors import DataError, PlanError
from ombud.files import hash_file

NO_HISTORY = (
    "no list is of a user with a history; name the column with the users' ids: --map "
    'recommendations.user=COLUMN, or columns = { user = "COLUMN" } of the system in a plan'
)
"""Why lists cannot be compared with histories."""


def lists_without_history(lists: int, of: int) -> Exclusion:
    """Return how many lists have no history, as a warning if they are most of them."""
    key = "warning/unknown-users" if 2 * lists > of else ""
    reason = "their users have no history, so there is nothing to compare with"
    return Exclusion("recommendations", "lists", lists, reason, of, key)


@dataclass(frozen=True, eq=False)
class Dataset:
    """Whatever an audit has: interactions and labels, or texts, or all of them.

    Parameters
    ----------
    interactions
        Users' histories.
    labels
        Labels of items.
    texts
        Texts to be moderated.
    users
        Groups of users.
    text_groups
        Groups of texts (identities named in them).
    card
        What is known about the data.
    test
        Held-out interactions of the same users and items, when the data was split.
    items
        Attributes of items, such as who made them.
    audited
        The users whose lists an audit asks for, where a preset has chosen some; default, everyone
        with a history. Systems are trained on all.
    """

    interactions: Interactions | None = None
    labels: Labels | None = None
    texts: Texts | None = None
    users: Grouping | None = None
    text_groups: Grouping | None = None
    card: Card = field(default_factory=lambda: Card(name="unnamed"))
    test: Interactions | None = None
    items: Items | None = None
    audited: Ids | None = None

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the tables and their sizes, names as plain text."""
        histories = self.interactions
        sizes = (
            {}
            if histories is None
            else {
                "Interactions": int(histories.matrix.nnz),
                "Users": len(histories.users),
                "Items": len(histories.items),
            }
        )
        tables = {
            "Texts": self.texts,
            "Groups of users": self.users,
            "Groups of texts": self.text_groups,
        }
        sizes |= {name: len(table) for name, table in tables.items() if table is not None}
        if self.labels is not None:
            sizes["Labels"] = len(self.labels.names)
        return html_table(
            self.card.title or self.card.name, {name: f"{n:,}" for name, n in sizes.items()}
        )

    def need(self, table: str, who: str) -> Any:
        """Return a table; refuse data without it, in words that name who needs it."""
        if (found := getattr(self, table)) is None:
            raise PlanError(f"{who} needs {table}; the data has none")
        return found

    def __post_init__(self) -> None:
        for name, kind in _TABLES.items():
            value = getattr(self, name)
            if value is None or isinstance(value, kind):
                continue
            if isinstance(value, str | Path | Mapping) or hasattr(value, "columns"):
                object.__setattr__(self, name, read_table_file(name, value))
            else:
                fault = f"a {type(value).__name__} is not {kind.__name__}, a path or a frame"
                raise DataError(name, [fault])

    @property
    def exclusions(self) -> tuple[Exclusion, ...]:
        """Everything left out while reading, and everything that does not fit together."""
        result: list[Exclusion] = []
        for table in (self.interactions, self.labels, self.texts):
            if table is not None:
                result += table.exclusions
        if self.labels is not None:
            result += near_identical("labels", self.labels.names)
        for groups in (self.users, self.text_groups):
            if groups is not None:
                result += near_identical("groups", groups.names)
        if self.interactions is not None and self.labels is not None:
            result += self._unmatched_labels(self.interactions, self.labels)
        if self.interactions is not None and self.items is not None:
            result += self._unmatched_items(self.interactions, self.items)
        if self.interactions is not None and self.users is not None:
            ids = self.interactions.users.ids
            result += _unmatched_groups(self.users, ids, "users", "have no history")
        if self.texts is not None and self.text_groups is not None:
            result += _unmatched_groups(
                self.text_groups, self.texts.ids, "texts", "are not among the texts"
            )
        return tuple(result)

    def foreign_items(self, system: str, shown: Ids) -> tuple[Exclusion, ...]:
        """Refuse lists of which no item occurs in another table, and warn if most do not.

        `shown` are the items of a system's lists, each once.
        """
        tables = (self.interactions, self.test, self.labels, self.items)
        known = np.zeros(len(shown), bool)
        for table in tables:
            known |= table.items.codes(shown) >= 0 if table is not None else False
        unknown = int(np.count_nonzero(~known))
        if self.interactions is None:
            return ()
        key = "warning/unknown-items"
        if not known.all() and counted_from_zero(shown, self.interactions.items.ids):
            reason = (
                "the items of lists start with 0, those of histories with 1: are they row numbers?"
            )
            return (Exclusion("recommendations", "items", unknown, reason, len(shown), key),)
        if unknown <= len(shown) / 2:
            return ()
        ids, other = self.interactions.items.ids[:2].tolist(), np.asarray(shown)[~known][0]
        met = {str(one).strip("{}").casefold() for one in self.interactions.items.ids.tolist()}
        odd = [str(one).strip("{}").casefold() for one in np.asarray(shown)[~known]]
        if sum(one in met for one in odd) > unknown / 2:
            fault = f"its items differ from those of histories in capitals alone ({other!s})"
            fix = "add --read recommendations.ids=lowercase, or write all ids in one way"
            raise DataError(system, [f"{fault}; {fix}"])
        told = f"they have ids such as {np.asarray(other).item()!r}, and the histories {ids!r}"
        if unknown == len(shown):
            fix = "name the column that has such ids with --map recommendations.item=COLUMN"
            fault = f"no recommended item occurs in any other table: {told}; {fix}"
            raise DataError(system, [fault])
        reason = f"they occur in no other table: {told}"
        return (Exclusion("recommendations", "items", unknown, reason, len(shown), key),)

    @staticmethod
    def _unmatched_items(interactions: Interactions, items: Items) -> list[Exclusion]:
        """Return items without attributes, and attributes of items nobody met."""
        result = []
        strangers = int(np.count_nonzero(interactions.items.codes(items.items.arrow) < 0))
        if strangers == len(items):
            raise _no_known_id("items", interactions, items.items)
        if strangers:
            reason = "they have attributes but occur in no history (used only if recommended)"
            result.append(Exclusion("items", "items", strangers, reason, len(items)))
        bare = int(np.count_nonzero(items.items.codes(interactions.items.arrow) < 0))
        if bare:
            reason = "they are in no row of the table of items: their attributes are unknown"
            result.append(Exclusion("items", "items", bare, reason, interactions.n_items))
        return result

    @staticmethod
    def _unmatched_labels(interactions: Interactions, labels: Labels) -> list[Exclusion]:
        """Labels on items nobody met are no fault, but the reader must see how many there are."""
        absent = int(np.count_nonzero(interactions.items.codes(labels.items.arrow) < 0))
        alike = _alike_ids(interactions.items, labels.items)
        if not absent:
            return alike
        if absent == len(labels.items) and interactions.n_items:
            raise _no_known_id("labels", interactions, labels.items)
        reason = "they carry labels but occur in no history (used only if recommended)"
        return [Exclusion("labels", "items", absent, reason, len(labels.items)), *alike]


def _no_known_id(table: str, interactions: Interactions, items: Vocabulary) -> DataError:
    own, met = (list(map(str, two.ids.tolist())) for two in (items, interactions.items))
    fix = f"name the column that holds the same ids with --map {table}.item=COLUMN"
    plain, mine = ({one.strip("{}").lower() for one in ids} for ids in (met, own))
    if plain & mine:  # they differ in braces and capitals alone
        side = table if mine != {*own} else "interactions"
        fix = f"add --read {side}.ids=lowercase ([data.reading.{side}] of a plan)"
    told = f"it has ids such as {own[:2]}, and the interactions {met[:2]}"
    return DataError(table, [f"none of its ids is an item of the interactions: {told}; {fix}"])


_TABLES: dict[str, type[Any]] = {
    "interactions": Interactions,
    "test": Interactions,
    "labels": Labels,
    "texts": Texts,
    "users": Grouping,
    "text_groups": Grouping,
    "items": Items,
}


def _alike_ids(met: Vocabulary, labeled: Vocabulary) -> list[Exclusion]:
    """Return a notice of items whose label is under an id that differs in capitals alone."""
    if met.ids.dtype.kind not in "UO":
        return []
    unlabeled = met.ids[labeled.codes(met.arrow) < 0]
    known = {str(one).casefold() for one in labeled.ids.tolist()}
    alike = [one for one in unlabeled.tolist() if str(one).casefold() in known]
    if not alike:
        return []
    reason = f"ids such as {alike[0]!r} are labeled under other capitals, and count as other items"
    return [Exclusion("labels", "items", len(alike), reason, len(met), "warning/near-identical")]


def _unmatched_groups(groups: Grouping, ids: Ids, what: str, absent: str) -> list[Exclusion]:
    """Return ids of groups that are not in the data, and units of the data in no group."""
    count = len(groups.units)
    rows = groups.units.codes(ids)
    here = len(np.unique(rows[rows >= 0]))
    if what == "texts" and counted_from_zero(groups.units.ids, ids):
        raise DataError("groups", [FROM_ZERO])
    if count and len(rows) and not here:
        both = (np.asarray(groups.units.ids), np.asarray(ids))
        told = [", ".join(map(repr, some[:2].tolist())) for some in both]
        fault = f"none of its {count:,} ids is among the {what}: it has {told[0]}, they {told[1]}"
        raise DataError("groups", [fault])
    ungrouped = int(np.count_nonzero(~groups.aligned(ids).any(axis=1)))
    return group_exclusions(count, here, ungrouped, len(rows), what, absent)


def group_exclusions(
    count: int, here: int, ungrouped: int, units: int, what: str, absent: str
) -> list[Exclusion]:
    """Return what is said of a table of groups that does not match the units.

    `count` is how many ids the table has, and `here` how many of them are units. `what` says what
    units are, and `absent` what those of the table lack, in words.
    """
    result = []
    if count > here:
        reason = f"they are in the table of groups but {absent}"
        key = "warning/unknown-ids" if 2 * here < count else ""
        result.append(Exclusion("groups", what, count - here, reason, count, key))
    if ungrouped:
        reason = "they have no known group, and count in overall numbers only"
        result.append(Exclusion("groups", what, ungrouped, reason, units))
    return result


def read_folder(path: str | Path, name: str, options: TableOptions | None = None) -> Dataset:
    """Return the data set in a folder that a builder wrote: its tables and ``card.json``.

    `name` says which data set it must be, as its card says.
    """
    folder = Path(path)
    file = folder / "card.json"
    if not file.is_file():
        fault = f"there is no {file}; 'ombud data build {name} --to {folder}' makes the folder"
        raise DataError(name, [fault])
    try:
        card = Card.model_validate_json(file.read_text(encoding="utf-8"))
    except (ValidationError, UnicodeDecodeError) as error:
        raise DataError(str(file), [f"it is not a card: {error}"]) from None
    if card.name != name:
        raise DataError(str(folder), [f"its card says {card.name!r}; {name!r} was expected"])
    paths = {table: folder / f"{table}.parquet" for table in TABLES}
    paths = {table: file for table, file in paths.items() if file.is_file()}
    rule = str(card.facts.get("rule", "as stored"))
    tables = read_tables(paths, replace(options or TableOptions(), rule=rule))
    here = {file.name: hash_file(file) for file in paths.values()}
    return Dataset(**tables, card=card.model_copy(update={"hashes": card.hashes | here}))


def html_table(title: str, rows: Mapping[str, str]) -> str:
    """Return names and values as a small table for a notebook, every text escaped.

    Examples
    --------
    >>> html_table("<b>", {"Users": "300"})
    '<p>&lt;b&gt;</p><table><tr><th>Users</th><td>300</td></tr></table>'
    """
    cells = (
        f"<tr><th>{escape(name)}</th><td>{escape(value[:300])}</td></tr>"
        for name, value in rows.items()
        if value
    )
    return f"<p>{escape(title[:200])}</p><table>{''.join(cells)}</table>"


_SECONDS_BETWEEN_BARS = 0.2


def notebook_bar() -> Callable[[int, int, str], None] | None:
    """Return progress as a bar below the cell where a notebook runs this; None elsewhere."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if not hasattr(shell, "kernel"):
        return None
    display: Any = importlib.import_module("IPython.display")
    shown, task, last = display.display(display.HTML(""), display_id=True), "", 0.0

    def show(done: int, total: int, note: str) -> None:
        nonlocal task, last
        if note == task and done < total and monotonic() - last < _SECONDS_BETWEEN_BARS:
            return
        task, last = note, monotonic()
        bar = f'<progress max="{max(total, 1)}" value="{done}"></progress>'
        shown.update(display.HTML(f"{bar} {escape(note)}"))

    return show
