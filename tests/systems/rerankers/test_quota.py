"""Quota rules: by hand, against a plain loop, and the prefix property."""

from __future__ import annotations

from math import ceil, floor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ombud.errors import PlanError
from ombud.systems.rerankers.quota import ABSENT, Pass, choose_by_quota, choose_with_arrays


def plain(codes: list[int], target: list[float], n: int, single: bool) -> list[int]:
    """One user, item by item, as the paper tells it (its text, not its printed algorithm)."""
    counts, known, chosen = [0] * len(target), 0, []
    remaining = [i for i, code in enumerate(codes) if code != ABSENT]

    def later_is_possible(g: int) -> bool:
        """Earliest deadline first over the places that are left, one by one."""
        now = [c + (h == g) for h, c in enumerate(counts)]
        for place in range(known + 1, n + 1):
            if place > known + 1:
                # The next item of each identity: not before it may, the most urgent first.
                open_ = [
                    (ceil((now[h] + 1) / p - 1e-9) - 1, h)
                    for h, p in enumerate(target)
                    if p > 0 and now[h] + 1 <= ceil(p * place - 1e-9)
                ]
                if not open_:
                    return False
                now[min(open_)[1]] += 1
            if any(now[h] < floor(p * place + 1e-9) for h, p in enumerate(target)):
                return False
        return True

    def allowed(code: int) -> bool:
        if code < 0:
            return True
        if len(target) == 2:
            return counts[code] <= target[code] * known + 1e-9
        fits = counts[code] + 1 <= ceil(target[code] * (known + 1) - 1e-9)
        return fits and later_is_possible(code)

    while len(chosen) < n:
        index = next((i for i in remaining if allowed(codes[i])), None)
        if index is None:
            break
        chosen.append(index)
        remaining = [i for i in remaining if i > index or (not single and i != index)]
        if codes[index] >= 0:
            counts[codes[index]] += 1
            known += 1
    return chosen + [-1] * (n - len(chosen))


def test_single_pass_by_hand() -> None:
    # f f m f m m: the second f would move the list away; it is never seen again.
    codes = np.array([[0, 0, 1, 0, 1, 1]])
    found = choose_by_quota(codes, [0.5, 0.5], 6, take="single")
    assert found.order.tolist() == [[0, 2, 3, 4, 5, -1]]
    assert found.ended_early.tolist() == [True]


def test_greedy_by_hand_takes_what_was_passed_over() -> None:
    codes = np.array([[0, 0, 1, 0, 1, 1]])
    assert choose_by_quota(codes, [0.5, 0.5], 6).order.tolist() == [[0, 2, 1, 4, 3, 5]]
    # Unknown items are taken when reached; the printed algorithm would have stopped at the second.
    codes = np.array([[0, 0, -1, 1]])
    assert choose_by_quota(codes, [0.5, 0.5], 4).order.tolist() == [[0, 2, 3, 1]]


def test_a_list_ends_early_when_nothing_allowed_is_left() -> None:
    codes = np.array([[0, 0, 0, ABSENT], [1, -1, 0, 0]])
    found = choose_by_quota(codes, [0.5, 0.5], 4)
    assert found.order.tolist() == [[0, -1, -1, -1], [0, 1, 2, 3]]
    assert found.ended_early.tolist() == [True, False]


def test_a_user_without_a_target_keeps_the_list() -> None:
    codes = np.array([[0, 0, 0, 1], [0, 0, ABSENT, 1]])
    found = choose_by_quota(codes, [[0.5, 0.5], [np.nan, np.nan]], 3)
    assert found.order.tolist() == [[0, 3, 1], [0, 1, 3]]
    assert found.untouched.tolist() == [False, True]
    assert not found.ended_early[1]


rankings = st.lists(st.integers(-1, 1), min_size=1, max_size=40)


@settings(deadline=None)
@given(rankings, st.floats(0, 1), st.integers(1, 30), st.booleans())
def test_two_identities_equal_the_plain_loop_and_every_prefix_is_close(
    codes: list[int], share: float, n: int, single: bool
) -> None:
    target = [share, 1 - share]
    take = "single" if single else "greedy"
    found = choose_by_quota(np.array([codes]), target, n, take=take).order[0]  # type: ignore[arg-type]
    assert found.tolist() == plain(codes, target, n, single)
    first = known = 0
    for index in found[found >= 0]:
        if codes[index] >= 0:
            known += 1
            first += codes[index] == 0
        assert -share - 1e-6 <= first - share * known <= 1 - share + 1e-6


@st.composite
def mixes(draw: st.DrawFn) -> tuple[list[float], list[int], int]:
    groups = draw(st.integers(3, 5))
    parts = draw(st.lists(st.integers(0, 12), min_size=groups, max_size=groups).filter(sum))
    codes = draw(st.lists(st.integers(-1, groups - 1), min_size=1, max_size=60))
    return [part / sum(parts) for part in parts], codes, draw(st.integers(1, 24))


@given(mixes(), st.booleans())
def test_more_identities_equal_a_search_by_deadlines(
    made: tuple[list[float], list[int], int], single: bool
) -> None:
    target, codes, n = made
    take = "single" if single else "greedy"
    found = choose_by_quota(np.array([codes]), target, n, take=take)  # type: ignore[arg-type]
    assert found.order[0].tolist() == plain(codes, target, n, single)


@given(
    st.lists(st.integers(1, 30), min_size=3, max_size=5),
    st.integers(0, 2**32 - 1),
    st.integers(1, 60),
)
def test_more_identities_stay_within_one_item_while_candidates_last(
    parts: list[int], seed: int, n: int
) -> None:
    target = np.array(parts) / sum(parts)
    rng = np.random.default_rng(seed)
    # Enough of each: any order of the ranking, unknown items between.
    codes = rng.permutation(np.repeat(np.arange(-1, len(parts)), n + 1))[None]
    found = choose_by_quota(codes, target, n)
    assert not found.ended_early.any()
    picked = codes[0, found.order[0]]
    picked = picked[picked >= 0]
    counts = np.cumsum(picked[:, None] == np.arange(len(parts)), axis=0)
    ideal = np.arange(1, len(picked) + 1)[:, None] * target
    assert np.all(np.abs(counts - ideal) < 1)


@settings(deadline=None)
@given(rankings, st.floats(0.05, 0.95), st.integers(1, 30))
def test_exposure_stays_within_one_place(codes: list[int], share: float, n: int) -> None:
    places = 1 / np.log2(np.arange(n) + 2)
    found = choose_by_quota(np.array([codes]), [share, 1 - share], n, places=places).order[0]
    first = known = 0.0
    for place, index in enumerate(found[found >= 0]):
        if codes[index] >= 0:
            known += places[place]
            first += places[place] * (codes[index] == 0)
        assert -share - 1e-6 <= first - share * known <= 1 - share + 1e-6


@pytest.mark.parametrize("groups", [2, 3, 5])
@pytest.mark.parametrize("take", ["greedy", "single"])
@pytest.mark.parametrize("exposure", [False, True])
def test_compiled_and_array_forms_agree_whatever_the_blocks(
    groups: int,
    take: Pass,
    exposure: bool,
    rng: np.random.Generator,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    codes = rng.integers(-2, groups, (60, 40))
    target = rng.dirichlet(np.ones(groups), 60)
    target[:10] = np.eye(groups)[rng.integers(0, groups, 10)]
    places = 1 / np.log2(np.arange(15) + 2) if exposure else None
    found = choose_by_quota(codes, target, 15, take=take, places=places).order
    assert np.array_equal(choose_with_arrays(codes, target, 15, take, places), found)
    monkeypatch.setattr("ombud.systems.rerankers.quota._HELD", 500)
    assert np.array_equal(choose_with_arrays(codes, target, 15, take, places), found)
    monkeypatch.setattr("ombud.systems.rerankers.quota.find_spec", lambda name: None)
    again = choose_by_quota(codes, target, 15, take=take, places=places).order
    assert np.array_equal(again, found)


@pytest.mark.parametrize(
    ("codes", "target", "n", "words"),
    [
        ([[0, 2]], [0.5, 0.5], 2, "codes go from"),
        ([[0, 1]], [0.5, 0.6], 2, "sum to 1"),
        ([[0, 1]], [1.0], 2, "two or more"),
        ([[0, 1]], [0.5, 0.5], 0, "at least one place"),
        ([0, 1], [0.5, 0.5], 2, "dimensions"),
    ],
)
def test_what_cannot_be_is_refused(codes: object, target: object, n: int, words: str) -> None:
    with pytest.raises(PlanError, match=words):
        choose_by_quota(np.array(codes), target, n)  # type: ignore[arg-type]
