"""Bayesian personalised ranking: factors learned from pairs of items, not from values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ombud.data.interactions import Interactions
from ombud.registry import recommender
from ombud.rng import generator
from ombud.systems.base import Progress
from ombud.systems.recommenders.factors import FactorModel, Factors, compressed
from ombud.systems.recommenders.model import check_descent, count_codes

_BLOCK_BYTES = 4 << 20  # of item factors; several threads share the last level of a usual cache


@recommender("bpr")
@dataclass
class BPR(FactorModel):
    """Learn to rank what a user has above what the user has not.

    Each epoch compares every interaction (u, i) with an item j drawn by its frequency, and, unless
    the user has j too, climbs ``log sigmoid(b_i - b_j + p_u . (q_i - q_j))`` (Rendle et al. 2009,
    "BPR: Bayesian personalized ranking from implicit feedback"; negatives as in ``implicit``).
    Users and items are cut into strata, the items anew in each epoch, and a comparison stays
    within a stratum of items, so the result is the same to the bit for any number of threads.
    Ratings are not looked at.

    There is no closed form for a new history, so none can be folded in.

    Parameters
    ----------
    factors, epochs, learning_rate, regularization
        Size, length, step and strength of the training.
    strata
        How many blocks users and items are cut into; at most so many threads can help. Very many
        items are cut into more, so that the factors of a block stay within 4 MiB.
    seed
        Fixes the factors before training, the blocks and the draws.
    threads
        How many threads to use; None for all.
    """

    factors: int = 64
    epochs: int = 100
    learning_rate: float = 0.01
    regularization: float = 0.01
    strata: int = 8
    seed: int = 0
    threads: int | None = None

    predicts_ratings = False

    def _check_arguments(self) -> None:
        check_descent(self)

    def _train(self, interactions: Interactions, progress: Progress) -> Factors:
        from ombud.systems.recommenders.kernels import pairwise, sgd
        from ombud.systems.recommenders.kernels._jit import workers

        indptr, indices, _ = compressed(interactions)
        counts = count_codes(indices, interactions.n_items)
        rng = generator(self.seed, "bpr")
        users = rng.random((interactions.n_users, self.factors), dtype=np.float32)
        items = rng.random((interactions.n_items, self.factors), dtype=np.float32)
        users = (users - np.float32(0.5)) / np.float32(self.factors)
        items = (items - np.float32(0.5)) / np.float32(self.factors)
        bias = np.zeros(len(items), np.float32)
        # A block needs several items, or nearly every drawn negative is one the user has.
        strata = max(1, min(self.strata, interactions.n_items // 16))
        n_cells = min(max(strata, -(-items.nbytes // _BLOCK_BYTES)), 255)
        user_bounds = sgd.balanced_ranges(np.diff(indptr), strata)
        who, what = np.empty(len(indices), np.int32), np.empty(len(indices), np.int32)
        cells = np.empty((strata, n_cells + 1), np.int64)
        keep, other = np.empty(len(items), np.float32), np.empty(len(items), np.int32)
        rate, penalty = np.float32(self.learning_rate), np.float32(self.regularization)
        compared = np.zeros(strata, np.int64)
        place_of = np.arange(len(items), dtype=np.int32)
        with workers(self.threads):
            for epoch in range(self.epochs):
                progress(epoch, self.epochs, "epochs")
                of_item, dealt, starts, placed = pairwise.deal_items(counts, n_cells, rng)
                moved = place_of[placed]
                items, bias = items[moved], bias[moved]
                place_of[placed] = np.arange(len(items), dtype=np.int32)
                dealt = place_of[dealt]
                pairwise.alias_tables(dealt, starts, counts[placed], keep, other)
                seeds = rng.integers(1, 2**63, strata * n_cells, dtype=np.uint64)
                pairwise.lay_out(user_bounds, indptr, indices, of_item, place_of, who, what, cells)
                pairwise.epoch(
                    cells, who, what, dealt, starts, keep, other, seeds,
                    users, items, bias, rate, penalty, compared,
                )  # fmt: skip
        items, bias = items[place_of], bias[place_of]
        progress(self.epochs, self.epochs, "epochs")
        users[np.diff(indptr) == 0] = 0
        items[counts == 0] = 0
        zeros = np.zeros(len(users), np.float32)
        return Factors(users, items, zeros, bias).check(self.name)
