"""Changes of a person's own history: what may be changed, and what it costs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ombud.data.ids import Ids
from ombud.data.interactions import Interactions
from ombud.errors import DataError, PlanError

EditKind = Literal["add", "change", "remove"]
EDIT_KINDS: tuple[EditKind, ...] = ("add", "change", "remove")
"""All kinds of edits."""

_MOST_VALUES = 20


@dataclass(frozen=True, slots=True)
class Edit:
    """One entry of a history that differs: it costs 1, whatever it does.

    Parameters
    ----------
    item
        Code of the item.
    before, after
        The entry's value before and after; None for *not rated*.

    Examples
    --------
    >>> Edit(3, None, 5.0).kind, Edit(3, 2.0, 5.0).kind, Edit(3, 2.0, None).kind
    ('add', 'change', 'remove')
    """

    item: int
    before: float | None
    after: float | None

    def __post_init__(self) -> None:
        if self.before == self.after:
            raise ValueError(f"item {self.item}: an edit changes something")

    @property
    def kind(self) -> EditKind:
        """What the edit does."""
        if self.before is None:
            return "add"
        return "remove" if self.after is None else "change"

    def in_words(self, name: str = "", explicit: bool = True) -> str:
        """Return the edit as a person would say it."""
        what = name or f"item {self.item}"
        if self.kind == "remove":
            return f"take back {what}"
        if not explicit:
            return f"add {what}"
        if self.kind == "add":
            return f"rate {what} {self.after:g}"
        return f"rate {what} {self.after:g} instead of {self.before:g}"


Edits = tuple[Edit, ...]
"""A treatment of one's own history; its cost is its length."""


@dataclass(frozen=True, eq=False)
class History:
    """The entries of one person: item codes, rising, and their values."""

    items: NDArray[np.int32]
    values: NDArray[np.float32]

    @classmethod
    def of(cls, items: Iterable[int], values: Iterable[float] | None = None) -> Self:
        """Return a history from codes in any order; without values, all are 1."""
        codes = np.asarray(list(items), np.int32)
        given = np.ones(len(codes)) if values is None else np.asarray(list(values))
        order = np.argsort(codes, kind="stable")
        codes = codes[order]
        if len(given) != len(codes) or (codes[1:] == codes[:-1]).any():
            raise DataError("history", ["one value for each of its items, none twice, is needed"])
        return cls(codes, given[order].astype(np.float32))

    @classmethod
    def of_user(cls, interactions: Interactions, row: int) -> Self:
        """Return the history of row ``row`` of the interactions."""
        part = slice(interactions.matrix.indptr[row], interactions.matrix.indptr[row + 1])
        return cls(
            interactions.matrix.indices[part].astype(np.int32), interactions.matrix.data[part]
        )

    def __len__(self) -> int:
        return len(self.items)

    def value(self, item: int) -> float | None:
        """Return the value of an item, None where it is not rated."""
        place = int(np.searchsorted(self.items, item))
        there = place < len(self.items) and self.items[place] == item
        return float(self.values[place]) if there else None

    def after(self, edits: Sequence[Edit]) -> History:
        """Return the history with some edits made."""
        entries = dict(zip(self.items.tolist(), self.values.tolist(), strict=True))
        for edit in edits:
            if entries.get(edit.item) != edit.before:
                raise ValueError(
                    f"item {edit.item} does not stand at {edit.before} before the edit"
                )
            if edit.after is None:
                del entries[edit.item]
            else:
                entries[edit.item] = edit.after
        return History.of(entries.keys(), entries.values())

    def row(self, n_items: int) -> sparse.csr_array:
        """Return the history as one sparse row."""
        return rows_of([self], n_items)


def rows_of(histories: Sequence[History], n_items: int) -> sparse.csr_array:
    """Return histories as sparse rows."""
    starts = np.concatenate([[0], np.cumsum([len(h) for h in histories])])
    items = [h.items for h in histories] or [np.empty(0, np.int32)]
    values = [h.values for h in histories] or [np.empty(0, np.float32)]
    return sparse.csr_array(
        (np.concatenate(values), np.concatenate(items), starts), shape=(len(histories), n_items)
    )


@dataclass(frozen=True, eq=False)
class Singles:
    """Single edits as parallel arrays; ``after`` and ``before`` are NaN for *not rated*."""

    items: NDArray[np.int32]
    before: NDArray[np.float32]
    after: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.items)

    def edit(self, index: int) -> Edit:
        """Return one of them as an edit."""
        before, after = float(self.before[index]), float(self.after[index])
        return Edit(
            int(self.items[index]),
            None if np.isnan(before) else before,
            None if np.isnan(after) else after,
        )

    def take(self, chosen: NDArray[Any]) -> Singles:
        """Return some of them."""
        return Singles(self.items[chosen], self.before[chosen], self.after[chosen])


@dataclass(frozen=True, kw_only=True, eq=False)
class EditSpace:
    """Which edits of a history are permitted: a treatment space whose cost is the number of edits.

    Every entry that differs costs 1. The target of a reachability question is never rated by an
    edit (`without_rating`); if the person has rated it, only taking that back can bring it back.

    Parameters
    ----------
    history
        The history as it is.
    n_items
        The size of the catalogue.
    budget
        At most so many edits.
    values
        The values an entry may take; ``(1.0,)`` for implicit feedback.
    kinds
        Permitted kinds of edits.
    editable
        Item codes whose entries may change; None for all.
    unrated
        Item codes that no edit may rate: the targets.
    realistic
        None for any edit; otherwise a person can rate only items they have rated or that stand
        in the first ``realistic`` places of the list that they are shown after the last edit.
    """

    history: History
    n_items: int
    budget: int
    values: tuple[float, ...] = (1.0,)
    kinds: tuple[EditKind, ...] = EDIT_KINDS
    editable: NDArray[np.int32] | None = None
    unrated: tuple[int, ...] = ()
    realistic: int | None = None
    _open: NDArray[np.bool_] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        faults = []
        if self.budget < 0:
            faults.append(f"budget is {self.budget}; it must be zero or more")
        if not self.kinds or set(self.kinds) - set(EDIT_KINDS):
            faults.append(f"kinds is {self.kinds}; choose from {', '.join(EDIT_KINDS)}")
        if not self.values:
            faults.append("values is empty; an entry must be able to take a value")
        if self.realistic is not None and self.realistic < 1:
            faults.append(f"realistic is {self.realistic}; a list has at least one place")
        named = np.empty(0, np.int32) if self.editable is None else np.asarray(self.editable)
        if ((named < 0) | (named >= self.n_items)).any():
            faults.append("editable names an item that is not in the catalogue")
        if faults:
            raise PlanError("edits: " + "; ".join(faults))
        allowed = np.ones(self.n_items, bool)
        if self.editable is not None:
            allowed[:] = False
            allowed[np.asarray(self.editable, np.int64)] = True
        object.__setattr__(self, "_open", allowed)

    @classmethod
    def of_user(cls, interactions: Interactions, user: Any, **options: Any) -> Self:
        """Return the space of one user's edits, with the values that occur in the data."""
        row = int(interactions.users.codes([user])[0])
        if row < 0:
            raise DataError("edits", [f"user {user!r} is not in the interactions"])
        options.setdefault("values", permitted_values(interactions))
        history = History.of_user(interactions, row)
        return cls(history=history, n_items=interactions.n_items, **options)

    @property
    def editable_entries(self) -> int:
        """How many entries some permitted edit can change."""
        rated = np.zeros(self.n_items, bool)
        rated[self.history.items] = True
        closed = np.zeros(self.n_items, bool)
        closed[list(self.unrated)] = True
        many = len(self.values) > 1
        own = "remove" in self.kinds, "change" in self.kinds and many
        count = np.zeros(self.n_items, bool)
        if own[0]:
            count |= rated
        if own[1]:
            count |= rated & ~closed
        if "add" in self.kinds:
            count |= ~rated & ~closed
        return int((count & self._open).sum())

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know of the space: a budget beyond what can be edited, no history."""
        said = []
        if self.budget > self.editable_entries:
            said.append(
                f"the budget of {self.budget} edits is larger than the {self.editable_entries} "
                "entries that may be edited; all of them may change"
            )
        if len(self.history) == 0:
            said.append("the person has no history; only additions are possible")
        return tuple(said)

    def nothing(self) -> Edits:
        """Return the treatment that changes nothing."""
        return ()

    def cost(self, treatment: Edits) -> int:
        """Return the number of entries that differ."""
        return len(treatment)

    def faults(self, treatment: Edits) -> list[str]:
        """Return why a treatment is not permitted; nothing when it is.

        What a list shows is not known here: `ombud.probes.outcomes.realistic_faults` checks that.
        """
        said, scale = [], {np.float32(value) for value in self.values}
        if len(treatment) > self.budget:
            said.append(f"{len(treatment)} edits are over the budget of {self.budget}")
        if len({e.item for e in treatment}) < len(treatment):
            said.append("an entry is edited twice")
        for edit in treatment:
            if edit.kind not in self.kinds:
                said.append(f"item {edit.item}: to {edit.kind} is not permitted")
            if not 0 <= edit.item < self.n_items or not self._open[edit.item]:
                said.append(f"item {edit.item} may not be edited")
            if edit.after is not None and edit.item in self.unrated:
                said.append(f"item {edit.item} is a target and may not be rated")
            if edit.after is not None and np.float32(edit.after) not in scale:
                said.append(f"item {edit.item}: {edit.after:g} is not on the scale")
            if edit.before != self.history.value(edit.item):
                said.append(f"item {edit.item} does not stand at {edit.before}")
        return said

    def without_rating(self, targets: Iterable[int]) -> EditSpace:
        """Return the space in which some targets may not be rated."""
        return replace(self, unrated=tuple(sorted({*self.unrated, *map(int, targets)})))

    def singles(
        self, history: History | None = None, shown: NDArray[np.int32] | None = None
    ) -> Singles:
        """Return all single edits of the history, or of an edited one, in a fixed order.

        An entry that was edited is not edited again: the cost counts entries that differ.

        Parameters
        ----------
        history
            The history after some edits; default the one of the space.
        shown
            The list shown now, best first; needed when edits must be realistic.
        """
        now = self.history if history is None else history
        fresh = self._open.copy()
        fresh[_differing(self.history, now)] = False
        closed = np.zeros(self.n_items, bool)
        closed[list(self.unrated)] = True
        rated = np.zeros(self.n_items, bool)
        rated[now.items] = True
        own = fresh[now.items]
        items: list[NDArray[Any]] = []
        before: list[NDArray[Any]] = []
        after: list[NDArray[Any]] = []
        if "add" in self.kinds:
            may = fresh & ~rated & ~closed
            if self.realistic is not None:
                if shown is None:
                    raise ValueError("realistic edits need the list that is shown")
                near = np.zeros(self.n_items, bool)  # -1 in a list is where it ended
                near[shown[: self.realistic][shown[: self.realistic] >= 0]] = True
                may &= near
            new = np.flatnonzero(may)
            for value in self.values:
                items.append(new)
                before.append(np.full(len(new), np.nan))
                after.append(np.full(len(new), value))
        if "change" in self.kinds:
            for value in self.values:
                # A change to the value that stands there is none, and would cost an edit.
                chosen = own & (now.values != np.float32(value)) & ~closed[now.items]
                items.append(now.items[chosen])
                before.append(now.values[chosen])
                after.append(np.full(int(chosen.sum()), value))
        if "remove" in self.kinds:
            items.append(now.items[own])
            before.append(now.values[own])
            after.append(np.full(int(own.sum()), np.nan))
        return Singles(
            np.concatenate(items).astype(np.int32),
            np.concatenate(before).astype(np.float32),
            np.concatenate(after).astype(np.float32),
        )


def _differing(first: History, second: History) -> NDArray[np.int64]:
    """Return the items whose entries differ."""
    if first is second:
        return np.empty(0, np.int64)
    a = dict(zip(first.items.tolist(), first.values.tolist(), strict=True))
    b = dict(zip(second.items.tolist(), second.values.tolist(), strict=True))
    return np.array([i for i in a.keys() | b.keys() if a.get(i) != b.get(i)], np.int64)


def permitted_values(interactions: Interactions) -> tuple[float, ...]:
    """Return the values that entries may take: the declared scale in its steps.

    The step is the smallest difference of ratings that occur. Without a scale, or where ratings do
    not lie on its steps, they are the values that occur; of a fine scale, its ends.
    """
    if not interactions.explicit:
        return (1.0,)
    found = np.unique(interactions.matrix.data).astype(np.float64)
    scale = interactions.rating_scale or (float(found[0]), float(found[-1]))
    step = np.diff(np.union1d(found, scale)).min(initial=np.inf)
    if np.isfinite(step) and (scale[1] - scale[0]) / step < _MOST_VALUES:
        every = scale[0] + step * np.arange(round((scale[1] - scale[0]) / step) + 1)
        near = np.abs(found[:, None] - every).min(axis=1)
        if near.max() < 1e-4 * step and abs(every[-1] - scale[1]) < 1e-4 * step:
            return tuple(float(np.float32(v)) for v in every)
    if len(found) <= _MOST_VALUES:
        return tuple(float(v) for v in found)
    return (float(scale[0]), float(scale[1]))


def item_codes(interactions: Interactions, items: Ids) -> NDArray[np.int32]:
    """Return the codes of some items; unknown ones are an error that names the first."""
    codes = interactions.items.codes(items)
    lost = np.flatnonzero(codes < 0)
    if len(lost):
        first = np.asarray(items, dtype=object)[lost[0]]
        raise DataError(
            "items", [f"{len(lost):,} of {len(codes):,} are not in the catalogue, first {first!r}"]
        )
    return codes
