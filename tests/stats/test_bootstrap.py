from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from ombud.stats import Custom, Mean, Median, RatioOfSums, Sample, resample
from ombud.stats.bootstrap import _design as counts_module
from ombud.stats.bootstrap._design import Counts
from ombud.stats.bootstrap.resample import estimate
from ombud.stats.statistics import OfSums, as_rows


def fresh() -> np.random.Generator:
    return np.random.default_rng(7)


def counts_of(n: int, replicates: int, seed: int) -> np.ndarray:
    return Counts(n, replicates, seed).draw_all(0, replicates)


def seed_of(rng: np.random.Generator) -> int:
    return int(rng.integers(2**63))


@pytest.mark.parametrize("n", [1, 7, 300])
def test_counts_are_a_multinomial(n: int, monkeypatch) -> None:
    monkeypatch.setattr(counts_module, "BLOCK", 100)
    drawn = counts_of(n, 4000, 3)
    assert (drawn.sum(axis=1) == n).all()
    error = np.sqrt((1 - 1 / n) / 4000)
    assert np.abs(drawn.mean(axis=0) - 1).max() <= 5 * error + 1e-12
    if n == 300:
        # Covariance between units of one block and of two blocks is -1/n alike.
        covariance = np.cov(drawn[:, [0, 1, 150, 299]].T)
        np.testing.assert_allclose(np.diag(covariance), 1 - 1 / n, atol=0.15)
        assert np.abs(covariance - np.diag(np.diag(covariance))).max() < 0.09


def test_chunks_do_not_change_counts() -> None:
    whole = counts_of(50_000, 6, 1)
    parts = Counts(50_000, 6, 1)
    again = np.vstack([parts.draw_all(0, 1), parts.draw_all(1, 4), parts.draw_all(4, 6)])
    np.testing.assert_array_equal(whole, again)


def test_every_draw_equals_brute_force_with_groups_and_missing_units(rng, monkeypatch) -> None:
    monkeypatch.setattr(counts_module, "BLOCK", 16)
    n = 61
    one, two = rng.normal(size=(n, 1)), rng.uniform(1, 2, size=(n, 2))
    one[[3, 8]] = np.nan
    two[5, 1] = np.nan
    groups = np.column_stack([np.ones(n, bool), rng.random(n) < 0.4, np.zeros(n, bool)])
    statistics = [Mean(), RatioOfSums(), Median(), Custom(lambda r: float(r.max()))]
    samples = [Sample(v, s) for v, s in zip([one, two, one, one], statistics, strict=True)]
    drawn = resample(samples, groups=groups, replicates=40, rng=fresh())
    weights = counts_of(n, 40, seed_of(fresh()))
    for s, sample in enumerate(samples):
        for g in range(2):
            inside = groups[:, g]
            assert drawn.point[s, g] == pytest.approx(sample.statistic.point(sample.values[inside]))
            expected = sample.statistic.replicates(sample.values[inside], weights[:, inside])
            np.testing.assert_allclose(drawn.draws[:, s, g], expected, rtol=1e-12)
            assert drawn.n[s, g] == np.count_nonzero(inside & ~np.isnan(sample.values).any(axis=1))
    assert np.isnan(drawn.draws[:, :, 2]).all() and (drawn.n[:, 2] == 0).all()
    assert drawn.interval(0, 2).reason == "no unit contributes"


def test_clusters_are_drawn_whole(rng, monkeypatch) -> None:
    monkeypatch.setattr(counts_module, "BLOCK", 8)
    names = rng.permutation(np.repeat(np.arange(23) * 10, rng.integers(1, 9, size=23)))
    n = len(names)
    values = rng.normal(size=n)
    values[[0, 4]] = np.nan
    groups = np.column_stack([np.ones(n, bool), rng.random(n) < 0.3])
    samples = [Sample(values), Sample(values, Median())]
    drawn = resample(samples, groups=groups, clusters=names, replicates=30, rng=fresh())
    weights = counts_of(23, 30, seed_of(fresh()))[:, np.unique(names, return_inverse=True)[1]]
    for s, sample in enumerate(samples):
        for g in range(2):
            inside = groups[:, g]
            expected = sample.statistic.replicates(as_rows(values[inside]), weights[:, inside])
            np.testing.assert_allclose(drawn.draws[:, s, g], expected, rtol=1e-12)
            known = inside & ~np.isnan(values)
            assert drawn.n[s, g] == len(np.unique(names[known]))
            left, present = drawn.leave_out(s, g)
            for place, name in enumerate(np.unique(names)):
                without = values[known & (names != name)]
                assert present[place] == (name in names[known])
                assert left[place] == pytest.approx(sample.statistic.point(as_rows(without)))


def test_clusters_of_one_are_no_clusters(rng) -> None:
    values = rng.normal(size=40)
    plain = resample([Sample(values)], replicates=50, rng=fresh())
    single = resample([Sample(values)], clusters=np.arange(40), replicates=50, rng=fresh())
    np.testing.assert_allclose(plain.draws, single.draws, rtol=1e-12)
    np.testing.assert_allclose(plain.accelerations, single.accelerations)


def test_other_samples_groups_and_batches_change_nothing(rng, monkeypatch) -> None:
    values = rng.normal(size=(40, 30))
    alone = resample([Sample(values[:, 3])], replicates=50, rng=fresh())
    groups = np.ones((40, 2), bool)
    many = resample(Sample.many(values), groups=groups, replicates=50, rng=fresh())
    np.testing.assert_allclose(alone.draws[:, 0, 0], many.draws[:, 3, 1], rtol=1e-12)
    monkeypatch.setattr(bootstrap_module(), "_HELD", 50 * 2 * 4)
    cut = resample(Sample.many(values), groups=groups, replicates=50, rng=fresh())
    np.testing.assert_allclose(cut.draws, many.draws, rtol=1e-12)
    np.testing.assert_allclose(cut.accelerations, many.accelerations, rtol=1e-9)


def bootstrap_module():
    import importlib

    return importlib.import_module("ombud.stats.bootstrap.resample")


@pytest.mark.parametrize("statistic", [Mean(), Median(), Custom(lambda r: float(r.std()))])
@pytest.mark.parametrize("method", ["bca", "percentile"])
def test_intervals_from_the_same_draws_equal_scipy(statistic, method, rng) -> None:
    values = rng.exponential(size=35)
    drawn = resample([Sample(values, statistic)], replicates=999, rng=rng)
    # scipy accepts earlier replicates and adds none.
    theirs = scipy_stats.bootstrap(
        (values,),
        lambda x: statistic.point(as_rows(x)),
        vectorized=False,
        n_resamples=0,
        bootstrap_result=SimpleNamespace(bootstrap_distribution=drawn.draws[:, 0, 0]),
        method=method if method == "percentile" else "BCa",
    ).confidence_interval
    ours = drawn.interval(0, method=method)
    assert ours.ends == pytest.approx((theirs.low, theirs.high), rel=1e-9)
    together = drawn.intervals(method=method)
    assert (together.low[0, 0], together.high[0, 0]) == pytest.approx(ours.ends)


def test_whole_run_agrees_with_scipy_up_to_monte_carlo_error(rng) -> None:
    values = rng.exponential(size=80)
    ours = estimate(values, metric="m", replicates=20_000, rng=rng)
    theirs = scipy_stats.bootstrap((values,), np.mean, n_resamples=20_000, rng=3)
    error = values.std() / np.sqrt(80)
    assert ours.interval == pytest.approx(tuple(theirs.confidence_interval), abs=0.06 * error)


def test_expanded_intervals_are_nearly_those_of_t(rng) -> None:
    values = rng.normal(size=25)
    drawn = resample([Sample(values)], replicates=40_000, rng=rng)
    found = drawn.interval(0, method="expanded")
    theirs = scipy_stats.ttest_1samp(values, 0).confidence_interval()
    assert found.method == "expanded percentile bootstrap"
    assert found.ends == pytest.approx(tuple(theirs), abs=0.02)
    together = drawn.intervals(method="expanded")
    assert together.at(0, 0) == found


def test_one_pass_accelerations_equal_single_ones(rng) -> None:
    values = rng.exponential(size=(50, 3))
    values[:6, 1] = np.nan
    groups = rng.random((50, 2)) < 0.7
    samples = [*Sample.many(values), Sample(values[:, :2], RatioOfSums())]
    names = np.arange(50) // 3
    for clusters in (None, names):
        drawn = resample(samples, groups=groups, clusters=clusters, replicates=10, rng=rng)
        single = [[drawn.at(s, g).acceleration for g in range(2)] for s in range(4)]
        np.testing.assert_allclose(drawn.accelerations, single, rtol=1e-8)


def test_degenerate_cases_are_said(rng) -> None:
    cases = {"one": [5.0] + [np.nan] * 9, "constant": [3.3] * 10, "nothing": [np.nan] * 10}
    drawn = resample([Sample(v) for v in cases.values()], replicates=100, rng=rng)
    found = drawn.intervals()
    assert found.reason[:, 0].tolist() == [
        "one independent unit shows no spread",
        "no spread between replicates of 10 units, which is not certainty",
        "no unit contributes",
    ]
    assert np.isnan(found.low).all() and np.isnan(found.high).all()
    assert all(method.startswith("none: ") for method in found.method.ravel())
    e = drawn.estimate(1, metric="m")
    assert e.value == pytest.approx(3.3) and e.interval is None and "not certainty" in e.method
    assert drawn.estimate(2, metric="m").reason == "no unit contributes"


def test_undefined_replicates_are_counted_and_many_forbid_an_interval(rng) -> None:
    few = np.column_stack([np.arange(10.0), np.r_[np.zeros(8), 1, 2]])
    one = np.column_stack([np.arange(10.0), np.r_[np.zeros(9), 1]])
    drawn = resample([Sample(few, RatioOfSums()), Sample(one, RatioOfSums())], rng=rng)
    undefined = np.isnan(drawn.draws).sum(axis=0)[:, 0]
    assert undefined[0] == pytest.approx(2000 * 0.8**10, rel=0.25)
    first, second = drawn.interval(0), drawn.interval(1)
    assert first.undefined == undefined[0] and first.ends is not None
    assert second.ends is not None and second.undefined == undefined[1]
    # Without the only unit with a denominator there is no value, hence no acceleration.
    assert second.method == "percentile bootstrap (BCa undefined)"
    rare = Custom(lambda rows: float(np.unique(rows).size) if np.unique(rows).size > 7 else np.nan)
    third = resample([Sample(np.arange(10.0), rare)], rng=rng).interval(0)
    assert third.ends is None and "of 2000 replicates" in third.reason


def test_estimate_says_when_units_are_few(rng) -> None:
    e = estimate(rng.normal(size=6), metric="m", unit="user", rng=rng, system="s")
    assert e.n == 6 and e.system == "s" and "6 units" in e.note


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda r: resample([], rng=r), "no sample"),
        (lambda r: resample([Sample([1.0]), Sample([1.0, 2.0])], rng=r), "same units"),
        (lambda r: resample([Sample([1.0])], replicates=1, rng=r), "at least 2"),
        (lambda r: resample([Sample([1.0])], groups=np.ones((2, 1), bool), rng=r), "groups have"),
        (lambda r: resample([Sample([1.0])], groups=[[1]], rng=r), "booleans"),
        (lambda r: resample([Sample([1.0])], clusters=[1, 2], rng=r), "clusters have"),
        (lambda r: resample([Sample([1.0])], clusters=[np.nan], rng=r), "no cluster"),
        (lambda r: Sample([[1.0, 2.0]]), "Mean expects 1: value"),
        (lambda r: Sample([np.inf]), "infinite"),
        (lambda r: Sample(np.ones((1, 1, 1))), "3 dimensions"),
        (lambda r: resample([Sample([1.0, 2.0])], rng=r).interval(0, level=2), "level is 2"),
    ],
)
def test_wrong_input_is_refused_with_words(call, message: str, rng) -> None:
    with pytest.raises(ValueError, match=message):
        call(rng)


def test_no_units_at_all(rng) -> None:
    drawn = resample([Sample(np.empty(0))], replicates=5, rng=rng)
    assert drawn.interval(0).reason == "no unit contributes"


@settings(max_examples=25, deadline=None)
@given(st.integers(2, 40), st.integers(0, 2**31), st.floats(0.1, 50), st.floats(-5, 5))
def test_location_scale_and_group_of_everyone(
    n: int, seed: int, scale: float, shift: float
) -> None:
    values = np.random.default_rng(seed).normal(size=n)
    samples = [Sample(values), Sample(scale * values + shift)]
    everyone = np.ones((n, 1), bool)
    plain = resample(samples, replicates=200, rng=fresh())
    grouped = resample(samples, groups=everyone, replicates=200, rng=fresh())
    np.testing.assert_allclose(plain.draws, grouped.draws, atol=1e-9 * (1 + abs(shift) + scale))
    percentile = plain.intervals(method="percentile")
    low, high = percentile.low[:, 0], percentile.high[:, 0]
    assert (low[1], high[1]) == pytest.approx((scale * low[0] + shift, scale * high[0] + shift))


def test_statistics_of_sums_share_one_layout_but_not_their_meaning(rng) -> None:
    variance = OfSums(
        ("value",),
        lambda total, squares, n: squares / n - (total / n) ** 2,
        terms=lambda x: np.column_stack([x, x**2]),
    )
    values = rng.normal(size=30)
    drawn = resample([Sample(values, variance), Sample(values)], replicates=20, rng=fresh())
    weights = counts_of(30, 20, seed_of(fresh()))
    mean = weights @ values / 30
    np.testing.assert_allclose(drawn.draws[:, 0, 0], weights @ values**2 / 30 - mean**2)
