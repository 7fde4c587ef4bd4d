"""Small seeded data for the recommender tests."""

from __future__ import annotations

import numpy as np
import pytest

from ombud.data.interactions import Interactions

USERS, ITEMS = 60, 45


def draw(explicit: bool, seed: int = 5) -> Interactions:
    """Ratings with low-rank taste; every user and item occurs; ids are not codes."""
    rng = np.random.default_rng(seed)
    taste, traits = rng.normal(size=(USERS, 3)), rng.normal(size=(ITEMS, 3))
    match = taste @ traits.T
    chance = 1 / (1 + np.exp(1.2 - match))
    rows, columns = np.nonzero(rng.random((USERS, ITEMS)) < chance)
    extra = np.arange(max(USERS, ITEMS))
    rows = np.concatenate([rows, extra % USERS])
    columns = np.concatenate([columns, extra % ITEMS])
    keys = np.unique(rows * ITEMS + columns)
    rows, columns = keys // ITEMS, keys % ITEMS
    noise = rng.normal(0, 0.4, len(rows))
    ratings = np.clip(np.rint(2 * (3 + 0.5 * match[rows, columns] + noise)) / 2, 0.5, 5)
    return Interactions.from_arrays(
        1000 + 3 * rows, columns + 7, ratings if explicit else None,
        **({"rating_scale": (0.5, 5.0)} if explicit else {}),
    )  # fmt: skip


@pytest.fixture(scope="session")
def ratings() -> Interactions:
    return draw(explicit=True)


@pytest.fixture(scope="session")
def plays() -> Interactions:
    return draw(explicit=False)
