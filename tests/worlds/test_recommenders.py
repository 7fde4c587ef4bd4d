"""The truth of planted recommenders against repetition, and what must not change."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray

from ombud.data.recommendations import Recommendations
from ombud.errors import PlanError
from ombud.systems.base import Recommender
from ombud.worlds import (
    NeutralRecommender,
    PlantedRecommender,
    World,
    WorldSpec,
    build_world,
    large_world,
    small_world,
)
from ombud.worlds.truth import ShareTruth, Unknown

REPEATS = 250
K = 10
SPEC = WorldSpec("truth", users=50, items=150, depth=15, reserve=30, mean_history=15, texts=1)


def shares(items: NDArray[np.int32], states: NDArray[np.int8], unknown: Unknown) -> NDArray:
    """Share of each label by hand: items (-1 = no item) to rows x labels."""
    there = (items >= 0)[:, :, None]
    found = states[items]
    yes = ((found == 1) & there).sum(axis=1)
    no = ((found == 0) & there).sum(axis=1)
    size = there.sum(axis=1)
    with np.errstate(invalid="ignore"):
        if unknown == "exclude":
            return yes / np.where(yes + no > 0, yes + no, np.nan)
        return (yes if unknown == "no" else size - no) / size


def histories(world: World) -> NDArray[np.int32]:
    pools, activity = world.truth.pools, world.truth.population.activity
    assert pools is not None
    return np.where(np.arange(pools.shape[1]) < activity[:, None], pools, -1)


def check_by_repetition(
    world: World,
    make: Callable[[World], NeutralRecommender],
    modes: tuple[Unknown, ...] = ("exclude", "no", "yes"),
    *,
    seen: bool = True,
) -> None:
    """Compare the truth with many redraws of the world."""
    found: dict[Unknown, list[tuple[NDArray, NDArray]]] = {mode: [] for mode in modes}
    for number in range(REPEATS):
        again = world.redraw(str(number))
        system = make(again)
        lists = system.recommend(again.interactions.users.ids, K, exclude_seen=seen).items
        past = histories(again)
        for mode in modes:
            pair = (shares(part, system.states, mode) for part in (lists, past))
            found[mode].append(tuple(pair))
    for mode in modes:
        lists, past = (np.array(part) for part in zip(*found[mode], strict=True))
        check(lists, past, make(world).truth(mode, K))


def z_scores(values: NDArray, expected: NDArray) -> NDArray:
    """Standardised distance of means over repeats (axis 0) from what was expected."""
    error = np.nanstd(values, axis=0, ddof=1) / np.sqrt((~np.isnan(values)).sum(axis=0))
    return (np.nanmean(values, axis=0) - expected) / np.maximum(error, 1e-12)


def check(lists: NDArray, past: NDArray, truth: ShareTruth) -> None:
    both = ~np.isnan(lists) & ~np.isnan(past)
    gap = np.where(both, lists - past, np.nan)
    # Over users: one number for each label, with the users' chances of being defined.
    assert (np.abs(z_scores(np.nanmean(gap, axis=1), truth.mean_gap())) < 4.5).all()
    # User by user, where a share is neither nearly always 0 nor nearly always 1.
    for values, expected in ((lists, truth.lists), (past, truth.history)):
        middle = (expected > 0.1) & (expected < 0.9) & (both.sum(axis=0) > REPEATS // 2)
        z = z_scores(values, expected)[middle]
        assert len(z) > 50
        assert np.abs(z).max() < 5.0
        assert np.mean(z**2) == pytest.approx(1.0, abs=6 * np.sqrt(2 / len(z)))
    assert np.abs(both.mean(axis=0) - truth.defined).max() < 5 * np.sqrt(0.25 / REPEATS)


@pytest.fixture(scope="module")
def world() -> World:
    return build_world(SPEC, 3)


@pytest.mark.simulation
@pytest.mark.parametrize("amplify", [1.0, 1.5, 0.4])
def test_the_truth_is_what_repetition_shows(world: World, amplify: float) -> None:
    def make(again: World) -> NeutralRecommender:
        if amplify == 1.0:
            return NeutralRecommender(again)
        return PlantedRecommender(again, "violence", amplify)

    check_by_repetition(world, make)


@pytest.mark.simulation
def test_the_truth_holds_where_supply_ends(world: World) -> None:
    def make(again: World) -> NeutralRecommender:
        return PlantedRecommender(again, "spiders", 6.0)

    system = make(world)
    assert isinstance(system, PlantedRecommender)
    assert (system.effective_factors < 5.9).any()
    check_by_repetition(world, make)


@pytest.mark.simulation
def test_the_truth_holds_when_seen_items_are_allowed(world: World) -> None:
    def make(again: World) -> NeutralRecommender:
        return PlantedRecommender(again, "violence", 1.5)

    check_by_repetition(world, make, ("no",), seen=False)


@pytest.mark.simulation
def test_neutral_lists_hold_every_item_of_the_pool_equally_often(world: World) -> None:
    pools = world.truth.pools
    assert pools is not None
    inside = np.zeros((len(pools), SPEC.items + 1))
    np.put_along_axis(inside, pools, 1, axis=1)
    listed = np.zeros_like(inside)
    for number in range(REPEATS):
        again = world.redraw("equal", str(number))
        found = NeutralRecommender(again).recommend(again.interactions.users.ids, K).items
        np.put_along_axis(listed, found, np.take_along_axis(listed, found, 1) + 1, axis=1)
    inside, listed = inside[:, :-1], listed[:, :-1]
    assert listed[inside == 0].sum() == 0
    chance = K / inside.sum(axis=1, keepdims=True)
    z = (listed - REPEATS * chance) / np.sqrt(REPEATS * chance * (1 - chance))
    z = z[inside == 1]
    assert np.abs(z).max() < 5.5
    assert np.mean(z**2) == pytest.approx(1.0, abs=0.12)


@pytest.mark.simulation
@pytest.mark.parametrize("amplify", [None, 1.6])
def test_intervals_over_drawn_users_cover_the_population_truth(amplify: float | None) -> None:
    population = build_world(SPEC, 8)
    label = SPEC.labels.index("violence")

    def make(again: World) -> NeutralRecommender:
        if amplify is None:
            return NeutralRecommender(again)
        return PlantedRecommender(again, "violence", amplify)

    expected = make(population).truth("no").mean_gap()[label]
    covered = []
    for number in range(300):
        sample = population.redraw("cover", str(number), users=150)
        system = make(sample)
        found = system.recommend(sample.interactions.users.ids, K).items
        gap = (shares(found, system.states, "no") - shares(histories(sample), system.states, "no"))[
            :, label
        ]
        half = 1.976 * gap.std(ddof=1) / np.sqrt(len(gap))
        covered.append(abs(gap.mean() - expected) <= half)
    # 95% of 300, four standard errors below; above, 1 is not far enough away to test.
    assert np.mean(covered) >= 0.9


def test_only_the_planted_label_changes(world: World) -> None:
    users = world.interactions.users.ids
    neutral = NeutralRecommender(world, name="same")
    before = neutral.recommend(users, SPEC.depth).items
    for label, amplify in (("violence", 2.0), ("blood", 0.3)):
        planted = PlantedRecommender(world, label, amplify, name="same")
        after = planted.recommend(users, SPEC.depth).items
        place = SPEC.labels.index(label)
        others = np.arange(len(SPEC.labels)) != place
        old, new = neutral.states[before], neutral.states[after]
        known_before = np.where(old >= 0, old, -1)[:, :, others]
        assert (known_before == np.where(new >= 0, new, -1)[:, :, others]).all()
        assert ((old >= 0) == (new >= 0)).all()
        changed = old[:, :, place] != new[:, :, place]
        assert changed.any()
        assert (new[:, :, place][changed] == (1 if amplify > 1 else 0)).all()


def test_an_effect_for_one_group_leaves_the_others_alone() -> None:
    world = small_world(2)
    system = PlantedRecommender(world, "violence", {"18-24": 1.5}, name="same")
    truth = system.truth()
    place = world.spec.labels.index("violence")
    assert truth.mean_gap("age=18-24")[place] > 0.02
    assert truth.mean_gap("age=25-34")[place] == 0
    assert 0 < truth.mean_gap()[place] < truth.mean_gap("age=18-24")[place]
    inside = world.user_groups.members[:, world.user_groups.names.index("age=18-24")]
    users = world.interactions.users.ids
    same = (
        system.recommend(users, 20).items
        == NeutralRecommender(world, name="same").recommend(users, 20).items
    ).all(axis=1)
    assert same[~inside].all()
    assert not same[inside].all()


def test_factors_of_several_groups_multiply() -> None:
    world = small_world(2)
    factors = PlantedRecommender(world, "violence", {"18-24": 1.5, "gender=woman": 2}).factors
    groups = world.user_groups
    young = groups.members[:, groups.names.index("age=18-24")]
    women = groups.members[:, groups.names.index("gender=woman")]
    assert set(factors[young & women]) == {3.0}
    assert set(factors[young & ~women]) == {1.5}
    assert set(factors[~young & women]) == {2.0}
    assert set(factors[~young & ~women]) == {1.0}


def test_the_share_truth_by_hand() -> None:
    world = small_world(5)
    system = PlantedRecommender(world, "violence", 1.2)
    labels, pools = world.dataset.labels, world.truth.pools
    assert labels is not None
    assert pools is not None
    place = labels.names.index("violence")
    pool = pools[0][pools[0] >= 0]
    states = labels.states[pool, place]
    yes, no, size = (states == 1).sum(), (states == 0).sum(), len(pool)
    assert system.truth("exclude").history[0, place] == pytest.approx(yes / (yes + no))
    assert system.truth("no").history[0, place] == pytest.approx(yes / size)
    assert system.truth("yes").history[0, place] == pytest.approx((size - no) / size)
    assert system.effective_factors[0] == pytest.approx(1.2)
    assert system.truth("no").lists[0, place] == pytest.approx(1.2 * yes / size)
    frame = system.truth("no").to_frame()
    row = frame.row(by_predicate=(pl.col("group") == "all") & (pl.col("label") == "violence"))
    expected = system.truth("no").lists[:, place].mean()
    assert row[3] == pytest.approx(expected)
    assert row[5] == pytest.approx(row[3] / row[2])


def test_lists_obey_the_protocol() -> None:
    world = small_world(1)
    for system in world.recommenders():
        assert isinstance(system, Recommender)
        found = system.recommend(["user-003", "nobody", "user-001"], 10)
        assert isinstance(found, Recommendations)
        assert found.lengths.tolist() == [10, 0, 10]
        assert system.recommend(["user-001"], 500).lengths.tolist() == [world.spec.depth]


def test_what_cannot_be_planted_is_refused() -> None:
    world = small_world(1)
    with pytest.raises(PlanError, match="no label 'thunder'"):
        PlantedRecommender(world, "thunder", 2.0)
    with pytest.raises(PlanError, match="not a group"):
        PlantedRecommender(world, "violence", {"age=200": 2.0})
    with pytest.raises(PlanError, match="zero or more"):
        PlantedRecommender(world, "violence", -1.0)
    large = large_world(0, interactions=2000, users=100, items=300, labels=3)
    with pytest.raises(PlanError, match="too large"):
        NeutralRecommender(large)
