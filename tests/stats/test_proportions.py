from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as reference
from scipy.stats import binom, binomtest, fisher_exact

from ombud.stats import proportion
from ombud.stats.proportions import clustered_proportion, exact, exact_difference, fisher, wilson

METHODS = {"wilson": wilson, "exact": exact}


@pytest.mark.parametrize("method", ["wilson", "exact"])
@pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
def test_ends_equal_scipy(method: str, level: float) -> None:
    k, n = np.array([0, 1, 7, 20, 19, 500]), np.array([20, 20, 20, 20, 20, 1000])
    low, high = METHODS[method](k, n, level)
    for i in range(len(k)):
        theirs = binomtest(int(k[i]), int(n[i])).proportion_ci(level, method=method)
        assert (low[i], high[i]) == pytest.approx((theirs.low, theirs.high), abs=1e-10)


def test_ends_equal_statsmodels() -> None:
    module = pytest.importorskip("statsmodels.stats.proportion")
    for name, theirs in (("wilson", "wilson"), ("exact", "beta")):
        expected = module.proportion_confint(7, 31, method=theirs)
        assert METHODS[name](7, 31) == pytest.approx(expected)


@pytest.mark.simulation
@pytest.mark.parametrize("n", [10, 40, 200])
def test_coverage_is_what_is_claimed(n: int) -> None:
    """No draws are needed: coverage at a true value is a sum of binomial probabilities."""
    truth = np.linspace(0.01, 0.99, 197)[:, None]
    k = np.arange(n + 1)
    chance = binom.pmf(k, n, truth)
    covered = {}
    for name, method in METHODS.items():
        low, high = method(k, n)
        covered[name] = (chance * ((low <= truth) & (truth <= high))).sum(axis=1)
    assert covered["exact"].min() >= 0.95
    assert covered["wilson"].mean() == pytest.approx(0.95, abs=0.012)
    assert covered["wilson"].min() > 0.83


@given(st.integers(0, 60), st.integers(0, 60), st.floats(0.5, 0.99))
def test_properties(a: int, b: int, level: float) -> None:
    k, n = a, a + b
    for method in METHODS.values():
        low, high = (float(end) for end in method(k, n, level))
        if n == 0:
            assert np.isnan(low) and np.isnan(high)
            continue
        assert 0 <= low <= k / n <= high <= 1 and low < high
        mirrored = method(n - k, n, level)
        assert (1 - mirrored.high, 1 - mirrored.low) == pytest.approx((low, high), abs=1e-9)


def test_estimates() -> None:
    assert proportion(0, 0, metric="p").reason == "no units"
    e = proportion(3, 10, metric="p", method="exact", unit="text", level=0.9)
    theirs = binomtest(3, 10).proportion_ci(0.9)
    assert e.interval == pytest.approx((theirs.low, theirs.high))
    assert (e.value, e.n, e.unit, e.method) == (0.3, 10, "text", "exact (Clopper-Pearson)")


def test_impossible_counts_are_refused() -> None:
    with pytest.raises(ValueError, match="2 counts are not .* the first is 5 of 4"):
        wilson([5, 1, -1], [4, 2, 2])
    with pytest.raises(ValueError, match="level is 1"):
        exact(1, 2, 1)


def test_fisher_by_hand_and_where_there_is_nothing() -> None:
    # Lady tasting tea: tables 0 to 4 weigh 1, 16, 36, 16, 1 of 70.
    assert fisher(3, 4, 1, 4) == pytest.approx(34 / 70)
    assert fisher(4, 4, 0, 4) == pytest.approx(2 / 70)
    assert np.isnan(fisher(0, 0, 1, 4))
    with pytest.raises(ValueError, match="successes <= n"):
        fisher(5, 4, 1, 4)


@given(st.integers(1, 40), st.integers(1, 2000), st.data())
def test_fisher_equals_scipy(n: int, m: int, data: st.DataObject) -> None:
    k, j = data.draw(st.integers(0, n)), data.draw(st.integers(0, m))
    theirs = float(fisher_exact([[k, n - k], [j, m - j]])[1])
    assert fisher(k, n, j, m) == pytest.approx(theirs, rel=1e-6, abs=1e-12)
    assert fisher(n - k, n, m - j, m) == pytest.approx(fisher(k, n, j, m), rel=1e-6, abs=1e-12)
    low, high = exact_difference(k, n, j, m)
    assert -1 <= low <= k / n - j / m <= high <= 1
    assert exact_difference(j, m, k, n) == pytest.approx((-high, -low))


def test_counts_that_are_not_whole_are_rounded_towards_equality() -> None:
    assert fisher(5.5, 20, 30.5, 1000) == pytest.approx(fisher(5, 20, 31, 1000))
    assert fisher(0.5, 200, 100.5, 1000) == pytest.approx(fisher(1, 200, 100, 1000))
    assert fisher(1.2, 10, 1.1, 10) == 1.0


@pytest.mark.simulation
@pytest.mark.parametrize("rate", [0.005, 0.02, 0.1])
@pytest.mark.parametrize("n", [12, 60, 300])
def test_few_events_cover_and_do_not_alarm(n: int, rate: float) -> None:
    """No draws for the small part: all its counts, with their binomial probabilities."""
    k = np.arange(min(n, 60) + 1)
    chance = binom.pmf(k, n, rate)
    others = np.random.default_rng(3).binomial(9000, rate, 20)
    covered = alarmed = 0.0
    for j in others:
        ends = [exact_difference(int(i), n, int(j), 9000) for i in k]
        covered += float(sum(c for c, e in zip(chance, ends, strict=True) if e[0] <= 0 <= e[1]))
        alarmed += float(
            sum(c for c, i in zip(chance, k, strict=True) if fisher(int(i), n, int(j), 9000) < 0.05)
        )
    assert covered / len(others) > 0.945
    assert alarmed / len(others) < 0.052


def test_clustered_units_by_hand() -> None:
    """Five clusters of four; all events in one: one event in five units, nearly."""
    events, sizes = np.array([4, 0, 0, 0, 0]), np.full(5, 4)
    found = clustered_proportion(events, sizes, metric="m")
    # d = (3.2^2 + 4 * 0.8^2) / (20 * 0.2 * 0.8) * 5 / 4 = 5; t(19) and t(4) shrink it further.
    effective = 20 / 5 * (reference.t.ppf(0.975, 19) / reference.t.ppf(0.975, 4)) ** 2
    low = reference.beta.ppf(0.025, 0.2 * effective, 0.8 * effective + 1)
    high = reference.beta.ppf(0.975, 0.2 * effective + 1, 0.8 * effective)
    assert found.interval == pytest.approx((low, high))
    assert (found.value, found.n) == (0.2, 20)
    none = clustered_proportion([0, 0, 0], [9, 9, 9], metric="m")
    assert none.interval == pytest.approx(reference.binomtest(0, 3).proportion_ci())
    assert not clustered_proportion([], [], metric="m").is_defined
    one = clustered_proportion([2], [4], metric="m")
    assert one.value == 0.5 and one.interval is not None


@pytest.mark.parametrize("correlated", [0.0, 0.5])
def test_clustered_intervals_cover(correlated: float) -> None:
    """Forty clusters of five: the interval holds the true share in 93% of samples or more."""
    rng = np.random.default_rng(3)
    covered = 0
    for _ in range(600):
        shared = rng.random(40) < 0.2
        own = rng.random((40, 5)) < 0.2
        events = np.where(rng.random((40, 5)) < correlated, shared[:, None], own).sum(axis=1)
        low, high = clustered_proportion(events, np.full(40, 5), metric="m").interval or (1, 0)
        covered += low <= 0.2 <= high
    assert covered >= 0.93 * 600


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=12))
def test_a_clustered_interval_is_no_narrower_than_independent_units(
    pairs: list[tuple[int, int]],
) -> None:
    events, others = np.array(pairs).T
    sizes = events + others
    if not sizes.sum():
        return
    found = clustered_proportion(events, sizes, metric="m")
    low, high = exact(int(events.sum()), int(sizes.sum()))
    assert found.interval is not None
    assert found.interval[0] <= low + 1e-9 and found.interval[1] >= high - 1e-9
