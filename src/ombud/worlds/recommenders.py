"""Recommenders whose effect is known: none, or one label's share multiplied.

Write S for a user's pool, Y, N and Z for the number of its items whose state for label w is YES,
NO and neither. A history is a uniformly random part of S, so its expected share of w is

- ``Y / (Y + N)`` when unknown items are excluded (given that some item is known: among the known
  items of any uniformly random part, each is equally likely to be any known item of S),
- ``Y / |S|`` when they count as *no*, ``(Y + Z) / |S|`` when they count as *yes*.

**Neutral** lists are another uniformly random part of S, in random order, disjoint from the
history when seen items are excluded. The same formulas hold for every prefix of every length, so
the expected gap between list and history is exactly zero for every user and label.

**Planted** lists are neutral lists in which some places are exchanged: to raise w, an item with
state NO gives way to an item from outside S with state YES *and the same state in every other
label*. Shares of other labels, and which places are known, therefore do not change at all. A
place is exchanged with a probability f that depends on the user and on the other labels of its
item alone; writing d for the sum of f over the items of S,

    expected list share of w = (Y + d) / (Y + N),   (Y + d) / |S|,   (Y + d + Z) / |S|

and f is chosen so that d = (x - 1) Y. Where the catalogue holds too few such items for that, d is
less, and the truth says so. To lower w (x < 1), YES and NO change places and d = -(1 - x) Y.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ombud.data.ids import Ids
from ombud.data.labels import Labels, LabelState
from ombud.data.recommendations import Recommendations
from ombud.errors import PlanError
from ombud.rng import generator
from ombud.systems.base import Recommender
from ombud.worlds.exchange import Exchange, plan_exchange
from ombud.worlds.pools import shuffled
from ombud.worlds.truth import ShareTruth, Unknown, find_group, probability_none

if TYPE_CHECKING:
    from ombud.worlds.world import World


class NeutralRecommender(Recommender):
    """Lists that are exchangeable with the user's history: no effect on any label.

    Lists hold at most `world.spec.depth` items, whatever `n` is.

    Parameters
    ----------
    world
        The world; it must have pools.
    name
        The system's name, and its random stream: two names give independent lists.
    labels
        The labels that the truth is about; default, those of the data set.
    """

    def __init__(self, world: World, name: str = "neutral", labels: Labels | None = None) -> None:
        if world.truth.pools is None:
            raise PlanError(f"world {world.spec.name!r} is too large to plant effects in")
        result = labels or world.dataset.labels
        if result is None:
            raise PlanError(f"world {world.spec.name!r} has no labels")
        self.world = world
        self.name = name
        self.labels = result
        self.pools = world.truth.pools
        self._lists: dict[bool, Recommendations] = {}

    @cached_property
    def states(self) -> NDArray[np.int8]:
        """Items x labels, for the items of the world."""
        return self.labels.aligned(self.world.truth.catalogue.items)

    def recommend(self, users: Ids, n: int, exclude_seen: bool = True) -> Recommendations:
        """Return the lists of some users, cut to n; an unknown user gets an empty list."""
        if exclude_seen not in self._lists:
            items = self._draw(exclude_seen)
            ids = self.world.truth.population.users.ids
            catalogue = self.world.truth.catalogue.items
            self._lists[exclude_seen] = Recommendations(ids, items, catalogue)
        return self._lists[exclude_seen].top(n).for_users(users)

    def truth(self, unknown: Unknown = "exclude", k: int | None = None) -> ShareTruth:
        """Return the expected shares of all users and labels.

        Parameters
        ----------
        unknown
            How items with an unknown or disputed label count.
        k
            How many places of the lists are looked at (default, all). It changes only how
            likely a share is to be defined.
        """
        size, yes, no = self._counts
        drawn = np.minimum(k or self.world.spec.depth, self.world.spec.depth)
        raised = yes + self._shift()
        whole = size[:, None].astype(np.float64)
        defined = np.ones(yes.shape)
        if unknown == "exclude":
            known = yes + no
            counted: tuple[NDArray[np.float64], ...] = (yes, raised)
            whole = np.where(known > 0, known, np.nan)
            defined = self._probability_defined(size, known.astype(np.int64), int(drawn))
        elif unknown == "no":
            counted = (yes, raised)
        else:
            neither = size[:, None] - yes - no
            counted = (yes + neither, raised + neither)
        history, lists = (part / whole for part in counted)
        groups = self.world.user_groups
        return ShareTruth(self.labels.names, groups, history, lists, defined)

    @cached_property
    def _counts(self) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
        """Return |S| (users) and Y and N (users x labels)."""
        inside = self._inside
        size = np.diff(inside.indptr).astype(np.int64)
        yes, no = (
            np.asarray(inside @ (self.states == state).astype(np.float64))
            for state in (LabelState.YES, LabelState.NO)
        )
        return size, yes, no

    @cached_property
    def _inside(self) -> sparse.csr_array:
        """Users x items: 1 where the item is in the user's pool."""
        used = self.pools >= 0
        starts = np.concatenate([[0], np.cumsum(used.sum(axis=1))]).astype(np.int32)
        ones = np.ones(int(starts[-1]), dtype=np.float64)
        shape = (len(self.pools), len(self.states))
        return sparse.csr_array((ones, self.pools[used], starts), shape=shape)

    def _probability_defined(
        self, size: NDArray[np.int64], known: NDArray[np.int64], drawn: int
    ) -> NDArray[np.float64]:
        activity = self.world.truth.population.activity[:, None]
        without = size[:, None] - known
        whole = np.broadcast_to(size[:, None], known.shape)
        listed = np.full_like(activity, drawn)
        defined = (
            1.0
            - probability_none(whole, without, np.broadcast_to(listed, known.shape))
            - probability_none(whole, without, np.broadcast_to(activity, known.shape))
            + probability_none(whole, without, np.broadcast_to(activity + listed, known.shape))
        )
        return np.where(known > 0, np.clip(defined, 0.0, 1.0), 0.0)

    def _shift(self) -> NDArray[np.float64] | float:
        """Return d, users x labels."""
        return 0.0

    def _stream(self, *names: str) -> np.random.Generator:
        spec = self.world.spec
        return generator(self.world.seed, spec.name, "recommender", self.name, *names)

    def _draw(self, exclude_seen: bool) -> NDArray[np.int32]:
        rng = self._stream("seen excluded" if exclude_seen else "seen allowed")
        part = self.pools
        if exclude_seen:
            start = self.world.truth.population.activity[:, None]
            part = np.take_along_axis(part, start + np.arange(self.world.spec.reserve), axis=1)
        return np.ascontiguousarray(shuffled(part, rng)[:, : self.world.spec.depth])


class PlantedRecommender(NeutralRecommender):
    """Lists in which one label's expected share is the history's times a factor.

    The formulas, and why other labels are untouched, are in `ombud.worlds.recommenders`.

    Parameters
    ----------
    world
        The world; it must have pools.
    label
        The label whose share is changed.
    amplify
        The factor x, or one for each group of users (see `Amplification`).
    name
        The system's name, and its random stream.
    labels
        The labels that the effect and the truth are about; default, those of the data set.
    """

    def __init__(
        self,
        world: World,
        label: str,
        amplify: float | Mapping[str, float],
        *,
        name: str = "planted",
        labels: Labels | None = None,
    ) -> None:
        super().__init__(world, name, labels)
        if label not in self.labels.names:
            raise PlanError(
                f"there is no label {label!r}; there are {', '.join(self.labels.names)}"
            )
        self.label = label
        factors = np.ones(len(self.pools))
        by_group = amplify if isinstance(amplify, Mapping) else {}
        for group, factor in by_group.items():
            factors[find_group(world.user_groups, group)] *= factor
        if not isinstance(amplify, Mapping):
            factors *= amplify
        if not (np.isfinite(factors) & (factors >= 0)).all():
            raise PlanError(f"amplify is {amplify}; factors of zero or more are expected")
        self.factors = factors

    @cached_property
    def effective_factors(self) -> NDArray[np.float64]:
        """The factor each user really gets; less far from 1 than asked where supply ends."""
        index = self.labels.names.index(self.label)
        yes = self._counts[1][:, index]
        shift = self._shift()[:, index]
        return 1 + np.divide(shift, yes, out=np.zeros_like(yes), where=yes > 0)

    @cached_property
    def _exchanges(self) -> tuple[Exchange, ...]:
        index = self.labels.names.index(self.label)
        yes = self._counts[1][:, index]
        known = np.where(self.states >= 0, self.states, np.int8(2))
        others = np.delete(known, index, axis=1).astype(np.int64)
        result = []
        for source, wanted in (
            (LabelState.NO, np.maximum(self.factors - 1, 0) * yes),
            (LabelState.YES, np.maximum(1 - self.factors, 0) * yes),
        ):
            if wanted.any():
                target = LabelState.YES if source == LabelState.NO else LabelState.NO
                leaving = self.states[:, index] == source
                coming = self.states[:, index] == target
                depth = self.world.spec.depth
                result.append(plan_exchange(self._inside, leaving, coming, others, wanted, depth))
        return tuple(result)

    def _shift(self) -> NDArray[np.float64]:
        index = self.labels.names.index(self.label)
        shift = np.zeros(self._counts[1].shape)
        for exchange in self._exchanges:
            raises = self.states[exchange.coming[0], index] == LabelState.YES
            shift[:, index] += exchange.mass if raises else -exchange.mass
        return shift

    def _draw(self, exclude_seen: bool) -> NDArray[np.int32]:
        items = super()._draw(exclude_seen)
        rng = self._stream("exchange", str(exclude_seen))
        for exchange in self._exchanges:
            items = exchange.apply(items, self._inside, rng)
        return items
