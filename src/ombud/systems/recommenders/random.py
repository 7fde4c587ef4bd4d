"""Lists at random: what any other recommender has to beat."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ombud.registry import recommender
from ombud.systems.recommenders.model import Model, Scores, faults_of
from ombud.systems.recommenders.ranking import unseen_places

if TYPE_CHECKING:
    from ombud.data.interactions import Interactions
    from ombud.systems.base import Progress

__all__ = ["Random"]

Words = NDArray[np.uint64]

_ROUNDS = 6


def _mix(x: Words) -> Words:
    """Scramble 64-bit words (the finaliser of splitmix64)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(x ^ (x >> np.uint64(31)))


@dataclass(frozen=True)
class _Shuffle:
    """One random order of 0 .. size - 1 per key, computed only where asked.

    A Feistel network permutes the numbers of an even number of bits; a number outside the range
    is sent through it again until it falls inside (Black & Rogaway 2002, "Ciphers with arbitrary
    finite domains").
    """

    size: int

    @property
    def _half(self) -> np.uint64:
        return np.uint64((max(self.size - 1, 1).bit_length() + 1) // 2)

    def _walk(self, keys: Words, start: Words, backwards: bool) -> NDArray[np.int64]:
        half, mask = self._half, (np.uint64(1) << self._half) - np.uint64(1)
        keys, value = (np.ravel(a).copy() for a in np.broadcast_arrays(keys, start))
        shape = np.broadcast_shapes(keys.shape, value.shape)
        left_over = np.arange(len(value))
        rounds = range(_ROUNDS - 1, -1, -1) if backwards else range(_ROUNDS)
        while len(left_over):
            key, x = keys[left_over], value[left_over]
            a, b = x >> half, x & mask
            for number in rounds:
                odd = np.uint64((number + 1) * 0x9E3779B97F4A7C15 % 2**64)
                if backwards:
                    a, b = b ^ (_mix(key + odd ^ _mix(a)) & mask), a
                else:
                    a, b = b, a ^ (_mix(key + odd ^ _mix(b)) & mask)
            value[left_over] = (a << half) | b
            left_over = left_over[value[left_over] >= np.uint64(self.size)]
        return value.astype(np.int64).reshape(shape)

    def item_at(self, keys: Words, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return which number stands at a place of a key's order."""
        return self._walk(keys, places.astype(np.uint64), backwards=False)

    def place_of(self, keys: Words, items: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the place of a number in a key's order."""
        return self._walk(keys, items.astype(np.uint64), backwards=True)


@recommender("random")
@dataclass
class Random(Model):
    """Recommend items in an order drawn at random for each user.

    A user's order depends on the seed and on the user, not on who else is asked; a new history
    gets the order of its row number. The score is minus the place in that order.

    Parameters
    ----------
    seed
        Gives other orders.
    """

    seed: int = 0

    predicts_ratings = False

    def _check_arguments(self) -> None:
        faults_of(seed=(self.seed >= 0, f"is {self.seed}; it must be zero or more"))

    def _train(self, interactions: Interactions, progress: Progress) -> _Shuffle:
        return _Shuffle(interactions.n_items)

    def _set(self, state: _Shuffle) -> None:
        self._shuffle = state

    def _keys(self, rows: NDArray[np.int64]) -> Words:
        seed = _mix(np.array([self.seed], np.uint64) + np.uint64(0x9E3779B97F4A7C15))
        return _mix(seed ^ _mix(rows.astype(np.uint64) + np.uint64(1)))

    def _all(self, rows: NDArray[np.int64]) -> Scores:
        n_items = self._shuffle.size
        keys = np.repeat(self._keys(rows), n_items)
        places = self._shuffle.place_of(keys, np.tile(np.arange(n_items), len(rows)))
        return -places.reshape(len(rows), n_items).astype(np.float32)

    def _block(self, users: NDArray[np.int32], n: int, exclude_seen: bool) -> Scores:
        return self._all(users.astype(np.int64))

    def _history_block(
        self, histories: sparse.csr_array, first: int, n: int, exclude_seen: bool
    ) -> Scores:
        return self._all(first + np.arange(histories.shape[0]))

    def _lists(
        self, users: NDArray[np.int32], n: int, exclude_seen: bool
    ) -> tuple[NDArray[np.int32], Scores]:
        return self._draw(users.astype(np.int64), self._history_rows(users), n, exclude_seen)

    def _history_lists(
        self, histories: sparse.csr_array, first: int, n: int, exclude_seen: bool
    ) -> tuple[NDArray[np.int32], Scores]:
        return self._draw(first + np.arange(histories.shape[0]), histories, n, exclude_seen)

    def _draw(
        self, rows: NDArray[np.int64], histories: sparse.csr_array, n: int, exclude_seen: bool
    ) -> tuple[NDArray[np.int32], Scores]:
        keys = self._keys(rows)
        starts = np.zeros(len(rows) + 1, np.int64)
        seen = np.empty(0, np.int64)
        if exclude_seen:
            starts = histories.indptr.astype(np.int64)
            row_of = np.repeat(np.arange(len(rows)), np.diff(starts))
            seen = self._shuffle.place_of(keys[row_of], histories.indices.astype(np.int64))
            seen = seen[np.lexsort((seen, row_of))]
        places = unseen_places(seen, starts, n)
        there = places < self._shuffle.size
        flat_keys = np.repeat(keys, n)
        drawn = self._shuffle.item_at(flat_keys, np.where(there, places, 0).ravel())
        items = np.where(there, drawn.reshape(places.shape), -1).astype(np.int32)
        scores = np.where(there, -places, np.nan).astype(np.float32)
        return items, scores
