from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ombud.data.interactions import Interactions
from ombud.errors import PlanError
from ombud.probes.others import SWAP_KINDS, OtherUsers, UserSwap, nearest_users, swapped


def some(explicit: bool = True, text: bool = False) -> Interactions:
    rng = np.random.default_rng(1)
    users, items = np.nonzero(rng.random((12, 9)) < 0.5)
    stars = rng.integers(0, 6, len(users)).astype(float) if explicit else None
    ids = np.array([f"u{u:02d}" for u in users]) if text else users
    options = {"rating_scale": (0, 5)} if explicit else {}
    return Interactions.from_arrays(ids, items, stars, **options)


def entries(data: Interactions) -> dict[tuple[int, int], float]:
    rows = np.repeat(np.arange(data.n_users), np.diff(data.matrix.indptr))
    keys = zip(rows.tolist(), data.matrix.indices.tolist(), strict=True)
    return dict(zip(keys, data.matrix.data.tolist(), strict=True))


@given(st.sampled_from(SWAP_KINDS), st.integers(1, 4), st.booleans(), st.integers(0, 999))
def test_swaps_change_only_their_users(kind, budget, explicit, seed) -> None:
    data = some(explicit)
    space = OtherUsers(data, kind, budget)
    for swap in space.draw(3, np.random.default_rng(seed), target=4):
        assert space.faults(swap) == []
        assert space.cost(swap) == budget
        assert not swap.touches(4)
        after = swapped(data, swap, slots=space.slots)
        assert after.n_users == data.n_users + space.slots
        old, new = entries(data), entries(after)
        for row in range(data.n_users):
            if row not in swap.rows:
                mine = {k: v for k, v in old.items() if k[0] == row}
                assert {k: v for k, v in new.items() if k[0] == row} == mine
        for place, row in enumerate(swap.rows):
            history = swap.histories[[place]]
            got = {k[1]: v for k, v in new.items() if k[0] == row}
            assert got == dict(zip(history.indices.tolist(), history.data.tolist(), strict=True))
        assert (np.diff(after.matrix.indices)[np.diff(after.matrix.indices) <= 0] < 1).all()
        assert after.matrix.has_canonical_format


def test_nothing_changes_nothing() -> None:
    data = some()
    space = OtherUsers(data, "removed")
    assert entries(swapped(data, space.nothing())) == entries(data)
    assert space.cost(space.nothing()) == 0
    assert space.faults(space.nothing()) == []


@pytest.mark.parametrize("text", [False, True])
def test_planted_users_have_ids_after_all_others(text) -> None:
    data = some(text=text)
    after = swapped(data, None, slots=2)
    assert len(after.users) == data.n_users + 2
    assert after.users.codes(after.users.ids).tolist() == list(range(data.n_users + 2))
    assert sorted(after.users.ids.tolist()) == after.users.ids.tolist()


def test_removed_users_keep_an_empty_row() -> None:
    data = some()
    swap = OtherUsers(data, "removed").removals()[3]
    after = swapped(data, swap)
    assert after.users == data.users
    assert np.diff(after.matrix.indptr)[3] == 0
    assert len(after) == len(data) - np.diff(data.matrix.indptr)[3]


def test_a_changed_user_differs_in_the_share_asked_for() -> None:
    data = some(explicit=False)
    space = OtherUsers(data, "changed", share=0.5)
    for swap in space.draw(10, np.random.default_rng(0)):
        row = swap.rows[0]
        old = set(data.matrix[[row]].indices.tolist())
        new = set(swap.histories.indices.tolist())
        assert len(new) == len(old)
        assert len(old - new) == min(max(1, round(len(old) / 2)), data.n_items - len(old))


def test_treatments_that_are_not_permitted_are_named() -> None:
    data = some()
    removal = OtherUsers(data, "removed", group=np.array([0, 1, 2]))
    assert "permitted group" in removal.faults(OtherUsers(data, "removed").removals()[7])[0]
    two = OtherUsers(data, "removed", 2).draw(1, np.random.default_rng(0))[0]
    assert any("over the budget" in fault for fault in removal.faults(two))
    planted = OtherUsers(data, "planted-random").draw(1, np.random.default_rng(0))[0]
    assert any("planted" in fault for fault in removal.faults(planted))
    kept = UserSwap("removed", (1,), data.matrix[[1]])
    assert any("has a history" in fault for fault in removal.faults(kept))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "eaten"}, "choose from"),
        ({"kind": "removed", "budget": 0}, "at least one"),
        ({"kind": "removed", "budget": 12}, "only 11 other users"),
        ({"kind": "removed", "group": np.array([99])}, "not in the interactions"),
        ({"kind": "changed", "share": 0.0}, "above 0"),
    ],
)
def test_bad_plans(options, message) -> None:
    with pytest.raises(PlanError, match=message):
        OtherUsers(some(), **options)


def test_copies_of_neighbours_need_a_target() -> None:
    with pytest.raises(PlanError, match="need a target"):
        OtherUsers(some(), "planted-neighbours").draw(1, np.random.default_rng(0))
    with pytest.raises(PlanError, match="only removals"):
        OtherUsers(some(), "replaced").removals()


def test_nearest_users_by_definition() -> None:
    data = some()
    present = data.matrix.toarray() * 0
    for row, item in entries(data):
        present[row, item] = 1
    cosine = present @ present[2] / np.sqrt(present.sum(axis=1) * present[2].sum())
    cosine[2] = 0
    near = nearest_users(data, 2)
    np.testing.assert_allclose(cosine[near], np.sort(cosine[cosine > 0])[::-1])


def test_slots_must_hold_the_planted() -> None:
    planted = OtherUsers(some(), "planted-random", 2).draw(1, np.random.default_rng(0))[0]
    with pytest.raises(ValueError, match="slots"):
        swapped(some(), planted, slots=1)
    with pytest.raises(ValueError, match="no user twice"):
        UserSwap("removed", (1, 1), some().matrix[[1, 1]])
