"""Pareto-smoothed weights."""

from __future__ import annotations

import numpy as np
import pytest

from ombud.questions.authors.model._importance import pareto_fit, smooth_weights
from ombud.questions.authors.model.posterior import Posterior, _effective, _in_tails


@pytest.mark.parametrize("shape", [-0.3, 0.2, 0.6, 1.0])
def test_the_shape_of_a_pareto_tail_is_found(shape: float) -> None:
    from scipy.stats import genpareto

    excess = np.sort(genpareto.rvs(shape, scale=2.0, size=20_000, random_state=1))
    k, scale = pareto_fit(excess)
    assert k == pytest.approx(shape, abs=0.04)
    assert scale == pytest.approx(2.0, rel=0.05)


def test_weights_sum_to_one_and_keep_their_order(rng: np.random.Generator) -> None:
    logs = rng.standard_t(4, 2_000)
    weights, k = smooth_weights(logs)
    assert weights.sum() == pytest.approx(1)
    assert np.all(np.diff(weights[np.argsort(logs)]) >= -1e-15)
    assert np.isfinite(k)


def test_equal_weights_stay_equal() -> None:
    weights, k = smooth_weights(np.zeros(500))
    assert np.allclose(weights, 1 / 500)
    assert k == -np.inf


def test_a_heavy_tail_is_seen(rng: np.random.Generator) -> None:
    # Weights of a proposal that is far too narrow have no variance.
    x = rng.normal(0, 1, 4_000)
    assert smooth_weights(0.5 * x**2 * (1 - 1 / 3**2))[1] > 0.7
    assert smooth_weights(0.5 * x**2 * (1 - 1 / 0.9**2))[1] < 0.5


def test_draws_in_the_tails_are_counted_apart() -> None:
    rng = np.random.default_rng(5)
    values = rng.standard_normal(8000)
    plain = np.full(8000, 1 / 8000)
    nothing = np.zeros((8000, 0))
    sets = np.arange(8000) * 4 // 8000

    def tail(weights: np.ndarray) -> float:
        made = Posterior(values, values, nothing, nothing, nothing, weights, sets, ())
        return _in_tails(made, values)

    assert tail(plain) == pytest.approx(8000, rel=0.01)
    from scipy.stats import norm

    # Drawn from a narrower normal, the tails rest on fewer draws than the middle.
    logs = norm.logpdf(values, scale=1.2) - norm.logpdf(values)
    weights = np.exp(logs) / np.exp(logs).sum()
    assert tail(weights) < _effective(values, weights) < 8000
