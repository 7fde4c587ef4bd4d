"""Coverage, distinct share and Gini: by hand, by brute force, against LensKit, in the long run."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ombud.data.dataset import Dataset
from ombud.data.interactions import Interactions
from ombud.data.recommendations import Recommendations
from ombud.errors import PlanError
from ombud.metrics import Coverage, DistinctShare, Gini
from ombud.metrics.accuracy.lists import DistinctItems, GiniOfExposure
from ombud.metrics.engine.estimate import estimate_metric
from ombud.metrics.engine.estimator import Settings
from ombud.stats.bootstrap.replicates import Sample
from ombud.stats.bootstrap.resample import resample

REFERENCE = Path(__file__).parents[1] / "reference" / "accuracy"


def catalogue(n):
    return Dataset(Interactions.from_arrays([0] * n, list(range(n))))


def rows_of(lists, n_items, k):
    rows = np.full((len(lists), k + 1), -1.0)
    rows[:, 0] = n_items
    for row, items in zip(rows, lists, strict=True):
        row[1 : len(items) + 1] = items
    return rows


def gini_plainly(counts):
    """Mean absolute difference over twice the mean."""
    x = np.asarray(counts, dtype=float)
    return np.abs(x[:, None] - x[None, :]).mean() / (2 * x.mean())


def test_by_hand():
    lists = Recommendations.from_frame({"user": [1, 1, 2, 2, 3], "item": [0, 1, 0, 2, 0]})
    data = catalogue(5)
    found = {}
    for metric in (Coverage(2), DistinctShare(2), Gini(2), Coverage(2, users=2)):
        rows = metric.measure(lists, data)
        [e] = estimate_metric(metric, {"s": rows}, settings=Settings(replicates=100, minimum=1))
        found[e.metric] = e.value
        assert e.n == 3 and e.unit == "user"
    assert found["coverage@2"] == pytest.approx(3 / 5)
    assert found["distinct share@2"] == pytest.approx(3 / 5)
    assert found["Gini@2"] == pytest.approx(gini_plainly([3, 1, 1, 0, 0]))
    # Pairs of users show 3, 2 and 2 items.
    assert found["coverage@2 of 2 users"] == pytest.approx(7 / 3 / 5)


lists_strategy = st.integers(3, 12).flatmap(
    lambda n: st.tuples(
        st.just(n),
        st.lists(
            st.lists(st.integers(0, n - 1), min_size=1, max_size=4, unique=True),
            min_size=3,
            max_size=7,
        ),
    )
)


@given(lists_strategy, st.integers(1, 3))
def test_values_and_leave_one_out_by_brute_force(given_, users):
    n, lists = given_
    rows = rows_of(lists, n, 4)
    groups = list(combinations(lists, users))

    def distinct(some):
        return len({item for items in some for item in items})

    rarefied = np.mean([distinct(g) for g in groups])
    assert DistinctItems(4).point(rows) == pytest.approx(distinct(lists) / n)
    assert DistinctItems(4, users=users).point(rows) == pytest.approx(rarefied / n)
    exposure = np.bincount([i for items in lists for i in items], minlength=n)
    assert GiniOfExposure(4).point(rows) == pytest.approx(gini_plainly(exposure))
    for statistic in (
        DistinctItems(4),
        DistinctItems(4, "places"),
        DistinctItems(4, "catalogue", 2),
        DistinctItems(4, "places", 2),
        GiniOfExposure(4),
    ):
        fast = statistic.jackknife(rows)
        slow = [statistic.point(np.delete(rows, u, axis=0)) for u in range(len(rows))]
        np.testing.assert_allclose(fast, slow, atol=1e-12)
        assert 0 <= statistic.point(rows) <= 1


def test_same_as_lenskit():
    lists = Recommendations.from_frame(REFERENCE / "lists.csv")
    theirs = pl.read_csv(REFERENCE / "lenskit.csv").filter(metric="gini")
    for k, value in theirs.select("k", "value").iter_rows():
        metric = Gini(k)
        rows = metric.measure(lists, catalogue(40))
        matrix = np.stack([rows.columns[c][:, 0] for c in metric.statistic.columns], axis=1)
        assert metric.statistic.point(matrix) == pytest.approx(value, rel=1e-6)


def test_replicates_are_linear_and_surround_the_value():
    rng = np.random.default_rng(3)
    rows = rows_of([rng.choice(400, 4, replace=False) for _ in range(80)], 400, 4)
    statistic = DistinctItems(4)
    weights = np.vstack([np.ones(80), rng.multinomial(80, np.full(80, 1 / 80), size=500)])
    draws = statistic.replicates(rows, weights)
    assert draws[0] == pytest.approx(statistic.point(rows))
    assert abs(np.mean(draws[1:] > draws[0]) - 0.5) < 0.15
    left = statistic.jackknife(rows)
    jackknife = np.sqrt(79 / 80 * np.sum((left - left.mean()) ** 2))
    assert draws[1:].std() == pytest.approx(jackknife, rel=0.15)


def draw_lists(rng, n=150, k=5, items=120):
    """Three kinds of users, popular items first."""
    taste = np.arange(items)[None, :] % 3 == rng.integers(0, 3, n)[:, None]
    score = -0.9 * np.log(np.arange(1, items + 1)) + 1.5 * taste + rng.gumbel(size=(n, items))
    return np.column_stack([np.full(n, items), np.argsort(-score, axis=1)[:, :k]]).astype(float)


@pytest.mark.simulation
def test_intervals_cover_the_expected_value_and_are_not_absurdly_wide():
    rng = np.random.default_rng(11)
    statistics = [
        DistinctItems(5),
        DistinctItems(5, "places"),
        DistinctItems(5, "catalogue", 30),
        GiniOfExposure(5),
    ]
    worlds = np.array([[s.point(rows) for s in statistics] for rows in _many(rng, 800)])
    truth, spread = worlds.mean(axis=0), worlds.std(axis=0)
    hits, widths = np.zeros(4), np.zeros(4)
    for rows in _many(rng, 120):
        drawn = resample([Sample(rows, s) for s in statistics], replicates=300, rng=rng)
        ends = np.array([drawn.interval(s).ends for s in range(4)])
        hits += (ends[:, 0] <= truth) & (truth <= ends[:, 1])
        widths += (ends[:, 1] - ends[:, 0]) / 120
    # Never clearly below 95% (four standard errors), and at most twice as wide as need be.
    assert (hits / 120 >= 0.95 - 4 * np.sqrt(0.95 * 0.05 / 120)).all(), hits / 120
    assert (widths / (2 * 1.96 * spread) < 2).all(), widths / (2 * 1.96 * spread)


def _many(rng, count):
    return (draw_lists(rng) for _ in range(count))


def test_groups_are_measured_on_their_own_lists():
    from ombud.data.groups import Grouping

    lists = Recommendations.from_frame(
        {"user": np.repeat(np.arange(40), 2), "item": np.tile([0, 1, 2, 3], 20)}
    )
    groups = Grouping.from_values(np.arange(40), {"half": ["even", "odd"] * 20})
    # Without a number of users they are not compared: the larger group would show more items.
    for metric, compared in ((Coverage(2), False), (Gini(2), False), (Coverage(2, users=5), True)):
        rows = {"s": metric.measure(lists, catalogue(8))}
        found = estimate_metric(metric, rows, groups, Settings(replicates=100))
        assert any(e.group and e.kind != "level" for e in found) == compared
        if metric == Coverage(2):
            levels = {e.group: e.value for e in found if e.kind == "level"}
            assert levels == {"": 0.5, "half=even": 0.25, "half=odd": 0.25}


def test_what_is_outside_the_catalogue_or_empty_is_counted():
    lists = Recommendations.from_frame({"user": [1, 1, 2], "item": [0, 99, 1]})
    lists = lists.for_users([1, 2, 3])
    rows = Gini(3).measure(lists, catalogue(4))
    assert [(e.what, e.count) for e in rows.exclusions] == [("users", 1), ("places", 1)]
    assert rows.ids.tolist() == [1, 2]


def test_too_few_lists_and_bad_options():
    rows = rows_of([[0], [1]], 3, 1)
    assert np.isnan(DistinctItems(1, users=3).point(rows))
    with pytest.raises(PlanError, match="users is 0"):
        Coverage(users=0)
    with pytest.raises(PlanError, match="no interactions"):
        Gini().measure(Recommendations.from_frame({"user": [1], "item": [0]}), Dataset())
