"""Fitted models of other libraries, as they are: their own code makes the lists."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ombud.data.exclusions import Exclusion
from ombud.data.ids import Ids
from ombud.data.interactions import Interactions
from ombud.data.recommendations import Recommendations
from ombud.systems.base import Recommender

# The library marks an item it filtered out with the lowest score there is.
_FILTERED = np.float32(-1e38)


@dataclass
class _Fitted(Recommender):
    """A fitted model and what it was fitted on."""

    model: Any
    interactions: Interactions
    name: str = ""

    def __post_init__(self) -> None:
        self.name = self.name or type(self.model).__name__

    def recommend(self, users: Ids, n: int, exclude_seen: bool = True) -> Recommendations:
        """Return the model's n best items for each user it was fitted on."""
        data = self.interactions
        codes = data.users.codes(users)
        known = np.flatnonzero(codes >= 0)
        items = np.full((len(codes), n), -1, dtype=np.int32)
        scores = np.full((len(codes), n), np.nan, dtype=np.float32)
        width = min(n, data.n_items)
        if len(known):
            best, values = self._lists(codes[known], width, exclude_seen)
            items[known, : best.shape[1]] = best
            scores[known, : best.shape[1]] = values
        unknown = len(codes) - len(known)
        exclusions: tuple[Exclusion, ...] = ()
        if unknown:
            reason = "the model was not trained on this user"
            where = f"recommendations of {self.name}"
            exclusions = (Exclusion(where, "users", unknown, reason, len(codes)),)
        return Recommendations(np.asarray(users), items, data.items, scores, exclusions)

    def _lists(
        self, users: NDArray[np.int32], n: int, exclude_seen: bool
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        raise NotImplementedError


@dataclass
class ImplicitRecommender(_Fitted):
    """A fitted model of the package ``implicit``.

    Parameters
    ----------
    model
        Fitted on ``interactions.matrix`` (as a ``scipy.sparse.csr_matrix``).
    interactions
        What it was fitted on: its rows are the model's users, its columns the model's items.
    name
        The system's name in the report; default, the model's class.
    """

    def _lists(
        self, users: NDArray[np.int32], n: int, exclude_seen: bool
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        rows = sparse.csr_matrix(self.interactions.matrix[users])
        items, scores = self.model.recommend(
            users, rows, N=n, filter_already_liked_items=exclude_seen
        )
        items, scores = np.asarray(items, np.int32), np.asarray(scores, np.float32)
        out = (items < 0) | (scores <= _FILTERED) | ~np.isfinite(scores)
        if exclude_seen:
            # Its neighbour models do not take seen items out: they score them 0.
            out |= _stored(sparse.csr_array(rows), items)
        order = np.argsort(out, axis=1, kind="stable")
        items, scores = np.where(out, np.int32(-1), items), np.where(out, np.float32("nan"), scores)
        return np.take_along_axis(items, order, 1), np.take_along_axis(scores, order, 1)


def _stored(matrix: sparse.csr_array, columns: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Return which of some columns of each row of a matrix are stored in it."""
    row = np.arange(len(columns), dtype=np.int64)
    keys = np.repeat(row, np.diff(matrix.indptr)) * matrix.shape[1] + matrix.indices
    return np.isin(row[:, None] * matrix.shape[1] + columns, keys) & (columns >= 0)


@dataclass
class LensKitRecommender(_Fitted):
    """A trained pipeline of LensKit, asked user by user as LensKit does.

    Parameters
    ----------
    model
        A trained ``Pipeline`` with a component ``recommender``; for `predict`, also
        ``rating-predictor``.
    interactions
        What it was trained on, with the same user and item ids.
    name
        The system's name in the report.
    """

    predicts_ratings = True

    def _lists(
        self, users: NDArray[np.int32], n: int, exclude_seen: bool
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        from lenskit import recommend

        data = self.interactions
        items = np.full((len(users), n), -1, dtype=np.int32)
        scores = np.full((len(users), n), np.nan, dtype=np.float32)
        every = None if exclude_seen else data.items.ids
        for row, user in enumerate(data.users.take(users).tolist()):
            answer = recommend(self.model, user, n, every)
            result = data.items.codes(np.asarray(answer.ids()))
            items[row, : len(result)] = result
            if answer.scores() is not None:
                scores[row, : len(result)] = answer.scores()
        return items, scores

    def predict(self, users: Ids, items: Ids) -> NDArray[np.float32]:
        """Return one predicted rating per pair; NaN where LensKit has none."""
        from lenskit import predict

        of, about = np.asarray(users), np.asarray(items)
        out = np.full(len(of), np.nan, dtype=np.float32)
        names, index = np.unique(of, return_inverse=True)
        order = np.argsort(index, kind="stable")
        ends = np.searchsorted(index[order], np.arange(len(names) + 1))
        for number, user in enumerate(names.tolist()):
            rows = order[ends[number] : ends[number + 1]]
            out[rows] = predict(self.model, user, about[rows]).scores()
        return out


@dataclass
class SurpriseRecommender(_Fitted):
    """A fitted algorithm of Surprise; lists take one ``estimate`` per user and item, as there.

    Parameters
    ----------
    model
        A fitted algorithm; its training set has the same user and item ids.
    interactions
        What it was fitted on.
    name
        The system's name in the report.
    """

    predicts_ratings = True

    def _lists(
        self, users: NDArray[np.int32], n: int, exclude_seen: bool
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        data = self.interactions
        names = data.users.take(users).tolist()
        every = data.items.ids.tolist()
        items = np.full((len(users), n), -1, dtype=np.int32)
        best = np.full((len(users), n), np.nan, dtype=np.float32)
        for row, (code, user) in enumerate(zip(users, names, strict=True)):
            score = np.array([self._estimate(user, item) for item in every], dtype=np.float32)
            if exclude_seen:
                start, stop = data.matrix.indptr[code : code + 2]
                score[data.matrix.indices[start:stop]] = np.nan
            order = np.argsort(-score, kind="stable")[:n]
            order = order[~np.isnan(score[order])]
            items[row, : len(order)], best[row, : len(order)] = order, score[order]
        return items, best

    def _estimate(self, user: Any, item: Any) -> float:
        return float(self.model.predict(user, item).est)

    def predict(self, users: Ids, items: Ids) -> NDArray[np.float32]:
        """Return one predicted rating per pair; Surprise's own default where it knows nothing."""
        pairs = zip(np.asarray(users).tolist(), np.asarray(items).tolist(), strict=True)
        return np.array([self._estimate(u, i) for u, i in pairs], dtype=np.float32)
