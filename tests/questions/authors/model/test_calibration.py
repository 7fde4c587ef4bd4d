"""Simulation-based calibration: ranks of the truth among the draws are uniform."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ombud.questions.authors.model.fits import fit_propagation
from ombud.questions.authors.model.priors import Priors

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


@pytest.mark.slow
def test_ranks_are_uniform_in_a_few_worlds(made: Make) -> None:
    found, refused = ranks(made, 18, 40, 1)
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


@pytest.mark.slow
@pytest.mark.simulation
def test_intervals_hold_their_share_of_the_posterior() -> None:
    # The reduced form of benchmarks/propagation_calibration.py: three sets of each regime.
    path = Path(__file__).parents[4] / "benchmarks" / "propagation_calibration.py"
    spec = importlib.util.spec_from_file_location("propagation_calibration", path)
    assert spec is not None and spec.loader is not None
    calibration = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = calibration
    spec.loader.exec_module(calibration)
    held: list[float] = []
    for name in calibration.REGIMES:
        rows = (calibration.one_set(name, number, True) for number in range(30))
        fitted = islice((row for row in rows if "mass" in row and row["ref_ess"] > 200), 3)
        own = [mass for row in fitted for mass in row["mass"]]
        assert own and min(own) > 0.82, name
        held += own
    assert np.mean(held) == pytest.approx(0.9, abs=0.02)
