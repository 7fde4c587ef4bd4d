"""Who is asked about, and what: one sample of people and of targets for all systems."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ombud.data.dataset import Dataset
from ombud.data.interactions import Interactions
from ombud.data.labels import LabelState
from ombud.errors import PlanError
from ombud.probes import EditSpace
from ombud.probes.edits import EDIT_KINDS, EditKind, item_codes, permitted_values
from ombud.probes.sampling import StratifiedSample, quantile_groups, stratified_sample
from ombud.rng import generator

_ACTIVITY = ("least active", "less active", "middling", "more active", "most active")
_DECILES = 10
DECILE = "decile "
"""How a group of items of one popularity is called, before its number from 1, the least popular."""


@dataclass(frozen=True, eq=False)
class AuditSample:
    """The people and the targets of an audit, and what they may edit."""

    data: Dataset  # The audited data
    seed: int  # Of the samples
    # ``ends``: an edit rates with the least or the greatest value; ``all``: with any.
    values: Literal["ends", "all"] = "all"
    # 0 for any edit; otherwise a person rates only what stands in so many places of their list.
    realistic: int = 0
    # Permitted kinds of edits; ids of the items whose entries may change, or none for all.
    kinds: tuple[EditKind, ...] = EDIT_KINDS
    editable: tuple[int | str, ...] = ()
    # What the plan declares of items whose label is not known: ``yes``, or nothing.
    unknown: Literal["no", "yes"] | None = None

    @cached_property
    def interactions(self) -> Interactions:
        """The histories that systems were trained on."""
        histories: Interactions = self.data.need("interactions", "counterfactual")
        return histories

    @cached_property
    def _lengths(self) -> NDArray[np.int64]:
        return np.diff(self.interactions.matrix.indptr).astype(np.int64)

    @cached_property
    def popularity(self) -> NDArray[np.int64]:
        """The popularity decile of every item, 0 for the least popular."""
        counts = np.bincount(self.interactions.matrix.indices, minlength=self.interactions.n_items)
        return quantile_groups(counts, min(_DECILES, self.interactions.n_items))

    @cached_property
    def activity(self) -> NDArray[np.int64]:
        """The activity group of every user; -1 without a history."""
        active = self._lengths > 0
        found = np.full(len(active), -1, np.int64)
        groups = min(len(_ACTIVITY), int(active.sum()))
        if groups:
            found[active] = quantile_groups(self._lengths[active], groups)
        return found

    @cached_property
    def order(self) -> NDArray[np.int64]:
        """All users with a history, in random order; the first are the people of the report."""
        active = np.flatnonzero(self._lengths > 0)
        if not len(active):
            raise PlanError("counterfactual: no user has a history")
        return generator(self.seed, "counterfactual", "order").permutation(active)

    @property
    def without_history(self) -> int:
        """How many users have no history and are not asked about."""
        return int(np.count_nonzero(self._lengths == 0))

    def users(self, count: int) -> StratifiedSample:
        """Return users, about as many of every activity group; not stratified below two of each."""
        rng = generator(self.seed, "counterfactual", "users")
        return _sample(self.activity, count, rng)

    def targets(self, count: int) -> StratifiedSample:
        """Return items, about as many of every decile; not stratified below one of each."""
        rng = generator(self.seed, "counterfactual", "targets")
        return _sample(self.popularity, count, rng, each=1)

    def is_stratified(self, count: int) -> bool:
        """Return whether so many users are drawn by activity."""
        return count >= 2 * (int(self.activity.max()) + 1)

    @property
    def scale(self) -> tuple[float, ...]:
        """All ratings that the data permits."""
        return permitted_values(self.interactions)

    def space(self, row: int, budget: int) -> EditSpace:
        """Return what one person may edit."""
        scale = self.scale
        values = (scale[0], scale[-1]) if self.values == "ends" and len(scale) > 1 else scale
        return EditSpace.of_user(
            self.interactions,
            self.interactions.users.ids[row],
            budget=budget,
            values=values,
            realistic=self.realistic or None,
            kinds=self.kinds,
            editable=self._editable,
        )

    @cached_property
    def _editable(self) -> NDArray[np.int32] | None:
        return item_codes(self.interactions, list(self.editable)) if self.editable else None

    def user_groups(self, rows: NDArray[np.int64]) -> dict[str, NDArray[np.bool_]]:
        """Return the members of each activity group, and of the groups of the data."""
        found = {}
        for number, name in enumerate(_ACTIVITY):
            members = self.activity[rows] == number
            if members.any():
                found[name] = members
        if self.data.users is not None:
            aligned = self.data.users.aligned(self.interactions.users.ids[rows])
            for place, name in enumerate(self.data.users.names):
                if aligned[:, place].any():
                    found[name] = aligned[:, place]
        return found

    def attributes(self, rows: NDArray[np.int64]) -> dict[str, NDArray[np.object_]]:
        """Return what is known of users: their activity, and the attributes of the data."""
        words = np.array([*_ACTIVITY, "no history"], dtype=object)
        found: dict[str, NDArray[np.object_]] = {"activity": words[self.activity[rows]]}
        groups = self.data.users
        if groups is None:
            return found
        aligned = groups.aligned(self.interactions.users.ids[rows])
        for place, (name, attribute) in enumerate(
            zip(groups.names, groups.attributes, strict=True)
        ):
            known = found.setdefault(attribute, np.full(len(rows), None, dtype=object))
            known[aligned[:, place]] = name
        return found

    def target_groups(self, items: NDArray[np.int64]) -> dict[str, NDArray[np.bool_]]:
        """Return the targets of each popularity decile, 1 for the least popular, and label."""
        deciles = self.popularity[items]
        found = {f"{DECILE}{d + 1}": deciles == d for d in np.unique(deciles).tolist()}
        carried = {name: labelled[items] for name, labelled in self.labelled.items()}
        return found | {name: members for name, members in carried.items() if members.any()}

    @cached_property
    def labelled(self) -> Mapping[str, NDArray[np.bool_]]:
        """Which items of the catalogue carry each label."""
        if self.data.labels is None:
            return {}
        states = self.data.labels.aligned(self.interactions.items)
        yes = states == LabelState.YES
        if self.unknown == "yes":
            yes = yes | (states < LabelState.NO)
        return {name: yes[:, place] for place, name in enumerate(self.data.labels.names)}

    @property
    def unlabeled_items(self) -> int:
        """How many items of the catalogue have a label that is unknown or disputed."""
        if self.data.labels is None:
            return 0
        states = self.data.labels.aligned(self.interactions.items)
        return int(np.count_nonzero((states < LabelState.NO).any(axis=1)))

    def known(self, label: str) -> NDArray[np.bool_]:
        """Return for which items of the catalogue the plan or the data says if they carry it."""
        if self.data.labels is None or self.unknown == "yes":
            return np.ones(self.interactions.n_items, bool)
        states = self.data.labels.aligned(self.interactions.items)
        known: NDArray[np.bool_] = states[:, self.data.labels.names.index(label)] >= LabelState.NO
        return known

    def sets(self, names: Sequence[str], most: int = 6) -> dict[str, NDArray[np.int64]]:
        """Return the items of labels, and of the most frequent values of columns of the items.

        A value that lists several, as ``Comedy|Drama`` does, counts for each.
        """
        found: dict[str, NDArray[np.int64]] = {}
        columns = {} if self.data.items is None else self.data.items.values
        for name in names:
            if name in self.labelled:
                found[name] = np.flatnonzero(self.labelled[name])
            elif name in columns and self.data.items is not None:
                places = self.data.items.items.codes(self.interactions.items.ids)
                members: dict[str, list[int]] = {}
                for item, place in enumerate(places.tolist()):
                    value = columns[name][place] if place >= 0 else None
                    for word in [] if value is None else str(value).split("|"):
                        members.setdefault(word, []).append(item)
                frequent = sorted(members, key=lambda word: -len(members[word]))[:most]
                found |= {f"{name}: {w}": np.array(members[w], np.int64) for w in frequent}
            else:
                raise PlanError(
                    f"counterfactual: sets names {name!r}, which is neither a label nor a column "
                    f"of the items ({', '.join([*self.labelled, *columns]) or 'there is none'})"
                )
        return {name: items for name, items in found.items() if len(items)}

    @cached_property
    def titles(self) -> list[str]:
        """What readers see of every item: its title where the data has one, else its id."""
        ids = [str(item) for item in self.interactions.items.ids]
        items = self.data.items
        known = None if items is None else items.values.get("title")
        if known is None or items is None:
            return ids
        places = items.items.codes(self.interactions.items.ids).tolist()
        return [
            str(known[place]) if place >= 0 and known[place] is not None else own
            for place, own in zip(places, ids, strict=True)
        ]


def _sample(
    strata: NDArray[np.int64], count: int, rng: np.random.Generator, each: int = 2
) -> StratifiedSample:
    if count < each * (int(strata.max()) + 1):
        strata = np.where(strata >= 0, 0, -1)
    return stratified_sample(strata, count, rng)
