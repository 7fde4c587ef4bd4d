"""Affine scores: numerically affine, optima equal to other solvers', memberships to brute force."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from ombud.errors import PlanError
from ombud.probes.affine import AffineScores, affine_scores, most_probable
from ombud.probes.distances import probabilities
from ombud.probes.edits import History
from ombud.probes.models import open_box

pytest.importorskip("numba")
sys.path.insert(0, str(Path(__file__).parent))
from conftest import ITEMS, trained


def random_scores(rng, n=40, m=4, low=1.0, high=5.0):
    return AffineScores(
        rng.normal(size=(n, m)) / 2, rng.normal(size=n), np.arange(m), np.arange(n), low, high,
        np.full(m, np.nan),
    )  # fmt: skip


def plain_optimum(scores, goal, beta):
    def loss(a):
        s = beta * (scores.slope @ a + scores.intercept)
        top = s.max()
        e = np.exp(s - top)
        return top + np.log(e.sum()) - s[goal], beta * (
            e @ scores.slope / e.sum() - scores.slope[goal]
        )

    bounds = [(scores.low, scores.high)] * scores.slope.shape[1]
    options = {"ftol": 1e-15, "gtol": 1e-10, "maxiter": 2000}
    start = np.full(len(bounds), 3.0)
    return -minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options).fun


@pytest.mark.parametrize("name", ["svd", "explicit-als", "ease on ratings", "item-knn on ratings"])
@pytest.mark.parametrize("kind", ["history", "future"])
def test_scores_are_affine_in_the_values_of_a_fixed_set(name, kind, rng):
    model = trained(name)
    box, history = open_box(model), History.of_user(model.interactions, 2)
    new = np.setdiff1d(np.arange(ITEMS), history.items)
    actions = (history.items if kind == "history" else new)[:3].astype(np.int32)
    scores = affine_scores(box, history, actions, 1.0, 3.0)
    for _ in range(5):
        values = rng.uniform(1, 3, 3).astype(np.float32)
        entries = dict(zip(history.items.tolist(), history.values.tolist(), strict=True))
        entries.update(zip(actions.tolist(), values.tolist(), strict=True))
        edited = History.of(entries.keys(), entries.values())
        real = model.scores_for(edited.row(ITEMS))[0][scores.candidates].astype(float)
        ours = scores.at(values.astype(float))
        np.testing.assert_allclose(ours - ours[0], real - real[0], atol=2e-5)


def test_models_that_are_not_affine_are_refused():
    model = trained("user-knn on ratings")
    history = History.of_user(model.interactions, 2)
    with pytest.raises(PlanError, match="not affine"):
        affine_scores(open_box(model), history, history.items[:2], 1.0, 3.0)
    with pytest.raises(PlanError, match="none twice"):
        affine_scores(open_box(trained("svd")), history, np.array([1, 1]), 1.0, 3.0)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([0.5, 1.0, 4.0, 10.0]), st.integers(1, 8))
def test_newton_equals_a_plain_solver(seed, beta, m):
    scores = random_scores(np.random.default_rng(seed), m=m)
    goals = np.array([0, 7, 21])
    found = most_probable(scores, goals, beta)
    plain = [plain_optimum(scores, g, beta) for g in goals]
    assert (found.log_probability >= np.array(plain) - 1e-6).all()
    # The plain solver may stop early; the proved gap says that ours did not.
    at = beta * scores.at(found.values)
    again = np.log(probabilities(at, 1.0)[np.arange(3), goals])
    np.testing.assert_allclose(again, found.log_probability, atol=1e-7)
    assert (found.gap <= 1e-7).all()
    assert (found.values >= 1).all() and (found.values <= 5).all()


def test_newton_equals_cvxpy():
    cvxpy = pytest.importorskip("cvxpy")
    scores = random_scores(np.random.default_rng(4), m=5)
    found = most_probable(scores, np.arange(3), 4.0)
    for goal in range(3):
        a = cvxpy.Variable(5)
        loss = cvxpy.log_sum_exp(4 * (scores.slope @ a + scores.intercept))
        loss -= 4 * (scores.slope[goal] @ a + scores.intercept[goal])
        value = cvxpy.Problem(cvxpy.Minimize(loss), [a >= 1, a <= 5]).solve(solver="CLARABEL")
        assert found.log_probability[goal] == pytest.approx(-value, abs=1e-6)
