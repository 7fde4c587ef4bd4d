"""Lists against what was held out: which places of a list hold a relevant item."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ombud.data.dataset import Dataset
from ombud.data.exclusions import Exclusion
from ombud.data.interactions import Interactions
from ombud.data.recommendations import Recommendations
from ombud.errors import PlanError
from ombud.metrics.base import Outputs
from ombud.metrics.history import top_quartile

Relevance: TypeAlias = Literal["presence", "top-quartile"]
"""Which held-out items are relevant: all, or those in the top quartile of the user's ratings."""

NoList: TypeAlias = Literal["exclude", "zero"]
"""Users without a list: left out and counted, or counted as lists without a hit."""


@dataclass(frozen=True, eq=False)
class Judged:
    """Lists and what they should have held."""

    # The users that can be measured: those with a relevant held-out item and a list.
    users: NDArray[Any]
    hits: NDArray[np.bool_]  # users x places: whether the place holds a relevant item
    # Users x places: the held-out rating (or 1) of a relevant item, 0 elsewhere.
    gains: NDArray[np.float64]
    # Users x items: all relevant held-out items, the rating (or 1) stored.
    relevant: sparse.csr_array
    exclusions: tuple[Exclusion, ...]  # users that cannot be measured, and why

    @property
    def n_relevant(self) -> NDArray[np.int64]:
        """How many relevant items each user has."""
        return np.diff(self.relevant.indptr).astype(np.int64)


def judge(
    outputs: Outputs,
    data: Dataset,
    k: int,
    relevance: Relevance = "presence",
    no_list: NoList = "exclude",
) -> Judged:
    """Compare lists with the held-out interactions of the same users.

    Parameters
    ----------
    outputs
        The lists.
    data
        Has the held-out interactions in ``test``.
    k
        How many places of each list count.
    relevance
        Which held-out items are relevant, see `relevant_part`.
    no_list
        Users with a relevant item but an empty list: left out and counted (``exclude``), or
        kept as lists without a hit (``zero``).
    """
    if not isinstance(outputs, Recommendations):
        raise PlanError("an accuracy metric measures recommendations, not a moderator's decisions")
    if data.test is None:
        raise PlanError(
            "accuracy needs held-out interactions, and the data has none; give the plan a split"
        )
    test, lists = data.test, outputs.top(k)
    rows = test.users.codes(lists.users)
    known = rows >= 0
    relevant = relevant_part(test, data.interactions, rows[known], relevance)
    counts = np.zeros(len(rows), dtype=np.int64)
    counts[known] = np.diff(relevant.indptr)
    has_item, has_list = counts > 0, lists.lengths > 0
    rule = "" if relevance == "presence" else " in the top quartile of their ratings"
    kept = has_item & has_list if no_list == "exclude" else has_item
    exclusions = [
        Exclusion("accuracy", "users", int(np.count_nonzero(lacking)), reason, len(rows))
        for lacking, reason in (
            (~has_item, f"no held-out item{rule}"),
            (has_item & ~kept, "no list was recommended"),
        )
        if lacking.any()
    ]
    relevant = sparse.csr_array(relevant[kept[known]])
    gains = _gains(lists.in_catalogue(test.items)[kept], relevant)
    hits = ~np.isnan(gains)
    users = np.asarray(lists.users)[kept]
    return Judged(users, hits, np.where(hits, gains, 0.0), relevant, tuple(exclusions))


def relevant_part(
    test: Interactions, train: Interactions | None, rows: NDArray[np.int32], relevance: Relevance
) -> sparse.csr_array:
    """Return the relevant held-out items of some users, as users x items.

    ``presence``: every held-out item. ``top-quartile``: the held-out items whose rating reaches
    the 75th percentile of *all* of the user's ratings, history and held-out part together,
    interpolated linearly between the two nearest ranks; items that tie with that threshold are
    all relevant.

    `rows` are the users, as codes of ``test.users``.
    """
    held = sparse.csr_array(test.matrix[rows])
    held.sort_indices()
    if relevance == "presence":
        return held
    if not test.explicit:
        raise PlanError("relevance='top-quartile' needs ratings; use relevance='presence'")
    lengths = [np.diff(held.indptr)]
    values = [held.data]
    if train is not None:
        codes = train.users.codes(test.users.take(rows))
        history = sparse.csr_array(train.matrix[np.maximum(codes, 0)])
        own = np.where(codes >= 0, np.diff(history.indptr), 0)
        values.append(history.data[np.repeat(codes >= 0, np.diff(history.indptr))])
        lengths.append(own)
    owner = np.concatenate([np.repeat(np.arange(len(rows)), many) for many in lengths])
    order = np.argsort(owner, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.sum(lengths, axis=0))])
    whole = np.concatenate(values)[order]
    columns = np.zeros(len(whole), dtype=np.int32)  # which item it is makes no difference here
    top = np.empty(len(whole), dtype=bool)
    top[order] = top_quartile(sparse.csr_array((whole, columns, starts), shape=(len(rows), 1)))
    inside = top[: held.nnz]
    left = np.concatenate([[0], np.cumsum(inside)])[held.indptr]
    return sparse.csr_array((held.data[inside], held.indices[inside], left), shape=held.shape)


def _gains(codes: NDArray[np.int32], relevant: sparse.csr_array) -> NDArray[np.float64]:
    """Return the stored value of each listed item, NaN where the item is not relevant."""
    gains = np.full(codes.shape, np.nan)
    if not relevant.nnz:
        return gains
    width = relevant.shape[1]
    row = np.arange(len(codes), dtype=np.int64)
    # Rows and their columns are sorted, so all relevant pairs are one sorted array of keys.
    keys = np.repeat(row, np.diff(relevant.indptr)) * width + relevant.indices
    # By number: several times faster than by a mask that looks random.
    used = np.flatnonzero(codes >= 0)
    wanted = (row[:, None] * width + codes).ravel()[used]
    index = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    gains.reshape(-1)[used] = np.where(keys[index] == wanted, relevant.data[index], np.nan)
    return gains
