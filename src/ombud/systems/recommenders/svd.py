"""Biased matrix factorisation by stochastic gradient descent, known as "SVD"."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from ombud.data.interactions import Interactions
from ombud.registry import recommender
from ombud.rng import generator
from ombud.systems.base import Progress
from ombud.systems.recommenders.factors import FactorModel, Factors, compressed
from ombud.systems.recommenders.model import Scores, check_descent, count_codes


@recommender("svd")
@dataclass
class SVD(FactorModel):
    """Predict a rating as ``mean + b_u + b_i + p_u . q_i``, learned one rating at a time.

    The update and the defaults are those of Surprise's ``SVD`` (Koren, Bell & Volinsky 2009,
    "Matrix factorization techniques for recommender systems"), in 32 bits. Ratings are visited in
    strata, so that several threads can work without touching the same factors: the result is the
    same to the bit for any number of threads. With ``strata=1`` ratings are visited user by user,
    as in Surprise.

    A new history is folded in by ridge regression on the fixed item factors, bias included, with
    the penalty that the gradient steps stand for (``regularization`` times the number of ratings).
    That is where gradient descent on this user alone would end, not where it stands after
    ``epochs`` visits.

    Parameters
    ----------
    factors, epochs, learning_rate, regularization
        As in Surprise: ``n_factors``, ``n_epochs``, ``lr_all``, ``reg_all``.
    spread
        Standard deviation of the factors before training (``init_std_dev``).
    strata
        How many blocks users and items are cut into; at most so many threads can help.
    seed
        Fixes the factors before training.
    threads
        How many threads to use; None for all.
    """

    factors: int = 100
    epochs: int = 20
    learning_rate: float = 0.005
    regularization: float = 0.02
    spread: float = 0.1
    strata: int = 8
    seed: int = 0
    threads: int | None = None

    needs_ratings = True

    def _check_arguments(self) -> None:
        check_descent(self)

    def _train(self, interactions: Interactions, progress: Progress) -> Factors:
        users, items = self._start(interactions.n_users, interactions.n_items)
        user_bias = np.zeros(len(users), np.float32)
        item_bias = np.zeros(len(items), np.float32)
        start = Factors(users, items, user_bias, item_bias)
        return self._improve(interactions, start, self.epochs, progress)

    def _improve(
        self, interactions: Interactions, start: Factors, passes: int, progress: Progress
    ) -> Factors:
        from ombud.systems.recommenders.kernels import sgd
        from ombud.systems.recommenders.kernels._jit import workers

        indptr, indices, ratings = compressed(interactions)
        item_counts = count_codes(indices, interactions.n_items)
        user_bounds = sgd.balanced_ranges(np.diff(indptr), self.strata)
        item_bounds = sgd.balanced_ranges(item_counts, self.strata)
        users, items, user_bias, item_bias = (
            start.users, start.items, start.user_bias, start.item_bias,
        )  # fmt: skip
        assert user_bias is not None and item_bias is not None
        mean = np.float32(ratings.mean(dtype=np.float64))
        cuts = np.empty((len(users), self.strata + 1), indptr.dtype)
        rate, penalty = np.float32(self.learning_rate), np.float32(self.regularization)
        with workers(self.threads):
            sgd.row_cuts(indptr, indices, item_bounds, cuts)
            for epoch in range(passes):
                progress(epoch, passes, "epochs")
                sgd.epoch(
                    user_bounds, cuts, indices, ratings, users, items, user_bias, item_bias,
                    mean, rate, penalty,
                )  # fmt: skip
        progress(passes, passes, "epochs")
        users[np.diff(indptr) == 0] = 0
        user_bias[np.diff(indptr) == 0] = 0
        items[item_counts == 0] = 0
        item_bias[item_counts == 0] = 0
        return Factors(users, items, user_bias, item_bias, float(mean)).check(self.name)

    def _start(self, n_users: int, n_items: int) -> tuple[Scores, Scores]:
        """Return the factors before training."""
        rng = generator(self.seed, "svd")
        users = rng.standard_normal((n_users, self.factors), dtype=np.float32)
        items = rng.standard_normal((n_items, self.factors), dtype=np.float32)
        users *= np.float32(self.spread)
        items *= np.float32(self.spread)
        return users, items

    def _fold(self, histories: sparse.csr_array) -> tuple[Scores, Scores | None]:
        from ombud.systems.recommenders.ridge import solve_rows

        fitted = self._fitted
        rest = histories.data - self._offset[histories.indices]
        with_one = np.column_stack([fitted.items, np.ones(len(fitted.items), np.float32)])
        solved = solve_rows(
            histories.indptr, histories.indices, rest, with_one,
            ridge_per_entry=self.regularization, threads=self.threads,
        )  # fmt: skip
        return np.ascontiguousarray(solved[:, :-1]), solved[:, -1].copy()
