"""Who made what: identities of items, and how many of each stand in profiles and in lists."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ombud.data.labels import LabelState
from ombud.data.recommendations import Recommendations
from ombud.errors import PlanError
from ombud.systems.rerankers.balance import identity_codes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ombud.data.dataset import Dataset
    from ombud.data.ids import Ids, Vocabulary
    from ombud.data.interactions import Interactions
    from ombud.metrics.base import Outputs
    from ombud.stats.statistics import Floats


NO_ROW = "not in the table of items"
"""The outcome of an item that the table of items does not have."""


@dataclass(frozen=True, eq=False)
class Creators:
    """One attribute of the creators of items."""

    attribute: str  # Its name
    # The identities, from the most to the least frequent among items of the platform.
    names: tuple[str, ...]
    items: Vocabulary  # The items of the table
    codes: NDArray[np.int64]  # The identity of each of them; -1 where it is not known
    status: NDArray[np.object_]  # The outcome of each of them
    # Which of them may hold several works; None where nobody looked.
    flagged: NDArray[np.bool_] | None = None

    def on(self, items: Vocabulary) -> NDArray[np.int64]:
        """Return the identity of other items, -1 where it is not known."""
        return np.append(self.codes, -1)[self.items.codes(items.arrow)]

    def status_on(self, items: Vocabulary) -> NDArray[np.object_]:
        """Return the outcome of other items."""
        return np.append(self.status, NO_ROW)[self.items.codes(items.arrow)]

    def flagged_on(self, items: Vocabulary) -> NDArray[np.bool_] | None:
        """Return which of other items may hold several works; None where nobody looked."""
        if self.flagged is None:
            return None
        return np.append(self.flagged, False)[self.items.codes(items.arrow)]

    def where(self, kept: NDArray[np.bool_]) -> Creators:
        """Return the same with only some items of the table known."""
        codes = np.where(kept, self.codes, -1)
        return replace(self, codes=codes)

    def in_profiles(
        self, interactions: Interactions, users: Ids, mix: Floats | None = None
    ) -> Floats:
        """Return users x identities: how many items of each stand in histories.

        Parameters
        ----------
        interactions
            The histories.
        users
            Whose.
        mix
            What an item of known identity adds in place of 1 for its own: items of the table x
            identities.
        """
        rows = interactions.users.codes(users)
        codes = self.on(interactions.items)
        columns = np.flatnonzero(codes >= 0)
        shape = (len(codes), len(self.names))
        member = sparse.csr_array((np.ones(len(columns)), (columns, codes[columns])), shape=shape)
        if mix is not None:
            adds = np.zeros(shape)
            adds[columns] = mix[self.items.codes(interactions.items.arrow)[columns]]
            member = sparse.csr_array(adds)
        counts = np.zeros((len(rows), len(self.names)))
        matrix = interactions.matrix[rows[rows >= 0]]
        ones = sparse.csr_array(
            (np.ones(matrix.nnz), matrix.indices, matrix.indptr), shape=matrix.shape
        )
        counts[rows >= 0] = (ones @ member).toarray()
        return counts

    def mix_in_lists(self, lists: Recommendations, k: int, mix: Floats) -> Floats:
        """Return lists x identities: the sum of the mixes of places of known identity.

        Parameters
        ----------
        lists
            The lists.
        k
            How many places of each list count.
        mix
            Items of the table x identities.
        """
        own = np.where(self.codes >= 0, np.arange(len(self.codes)), -1)
        places = identity_codes(lists.top(k), self.items, own)
        padded = np.vstack([np.where(self.codes[:, None] >= 0, mix, 0.0), np.zeros(mix.shape[1])])
        found: Floats = padded[np.maximum(places, -1)].sum(axis=1)
        return found

    def in_lists(self, lists: Recommendations, k: int, weights: Floats | None = None) -> Floats:
        """Return lists x identities: how many places of each, or how much exposure.

        Parameters
        ----------
        lists
            The lists.
        k
            How many places of each list count.
        weights
            The weight of each place; default, 1.
        """
        codes = identity_codes(lists.top(k), self.items, self.codes)
        weight = np.ones(codes.shape[1]) if weights is None else weights[: codes.shape[1]]
        found: Floats = np.stack([(codes == g) @ weight for g in range(len(self.names))], axis=1)
        return found

    @cached_property
    def chief(self) -> str:
        """The identity that is told where one must be chosen: of two, the less frequent."""
        return self.names[min(1, len(self.names) - 1)]

    @property
    def told(self) -> tuple[str, ...]:
        """The identities whose shares say something: of two, one is enough."""
        return (self.chief,) if len(self.names) <= 2 else self.names

    def index(self, identity: str) -> int:
        """Return the code of an identity."""
        if identity not in self.names:
            known = ", ".join(self.names)
            raise PlanError(f"no item has the identity {identity!r}; known: {known}")
        return self.names.index(identity)


def creators_of(data: Dataset, attribute: str, asking: str) -> Creators:
    """Return an attribute of the creators; or say what is missing.

    Parameters
    ----------
    data
        The data, with interactions and a table of items.
    attribute
        Which one; empty for the only one that there is.
    asking
        What needs it, for messages.
    """
    if data.interactions is None or data.items is None:
        lacking = "interactions" if data.interactions is None else "table of items"
        raise PlanError(
            f"{asking} needs interactions and a table of items; the data has no {lacking}"
        )
    known = data.items.descriptive
    if not attribute and len(known) > 1:
        raise PlanError(f"{asking}: name one attribute of the items: {', '.join(known)}")
    attribute = attribute or known[0]
    if attribute not in known:
        raise PlanError(f"{asking}: items have no {attribute!r}; they have {', '.join(known)}")
    values = data.items.values[attribute]
    status = data.items.status[attribute]
    there = np.array([value is not None for value in values], dtype=bool)
    if not there.any():
        raise PlanError(f"{asking}: no item has a known {attribute}; there is nothing to compare")
    found, inverse = np.unique(values[there].astype(str), return_inverse=True)
    codes = np.full(len(values), -1, dtype=np.int64)
    codes[there] = inverse
    met = data.interactions.items.codes(data.items.items.arrow) >= 0
    often = np.bincount(codes[there & met], minlength=len(found))
    order = np.lexsort((found, -often))
    rank = np.empty(len(found), dtype=np.int64)
    rank[order] = np.arange(len(found))
    codes[there] = rank[codes[there]]
    names = tuple(str(found[i]) for i in order)
    return Creators(attribute, names, data.items.items, codes, status, data.items.flagged)


def exposure_of(k: int) -> Floats:
    """Return the exposure of each place: 1 / log2(rank + 1)."""
    weights: Floats = 1 / np.log2(np.arange(k) + 2)
    return weights


def shares(counts: Floats) -> Floats:
    """Return rows of counts as shares of their sum; NaN where the sum is 0.

    Examples
    --------
    >>> shares(np.array([[1.0, 3.0], [0.0, 0.0]])).tolist()
    [[0.25, 0.75], [nan, nan]]
    """
    whole = counts.sum(axis=1, keepdims=True)
    found: Floats = np.full(counts.shape, np.nan)
    np.divide(counts, whole, out=found, where=whole > 0)
    return found


def profile_users(data: Dataset, users: NDArray[Any]) -> NDArray[np.bool_]:
    """Return who belongs to the sample of profiles: users of whom nothing is held out.

    Where something is held out of everyone, everyone belongs to it.
    """
    everyone = np.ones(len(users), dtype=bool)
    if data.test is None:
        return everyone
    rows = data.test.users.codes(users)
    held = np.append(np.diff(data.test.matrix.indptr) > 0, False)[rows]
    return everyone if held.all() else ~held


def lists_in(outputs: Mapping[str, Outputs], asking: str) -> dict[str, Recommendations]:
    """Return the lists of the recommenders, by system."""
    lists = {name: some for name, some in outputs.items() if isinstance(some, Recommendations)}
    if not lists:
        raise PlanError(f"{asking} needs lists; the audit has no recommender")
    return lists


def by_genre(creators: Creators, data: Dataset, genres: tuple[str, ...]) -> dict[str, Creators]:
    """Return, for each genre, the same creators with only its items known."""
    if not genres:
        return {}
    member = _member(creators, data, genres)
    return {genre: creators.where(member[:, g]) for g, genre in enumerate(genres)}


def expected_mix(creators: Creators, data: Dataset, genres: tuple[str, ...]) -> Floats:
    """Return items x identities: the mix that the genres of an item let expect.

    For each genre it is the mix of all interactions with its items of known identity; an item of
    several genres counts for each in equal parts, and one of none of them belongs to the rest.
    Each mix is drawn to that of all interactions as if by one more, so that no share is 0.

    Parameters
    ----------
    creators
        The identities.
    data
        With interactions, and with labels that have the genres.
    genres
        Their names.
    """
    assert data.interactions is not None  # creators_of has checked
    member = _member(creators, data, genres).astype(np.float64)
    member = np.column_stack([member, member.sum(axis=1) == 0])
    member /= member.sum(axis=1, keepdims=True)
    often = np.bincount(data.interactions.matrix.indices, minlength=data.interactions.n_items)
    weight = np.append(often, 0)[data.interactions.items.codes(creators.items.arrow)]
    known = np.flatnonzero(creators.codes >= 0)
    identity = sparse.csr_array(
        (weight[known].astype(np.float64), (creators.codes[known], known)),
        shape=(len(creators.names), len(creators.codes)),
    )
    read = np.asarray(identity @ member).T
    overall = read.sum(axis=0) / read.sum()
    mix = (read + overall) / (read.sum(axis=1, keepdims=True) + 1)
    found: Floats = member @ mix
    return found


def _member(creators: Creators, data: Dataset, genres: tuple[str, ...]) -> NDArray[np.bool_]:
    """Return items x genres; what is not known to be of a genre is not of it."""
    if data.labels is None:
        raise PlanError("genres name labels of items; the data has no labels")
    missing = sorted(set(genres) - set(data.labels.names))
    if missing:
        raise PlanError(f"genres name {', '.join(missing)}, which the labels do not have")
    states = data.labels.aligned(creators.items)
    columns = [data.labels.names.index(genre) for genre in genres]
    member: NDArray[np.bool_] = states[:, columns] == LabelState.YES
    return member
