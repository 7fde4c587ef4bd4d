from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from ombud.stats.effects import cliffs_delta, welch
from ombud.stats.permutation import _shifted_sums, label_tests, sign_flip_test


def brute_p(yes: np.ndarray, no: np.ndarray) -> float:
    both = np.r_[yes, no]
    observed = abs(yes.mean() - no.mean())
    found = []
    for chosen in combinations(range(len(both)), len(yes)):
        mask = np.isin(np.arange(len(both)), chosen)
        found.append(abs(both[mask].mean() - both[~mask].mean()) >= observed - 1e-9)
    return float(np.mean(found))


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.sampled_from([0.1, 0.2, 0.3, 0.7, 1.1]), min_size=1, max_size=4),
    st.lists(st.sampled_from([0.1, 0.2, 0.3, 0.7, 1.1]), min_size=1, max_size=5),
)
def test_small_cases_are_enumerated_with_ties(yes: list[float], no: list[float]) -> None:
    values = np.array([*yes, *no, 99.0])
    states = np.r_[np.ones(len(yes)), np.zeros(len(no)), -1].astype(int)
    found = label_tests(values, states, rng=np.random.default_rng(0))
    assert found.exact[0] and found.unknown[0] == 1
    assert found.p[0] == pytest.approx(brute_p(np.array(yes), np.array(no)))


@pytest.mark.parametrize(("n", "k"), [(60, 20), (500, 30), (30_000, 900)])
def test_drawn_p_values_agree_with_scipy_and_the_normal_limit(n: int, k: int, rng) -> None:
    values = rng.gamma(2, 1, size=n)
    values[:k] += 1.9 * np.sqrt(2 / k)
    states = (np.arange(n) < k).astype(int)
    found = label_tests(values, states, rng=rng)
    assert not found.exact[0] and found.permutations[0] == 10_000
    if n < 1000:
        theirs = scipy_stats.permutation_test(
            (values[:k], values[k:]),
            lambda x, y, axis: np.abs(x.mean(axis) - y.mean(axis)),
            # scipy's own two-sided p-value doubles a tail, which is another test when skewed.
            alternative="greater",
            n_resamples=10_000,
            vectorized=True,
            rng=1,
        ).pvalue
    else:
        theirs = scipy_stats.ttest_ind(values[:k], values[k:]).pvalue
    error = np.sqrt(2 * theirs * (1 - theirs) / 10_000)
    assert found.p[0] == pytest.approx(theirs, abs=4 * error + 0.003)


def test_each_label_permutes_its_own_known_items_alone(rng) -> None:
    n = 400
    values = rng.normal(size=n)
    states = rng.choice([-1, 0, 1], size=(n, 3), p=[0.4, 0.4, 0.2])
    values[7] = np.nan
    together = label_tests(values, states, rng=np.random.default_rng(5))
    for label in range(3):
        known = (states[:, label] >= 0) & ~np.isnan(values)
        alone = label_tests(values[known], states[known, label], rng=np.random.default_rng(9))
        assert together.difference[label] == pytest.approx(alone.difference[0])
        assert together.p[label] == pytest.approx(alone.p[0], abs=0.03)
        assert together.unknown[label] == n - known.sum()
        assert together.yes[label] + together.no[label] == known.sum()


def test_shifts_have_the_moments_of_random_choices(rng) -> None:
    both = rng.pareto(2.5, size=300)
    both -= both.mean()
    k = 40
    sums = np.concatenate([_shifted_sums(both, k, 10_000, rng, exact_near=0.0) for _ in range(5)])
    variance = k * (300 - k) / 299 * np.mean(both**2)
    assert sums.mean() == pytest.approx(0, abs=5 * np.sqrt(variance / 50_000))
    assert sums.var() == pytest.approx(variance, rel=0.05)
    plain = np.array([rng.permutation(both)[:k].sum() for _ in range(10_000)])
    assert scipy_stats.ks_2samp(sums, plain).pvalue > 1e-3


def test_monte_carlo_error_is_not_above_the_binomial(rng) -> None:
    both = rng.normal(size=700)
    both -= both.mean()
    threshold = 2 * np.sqrt(50 * 650 / 699 * np.mean(both**2))
    drawn = [_shifted_sums(both, 50, 1000, rng, exact_near=threshold) for _ in range(400)]
    p = np.array([np.mean(np.abs(sums) >= threshold) for sums in drawn])
    binomial = np.sqrt(p.mean() * (1 - p.mean()) / 1000)
    # The standard deviation of 400 runs is known to about one part in 28.
    assert p.std() < binomial * (1 + 4 / 28)


@pytest.mark.simulation
def test_false_alarms_at_the_nominal_rate(rng) -> None:
    """Heavy-tailed values, small groups, many unknown; every run is a new data set."""
    runs, n = 2000, 60
    p = np.empty(runs)
    for run in range(runs):
        states = rng.choice([-1, 0, 1], size=n, p=[0.3, 0.5, 0.2])
        p[run] = label_tests(rng.pareto(1.2, size=n), states, permutations=199, rng=rng).p[0]
    for level in (0.01, 0.05, 0.2):
        error = np.sqrt(level * (1 - level) / runs)
        assert np.mean(p <= level) == pytest.approx(level, abs=4 * error)


def test_labels_without_two_sides_are_said(rng) -> None:
    states = np.array([[1, 0, -1], [1, 0, -1], [-1, 0, -1]])
    found = label_tests([1.0, 2.0, 3.0], states, rng=rng)
    assert found.reason.tolist() == [
        "no item is known to be without it",
        "no item is known to be with it",
        "no item is known to be with it",
    ]
    assert np.isnan(found.p).all() and np.isnan(found.difference).all()


@pytest.mark.parametrize(
    ("values", "states", "message"),
    [([1.0], [[1], [0]], "share the items"), ([1.0, 2.0], [2, 0], "must be 1")],
)
def test_wrong_input(values, states, message: str, rng) -> None:
    with pytest.raises(ValueError, match=message):
        label_tests(values, states, rng=rng)
    with pytest.raises(ValueError, match="at least 1"):
        label_tests([1.0, 2.0], [1, 0], permutations=0, rng=rng)


def test_adding_a_label_changes_no_other(rng) -> None:
    values = rng.normal(size=200)
    states = rng.integers(0, 2, size=(200, 3))
    three = label_tests(values, states, permutations=500, rng=np.random.default_rng(2))
    two = label_tests(values, states[:, :2], permutations=500, rng=np.random.default_rng(2))
    np.testing.assert_array_equal(three.p[:2], two.p)


def test_sign_flips_equal_enumeration_and_scipy(rng) -> None:
    x = np.round(rng.normal(0.5, 1, size=9), 1)
    brute = np.mean([abs(np.dot(s, x)) >= abs(x.sum()) - 1e-9 for s in product((-1, 1), repeat=9)])
    table = np.column_stack([x, rng.normal(0.2, 1, size=9)])
    table = np.vstack([table, np.full((40, 2), np.nan)])
    table[9:, 1] = rng.normal(0.3, 1, size=40)
    found = sign_flip_test(table, rng=rng)
    assert found.exact.tolist() == [True, False] and found.n.tolist() == [9, 49]
    assert found.p[0] == pytest.approx(brute)
    theirs = scipy_stats.permutation_test(
        (table[:, 1],),
        lambda x, axis: x.mean(axis),
        permutation_type="samples",
        n_resamples=10_000,
        vectorized=True,
        rng=1,
    ).pvalue
    assert found.p[1] == pytest.approx(theirs, abs=0.03)
    assert sign_flip_test([np.nan], rng=rng).reason[0] == "no units"
    assert sign_flip_test([0.0, 0.0], rng=rng).p[0] == 1


@pytest.mark.simulation
def test_sign_flip_false_alarms(rng) -> None:
    runs = 4000
    # The signs are shared by all columns, so columns must be few per call to be independent.
    p = np.concatenate(
        [
            sign_flip_test(rng.standard_t(2, size=(40, 20)), permutations=199, rng=rng).p
            for _ in range(runs // 20)
        ]
    )
    for level in (0.05, 0.2):
        error = np.sqrt(level * (1 - level) / runs)
        assert np.mean(p <= level) == pytest.approx(level, abs=5 * error)


def test_effects_of_all_labels_equal_those_of_each_alone(rng) -> None:
    values = np.round(rng.normal(size=300), 1)
    values[rng.random(300) < 0.1] = np.nan
    states = rng.choice([1, 0, -1], size=(300, 12))
    found = label_tests(values, states, permutations=10, rng=rng)
    valued = ~np.isnan(values)
    for w in range(12):
        yes, no = (values[valued & (states[:, w] == state)] for state in (1, 0))
        assert (found.delta[w], found.delta_low[w], found.delta_high[w]) == cliffs_delta(yes, no)
        assert (found.difference[w], found.low[w], found.high[w]) == welch(yes, no)


@pytest.mark.parametrize("values", ["distinct", "tied"])
@pytest.mark.parametrize("n", [64, 97, 101, 1000, 1009])
def test_sums_of_shifts_equal_a_loop_for_smooth_and_prime_lengths(n: int, values: str) -> None:
    both, k, drawn = np.random.default_rng(n).normal(size=n), n // 3, 2 * n
    both = 1e60 * (both if values == "distinct" else np.round(both / 3))
    near = abs(both[:k].sum())
    sums = _shifted_sums(both, k, drawn, np.random.default_rng(5), exact_near=near)
    # The same draws, in the order in which the function makes them.
    rng = np.random.default_rng(5)
    order = rng.permutation(n)
    taken = np.sort(1 + rng.choice(4 * n - 1, size=drawn, replace=False))
    rows = rng.permuted(np.tile(both, (4, 1)), axis=1)
    rows[0] = both[order]
    want = np.array([np.roll(rows[at // n], -(at % n))[order < k].sum() for at in taken])
    assert np.allclose(sums, want, rtol=0, atol=1e54 * n)
    close = np.abs(np.abs(want) - near) < 1e53 * n
    assert close.any() == (values == "tied")
    assert np.allclose(sums[close], want[close], rtol=0, atol=1e48 * n)
    assert np.array_equal(np.abs(sums) >= near - 1e48 * n, np.abs(want) >= near - 1e48 * n)
