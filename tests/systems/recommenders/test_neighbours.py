"""Item-kNN and user-kNN against slow plain numpy, with ties, limits and early stop."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ombud.data.interactions import Interactions

pytest.importorskip("numba")
from ombud.systems.recommenders import ItemKNN, UserKNN


def dense(data: Interactions) -> tuple[np.ndarray, np.ndarray]:
    values = data.matrix.toarray().astype(float)
    there = np.zeros(values.shape, bool)
    rows = np.repeat(np.arange(data.n_users), np.diff(data.matrix.indptr))
    there[rows, data.matrix.indices] = True
    return values, there


def cosine(vectors: np.ndarray) -> np.ndarray:
    lengths = np.linalg.norm(vectors, axis=1)
    unit = vectors / np.where(lengths > 1e-6, lengths, np.inf)[:, None]
    return unit @ unit.T


def best(candidates: list[int], similar: np.ndarray, count: int | None) -> list[int]:
    # Rounded, so that equal similarities tie here as they do in exact arithmetic.
    return sorted(candidates, key=lambda c: (-round(similar[c], 6), c))[:count]


def plain_item_knn(data, neighbours, stored, fewest, least):
    values, there = dense(data)
    centre = np.zeros(data.n_items)
    if data.explicit:
        centre = values.sum(0) / there.sum(0)
    deviation = np.where(there, values - centre, 0)
    similar = cosine(deviation.T)
    np.fill_diagonal(similar, 0)
    kept = np.zeros(similar.shape, bool)  # kept[h, j]: j is among the neighbours of h
    for h in range(data.n_items):
        near = [j for j in range(data.n_items) if similar[h, j] >= least]
        kept[h, best(near, similar[h], stored)] = True
    out = np.full((data.n_users, data.n_items), np.nan)
    for u in range(data.n_users):
        for j in range(data.n_items):
            near = [h for h in np.flatnonzero(there[u]) if kept[h, j]]
            near = best(near, similar[:, j], neighbours)
            if len(near) >= fewest:
                weight = similar[near, j]
                if data.explicit:
                    out[u, j] = centre[j] + weight @ deviation[u, near] / weight.sum()
                else:
                    out[u, j] = weight @ values[u, near]
    return out


def plain_user_knn(data, neighbours, fewest, least):
    values, there = dense(data)
    centre = np.zeros(data.n_users)
    if data.explicit:
        centre = values.sum(1) / there.sum(1)
    deviation = np.where(there, values - centre[:, None], 0)
    similar = cosine(deviation)
    np.fill_diagonal(similar, 0)
    out = np.full((data.n_users, data.n_items), np.nan)
    for u in range(data.n_users):
        for j in range(data.n_items):
            near = [v for v in np.flatnonzero(there[:, j]) if similar[u, v] >= least]
            near = best(near, similar[u], neighbours)
            if len(near) >= fewest:
                weight = similar[u, near]
                if data.explicit:
                    out[u, j] = centre[u] + weight @ deviation[near, j] / weight.sum()
                else:
                    out[u, j] = weight.sum()
    return out


@pytest.mark.parametrize("arguments", [
    {"neighbours": None, "stored": 8},
    {"neighbours": 3, "stored": 44},
    {"neighbours": 4, "stored": 10, "min_neighbours": 3, "min_similarity": 0.2037},
])  # fmt: skip
@pytest.mark.parametrize("kind", ["plays", "ratings"])
def test_item_scores_equal_the_plain_ones(request, kind, arguments):
    data = request.getfixturevalue(kind)
    model = ItemKNN(**arguments).fit(data)
    found = model.score(data.users.ids, data.items.ids)
    expected = plain_item_knn(
        data, model.neighbours, model.stored, model.min_neighbours, model.min_similarity
    )
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    np.testing.assert_allclose(found, expected, rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize("arguments", [
    {"neighbours": None},
    {"neighbours": 5},
    {"neighbours": 6, "min_neighbours": 4, "min_similarity": 0.2471},
])  # fmt: skip
@pytest.mark.parametrize("kind", ["plays", "ratings"])
def test_user_scores_equal_the_plain_ones(request, kind, arguments):
    data = request.getfixturevalue(kind)
    model = UserKNN(**arguments).fit(data)
    found = model.score(data.users.ids, data.items.ids)
    expected = plain_user_knn(data, model.neighbours, model.min_neighbours, model.min_similarity)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    np.testing.assert_allclose(found, expected, rtol=2e-4, atol=2e-4)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 6))
def test_ties_never_displace_better_neighbours(seed, stored):
    # Few users: similarities take few values, so lists are full of ties at their end.
    rng = np.random.default_rng(seed)
    keys = np.unique(np.concatenate([rng.integers(0, 6 * 25, 60), np.arange(25)]))
    data = Interactions.from_arrays(keys // 25, keys % 25)
    lists = ItemKNN(stored=stored).fit(data)._state.lists
    similar = cosine(dense(data)[0].T)
    for i in range(data.n_items):
        near = [j for j in range(data.n_items) if j != i and similar[i, j] > 1e-6]
        expected = best(near, similar[i], stored)
        assert lists.codes[i][lists.codes[i] >= 0].tolist() == expected


@pytest.mark.parametrize("kind", ["plays", "ratings"])
def test_lazy_rows_are_the_fitted_rows_to_the_bit(request, kind):
    data = request.getfixturevalue(kind)
    eager, lazy = ItemKNN(stored=7).fit(data), ItemKNN(stored=7, lazy=True).fit(data)
    users = data.users.ids[:9]
    assert lazy.score(users, data.items.ids).tobytes() == (
        eager.score(users, data.items.ids).tobytes()
    )
    needed = np.unique(data.matrix[:1].indices)
    assert len(lazy._lists_for(needed).codes) == len(needed)  # and no other row


def test_user_knn_stops_early_without_changing_the_list():
    rng = np.random.default_rng(3)
    n_users, n_items = 3000, 200
    popular = rng.zipf(1.3, 60_000) % n_items
    keys = np.unique(rng.integers(0, n_users, 60_000) * n_items + popular)
    data = Interactions.from_arrays(keys // n_items, keys % n_items)
    model = UserKNN(neighbours=5).fit(data)
    users = data.users.ids[:40]
    short, full = model.recommend(users, 5), model.recommend(users, data.n_items)
    np.testing.assert_array_equal(short.items, full.items[:, :5])
    assert short.scores.tobytes() == np.ascontiguousarray(full.scores[:, :5]).tobytes()
    assert (_visited(model, data, 5) < _visited(model, data, data.n_items)).any()


def _visited(model: UserKNN, data: Interactions, n: int) -> np.ndarray:
    from ombud.systems.recommenders.kernels import similar_users

    seen: list[np.ndarray] = []
    original = similar_users.score

    def spy(*arguments):
        original(*arguments)
        seen.append(arguments[-1].copy())

    similar_users.score = spy
    try:
        model.recommend(data.users.ids[:40], n)
    finally:
        similar_users.score = original
    return np.concatenate(seen)
