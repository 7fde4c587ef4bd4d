"""The largest of several noisy ratios or gaps, without being fooled by having chosen it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ombud.stats.statistics import Floats

MOST_LOST = 0.01
"""A ratio with a larger share of replicates that are zero or undefined cannot be ranked."""


class Extreme(NamedTuple):
    """The largest ratio: which one it is, its value, and ends for the largest true ratio."""

    place: int
    value: float
    low: float
    high: float


def largest_ratio(values: Floats, draws: Floats, level: float = 0.95) -> Extreme:
    r"""Return the largest of several ratios and an interval for the largest *true* ratio.

    The observed maximum of noisy ratios is too high on average, and resampling it repeats the
    error. So all ratios get a simultaneous band :math:`\hat\theta_g e^{\pm c s_g}`, where
    :math:`s_g` is the bootstrap standard error of the log ratio and c the quantile of
    :math:`\max_g |\log(\theta^*_g / \hat\theta_g)| / s_g` over joint replicates. When all bands
    hold their true ratio, the largest true ratio lies between the highest lower end and the
    highest upper end. The interval covers at least as often as its level; it is wide when many
    groups are alike.

    Parameters
    ----------
    values
        The ratios, all positive.
    draws
        Their joint replicates, shape (replicates, ratios). Of each ratio at most one in a hundred
        may be zero or undefined; those are left out.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> draws = np.exp(rng.normal([0.0, 0.7], 0.1, size=(2000, 2)))
    >>> found = largest_ratio(np.array([1.0, 2.0]), draws)
    >>> found.place, bool(1.5 < found.low < 2 < found.high < 2.6)
    (1, True)
    """
    if values.ndim != 1 or draws.shape[1:] != values.shape or not len(values):
        raise ValueError(f"{values.shape} ratios have draws of shape {draws.shape}")
    if not np.all(values > 0):
        raise ValueError("every ratio must be above zero to have a logarithm")
    with np.errstate(all="ignore"):
        logs = np.log(draws) - np.log(values)
    lost = ~np.isfinite(logs)
    if np.any(lost.mean(axis=0) > MOST_LOST):
        raise ValueError(f"more than {MOST_LOST:.0%} of the replicates of a ratio are not positive")
    logs[lost] = np.nan
    error = np.nanstd(logs, axis=0, ddof=1)
    with np.errstate(all="ignore"):
        distance = np.abs(logs) / error
    furthest = np.sort(np.nan_to_num(distance).max(axis=1))
    c = furthest[min(len(furthest) - 1, int(np.ceil(level * len(furthest))) - 1)]
    low, high = values * np.exp(-c * error), values * np.exp(c * error)
    return Extreme(int(values.argmax()), float(values.max()), float(low.max()), float(high.max()))


class Range(NamedTuple):
    """The gap between the largest and the smallest value.

    `high` and `low` are the places of the two, `ends` the interval for the largest *true* gap, `p`
    the p-value of *all are alike*, and `by_chance` the gap that is expected when they are.
    """

    high: int
    low: int
    value: float
    ends: tuple[float, float]
    p: float
    by_chance: float


def largest_gap(values: Floats, draws: Floats, level: float = 0.95) -> Range:
    r"""Return the largest minus the smallest value, with an interval for the largest *true* gap.

    The observed range of noisy values is too wide on average, and resampling it repeats the error:
    a percentile interval of it would never hold 0. So every pair gets a simultaneous band
    :math:`\hat d_{ij} \pm c s_{ij}`, where :math:`s_{ij}` is the bootstrap standard error of the
    difference and c the quantile of :math:`\max_{ij} |d^*_{ij} - \hat d_{ij}| / s_{ij}` over joint
    replicates. When all bands hold their true difference, the largest true gap lies between the
    highest lower end (or 0) and the highest upper end. The interval covers at least as often as its
    level; the estimate itself stays the observed range, and `by_chance` says how large that would
    be were all true values alike.

    Parameters
    ----------
    values
        The values, two or more.
    draws
        Their joint replicates, shape (replicates, values). Of each value at most one in a hundred
        may be undefined; those replicates are left out.
    level
        Coverage aimed at.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> draws = rng.normal([0.0, 0.1, 1.0], 0.1, size=(2000, 3))
    >>> found = largest_gap(np.array([0.0, 0.1, 1.0]), draws)
    >>> found.high, found.low, bool(0.6 < found.ends[0] < 1 < found.ends[1] < 1.4)
    (2, 0, True)
    """
    if values.ndim != 1 or draws.shape[1:] != values.shape or len(values) < 2:
        raise ValueError(f"{values.shape} values have draws of shape {draws.shape}")
    whole = np.isfinite(draws).all(axis=1)
    if not np.isfinite(values).all() or 1 - whole.mean() > MOST_LOST:
        raise ValueError(f"more than {MOST_LOST:.0%} of the replicates of a value are undefined")
    noise = draws[whole] - values
    one, other = np.triu_indices(len(values), 1)
    distance = np.abs(values[one] - values[other])
    off = np.abs(noise[:, one] - noise[:, other])
    error = np.sqrt(np.square(off).sum(axis=0) / max(1, len(off) - 1))
    with np.errstate(all="ignore"):
        furthest = np.sort(np.nan_to_num(off / error).max(axis=1))
        seen = float(np.nan_to_num(distance / error).max())
    c = furthest[min(len(furthest) - 1, int(np.ceil(level * len(furthest))) - 1)]
    ends = (max(0.0, float((distance - c * error).max())), float((distance + c * error).max()))
    beyond = int(np.count_nonzero(furthest >= seen))
    return Range(
        high=int(values.argmax()),
        low=int(values.argmin()),
        value=float(values.max() - values.min()),
        ends=ends,
        p=(beyond + 1) / (len(furthest) + 1),
        by_chance=float(np.mean(noise.max(axis=1) - noise.min(axis=1))),
    )
