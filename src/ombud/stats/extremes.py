"""The largest of several noisy ratios, without being fooled by having chosen it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ombud.stats.statistics import Floats

__all__ = ["MOST_LOST", "Extreme", "largest_ratio"]

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
