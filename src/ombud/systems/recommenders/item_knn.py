"""Items like those in the history."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ombud.data.interactions import Interactions
from ombud.registry import recommender
from ombud.systems.base import Progress
from ombud.systems.recommenders.model import Scores, check_rules, count_codes
from ombud.systems.recommenders.neighbours import (
    NONE,
    NeighbourModel,
    Vectors,
    inverse_lengths,
    means,
)


@dataclass
class _Lists:
    """The neighbours of items: one row each, best first, -1 where a list has ended."""

    row_of: NDArray[np.int32]
    codes: NDArray[np.int32]
    similarities: Scores


@dataclass
class _State:
    vectors: Vectors
    scale: Scores
    mean: Scores | None
    lists: _Lists | None


@recommender("item-knn")
@dataclass
class ItemKNN(NeighbourModel):
    """Recommend items that the same people have, or rate alike.

    Similarity is the cosine between items' columns: of ratings less the item's mean (explicit), or
    of the values as they are (implicit). With ratings, a score is the item's mean plus the average
    of the user's deviations on similar items, weighted by similarity; without, it is the sum of
    the similarities (times the value, as in ``implicit``). Neighbours are exact, the same to the
    bit for any number of threads; on a tie the lower item id comes first.

    Parameters
    ----------
    neighbours
        At most so many items of the history, the nearest, count for one score; None for all
        that are stored (as in ``implicit``).
    stored
        How many most similar items are kept for each item.
    min_neighbours
        An item with fewer neighbours in the history is not scored.
    min_similarity
        Less similar items are no neighbours.
    lazy
        Whether to compute the neighbours of an item only when a history holds it, instead of all in
        `fit`: right when few of many users are asked. Lists are the same.
    ignore_ratings
        Whether ratings, where there are any, are left aside: every interaction counts 1.
    threads
        How many threads to use; None for all.
    """

    neighbours: int | None = 20
    stored: int = 100
    min_neighbours: int = 1
    min_similarity: float = 1e-6
    lazy: bool = False
    ignore_ratings: bool = False
    threads: int | None = None

    def _check_arguments(self) -> None:
        super()._check_arguments()
        check_rules(self, stored=(self.stored >= 1, "at least 1"))

    def _train(self, interactions: Interactions, progress: Progress) -> _State:
        matrix, n_items = interactions.matrix, interactions.n_items
        mean = None
        if interactions.explicit:
            mean = means(matrix.indices, matrix.data, n_items)
            values = matrix.data - mean[matrix.indices]
        else:
            values = self._plain_values(interactions)
        scale = inverse_lengths(matrix.indices, values, n_items)
        if self.lazy:
            return _State(Vectors.of(interactions, values), scale, mean, None)
        lists = self._all_lists(interactions, values, scale, progress)
        bare = Vectors(matrix.indptr, matrix.indices, NONE, NONE, matrix.indices[:0], NONE)
        return _State(bare, scale, mean, lists)

    def _all_lists(
        self, interactions: Interactions, values: Scores, scale: Scores, progress: Progress
    ) -> _Lists:
        from ombud.systems.recommenders.kernels import similar_items
        from ombud.systems.recommenders.kernels._jit import workers

        matrix, n_items = interactions.matrix, interactions.n_items
        indptr, indices = matrix.indptr, matrix.indices
        counts = count_codes(indices, n_items)
        original = np.argsort(-counts, kind="stable").astype(np.int32)
        rank = np.empty(n_items, np.int32)
        rank[original] = np.arange(n_items, dtype=np.int32)
        starts = np.concatenate([[0], np.cumsum(counts[original])]).astype(indptr.dtype)
        users, row_items = np.empty(len(indices), np.int32), np.empty(len(indices), np.int32)
        index, row_values = np.empty(len(indices), indptr.dtype), np.empty_like(values)
        similar_items.by_frequency(
            indptr, indices, values, rank, starts, users, index, row_items, row_values
        )
        size = min(self.stored, max(n_items - 1, 1))
        codes, similar = np.empty((n_items, size), np.int32), np.empty((n_items, size), np.float32)
        ranked_scale = scale[original]
        with workers(self.threads) as count:
            value = np.empty((count, n_items, size), np.float32)
            code = np.empty((count, n_items, size), np.int32)
            held = np.zeros((count, n_items), np.int32)
            bar = np.full((count, n_items), self.min_similarity, np.float32)
            # Portions only so that progress is seen and an interrupt is taken.
            portions = 1 + min(63, len(indices) // 500_000)
            bounds = np.linspace(0, n_items, portions + 1).astype(np.int64)
            for part in range(portions):
                progress(part, portions, "portions of items")
                similar_items.all_pairs(
                    bounds[part], bounds[part + 1], starts, users, index, indptr, row_items,
                    row_values, ranked_scale, original, value, code, held, bar,
                )  # fmt: skip
            similar_items.merge(value, code, held, original, codes, similar)
        progress(portions, portions, "portions of items")
        return _Lists(np.arange(n_items, dtype=np.int32), codes, similar)

    def _set(self, state: _State) -> None:
        self._state = state

    def _lists_for(self, items: NDArray[np.int32]) -> _Lists:
        """Return lists that hold the neighbours of some items, computed if they are not stored."""
        from ombud.systems.recommenders.kernels import similar_items
        from ombud.systems.recommenders.kernels._jit import workers

        state = self._state
        if state.lists is not None:
            return state.lists
        rows, v = np.unique(items), state.vectors
        size = min(self.stored, max(len(state.scale) - 1, 1))
        row_of = np.full(len(state.scale), -1, np.int32)
        row_of[rows] = np.arange(len(rows), dtype=np.int32)
        codes = np.empty((len(rows), size), np.int32)
        similar = np.empty((len(rows), size), np.float32)
        with workers(self.threads) as count:
            similar_items.some_rows(
                rows, count, v.starts, v.users, v.column_values, v.indptr, v.indices, v.values,
                state.scale, np.float32(self.min_similarity), codes, similar,
            )  # fmt: skip
        return _Lists(row_of, codes, similar)

    def _block(self, users: NDArray[np.int32], n: int, exclude_seen: bool) -> Scores:
        return self._history_block(self._history_rows(users), 0, n, exclude_seen)

    def _history_block(
        self, histories: sparse.csr_array, first: int, n: int, exclude_seen: bool
    ) -> Scores:
        from ombud.systems.recommenders.kernels import item_scores
        from ombud.systems.recommenders.kernels._jit import workers

        mean, lists = self._state.mean, self._lists_for(histories.indices)
        values = histories.data if mean is None else histories.data - mean[histories.indices]
        out = np.empty(histories.shape, np.float32)
        average = mean is not None
        with workers(self.threads) as count:
            shared = (
                count, histories.indptr, histories.indices, values, lists.row_of, lists.codes,
                lists.similarities, average, self.min_neighbours,
            )  # fmt: skip
            longest = int(np.diff(histories.indptr).max(initial=0))
            if self.neighbours is None or longest <= self.neighbours:
                item_scores.score_all(*shared, out)
            else:
                item_scores.score_best(*shared, self.neighbours, out)
        if mean is not None:
            out += mean
        return out
