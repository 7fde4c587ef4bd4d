"""Exchange items of lists for items that differ from them in one label only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse


@dataclass(frozen=True, eq=False)
class Exchange:
    """With what probability an item of a list gives way, and to which items."""

    # The kind of each item: items of one kind have the same state in all other labels.
    kinds: NDArray[np.int64]
    leaving: NDArray[np.bool_]  # Whether each item may give way
    coming: NDArray[np.int64]  # The items that may come in, ordered by kind
    # Users x kinds: the probability that a place with a leaving item of that kind is exchanged.
    probability: NDArray[np.float64]
    # For each user, the sum of the probabilities over the leaving items of the pool.
    mass: NDArray[np.float64]

    def apply(
        self, lists: NDArray[np.int32], inside: sparse.csr_array, rng: np.random.Generator
    ) -> NDArray[np.int32]:
        """Return the lists with exchanged places.

        Systematic sampling: the places of a list, ordered by kind, are laid end to end, each as
        long as its probability, and a place is exchanged when a comb with teeth one apart and a
        uniformly random start has a tooth in it. Every place has exactly its probability, and
        the places of one kind are exchanged at most ``ceil(sum of their probabilities)`` times,
        which is never more than the items that can come in.

        Parameters
        ----------
        lists
            Users x places: item codes, -1 beyond the end.
        inside
            Users x items: the pool; only items outside it come in.
        rng
            The random stream.
        """
        n_kinds = self.probability.shape[1]
        kinds = np.where(lists >= 0, self.kinds[lists], n_kinds)
        may = (lists >= 0) & self.leaving[lists]
        rows = np.arange(len(lists))[:, None]
        chance = np.where(may, self.probability[rows, np.minimum(kinds, n_kinds - 1)], 0.0)
        order = np.argsort(kinds, axis=1, kind="stable")
        ends = np.cumsum(np.take_along_axis(chance, order, axis=1), axis=1)
        teeth = np.floor(ends + rng.random((len(lists), 1))).astype(np.int64)
        exchanged = np.diff(teeth, axis=1, prepend=0) > 0
        user, index = np.nonzero(exchanged)
        index = order[user, index]
        wanted = user * n_kinds + kinds[user, index]
        rank = np.arange(len(wanted)) - np.searchsorted(wanted, wanted)
        outside = np.ones(inside.shape, dtype=bool)
        outside[np.repeat(np.arange(len(lists)), np.diff(inside.indptr)), inside.indices] = False
        owner, column = np.nonzero(outside[:, self.coming])
        offered = owner * n_kinds + self.kinds[self.coming[column]]
        first, last = (np.searchsorted(offered, wanted, side) for side in ("left", "right"))
        # Rounding could ask for one item more than there is; that place then stays as it was.
        kept = rank < last - first
        user, index, rank, first, last = (a[kept] for a in (user, index, rank, first, last))
        turn = rng.integers(2**31, size=len(lists))[user]
        result = lists.copy()
        chosen = column[first + (rank + turn) % (last - first)]
        result[user, index] = self.coming[chosen]
        return result


def plan_exchange(
    inside: sparse.csr_array,
    leaving: NDArray[np.bool_],
    coming: NDArray[np.bool_],
    others: NDArray[np.integer[Any]],
    wanted: NDArray[np.float64],
    depth: int,
) -> Exchange:
    """Spread a wanted mass over the kinds of items that can be exchanged.

    A kind with E leaving items in the pool and A coming items outside it can take the
    probability ``c = min(1, A / min(depth, E))`` for each of its places. All are scaled by one
    number so that the sum over the pool is what is wanted, or as near as supply allows.

    Parameters
    ----------
    inside
        Users x items: the pool.
    leaving, coming
        Which items may give way, and which may take their place.
    others
        Items x other labels, with values 0, 1 and 2: what must not change. At most 39 labels.
    wanted
        The wanted mass of each user.
    depth
        The longest list.
    """
    # One number for each pattern of states 0, 1, 2: far quicker to sort than rows are.
    _, kinds = np.unique(others @ 3 ** np.arange(others.shape[1]), return_inverse=True)
    n_kinds, n_users = int(kinds.max()) + 1, inside.shape[0]
    user = np.repeat(np.arange(n_users), np.diff(inside.indptr))
    cell = user * n_kinds + kinds[inside.indices]
    stock, taken = (
        np.bincount(cell[some[inside.indices]], minlength=n_users * n_kinds).reshape(n_users, -1)
        for some in (leaving, coming)
    )
    supply = np.bincount(kinds[coming], minlength=n_kinds) - taken
    capacity = np.minimum(1.0, supply / np.clip(stock, 1, depth))
    total = np.einsum("uk,uk->u", capacity, stock)
    scale = np.divide(wanted, total, out=np.zeros_like(wanted), where=total > 0)
    probability = capacity * np.minimum(scale, 1.0)[:, None]
    places = np.flatnonzero(coming)
    places = places[np.argsort(kinds[places], kind="stable")]
    mass = np.einsum("uk,uk->u", probability, stock)
    return Exchange(kinds, leaving, places, probability, mass)
