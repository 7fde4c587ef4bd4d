"""Two fast bootstraps against the plain one; pooling and the largest ratio against other routes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ombud.stats.bootstrap.patterns import resample_patterns
from ombud.stats.bootstrap.replicates import Sample
from ombud.stats.bootstrap.resample import resample
from ombud.stats.extremes import largest_ratio
from ombud.stats.pooling import partially_pool
from ombud.stats.ranks import resample_medians
from ombud.stats.statistics import Median, RatioOfSums


def test_patterns_are_the_plain_bootstrap(rng: np.random.Generator) -> None:
    n = 800
    groups = np.column_stack([np.ones(n, dtype=bool), rng.random(n) < 0.2, rng.random(n) < 0.5])
    flags = np.where(rng.random((n, 2)) < 0.1, np.nan, rng.random((n, 2)) < 0.3)
    pairs = np.column_stack([rng.integers(0, 3, n), rng.integers(1, 4, n)]).astype(float)
    samples = [*Sample.many(flags), Sample(pairs, RatioOfSums())]
    fast = resample_patterns(samples, groups=groups, replicates=4000, rng=rng)
    assert fast is not None
    plain = resample(samples, groups=groups, replicates=4000, rng=rng)
    np.testing.assert_allclose(fast.point, plain.point)
    np.testing.assert_array_equal(fast.n, plain.n)
    np.testing.assert_allclose(fast.draws.std(axis=0), plain.draws.std(axis=0), rtol=0.07)
    for a, b in (((0, 1), (0, 0)), ((0, 0), (1, 0))):
        one, two = (d.contrast(a, b, how="ratio") for d in (fast, plain))
        assert one.point == pytest.approx(two.point)
        np.testing.assert_allclose(
            np.quantile(one.draws, [0.025, 0.975]),
            np.quantile(two.draws, [0.025, 0.975]),
            rtol=0.03,
        )
        # Leave-one-out values need no draws, so the BCa acceleration is the same.
        assert one.acceleration == pytest.approx(two.acceleration)


def test_patterns_give_up_where_nothing_repeats(rng: np.random.Generator) -> None:
    whole = np.ones((300, 1), dtype=bool)
    assert resample_patterns([Sample(rng.random(300))], groups=whole, rng=rng, most=200) is None
    flags = (rng.random(300) < 0.5).astype(float)
    assert resample_patterns([Sample(flags, Median())], groups=whole, rng=rng) is None
    many = rng.random((300, 12)) < 0.5
    assert resample_patterns([Sample(flags)], groups=many, rng=rng, most=50) is None


@given(st.integers(0, 2**32 - 1), st.integers(1, 60))
@settings(max_examples=40, deadline=None)
def test_patterns_keep_points_and_counts(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    values = np.where(rng.random(n) < 0.3, np.nan, rng.integers(0, 2, n).astype(float))
    groups = rng.random((n, 2)) < 0.5
    found = resample_patterns([Sample(values)], groups=groups, replicates=50, rng=rng)
    assert found is not None
    for g in range(2):
        some = values[groups[:, g] & ~np.isnan(values)]
        assert found.n[0, g] == len(some)
        expected = some.mean() if len(some) else np.nan
        np.testing.assert_allclose(found.point[0, g], expected)
        drawn = found.draws[:, 0, g]
        assert np.all(np.isnan(drawn) | ((drawn >= 0) & (drawn <= 1)))


@pytest.mark.parametrize("ties", [False, True])
def test_ranks_are_nearly_the_plain_bootstrap(rng: np.random.Generator, ties: bool) -> None:
    n = 1501
    groups = np.column_stack([np.ones(n, dtype=bool), rng.random(n) < 0.15])
    x = rng.gamma(2.0, 1.0, n) * np.where(groups[:, 1], 1.3, 1.0)
    x = np.round(x * 4) / 4 if ties else x
    x[rng.random(n) < 0.1] = np.nan
    fast = resample_medians([x], groups=groups, replicates=4000, rng=rng)
    plain = resample([Sample(x, Median())], groups=groups, replicates=4000, rng=rng)
    np.testing.assert_allclose(fast.point, plain.point)
    np.testing.assert_array_equal(fast.n, plain.n)
    one, two = (d.contrast((0, 1), (0, 0), how="ratio").draws for d in (fast, plain))
    wide = np.quantile(two, 0.975) - np.quantile(two, 0.025)
    for share in (0.025, 0.5, 0.975):
        near = 0.26 / np.median(x[~np.isnan(x)]) if ties else 0.1 * wide
        assert abs(np.quantile(one, share) - np.quantile(two, share)) < near


def test_ranks_of_clusters(rng: np.random.Generator) -> None:
    clusters = np.repeat(np.arange(100), 20)
    x = np.repeat(rng.normal(10, 1, 100), 20) + 0.3 * rng.normal(size=2000)
    groups = np.column_stack([np.ones(2000, dtype=bool), clusters < 30])
    fast = resample_medians([x], groups=groups, clusters=clusters, replicates=1500, rng=rng)
    plain = resample(
        [Sample(x, Median())], groups=groups, clusters=clusters, replicates=1500, rng=rng
    )
    np.testing.assert_array_equal(fast.n, plain.n)
    np.testing.assert_allclose(fast.draws.std(axis=0), plain.draws.std(axis=0), rtol=0.2)


@given(st.lists(st.floats(-100, 100), min_size=1, max_size=40), st.integers(0, 2**32 - 1))
@settings(max_examples=40, deadline=None)
def test_medians_by_ranks_are_medians(values: list[float], seed: int) -> None:
    x = np.array(values)
    whole = np.ones((len(x), 1), dtype=bool)
    rng = np.random.default_rng(seed)
    found = resample_medians([x], groups=whole, replicates=20, rng=rng)
    assert found.point[0, 0] == pytest.approx(float(np.median(x)))
    assert np.all((found.draws >= x.min()) & (found.draws <= x.max()))
    assert found.leave_out(0) is None


def test_pooling_by_simulation_of_the_model() -> None:
    """A second route: many draws from the prior, weighted by the likelihood."""
    rng = np.random.default_rng(8)
    y = np.array([0.1, -0.2, 0.9, 0.3])
    v = np.diag([0.02, 0.05, 0.2, 0.1]) + 0.01
    found = partially_pool(y, v)
    top = 4 * max(y.std(), np.sqrt(np.diag(v).mean()))
    n = 1_500_000
    tau = rng.uniform(0, top, n)
    mu = rng.normal(0.2, 2.0, n)
    weight_mu = 1 / np.exp(-0.5 * ((mu - 0.2) / 2.0) ** 2)
    theta = mu[:, None] + tau[:, None] * rng.normal(size=(n, 4))
    rest = y - theta
    log = -0.5 * np.einsum("ij,jk,ik->i", rest, np.linalg.inv(v), rest)
    weight = np.exp(log) * weight_mu
    mean = weight @ theta / weight.sum()
    np.testing.assert_allclose(found.value, mean, atol=0.02)
    for g in range(4):
        below = weight[theta[:, g] < found.low[g]].sum() / weight.sum()
        assert 0.015 < below < 0.037
    assert found.spread == pytest.approx(weight @ tau / weight.sum(), abs=0.02)


def test_pooling_covers_and_is_closer_than_the_raw_values() -> None:
    rng = np.random.default_rng(9)
    hits = raw = pooled = 0.0
    runs, groups = 150, 8
    errors = np.linspace(0.05, 0.5, groups)
    for _ in range(runs):
        true = rng.normal(0.2, 0.2, groups)
        y = true + errors * rng.normal(size=groups)
        found = partially_pool(y, np.diag(errors**2))
        hits += float(np.mean((found.low <= true) & (true <= found.high)))
        raw += float(np.mean((y - true) ** 2))
        pooled += float(np.mean((found.value - true) ** 2))
    assert 0.93 < hits / runs < 0.98
    assert pooled < 0.7 * raw


def test_pooling_refuses_what_it_cannot_do() -> None:
    with pytest.raises(ValueError, match="3 or more"):
        partially_pool([1.0, 2.0], np.eye(2))
    with pytest.raises(ValueError, match="shape"):
        partially_pool([1.0, 2.0, 3.0], np.eye(2))


@given(st.floats(-5, 5), st.integers(0, 2**32 - 1))
@settings(max_examples=25, deadline=None)
def test_pooling_moves_with_the_values_and_stays_among_them(shift: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    y, v = rng.normal(size=5), np.diag(rng.uniform(0.01, 1, 5))
    one, two = partially_pool(y, v), partially_pool(y + shift, v)
    np.testing.assert_allclose(two.value, one.value + shift, atol=1e-6)
    assert np.all(one.value <= y.max() + 1e-9)
    assert np.all(one.value >= y.min() - 1e-9)


@pytest.mark.parametrize("true", [np.ones(8), np.array([1.0, 1.0, 1.0, 1.0, 1.0, 1.2, 1.5, 2.0])])
def test_the_largest_true_ratio_is_covered(true: np.ndarray) -> None:
    """Also when all are equal, where resampling the maximum itself fails."""
    rng = np.random.default_rng(10)
    error = np.linspace(0.05, 0.3, len(true))
    hits = naive = 0
    for _ in range(400):
        values = true * np.exp(error * rng.normal(size=len(true)))
        draws = values * np.exp(error * rng.normal(size=(400, len(true))))
        found = largest_ratio(values, draws)
        hits += found.low <= true.max() <= found.high
        low, high = np.quantile(draws.max(axis=1), [0.025, 0.975])
        naive += low <= true.max() <= high
    assert hits / 400 > 0.93
    if true.max() == true.min():
        assert naive / 400 < 0.5


def test_the_largest_ratio_says_what_it_cannot_do() -> None:
    with pytest.raises(ValueError, match="above zero"):
        largest_ratio(np.array([0.0, 1.0]), np.ones((10, 2)))
    with pytest.raises(ValueError, match="shape"):
        largest_ratio(np.array([1.0]), np.ones((10, 2)))
    lost = np.exp(0.1 * np.random.default_rng(1).normal(size=(1000, 2)))
    lost[:5, 0] = 0.0
    assert largest_ratio(np.array([1.0, 2.0]), lost).low > 0
    lost[:50, 0] = np.nan
    with pytest.raises(ValueError, match="not positive"):
        largest_ratio(np.array([1.0, 2.0]), lost)
