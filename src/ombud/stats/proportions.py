"""Intervals for proportions."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv, ndtri

from ombud.stats.estimate import Estimate
from ombud.stats.statistics import Floats

__all__ = ["Bounds", "exact", "normal_quantile", "proportion", "wilson"]


class Bounds(NamedTuple):
    """Lower and upper ends, as arrays of one shape; NaN where there is no interval."""

    low: Floats
    high: Floats


def normal_quantile(level: float) -> float:
    """Return the normal quantile of a central interval; refuses levels outside (0, 1)."""
    if not 0 < level < 1:
        raise ValueError(f"level is {level}; it must be between 0 and 1")
    return float(ndtri((1 + level) / 2))


def _checked(successes: npt.ArrayLike, n: npt.ArrayLike) -> tuple[Floats, Floats]:
    k, size = np.broadcast_arrays(
        np.asarray(successes, dtype=np.float64), np.asarray(n, dtype=np.float64)
    )
    wrong = (k < 0) | (k > size) | (size < 0)
    if np.any(wrong):
        first = np.argwhere(np.atleast_1d(wrong))[0]
        at = tuple(int(i) for i in first)
        raise ValueError(
            f"{np.count_nonzero(wrong)} counts are not 0 <= successes <= n; the first is "
            f"{np.atleast_1d(k)[at]:g} of {np.atleast_1d(size)[at]:g}"
        )
    return k, size


def wilson(successes: npt.ArrayLike, n: npt.ArrayLike, level: float = 0.95) -> Bounds:
    r"""Return Wilson's score interval.

    .. math:: \frac{\hat p + z^2/2n \pm z\sqrt{\hat p(1-\hat p)/n + z^2/4n^2}}{1 + z^2/n}

    NaN where n is 0. The trials must be independent: clustered trials need a bootstrap.
    Mean coverage is close to the level; for single true values it dips below it.

    References
    ----------
    Wilson (1927), JASA 22, 209-212.

    Examples
    --------
    >>> low, high = wilson(0, 10)
    >>> float(low), round(float(high), 4)
    (0.0, 0.2775)
    """
    k, size = _checked(successes, n)
    z = normal_quantile(level)
    with np.errstate(all="ignore"):
        p = k / size
        centre = (p + z**2 / (2 * size)) / (1 + z**2 / size)
        half = z * np.sqrt(p * (1 - p) / size + z**2 / (4 * size**2)) / (1 + z**2 / size)
        low = np.where(k == 0, 0.0, centre - half)
        high = np.where(k == size, 1.0, centre + half)
    none = size == 0
    return Bounds(np.where(none, np.nan, low), np.where(none, np.nan, high))


def exact(successes: npt.ArrayLike, n: npt.ArrayLike, level: float = 0.95) -> Bounds:
    """Return the exact interval of Clopper and Pearson, which never covers less than the level.

    The ends are quantiles of beta distributions, ``Beta(k, n - k + 1)`` and
    ``Beta(k + 1, n - k)``. NaN where n is 0. It is wider than needed on average.

    References
    ----------
    Clopper and Pearson (1934), Biometrika 26, 404-413.

    Examples
    --------
    >>> low, high = exact(0, 10)
    >>> float(low), round(float(high), 4)
    (0.0, 0.3085)
    """
    k, size = _checked(successes, n)
    normal_quantile(level)
    tail = (1 - level) / 2
    low = np.where(k > 0, betaincinv(np.maximum(k, 1e-300), size - k + 1, tail), 0.0)
    high = np.where(k < size, betaincinv(k + 1, np.maximum(size - k, 1e-300), 1 - tail), 1.0)
    none = size == 0
    return Bounds(np.where(none, np.nan, low), np.where(none, np.nan, high))


def proportion(
    successes: int,
    n: int,
    *,
    metric: str,
    method: Literal["wilson", "exact"] = "wilson",
    level: float = 0.95,
    **about: Any,
) -> Estimate:
    """Return a proportion of independent units as an estimate; undefined without units.

    Examples
    --------
    >>> str(proportion(6, 1023, metric="changed by a swap", unit="pair"))
    'changed by a swap: 0.005865 [0.002691, 0.01274] (95% wilson, n = 1,023 pairs)'
    """
    if n == 0:
        return Estimate.undefined(metric=metric, reason="no units", n=0, level=level, **about)
    low, high = (wilson if method == "wilson" else exact)(successes, n, level)
    name = "wilson" if method == "wilson" else "exact (Clopper-Pearson)"
    return Estimate(
        metric=metric,
        value=successes / n,
        interval=(float(low), float(high)),
        method=name,
        n=n,
        level=level,
        **about,
    )
