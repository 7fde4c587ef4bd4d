from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ombud import registry
from ombud.data.groups import Grouping
from ombud.data.interactions import Interactions
from ombud.data.recommendations import Recommendations
from ombud.errors import AuditedSystemError, DataError, PlanError
from ombud.probes.distances import FirstItem, Jaccard, Kendall, RankBiased
from ombud.probes.noise_floor import chance_of_any, expected_maximum
from ombud.probes.others import SWAP_KINDS, OtherUsers, swapped
from ombud.probes.retraining import StabilityPlan
from ombud.probes.stability import stability
from ombud.probes.stability_estimates import rank_correlation, stability_estimates
from ombud.probes.training import ExpectedChange, FunctionTrainer, ProbabilityChange
from ombud.systems.base import Recommender
from ombud.systems.recommenders import BPR, EASE, SVD, ExplicitALS, Random, UserKNN


def ratings(users: int = 40, items: int = 25, seed: int = 0, density: float = 0.35) -> Interactions:
    rng = np.random.default_rng(seed)
    taste = rng.normal(size=(users, 3)) @ rng.normal(size=(3, items))
    seen = rng.random((users, items)) < density
    seen[:, 0] |= ~seen.any(axis=1)
    rows, columns = np.nonzero(seen)
    noise = rng.normal(scale=0.4, size=len(rows))
    stars = np.clip(np.round(3 + taste[rows, columns] + noise), 1, 5)
    return Interactions.from_arrays(rows, columns, stars, rating_scale=(1, 5))


def brute_force(model: Any, data: Interactions, user: int, budget: int, distance, n: int) -> float:
    """Train for every removal of up to ``budget`` other users."""
    before = replace(model).fit(data).recommend([user], n).items
    best = 0.0
    space = OtherUsers(data, "removed", budget)
    singles = OtherUsers(data, "removed").removals()
    for size in range(1, budget + 1):
        for group in combinations([s for s in singles if not s.touches(user)], size):
            after = replace(model).fit(swapped(data, space.joined(group))).recommend([user], n)
            best = max(best, float(distance(before, after.items)[0]))
    return best


@pytest.mark.parametrize(
    "model", [EASE(regularization=3.0), UserKNN(neighbours=3, threads=1)], ids=lambda m: m.name
)
def test_single_removals_are_exact_where_the_formula_is(model) -> None:
    data = ratings(users=14, items=12)
    plan = StabilityPlan(k=4, shortlist=3, random=3)
    found = stability(model, data, [0, 5, 9], plan, changes=[Jaccard(), Kendall()])
    for distance in (Jaccard(), Kendall()):
        for user, bracket in zip([0, 5, 9], found.brackets[distance.name], strict=True):
            assert bracket.attained <= brute_force(model, data, user, 1, distance, 4) + 1e-12
            assert bracket.policy == "retrained"
    for user, bracket in zip([0, 5, 9], found.brackets[Jaccard().name], strict=True):
        assert bracket.attained == pytest.approx(brute_force(model, data, user, 1, Jaccard(), 4))
        assert bracket.exact
    assert found.influence == "exact"
    assert found.noise[0].exact


def test_two_removals_are_bounded_by_brute_force_and_grow_with_the_budget() -> None:
    data, model = ratings(users=12, items=12), EASE(regularization=3.0)
    found = {}
    for budget in (1, 2):
        plan = StabilityPlan(k=3, shortlist=8, random=30, budget=budget)
        result = stability(model, data, [0, 4], plan)
        found[budget] = [b.attained for b in result.brackets[Jaccard().name]]
        for user, attained in zip([0, 4], found[budget], strict=True):
            most = brute_force(model, data, user, budget, Jaccard(), 3)
            assert attained <= most + 1e-12
            assert attained >= 0.6 * most
    assert all(b >= a for a, b in zip(found[1], found[2], strict=True))


def test_every_witness_gives_its_distance_when_trained_again() -> None:
    data, model = ratings(), ExplicitALS(factors=3, iterations=10, threads=1)
    plan = StabilityPlan(k=5, shortlist=2, random=5, passes=None, noise_runs=2)
    result = stability(model, data, [1, 2, 3], plan)
    before = replace(model).fit(data).recommend([1, 2, 3], 5).items
    for t, bracket in enumerate(result.brackets[Jaccard().name]):
        after = replace(model).fit(swapped(data, bracket.witness)).recommend([1, 2, 3], 5).items
        assert Jaccard()(before, after)[t] == bracket.attained
        assert bracket.cost <= 1
        assert not bracket.witness.touches(result.targets[t])


def planted_world() -> tuple[Interactions, int]:
    """One user alone ties the items of a small group to an item that nobody else has with them."""
    rng = np.random.default_rng(3)
    rows: list[tuple[int, int]] = []
    for user in range(60):
        block = 0 if user < 20 else 10
        rows += [(user, block + item) for item in rng.choice(8, 5, replace=False)]
    rows += [(user, 30) for user in range(30, 40)]
    influential = 60
    rows += [(influential, item) for item in [*range(8), 30]]
    users, items = np.array(rows).T
    return Interactions.from_arrays(users, items), influential


def rated_world() -> tuple[Interactions, int]:
    """One user alone rates three items, and rates them higher than anyone rates anything."""
    frame = ratings(users=60, items=20, seed=1).to_frame()
    users, items = frame["user"].to_numpy(), frame["item"].to_numpy()
    stars = np.minimum(frame["rating"].to_numpy(), 4)
    users = np.append(users, [60] * 8)
    items = np.append(items, [20, 21, 22, 0, 1, 2, 3, 4])
    stars = np.append(stars, [5, 5, 5, 2, 2, 2, 2, 2])
    return Interactions.from_arrays(users, items, stars, rating_scale=(1, 5)), 60


@pytest.mark.parametrize(
    "model",
    [
        EASE(regularization=1.0),
        UserKNN(neighbours=None, threads=1),
        ExplicitALS(factors=3, iterations=20, damping=1.0, threads=1),
        SVD(factors=3, epochs=40, learning_rate=0.02, threads=1),
    ],
    ids=lambda m: m.name,
)
def test_a_planted_influential_user_is_found_out(model) -> None:
    data, influential = rated_world() if model.needs_ratings else planted_world()
    # The list of 4 holds the 3 unseen items of the group, and what the influential user brings.
    plan = StabilityPlan(k=4, shortlist=1, random=10, noise_runs=3, passes=6)
    targets = np.arange(6)
    result = stability(model, data, targets, plan)
    best = [b.witness.rows for b in result.brackets[Jaccard().name]]
    assert best.count((influential,)) >= 5
    numbers = stability_estimates(result, replicates=200)
    gain = next(e for e in numbers if e.metric.startswith("gain of the search"))
    assert gain.value > 0.05


def test_a_random_system_without_a_seed_is_refused_or_repeated() -> None:
    data = ratings()
    source = np.random.default_rng(0)

    @dataclass
    class Dice(Recommender):
        name: str = "dice"

        def recommend(self, users, n, exclude_seen=True):
            items = np.array([source.permutation(data.n_items)[:n] for _ in users], np.int32)
            return Recommendations(np.asarray(users), items, data.items)

    trainer = FunctionTrainer("dice", lambda interactions, seed: Dice(), seeded=False)
    with pytest.raises(AuditedSystemError, match="trained twice .* give it a seed"):
        stability(trainer, data, [0, 1], StabilityPlan(k=3, random=2, shortlist=0))
    plan = StabilityPlan(k=3, random=4, shortlist=0, repeats=60, noise_runs=6)
    result = stability(trainer, data, np.arange(20), plan, changes=[ProbabilityChange()])
    assert not result.deterministic
    assert [floor.kind for floor in result.noise] == ["repeat"]
    numbers = {e.metric: e for e in stability_estimates(result, replicates=200)}
    above = next(
        e for name, e in numbers.items()
        if name.startswith("largest change above the noise") and "total variation" in name
    )  # fmt: skip
    # Nothing really moves: two samples differ, and no more under a treatment than without.
    assert abs(above.value) < 0.05


def test_a_seeded_random_system_does_not_move() -> None:
    data = ratings()
    result = stability(Random(seed=3), data, [0, 1, 2], StabilityPlan(k=5, random=5, shortlist=1))
    assert all(b.attained == 0 for b in result.brackets[Jaccard().name])
    assert result.influence == "overlap of histories"


def test_distributions_and_sampled_lists_of_a_softmax_policy() -> None:
    data = ratings()
    model = ExplicitALS(factors=3, iterations=8, threads=1)
    changes = [ProbabilityChange(beta=3.0), ExpectedChange(Jaccard(), n=5, beta=3.0, draws=20)]
    plan = StabilityPlan(k=5, random=4, shortlist=1, noise_runs=2)
    result = stability(model, data, [3, 4, 5], plan, changes=changes)
    for change in changes:
        table = result.distances[change.name]
        known = table[~np.isnan(table)]
        assert (known >= 0).all()
        assert (known <= 1).all()
        assert known.max() > 0
    assert {floor.kind for floor in result.noise} == {"seed", "pass"}


@pytest.mark.parametrize("kind", SWAP_KINDS)
def test_all_kinds_and_distances_run_and_are_reported(kind) -> None:
    data = ratings()
    groups = Grouping.from_values(
        np.arange(40), {"half": np.where(np.arange(40) < 20, "low", "high").astype(object)}
    )
    plan = StabilityPlan(kind=kind, budget=2, k=5, shortlist=1, random=6, pool=20, noise_runs=2)
    result = stability(
        EASE(regularization=5.0), data, [0, 10, 25, 39], plan,
        changes=[RankBiased(), Jaccard(), FirstItem()], groups=groups,
    )  # fmt: skip
    for bracket in result.brackets["1 - Jaccard"]:
        assert bracket.bound is None  # two users at once were not all tried
    numbers = stability_estimates(result, replicates=100)
    for e in numbers:
        assert e.details["policy"] == "retrained"
        assert e.key.startswith("stability/")
    movers = [e for e in numbers if e.key == "stability/who-moves-whom"]
    cells = {(e.details["moved"], e.details["movers"]) for e in movers}
    assert cells == {(a, b) for a in ("half=low", "half=high") for b in ("half=low", "half=high")}
    touched = result.swap_groups.any(axis=1)
    for swap, marks in zip(result.swaps, result.swap_groups, strict=True):
        if marks.any() and kind in {"removed", "replaced", "changed"}:
            inside = result.members[list(swap.rows)][:, marks]
            assert inside.all()
    assert touched.sum() == 12


def test_warm_and_cold_training_agree_on_average() -> None:
    data = ratings(users=80)
    model = ExplicitALS(factors=2, iterations=60, regularization=0.2, solver="cholesky", threads=1)
    tables = {}
    for passes in (None, 15):
        plan = StabilityPlan(k=5, shortlist=0, random=15, noise_runs=0, passes=passes)
        result = stability(model, data, np.arange(12), plan, changes=[ProbabilityChange(4.0)])
        tables[passes] = result.distances[ProbabilityChange(4.0).name]
    assert rank_correlation(tables[None].ravel(), tables[15].ravel()) > 0.9


def test_leave_one_out_unfairness_by_hand() -> None:
    data, model = ratings(users=14, items=12), EASE(regularization=3.0)
    users = np.arange(8)
    plan = StabilityPlan(k=3, shortlist=2, random=3)
    result = stability(model, data, users, plan, changes=[FirstItem()])
    found = {e.metric: e for e in stability_estimates(result, replicates=200)}
    share = found["leave-one-out unfairness (retrained)"]
    truth = [brute_force(model, data, int(u), 1, FirstItem(), 3) for u in users]
    assert share.value == pytest.approx(np.mean(truth))
    assert "every removal was computed in closed form" in share.note
    assert not any("noise floor" in name for name in found)  # training is deterministic
    above = next(e for e in found.values() if e.key == "stability/above-noise")
    assert above.value == pytest.approx(np.mean(truth))
    assert above.details["deterministic"]
    assert above.events == np.count_nonzero(truth)


def test_users_without_history_are_counted_and_left_out() -> None:
    data = ratings()
    emptied = swapped(data, OtherUsers(data, "removed").removals()[2])
    plan = StabilityPlan(k=3, random=2, shortlist=1)
    result = stability(EASE(), emptied, [1, 2, 999], plan)
    assert result.targets.tolist() == [1]
    assert sorted(e.count for e in result.exclusions) == [1, 1]
    assert {e.reason.split(",")[0] for e in result.exclusions} == {
        "the user is not in the interactions",
        "the user has no history",
    }
    with pytest.raises(DataError, match="no target user"):
        stability(EASE(), emptied, [2], plan)
    with pytest.raises(DataError, match="named twice"):
        stability(EASE(), emptied, [1, 1], plan)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": 0}, "k is 0"),
        ({"shortlist": 0, "random": 0}, "nothing would be tried"),
        ({"passes": 0}, "passes is 0"),
        ({"seeds": ()}, "different numbers"),
        ({"seeds": (1, 1)}, "different numbers"),
    ],
)
def test_bad_plans(options, message) -> None:
    with pytest.raises(PlanError, match=message):
        StabilityPlan(**options)


def test_a_model_without_warm_start_is_trained_anew() -> None:
    data = ratings()
    plan = StabilityPlan(k=3, random=2, shortlist=1, noise_runs=2)
    result = stability(BPR(factors=3, epochs=3), data, [0, 1, 2], plan)
    assert not result.warm
    assert result.influence == "overlap of histories"
    correlation = [e for e in stability_estimates(result, replicates=50) if "rank corr" in e.metric]
    assert all(e.reason == "there is no formula for this model" for e in correlation)


def test_seeds_are_used_with_and_without_the_treatment() -> None:
    data = ratings()
    model = ExplicitALS(factors=2, iterations=5, threads=1)
    plan = StabilityPlan(k=3, shortlist=0, random=3, noise_runs=0, passes=None, seeds=(0, 2))
    result = stability(model, data, [0, 1], plan)
    wanted = []
    for seed in (0, 2):
        one = replace(model, seed=seed)
        before = replace(one).fit(data).recommend([0, 1], 3).items
        after = replace(one).fit(swapped(data, result.swaps[0])).recommend([0, 1], 3).items
        wanted.append(Jaccard()(before, after))
    own = np.isin([0, 1], result.swaps[0].rows)
    np.testing.assert_allclose(
        result.distances["1 - Jaccard"][0], np.where(own, np.nan, np.mean(wanted, axis=0))
    )


def test_stability_is_a_registered_probe() -> None:
    probe = registry.create("probe", "stability", {"k": 3, "random": 2, "shortlist": 1})
    result = probe.of(EASE(), ratings(), [0, 1])
    assert result.plan is probe
    assert result.targets.tolist() == [0, 1]


@pytest.mark.slow
@pytest.mark.realdata
def test_movielens_small_is_moved_by_single_users(realdata) -> None:
    """One removal, the most influential of all, changes most lists of user-kNN; few others do."""
    data = registry.create("source", "movielens", {"path": str(realdata / "movielens-small")})
    users = data.interactions.users.ids[::40]
    plan = StabilityPlan(shortlist=1, random=8)
    result = stability(UserKNN(threads=1), data.interactions, users, plan)
    found = {e.key: e for e in stability_estimates(result, replicates=200)
             if e.details["distance"] == "1 - Jaccard"}  # fmt: skip
    assert found["stability/largest"].details["exact"] >= 15
    assert found["stability/largest"].value > 10 * found["stability/typical/mean"].value
    assert found["stability/search-gain"].interval[0] > 0.2


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 5), min_size=1, max_size=7), st.integers(1, 7))
def test_expected_maximum_by_enumeration(values, size) -> None:
    column = np.array(values, float)[:, None]
    if size > len(values):
        assert np.isnan(expected_maximum(column, size)[0])
        return
    subsets = list(combinations(values, size))
    assert expected_maximum(column, size)[0] == pytest.approx(np.mean([max(s) for s in subsets]))
    assert chance_of_any(column, size)[0] == pytest.approx(np.mean([max(s) > 0 for s in subsets]))


def test_expected_maximum_leaves_nan_out() -> None:
    values = np.array([[1.0, np.nan], [3.0, 2.0], [np.nan, 4.0]])
    np.testing.assert_allclose(expected_maximum(values, 2), [3.0, 4.0])
    np.testing.assert_allclose(expected_maximum(values, 1), [2.0, 3.0])
    with pytest.raises(ValueError, match="at least one"):
        expected_maximum(values, 0)
