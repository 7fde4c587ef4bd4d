"""The recipe: brackets, fewest, edits, budgets, consistency."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ombud.errors import AuditedSystemError, DataError, PlanError
from ombud.probes import Edit, EditSpace, History, QueryBudget
from ombud.probes.blackbox.questions import BudgetSpentError
from ombud.probes.consistency import consistency
from ombud.probes.recipe import Bracket, Recipe

HISTORY = History.of([4, 1, 2], [3.0, 5.0, 1.0])


def space(**options):
    defaults = {"history": HISTORY, "n_items": 6, "budget": 2, "values": (1.0, 3.0, 5.0)}
    return EditSpace(**{**defaults, **options})


def test_a_history_is_sorted_and_edited_entry_by_entry():
    assert HISTORY.items.tolist() == [1, 2, 4] and HISTORY.values.tolist() == [5, 1, 3]
    after = HISTORY.after((Edit(0, None, 3.0), Edit(2, 1.0, None), Edit(4, 3.0, 5.0)))
    assert after.items.tolist() == [0, 1, 4] and after.values.tolist() == [3, 5, 5]
    assert HISTORY.value(3) is None and HISTORY.value(4) == 3.0
    with pytest.raises(ValueError, match="does not stand at"):
        HISTORY.after((Edit(1, 4.0, 5.0),))
    with pytest.raises(ValueError, match="changes something"):
        Edit(1, 4.0, 4.0)
    with pytest.raises(DataError, match="none twice"):
        History.of([1, 1])


def test_single_edits_are_all_of_them():
    found = space().singles()
    edits = {found.edit(i) for i in range(len(found))}
    assert len(edits) == len(found) == 3 * 3 + 3 * 2 + 3  # add, change, remove
    assert all(not space().faults((e,)) for e in edits)
    again = space().singles(HISTORY.after((Edit(1, 5.0, None),)))
    assert 1 not in again.items.tolist()  # an entry that differs is not edited again


@given(st.sets(st.integers(0, 5)), st.integers(0, 8), st.sampled_from([("add",), ("remove",)]))
def test_what_may_be_edited_is_counted_and_said(closed, budget, kinds):
    open_ = np.array(sorted(set(range(6)) - closed), np.int32)
    found = space(editable=open_, budget=budget, kinds=kinds)
    assert found.editable_entries == len(set(found.singles().items.tolist()))
    assert any("larger than" in n for n in found.notes) == (budget > found.editable_entries)


def test_a_target_is_never_rated_but_its_rating_may_be_taken_back():
    found = space().without_rating([1, 3])
    edits = [found.singles().edit(i) for i in range(len(found.singles()))]
    assert [e for e in edits if e.item in {1, 3}] == [Edit(1, 5.0, None)]
    assert "may not be rated" in found.faults((Edit(3, None, 5.0),))[0]


def test_faults_name_all_that_is_wrong():
    said = space(budget=1, kinds=("add",), editable=np.array([0, 3])).faults(
        (Edit(0, None, 2.0), Edit(4, 3.0, None), Edit(4, 2.0, 5.0))
    )
    for words in ("over the budget", "twice", "not on the scale", "to remove", "may not be edited",
                  "does not stand at 2.0"):  # fmt: skip
        assert any(words in s for s in said), words
    with pytest.raises(PlanError, match="budget is -1.*kinds is"):
        space(budget=-1, kinds=("burn",))
    with pytest.raises(PlanError, match="not in the catalogue"):
        space(editable=np.array([77]))


def test_realistic_edits_rate_only_what_is_shown_or_known():
    found = space(realistic=2).singles(shown=np.array([3, 0, 5]))
    added = {found.edit(i).item for i in range(len(found)) if found.edit(i).kind == "add"}
    assert added == {3, 0}


def test_edits_in_words():
    assert Edit(1, None, 4.0).in_words("Heat") == "rate Heat 4"
    assert Edit(1, 2.0, 4.0).in_words("Heat") == "rate Heat 4 instead of 2"
    assert Edit(1, 2.0, None).in_words() == "take back item 1"
    assert Edit(1, None, 1.0).in_words("Heat", explicit=False) == "add Heat"


def test_a_query_budget_is_never_exceeded_by_threads():
    budget, got = QueryBudget(1000), []
    threads = [
        threading.Thread(target=lambda: got.extend(budget.grant(3) for _ in range(200)))
        for _ in range(8)
    ]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sum(got) == budget.spent == 1000 and budget.left == 0
    with pytest.raises(BudgetSpentError, match="0 of 1000 are left"):
        budget.take()
    with pytest.raises(PlanError, match="at least one"):
        QueryBudget(0)


class _Line:
    """Treatments are whole numbers, the outcome is the number."""

    policy, queries, budget = "frozen", 0, 3
    name, seeks = "number", "greatest"

    def nothing(self):
        return 0

    def cost(self, treatment):
        return abs(treatment)

    def faults(self, treatment):
        return ["odd"] if treatment == 99 else []

    def after(self, treatments):
        return list(treatments)

    def value(self, before, after):
        return float(after - before)


def test_a_bracket_keeps_its_sides_and_its_third_outcome():
    line = _Line()
    recipe = Recipe("line", line, line, line)
    found = recipe.best([1, 2], bound=3.0, solver="x")
    assert (found.lower, found.upper, found.exact, found.cost) == (2.0, 3.0, False, 2)
    assert [found.reaches(t) for t in (2, 2.5, 3.5)] == [True, None, False]
    assert recipe.best([-1], solver="x").witness == 0  # doing nothing is better
    with pytest.raises(AuditedSystemError, match="beyond the proved bound"):
        recipe.best([3], bound=1.0, solver="x")
    with pytest.raises(PlanError, match="over the budget of 3"):
        recipe.best([4], solver="x")
    with pytest.raises(PlanError, match="odd"):
        recipe.best([99], solver="x")


def test_the_fewest_edits_are_censored_found_or_excluded():
    line = _Line()
    recipe = Recipe("line", line, line, line)
    found = recipe.fewest([3, 2], threshold=2.0, at_least=2, solver="x")
    assert found.cost == 2 and found.exact and not found.censored
    assert recipe.fewest([1], threshold=2.0, at_least=1, solver="x").censored
    none = recipe.fewest([], threshold=2.0, none_exists=True, solver="x")
    assert none.exact and not none.censored
    with pytest.raises(AuditedSystemError, match="proved"):
        recipe.fewest([2], threshold=2.0, at_least=3, solver="x")


def test_a_least_value_has_its_witness_above():
    found = Bracket(
        attained=0.4, bound=0.1, today=0.9, witness=(), cost=0, budget=1, policy="frozen",
        seeks="least", solver="x", queries=1,
    )  # fmt: skip
    assert (found.lower, found.upper) == (0.1, 0.4)
    assert [found.reaches(t) for t in (0.5, 0.2, 0.05)] == [True, None, False]


def test_consistency_counts_same_lists_and_repeats():
    a, b = np.array([1, 2, -1]), np.array([2, 1, -1])
    found = consistency([a, a], [a, b], [a, a], "service")
    assert (found.same, found.overlap, found.repeated) == (1, 1.0, 1)
    assert not found.deterministic and found.chance == "service"
