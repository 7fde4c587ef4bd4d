"""Intervals for means and medians of independent units."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import bdtr, stdtrit

from ombud.stats.estimate import Estimate
from ombud.stats.proportions import normal_quantile
from ombud.stats.statistics import Floats


class Located(NamedTuple):
    """Centres with their ends, one per column.

    `low` and `high` are NaN where `n` units are too few or show no spread; `coverage` is the
    level that the interval has (for medians more than was asked for).
    """

    value: Floats
    low: Floats
    high: Floats
    n: npt.NDArray[np.int64]
    coverage: Floats


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
    return Located(mean, mean - half, mean + half, n, np.full(n.shape, level))


def _median_rank(n: int, level: float) -> int:
    """Return the largest k such that the k-th from both ends cover the median; 0 if none."""
    tail = (1 - level) / 2
    ranks = np.arange(0, n // 2 + 1)
    # The k-th smallest lies above the median when fewer than k of n coins fall below it.
    return int(np.count_nonzero(bdtr(ranks.astype(np.float64), n, 0.5) <= tail))


def median_interval(values: npt.ArrayLike, level: float = 0.95) -> Located:
    """Return medians with the exact interval between two order statistics.

    The ends are the k-th smallest and k-th largest unit, with the largest k for which the
    binomial distribution leaves at most ``(1 - level) / 2`` on each side; this covers at least
    `level` for any distribution of independent units. Six units are the fewest at 95 %.
    Without enough units there are no ends.

    References
    ----------
    David and Nagaraja (2003), *Order Statistics*, section 7.1.

    Examples
    --------
    >>> found = median_interval([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    >>> float(found.value), float(found.low), float(found.high), float(found.coverage)
    (3.5, 1.0, 6.0, 0.96875)
    """
    array = _columns(values)
    normal_quantile(level)
    x = array[:, None] if array.ndim == 1 else array
    ordered = np.sort(x, axis=0)
    columns = x.shape[1]
    n = np.count_nonzero(~np.isnan(x), axis=0)
    value, low, high, coverage = (np.full(columns, np.nan) for _ in range(4))
    for size in np.unique(n[n > 0]):
        some = np.flatnonzero(n == size)
        value[some] = (ordered[(size - 1) // 2, some] + ordered[size // 2, some]) / 2
        k = _median_rank(int(size), level)
        if k:
            low[some], high[some] = ordered[k - 1, some], ordered[size - k, some]
            coverage[some] = 1 - 2 * bdtr(float(k - 1), int(size), 0.5)
    shape = array.shape[1:]
    return Located(
        value.reshape(shape),
        low.reshape(shape),
        high.reshape(shape),
        n.astype(np.int64).reshape(shape),
        coverage.reshape(shape),
    )


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


def median_estimate(
    values: npt.ArrayLike, *, metric: str, level: float = 0.95, **about: Any
) -> Estimate:
    """Return the median of independent units with its order-statistic interval.

    An interval whose two ends are equal is kept out, and the method says why.

    Examples
    --------
    >>> median_estimate([1.0, 2.0], metric="m").method
    'none: 2 units are too few for a 95% interval of a median'
    """
    result = median_interval(np.ravel(np.asarray(values, dtype=np.float64)), level)
    n = int(result.n)
    if n == 0:
        return Estimate.undefined(
            reason_code="no-units", metric=metric, reason="no units", n=0, level=level, **about
        )
    low, high = float(result.low), float(result.high)
    method = f"order statistics (covers {float(result.coverage):.1%})"
    ends: tuple[float, float] | None = (low, high)
    if np.isnan(low):
        ends, method = None, f"none: {n} units are too few for a {level:.0%} interval of a median"
    elif low == high:
        ends, method = None, "none: the units around the median all have the same value"
    return Estimate(
        metric=metric,
        value=float(result.value),
        interval=ends,
        method=method,
        n=n,
        level=level,
        **about,
    )
