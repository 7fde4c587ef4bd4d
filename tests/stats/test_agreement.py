from __future__ import annotations

import csv
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ombud.stats import Sample, krippendorff_alpha, resample
from ombud.stats.agreement import alpha_estimate, alpha_sample, codes

NAN = np.nan
# Krippendorff (2011), section C: four observers, twelve units, missing values.
PUBLISHED = np.array(
    [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, NAN, NAN, NAN],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, NAN, 3],
        [NAN, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, NAN],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, NAN],
    ]
).T


@pytest.mark.parametrize(
    ("measurement", "expected"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)]
)
def test_published_example(measurement, expected: float) -> None:
    assert krippendorff_alpha(PUBLISHED, measurement) == pytest.approx(expected, abs=0.0005)


def test_published_binary_and_nominal_examples_without_missing_values() -> None:
    """Krippendorff (2011), sections A and B: two observers."""
    a = [0, 1, 0, 0, 0, 0, 0, 0, 1, 0]
    b = [1, 1, 1, 0, 0, 1, 0, 0, 0, 0]
    assert krippendorff_alpha(np.array([a, b]).T) == pytest.approx(0.095, abs=0.0005)
    second = ["b", "a", "b", "b", "b", "c", "c", "c", "e", "d", "d", "d"]
    first = ["a", "a", "b", "b", "d", "c", "c", "c", "e", "d", "d", "a"]
    assert krippendorff_alpha(np.array([first, second]).T) == pytest.approx(0.692, abs=0.0005)


def brute(ratings: np.ndarray, measurement: str) -> float:
    """Pairs one by one, from the definition."""
    units = [row[~np.isnan(row)] for row in ratings]
    units = [row for row in units if len(row) > 1]
    pooled = np.concatenate(units)

    def distance(c: float, k: float) -> float:
        if measurement == "nominal":
            return float(c != k)
        if measurement == "interval":
            return (c - k) ** 2
        low, high = min(c, k), max(c, k)
        between = np.sum((pooled >= low) & (pooled <= high))
        return (between - (np.sum(pooled == c) + np.sum(pooled == k)) / 2) ** 2

    n = len(pooled)
    observed = (
        sum(sum(distance(c, k) for c, k in permutations(row, 2)) / (len(row) - 1) for row in units)
        / n
    )
    expected = sum(distance(c, k) for c, k in permutations(pooled, 2)) / (n * (n - 1))
    return 1 - observed / expected if expected else NAN


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.lists(st.sampled_from([1.0, 2.0, 4.0, 5.0, NAN]), min_size=3, max_size=3),
        min_size=2,
        max_size=8,
    ),
    st.sampled_from(["nominal", "ordinal", "interval"]),
    st.randoms(use_true_random=False),
)
def test_equals_brute_force_and_does_not_depend_on_order(rows, measurement, random) -> None:
    ratings = np.array(rows)
    if (np.count_nonzero(~np.isnan(ratings), axis=1) < 2).all():
        assert np.isnan(krippendorff_alpha(ratings, measurement))
        return
    ours = krippendorff_alpha(ratings, measurement)
    assert ours == pytest.approx(brute(ratings, measurement), nan_ok=True, abs=1e-9)
    shuffled = ratings[random.sample(range(len(ratings)), len(ratings))][:, [2, 0, 1]]
    assert krippendorff_alpha(shuffled, measurement) == pytest.approx(ours, nan_ok=True)
    if measurement != "nominal":
        scaled = krippendorff_alpha(10 * ratings + 1e6, measurement)
        assert scaled == pytest.approx(ours, nan_ok=True, abs=1e-6)


def test_replicates_are_alpha_of_repeated_units(rng) -> None:
    ratings = rng.integers(0, 4, size=(25, 3)).astype(float)
    ratings[rng.random((25, 3)) < 0.2] = NAN
    weights = rng.multinomial(25, np.full(25, 1 / 25), size=15).astype(float)
    for measurement in ("nominal", "ordinal", "interval"):
        values, statistic = alpha_sample(ratings, measurement)
        repeated = [
            krippendorff_alpha(np.repeat(ratings, w.astype(int), axis=0), measurement)
            for w in weights
        ]
        np.testing.assert_allclose(statistic.replicates(values, weights), repeated)


@pytest.mark.simulation
@pytest.mark.parametrize("measurement", ["nominal", "ordinal", "interval"])
def test_coverage_over_units(measurement, rng) -> None:
    """Raters see a true value with noise; the truth is alpha of a very large sample."""

    def rate(units: int) -> np.ndarray:
        noisy = rng.normal(size=(units, 1)) + 0.6 * rng.normal(size=(units, 3))
        ratings = np.digitize(noisy, [-1.0, 0.0, 1.0]).astype(float)
        ratings[rng.random((units, 3)) < 0.1] = NAN
        return ratings

    truth = krippendorff_alpha(rate(400_000), measurement)
    runs, units = 600, 80
    samples = []
    for _ in range(runs):
        values, statistic = alpha_sample(rate(units), measurement, [0.0, 1.0, 2.0, 3.0])
        samples.append(Sample(values, statistic))
    found = resample(samples, replicates=1000, rng=rng).intervals()
    covered = np.mean((found.low <= truth) & (truth <= found.high))
    # Four binomial errors of the simulation, and two points for 80 units.
    assert covered == pytest.approx(0.95, abs=4 * np.sqrt(0.05 * 0.95 / runs) + 0.02)


def test_undefined_is_said(rng) -> None:
    for measurement in ("nominal", "ordinal", "interval"):
        assert np.isnan(krippendorff_alpha([[1, 1], [1, 1]], measurement))
    alone = alpha_estimate([[1, NAN], [NAN, 2]], rng=rng)
    assert alone.reason == "no unit has two ratings" and alone.n == 0
    equal = alpha_estimate([[3.3, 3.3], [3.3, 3.3]], "interval", rng=rng)
    assert equal.reason == "all ratings are equal, so nothing could disagree"
    perfect = alpha_estimate([[1, 1], [2, 2], [1, 1], [2, 2]], rng=rng)
    assert perfect.value == 1 and perfect.interval is None
    e = alpha_estimate(PUBLISHED, "ordinal", rng=rng, unit="unit")
    assert e.n == 11 and e.metric == "Krippendorff's alpha (ordinal)" and e.interval is not None
    with pytest.raises(ValueError, match="expected nominal"):
        krippendorff_alpha(PUBLISHED, "ratio")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="units, raters"):
        krippendorff_alpha([1, 2])


def test_codes_of_words_with_a_given_order() -> None:
    ratings = [["low", "high"], [None, "mid"], ["high", "high"], ["mid", "low"]]
    code, names = codes(ratings, ["low", "mid", "high"])
    assert names == ["low", "mid", "high"] and np.isnan(code[1, 0]) and code[0, 1] == 2
    numbers = [[0, 2], [NAN, 1], [2, 2], [1, 0]]
    given_order = krippendorff_alpha(ratings, "ordinal", ["low", "mid", "high"])
    assert given_order == pytest.approx(krippendorff_alpha(numbers, "ordinal"))
    with pytest.raises(ValueError, match="1 categories not expected; the first: 'mid'"):
        codes(ratings, ["low", "high"])


@pytest.mark.realdata
def test_three_raters_of_passages(realdata, rng) -> None:
    """Alpha of binary ratings without gaps is a function of two rates, worked out apart."""
    with open(realdata / "passage-annotations" / "annotations.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    votes = np.array([[float(row[f"rater_{r}"]) for r in (1, 2, 3)] for row in rows])
    n = votes.size
    yes = votes.sum(axis=1)
    disagreeing = np.sum(2 * yes * (3 - yes) / 2) / n
    share = votes.mean()
    expected = 1 - disagreeing / (2 * share * (1 - share) * n / (n - 1))
    e = alpha_estimate(votes, metric="alpha", unit="passage", rng=rng, replicates=500)
    assert e.value == pytest.approx(expected) and e.n == len(rows) == 4135
    assert e.interval is not None and e.interval[0] < e.value < e.interval[1]
    clustered = alpha_estimate(
        votes,
        metric="alpha",
        unit="work",
        clusters=np.array([row["work"] for row in rows]),
        rng=rng,
        replicates=500,
    )
    assert clustered.n == len({row["work"] for row in rows})
    assert clustered.value == pytest.approx(e.value)
