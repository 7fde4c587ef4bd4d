"""Two measurements on the same units: differences, their intervals and their tests."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import bdtr, chdtrc, stdtr, stdtrit

from ombud.stats.estimate import Estimate
from ombud.stats.means import mean_estimate
from ombud.stats.proportions import wilson
from ombud.stats.statistics import Floats


class PairedCounts(NamedTuple):
    """How often both, only the first, only the second, and neither happened."""

    both: npt.NDArray[np.int64]
    first: npt.NDArray[np.int64]
    second: npt.NDArray[np.int64]
    neither: npt.NDArray[np.int64]


def _pair(first: npt.ArrayLike, second: npt.ArrayLike) -> tuple[Floats, Floats]:
    a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if a.shape != b.shape:
        raise ValueError(f"pairs have shapes {a.shape} and {b.shape}; expected the same units")
    return a, b


def paired_counts(first: npt.ArrayLike, second: npt.ArrayLike) -> PairedCounts:
    """Count the four outcomes of pairs of 0 and 1; pairs with NaN are left out.

    Examples
    --------
    >>> [int(count) for count in paired_counts([1, 1, 0, 0], [1, 0, 0, np.nan])]
    [1, 1, 0, 1]
    """
    a, b = _pair(first, second)
    for side in (a, b):
        other = side[~np.isnan(side) & (side != 0) & (side != 1)]
        if len(other):
            raise ValueError(f"{len(other)} values are not 0, 1 or NaN; the first is {other[0]}")
    return PairedCounts(
        *(
            np.asarray(np.count_nonzero((a == x) & (b == y), axis=0), dtype=np.int64)
            for x, y in ((1, 1), (1, 0), (0, 1), (0, 0))
        )
    )


def mcnemar(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    method: Literal["exact", "mid-p", "chi-square"] = "mid-p",
) -> Floats:
    r"""Return McNemar's two-sided p-value from the discordant counts.

    Given :math:`b + c` discordant pairs, each side has probability one half. ``"exact"`` doubles
    the smaller binomial tail (and stops at 1), ``"mid-p"`` counts half of the observed outcome's
    probability, ``"chi-square"`` refers :math:`(b-c)^2/(b+c)` to one degree of freedom. Without
    discordant pairs the p-value is 1. It says nothing about the size of a change.

    Parameters
    ----------
    first, second
        Pairs in which only the first, and only the second, happened; arrays of one shape.
    method
        See above; mid-p is close to its level, exact stays below it.

    References
    ----------
    McNemar (1947), Psychometrika 12, 153-157; Fagerland et al. (2013), BMC Med Res Meth 13:91.

    Examples
    --------
    >>> round(float(mcnemar(2, 10, "exact")), 4), round(float(mcnemar(2, 10)), 4)
    (0.0386, 0.0225)
    """
    b, c = (np.asarray(a, dtype=np.int64) for a in np.broadcast_arrays(first, second))
    if np.any(b < 0) or np.any(c < 0):
        raise ValueError("discordant counts must be zero or more")
    n, least = b + c, np.minimum(b, c)
    with np.errstate(all="ignore"):
        if method == "chi-square":
            p = chdtrc(1, (b - c) ** 2 / n)
        else:
            tail = bdtr(least.astype(np.float64), n, 0.5)
            p = 2 * tail
            if method == "mid-p":
                here = tail - np.where(
                    least > 0, bdtr(np.maximum(least - 1, 0).astype(np.float64), n, 0.5), 0.0
                )
                # At b = c half of the observed outcome belongs to each tail, which makes 1.
                p = np.where(b == c, 1.0, 2 * tail - here)
    return np.asarray(np.where(n == 0, 1.0, np.minimum(p, 1.0)))


class _Difference(NamedTuple):
    value: Floats
    low: Floats
    high: Floats


def paired_proportion_interval(counts: PairedCounts, level: float = 0.95) -> _Difference:
    r"""Return the difference of two paired proportions with Newcombe's interval.

    Wilson's ends of the two proportions are joined by "square and add", with the correlation
    :math:`\hat\phi` of the pairs (continuity corrected when positive): method 10 of Newcombe. NaN
    without pairs. It has positive width even when no pair is discordant.

    References
    ----------
    Newcombe (1998b), Statistics in Medicine 17, 2635-2650.

    Examples
    --------
    >>> found = paired_proportion_interval(PairedCounts(*map(np.asarray, (36, 12, 2, 0))))
    >>> [round(float(x), 4) for x in found]
    [0.2, 0.0569, 0.3404]
    """
    e, f, g, h = (np.asarray(count, dtype=np.float64) for count in counts)
    n = e + f + g + h
    with np.errstate(all="ignore"):
        one, two = (e + f) / n, (e + g) / n
        low1, high1 = wilson(e + f, n, level)
        low2, high2 = wilson(e + g, n, level)
        cross = e * h - f * g
        cross = np.where(cross > 0, np.maximum(cross - n / 2, 0.0), cross)
        margins = (e + f) * (g + h) * (e + g) * (f + h)
        phi = np.where(margins > 0, cross / np.sqrt(margins), 0.0)
        d = one - two

        def side(a: Floats, b: Floats) -> Floats:
            return np.asarray(np.sqrt(np.maximum(a**2 - 2 * phi * a * b + b**2, 0.0)))

        low = d - side(one - low1, high2 - two)
        high = d + side(high1 - one, two - low2)
    return _Difference(np.asarray(d), low, high)


def paired_mean_estimate(
    first: npt.ArrayLike, second: npt.ArrayLike, *, metric: str, level: float = 0.95, **about: Any
) -> Estimate:
    """Return the mean paired difference as an estimate of a gap, tested by the paired t test."""
    a, b = _pair(first, second)
    result = mean_estimate(
        a - b, metric=metric, level=level, **({"kind": "gap", "null": 0.0} | about)
    )
    if result.interval is None or result.value is None or result.null is None:
        return result
    half = (result.interval[1] - result.interval[0]) / 2
    error = half / stdtrit(result.n - 1, (1 + level) / 2)
    t = abs(result.value - result.null) / error
    return result.replace(p_value=float(2 * stdtr(result.n - 1, -t)))


def paired_proportion_estimate(
    first: npt.ArrayLike, second: npt.ArrayLike, *, metric: str, level: float = 0.95, **about: Any
) -> Estimate:
    """Return the difference of two paired proportions, with McNemar's mid-p."""
    counts = paired_counts(first, second)
    n = int(sum(int(count) for count in counts))
    named: dict[str, Any] = {"kind": "gap", "null": 0.0, "level": level}
    about = named | about
    if n == 0:
        return Estimate.undefined(
            reason_code="no-units", metric=metric, reason="no complete pairs", n=0, **about
        )
    d, low, high = paired_proportion_interval(counts, level)
    return Estimate(
        metric=metric,
        value=float(d),
        interval=(float(low), float(high)),
        method="Newcombe paired",
        n=n,
        p_value=float(mcnemar(counts.first, counts.second)),
        **about,
    )
