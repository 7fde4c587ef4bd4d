"""Lists at random: what any other recommender has to beat."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ombud.data.interactions import Interactions
from ombud.registry import recommender
from ombud.systems.base import Progress
from ombud.systems.recommenders.model import Model, Scores, check_rules

Words = NDArray[np.uint64]


def _mix(x: Words) -> Words:
    """Scramble 64-bit words (the finaliser of splitmix64)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(x ^ (x >> np.uint64(31)))


@recommender("random")
@dataclass
class Random(Model):
    """Recommend items in an order drawn at random for each user.

    The score of an item is a hash of seed, user and item in [0, 1), so a user's order depends on
    nobody else; a new history gets the order of its row number.

    Parameters
    ----------
    seed
        Gives other orders.
    """

    seed: int = 0

    predicts_ratings = False

    def _check_arguments(self) -> None:
        check_rules(self, seed=(self.seed >= 0, "zero or more"))

    def _train(self, interactions: Interactions, progress: Progress) -> Words:
        return _mix(np.arange(1, interactions.n_items + 1, dtype=np.uint64))

    def _set(self, state: Words) -> None:
        self._items = state

    def _scores_of(self, rows: NDArray[np.int64]) -> Scores:
        seed = _mix(np.array([self.seed], np.uint64) + np.uint64(0x9E3779B97F4A7C15))
        keys = _mix(seed ^ _mix(rows.astype(np.uint64) + np.uint64(1)))
        drawn = _mix(keys[:, None] ^ self._items)
        return (drawn >> np.uint64(40)).astype(np.float32) / np.float32(2**24)

    def _block(self, users: NDArray[np.int32], n: int, exclude_seen: bool) -> Scores:
        return self._scores_of(users.astype(np.int64))

    def _history_block(
        self, histories: sparse.csr_array, first: int, n: int, exclude_seen: bool
    ) -> Scores:
        return self._scores_of(first + np.arange(histories.shape[0]))
