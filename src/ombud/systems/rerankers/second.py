"""A second list beside the main one: creators new to the user, of identities they rarely read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from ombud.data.dataset import Dataset
from ombud.data.exclusions import Exclusion
from ombud.data.ids import Ids, Vocabulary
from ombud.data.interactions import Interactions
from ombud.data.items import CREATOR
from ombud.data.recommendations import Recommendations
from ombud.errors import PlanError
from ombud.registry import recommender
from ombud.systems.base import Recommender
from ombud.systems.rerankers.balance import Balance, CreatorReranker, identity_codes, profile_mix
from ombud.systems.rerankers.calibrate import reordered

_WHERE = "second lists"


def second_list(
    lists: Recommendations,
    shown: int,
    items: Vocabulary,
    creators: NDArray[np.integer],
    identities: NDArray[np.integer],
    interactions: Interactions,
    target: ArrayLike,
    n: int,
) -> Recommendations:
    """Return up to n items a user, after the main list, by creators that the user has not read.

    In the order of the ranking, one item a creator, and only creators of identities whose share
    in the user's profile is below the target. Users without an item of known identity, and users
    for whom nothing is found, have no second list and are counted.

    Parameters
    ----------
    lists
        The rankings; their first places are the main list.
    shown
        How many places the main list has; they are left out.
    items
        Items whose creator or identity may be known.
    creators, identities
        Of each of them; below 0 where it is not known.
    interactions
        The histories.
    target
        The share of each identity.
    n
        How long second lists are at most.
    """
    aim = np.asarray(target, dtype=np.float64)
    past = profile_mix(interactions, lists.users, items, identities, len(aim))
    low = np.column_stack([past < aim - 1e-9, np.zeros(len(past), dtype=bool)])
    who = identity_codes(lists, items, creators)
    kind = identity_codes(lists, items, identities)
    count = int(creators.max(initial=-1)) + 1
    row = np.arange(len(lists))[:, None]
    allowed = low[row, np.maximum(kind, -1)] & (who >= 0)
    allowed[:, :shown] = False
    known = np.append(creators, -1)[items.codes(interactions.items.arrow)]
    columns = np.flatnonzero(known >= 0)
    made = sparse.csr_array(
        (np.ones(len(columns), np.int8), (columns, known[columns])), shape=(len(known), count)
    )
    rows = interactions.users.codes(lists.users)
    past_items = interactions.matrix[rows[rows >= 0]]
    past_items.data = np.ones_like(past_items.data)
    user, creator = (past_items @ made).nonzero()
    seen = np.flatnonzero(rows >= 0)[user] * np.int64(count) + creator
    keys = row * np.int64(count) + who
    allowed &= ~np.isin(keys, seen)
    flat = np.flatnonzero(allowed)
    first = flat[np.unique(keys.ravel()[flat], return_index=True)[1]]
    once = np.zeros(allowed.shape, dtype=bool)
    once.ravel()[first] = True
    order = np.argsort(~once, axis=1, kind="stable")[:, :n]
    order = np.where(np.take_along_axis(once, order, axis=1), order, -1)
    bare = np.isnan(past).any(axis=1)
    empty = ~bare & (order < 0).all(axis=1)
    lost = tuple(
        Exclusion(_WHERE, "users", int(some.sum()), reason, len(lists))
        for some, reason in (
            (bare, "no item of known identity in the profile: no second list"),
            (empty, "no candidate by a creator who is new and of an identity they read little of"),
        )
        if some.any()
    )
    return reordered(lists, order, lost)


@recommender("new-creators")
class NewCreators(CreatorReranker):
    """A second list beside a recommender's own: creators new to the user; see `second_list`.

    The main list is untouched: audit the recommender itself beside this one.

    Parameters
    ----------
    inner
        The recommender; or, as a plan has it, its `type` and arguments.
    creator
        Which attribute of the items names the creator; the source ``linked`` has it with
        ``creator = true``.
    attribute
        Which attribute is the creators' identity; default, the only other one.
    shown
        How many places the main list has.
    target
        ``equal``, or a share for every identity: below it an identity is read little.
    candidates
        How many times the length of both lists the inner recommender is asked for.
    name
        The system's name in the report.
    """

    def __init__(
        self,
        inner: Recommender | Mapping[str, Any],
        creator: str = CREATOR,
        attribute: str = "",
        shown: int = 10,
        target: Balance = "equal",
        candidates: int = 20,
        name: str = "",
    ) -> None:
        super().__init__(inner, attribute, target, candidates=candidates, name=name)
        if target == "profile":
            raise PlanError(f"{self.name}: target is the profile itself; name equal, or shares")
        if shown < 1:
            raise PlanError(f"{self.name}: shown is {shown}; the main list has at least one place")
        self.creator, self.shown = creator, shown

    def bind(self, data: Dataset) -> Self:
        """Take creators, identities and histories from the data."""
        if data.items is not None:
            known = data.items.attributes
            if self.creator not in known:
                raise PlanError(
                    f"{self.name}: items have no {self.creator!r}; they have {', '.join(known)}"
                )
            others = [name for name in known if name != self.creator]
            if not self.attribute and len(others) == 1:
                self.attribute = others[0]
        super().bind(data)
        assert data.items is not None  # the identities have come from it
        values = data.items.values[self.creator]
        there = np.array([value is not None for value in values], dtype=bool)
        self.creators = np.full(len(values), -1, dtype=np.int64)
        self.creators[there] = np.unique(values[there].astype(str), return_inverse=True)[1]
        return self

    def recommend(self, users: Ids, n: int, exclude_seen: bool = True) -> Recommendations:
        """Return up to n items for each user, none of them in the main list."""
        if self.interactions is None:
            raise PlanError(f"{self.name} needs interactions for the profiles; bind or fit it")
        lists = self.inner.recommend(users, self.shown + n * self.candidates, exclude_seen)
        return second_list(
            lists, self.shown, self.items, self.creators, self.codes, self.interactions,
            self._aim(users), n,
        )  # fmt: skip
