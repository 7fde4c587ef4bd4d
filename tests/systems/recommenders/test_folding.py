"""Folding in a history equals solving for that user with the items fixed."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from ombud.errors import AuditedSystemError

pytest.importorskip("numba")
from ombud.systems.recommenders import (
    BPR,
    SVD,
    ExplicitALS,
    ImplicitALS,
    ItemKNN,
    Popular,
    Random,
    UserKNN,
)


def test_implicit_als_solves_the_normal_equations(plays):
    model = ImplicitALS(factors=5, iterations=6, alpha=3.0, regularization=0.2).fit(plays)
    y = model.item_factors.astype(float)
    found = model.fold_in(plays.matrix)
    for u in range(plays.n_users):
        near = y[plays.matrix[[u]].indices]
        a = y.T @ y + 3.0 * near.T @ near + 0.2 * np.eye(5)
        np.testing.assert_allclose(
            found[u], np.linalg.solve(a, 4.0 * near.sum(0)), rtol=1e-3, atol=1e-4
        )


def test_exact_training_ends_where_folding_in_begins(plays, ratings):
    # After the last half-step items have moved, so users are solved once more.
    for model, data in (
        (ImplicitALS(factors=4, iterations=200, solver="cholesky", regularization=1.0), plays),
        (ExplicitALS(factors=4, iterations=200, solver="cholesky", regularization=0.1), ratings),
    ):
        model.fit(data)
        np.testing.assert_allclose(model.fold_in(data.matrix), model.user_factors, atol=5e-3)


def test_explicit_als_folds_in_the_bias_and_the_factors(ratings):
    model = ExplicitALS(factors=5, iterations=5, regularization=0.1, damping=2.0).fit(ratings)
    q = model.item_factors.astype(float)
    factors, bias = model._fold(ratings.matrix)
    np.testing.assert_allclose(bias, model.user_bias, atol=1e-5)
    mean = ratings.matrix.data.mean(dtype=float)
    for u in range(0, ratings.n_users, 7):
        row = ratings.matrix[[u]]
        rest = row.data - mean - model.item_bias[row.indices] - bias[u]
        near = q[row.indices]
        a = near.T @ near + 0.1 * len(rest) * np.eye(5)
        np.testing.assert_allclose(
            factors[u], np.linalg.solve(a, near.T @ rest), rtol=2e-3, atol=1e-4
        )


def test_svd_folds_in_where_gradient_descent_on_the_user_ends(ratings):
    model = SVD(factors=4, epochs=10, regularization=0.1).fit(ratings)
    row = ratings.matrix[[2]]
    q, offset = model.item_factors[row.indices].astype(float), model._offset[row.indices]
    x = np.zeros(5)  # factors, then bias
    design = np.column_stack([q, np.ones(len(q))])
    for _ in range(20_000):
        error = row.data - offset - design @ x
        x += 0.01 * (design.T @ error / len(error) - 0.1 * x)
    factors, bias = model._fold(row)
    np.testing.assert_allclose(np.append(factors[0], bias[0]), x, atol=1e-3)


@pytest.mark.parametrize("kind", ["plays", "ratings"])
def test_item_knn_treats_a_training_history_as_the_user(request, kind):
    data = request.getfixturevalue(kind)
    model = ItemKNN(neighbours=4, stored=12).fit(data)
    known, new = model.recommend(data.users.ids, 6), model.recommend_for(data.matrix, 6)
    np.testing.assert_array_equal(known.items, new.items)
    assert known.scores.tobytes() == new.scores.tobytes()


@pytest.mark.parametrize("kind", ["plays", "ratings"])
def test_user_knn_finds_the_user_as_the_nearest_neighbour(request, kind):
    data = request.getfixturevalue(kind)
    model = UserKNN(neighbours=1).fit(data)
    scores = model.scores_for(data.matrix[[5]])[0]
    own = data.matrix[[5]]
    expected = own.data if data.explicit else np.ones(len(own.data))
    np.testing.assert_allclose(scores[own.indices], expected, rtol=1e-5)


def test_a_changed_history_changes_the_scores(ratings):
    for model in (SVD(factors=4), ExplicitALS(factors=4), ItemKNN(), UserKNN()):
        model.fit(ratings)
        row = ratings.matrix[[3]].toarray()
        changed = np.where(row > 0, 5.5 - row, 0)
        before, after = model.scores_for(sparse.csr_array(np.vstack([row, changed])))
        assert not np.allclose(before, after, equal_nan=True)


def test_popular_and_random_leave_out_the_given_history(plays):
    for model in (Popular(), Random()):
        model.fit(plays)
        lists = model.recommend_for(plays.matrix, plays.n_items)
        for u in range(plays.n_users):
            own = set(plays.matrix[[u]].indices.tolist())
            row = set(lists.items[u][lists.items[u] >= 0].tolist())
            assert row == set(range(plays.n_items)) - own


def test_bpr_says_that_it_cannot(plays):
    with pytest.raises(AuditedSystemError, match="no closed form"):
        BPR(factors=4, epochs=2).fit(plays).recommend_for(plays.matrix, 3)
