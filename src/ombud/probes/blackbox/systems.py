"""Systems that can be asked about a history, and of which nothing else is known."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np
from scipy import sparse

from ombud.data.ids import Vocabulary
from ombud.errors import AuditedSystemError, PlanError
from ombud.probes.edits import Edit, EditSpace
from ombud.systems.recommenders.model import Model

HistoryOf = Mapping[Any, float]
"""Item ids and their values."""


class TryAgainError(AuditedSystemError):
    """A system gave no answer this time; it may be asked again after some seconds."""

    def __init__(self, reason: str, wait: float) -> None:
        super().__init__(reason)
        self.wait = wait


@runtime_checkable
class HistorySystem(Protocol):
    """Anything that answers a history with a list.

    Attributes
    ----------
    name
        The system's name in the report.
    version
        What its answers depend on beside the history; part of the cache's key.
    writes
        Whether asking leaves something behind, such as ratings in an account. Such a system is
        refused unless the plan says ``sandbox = true``.
    """

    name: str
    version: str
    writes: bool

    def recommend(self, history: HistoryOf, n: int) -> Sequence[Any]:
        """Return the n best item ids for a history, best first."""
        ...


@runtime_checkable
class ManyHistories(Protocol):
    """A system that answers many histories at once, faster than one by one."""

    def recommend_many(self, histories: Sequence[HistoryOf], n: int) -> list[Sequence[Any]]:
        """Return a list for each history."""
        ...


def check_writes(system: HistorySystem, sandbox: bool) -> None:
    """Refuse a system that would write to real accounts.

    Raises
    ------
    PlanError
        Unless the plan says that the system is a sandbox.
    """
    if system.writes and not sandbox:
        raise PlanError(
            f"{system.name} writes the histories it is asked about; edits exist in requests and in "
            "copies of data only. Say sandbox = true if no real account can be touched"
        )


@dataclass
class FunctionSystem:
    """A Python function of a history and a length.

    Examples
    --------
    >>> last = FunctionSystem(lambda history, n: sorted(set("abc") - set(history))[:n])
    >>> last.recommend({"a": 1.0}, 5)
    ['b', 'c']
    """

    function: Callable[[HistoryOf, int], Sequence[Any]]
    name: str = "function"
    version: str = ""
    writes: bool = False

    def recommend(self, history: HistoryOf, n: int) -> Sequence[Any]:
        """Return what the function returns."""
        return self.function(history, n)


class AskedModel:
    """A trained model of ombud, asked only through its lists."""

    writes = False

    def __init__(self, model: Model) -> None:
        self.model, self.name = model, model.name
        self.version = repr(model)

    def recommend(self, history: HistoryOf, n: int) -> Sequence[Any]:
        """Return the model's list for a history."""
        return self.recommend_many([history], n)[0]

    def recommend_many(self, histories: Sequence[HistoryOf], n: int) -> list[Sequence[Any]]:
        """Return the model's lists for some histories."""
        data = self.model.interactions
        flat = [item for history in histories for item in history]
        codes = data.items.codes(flat) if flat else np.empty(0, np.int32)
        rows = np.repeat(np.arange(len(histories)), [len(h) for h in histories])
        values = np.array([v for h in histories for v in h.values()], np.float32)
        known = codes >= 0
        matrix = sparse.csr_array(
            sparse.coo_array(
                (values[known], (rows[known], codes[known])), shape=(len(histories), data.n_items)
            )
        )
        lists = self.model.recommend_for(matrix, min(n, data.n_items)).items
        return [data.items.take(row[row >= 0]).tolist() for row in lists]


# Information other than ratings that a black box is told, and that edits may change.


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

    Examples
    --------
    >>> fields = Fields(Vocabulary(["a", "b"]), {"country": ["DE", "FR"]})
    >>> fields.entries, fields.in_words(Edit(2, None, 1.0))
    ((('country', 'FR'),), 'set country to FR')
    """

    catalogue: Vocabulary  # the items
    # By field, today's value and the others that are permitted.
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
