"""The same list for everyone: the most frequent or the best rated items."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ombud.data.interactions import Interactions
from ombud.errors import DataError
from ombud.registry import recommender
from ombud.systems.base import Progress
from ombud.systems.recommenders.model import Model, Scores, check_rules, count_codes


def unseen_places(seen: NDArray[np.int64], starts: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """Return the places of the first n entries of an order that are not seen, per row.

    Row r has seen ``seen[starts[r]:starts[r + 1]]``, rising.

    Notes
    -----
    With k places seen before it, the m-th unseen entry stands at place m + k; and the j-th seen
    place s_j stands before it just when s_j - j <= m. So one sorted search answers for all rows.

    Examples
    --------
    >>> unseen_places(np.array([0, 2, 1]), np.array([0, 2, 3]), 3).tolist()
    [[1, 3, 4], [0, 2, 3]]
    """
    rows = len(starts) - 1
    row_of = np.repeat(np.arange(rows), np.diff(starts))
    free_before = seen - (np.arange(len(seen)) - starts[row_of])
    span = max(int(free_before.max(initial=0)), n) + 1
    wanted = np.arange(rows)[:, None] * span + np.arange(n)
    skipped = np.searchsorted(row_of * span + free_before, wanted, side="right") - starts[:-1, None]
    return np.asarray(np.arange(n) + skipped, dtype=np.int64)


@recommender("popular")
@dataclass
class Popular(Model):
    """Recommend the items with the most interactions, or the highest mean rating.

    A damped mean is ``(sum of ratings + damping m) / (ratings + damping)``, m being the mean of
    all ratings: a few high ratings do not make a hit. Ties are broken by the number of
    interactions, then by the item id. Items without an interaction have no mean and are not
    listed.

    Parameters
    ----------
    by
        ``"count"``, ``"mean"`` or ``"damped-mean"``; the last two need ratings.
    damping
        How many ratings of average height every item is given for ``"damped-mean"``.

    Examples
    --------
    >>> from ombud.data import Interactions
    >>> data = Interactions.from_arrays([1, 1, 2, 3], ["a", "b", "b", "c"])
    >>> lists = Popular().fit(data).recommend([2], n=2)
    >>> data.items.take(lists.items[0]).tolist()
    ['a', 'c']
    """

    by: Literal["count", "mean", "damped-mean"] = "count"
    damping: float = 5.0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.predicts_ratings = self.by != "count"

    def _check_arguments(self) -> None:
        kinds = {"count", "mean", "damped-mean"}
        check_rules(
            self,
            by=(self.by in kinds, "'count', 'mean' or 'damped-mean'"),
            damping=(self.damping >= 0, "zero or more"),
        )

    def _train(
        self, interactions: Interactions, progress: Progress
    ) -> tuple[Scores, NDArray[np.int32]]:
        matrix, n_items = interactions.matrix, interactions.n_items
        counts = count_codes(matrix.indices, n_items)
        value = counts.astype(np.float64)
        if self.by != "count":
            if not interactions.explicit:
                raise DataError(
                    "training popular", [f"by={self.by!r} needs ratings; choose by='count'"]
                )
            sums = np.bincount(matrix.indices, weights=matrix.data, minlength=n_items)
            damping = self.damping if self.by == "damped-mean" else 0.0
            mean = float(matrix.data.mean(dtype=np.float64))
            value = np.full(n_items, np.nan)
            rated = counts > 0
            value[rated] = (sums[rated] + damping * mean) / (counts[rated] + damping)
        ids = np.arange(n_items)
        order = np.lexsort((ids, -counts, -np.nan_to_num(value, nan=-np.inf)))
        listed = order[np.isfinite(value[order])]
        return value.astype(np.float32), listed.astype(np.int32)

    def _set(self, state: tuple[Scores, NDArray[np.int32]]) -> None:
        self._value, self._order = state
        self._place = np.full(len(self._value), -1, np.int64)
        self._place[self._order] = np.arange(len(self._order))

    def _block(self, users: NDArray[np.int32], n: int, exclude_seen: bool) -> Scores:
        return np.tile(self._value, (len(users), 1))

    def _history_block(
        self, histories: sparse.csr_array, first: int, n: int, exclude_seen: bool
    ) -> Scores:
        return np.tile(self._value, (histories.shape[0], 1))

    def _lists(
        self, users: NDArray[np.int32], n: int, exclude_seen: bool
    ) -> tuple[NDArray[np.int32], Scores]:
        return self._history_lists(self._history_rows(users), 0, n, exclude_seen)

    def _history_lists(
        self, histories: sparse.csr_array, first: int, n: int, exclude_seen: bool
    ) -> tuple[NDArray[np.int32], Scores]:
        rows = histories.shape[0]
        starts = histories.indptr.astype(np.int64) if exclude_seen else np.zeros(rows + 1, "i8")
        seen = self._place[histories.indices] if exclude_seen else np.empty(0, np.int64)
        row_of = np.repeat(np.arange(rows), np.diff(starts))
        listed = seen >= 0
        seen, row_of = seen[listed], row_of[listed]
        seen = seen[np.lexsort((seen, row_of))]
        starts = np.searchsorted(row_of, np.arange(rows + 1))
        places = unseen_places(seen, starts, n)
        there = places < len(self._order)
        items = np.where(there, self._order[np.where(there, places, 0)], np.int32(-1))
        scores = np.where(there, self._value[items], np.float32("nan"))
        return items.astype(np.int32), scores.astype(np.float32)
