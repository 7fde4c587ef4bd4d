"""Reachability against trying every edit, under both policies."""

from __future__ import annotations

import sys
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from ombud.data.interactions import Interactions
from ombud.errors import AuditedSystemError, PlanError
from ombud.probes.edits import Edit, EditSpace, History, rows_of
from ombud.probes.models import closed_form, open_box
from ombud.probes.models.base import TrainedBox
from ombud.probes.outcomes import FrozenOutcome, RetrainedOutcome, score_histories
from ombud.probes.reachability import Reachability, single_reach
from ombud.probes.search import Objective, beam, exhaustive
from ombud.systems.recommenders import BPR, EASE, ExplicitALS, ImplicitALS

pytest.importorskip("numba")
sys.path.insert(0, str(Path(__file__).parent))
from conftest import trained

ME, K, BETA = 2, 3, 1.5


def space_of(model, budget, **options):
    return EditSpace.of_user(
        model.interactions, model.interactions.users.ids[ME], budget=budget, **options
    )


def all_treatments(space):
    singles = space.singles()
    edits = [singles.edit(i) for i in range(len(singles))]
    return [
        chosen
        for count in range(space.budget + 1)
        for chosen in combinations(edits, count)
        if len({e.item for e in chosen}) == count
    ]


def brute(model, space, outcome):
    """Return the best probability of each item and whether it can be listed, by real runs."""
    best = np.zeros(space.n_items)
    listed = np.zeros(space.n_items, bool)
    treatments = all_treatments(space)
    for edits, shown in zip(treatments, outcome.after(treatments), strict=True):
        rated = [e.item for e in edits if e.after is not None]
        allowed = np.ones(space.n_items, bool)
        allowed[rated] = False  # rating the target itself is never an edit
        best = np.where(allowed, np.maximum(best, shown.probabilities), best)
        listed[[i for i in shown.items if i >= 0]] = True
    return best, listed


@pytest.mark.parametrize("budget", [0, 1])
def test_one_edit_is_exact(model_name, budget):
    model = trained(model_name)
    space = space_of(model, budget)
    outcome = FrozenOutcome(model, space.history, K, beta=BETA, own=ME)
    best, listed = brute(model, space, outcome)
    found = Reachability(k=K, beta=BETA).of(model, space, range(space.n_items), own=ME)
    for item, reach in enumerate(found):
        assert reach.in_list.exact and reach.reachable == listed[item], item
        assert reach.probability.exact
        assert reach.probability.attained == pytest.approx(best[item], rel=1e-4, abs=1e-7)
        assert reach.in_list.policy == "frozen" and reach.in_list.cost <= budget


def test_two_edits_are_exact_where_all_can_be_tried(model_name):
    model = trained(model_name)
    space = space_of(
        model,
        2,
        editable=np.arange(7),
        values=(1.0,) if not model.interactions.explicit else (1.0, 3.0),
    )
    outcome = FrozenOutcome(model, space.history, K, beta=BETA, own=ME)
    best, listed = brute(model, space, outcome)
    found = Reachability(k=K, beta=BETA).of(model, space, range(space.n_items), own=ME)
    for item, reach in enumerate(found):
        assert reach.in_list.exact
        assert reach.reachable == listed[item]
        assert reach.probability.attained == pytest.approx(best[item], rel=1e-4, abs=1e-7)


@pytest.mark.parametrize("budget", [2, 3])
def test_a_beam_is_bracketed_by_the_truth_and_its_witness_runs(model_name, budget):
    model = trained(model_name)
    space = space_of(
        model,
        budget,
        editable=np.arange(7),
        values=(1.0,) if not model.interactions.explicit else (1.0, 3.0),
    )
    outcome = FrozenOutcome(model, space.history, K, beta=BETA, own=ME)
    asked = Reachability(k=K, beta=BETA, exhaustive=0)
    exact = Reachability(k=K, beta=BETA, exhaustive=10**7)
    for item in range(0, space.n_items, 2):
        (reach,) = asked.of(model, space, [item], own=ME)
        (truth,) = exact.of(model, space, [item], own=ME)
        low, high = reach.probability.lower, reach.probability.upper
        assert low <= truth.probability.attained * (1 + 1e-4) + 1e-9
        assert high is None or high >= truth.probability.attained * (1 - 1e-4) - 1e-9
        assert reach.reachable in {truth.reachable, None}
        again = outcome.after([reach.probability.witness])[0]
        assert again.probabilities[item] == pytest.approx(low, rel=1e-6)
        assert not space.without_rating([item]).faults(reach.probability.witness)


def test_gap_bounds_hold_for_every_treatment_and_are_exact_for_one_edit(model_name):
    model = trained(model_name)
    box = open_box(model, ME)
    for budget, values in ((1, None), (2, (1.0, 3.0)), (3, (3.0,))):
        options = {} if values is None or not model.interactions.explicit else {"values": values}
        space = space_of(model, budget, editable=np.arange(8), **options)
        histories = [space.history.after(t) for t in all_treatments(space)]
        scores = score_histories(model, rows_of(histories, space.n_items), ME).astype(float)
        for target in range(0, space.n_items, 3):
            bounds = box.gap_bounds(space, target, np.arange(space.n_items))
            if bounds is None:
                continue
            with np.errstate(all="ignore"):
                gaps = scores[:, [target]] - scores
            truth = np.max(np.where(np.isnan(gaps), -np.inf, gaps), axis=0)
            assert (bounds >= truth - 1e-4).all()
            if budget == 1 and model_name != "explicit-als":  # its bias is bounded apart
                np.testing.assert_allclose(bounds, truth, atol=1e-4)


def test_results_grow_with_the_budget(model_name):
    model = trained(model_name)
    before = None
    for budget in range(4):
        space = space_of(
            model, budget, values=(1.0,) if not model.interactions.explicit else (1.0, 3.0)
        )
        asked = Reachability(k=K, beta=BETA, exhaustive=0, width=3, screen=12)
        found = asked.of(model, space, [0, 4, 9], own=ME)
        now = [(r.probability.attained, r.in_list.attained) for r in found]
        if before is not None:
            assert all(
                n >= b for a, c in zip(now, before, strict=True) for n, b in zip(a, c, strict=True)
            )
        before = now
    zero = Reachability(k=K, beta=BETA).of(model, space_of(model, 0), [0], own=ME)[0]
    assert zero.probability.attained == zero.probability.today and zero.in_list.witness == ()


def test_sets_of_items_reach_at_least_what_their_members_do(model_name):
    model = trained(model_name)
    space = space_of(model, 1)
    asked = Reachability(k=K, beta=BETA)
    single = asked.of(model, space, [1, 6], own=ME)
    (both,) = asked.of(model, space, [(1, 6)], own=ME)
    assert both.in_list.attained >= max(r.in_list.attained for r in single) or any(
        e.item in {1, 6} for r in single for e in r.in_list.witness
    )
    outcome = FrozenOutcome(model, space.history, K, beta=BETA, own=ME)
    allowed = all_treatments(space.without_rating([1, 6]))
    best = max(o.probabilities[[1, 6]].sum() for o in outcome.after(allowed))
    assert both.probability.attained == pytest.approx(best, rel=1e-4)


CLOSED = [
    "ease",
    "ease on ratings",
    "item-knn",
    "item-knn on ratings",
    "user-knn",
    "user-knn on ratings",
]


def retrained(model, space):
    return RetrainedOutcome(model, model.interactions, space.history, K, beta=BETA, own=ME)


@pytest.mark.parametrize("name", ["explicit-als", "implicit-als"])
def test_retrained_witnesses_are_run_on_the_edited_data_and_the_rest_is_undecided(name):
    model = trained(name)
    space = space_of(model, 1, kinds=("add",))
    outcome = retrained(model, space)
    best, listed = brute(model, space, outcome)
    for item in (0, 3, 8):
        (found,) = Reachability(k=K, beta=BETA, policy="retrained").of(model, space, [item], own=ME)
        assert found.in_list.policy == "retrained" and found.in_list.bound is None
        assert found.probability.attained <= best[item] * (1 + 1e-5) + 1e-9
        assert found.in_list.attained <= listed[item]
        assert bool(found.why_undecided) == (found.reachable is None)
        again = outcome.after([found.probability.witness])[0]
        assert again.probabilities[item] == pytest.approx(found.probability.attained, rel=1e-6)


@pytest.mark.parametrize("own", [ME, -1])
@pytest.mark.parametrize("name", CLOSED)
def test_closed_forms_are_what_training_on_the_edited_data_gives(name, own):
    model = trained(name)
    space = space_of(model, 1)
    singles = space.singles()
    box, again = closed_form(model).box(own), TrainedBox(model, own)
    edited = [space.history.after((singles.edit(i),)) for i in range(len(singles))]
    truth = again.scores(edited)
    np.testing.assert_allclose(box.scores(edited), truth, rtol=2e-4, atol=2e-5)
    for part, block in box.blocks(space.history, singles, 7):
        np.testing.assert_allclose(block, truth[part], rtol=2e-4, atol=2e-5)
    two = [space.history.after((singles.edit(0), singles.edit(len(singles) - 1)))]
    np.testing.assert_allclose(box.scores(two), again.scores(two), rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("name", [*CLOSED, "explicit-als"])
def test_one_edit_is_exact_after_retraining(name):
    model = trained(name)
    space = space_of(model, 1)
    best, listed = brute(model, space, retrained(model, space))
    targets = [i for i in range(space.n_items) if space.history.value(i) is None]
    probe = Reachability(k=K, beta=BETA, policy="retrained", trainings=100)
    for item, found in zip(targets, probe.of(model, space, targets, own=ME), strict=True):
        assert found.in_list.policy == "retrained"
        assert found.reachable == listed[item] and not found.why_undecided
        assert found.probability.exact
        assert found.probability.attained == pytest.approx(best[item], rel=1e-4)


@pytest.mark.parametrize("name", ["ease", "user-knn"])
def test_two_edits_after_retraining_are_exact_where_all_can_be_tried(name):
    model = trained(name)
    space = space_of(model, 2)
    best, listed = brute(model, space, retrained(model, space))
    for item in (0, 3, 8):
        (found,) = Reachability(k=K, beta=BETA, policy="retrained").of(model, space, [item], own=ME)
        assert found.reachable == listed[item]
        assert found.probability.attained == pytest.approx(best[item], rel=1e-4)
        (some,) = Reachability(k=K, policy="retrained", exhaustive=0).of(
            model, space, [item], own=ME
        )
        assert some.reachable in {None, True} and bool(some.why_undecided) != bool(some.reachable)


def test_nothing_is_changed_by_retraining_on_the_same_data():
    model = trained("explicit-als")
    space = space_of(model, 1)
    outcome = RetrainedOutcome(model, model.interactions, space.history, K, own=ME)
    (shown,) = outcome.after([()])
    known = model.recommend(model.interactions.users.ids[[ME]], K).items[0]
    np.testing.assert_array_equal(shown.items, known)
    added = RetrainedOutcome(model, model.interactions, space.history, K, own=-1).after([()])
    assert (added[0].items >= 0).any()


def planted_world():
    """People who have item 24 have nothing else, so nobody else can be led to it."""
    rng = np.random.default_rng(3)
    users, items = np.nonzero(rng.random((60, 24)) < 0.4)
    return Interactions.from_arrays(
        np.concatenate([users, np.arange(100, 110)]), np.concatenate([items, np.full(10, 24)])
    )


def test_a_planted_unreachable_item_is_found_out():
    data = planted_world()
    for model in (EASE(1.0), ImplicitALS(factors=4, alpha=2.0)):
        model.fit(data)
        space = EditSpace.of_user(data, data.users.ids[0], budget=2, kinds=("add", "remove"))
        found = Reachability(k=1, exhaustive=0).of(model, space, range(25), own=0)
        truth = Reachability(k=1, exhaustive=10**7).of(model, space, [24], own=0)[0]
        assert truth.reachable is False and truth.in_list.exact
        assert found[24].reachable is not True
        assert sum(r.reachable is True for r in found) > 3
    # The bound of the linear model proves it without trying all treatments.
    space = EditSpace.of_user(data, data.users.ids[0], budget=2, kinds=("remove",))
    ease = Reachability(k=1, exhaustive=0).of(EASE(1.0).fit(data), space, [24], own=0)[0]
    assert ease.reachable is False and ease.in_list.solver.startswith("beam")


def test_a_rated_target_needs_its_rating_taken_back():
    model = trained("explicit-als")
    rated = int(space_of(model, 1).history.items[0])
    (found,) = Reachability(k=10, exhaustive=0).of(model, space_of(model, 2), [rated], own=ME)
    assert found.reachable and any(
        e.kind == "remove" and e.item == rated for e in found.in_list.witness
    )
    assert any("rated already" in note for note in found.notes)
    (never,) = Reachability(k=10, exhaustive=0).of(
        model, space_of(model, 2, kinds=("add",)), [rated], own=ME
    )
    assert never.reachable is False and never.in_list.exact


def test_realistic_edits_rate_what_was_shown():
    model = trained("explicit-als")
    space = space_of(model, 2, realistic=2, kinds=("add",))
    outcome = FrozenOutcome(model, space.history, K, own=ME)
    for reach in Reachability(k=K, exhaustive=0).of(model, space, [0, 1, 5], own=ME):
        done = ()
        for edit in reach.in_list.witness:
            assert edit.item in outcome.after([done])[0].items[:2]
            done += (edit,)


@pytest.mark.parametrize("model_name", ["ease", "explicit-als"])
def test_one_realistic_edit_is_exact_for_items_and_sets(model_name):
    model = trained(model_name)
    space = space_of(model, 1, realistic=4)
    outcome = FrozenOutcome(model, space.history, space.n_items, own=ME)
    (now,) = outcome.after([()])
    singles = space.singles(shown=now.items)
    treatments = [(), *((singles.edit(i),) for i in range(len(singles)))]
    unseen = [i for i in range(space.n_items) if space.history.value(i) is None]
    for group in (*((i,) for i in unseen), tuple(unseen[:2]), tuple(unseen[-3:])):
        allowed = [
            t for t in treatments if not any(e.item in group and e.after is not None for e in t)
        ]
        truth = any(np.isin(o.items[:K], group).any() for o in outcome.after(allowed))
        (found,) = Reachability(k=K).of(model, space, [group], own=ME)
        assert found.reachable == truth


def test_a_person_without_history_and_a_budget_beyond_the_entries():
    model = trained("explicit-als")
    space = EditSpace(
        history=History.of([]), n_items=11, budget=99, values=(1.0, 3.0), editable=np.arange(2)
    )
    (found,) = Reachability(k=K, exhaustive=0).of(model, space, [5])
    assert any("no history" in n for n in found.notes) and any(
        "larger than" in n for n in found.notes
    )
    assert found.in_list.cost <= 2


def test_bad_questions_are_refused():
    model = trained("ease")
    with pytest.raises(PlanError, match="k is 0.*beta is -1.*policy is 'x'"):
        Reachability(k=0, beta=-1, policy="x")
    with pytest.raises(PlanError, match="not in the catalogue"):
        Reachability().of(model, space_of(model, 1), [99], own=ME)
    bpr = BPR(factors=2, epochs=2).fit(model.interactions)
    with pytest.raises(AuditedSystemError, match="frozen policy does not exist"):
        Reachability().of(bpr, space_of(model, 1), [1], own=ME)


def test_the_exhaustive_search_is_never_below_the_beam(model_name):
    model = trained(model_name)
    space = space_of(model, 2, editable=np.arange(6))
    for beta in (None, BETA):
        objective = Objective((8,), K, beta)
        box = open_box(model, ME)
        assert (
            exhaustive(box, space, objective).best[0] >= beam(box, space, objective).best[0] - 1e-5
        )


def test_all_items_at_once_equal_one_at_a_time(model_name):
    model = trained(model_name)
    space, box = space_of(model, 1), open_box(model, ME)
    found = single_reach(box, space, k=K, beta=BETA)
    for item in range(space.n_items):
        only = exhaustive(box, space.without_rating([item]), Objective((item,), K, BETA))
        assert found.log_probability[item] == pytest.approx(only.best[0], abs=1e-4) or (
            np.isneginf(found.log_probability[item]) and np.isneginf(only.best[0])
        )


def test_blocks_are_the_scores_of_the_model(model_name):
    model = trained(model_name)
    space, box = space_of(model, 1), open_box(model, ME)
    singles = space.singles()
    ours = np.vstack([block.copy() for _, block in box.blocks(space.history, singles, 7)])
    edited = [space.history.after((singles.edit(i),)) for i in range(len(singles))]
    real = score_histories(model, rows_of(edited, space.n_items), ME)
    np.testing.assert_array_equal(np.isnan(ours), np.isnan(real))
    # Up to what is equal for all items of a person.
    for a, b in zip(ours, real, strict=True):
        if np.isfinite(a).any():
            first = np.flatnonzero(np.isfinite(a))[0]
            np.testing.assert_allclose(a - a[first], b - b[first], atol=1e-5)


def test_edits_are_shown_as_edits():
    assert Edit(1, None, 3.0).kind == "add"
    model = ExplicitALS(factors=2).fit(trained("explicit-als").interactions)
    assert open_box(model).affine
