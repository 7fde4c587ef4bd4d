from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ombud.stats import cohen_kappa
from ombud.stats.agreement import kappa_error, kappa_estimate

LEVELS = {"none": None, "linear": "linear", "quadratic": "quadratic"}


def test_hand_worked() -> None:
    """Fifty proposals, two readers: 20 yes-yes, 5 yes-no, 10 no-yes, 15 no-no."""
    first = np.repeat([1, 1, 0, 0], [20, 5, 10, 15])
    second = np.repeat([1, 0, 1, 0], [20, 5, 10, 15])
    assert cohen_kappa(first, second) == pytest.approx(0.4)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=30),
    st.sampled_from(list(LEVELS)),
)
def test_equals_sklearn_and_is_symmetric(pairs, weights) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    a, b = np.array(pairs).T
    ours = cohen_kappa(a, b, weights, categories=[0, 1, 2, 3])
    assert cohen_kappa(b, a, weights, [0, 1, 2, 3]) == pytest.approx(ours, nan_ok=True)
    if len(set(a) | set(b)) > 1:
        theirs = metrics.cohen_kappa_score(a, b, labels=[0, 1, 2, 3], weights=LEVELS[weights])
        assert ours == pytest.approx(theirs)
    else:
        assert np.isnan(ours)


@pytest.mark.parametrize("weights", list(LEVELS))
def test_error_equals_statsmodels(weights, rng) -> None:
    module = pytest.importorskip("statsmodels.stats.inter_rater")
    a = rng.integers(0, 4, 200)
    b = np.where(rng.random(200) < 0.5, a, rng.integers(0, 4, 200))
    table = np.zeros((4, 4))
    np.add.at(table, (a, b), 1)
    scheme = {"none": None, "linear": "linear", "quadratic": "fc"}[weights]
    theirs = module.cohens_kappa(table, wt=scheme)
    assert cohen_kappa(a, b, weights) == pytest.approx(theirs.kappa)
    assert kappa_error(a, b, weights) == pytest.approx(theirs.std_kappa)
    e = kappa_estimate(a, b, weights)
    assert e.interval == pytest.approx((theirs.kappa_low, theirs.kappa_upp))
    boot = kappa_estimate(a, b, weights, method="bca", rng=rng)
    assert boot.interval == pytest.approx(e.interval, abs=0.03)


@pytest.mark.simulation
@pytest.mark.parametrize("weights", ["none", "quadratic"])
def test_coverage(weights, rng) -> None:
    def rate(units: int) -> tuple[np.ndarray, np.ndarray]:
        a = rng.choice(3, p=[0.5, 0.3, 0.2], size=units)
        return a, np.where(rng.random(units) < 0.6, a, rng.choice(3, size=units))

    truth = cohen_kappa(*rate(400_000), weights)
    runs = 1500
    ends = []
    for _ in range(runs):
        e = kappa_estimate(*rate(150), weights)
        ends.append(e.interval)
    low, high = np.array(ends).T
    covered = np.mean((low <= truth) & (truth <= high))
    assert covered == pytest.approx(0.95, abs=4 * np.sqrt(0.05 * 0.95 / runs) + 0.01)


def test_undefined_and_missing() -> None:
    nobody = kappa_estimate([np.nan], [1.0])
    assert (nobody.reason, nobody.reason_code) == ("no unit has both ratings", "no-units")
    assert kappa_estimate([1, 1], [1, 1]).reason_code == "no-variation"
    whole = kappa_estimate(["a", "b", None, "a"], ["a", "b", "b", "b"])
    assert whole.n == 3 and whole.value == pytest.approx(cohen_kappa([0, 1, 0], [0, 1, 1]))
    perfect = kappa_estimate([0, 1, 1], [0, 1, 1])
    assert perfect.value == 1 and perfect.interval is None and "not certainty" in perfect.method
    with pytest.raises(ValueError, match="give rng"):
        kappa_estimate([0, 1, 1], [0, 1, 0], method="bca")
    with pytest.raises(ValueError, match="expected 'none'"):
        cohen_kappa([0, 1], [0, 1], "cubic")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="one per unit"):
        cohen_kappa([[0, 1]], [[0, 1]])
