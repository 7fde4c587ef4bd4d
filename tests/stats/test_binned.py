"""Sums by bin: what merges, and intervals that cover."""

from __future__ import annotations

import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ombud.data.ids import hash_ids
from ombud.stats.bootstrap.binned import BINS, add_to_bins, bins_of, mixed, resample_bins
from ombud.stats.bootstrap.replicates import Sample
from ombud.stats.bootstrap.resample import resample
from ombud.stats.clustered_rates import (
    RateSums,
    cluster_score_test,
    design_effect,
    intracluster_correlation,
)
from ombud.stats.statistics import Mean, Median, RatioOfSums

WHOLE = os.environ.get("OMBUD_SLOW", "") not in {"", "0"}


def binned(values: np.ndarray, ids: np.ndarray, seed: int = 0) -> np.ndarray:
    sums = np.zeros((BINS, 1, values.shape[1] + 1))
    terms = np.column_stack([values, np.ones(len(values))])
    add_to_bins(sums, bins_of(hash_ids(ids), seed), [np.arange(len(ids))], terms)
    return sums[:, :, None, :]


def test_keys_are_those_of_other_machines():
    """Stored results must not move with a version: these numbers are part of the format."""
    assert [f"{key:x}" for key in hash_ids(["", "a", "user-000123"]).tolist()] == [
        "e220a8397b1dcdaf",
        "5e025f9ade9eaf3e",
        "2bca1fad899c8a46",
    ]
    assert f"{hash_ids([-1])[0]:x}" == "e4d971771b652c20"
    assert hash_ids(np.array([7], np.int32))[0] == hash_ids(np.array([7], np.int64))[0]
    assert (bins_of(mixed(np.arange(9)), 1) != bins_of(mixed(np.arange(9)), 2)).any()


@given(st.lists(st.text(max_size=20), min_size=1, max_size=30))
def test_keys_of_strings_tell_them_apart(ids: list[str]):
    keys = hash_ids(ids)
    assert len(set(keys.tolist())) == len(set(ids))
    assert keys[-1] == hash_ids(ids[-1:])[0]  # whatever stands before it


def test_few_units_are_the_ordinary_bootstrap(rng: np.random.Generator):
    values = rng.gamma(2.0, 1.0, (400, 2))
    drawn = resample_bins(
        binned(values, np.arange(400)), RatioOfSums(), np.array([[400]]), replicates=4000
    )
    plain = resample([Sample(values, RatioOfSums())], replicates=4000, rng=rng)
    assert drawn.point[0, 0] == pytest.approx(plain.point[0, 0], abs=1e-12)
    assert drawn.draws.std() == pytest.approx(plain.draws.std(), rel=0.08)
    ends = np.array([drawn.interval(0).ends, plain.interval(0).ends])
    assert np.abs(np.diff(ends, axis=0)).max() < 0.2 * np.diff(ends[1])


def test_a_median_is_refused():
    with pytest.raises(ValueError, match="no function of sums"):
        resample_bins(np.zeros((BINS, 1, 1, 2)), Median(), np.array([[1]]))  # type: ignore[arg-type]


@pytest.mark.parametrize("n", [60, 3000])
def test_intervals_cover(n: int):
    """Nominal 95%: of 50 (2,000 with OMBUD_SLOW=1) skewed samples."""
    runs = 2000 if WHOLE else 50
    rng = np.random.default_rng(n)
    held = 0
    for run in range(runs):
        values = rng.exponential(size=(n, 1))
        sums = binned(values, np.arange(n), seed=run)
        drawn = resample_bins(sums, Mean(), np.array([[n]]), replicates=200, seed=run)
        low, high = drawn.interval(0).ends
        held += low < 1 < high
    # Four standard errors of the share below and above what the ordinary bootstrap gives.
    error = 4 * np.sqrt(0.94 * 0.06 / runs)
    assert 0.94 - error < held / runs < 0.95 + error


@given(st.integers(0, 2**32), st.integers(2, 40), st.integers(1, 8))
def test_tests_of_clustered_rates_need_sums_alone(seed: int, n: int, clusters: int):
    """The second route: the functions that see every unit."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < 0.4).astype(float)
    x, cluster = rng.random(n) < 0.5, rng.integers(clusters, size=n)
    held = np.stack(
        [
            np.bincount(cluster, weights, minlength=clusters)
            for weights in (y * x, x.astype(float), y, np.ones(n))
        ],
        axis=1,
    )
    whole = held[:, [2, 3, 2, 3]]

    def parts(of_all: float, of_part: float) -> np.ndarray:
        return np.array([[of_all], [of_part]])

    sums = RateSums(
        parts(y.sum(), y[x].sum()),
        parts((y**2).sum(), (y[x] ** 2).sum()),
        parts(n, x.sum()).astype(int),
        parts(0, 0).astype(int),
        parts(0, 0).astype(int),
        np.stack([whole.T @ whole, held.T @ held])[:, None],
        np.array([False]),
    )
    correlation = intracluster_correlation(y, cluster)
    assert sums.correlation(0) == pytest.approx(correlation, abs=1e-9, nan_ok=True)
    assert sums.score(1, 0) == pytest.approx(
        tuple(cluster_score_test(y, x, cluster)), abs=1e-9, nan_ok=True
    )
    if x.any():
        effect = design_effect(y[x], cluster[x], 1.0 if np.isnan(correlation) else correlation)[0]
        assert sums.effect(1, 0) == pytest.approx(effect, abs=1e-9)
