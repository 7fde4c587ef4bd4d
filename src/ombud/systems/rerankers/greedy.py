"""Greedy reranking towards target shares, for many users at once."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ombud.stats.statistics import Floats

Cost = Literal["mix", "share"]
"""How distance from the target is counted: over one mix, or label by label."""

# Numbers of one array while choosing (16 MiB).
_HELD = 2**21


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
    users, candidates = items.shape
    n = min(n, candidates)
    chosen = np.full((users, n), -1, dtype=np.int64)
    weights = sparse.csr_array(weights)
    longest = max(1, int(np.diff(weights.indptr).max(initial=0)))
    step = max(1, _HELD // (candidates * longest))
    for start in range(0, users, step):
        part = slice(start, start + step)
        chosen[part] = _choose(
            relevance[part], items[part], weights, target[part], n, strength, cost, alpha, places
        )
    return chosen


def _choose(
    relevance: Floats,
    items: NDArray[np.int32],
    weights: sparse.csr_array,
    target: Floats,
    n: int,
    strength: float,
    cost: Cost,
    alpha: float,
    places: Floats,
) -> NDArray[np.int64]:
    users, candidates = items.shape
    row = np.arange(users)
    # Not a product with infinity, which would be undefined at full strength.
    there = np.isfinite(relevance)
    gain = np.where(there, (1 - strength) * np.where(there, relevance, 0.0), -np.inf)
    # One entry for each category of each candidate; those that cannot matter are left out.
    carried_by = weights[items.ravel()]
    entry = np.repeat(np.arange(users * candidates), np.diff(carried_by.indptr))
    cell = entry // candidates * target.shape[1] + carried_by.indices
    add, aim = carried_by.data.astype(np.float64), target.ravel()[cell]
    if cost == "mix":
        used = aim > 0
        entry, cell, add, aim = entry[used], cell[used], add[used], aim[used]
    result = np.zeros(target.shape)
    order = np.empty((users, n), dtype=np.int64)
    for index in range(n):
        whole = places[: index + 1].sum()
        before = ((1 - alpha) * result / whole + alpha * target).ravel()[cell]
        more = (1 - alpha) * places[index] / whole * add
        with np.errstate(divide="ignore", invalid="ignore"):
            change = np.where(aim > 0, -aim * np.log1p(more / before), 0.0)
            if cost == "share":
                less = -(1 - aim) * np.log1p(-more / (1 - before))
                change += np.where(aim < 1, less, 0.0)
        total = np.bincount(entry, weights=change, minlength=items.size).reshape(items.shape)
        best = np.argmax(gain - strength * total, axis=1)
        order[:, index] = np.where(np.isfinite(gain[row, best]), best, -1)
        gain[row, best] = -np.inf
        taken = weights[items[row, best]]
        user = np.repeat(row, np.diff(taken.indptr))
        result[user, taken.indices] += places[index] * taken.data
    return order
