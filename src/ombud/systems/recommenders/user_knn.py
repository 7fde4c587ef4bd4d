"""What people with a similar history have, or rate highly."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ombud.data.interactions import Interactions
from ombud.registry import recommender
from ombud.systems.base import Progress
from ombud.systems.recommenders.model import Scores
from ombud.systems.recommenders.neighbours import (
    NONE,
    NeighbourModel,
    Vectors,
    inverse_lengths,
    means,
)


@dataclass
class _State:
    vectors: Vectors
    scale: Scores
    explicit: bool


def _row_codes(indptr: NDArray[np.int32]) -> NDArray[np.int32]:
    return np.repeat(np.arange(len(indptr) - 1, dtype=np.int32), np.diff(indptr))


@recommender("user-knn")
@dataclass
class UserKNN(NeighbourModel):
    """Recommend what the nearest users have, or rate above their own mean.

    Similarity is the cosine between users' rows: of ratings less the user's mean (explicit), or of
    the values as they are (implicit). With ratings, a score is the user's mean plus the average of
    the nearest raters' deviations, weighted by similarity; without, it is the sum of the
    similarities of the nearest users who have the item. Nothing is computed for users who are not
    asked. Lists are exact and the same to the bit for any number of threads; on a tie the lower
    user id is nearer.

    Parameters
    ----------
    neighbours
        At most so many users, the nearest who have the item, count for one score; None for all.
    min_neighbours
        An item with fewer neighbours who have it is not scored.
    min_similarity
        Less similar users are no neighbours.
    ignore_ratings
        Whether ratings, where there are any, are left aside: every interaction counts 1.
    threads
        How many threads to use; None for all.
    """

    neighbours: int | None = 20
    min_neighbours: int = 1
    min_similarity: float = 1e-6
    ignore_ratings: bool = False
    threads: int | None = None

    def _train(self, interactions: Interactions, progress: Progress) -> _State:
        matrix, n_users = interactions.matrix, interactions.n_users
        rows = _row_codes(matrix.indptr)
        if interactions.explicit:
            values = matrix.data - means(rows, matrix.data, n_users)[rows]
        else:
            values = self._plain_values(interactions)
        scale = inverse_lengths(rows, values, n_users)
        return _State(Vectors.of(interactions, values), scale, interactions.explicit)

    def _set(self, state: _State) -> None:
        self._state = state

    def _block(self, users: NDArray[np.int32], n: int, exclude_seen: bool) -> Scores:
        return self._near(self._history_rows(users), users, n, exclude_seen)

    def _history_block(
        self, histories: sparse.csr_array, first: int, n: int, exclude_seen: bool
    ) -> Scores:
        nobody = np.full(histories.shape[0], -1, np.int32)
        return self._near(histories, nobody, n, exclude_seen)

    def _near(
        self, histories: sparse.csr_array, myself: NDArray[np.int32], n: int, exclude_seen: bool
    ) -> Scores:
        from ombud.systems.recommenders.kernels import similar_users
        from ombud.systems.recommenders.kernels._jit import workers

        state, count = self._state, histories.shape[0]
        v, rows = state.vectors, _row_codes(histories.indptr)
        if state.explicit:
            centre = means(rows, histories.data, count)
            weights = histories.data - centre[rows]
        else:
            centre, weights = np.zeros(count, np.float32), histories.data
        own_scale = inverse_lengths(rows, weights, count)
        most = len(state.scale) if self.neighbours is None else self.neighbours
        out, visited = np.empty(histories.shape, np.float32), np.empty(count, np.int32)
        with workers(self.threads) as threads:
            similar_users.score(
                threads, histories.indptr, histories.indices, weights, own_scale, centre,
                myself.astype(np.int32), v.indptr, v.indices,
                v.values if state.explicit else NONE,
                v.starts, v.users, v.column_values, state.scale, most, self.min_neighbours,
                np.float32(self.min_similarity), n, exclude_seen, out, visited,
            )  # fmt: skip
        return out
