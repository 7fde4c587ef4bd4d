"""A linear model between items, in closed form."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import lapack

from ombud.data.interactions import Interactions
from ombud.errors import AuditedSystemError
from ombud.registry import recommender
from ombud.systems.base import Progress
from ombud.systems.recommenders.model import Model, Scores, check_rules, count_codes


@dataclass
class _State:
    weights: Scores
    known: NDArray[np.bool_]


@recommender("ease")
@dataclass
class EASE(Model):
    """Score an item as a weighted sum of the other items of the history.

    The weights minimise ``|X - X B|^2 + regularization |B|^2`` with a diagonal of zeros, which has
    the closed form ``B = I - P / diag(P)``, ``P = (X'X + regularization I)^-1`` (Steck 2019,
    "Embarrassingly shallow autoencoders for sparse data"). Ratings, where there are any, are the
    values of X as they are; scores are not on their scale. A new history x is folded in exactly:
    its scores are ``x B``, linear in every entry. A history without a known item has no scores.

    Training needs two dense items x items matrices of 64 bits; the weights that are kept have 32.

    Parameters
    ----------
    regularization
        The ridge penalty; a few hundred for millions of interactions, less for fewer.
    threads
        Only for the choice of the best scores; the inverse is made by LAPACK, the sums by scipy.

    Examples
    --------
    >>> from ombud.data import Interactions
    >>> data = Interactions.from_arrays([1, 1, 2, 2, 3], ["a", "b", "a", "b", "a"])
    >>> lists = EASE(regularization=1.0).fit(data).recommend([3], n=1)
    >>> data.items.take(lists.items[0]).tolist()
    ['b']
    """

    regularization: float = 250.0
    threads: int | None = None

    predicts_ratings = False

    def _check_arguments(self) -> None:
        positive = (self.regularization > 0, "positive, or there may be no inverse")
        check_rules(self, regularization=positive)

    def _train(self, interactions: Interactions, progress: Progress) -> _State:
        progress(0, 3, "steps of the closed form")
        matrix = interactions.matrix.astype(np.float64)
        gram = np.asfortranarray((matrix.T @ matrix).toarray())
        gram[np.diag_indices_from(gram)] += self.regularization
        progress(1, 3, "steps of the closed form")
        inverse = inverse_in_place(gram)
        progress(2, 3, "steps of the closed form")
        inverse /= -np.diag(inverse).copy()
        inverse[np.diag_indices_from(inverse)] = 0
        if not np.isfinite(inverse).all():
            raise AuditedSystemError(
                "training ease: the inverse is not finite; choose a higher regularization"
            )
        progress(3, 3, "steps of the closed form")
        known = count_codes(interactions.matrix.indices, interactions.n_items) > 0
        return _State(np.ascontiguousarray(inverse, np.float32), known)

    def _set(self, state: _State) -> None:
        self._state = state

    @property
    def weights(self) -> Scores:
        """The weights B: row i is what one unit of item i adds to the score of each item."""
        self.interactions  # noqa: B018 - says so when the model is not trained
        return self._state.weights

    def _block(self, users: NDArray[np.int32], n: int, exclude_seen: bool) -> Scores:
        return self._history_block(self._history_rows(users), 0, n, exclude_seen)

    def _history_block(
        self, histories: sparse.csr_array, first: int, n: int, exclude_seen: bool
    ) -> Scores:
        # Each row is added up in the order of its items, whoever else is asked for.
        out: Scores = np.asarray(histories @ self._state.weights, np.float32)
        out[:, ~self._state.known] = np.nan
        told = self._state.known[histories.indices]
        rows = np.repeat(np.arange(histories.shape[0]), np.diff(histories.indptr))
        out[np.bincount(rows[told], minlength=histories.shape[0]) == 0] = np.nan
        return out


def inverse_in_place(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the inverse of a positive definite matrix, in its own memory."""
    lower, fault = lapack.dpotrf(matrix, lower=True, overwrite_a=True, clean=False)
    if fault == 0:
        lower, fault = lapack.dpotri(lower, lower=True, overwrite_c=True)
    if fault:
        raise AuditedSystemError(
            "training ease: the matrix has no inverse; choose a higher regularization"
        )
    # LAPACK fills one triangle; mirror it in blocks, without another matrix of the same size.
    size = len(lower)
    for start in range(0, size, 1024):
        stop = min(start + 1024, size)
        block = lower[start:stop, start:stop]
        block[:] = np.tril(block) + np.tril(block, -1).T
        lower[start:stop, stop:] = lower[stop:, start:stop].T
    result: NDArray[np.float64] = lower
    return result
