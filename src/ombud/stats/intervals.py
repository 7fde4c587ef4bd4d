"""Intervals, and how replicates become one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri, stdtrit

from ombud.stats.statistics import Floats

Method = Literal["bca", "expanded", "percentile"]

_NAMES = {
    "bca": "BCa bootstrap",
    "expanded": "expanded percentile bootstrap",
    "percentile": "percentile bootstrap",
}
_FALLBACK = "percentile bootstrap (BCa undefined)"
# Ends closer than this, relative to their size, differ by rounding only.
_SAME = 1e-12
_COLUMNS_AT_ONCE = 4096


@dataclass(frozen=True, slots=True)
class Interval:
    """An interval, or the reason why there is none."""

    # The ends; NaN without an interval.
    low: float
    high: float
    method: str  # how it was made; ``"none: <why>"`` without one
    undefined: int = 0  # in how many replicates the statistic did not exist
    reason: str = ""  # why there is no interval; empty otherwise

    @property
    def ends(self) -> tuple[float, float] | None:
        """Both ends, or None without an interval."""
        return None if self.reason else (self.low, self.high)


@dataclass(frozen=True, slots=True)
class Intervals:
    """Many intervals as arrays of one shape; `at` gives one of them.

    `low` and `high` are NaN where `reason` is not empty.
    """

    low: Floats
    high: Floats
    undefined: npt.NDArray[np.int64]
    method: npt.NDArray[np.object_]
    reason: npt.NDArray[np.object_]

    def at(self, *index: int) -> Interval:
        """Return the interval at an index."""
        return Interval(
            float(self.low[index]),
            float(self.high[index]),
            str(self.method[index]),
            int(self.undefined[index]),
            str(self.reason[index]),
        )


def _at_shares(ordered: Floats, defined: npt.NDArray[np.int64], shares: Floats) -> Floats:
    """Interpolate each sorted column at its own share of its defined replicates."""
    position = shares * np.maximum(defined - 1, 0)
    below = np.floor(position).astype(np.int64)
    above = np.minimum(below + 1, np.maximum(defined - 1, 0))
    column = np.arange(ordered.shape[1])
    low = ordered[below, column]
    part = position - below
    # Without this a step from one value to the same value could round to another.
    return np.where(part > 0, low + part * (ordered[above, column] - low), low)


def _bca_shares(z0: Floats, acceleration: Floats, level: float) -> tuple[Floats, Floats]:
    def share(z: float) -> Floats:
        return np.asarray(ndtr(z0 + (z0 + z) / (1 - acceleration * (z0 + z))))

    z = float(ndtri((1 + level) / 2))
    return share(-z), share(z)


def _expanded_tail(least: npt.NDArray[np.int64], tail: float) -> Floats:
    n = np.maximum(least, 2).astype(np.float64)
    return np.asarray(ndtr(np.sqrt(n / (n - 1)) * stdtrit(n - 1, tail)))


def intervals_of_draws(
    draws: Floats,
    point: Floats,
    n: npt.NDArray[np.int64],
    *,
    level: float,
    acceleration: Floats | None = None,
    least: npt.NDArray[np.int64] | None = None,
) -> Intervals:
    """Turn replicates into intervals, one per column.

    Parameters
    ----------
    draws
        Replicates, shape (replicates, columns); NaN where undefined.
    point
        The statistic itself, shape (columns,).
    n
        Independent units behind each column.
    level
        Coverage to aim at.
    acceleration
        For BCa intervals (Efron 1987), NaN where undefined; None for percentile intervals.
    least
        For expanded percentile intervals (Hesterberg 2015), the units of the smallest part;
        they are widened by what a t interval of so many units is wider than a normal one.

    Notes
    -----
    There is no interval, and a reason instead, when the statistic is undefined, when fewer than
    two units stand behind it, when more than half of the replicates are undefined, and when both
    ends would be the same number: units that all agree show no spread, which is not certainty.
    """
    if not 0 < level < 1:
        raise ValueError(f"level is {level}; it must be between 0 and 1")
    columns = draws.shape[1]
    low, high = np.full(columns, np.nan), np.full(columns, np.nan)
    undefined = np.zeros(columns, dtype=np.int64)
    corrected = np.zeros(columns, dtype=np.bool_)
    tail = (1 - level) / 2
    for start in range(0, columns, _COLUMNS_AT_ONCE):
        part = slice(start, start + _COLUMNS_AT_ONCE)
        ordered = np.sort(draws[:, part], axis=0)
        defined = np.count_nonzero(~np.isnan(ordered), axis=0)
        undefined[part] = len(draws) - defined
        shares_low = np.full(len(defined), tail)
        shares_high = np.full(len(defined), 1 - tail)
        if least is not None:
            shares_low = _expanded_tail(least[part], tail)
            shares_high = 1 - shares_low
        if acceleration is not None:
            centre, a = point[part], acceleration[part]
            with np.errstate(all="ignore"):
                below = np.count_nonzero(ordered < centre, axis=0)
                equal = np.count_nonzero(ordered == centre, axis=0)
                z0 = ndtri((below + equal / 2) / defined)
                bca_low, bca_high = _bca_shares(z0, a, level)
            usable = np.isfinite(z0) & np.isfinite(a) & (bca_low < bca_high)
            shares_low = np.where(usable, bca_low, shares_low)
            shares_high = np.where(usable, bca_high, shares_high)
            corrected[part] = usable
        low[part] = _at_shares(ordered, defined, shares_low)
        high[part] = _at_shares(ordered, defined, shares_high)
    method = np.full(columns, _NAMES["percentile"], dtype=object)
    if least is not None:
        method[:] = _NAMES["expanded"]
    if acceleration is not None:
        method[:] = np.where(corrected, _NAMES["bca"], _FALLBACK)
    reason = _reasons(low, high, point, n, undefined, len(draws))
    none = reason != ""
    low[none] = high[none] = np.nan
    method[none] = [f"none: {why}" for why in reason[none]]
    return Intervals(low, high, undefined, method, reason)


def _reasons(
    low: Floats,
    high: Floats,
    point: Floats,
    n: npt.NDArray[np.int64],
    undefined: npt.NDArray[np.int64],
    replicates: int,
) -> npt.NDArray[np.object_]:
    reason = np.full(len(point), "", dtype=object)
    size = np.maximum(np.abs(low), np.abs(high))
    with np.errstate(invalid="ignore"):
        same = ~(high - low > _SAME * size)
    for column in np.flatnonzero(same | np.isnan(point) | (n < 2) | (2 * undefined > replicates)):
        if n[column] == 0:
            why = "no unit contributes"
        elif np.isnan(point[column]):
            why = "the statistic is undefined on these units"
        elif n[column] == 1:
            why = "one independent unit shows no spread"
        elif 2 * undefined[column] > replicates:
            why = f"undefined in {undefined[column]} of {replicates} replicates"
        else:
            why = f"no spread between replicates of {n[column]} units, which is not certainty"
        reason[column] = why
    return reason
