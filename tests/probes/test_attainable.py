"""What a metric of the list can attain: by brute force, by hand, and never below today."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ombud.data.interactions import Interactions
from ombud.errors import PlanError
from ombud.probes import EditSpace
from ombud.probes.attainable import Attainable, intra_list_diversity
from ombud.probes.outcomes import FrozenOutcome

pytest.importorskip("numba")
sys.path.insert(0, str(Path(__file__).parent))
from conftest import trained


@pytest.mark.parametrize("seeks", ["greatest", "least"])
@pytest.mark.parametrize("name", ["ease", "explicit-als", "user-knn"])
def test_one_edit_is_what_trying_all_gives(name: str, seeks: str) -> None:
    model = trained(name)
    data = model.interactions
    metric = intra_list_diversity(data)
    space = EditSpace.of_user(data, data.users.ids[2], budget=1)
    found = Attainable(k=3, tries=10_000, seeks=seeks).of(model, space, metric, own=2)
    singles = space.singles()
    outcome = FrozenOutcome(model, space.history, 3, own=2)
    every = outcome.after([(), *((singles.edit(i),) for i in range(len(singles)))])
    values = [metric(one.items[one.items >= 0]) for one in every]
    best = max(values) if seeks == "greatest" else min(values)
    assert found.attained == pytest.approx(best)
    assert found.exact
    (again,) = outcome.after([found.witness])
    assert metric(again.items[again.items >= 0]) == pytest.approx(found.attained)


def test_more_edits_attain_no_less_and_nothing_is_claimed() -> None:
    model = trained("ease")
    data = model.interactions
    metric = intra_list_diversity(data)
    values = []
    for budget in (0, 1, 2, 3):
        space = EditSpace.of_user(data, data.users.ids[4], budget=budget)
        found = Attainable(k=3, tries=10_000).of(model, space, metric, own=4)
        values.append(found.attained)
        assert found.cost <= budget
    assert values == sorted(values)
    assert found.bound is None  # greedy steps prove nothing


def test_diversity_by_hand() -> None:
    # Item 0 by users 0 and 1, item 1 by user 0, item 2 by user 2: cosines 1/sqrt 2, 0, 0.
    data = Interactions.from_arrays([0, 1, 0, 2], [0, 0, 1, 2])
    measure = intra_list_diversity(data)
    assert measure(np.array([0, 1, 2])) == pytest.approx(1 - (1 / np.sqrt(2)) / 3)
    assert np.isnan(measure(np.array([0])))


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**16))
def test_diversity_is_a_share_and_does_not_depend_on_order(seed: int) -> None:
    rng = np.random.default_rng(seed)
    users, items = np.nonzero(rng.random((12, 8)) < 0.5)
    data = Interactions.from_arrays(users, items)
    chosen = rng.permutation(data.n_items)[:4]
    measure = intra_list_diversity(data)
    value = measure(chosen)
    assert -1e-6 <= value <= 1 + 1e-6
    assert measure(chosen[::-1]) == pytest.approx(value, abs=1e-6)


def test_arguments_that_make_no_sense_are_refused() -> None:
    with pytest.raises(PlanError, match="tries"):
        Attainable(tries=0)
