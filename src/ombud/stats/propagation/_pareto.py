"""Importance weights: their tail, smoothed and measured (Pareto-smoothed importance sampling)."""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp

from ombud.stats.statistics import Floats

__all__ = ["pareto_fit", "smooth_weights"]


def pareto_fit(excess: Floats) -> tuple[float, float]:
    """Return shape and scale of a generalised Pareto distribution (Zhang and Stephens, 2009).

    Parameters
    ----------
    excess
        Sorted excesses over the threshold, positive.

    Examples
    --------
    >>> k, scale = pareto_fit(-np.log1p(-(np.arange(1000) + 0.5) / 1000))
    >>> abs(round(k, 1)), round(scale, 1)
    (0.0, 1.0)
    """
    n = len(excess)
    points = 30 + int(np.sqrt(n))
    quarter = excess[int(n / 4 + 0.5) - 1]
    theta = 1 - np.sqrt(points / (np.arange(1, points + 1) - 0.5))
    theta = theta / (3 * quarter) + 1 / excess[-1]
    shape = np.log1p(-theta[:, None] * excess).mean(axis=1)
    profile = n * (np.log(-theta / shape) - shape - 1)
    weights = np.exp(profile - logsumexp(profile))
    best = float(weights @ theta)
    k = float(np.log1p(-best * excess).mean())
    scale = -k / best
    # Pulled towards 1/2 as if by ten more values, as PSIS does.
    return (n * k + 5) / (n + 10), scale


def smooth_weights(logs: Floats) -> tuple[Floats, float]:
    """Return normalised weights with a smoothed tail, and the tail's shape k-hat.

    k-hat below 0.7 means that the weighted means can be trusted.

    Parameters
    ----------
    logs
        Logarithms of the raw weights; -inf where a weight is zero.

    References
    ----------
    Vehtari, Simpson, Gelman, Yao and Gabry (2024), Pareto smoothed importance sampling, JMLR.
    """
    logs = logs - logs.max()
    n = len(logs)
    tail = int(np.ceil(min(0.2 * n, 3 * np.sqrt(n))))
    order = np.argsort(logs, kind="stable")
    largest = order[n - tail :]
    cut = max(logs[order[n - tail - 1]], np.log(np.finfo(float).tiny))
    excess = np.exp(logs[largest]) - np.exp(cut)
    if tail < 5 or excess[0] <= 0 or excess[-1] - excess[0] < 1e-12:
        k = -np.inf if tail >= 5 and excess[-1] < 1e-12 else np.inf
    else:
        k, scale = pareto_fit(excess)
        share = (np.arange(tail) + 0.5) / tail
        quantile = (
            -scale * np.log1p(-share)
            if abs(k) < 1e-9
            else scale * np.expm1(-k * np.log1p(-share)) / k
        )
        logs = logs.copy()
        logs[largest] = np.minimum(np.log(np.exp(cut) + quantile), 0.0)
    return np.exp(logs - logsumexp(logs)), k
