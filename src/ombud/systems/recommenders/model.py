"""What all trained recommenders share: training, lists in blocks, scores, new histories."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ombud.data.exclusions import Exclusion
from ombud.data.ids import Ids
from ombud.data.interactions import Interactions
from ombud.data.recommendations import Recommendations
from ombud.errors import AuditedSystemError, DataError
from ombud.systems.base import Progress, Recommender, silent

Scores = NDArray[np.float32]

_CELLS = 2**24
_UNKNOWN = "the model was not trained on this user"
_EMPTY = "the model has nothing to go by for this user, or no item is left to give"


def as_rows(matrix: Any) -> sparse.csr_array:
    """Return any sparse or dense matrix as sorted 32-bit rows."""
    rows: Any = sparse.csr_array(matrix, dtype=np.float32)
    rows.sum_duplicates()
    result: sparse.csr_array = rows
    return result


def count_codes(codes: NDArray[np.int32], count: int) -> NDArray[np.int64]:
    """Return how often each code occurs, without a 64-bit copy of them all."""
    total = np.zeros(count, np.int64)
    for start in range(0, len(codes), 2**21):
        total += np.bincount(codes[start : start + 2**21], minlength=count)
    return total


def check_rules(model: object, **rules: tuple[bool, str]) -> None:
    """Raise one ValueError for all arguments of a model that are not what they must be."""
    faults = [
        f"{name} is {getattr(model, name)!r}; it must be {wanted}"
        for name, (holds, wanted) in rules.items()
        if not holds
    ]
    if faults:
        raise ValueError("; ".join(faults))


def check_descent(model: Any) -> None:
    """Check what SVD and BPR have in common: both descend along gradients, stratum by stratum."""
    check_rules(
        model,
        factors=(model.factors >= 1, "at least 1"),
        epochs=(model.epochs >= 1, "at least 1"),
        learning_rate=(model.learning_rate > 0, "positive"),
        regularization=(model.regularization >= 0, "zero or more"),
        strata=(1 <= model.strata <= 255, "1 to 255"),
    )


class Model(Recommender):
    """A recommender that is trained on interactions.

    Lists and scores are computed in blocks of users, so memory does not grow with the number of
    users asked or trained on. An interrupted `fit` leaves the model as it was before.
    """

    needs_ratings = False
    trainable = True
    predicts_ratings: bool = True  # whether scores are on the scale of the ratings
    registered_name = "model"
    threads: int | None = None
    factors: int = 0  # of a factor model
    ignore_ratings: bool = False  # of a model that can do with and without them

    def __post_init__(self) -> None:
        self.name: str = type(self).registered_name
        self._interactions: Interactions | None = None
        self._check_arguments()

    def _check_arguments(self) -> None:
        """Raise ValueError when an argument makes no sense."""

    @abstractmethod
    def _train(self, interactions: Interactions, progress: Progress) -> Any:
        """Return the fitted state; nothing of the model itself may change here."""

    @abstractmethod
    def _set(self, state: Any) -> None:
        """Take over a fitted state."""

    @abstractmethod
    def _block(self, users: NDArray[np.int32], n: int, exclude_seen: bool) -> Scores:
        """Return the scores of all items for some trained users; NaN where there is none.

        Only the first n (without seen items, if excluded) need to be right.
        """

    def _history_block(
        self, histories: sparse.csr_array, first: int, n: int, exclude_seen: bool
    ) -> Scores:
        """Return the scores of all items for new histories number ``first`` and on, as `_block`."""
        raise AuditedSystemError(
            f"{self.name} cannot take in a new history without training again; "
            "use another model, or fit it on interactions that hold the new history"
        )

    def fit(self, interactions: Interactions, *, progress: Progress | None = None) -> Self:
        """Train on interactions and return the model itself.

        `progress` is called with (done, total, note) between the steps of the training.
        """
        faults = []
        if len(interactions) == 0:
            faults.append("there is no interaction to learn from")
        if self.needs_ratings and not interactions.explicit:
            faults.append(f"{self.name} needs ratings, and there is no column `rating`")
        factors = self.factors
        most = min(interactions.n_users, interactions.n_items)
        if factors > most:
            faults.append(
                f"factors is {factors}, but {interactions.n_users:,} users and "
                f"{interactions.n_items:,} items can tell at most {most:,} apart; choose fewer"
            )
        if faults:
            raise DataError(f"training {self.name}", faults)
        if self.ignore_ratings and interactions.explicit:
            interactions = interactions.without_ratings()
        state = self._train(interactions, progress or silent)
        self._set(state)
        self._interactions = interactions
        return self

    @property
    def interactions(self) -> Interactions:
        """What the model was trained on."""
        if self._interactions is None:
            raise AuditedSystemError(
                f"{self.name} is not trained yet; call fit(interactions) first"
            )
        return self._interactions

    def _blocks(self, count: int) -> Iterator[slice]:
        rows = max(16, min(256, _CELLS // max(self.interactions.n_items, 1)))
        for start in range(0, count, rows):
            yield slice(start, min(start + rows, count))

    def _history_rows(self, users: NDArray[np.int32]) -> sparse.csr_array:
        return sparse.csr_array(self.interactions.matrix[users])

    def recommend(self, users: Ids, n: int, exclude_seen: bool = True) -> Recommendations:
        """Return the n best items for each user, best first; ties go to the lower item id.

        A list is shorter where the model has no more items to give, and empty for a user it does
        not know; both are counted in ``exclusions``.

        Parameters
        ----------
        users
            User ids.
        n
            The length of a list.
        exclude_seen
            Whether the items of the user's training history are left out.
        """
        data = self.interactions
        codes = data.users.codes(users)
        known = np.flatnonzero(codes >= 0)
        items, scores = _empty_lists(len(codes), n)
        for part in self._blocks(len(known)):
            rows = known[part]
            items[rows], scores[rows] = self._lists(codes[rows], n, exclude_seen)
        unknown = len(codes) - len(known)
        return self._answer(np.asarray(users), items, scores, unknown)

    def recommend_for(
        self, histories: sparse.csr_array, n: int, exclude_seen: bool = True
    ) -> Recommendations:
        """Return the n best items for histories that were not, or not so, trained on.

        `histories` has one row per history and one column per item of the training catalogue:
        ratings, or ones. `exclude_seen` excludes the items of the given history.
        """
        rows = self._checked(histories)
        items, scores = _empty_lists(rows.shape[0], n)
        for part in self._blocks(rows.shape[0]):
            block = sparse.csr_array(rows[part])
            items[part], scores[part] = self._history_lists(block, part.start, n, exclude_seen)
        return self._answer(np.arange(rows.shape[0]), items, scores, 0)

    def _lists(
        self, users: NDArray[np.int32], n: int, exclude_seen: bool
    ) -> tuple[NDArray[np.int32], Scores]:
        """Return the lists of one block of trained users."""
        scores = self._block(users, n, exclude_seen)
        return self._select(scores, self._history_rows(users) if exclude_seen else None, n)

    def _history_lists(
        self, histories: sparse.csr_array, first: int, n: int, exclude_seen: bool
    ) -> tuple[NDArray[np.int32], Scores]:
        """Return the lists of one block of histories."""
        scores = self._history_block(histories, first, n, exclude_seen)
        return self._select(scores, histories if exclude_seen else None, n)

    def _select(
        self, scores: Scores, seen: sparse.csr_array | None, n: int
    ) -> tuple[NDArray[np.int32], Scores]:
        from ombud.systems.recommenders.kernels import topn
        from ombud.systems.recommenders.kernels._jit import workers

        items, best = _empty_lists(len(scores), n)
        width = min(n, scores.shape[1])
        top, values = np.empty((len(scores), width), np.int32), np.empty((len(scores), width), "f4")
        with workers(self.threads):
            if seen is not None:
                rows = np.arange(len(scores), dtype=np.int32)
                topn.mask_seen(scores, rows, seen.indptr, seen.indices)
            topn.select(scores, top, values)
        items[:, :width], best[:, :width] = top, values
        return items, best

    def _answer(
        self, users: NDArray[Any], items: NDArray[np.int32], scores: Scores, unknown: int
    ) -> Recommendations:
        exclusions = []
        empty = int(np.count_nonzero(items[:, :1] < 0)) - unknown
        for count, reason in ((unknown, _UNKNOWN), (empty, _EMPTY)):
            if count:
                where = f"recommendations of {self.name}"
                exclusions.append(Exclusion(where, "users", count, reason, len(users)))
        catalogue = self.interactions.items
        return Recommendations(users, items, catalogue, scores, tuple(exclusions))

    def score(self, users: Ids, items: Ids) -> Scores:
        """Return the score of each item for each user, users x items.

        NaN where the model has no score, and for users or items that it does not know.
        """
        data = self.interactions
        rows, columns = data.users.codes(users), data.items.codes(items)
        out = np.full((len(rows), len(columns)), np.nan, np.float32)
        known, wanted = np.flatnonzero(rows >= 0), np.flatnonzero(columns >= 0)
        for part in self._blocks(len(known)):
            block = self._block(rows[known[part]], data.n_items, False)
            out[np.ix_(known[part], wanted)] = block[:, columns[wanted]]
        return out

    def predict(self, users: Ids, items: Ids) -> Scores:
        """Return one score per pair of user and item, kept inside the rating scale.

        NaN where the model has no score, and for users or items that it does not know.
        """
        data = self.interactions
        rows, columns = data.users.codes(users), data.items.codes(items)
        out = np.full(len(rows), np.nan, np.float32)
        known = np.flatnonzero((rows >= 0) & (columns >= 0))
        out[known] = self._pairs(rows[known], columns[known])
        if data.explicit and data.rating_scale is not None:
            np.clip(out, *data.rating_scale, out=out)
        return out

    def _pairs(self, rows: NDArray[np.int32], columns: NDArray[np.int32]) -> Scores:
        asked, index = np.unique(rows, return_inverse=True)
        order = np.argsort(index, kind="stable")
        ends = np.searchsorted(index[order], np.arange(len(asked) + 1))
        out = np.empty(len(rows), np.float32)
        for part in self._blocks(len(asked)):
            block = self._block(asked[part], self.interactions.n_items, False)
            chosen = order[ends[part.start] : ends[part.stop]]
            out[chosen] = block[index[chosen] - part.start, columns[chosen]]
        return out

    def scores_for(self, histories: sparse.csr_array) -> Scores:
        """Return the score of every item for histories that were not, or not so, trained on.

        The result has one row per history and one column per item of the catalogue; ask for many
        histories in portions.
        """
        rows = self._checked(histories)
        out = np.empty(rows.shape, np.float32)
        for part in self._blocks(rows.shape[0]):
            block = sparse.csr_array(rows[part])
            out[part] = self._history_block(block, part.start, rows.shape[1], False)
        return out

    def fold_in(self, histories: sparse.csr_array) -> Scores:
        """Return what the model knows of new histories: here, the scores of all items."""
        return self.scores_for(histories)

    def _checked(self, histories: sparse.csr_array) -> sparse.csr_array:
        """Return histories as sorted 32-bit rows, or say all that is wrong with them."""
        data = self.interactions
        rows = as_rows(histories)
        faults = []
        if rows.shape[1] != data.n_items:
            faults.append(
                f"they have {rows.shape[1]:,} columns; the catalogue has {data.n_items:,} items"
            )
        if not np.isfinite(rows.data).all():
            faults.append("a value is NaN or infinite")
        elif data.explicit and data.rating_scale is not None and rows.nnz:
            low, high = data.rating_scale
            outside = int(np.count_nonzero((rows.data < low) | (rows.data > high)))
            if outside:
                faults.append(f"{outside:,} ratings lie outside the scale {low:g} to {high:g}")
        if faults:
            raise DataError("histories", faults)
        if self.ignore_ratings:
            # The given matrix may share its values with these rows.
            ones = np.ones_like(rows.data)
            rows = sparse.csr_array((ones, rows.indices, rows.indptr), shape=rows.shape)
        return rows


def _empty_lists(count: int, n: int) -> tuple[NDArray[np.int32], Scores]:
    if n < 1:
        raise ValueError(f"n is {n}; a list has at least one place")
    return np.full((count, n), -1, np.int32), np.full((count, n), np.nan, np.float32)
