"""Who is asked about, and what: one sample of people and of targets for all systems."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ombud.data.dataset import Dataset
from ombud.data.interactions import Interactions
from ombud.data.labels import LabelState
from ombud.errors import PlanError
from ombud.probes import EditSpace, StratifiedSample, quantile_groups, stratified_sample
from ombud.probes.edits import permitted_values
from ombud.rng import generator

__all__ = ["DECILE", "Asked"]

_ACTIVITY = ("least active", "less active", "middling", "more active", "most active")
_DECILES = 10
DECILE = "decile "
"""How a group of items of one popularity is called, before its number from 1, the least popular."""


@dataclass(frozen=True, eq=False)
class Asked:
    """The people and the targets of an audit, and what they may edit.

    Parameters
    ----------
    data
        The audited data.
    seed
        Of the samples.
    values
        ``ends``: an edit rates with the least or the greatest value; ``all``: with any.
    realistic
        0 for any edit; otherwise a person rates only what stands in so many places of their list.
    """

    data: Dataset
    seed: int
    values: Literal["ends", "all"] = "ends"
    realistic: int = 0

    @cached_property
    def interactions(self) -> Interactions:
        """The histories that systems were trained on."""
        if self.data.interactions is None:
            raise PlanError("counterfactual needs interactions; the data has none")
        return self.data.interactions

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
        """Return users, about as many of every activity group."""
        rng = generator(self.seed, "counterfactual", "users")
        return stratified_sample(self.activity, max(count, int(self.activity.max()) + 1), rng)

    def targets(self, count: int) -> StratifiedSample:
        """Return items, about as many of every popularity decile."""
        rng = generator(self.seed, "counterfactual", "targets")
        return stratified_sample(self.popularity, max(count, int(self.popularity.max()) + 1), rng)

    def space(self, row: int, budget: int) -> EditSpace:
        """Return what one person may edit."""
        scale = permitted_values(self.interactions)
        values = (scale[0], scale[-1]) if self.values == "ends" and len(scale) > 1 else scale
        return EditSpace.of_user(
            self.interactions,
            self.interactions.users.ids[row],
            budget=budget,
            values=values,
            realistic=self.realistic or None,
        )

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
        """Return the members of each popularity decile, 1 for the least popular."""
        deciles = self.popularity[items]
        return {f"{DECILE}{d + 1}": deciles == d for d in np.unique(deciles).tolist()}

    def labelled(self, unknown: Literal["no", "yes"]) -> Mapping[str, NDArray[np.bool_]]:
        """Return which items of the catalogue carry each label."""
        if self.data.labels is None:
            return {}
        states = self.data.labels.aligned(self.interactions.items)
        yes = states == LabelState.YES
        if unknown == "yes":
            yes = yes | (states < LabelState.NO)
        return {name: yes[:, place] for place, name in enumerate(self.data.labels.names)}

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
