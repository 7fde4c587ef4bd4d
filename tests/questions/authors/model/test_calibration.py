"""Simulation-based calibration: ranks of the truth among the draws are uniform."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ombud.questions.authors.model import Priors, fit_propagation

Make = Callable[..., Any]
PRIORS = Priors(mean_sd=0.8, intercept_sd=0.6, slope_sd=0.8, spread_rate=1.0, residual_rate=1.5)


def ranks(made: Make, worlds: int, users: int, seed: int) -> tuple[np.ndarray, int]:
    """Return worlds x parameters: how much of the posterior lies below the truth.

    Worlds that are refused, or without spread, are left out: whether they are depends on the data
    alone, and given the data the rank is uniform.
    """
    found, refused = [], 0
    # Each world has a source of its own, so that it stays the same when a fit draws more or less.
    for rng in np.random.default_rng(seed).spawn(worlds):
        mu, b, s = rng.normal(0, [PRIORS.mean_sd, PRIORS.intercept_sd, PRIORS.slope_sd])
        sigma, v = rng.exponential([1 / PRIORS.spread_rate, 1 / PRIORS.residual_rate])
        counts = made(rng, users, mu=mu, sigma=sigma, b=(b,), s=(s,), v=(v,))
        fit = fit_propagation(**counts, systems=["a"], priors=PRIORS, draws=2048, rng=rng)
        if fit.reason:
            refused += "converge" in fit.reason
            continue
        truth = np.array([mu, sigma, b, s, v])
        draws = np.stack(list(fit.posterior.columns().values()), axis=1)
        found.append(fit.posterior.weights @ (draws < truth))
    return np.array(found), refused


def worst(found: np.ndarray) -> float:
    """Return the largest Kolmogorov-Smirnov distance times the root of n, over parameters."""
    n = len(found)
    steps = np.arange(1, n + 1)[:, None] / n
    ordered = np.sort(found, axis=0)
    distance = np.maximum(steps - ordered, ordered - steps + 1 / n).max()
    return float(distance * np.sqrt(n))


def test_ranks_are_uniform_in_a_few_worlds(made: Make) -> None:
    found, refused = ranks(made, 18, 60, 1)
    assert refused <= 2
    assert len(found) >= 12
    # 2.0 is passed by chance once in 600 times five parameters.
    assert worst(found) < 2.0


@pytest.mark.slow
@pytest.mark.simulation
@pytest.mark.parametrize("users", [40, 400])
def test_ranks_are_uniform_in_many_worlds(made: Make, users: int) -> None:
    found, refused = ranks(made, 300, users, 20261115)
    assert refused <= 6
    assert worst(found) < 1.9
    inside = (found > 0.05) & (found < 0.95)
    assert inside.mean() == pytest.approx(0.9, abs=0.03)
