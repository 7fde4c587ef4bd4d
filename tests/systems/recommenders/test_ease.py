"""EASE against its definition and against a plain closed form."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize

from ombud.data.interactions import Interactions
from ombud.errors import DataError
from ombud.systems.recommenders import EASE

pytest.importorskip("numba")


def test_three_items_by_hand():
    data = Interactions.from_arrays([1, 1, 2], ["a", "b", "a"])
    # X'X + I = [[3, 1], [1, 2]]; P = [[2, -1], [-1, 3]] / 5; B_ab = -P_ab / P_bb = 1/3, B_ba = 1/2.
    np.testing.assert_allclose(EASE(1.0).fit(data).weights, [[0, 1 / 3], [1 / 2, 0]], atol=1e-7)


@pytest.mark.parametrize("kind", ["plays", "ratings"])
def test_weights_and_scores_are_the_closed_form(request, kind):
    data = request.getfixturevalue(kind)
    model = EASE(20.0).fit(data)
    x = data.matrix.toarray().astype(float)
    p = np.linalg.inv(x.T @ x + 20.0 * np.eye(data.n_items))
    expected = np.eye(data.n_items) - p / np.diag(p)
    np.testing.assert_allclose(model.weights, expected, atol=1e-6)
    np.testing.assert_allclose(model.scores_for(data.matrix), x @ expected, atol=1e-4)


def test_each_column_is_the_ridge_regression_of_an_item_on_the_others(plays):
    model, x = EASE(5.0).fit(plays), plays.matrix.toarray().astype(float)
    for j in (0, 7, 30):
        others = np.delete(np.arange(plays.n_items), j)
        near = x[:, others]
        solved = np.linalg.solve(near.T @ near + 5.0 * np.eye(len(others)), near.T @ x[:, j])
        np.testing.assert_allclose(model.weights[others, j], solved, atol=1e-6)


def test_the_weights_minimise_the_loss():
    data = Interactions.from_arrays([1, 1, 2, 2, 3, 3, 3], [0, 1, 1, 2, 0, 1, 2])
    x = data.matrix.toarray().astype(float)
    free = ~np.eye(3, dtype=bool)

    def loss(w):
        b = np.zeros((3, 3))
        b[free] = w
        return ((x - x @ b) ** 2).sum() + 2.0 * (b**2).sum()

    found = minimize(loss, np.zeros(6), tol=1e-12)
    np.testing.assert_allclose(EASE(2.0).fit(data).weights[free], found.x, atol=1e-5)


def test_folding_in_is_linear_and_equals_the_trained_user(plays):
    model = EASE(5.0).fit(plays)
    known, new = model.recommend(plays.users.ids, 6), model.recommend_for(plays.matrix, 6)
    np.testing.assert_array_equal(known.items, new.items)
    a, b = (model.scores_for(sparse.csr_array(np.eye(45)[[i]])) for i in (3, 8))
    both = model.scores_for(sparse.csr_array(np.eye(45)[[3]] + np.eye(45)[[8]]))
    np.testing.assert_allclose(a + b, both, atol=1e-6)


def test_arguments_and_ids_are_checked(plays):
    with pytest.raises(ValueError, match="regularization is 0"):
        EASE(0)
    with pytest.raises(DataError, match="columns"):
        EASE(1.0).fit(plays).scores_for(sparse.csr_array((1, 3)))
