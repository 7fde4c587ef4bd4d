from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from ombud.stats.crossed import resample_crossed


def test_a_mean_and_its_groups_by_hand(rng) -> None:
    values = np.array([[1.0, 2.0], [3.0, np.nan], [5.0, 9.0]])
    rows = np.array([[True, True], [True, False], [True, False]])
    columns = np.array([[True, False], [True, True]])
    drawn = resample_crossed(values, row_groups=rows, column_groups=columns, rng=rng, replicates=50)
    np.testing.assert_allclose(drawn.point[0], [[4.0, 5.5], [1.5, 2.0]])
    assert drawn.rows[0].tolist() == [[3, 2], [1, 1]]
    assert drawn.columns[0].tolist() == [[2, 1], [2, 1]]
    assert drawn.pairs[0].tolist() == [[5, 2], [2, 1]]


def test_weights_are_counts_of_the_population(rng) -> None:
    values = np.array([[1.0, 2.0], [3.0, 4.0]])
    weighted = resample_crossed(values, row_weights=[3, 1], column_weights=[1, 2], rng=rng)
    repeated = np.repeat(np.repeat(values, [3, 1], axis=0), [1, 2], axis=1)
    assert weighted.point[0, 0, 0] == pytest.approx(repeated.mean())
    median = resample_crossed(
        values, summary="median", row_weights=[3, 1], column_weights=[1, 2], rng=rng, replicates=9
    )
    assert median.point[0, 0, 0] == np.quantile(repeated, 0.5, method="inverted_cdf")


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(["mean", "median"]))
def test_every_replicate_is_the_statistic_of_repeated_rows_and_columns(seed, summary) -> None:
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 6, size=(5, 4)).astype(float)
    values[rng.random((5, 4)) < 0.3] = np.nan
    strata = np.array([0, 0, 1, 1, 1])
    drawn = resample_crossed(
        values, summary=summary, row_strata=strata, replicates=7, rng=np.random.default_rng(seed)
    )
    again = np.random.default_rng(seed)
    # Within strata one fewer is drawn, and each weighs 2 / 1 or 3 / 2 (here times 2, as counts).
    low = 4 * again.multinomial(1, [0.5] * 2, size=7)
    high = 3 * again.multinomial(2, [1 / 3] * 3, size=7)
    across = again.multinomial(4, [0.25] * 4, size=7)
    for b in range(7):
        down = np.concatenate([low[b], high[b]])
        repeated = np.repeat(np.repeat(values, down, axis=0), across[b], axis=1)
        known = repeated[~np.isnan(repeated)]
        if len(known) == 0:
            assert np.isnan(drawn.draws[b, 0, 0, 0])
        elif summary == "mean":
            assert drawn.draws[b, 0, 0, 0] == pytest.approx(known.mean())
        else:
            wanted = np.quantile(known, 0.5, method="inverted_cdf")
            assert drawn.draws[b, 0, 0, 0] == wanted


def test_variance_is_that_of_owens_formula(rng) -> None:
    """Var = (1/R) s_A + (1/C) s_B + 3/(RC) s_E to first order, for a full table."""
    row, column = rng.normal(size=(60, 1)), rng.normal(size=(1, 50))
    noise = rng.normal(size=(60, 50))
    values = row + column + noise
    drawn = resample_crossed(values, rng=rng, replicates=4000).draws[:, 0, 0, 0]
    row_means, column_means = values.mean(axis=1), values.mean(axis=0)
    rest = values - row_means[:, None] - column_means + values.mean()
    expected = row_means.var() / 60 + column_means.var() / 50 + rest.var() / (60 * 50)
    assert drawn.var() == pytest.approx(expected, rel=0.1)


def test_unknown_pairs_are_undefined_with_a_reason(rng) -> None:
    drawn = resample_crossed(np.full((3, 2), np.nan), rng=rng, replicates=20)
    found = drawn.estimate((0, 0, 0), metric="availability")
    assert not found.is_defined
    assert found.reason == "no pair of a user and a target is known"


def test_one_row_has_no_interval(rng) -> None:
    drawn = resample_crossed(np.arange(4.0)[None, :], rng=rng, replicates=50)
    found = drawn.estimate((0, 0, 0), metric="availability")
    assert found.value == 1.5
    assert found.interval is None
    assert found.n == 1


def test_a_gap_is_resampled_jointly(rng) -> None:
    base = rng.normal(size=(30, 40))
    drawn = resample_crossed(np.stack([base, base + 0.5]), rng=rng, replicates=200)
    gap = drawn.difference((1, 0, 0), (0, 0, 0), metric="gain")
    assert gap.value == pytest.approx(0.5)
    assert gap.interval is None  # no spread between replicates, which is not certainty
    assert gap.kind == "gap"
    noisy = np.stack([base, base + 0.5 + 0.1 * rng.normal(size=(30, 40))])
    gap = resample_crossed(noisy, rng=rng).difference((1, 0, 0), (0, 0, 0), metric="gain")
    assert gap.excludes_null
    assert gap.interval[1] - gap.interval[0] < 0.05


def test_a_gap_is_tested_as_its_interval_says(rng) -> None:
    """With users and items that differ, halves that do not are found different in 5% at most."""
    few, agree, runs = 0, 0, 100
    halves = np.column_stack([np.arange(24) < 12, np.arange(24) >= 12])
    for _ in range(runs):
        values = rng.normal(size=(20, 1)) + rng.normal(size=(1, 24)) + rng.normal(size=(20, 24))
        drawn = resample_crossed(values, column_groups=halves, replicates=300, rng=rng)
        gap = drawn.difference((0, 0, 0), (0, 0, 1), metric="gain")
        few += gap.p_value < 0.05
        agree += (gap.p_value < 0.05) == gap.excludes_null
    assert few <= 11 and agree >= 0.95 * runs
    shifted = resample_crossed(values + 3.0 * halves[:, 0], column_groups=halves, rng=rng)
    assert shifted.difference((0, 0, 0), (0, 0, 1), metric="gain").p_value < 0.001
    still = resample_crossed(np.stack([values, values + 0.5]), replicates=200, rng=rng)
    assert still.difference((1, 0, 0), (0, 0, 0), metric="gain").p_value is None  # no spread


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"row_weights": [1.0]}, "row_weights must be 3 finite numbers"),
        ({"column_weights": [1.0, -1.0]}, "negative"),
        ({"row_strata": ["a"]}, "row_strata has shape"),
        ({"row_groups": np.ones((3, 1))}, "expected booleans"),
        ({"replicates": 1}, "at least 2"),
        ({"summary": "mode"}, "'mean' or 'median'"),
    ],
)
def test_bad_arguments_are_named(rng, options, message) -> None:
    with pytest.raises(ValueError, match=message):
        resample_crossed(np.zeros((3, 2)), rng=rng, **options)


def test_infinite_values_are_refused(rng) -> None:
    with pytest.raises(ValueError, match="infinite"):
        resample_crossed(np.array([[np.inf]]), rng=rng)
    with pytest.raises(ValueError, match="dimensions"):
        resample_crossed(np.zeros(3), rng=rng)


def coverage(runs: int, rows: int, columns: int, kind: str, replicates: int, seed: int) -> float:
    """Return how often a 95 % interval holds the truth when both sides are sampled."""
    rng = np.random.default_rng(seed)
    hits = 0
    for _ in range(runs):
        effect = rng.normal(size=(rows, 1)) * 0.8 + rng.normal(size=(1, columns)) * 0.6
        if kind == "share":
            # P(y = 1) = E Phi(effect - 1) with total variance 1 + 0.64 + 0.36.
            values = (effect + rng.normal(size=(rows, columns)) > 1).astype(float)
            truth = scipy_stats.norm.sf(1 / np.sqrt(2.0))
        else:
            values, truth = effect + rng.normal(size=(rows, columns)), 0.0
        summary = "median" if kind == "median" else "mean"
        drawn = resample_crossed(values, rng=rng, replicates=replicates, summary=summary)
        found = drawn.interval((0, 0, 0))
        hits += found.low <= truth <= found.high
    return hits / runs


@pytest.mark.parametrize("kind", ["mean", "share", "median"])
def test_coverage_when_both_sides_are_samples(kind) -> None:
    assert 0.90 <= coverage(200, 25, 40, kind, 200, seed=5) <= 0.99


@pytest.mark.slow
@pytest.mark.simulation
@pytest.mark.parametrize("kind", ["mean", "share"])
@pytest.mark.parametrize(("rows", "columns"), [(10, 50), (25, 40), (100, 100)])
def test_coverage_in_full(kind, rows, columns) -> None:
    assert 0.93 <= coverage(2000, rows, columns, kind, 1000, seed=6) <= 0.975


def stratified(runs: int, rows: int, columns: int, replicates: int, seed: int) -> float:
    """Return how often an interval holds the truth: five strata of users, ten of targets."""
    rng = np.random.default_rng(seed)
    places, hits = np.arange(5) - 2.0, 0
    for _ in range(runs):
        of_row, of_column = np.arange(rows) % 5, np.arange(columns) % 10
        # Strata are equally large, so equally many of each represent the population.
        effect = 0.4 * places[of_row][:, None] + rng.normal(size=(rows, 1)) * 0.8
        effect = effect + 0.1 * (of_column - 4.5) + rng.normal(size=(1, columns)) * 0.6
        values = effect + rng.normal(size=(rows, columns))
        row_weights = 1 / np.bincount(of_row)[of_row]
        column_weights = 1 / np.bincount(of_column)[of_column]
        drawn = resample_crossed(
            values, rng=rng, replicates=replicates, row_strata=of_row, column_strata=of_column,
            row_weights=row_weights, column_weights=column_weights,
        )  # fmt: skip
        found = drawn.interval((0, 0, 0))
        hits += found.low <= 0 <= found.high
    return hits / runs


@pytest.mark.parametrize(("rows", "columns"), [(5, 12), (10, 20), (11, 40)])
def test_coverage_with_one_or_two_units_in_a_stratum(rows, columns) -> None:
    assert stratified(300, rows, columns, 200, seed=7) >= 0.93


@pytest.mark.slow
@pytest.mark.simulation
@pytest.mark.parametrize(("rows", "columns"), [(5, 10), (5, 12), (7, 15), (10, 20), (40, 100)])
def test_coverage_with_few_units_in_a_stratum_in_full(rows, columns) -> None:
    assert stratified(2000, rows, columns, 500, seed=8) >= 0.94


def test_one_way_intervals_are_too_short_here() -> None:
    """The reason for all this: resampling users alone misses the truth far too often."""
    rng = np.random.default_rng(8)
    hits = 0
    for _ in range(200):
        values = rng.normal(size=(200, 1)) * 0.2 + rng.normal(size=(1, 20))
        means = values.mean(axis=1)
        error = means.std(ddof=1) / np.sqrt(len(means))
        hits += abs(means.mean()) <= 1.96 * error
    assert hits / 200 < 0.5
