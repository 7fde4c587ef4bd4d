"""Posteriors that no normal density follows: steep slopes at a small spread, polarized lists."""

from __future__ import annotations

import numpy as np
import pytest

from ombud.questions.authors.model._importance import smooth_weights
from ombud.questions.authors.model._kernel import list_integral
from ombud.questions.authors.model.fits import fit_propagation
from ombud.questions.authors.model.priors import Priors


def logistic(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def test_steep_slopes_at_a_small_spread_are_not_cut_off() -> None:
    # Profiles of one to five items. The ends are those of 30,000 weighted points (7,400 effective)
    # from a likelihood of its own, sums over a fixed grid: -0.294 and 0.838 (0.82 to 0.87). NUTS
    # with a tail ESS of 430 gave 1.06; nodes that stay where the mode put them gave 0.31.
    rng = np.random.default_rng(np.random.SeedSequence([20261117, 1354274761, 39]))
    mu, sigma = rng.normal(), rng.exponential()
    b, s = rng.normal(0, 1, 1), rng.normal(0, 1, 1)
    v = rng.exponential(1 / 1.5, 1)
    t = rng.normal(mu, sigma, 100)
    known = rng.integers(1, 6, 100)
    list_known = rng.binomial(50, 0.7, (100, 1))
    x = b + s * t[:, None] + v * rng.standard_normal((100, 1))
    fit = fit_propagation(
        rng.binomial(known, logistic(t)),
        known,
        rng.binomial(list_known, logistic(x)),
        list_known,
        ["a"],
        priors=Priors(
            mean_sd=1.0, intercept_sd=1.0, slope_sd=1.0, spread_rate=1.0, residual_rate=1.5
        ),
        rng=np.random.default_rng(1),
    )
    assert not fit.reason
    low, high = fit.posterior.interval(fit.posterior.slope[:, 0], 0.9)
    assert low == pytest.approx(-0.294, abs=0.1)
    assert high == pytest.approx(0.838, abs=0.2)


@pytest.mark.parametrize(("k", "v"), [(0.0, 20.0), (20.0, 80.0), (7.0, 80.0), (0.0, 0.01)])
@pytest.mark.parametrize("middle", [-150.0, -3.0, 0.0, 200.0])
def test_split_rules_hold_beside_wide_densities(k: float, v: float, middle: float) -> None:
    z = np.linspace(-60, 60, 1_200_001)
    x = middle + v * z
    logs = k * x - 20 * np.logaddexp(0, x) - 0.5 * z * z
    mean = np.exp(logs - logs.max()).sum() * (z[1] - z[0]) / np.sqrt(2 * np.pi)
    plain = logs.max() + np.log(mean)
    one = (np.array([k]), np.array([20.0]), np.array([middle]), v)
    assert list_integral(*one, 20, False, split=True).value[0] == pytest.approx(plain, abs=2e-3)


def test_draws_without_any_weight_are_no_error_and_not_trusted() -> None:
    weights, khat = smooth_weights(np.full(100, -np.inf))
    assert weights.sum() == pytest.approx(1)
    assert khat == np.inf
