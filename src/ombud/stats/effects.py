"""How far two sets of units stand apart: mean difference and rank-based effect size."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit, stdtrit

from ombud.stats.proportions import normal_quantile
from ombud.stats.statistics import Floats


class Effect(NamedTuple):
    """A value with its ends; NaN ends where there is no interval."""

    value: float
    low: float
    high: float


def welch(first: Floats, second: Floats, level: float = 0.95) -> Effect:
    """Return the mean of first minus the mean of second, with Welch's t interval.

    No ends with fewer than two units on a side or without any spread. For heavy-tailed values
    read `cliffs_delta` beside it.

    References
    ----------
    Welch (1947), Biometrika 34, 28-35.

    Examples
    --------
    >>> [round(x, 2) for x in welch(np.array([1.0, 2, 3, 4]), np.array([0.0, 1, 2]))]
    [1.5, -0.73, 3.73]
    """
    normal_quantile(level)
    if not len(first) or not len(second):
        return Effect(float("nan"), float("nan"), float("nan"))
    d = float(first.mean() - second.mean())
    if min(len(first), len(second)) < 2:
        return Effect(d, float("nan"), float("nan"))
    parts = [float(side.var(ddof=1) / len(side)) for side in (first, second)]
    variance = sum(parts)
    if not variance > 1e-28 * max(abs(first.mean()), abs(second.mean())) ** 2:
        return Effect(d, float("nan"), float("nan"))
    df = variance**2 / sum(
        part**2 / (len(side) - 1) for part, side in zip(parts, (first, second), strict=True)
    )
    half = float(stdtrit(df, (1 + level) / 2)) * np.sqrt(variance)
    return Effect(d, float(d - half), float(d + half))


def cliffs_delta(first: Floats, second: Floats, level: float = 0.95) -> Effect:
    r"""Return Cliff's delta: how much more often first beats second than the other way round.

    :math:`\delta = P(X > Y) - P(X < Y) = 2\,\mathrm{AUC} - 1`, over all pairs. The interval is
    DeLong's variance of the AUC on the logit scale. No ends when one side has fewer than two
    units or the sides do not overlap at all. It sees order only, not distance.

    References
    ----------
    Cliff (1993), Psychological Bulletin 114, 494-509; DeLong et al. (1988), Biometrics 44,
    837-845.

    Examples
    --------
    >>> cliffs_delta(np.array([2.0, 3.0]), np.array([1.0, 2.0])).value
    0.75
    """
    n, m = len(first), len(second)
    both = np.concatenate([first, second])
    if not n or not m or np.isnan(both).any():
        normal_quantile(level)
        return Effect(float("nan"), float("nan"), float("nan"))
    levels, codes = np.unique(both, return_inverse=True)
    return cliffs_delta_of_codes(codes[:n], codes[n:], len(levels), level)


def cliffs_delta_of_codes(
    first: NDArray[np.integer[Any]],
    second: NDArray[np.integer[Any]],
    levels: int,
    level: float = 0.95,
) -> Effect:
    """Return Cliff's delta of values that are given as their places among all distinct values.

    One sort of all values serves any number of comparisons among them.

    `first` and `second` hold, for each unit, the index of its value among the `levels` sorted
    distinct values; neither is empty.
    """
    z = normal_quantile(level)
    n, m = len(first), len(second)
    beats, beaten = _shares_beaten(first, second, levels)
    area = float(beats.mean())
    delta = 2 * area - 1
    if min(n, m) < 2 or not 0 < area < 1:
        return Effect(delta, float("nan"), float("nan"))
    error = np.sqrt(beats.var(ddof=1) / n + beaten.var(ddof=1) / m)
    if not error > 0:
        return Effect(delta, float("nan"), float("nan"))
    half = z * error / (area * (1 - area))
    low, high = expit(logit(area) - half), expit(logit(area) + half)
    return Effect(delta, float(2 * low - 1), float(2 * high - 1))


def _shares_beaten(
    first: NDArray[np.integer[Any]], second: NDArray[np.integer[Any]], levels: int
) -> tuple[Floats, Floats]:
    """Return the share of second that each of first beats, and of first that beats each of second.

    Ties count half.
    """
    beats = _share_below(np.bincount(second, minlength=levels), first)
    return beats, 1 - _share_below(np.bincount(first, minlength=levels), second)


def _share_below(counts: NDArray[np.int64], codes: NDArray[np.integer[Any]]) -> Floats:
    """Return the share of counted values below each code, ties half."""
    below = counts.cumsum()
    result: Floats = (below[codes] - counts[codes] / 2) / below[-1]
    return result
