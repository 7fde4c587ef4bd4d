"""Partial pooling: what many noisy numbers say about each other."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp, ndtr

from ombud.stats.statistics import Floats

_GRID = 81


class Pooled(NamedTuple):
    """Pooled values with their ends; `spread` is the posterior mean of the true spread."""

    value: Floats
    low: Floats
    high: Floats
    spread: float


def partially_pool(values: npt.ArrayLike, covariance: npt.ArrayLike, level: float = 0.95) -> Pooled:
    r"""Return each value drawn towards the common centre, the more so the noisier it is.

    .. math:: y \sim N(\theta, V), \qquad \theta_g \sim N(\mu, \tau^2)

    with flat priors on :math:`\mu` and on :math:`\tau`; :math:`\mu` is integrated out exactly and
    :math:`\tau` on a grid, so that not knowing them widens the intervals. V is the covariance
    of the errors, taken as known. Needs three values or more. Values that differ by design (not
    draws from one distribution) are drawn together more than they should be: read them beside
    the raw ones.

    References
    ----------
    Rubin (1981), Journal of Educational Statistics 6, 377-401; Gelman (2006), Bayesian Analysis
    1, 515-534.

    Examples
    --------
    >>> found = partially_pool([0.0, 0.1, 0.0, 1.0], np.diag([0.01, 0.01, 0.01, 1.0]))
    >>> bool(found.value[3] < 0.3), bool(abs(found.value[1] - 0.1) < 0.05)
    (True, True)
    """
    y = np.asarray(values, dtype=np.float64)
    v = np.asarray(covariance, dtype=np.float64)
    if y.ndim != 1 or v.shape != (len(y), len(y)):
        raise ValueError(f"{len(y)} values have a covariance of shape {v.shape}")
    if len(y) < 3:
        raise ValueError(f"{len(y)} values say nothing about their spread; 3 or more are needed")
    noise = float(np.sqrt(np.diag(v).mean()))
    top = 4 * max(float(y.std()), noise) + 1e-12
    # Closer together near zero, where the weight often lies.
    taus = top * np.linspace(0, 1, _GRID) ** 2
    width = np.gradient(taus)
    means, sds, weights = [], [], []
    for tau in taus:
        mean, sd, evidence = _given(y, v, float(tau))
        means.append(mean)
        sds.append(sd)
        weights.append(evidence)
    log_weight = np.array(weights) + np.log(width)
    weight = np.exp(log_weight - logsumexp(log_weight))
    mean, sd = np.array(means), np.array(sds)
    tail = (1 - level) / 2
    ends = [
        [_mixture_quantile(weight, mean[:, g], sd[:, g], share) for g in range(len(y))]
        for share in (tail, 1 - tail)
    ]
    return Pooled(weight @ mean, np.array(ends[0]), np.array(ends[1]), float(weight @ taus))


def _given(y: Floats, v: Floats, tau: float) -> tuple[Floats, Floats, float]:
    """Return posterior means and deviations, and the log evidence, for one spread."""
    n = len(y)
    total = v + (tau**2 + 1e-12 * np.trace(v) / n) * np.eye(n)
    inverse = np.linalg.inv(total)
    ones = np.ones(n)
    precision = float(ones @ inverse @ ones)
    centre = float(ones @ inverse @ y) / precision
    rest = y - centre
    evidence = -0.5 * (
        np.linalg.slogdet(total)[1] + np.log(precision) + float(rest @ inverse @ rest)
    )
    pull = tau**2 * inverse
    mean = centre + pull @ rest
    # What the centre adds: it is estimated, and each value leans on it.
    lean = 1 - pull @ ones
    variance = tau**2 - tau**2 * np.diag(pull) + lean**2 / precision
    return mean, np.sqrt(np.maximum(variance, 1e-24)), float(evidence)


def _mixture_quantile(weight: Floats, mean: Floats, sd: Floats, share: float) -> float:
    from scipy.optimize import brentq  # slow to import, and few audits pool

    low = float(np.min(mean - 10 * sd))
    high = float(np.max(mean + 10 * sd))
    return float(brentq(lambda x: float(weight @ ndtr((x - mean) / sd)) - share, low, high))
