"""The large world, at sizes that a test can afford."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ombud.data import Interactions
from ombud.errors import PlanError
from ombud.worlds import large_world
from ombud.worlds.large import write_interactions


@given(
    users=st.integers(5, 200),
    items=st.integers(50, 400),
    share=st.floats(0.02, 0.1),
    seed=st.integers(0, 1000),
)
@settings(max_examples=10, deadline=None)
def test_sizes_are_exact_and_pairs_distinct(
    users: int, items: int, share: float, seed: int
) -> None:
    wanted = max(users, int(share * users * items))
    table = large_world(seed, interactions=wanted, users=users, items=items, labels=2).interactions
    assert len(table) == wanted
    assert table.matrix.shape == (users, items)
    assert table.matrix.has_canonical_format
    assert np.diff(table.matrix.indptr).min() >= 1
    assert table.matrix.indices.max() < items


def test_one_seed_gives_one_world_and_tails_are_long() -> None:
    size = {"interactions": 60_000, "users": 1500, "items": 2000}
    first, second = (large_world(3, **size, ratings=True) for _ in range(2))
    assert (first.interactions.matrix != second.interactions.matrix).nnz == 0
    assert (first.interactions.matrix != large_world(4, **size).interactions.matrix).nnz > 0
    popularity = np.bincount(first.interactions.matrix.indices, minlength=2000)
    assert np.quantile(popularity, 0.99) > 5 * np.median(popularity)
    assert first.interactions.matrix.data.dtype == np.float32
    assert set((first.interactions.matrix.data * 2) % 1) == {0.0}


def test_users_of_like_taste_meet_like_items() -> None:
    world = large_world(3, interactions=60_000, users=1500, items=2000)
    matrix = world.interactions.matrix.astype(np.float64)
    popularity = np.asarray(matrix.sum(axis=0)).ravel() + 1
    scaled = (matrix / np.sqrt(popularity)).tocsr()
    norm = np.sqrt(np.asarray(scaled.multiply(scaled).sum(axis=1)).ravel())
    likeness = (scaled @ scaled.T).toarray() / np.outer(norm, norm)
    taste = world.truth.population.tastes
    taste = taste / np.linalg.norm(taste, axis=1, keepdims=True)
    pairs = np.triu_indices(len(taste), 1)
    together = np.corrcoef((taste @ taste.T)[pairs], likeness[pairs])[0, 1]
    assert together > 0.25


@pytest.mark.parametrize("ratings", [False, True])
def test_a_written_file_reads_back(tmp_path: Path, ratings: bool) -> None:
    world = large_world(1, interactions=5000, users=200, items=400, ratings=ratings)
    read = Interactions.from_frame(write_interactions(world, tmp_path / "a" / "i.parquet"))
    assert read.explicit == ratings
    assert read.to_frame().equals(world.interactions.to_frame())


def test_what_cannot_be_drawn_is_refused() -> None:
    with pytest.raises(PlanError, match="more than a fifth"):
        large_world(0, interactions=9000, users=100, items=300)
    with pytest.raises(PlanError, match="each needs one"):
        large_world(0, interactions=50, users=100, items=300)
    world = large_world(0, interactions=500, users=100, items=300)
    with pytest.raises(PlanError, match="no pools"):
        world.redraw("a")
    with pytest.raises(PlanError, match="write_interactions"):
        world.write("nowhere")
