from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from ombud.audits.analysis import Analysis, Context
from ombud.audits.audit import Audit
from ombud.audits.plan import Plan
from ombud.audits.result import Result
from ombud.data.dataset import Dataset
from ombud.data.interactions import Interactions
from ombud.data.labels import Labels
from ombud.data.splits import per_user
from ombud.errors import PlanError
from ombud.metrics.engine.estimator import Settings
from ombud.metrics.shares import LabelShare
from ombud.questions.warnings.distribution import Distribution, one_histogram
from ombud.questions.warnings.popularity import PopularityShift, popularity_of, shift_bounds
from ombud.questions.warnings.preference import UserPreference
from ombud.registry import create, names
from ombud.worlds import small_world


@pytest.fixture
def example() -> Dataset:
    """Three users, five items; one label, unknown on item e."""
    rows = [
        ("u", "a", 5.0), ("u", "b", 4.0), ("u", "c", 1.0),
        ("v", "a", 3.0), ("v", "c", 3.0), ("v", "d", 3.0),
        ("x", "b", 2.0), ("x", "e", 5.0),
    ]  # fmt: skip
    users, items, ratings = zip(*rows, strict=True)
    labels = Labels.from_applied(
        {"item": list("abcd"), "label": ["w"] * 4, "present": [True, True, False, False]}
    )
    return Dataset(Interactions.from_arrays(users, items, ratings), labels)


def test_popularity_by_hand(example: Dataset) -> None:
    found = PopularityShift().analyze(Context(example, {}, Settings()))
    # Means: a 4, b 3, c 2, d 3, e 5. With: a b = 3.5; without: c d = 2.5.
    shift, delta = found.estimates
    assert (shift.value, shift.n, shift.unit, shift.against) == (1.0, 4, "item", "items without it")
    # Of six ways to choose two of 4 3 2 3, {4, 3} twice and {2, 3} twice are as extreme.
    assert shift.p_value == pytest.approx(4 / 6) and "all arrangements" in shift.note
    # Pairs a>c a>d b>c b=d: (3.5 - 0.5) / 4.
    assert delta.value == pytest.approx(0.75)
    row = found.tables["popularity-shift"].row(0, named=True)
    assert (row["with"], row["without"], row["unknown"]) == (2, 2, 1)
    assert row["difference_if_unknown_yes"] == pytest.approx(4.0 - 2.5)
    assert row["difference_if_unknown_no"] == pytest.approx(3.5 - 10 / 3)
    assert row["least_difference"] == pytest.approx(3.5 - 10 / 3)
    assert row["greatest_difference"] == pytest.approx(1.5)


def test_popularity_of_counts(example: Dataset) -> None:
    assert example.interactions is not None
    values, word = popularity_of(example.interactions, "count")
    assert (values.tolist(), word) == ([2, 2, 2, 1, 1], "interactions")
    implicit = Interactions.from_arrays(["u"], ["a"])
    with pytest.raises(PlanError, match="needs ratings"):
        popularity_of(implicit, "mean-rating")


def test_popularity_is_that_of_scipy_with_both_corrections() -> None:
    world = small_world(3, ratings=True)
    assert world.dataset.labels is not None
    found = PopularityShift(permutations=2000).analyze(
        Context(world.dataset, {}, Settings(correction="holm"))
    )
    table = found.tables["popularity-shift"]
    values, _ = popularity_of(world.interactions)
    states = world.dataset.labels.aligned(world.interactions.items)
    for row, state in zip(table.to_dicts(), states.T, strict=True):
        with_, without = values[state == 1], values[state == 0]
        test = stats.ttest_ind(with_, without, equal_var=False)
        low, high = test.confidence_interval()
        assert (row["low"], row["high"]) == pytest.approx((low, high))
        assert row["difference"] == pytest.approx(with_.mean() - without.mean())
        u = stats.mannwhitneyu(with_, without).statistic
        assert row["cliffs_delta"] == pytest.approx(2 * u / (len(with_) * len(without)) - 1)
        assert row["p"] == pytest.approx(test.pvalue, abs=0.05)
    p = table["p"].to_numpy()
    corrected = stats.false_discovery_control(p)
    assert table["p_benjamini_hochberg"].to_numpy() == pytest.approx(corrected)
    assert [e.p_adjusted for e in found.estimates[:5]] == pytest.approx(table["p_holm"].to_list())


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_bounds_hold_for_every_truth_and_are_reached(data: st.DataObject) -> None:
    n = data.draw(st.integers(2, 7))
    values = np.array(data.draw(st.lists(st.integers(0, 9), min_size=n, max_size=n)), float)
    states = np.array(data.draw(st.lists(st.integers(-1, 1), min_size=n, max_size=n)), np.int8)
    (low,), (high,) = shift_bounds(values, states[:, None])
    free = np.flatnonzero(states < 0)
    possible = []
    for truth in product((0, 1), repeat=len(free)):
        filled = states.copy()
        filled[free] = truth
        if 0 < filled.sum() < n:
            possible.append(values[filled == 1].mean() - values[filled == 0].mean())
    if possible:
        assert (low, high) == pytest.approx((min(possible), max(possible)))
    else:
        assert np.isnan(low) and np.isnan(high)


def test_no_item_on_one_side_is_said() -> None:
    interactions = Interactions.from_arrays(["u", "u"], ["a", "b"])
    labels = Labels.from_applied({"item": ["a", "b"], "label": ["w", "w"]})
    found = PopularityShift().analyze(Context(Dataset(interactions, labels), {}, Settings()))
    assert all("without it" in e.reason for e in found.estimates)
    found = UserPreference().analyze(Context(Dataset(interactions, labels), {}, Settings()))
    # Without ratings, a user who met only one side has shares all the same.
    assert found.estimates[0].value == 1.0


def test_histograms_hold_every_item() -> None:
    world = small_world(4)
    found = PopularityShift(permutations=100).analyze(Context(world.dataset, {}, Settings()))
    total = (
        found.tables["popularity-histogram"]
        .group_by("label", "status")
        .agg(pl.col("items").sum())
        .pivot("status", index="label", values="items")
    )
    sides = ["label", "with", "without", "unknown"]
    expected = found.tables["popularity-shift"].select(sides)
    assert total.select(sides).sort("label").equals(expected.sort("label"))


def test_bins_grow_by_equal_steps_or_by_equal_factors() -> None:
    values = np.array([0.0, 1, 2, 3, 8, np.nan])
    even = one_histogram(values, "items", 2, by_log=False)
    assert even["from"].to_list() == [0, 4] and even["to"].to_list() == [4, 8]
    assert even["count"].to_list() == [4, 1] and even["share"].to_list() == [0.8, 0.2]
    # From 1 by the factor 3 to 9; what is less than 1 is in the first bin.
    growing = one_histogram(values, "items", 2, by_log=True)
    assert growing["from"].to_list() == [0, 3] and growing["to"].to_list() == [3, 9]
    assert growing["count"].to_list() == [3, 2]


def test_analyses_see_what_was_held_out() -> None:
    whole = small_world(4, ratings=True).dataset
    cut = per_user(whole.interactions, share=0.3)
    parts = replace(whole, interactions=cut.train, test=cut.test)
    for analysis in (PopularityShift(permutations=100), UserPreference(permutations=100)):
        one, other = (analysis.analyze(Context(data, {}, Settings())) for data in (whole, parts))
        assert one.estimates == other.estimates


def test_preference_by_hand(example: Dataset) -> None:
    found = UserPreference().analyze(Context(example, {}, Settings()))
    higher, lower, same, difference = found.estimates
    # u: 4.5 with, 1 without. v: 3 and 3. x met nothing known to be without it.
    assert (higher.value, lower.value, same.value, difference.value) == (0.5, 0.0, 0.5, 1.75)
    assert higher.metric == "users who rate it higher" and lower.metric == "users who rate it lower"
    words = (
        "1 of 2 users rate it higher, 0 rate it lower, 1 rate both alike; 1 met none of one side"
    )
    assert words in higher.note and words in lower.note
    row = found.tables["user-preference"].row(0, named=True)
    assert (row["users"], row["left_out"], row["words"]) == (2, 1, higher.note)
    # If e has it, x still has no item without it; if not, x rates it lower (2 against 5).
    assert row["share_higher_if_unknown_yes"] == pytest.approx(1 / 2)
    assert row["share_higher_if_unknown_no"] == pytest.approx(1 / 3)
    assert found.tables["user-preference-users"].columns == ["label", "with", "without"]


def test_preference_without_ratings(example: Dataset) -> None:
    assert example.interactions is not None
    frame = example.interactions.to_frame().drop("rating")
    implicit = Dataset(Interactions.from_frame(frame), example.labels)
    higher, lower, same, difference = (
        UserPreference().analyze(Context(implicit, {}, Settings())).estimates
    )
    # u met a b against c; v met a against c d; x met b alone.
    assert (higher.value, lower.value, same.value) == pytest.approx((2 / 3, 1 / 3, 0))
    assert difference.value == pytest.approx((1 / 3 - 1 / 3 + 1) / 3)
    assert higher.metric == "users who meet more of it"


def test_preference_sample_is_counted_and_selected() -> None:
    world = small_world(5, ratings=True)
    asked = UserPreference(sample=50, labels=("spiders",))
    found = asked.analyze(Context(world.dataset, {}, Settings()))
    assert {e.label for e in found.estimates} == {"spiders"}
    assert (found.exclusions[0].count, found.exclusions[0].of) == (250, 300)
    again = asked.analyze(Context(world.dataset, {}, Settings()))
    assert again.estimates == found.estimates


@pytest.mark.simulation
def test_preference_covers_a_known_share() -> None:
    """Users who like the label with a known probability; both directions at their level."""
    rng = np.random.default_rng(11)
    runs, users, like = 150, 80, 0.6
    covered = np.zeros(2)
    items = np.arange(6)
    labels = Labels.from_applied(
        {"item": items, "label": ["w"] * 6, "present": [True] * 3 + [False] * 3}
    )
    for _ in range(runs):
        likes = rng.random(users) < like
        ratings = np.where((items < 3) == likes[:, None], 4.0, 2.0)
        met = Interactions.from_arrays(
            np.repeat(np.arange(users), 6), np.tile(items, users), ratings.ravel()
        )
        higher, lower, *_ = (
            UserPreference(permutations=10)
            .analyze(Context(Dataset(met, labels), {}, Settings()))
            .estimates
        )
        for place, (e, truth) in enumerate(((higher, like), (lower, 1 - like))):
            assert e.interval is not None
            covered[place] += e.interval[0] <= truth <= e.interval[1]
    assert np.all(covered >= 0.9 * runs), covered


def test_distribution(example: Dataset) -> None:
    found = Distribution().analyze(Context(example, {}, Settings()))
    value = {e.metric: e.value for e in found.estimates}
    assert value["interactions per user: max"] == 3
    assert value["interactions per user: mean"] == pytest.approx(8 / 3)
    assert value["interactions per item: median"] == 2
    assert value["interactions per item: sd"] == pytest.approx(np.std([2, 2, 2, 1, 1]))
    assert value["interaction density"] == pytest.approx(8 / 15)
    assert value["warning density"] == pytest.approx(2 / 5)
    assert value["warning density if every unknown were yes"] == pytest.approx(3 / 5)
    assert found.tables["label-status"].row(0) == ("w", 2, 2, 0, 1)
    assert all(e.interval is None and e.method.startswith("none: a fact") for e in found.estimates)


def test_needs_labels() -> None:
    data = Dataset(Interactions.from_arrays(["u"], ["a"]))
    for name in ("popularity-shift", "user-preference", "distribution"):
        made = create("analysis", name)
        assert isinstance(made, Analysis) and name in names("analysis")
        with pytest.raises(PlanError, match=f"{name} needs interactions and labels"):
            made.analyze(Context(data, {}, Settings()))


def test_an_audit_runs_and_stores_analyses(tmp_path: Path) -> None:
    world = small_world(6)
    asked: list[Any] = [
        PopularityShift(permutations=100),
        UserPreference(sample=40),
        Distribution(),
    ]
    audit = Audit(world.dataset, world.recommenders(), [LabelShare()], analyses=asked)
    result = audit.run(tmp_path / "run")
    assert result.select(metric="popularity shift (interactions)")
    again = Result.load(tmp_path / "run")
    assert again.estimates == result.estimates
    assert set(again.tables) == {
        "activity-histogram",
        "interactions-per",
        "label-status",
        "popularity-histogram",
        "popularity-shift",
        "user-preference",
        "user-preference-users",
    }
    plan = Plan.load(tmp_path / "run" / "plan.toml")
    assert [spec["name"] for spec in plan.analyses] == [
        "popularity-shift",
        "user-preference",
        "distribution",
    ]
