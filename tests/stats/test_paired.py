from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from ombud.stats import paired_mean_estimate, paired_proportion_estimate
from ombud.stats.paired import PairedCounts, mcnemar, paired_counts, paired_proportion_interval


def test_means_equal_the_paired_t_test(rng) -> None:
    a, b = rng.normal(size=(2, 40))
    b[3] = np.nan
    theirs = scipy_stats.ttest_rel(a, b, nan_policy="omit")
    e = paired_mean_estimate(a, b, metric="d", unit="user")
    assert e.p_value == pytest.approx(theirs.pvalue) and e.n == 39 and e.kind == "gap"
    assert e.interval == pytest.approx(tuple(theirs.confidence_interval()))
    same = paired_mean_estimate([1.0, 2.0], [0.0, 1.0], metric="d")
    assert same.interval is None and same.p_value is None


@pytest.mark.parametrize(("b", "c"), [(0, 0), (2, 10), (7, 7), (0, 6), (30, 51), (4, 3)])
def test_mcnemar_equals_other_routes(b: int, c: int) -> None:
    if b + c:
        expected = scipy_stats.binomtest(b, b + c).pvalue
        assert mcnemar(b, c, "exact") == pytest.approx(expected)
        outcomes = scipy_stats.binom.pmf(np.arange(b + c + 1), b + c, 0.5)
        here = outcomes[b]
        rarer = outcomes[outcomes < here * (1 - 1e-9)].sum()
        equal = outcomes[np.isclose(outcomes, here)].sum()
        assert mcnemar(b, c) == pytest.approx(rarer + equal / 2 if b != c else 1.0)
        module = pytest.importorskip("statsmodels.stats.contingency_tables")
        table = [[10, b], [c, 10]]
        theirs = module.mcnemar(table, exact=False, correction=False).pvalue
        assert mcnemar(b, c, "chi-square") == pytest.approx(theirs)
    else:
        assert [mcnemar(0, 0, m) for m in ("exact", "mid-p", "chi-square")] == [1, 1, 1]


def test_mcnemar_of_many_at_once_and_false_alarms(rng) -> None:
    n = rng.integers(5, 60, size=20_000)
    b = rng.binomial(n, 0.5)
    exact, mid = mcnemar(b, n - b, "exact"), mcnemar(b, n - b)
    error = np.sqrt(0.05 * 0.95 / 20_000)
    assert np.mean(exact <= 0.05) < 0.05
    assert np.mean(exact <= 0.05) < np.mean(mid <= 0.05) < 0.05 + 4 * error
    assert (mid <= exact).all()


def test_interval_against_constrained_score_interval() -> None:
    """Tango's score interval, found by search, is close by in an ordinary table."""
    e, f, g, h = 60, 25, 10, 55
    n = e + f + g + h
    grid = np.linspace(-0.5, 0.5, 20001)
    # Root of the restricted likelihood for the probability of "second only" (Tango 1998).
    a = 2 * n
    b = -f - g + (2 * n - f + g) * grid
    c = -g * grid * (1 - grid)
    q = (np.sqrt(b**2 - 4 * a * c) - b) / (2 * a)
    score = (f - g - n * grid) / np.sqrt(n * (2 * q + grid * (1 - grid)))
    inside = grid[np.abs(score) <= 1.959964]
    found = paired_proportion_interval(PairedCounts(*map(np.asarray, (e, f, g, h))))
    assert (found.low, found.high) == pytest.approx((inside[0], inside[-1]), abs=0.006)


@pytest.mark.simulation
@pytest.mark.parametrize(
    "chance", [(0.5, 0.1, 0.05, 0.35), (0.02, 0.05, 0.01, 0.92), (0.2, 0.3, 0.3, 0.2)]
)
@pytest.mark.parametrize("n", [40, 200])
def test_coverage_of_paired_proportions(chance, n: int, rng) -> None:
    runs = 20_000
    counts = PairedCounts(*rng.multinomial(n, chance, size=runs).T)
    found = paired_proportion_interval(counts)
    truth = chance[1] - chance[2]
    covered = np.mean((found.low <= truth) & (truth <= found.high))
    # With two discordant pairs expected, it is wide rather than wrong.
    rare = n * (chance[1] + chance[2]) < 5
    lowest = 0.95 - 4 * np.sqrt(0.05 * 0.95 / runs) - 0.005
    assert lowest <= covered <= (1.0 if rare else 0.985)


@given(*(st.integers(0, 30),) * 4)
def test_swapping_sides_mirrors(e: int, f: int, g: int, h: int) -> None:
    one = paired_proportion_interval(PairedCounts(*map(np.asarray, (e, f, g, h))))
    two = paired_proportion_interval(PairedCounts(*map(np.asarray, (e, g, f, h))))
    if e + f + g + h == 0:
        assert np.isnan(one.low)
        return
    assert (one.low, one.high) == pytest.approx((-two.high, -two.low))
    assert -1 <= one.low <= one.value <= one.high <= 1 and one.low < one.high
    assert mcnemar(f, g) == mcnemar(g, f)


def test_estimate_and_bad_input() -> None:
    e = paired_proportion_estimate([1, 1, 1, 0, 0, np.nan], [1, 0, 0, 0, 0, 1], metric="d")
    assert e.value == pytest.approx(0.4) and e.n == 5 and e.p_value == pytest.approx(0.25)
    assert paired_proportion_estimate([np.nan], [1], metric="d").reason == "no complete pairs"
    with pytest.raises(ValueError, match="not 0, 1 or NaN; the first is 2"):
        paired_counts([2], [0])
    with pytest.raises(ValueError, match="same units"):
        paired_counts([1], [0, 1])
    with pytest.raises(ValueError, match="zero or more"):
        mcnemar(-1, 2)
