"""Intervals for means of independent units."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

from ombud.stats.estimate import Estimate
from ombud.stats.proportions import normal_quantile
from ombud.stats.statistics import Floats


class Located(NamedTuple):
    """Centres with their ends, one per column.

    `low` and `high` are NaN where `n` units are too few or show no spread.
    """

    value: Floats
    low: Floats
    high: Floats
    n: npt.NDArray[np.int64]


def _columns(values: npt.ArrayLike) -> Floats:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim not in (1, 2):
        raise ValueError(f"values have {array.ndim} dimensions; expected (units,) or (units, k)")
    return array


def mean_interval(values: npt.ArrayLike, level: float = 0.95) -> Located:
    r"""Return means with Student's t interval, :math:`\bar x \pm t\, s / \sqrt n`.

    Values are (units,) or (units, columns); NaN units are left out of their column. There are
    no ends with fewer than two units, or when all units have the same value, since agreement
    is not certainty. For skewed values or few units the bootstrap or a median says more.

    Examples
    --------
    >>> found = mean_interval([1.0, 2.0, 3.0, 4.0])
    >>> float(found.value), round(float(found.low), 3), round(float(found.high), 3)
    (2.5, 0.446, 4.554)
    """
    x = _columns(values)
    normal_quantile(level)
    known = ~np.isnan(x)
    n = np.asarray(np.count_nonzero(known, axis=0), dtype=np.int64)
    with np.errstate(all="ignore"):
        mean = np.asarray(np.where(known, x, 0.0).sum(axis=0) / n)
        squares = np.asarray((np.where(known, x - mean, 0.0) ** 2).sum(axis=0))
        error = np.sqrt(squares / (n - 1) / n)
        half = np.where(n > 1, stdtrit(np.maximum(n - 1, 1), (1 + level) / 2) * error, np.nan)
    half = np.where(half > 1e-14 * np.abs(mean), half, np.nan)
    return Located(mean, mean - half, mean + half, n)


def mean_estimate(
    values: npt.ArrayLike, *, metric: str, level: float = 0.95, **about: Any
) -> Estimate:
    """Return the mean of independent units with its t interval as an estimate.

    Examples
    --------
    >>> mean_estimate([1.0, 1.0], metric="m").method
    'none: all 2 units have the same value, which is not certainty'
    """
    result = mean_interval(np.ravel(np.asarray(values, dtype=np.float64)), level)
    n = int(result.n)
    if n == 0:
        return Estimate.undefined(
            reason_code="no-units", metric=metric, reason="no units", n=0, level=level, **about
        )
    ends, method = (float(result.low), float(result.high)), "t"
    if np.isnan(ends[0]):
        method = (
            "none: one independent unit shows no spread"
            if n == 1
            else f"none: all {n} units have the same value, which is not certainty"
        )
    return Estimate(
        metric=metric,
        value=float(result.value),
        interval=None if np.isnan(ends[0]) else ends,
        method=method,
        n=n,
        level=level,
        **about,
    )
