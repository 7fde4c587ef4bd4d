"""Greedy reranking towards target shares, for many users at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ombud.stats.statistics import Floats

__all__ = ["Cost", "greedy_order", "padded"]

Cost = Literal["mix", "share"]
"""How distance from the target is counted: over one mix, or label by label."""

# Numbers of one array while choosing (16 MiB).
_HELD = 2**21


def padded(weights: sparse.csr_array) -> tuple[NDArray[np.int32], Floats]:
    """Return the columns and values of each row, filled up with column 0 and value 0."""
    weights = sparse.csr_array(weights)
    lengths = np.diff(weights.indptr)
    width = max(1, int(lengths.max(initial=0)))
    used = np.arange(width) < lengths[:, None]
    columns = np.zeros(used.shape, dtype=np.int32)
    values = np.zeros(used.shape)
    columns[used], values[used] = weights.indices, weights.data
    return columns, values


@dataclass(frozen=True)
class _Distance:
    """One term of the divergence, up to what does not depend on the list."""

    cost: Cost
    alpha: float

    def __call__(self, carried: Floats, target: Floats, whole: Floats) -> Floats:
        found = (1 - self.alpha) * carried / whole + self.alpha * target
        with np.errstate(divide="ignore", invalid="ignore"):
            value = np.where(target > 0, -target * np.log(found), 0.0)
            if self.cost == "share":
                value += np.where(target < 1, -(1 - target) * np.log1p(-found), 0.0)
        return value


def greedy_order(
    relevance: Floats,
    items: NDArray[np.int32],
    weights: sparse.csr_array,
    target: Floats,
    *,
    n: int,
    strength: float,
    cost: Cost,
    alpha: float,
    places: Floats,
) -> NDArray[np.int64]:
    r"""Return which candidate goes to each place.

    At each place the candidate is taken that maximises
    :math:`(1 - \lambda) r_i - \lambda D(p, q_{L \cup i})`, with r the relevance, L what is already
    in the list, q its shares and D the divergence from the target p.

    Since every item has the same weight at a given place, D changes between candidates only at
    the labels that a candidate carries; nothing else is computed.

    Parameters
    ----------
    relevance
        Users x candidates; -inf where there is no candidate.
    items
        Users x candidates: rows of `weights`.
    weights
        Items x categories: how much of each category an item carries.
    target
        Users x categories.
    n
        How many places.
    strength
        Lambda, 0 to 1.
    cost
        ``mix``: p log(p / q) over categories. ``share``: p log(p / q) + (1 - p) log((1 - p) /
        (1 - q)) for each category on its own.
    alpha
        How much of the target is mixed into what is found.
    places
        The weight of each place.

    Returns
    -------
    Users x n: places in the candidate lists; -1 where there are no more candidates.
    """
    columns, values = padded(weights)
    users, candidates = items.shape
    n = min(n, candidates)
    chosen = np.full((users, n), -1, dtype=np.int64)
    step = max(1, _HELD // (candidates * columns.shape[1]))
    for start in range(0, users, step):
        part = slice(start, start + step)
        cats, adds = columns[items[part]], values[items[part]]
        # Not a product with infinity, which would be undefined at full strength.
        there = np.isfinite(relevance[part])
        gain = np.where(there, (1 - strength) * np.where(there, relevance[part], 0.0), -np.inf)
        aim = target[part]
        row = np.arange(len(aim))
        mine = aim[row[:, None, None], cats]
        carried = np.zeros(aim.shape)
        distance = _Distance(cost, alpha)
        for place in range(n):
            whole = np.asarray(places[: place + 1].sum())
            before = distance(carried, aim, whole)
            now = carried[row[:, None, None], cats]
            after = distance(now + places[place] * adds, mine, whole)
            change = np.where(adds > 0, after - before[row[:, None, None], cats], 0.0)
            best = np.argmax(gain - strength * change.sum(axis=2), axis=1)
            chosen[part, place] = np.where(np.isfinite(gain[row, best]), best, -1)
            gain[row, best] = -np.inf
            np.add.at(carried, (row[:, None], cats[row, best]), places[place] * adds[row, best])
    return chosen
