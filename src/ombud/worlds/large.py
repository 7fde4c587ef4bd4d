"""Tens of millions of interactions in seconds, with a structure that recommenders can learn."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import sparse

from ombud.data.dataset import Dataset
from ombud.data.groups import Grouping
from ombud.data.ids import Vocabulary
from ombud.data.interactions import Interactions
from ombud.errors import PlanError
from ombud.rng import generator
from ombud.worlds.catalogue import Catalogue, draw_labels, draw_popularity
from ombud.worlds.population import Population
from ombud.worlds.spec import WorldSpec
from ombud.worlds.world import World, WorldTruth, card_of

_BITS = 17
_ROUNDS = 30


def draw_large(spec: WorldSpec, interactions: int, seed: int, *, topics: int = 32) -> World:
    """Draw a world from a topic model: every user mixes two topics, every topic ranks all items.

    A topic's weight for an item is its popularity times ``exp(0.8 topic . factors)``. There are no
    pools, texts or creators, so no effect can be planted in it.

    Of the spec only users, items, labels, factors and ratings are used. There are exactly so many
    interactions, and `topics` tastes.
    """
    if interactions > 0.2 * spec.users * spec.items:
        raise PlanError(
            f"{interactions:,} interactions fill more than a fifth of {spec.users:,} users x "
            f"{spec.items:,} items; use more users or items"
        )
    if interactions < spec.users:
        raise PlanError(f"{interactions:,} interactions for {spec.users:,} users; each needs one")
    rng = generator(seed, spec.name, "large")
    items = Vocabulary(np.arange(1, spec.items + 1, dtype=np.int32))
    popularity = draw_popularity(spec.items, rng)
    factors = rng.standard_normal((spec.items, spec.factors), dtype=np.float32)
    centres = rng.standard_normal((topics, spec.factors), dtype=np.float32)
    favourites = rng.integers(topics, size=(spec.users, 4), dtype=np.int32)
    # Three quarters of what a user meets come from one topic, one quarter from another.
    favourites[:, 1:3] = favourites[:, :1]
    table = _quantiles(popularity * np.exp(0.8 * centres @ factors.T), rng)
    matrix = draw_interactions(table, favourites, spec.items, interactions, rng)
    tastes = centres[favourites].mean(axis=1)
    if spec.ratings:
        matrix.data = _stars(matrix, tastes, factors, rng)
    truth, votes, applied = draw_labels(items, spec.labels, popularity, factors, seed, spec.name)
    users = Vocabulary(np.arange(1, spec.users + 1, dtype=np.int32))
    scale = (0.5, 5.0) if spec.ratings else None
    table_of = Interactions(users, items, matrix, spec.ratings, scale)
    card = card_of(spec, seed)
    nobody = Grouping(users, (), np.zeros((spec.users, 0), dtype=bool), ())
    activity = np.diff(matrix.indptr).astype(np.int64)
    catalogue = Catalogue(items, popularity, factors, truth, votes, applied)
    people = Population(users, tastes, activity, nobody)
    return World(spec, seed, Dataset(table_of, votes, card=card), WorldTruth(people, catalogue))


def draw_interactions(
    table: NDArray[np.int32],
    favourites: NDArray[np.int32],
    n_items: int,
    total: int,
    rng: np.random.Generator,
) -> sparse.csr_array:
    """Draw distinct pairs of user and item until there are exactly as many as asked for.

    `table` is topics x quantiles: the item at each quantile of a topic. `favourites` is users x 4:
    the topics a user draws from, each with probability one quarter.

    Returns
    -------
    Users x items, ones. Every user has at least one item.
    """
    n_users = len(favourites)
    share = np.exp(rng.normal(0, 1.0, n_users))
    wanted = np.maximum(1, total * share / share.sum())
    # Nobody meets more than a third of the catalogue: repeats would never end.
    wanted = np.minimum(wanted, max(1, n_items // 3))
    keys, fresh = np.empty(0, dtype=np.int64), 0.9
    for _ in range(_ROUNDS):
        before = len(keys)
        if before >= total:
            break
        # As many as would do if the share of repeats were that of the last round.
        asked = 1.02 * (total - before) / fresh + 100
        counts = np.floor(wanted * (asked / wanted.sum()) + rng.random(n_users))
        if not before:
            counts = np.maximum(counts, 1)
        drawn = _pairs(table, favourites, counts, n_items, rng)
        keys = np.concatenate([keys, drawn])
        keys.sort()
        keys = keys[np.append(True, keys[1:] != keys[:-1])]
        fresh = max((len(keys) - before) / len(drawn), 0.05)
    if len(keys) < total:
        raise PlanError(f"only {len(keys):,} of {total:,} interactions could be drawn; add items")
    users = (keys // n_items).astype(np.int32)
    first = np.append(True, users[1:] != users[:-1])
    extra = np.flatnonzero(~first)
    gone = rng.choice(extra, len(keys) - total, replace=False, shuffle=False)
    kept = np.ones(len(keys), dtype=bool)
    kept[gone] = False
    indices = (keys[kept] - users[kept] * np.int64(n_items)).astype(np.int32)
    starts = np.concatenate([[0], np.cumsum(np.bincount(users[kept], minlength=n_users))])
    small = np.int32 if total < 2**31 else np.int64
    ones = np.ones(total, dtype=np.float32)
    matrix = sparse.csr_array((ones, indices, starts.astype(small)), shape=(n_users, n_items))
    matrix.has_sorted_indices = True
    return matrix


def write_interactions(world: World, path: Path | str) -> Path:
    """Write the interactions of a world as Parquet (`user`, `item`, `rating` if there is one)."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    table = world.interactions
    rows = np.repeat(np.arange(table.n_users, dtype=np.int32), np.diff(table.matrix.indptr))
    columns = {"user": table.users.ids[rows], "item": table.items.ids[table.matrix.indices]}
    if table.explicit:
        columns["rating"] = table.matrix.data
    pl.DataFrame(columns).write_parquet(path)
    return path


def _quantiles(weights: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.int32]:
    """Return each topic's item at 2**17 evenly spaced quantiles, with a random start.

    Drawing is then one look-up. An item with less weight than one quantile is there or not by
    chance; with the topics' different starts, most rare items are in some topic's table.
    """
    size = 1 << _BITS
    table = np.empty((len(weights), size), dtype=np.int32)
    for topic, row in enumerate(weights):
        ends = np.cumsum(row)
        at = (np.arange(size) + rng.random()) * (ends[-1] / size)
        table[topic] = np.minimum(np.searchsorted(ends, at, side="right"), len(row) - 1)
    return table


def _pairs(
    table: NDArray[np.int32],
    favourites: NDArray[np.int32],
    drawn: NDArray[np.float64],
    n_items: int,
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """Draw pairs as user * n_items + item, in blocks, so that intermediates stay small."""
    counts = drawn.astype(np.int64)
    ends = np.cumsum(counts)
    keys = np.empty(int(ends[-1]), dtype=np.int64)
    flat, block = table.ravel(), 1 << 22
    cuts = np.searchsorted(ends, np.arange(block, len(keys), block))
    for users in np.split(np.arange(len(counts)), np.unique(cuts)):
        if not len(users):
            continue
        rows = np.repeat(users, counts[users])
        bits = rng.integers(1 << (_BITS + 2), size=len(rows), dtype=np.uint32)
        topic = favourites.ravel()[rows * 4 + (bits >> _BITS)]
        index = (topic << _BITS) + (bits & ((1 << _BITS) - 1)).astype(np.int32)
        stop = int(ends[users[-1]])
        keys[stop - len(rows) : stop] = rows * n_items + flat[index]
    return keys


def _stars(
    matrix: sparse.csr_array,
    tastes: NDArray[np.float32],
    factors: NDArray[np.float32],
    rng: np.random.Generator,
) -> NDArray[np.float32]:
    stars = np.empty(matrix.nnz, dtype=np.float32)
    rows = np.repeat(np.arange(matrix.shape[0], dtype=np.int32), np.diff(matrix.indptr))
    for start in range(0, matrix.nnz, 1 << 21):
        part = slice(start, start + (1 << 21))
        liking = np.einsum("ef,ef->e", tastes[rows[part]], factors[matrix.indices[part]])
        noise = rng.standard_normal(len(liking), dtype=np.float32)
        stars[part] = np.clip(np.rint(2 * (3.4 + 0.3 * liking + 0.7 * noise)) / 2, 0.5, 5)
    return stars
