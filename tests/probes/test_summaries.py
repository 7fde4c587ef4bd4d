from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ombud.probes.categories import cramers_v, over_categorisation, reach_groups
from ombud.probes.sampling import quantile_groups, stratified_sample
from ombud.probes.summaries import ReachTable, attainable_summary, reach_summary

ABOUT = {"system": "als", "policy": "frozen", "budget": 2, "k": 10}


def table(**more) -> ReachTable:
    reachable = np.array([[1, 0, 0.5, np.nan], [1, 1, 0, 0], [0.5, 0, 0, 1]], float)
    return ReachTable(reachable=reachable, **(ABOUT | more))


def by_key(estimates, group: str = "", label: str = "") -> dict:
    return {e.key: e for e in estimates if (e.group, e.label) == (group, label)}


def test_availability_is_a_range_and_agency_counts_targets() -> None:
    found = by_key(reach_summary(table(), replicates=100))
    assert found["reach/availability/proved"].value == pytest.approx(4 / 11)
    assert found["reach/availability/possible"].value == pytest.approx(6 / 11)
    assert found["reach/agency/proved"].value == pytest.approx(4 * 4 / 11)
    assert found["reach/availability/proved"].details["pairs"] == 11
    assert found["reach/availability/proved"].details["policy"] == "frozen"
    assert "frozen" in found["reach/availability/proved"].metric


def test_weights_make_the_sample_stand_for_the_population() -> None:
    weighted = table(target_weights=np.array([10.0, 1.0, 1.0, 1.0]))
    found = by_key(reach_summary(weighted, replicates=100))
    top, bottom = 10 * 2 + 1 + 0 + 1, 10 * 3 + 3 + 3 + 2
    assert found["reach/availability/proved"].value == pytest.approx(top / bottom)
    assert found["reach/agency/proved"].value == pytest.approx(13 * top / bottom)


def test_groups_of_users_and_of_targets() -> None:
    estimates = reach_summary(
        table(),
        user_groups={"women": np.array([True, False, True])},
        target_groups={"blood": np.array([True, True, False, False])},
        replicates=100,
    )
    key = "reach/availability/proved"
    assert by_key(estimates, group="women")[key].value == pytest.approx(2 / 7)
    assert by_key(estimates, label="blood")[key].value == pytest.approx(3 / 6)
    assert by_key(estimates, label="blood")["reach/agency/proved"].value == pytest.approx(2 * 3 / 6)
    with pytest.raises(ValueError, match="one boolean per user"):
        reach_summary(table(), user_groups={"women": np.array([True])})


def test_gain_lift_and_rank() -> None:
    today = np.array([[0.1, 0.0], [0.2, 0.4]])
    best = np.array([[0.2, 0.3], [0.2, 0.8]])
    full = ReachTable(
        reachable=np.ones((2, 2)), today=today, best=best,
        rank_today=np.array([[3.0, 9], [2, 5]]), rank_best=np.array([[1.0, 4], [2, 1]]), **ABOUT,
    )  # fmt: skip
    found = by_key(reach_summary(full, replicates=100))
    assert found["reach/gain"].value == pytest.approx(0.2)
    # The pair whose probability is 0 today has no lift.
    assert found["reach/log-lift"].value == pytest.approx(2 * np.log(2) / 3)
    assert found["reach/log-lift"].details["pairs"] == 3
    assert found["reach/log-lift/median"].value == pytest.approx(np.log(2))
    assert found["reach/rank/today"].value == 3
    assert found["reach/rank/best"].value == 1


def test_a_table_from_what_reachability_found() -> None:
    def reach(reachable, today, best):
        return SimpleNamespace(
            reachable=reachable, rank_today=5, rank_best=None,
            probability=SimpleNamespace(today=today, attained=best, status="searched"),
            in_list=SimpleNamespace(today=0.0, attained=float(reachable is True)),
            gain_interval=(0.01, 0.2),
        )  # fmt: skip

    rows = [[reach(True, 0.1, 0.5), reach(None, 0.1, 0.1)], [None, reach(False, 0.0, 0.2)]]
    found = ReachTable.from_reaches(rows, **ABOUT)
    np.testing.assert_array_equal(found.reachable, [[1, 0.5], [np.nan, 0]])
    np.testing.assert_array_equal(found.best, [[0.5, 0.1], [np.nan, 0.2]])
    assert np.isnan(found.rank_best).all()
    np.testing.assert_array_equal(found.status, [[1, 1], [np.nan, 1]])
    measures = found.measures()
    assert np.nanmean(measures["above-noise"][0]) == 1
    assert np.nanmean(measures["status/searched"][0]) == 1
    # Of the pairs with probability 0 today, one; it can be reached.
    np.testing.assert_array_equal(measures["new"][0], [[np.nan, np.nan], [np.nan, 1]])
    np.testing.assert_array_equal(measures["outside/best"][0], found.best)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"reachable": np.array([[0.3]])}, "other than"),
        ({"reachable": np.array([1.0])}, "users x targets"),
        (
            {"reachable": np.ones((1, 1)), "today": np.ones((2, 1)), "best": np.ones((1, 1))},
            "shape",
        ),
        ({"reachable": np.ones((1, 1)), "today": np.ones((1, 1))}, "go together"),
    ],
)
def test_bad_tables(more, message) -> None:
    with pytest.raises(ValueError, match=message):
        ReachTable(**(ABOUT | more))


def test_attainable_beside_observed() -> None:
    observed = np.array([0.1, 0.1, 0.1, 0.5, 0.6, 0.7, 0.8, 0.9])
    attainable = observed + np.array([0.8, 0.0, 0.7, 0.1, 0, 0, 0, 0])
    estimates = attainable_summary(
        "diversity@10", observed, attainable, broad=observed + 0.05, system="als", policy="frozen",
        budget=2, groups={"first": np.arange(8) < 4}, replicates=200,
    )  # fmt: skip
    found = {e.key: e for e in estimates if e.group == ""}
    assert found["attainable/gap"].value == pytest.approx(1.6 / 8)
    assert found["attainable/observed"].value == pytest.approx(observed.mean())
    assert found["attainable/broad-history"].value == pytest.approx(observed.mean() + 0.05)
    # Narrow lists are at or below the first quartile, 0.1; two of the three can be left.
    assert found["attainable/narrow-left"].value == pytest.approx(2 / 3)
    assert found["attainable/narrow-left"].n == 3
    with pytest.raises(ValueError, match="worse than the observed"):
        attainable_summary("d", observed, observed - 0.1, system="a", policy="frozen", budget=1)


def test_over_categorisation_finds_boxes_and_what_is_shut() -> None:
    rng = np.random.default_rng(0)
    box = np.repeat([0, 1], 30)
    reachable = np.zeros((60, 20))
    reachable[:30, :8] = rng.random((30, 8)) < 0.9
    reachable[30:, 10:18] = rng.random((30, 8)) < 0.9
    attributes = {
        "gender": np.where(box == 0, "a", "b").astype(object),
        "nothing": rng.choice(["x", "y"], 60).astype(object),
        "same": np.full(60, "z", dtype=object),
    }
    found = over_categorisation(reachable, attributes, groups=2, system="als", permutations=199)
    told = {e.group: e for e in found if e.key == "over-categorisation/told"}
    assert told["gender"].value > 0.9
    assert told["gender"].p_value == pytest.approx(1 / 200)
    assert told["nothing"].p_value > 0.05
    assert told["same"].reason
    shut = [e for e in found if e.key == "over-categorisation/shut"]
    assert [e.value for e in shut] == [12 / 20, 12 / 20]


def test_users_who_do_not_differ_are_one_group() -> None:
    assert (reach_groups(np.ones((5, 3)), 3) == 0).all()
    with pytest.raises(ValueError, match="at least 2"):
        reach_groups(np.ones((5, 3)), 1)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6))
def test_cramers_v_is_symmetric_and_between_zero_and_one(seed) -> None:
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, 3, 30), rng.integers(0, 4, 30)
    first, second = cramers_v(a, b), cramers_v(b, a)
    assert first == pytest.approx(second, nan_ok=True)
    assert np.isnan(first) or 0 <= first <= 1


def test_cramers_v_against_scipy() -> None:
    from scipy.stats.contingency import association, crosstab

    rng = np.random.default_rng(2)
    a = rng.integers(0, 3, 3000)
    b = np.where(rng.random(3000) < 0.6, a, rng.integers(0, 3, 3000))
    plain = association(crosstab(a, b).count, method="cramer")
    assert cramers_v(a, b) == pytest.approx(plain, abs=0.005)


@given(st.lists(st.integers(1, 30), min_size=1, max_size=5), st.integers(5, 60))
def test_a_stratified_sample_stands_for_all(sizes, count) -> None:
    strata = np.repeat(np.arange(len(sizes)), sizes)
    found = stratified_sample(strata, count, np.random.default_rng(0))
    assert len(found.units) == min(count, len(strata))
    assert len(set(found.units.tolist())) == len(found.units)
    assert found.weights.sum() == pytest.approx(len(strata))
    np.testing.assert_array_equal(strata[found.units], found.strata)
    for stratum, size in enumerate(sizes):
        assert found.weights[found.strata == stratum].sum() == pytest.approx(size)


def test_samples_that_cannot_be_drawn() -> None:
    with pytest.raises(ValueError, match="cannot represent"):
        stratified_sample(np.arange(5), 3, np.random.default_rng(0))
    with pytest.raises(ValueError, match="at least one"):
        stratified_sample(np.full(3, -1), 1, np.random.default_rng(0))


def test_deciles_hold_equally_many() -> None:
    groups = quantile_groups(np.arange(100) ** 2)
    assert np.bincount(groups).tolist() == [10] * 10
    assert (np.diff(groups) >= 0).all()
