"""Recommenders whose score is an offset plus the product of a user's and an item's factors."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ombud.data.interactions import Interactions
from ombud.errors import AuditedSystemError
from ombud.systems.base import Progress, silent
from ombud.systems.recommenders.model import Model, Scores


@dataclass(frozen=True)
class Factors:
    """A fitted factorisation: ``score = mean + user_bias + item_bias + users . items``."""

    # One row of factors each; zero for users or items without an interaction.
    users: Scores
    items: Scores
    # One number each, or None where the model has no such biases.
    user_bias: Scores | None = None
    item_bias: Scores | None = None
    mean: float = 0.0  # the mean rating, or 0

    def check(self, name: str) -> Factors:
        """Return the factors, or say that the training ran away."""
        arrays = (self.users, self.items, self.user_bias, self.item_bias)
        if not all(np.isfinite(array).all() for array in arrays if array is not None):
            raise AuditedSystemError(
                f"training {name} diverged: factors are no longer finite numbers; "
                "choose a lower learning_rate or a higher regularization"
            )
        return self


Compressed = tuple[NDArray[Any], NDArray[np.int32], Scores]
"""Row starts, column codes and values of a sparse matrix."""


def compressed(interactions: Interactions) -> Compressed:
    """Return the arrays of the users x items matrix: row starts, item codes, values."""
    matrix = interactions.matrix
    return matrix.indptr, matrix.indices, matrix.data


def transposed(matrix: sparse.csr_array) -> Compressed:
    """Return the arrays of the items x users matrix: row starts, user codes, values."""
    columns = matrix.tocsc()
    return columns.indptr, columns.indices, columns.data


class FactorModel(Model):
    """What the factor models share: scores, pairs, and folding in a history by least squares."""

    factors: int

    def _set(self, state: Factors) -> None:
        data_items = state.item_bias
        offset = np.zeros(len(state.items), np.float32) if data_items is None else data_items.copy()
        self._fitted = state
        self._items_t = np.ascontiguousarray(state.items.T)
        self._offset = offset + np.float32(state.mean)
        # An item nobody has cannot be scored: NaN passes through every sum and is never listed.
        self._offset[~state.items.any(axis=1)] = np.nan

    @property
    def user_factors(self) -> Scores:
        """The users' factors, one row per user of ``interactions``."""
        self.interactions  # noqa: B018 - says so when the model is not trained
        return self._fitted.users

    @property
    def item_factors(self) -> Scores:
        """The items' factors, one row per item of ``interactions``."""
        self.interactions  # noqa: B018
        return self._fitted.items

    @property
    def user_bias(self) -> Scores | None:
        """The users' biases, where the model has them."""
        self.interactions  # noqa: B018
        return self._fitted.user_bias

    @property
    def item_bias(self) -> Scores | None:
        """The items' biases, where the model has them."""
        self.interactions  # noqa: B018
        return self._fitted.item_bias

    @property
    def mean(self) -> float:
        """The mean rating that the model starts from, or 0."""
        self.interactions  # noqa: B018
        return self._fitted.mean

    def continued(
        self, interactions: Interactions, passes: int, *, progress: Progress | None = None
    ) -> Self:
        """Return a copy trained some passes further, on other interactions, from where this stands.

        A warm start: when little of the data has changed, a few passes come as close to a solution
        as many from a random start. To tell the effect of the change from that of the additional
        passes, compare with a copy continued on the unchanged data.

        Parameters
        ----------
        interactions
            Over the same items. Users keep their rows; more may follow, and start from their
            history folded in.
        passes
            How many times to go through the data.
        progress
            As in `fit`.
        """
        if passes < 1:
            raise ValueError(f"passes is {passes}; it must be at least 1")
        old, fitted = self.interactions, self._fitted
        if interactions.items != old.items or interactions.n_users < old.n_users:
            raise AuditedSystemError(
                f"{self.name} was trained on {old.n_users:,} users and {old.n_items:,} items; to "
                "continue, the items must be the same and these users must keep their rows"
            )
        new = sparse.csr_array(interactions.matrix[old.n_users :])
        users, user_bias = fitted.users.copy(), fitted.user_bias
        if new.shape[0]:
            more, bias = self._fold(self._scorable(new))
            users = np.vstack([users, more])
            if user_bias is not None:
                user_bias = np.append(user_bias, np.zeros(len(more)) if bias is None else bias)
        start = Factors(
            users,
            fitted.items.copy(),
            None if user_bias is None else user_bias.astype(np.float32),
            None if fitted.item_bias is None else fitted.item_bias.copy(),
            fitted.mean,
        )
        model = copy(self)
        model._set(self._improve(interactions, start, passes, progress or silent))
        model._interactions = interactions
        return model

    def _improve(
        self, interactions: Interactions, start: Factors, passes: int, progress: Progress
    ) -> Factors:
        """Return factors after some passes from a start, whose arrays may be written to."""
        raise AuditedSystemError(
            f"{self.name} cannot continue from where it stands; fit it again instead"
        )

    def _scores(self, factors: Scores, bias: Scores | None) -> Scores:
        from ombud.systems.recommenders.kernels import topn
        from ombud.systems.recommenders.kernels._jit import workers

        out = np.empty((len(factors), self._items_t.shape[1]), np.float32)
        with workers(self.threads):
            topn.factor_scores(np.ascontiguousarray(factors), self._items_t, self._offset, out)
        if bias is not None:
            out += bias[:, None]
        else:
            # Without any bias a user without factors would get every item at the same score.
            out[~factors.any(axis=1)] = np.nan
        return out

    def _block(self, users: NDArray[np.int32], n: int, exclude_seen: bool) -> Scores:
        fitted = self._fitted
        bias = None if fitted.user_bias is None else fitted.user_bias[users]
        return self._scores(fitted.users[users], bias)

    def _history_block(
        self, histories: sparse.csr_array, first: int, n: int, exclude_seen: bool
    ) -> Scores:
        return self._scores(*self._fold(self._scorable(histories)))

    def _fold(self, histories: sparse.csr_array) -> tuple[Scores, Scores | None]:
        """Return the factors, and the biases if there are any, of new histories."""
        raise AuditedSystemError(
            f"{self.name} has no closed form for a new history; fit it on interactions that hold "
            "the history, or use a model that folds in (explicit-als, implicit-als, svd)"
        )

    def fold_in(self, histories: sparse.csr_array) -> Scores:
        """Return user factors for new histories, the item factors being held fixed.

        They are what least squares gives for each history, so folding in a training user's own
        history equals solving for that user once more after training.
        """
        return self._fold(self._scorable(self._checked(histories)))[0]

    def fold_in_with_bias(self, histories: sparse.csr_array) -> tuple[Scores, Scores | None]:
        """Return user factors and biases for new histories; no biases where the model has none."""
        return self._fold(self._scorable(self._checked(histories)))

    def _scorable(self, histories: sparse.csr_array) -> sparse.csr_array:
        """Return histories without the items of which the model knows nothing."""
        kept = np.isfinite(self._offset[histories.indices])
        if kept.all():
            return histories
        starts = np.concatenate([[0], np.cumsum(kept)])[histories.indptr]
        return sparse.csr_array(
            (histories.data[kept], histories.indices[kept], starts.astype(histories.indptr.dtype)),
            shape=histories.shape,
        )

    def _pairs(self, rows: NDArray[np.int32], columns: NDArray[np.int32]) -> Scores:
        fitted, out = self._fitted, np.empty(len(rows), np.float32)
        for start in range(0, len(rows), 65536):
            part = slice(start, start + 65536)
            u, i = rows[part], columns[part]
            out[part] = np.einsum("kf,kf->k", fitted.users[u], fitted.items[i]) + self._offset[i]
            if fitted.user_bias is not None:
                out[part] += fitted.user_bias[u]
        return out
