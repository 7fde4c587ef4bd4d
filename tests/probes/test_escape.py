"""Escape and drift-in against trying every edit; curves against counting."""

from __future__ import annotations

import sys
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from ombud.errors import PlanError
from ombud.probes.edits import EditSpace
from ombud.probes.escape import DriftIn, Escape, LabelGoal, curve
from ombud.probes.outcomes import FrozenOutcome

pytest.importorskip("numba")
sys.path.insert(0, str(Path(__file__).parent))
from conftest import ITEMS, trained

K = 3
LABELLED = np.zeros(ITEMS, bool)
LABELLED[[0, 3, 5, 8]] = True


def space_of(model, row, budget):
    values = (1.0, 3.0) if model.interactions.explicit else (1.0,)
    return EditSpace.of_user(
        model.interactions, model.interactions.users.ids[row], budget=budget, values=values,
        editable=np.arange(8),
    )  # fmt: skip


def truth(model, space, row, permitted, out):
    """Return the fewest edits by running every treatment; None if none within the budget does."""
    singles = space.singles()
    edits = [singles.edit(i) for i in range(len(singles))]
    outcome = FrozenOutcome(model, space.history, K, own=row)
    for cost in range(space.budget + 1):
        chosen = [t for t in combinations(edits, cost) if len({e.item for e in t}) == cost]
        for shown in outcome.after(chosen):
            count = LABELLED[shown.items[shown.items >= 0]].sum()
            if (count <= permitted) == out:
                return cost
    return None


@pytest.mark.parametrize("kind", [Escape, DriftIn])
def test_few_edits_are_exact_and_a_beam_never_claims_too_much(model_name, kind):
    model = trained(model_name)
    out = kind is Escape
    seen = set()
    for row in range(0, 12, 3):
        for permitted in (0, 1):
            space = space_of(model, row, 2)
            real = truth(model, space, row, permitted, out)
            exact = kind(k=K, permitted=permitted, exhaustive=10**6).of(
                model, space, LABELLED, own=row
            )
            assert exact.fewest.cost == real and exact.fewest.exact
            assert exact.fewest.none_exists == (real is None)
            beam = kind(k=K, permitted=permitted, exhaustive=0).of(model, space, LABELLED, own=row)
            assert beam.fewest.cost is None or (real is not None and beam.fewest.cost >= real)
            assert beam.fewest.at_least <= (real if real is not None else 3)
            if real == 1:
                assert beam.fewest.cost == 1 and beam.fewest.exact
            seen.add(real)
    assert len(seen) > 1


def test_what_is_paid_and_what_chance_and_training_do():
    model = trained("explicit-als")
    found = None
    for row in range(24):
        way = Escape(k=K, random=20, retrain=True).of(
            model, space_of(model, row, 2), LABELLED, own=row
        )
        if way.fewest.witness:
            found = way
            assert way.after == 0 and way.before > 0
            assert way.kept is None or 0 <= way.kept <= 1
            assert 0 <= way.random <= 1 and way.retrained in {True, False}
    assert found is not None


def test_the_goal_is_reached_just_when_the_list_says_so(rng):
    for permitted in (0, 1, 2):
        goal = LabelGoal(LABELLED, K, permitted)
        back = LabelGoal(LABELLED, K, permitted, "in")
        scores = rng.normal(size=(200, ITEMS))
        scores[rng.random(scores.shape) < 0.3] = -np.inf
        top = np.argsort(-scores, axis=1)[:, :K]
        count = (LABELLED[top] & np.isfinite(np.take_along_axis(scores, top, 1))).sum(axis=1)
        np.testing.assert_array_equal(goal.values(scores) >= 0, count <= permitted)
        np.testing.assert_array_equal(back.values(scores) > 0, count > permitted)


def test_the_curve_counts_and_censors():
    model = trained("ease")
    ways = [Escape(k=K).of(model, space_of(model, r, 2), LABELLED, own=r) for r in range(20)]
    found, left_out = curve(ways, 2, label="blood", system="ease")
    at_risk = [w for w in ways if w.before > 0]
    for edits, estimate in zip((1, 2), found[:2], strict=True):
        done = sum(w.fewest.cost is not None and w.fewest.cost <= edits for w in at_risk)
        assert estimate.value == pytest.approx(done / len(at_risk)) and estimate.n == len(at_risk)
        assert estimate.interval[0] <= estimate.value <= estimate.interval[1]
    assert found[0].value <= found[1].value
    assert sum(e.count for e in left_out) == 20 - len(at_risk)
    assert found[2].is_defined == (found[1].value >= 0.5)
    nobody, _ = curve([w for w in ways if w.before == 0], 2)
    assert not nobody[0].is_defined


def test_bad_questions_are_refused():
    model = trained("ease")
    with pytest.raises(PlanError, match="permitted is below k"):
        Escape(k=3, permitted=3)
    with pytest.raises(PlanError, match="labels for"):
        Escape(k=3).of(model, space_of(model, 1, 1), np.zeros(3, bool))
