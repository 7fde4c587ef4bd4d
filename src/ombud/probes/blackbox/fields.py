"""Information other than ratings that a black box is told, and that edits may change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np

from ombud.data.ids import Vocabulary
from ombud.errors import PlanError
from ombud.probes.blackbox.systems import HistoryOf, HistorySystem
from ombud.probes.edits import Edit, EditSpace


@runtime_checkable
class FieldSystem(HistorySystem, Protocol):
    """A system that is told fields, such as a country, beside the history."""

    def recommend_with(
        self, history: HistoryOf, fields: Mapping[str, Any], n: int
    ) -> Sequence[Any]:
        """Return the n best item ids for a history and fields, best first."""
        ...


@dataclass(frozen=True)
class Fields:
    """Which fields may be edited, and to which values; each change costs 1, as a rating does.

    The first value of a field stands today. A changed field is an entry after all items of the
    catalogue, so that every search over histories edits fields too. Where a treatment names two
    values of one field, the later one counts; it costs more than need be, never less.

    Parameters
    ----------
    catalogue
        The items.
    permitted
        By field, today's value and the others that are permitted.

    Examples
    --------
    >>> fields = Fields(Vocabulary(["a", "b"]), {"country": ["DE", "FR"]})
    >>> fields.entries, fields.in_words(Edit(2, None, 1.0))
    ((('country', 'FR'),), 'set country to FR')
    """

    catalogue: Vocabulary
    permitted: Mapping[str, Sequence[Any]]

    def __post_init__(self) -> None:
        for name, values in self.permitted.items():
            if isinstance(values, str) or len(values) < 2 or len(set(values)) < len(values):
                raise PlanError(
                    f"field {name!r}: today's value and at least one other are needed, none twice"
                )

    @property
    def entries(self) -> tuple[tuple[str, Any], ...]:
        """The changes, in the order of their codes after the catalogue's."""
        return tuple((name, v) for name, values in self.permitted.items() for v in values[1:])

    @property
    def codes(self) -> Vocabulary:
        """What questions are about: codes of the items, and of changes of fields."""
        return Vocabulary(np.arange(len(self.catalogue) + len(self.entries)))

    def space(self, space: EditSpace) -> EditSpace:
        """Return a person's permitted edits with those of fields."""
        size = len(self.catalogue)
        more = np.arange(size, size + len(self.entries), dtype=np.int32)
        editable = None if space.editable is None else np.concatenate([space.editable, more])
        return replace(space, n_items=size + len(more), editable=editable)

    def asked(self, system: FieldSystem) -> HistorySystem:
        """Return the system as one that is asked about codes."""
        return _Asked(self, system)

    def in_words(self, edit: Edit) -> str:
        """Return the change of a field as a person would say it."""
        name, value = self.entries[edit.item - len(self.catalogue)]
        return f"set {name} to {value}"


class _Asked:
    def __init__(self, fields: Fields, system: FieldSystem) -> None:
        self.fields, self.system = fields, system
        self.name, self.writes = system.name, system.writes
        told = {name: list(values) for name, values in fields.permitted.items()}
        self.version = f"{system.version} {told!r}"

    def recommend(self, history: HistoryOf, n: int) -> Sequence[Any]:
        catalogue, entries = self.fields.catalogue, self.fields.entries
        now = {name: values[0] for name, values in self.fields.permitted.items()}
        codes = sorted(history)
        for code in codes:
            if code >= len(catalogue):
                name, chosen = entries[code - len(catalogue)]
                now[name] = chosen
        items = [code for code in codes if code < len(catalogue)]
        ids = catalogue.take(np.array(items, np.int64)).tolist()
        plain = dict(zip(ids, (history[code] for code in items), strict=True))
        answer = list(self.system.recommend_with(plain, now, n))
        found = catalogue.codes(answer).tolist() if answer else []
        # An item that is not in the catalogue stays one that is not: it is counted by its place.
        beyond = len(catalogue) + len(entries)
        return [code if code >= 0 else beyond + place for place, code in enumerate(found)]
