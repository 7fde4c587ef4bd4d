"""Generated ratings for the recommender benchmark: long-tailed, with known low-rank taste.

Users have lognormal activity, items a Zipf-Mandelbrot popularity. A user's items are drawn
without replacement with probability proportional to ``popularity_i exp(0.9 p_u . q_i)`` (an
exponential race), ratings are ``mean + b_u + b_i + 0.35 p_u . q_i + noise`` in half stars. Of
each user's items a tenth is held out. Everything follows from one seed.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import sparse

from _env import ROOT

__all__ = ["SIZES", "Data", "load"]


@dataclass(frozen=True)
class Size:
    """How large a generated world is, and how long its tail."""

    users: int
    items: int
    interactions: int
    exponent: float
    shift: float


SIZES = {
    "tiny": Size(1_200, 900, 90_000, 1.7, 60.0),
    "1m": Size(6_040, 3_700, 1_000_000, 1.7, 150.0),
    "20m": Size(160_000, 30_000, 20_000_000, 2.2, 400.0),
}

ARRAYS = ("indptr", "indices", "ratings", "test_users", "test_items", "test_ratings")


@dataclass(frozen=True)
class Data:
    """Training ratings as CSR arrays, and held-out triples."""

    size: Size
    indptr: np.ndarray
    indices: np.ndarray
    ratings: np.ndarray
    test_users: np.ndarray
    test_items: np.ndarray
    test_ratings: np.ndarray

    def matrix(self, explicit: bool) -> sparse.csr_matrix:
        """Return the training matrix, with ratings or with ones."""
        values = self.ratings if explicit else np.ones(len(self.indices), np.float32)
        shape = (self.size.users, self.size.items)
        matrix = sparse.csr_matrix((values, self.indices, self.indptr), shape=shape, copy=False)
        matrix.has_sorted_indices = True
        return matrix

    def rows(self) -> np.ndarray:
        """Return the user of each training rating."""
        return np.repeat(np.arange(self.size.users, dtype=np.int32), np.diff(self.indptr))

    def asked(self, count: int) -> np.ndarray:
        """Return the users whose lists are asked for."""
        count = min(count, self.size.users)
        return np.sort(np.random.default_rng(7).choice(self.size.users, count, replace=False))


def load(name: str) -> Data:
    """Return the world of a size, generated at the first call and kept in ``.bench-data``."""
    folder = ROOT / ".bench-data" / name
    if not (folder / "done").exists():
        _generate(SIZES[name], folder)
    return Data(SIZES[name], *(np.load(folder / f"{array}.npy") for array in ARRAYS))


def _generate(size: Size, folder: Path, seed: int = 20260101) -> None:
    rng = np.random.default_rng(seed)
    counts = _activity(size, rng)
    popularity = (np.arange(size.items) + 1 + size.shift) ** -size.exponent
    popularity = rng.permutation(popularity / popularity.sum()).astype(np.float32)
    rank = 16
    taste = rng.normal(0, 1.6 / np.sqrt(rank), (size.users, rank)).astype(np.float32)
    traits = rng.normal(0, 1, (size.items, rank)).astype(np.float32)
    fame = np.log(popularity) - np.log(popularity).mean()
    item_bias = (0.35 * rng.normal(0, 1, size.items) + 0.25 * fame).astype(np.float32)
    user_bias = (0.4 * rng.normal(0, 1, size.users)).astype(np.float32)
    train: list[tuple[np.ndarray, np.ndarray]] = []
    test: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    kept = np.zeros(size.users, np.int64)
    for start in range(0, size.users, 500):
        stop = min(size.users, start + 500)
        match = taste[start:stop] @ traits.T
        weight = np.exp(match * np.float32(0.9)) * popularity
        race = rng.standard_exponential((stop - start, size.items), dtype=np.float32) / weight
        for row, user in enumerate(range(start, stop)):
            items = np.sort(np.argpartition(race[row], counts[user])[: counts[user]])
            noise = 0.6 * rng.standard_normal(len(items), dtype=np.float32)
            raw = 2.9 + user_bias[user] + item_bias[items] + 0.35 * match[row, items] + noise
            ratings = np.clip(np.rint(raw * 2) / 2, 0.5, 5).astype(np.float32)
            held = np.zeros(len(items), bool)
            held[rng.choice(len(items), len(items) // 10, replace=False)] = True
            kept[user] = len(items) - held.sum()
            train.append((items[~held].astype(np.int32), ratings[~held]))
            test.append((np.full(held.sum(), user, np.int32), items[held], ratings[held]))
    folder.mkdir(parents=True, exist_ok=True)
    arrays = (
        np.concatenate([[0], np.cumsum(kept)]).astype(np.int32),
        np.concatenate([items for items, _ in train]),
        np.concatenate([ratings for _, ratings in train]),
        np.concatenate([users for users, _, _ in test]),
        np.concatenate([items for _, items, _ in test]).astype(np.int32),
        np.concatenate([ratings for _, _, ratings in test]),
    )
    for name, array in zip(ARRAYS, arrays, strict=True):
        np.save(folder / f"{name}.npy", array)
    (folder / "done").touch()


def _activity(size: Size, rng: np.random.Generator) -> np.ndarray:
    """Return how many items each user has; scaled until the clipped sum is right."""
    weight = rng.lognormal(0.0, 1.1, size.users)
    weight /= weight.sum()
    factor = 1.0
    counts = np.zeros(size.users, np.int64)
    for _ in range(60):
        raw = np.rint(20 + weight * factor * size.interactions)
        counts = np.clip(raw, 20, size.items // 3).astype(np.int64)
        factor *= max(0.2, 1 + (size.interactions - counts.sum()) / size.interactions)
    return counts
