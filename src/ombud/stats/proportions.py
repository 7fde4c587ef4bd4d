"""Intervals for proportions."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv, gammaln, ndtri, stdtrit

from ombud.stats.estimate import Estimate
from ombud.stats.statistics import Floats

# Tables as likely as the one found, up to rounding, count as no less likely.
_TIE = 1e-7


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


def exact_difference(
    successes: float, n: float, other_successes: float, other_n: float, level: float = 0.95
) -> tuple[float, float]:
    r"""Return an interval for the difference of two independent proportions with few events.

    .. math:: d - \sqrt{(p_1 - l_1)^2 + (u_2 - p_2)^2}, \qquad
              d + \sqrt{(u_1 - p_1)^2 + (p_2 - l_2)^2}

    Newcombe's combination of the intervals of the two proportions, here the exact ones of Clopper
    and Pearson: so no events in one part are not taken for certainty. Wider than needed on
    average. NaN where a part has no units. Units must be independent. Counts need not be whole:
    units that lie between 0 and 1 spread less than the interval allows for.

    References
    ----------
    Newcombe (1998a), Statistics in Medicine 17, 873-890.

    Examples
    --------
    >>> low, high = exact_difference(0, 12, 190, 9500)
    >>> round(low, 4), round(high, 4)
    (-0.023, 0.2447)
    """
    if n == 0 or other_n == 0:
        return float("nan"), float("nan")
    one, other = successes / n, other_successes / other_n
    low, high = (float(end) for end in exact(successes, n, level))
    other_low, other_high = (float(end) for end in exact(other_successes, other_n, level))
    down = np.hypot(one - low, other_high - other)
    up = np.hypot(high - one, other - other_low)
    return float(one - other - down), float(one - other + up)


def fisher(successes: float, n: int, other_successes: float, other_n: int) -> float:
    """Return the two-sided p-value of Fisher's exact test that two proportions are equal.

    The probability, with both margins fixed, of a table that is no more likely than the one found.
    It never alarms more often than it says, and less often with few events. Units must be
    independent. Counts that are not whole are rounded towards equality, so the value is rather
    too large. NaN where a part has no units.

    References
    ----------
    Fisher (1935), Journal of the Royal Statistical Society 98, 39-54.

    Examples
    --------
    >>> round(fisher(3, 4, 1, 4), 4)
    0.4857
    >>> round(fisher(0, 12, 190, 9500), 4)
    1.0
    """
    _checked([successes, other_successes], [n, other_n])
    if n == 0 or other_n == 0:
        return float("nan")
    above = successes * other_n > other_successes * n
    k = int(np.floor(successes) if above else np.ceil(successes))
    other_k = int(np.ceil(other_successes) if above else np.floor(other_successes))
    if above != (k * other_n > other_k * n):
        return 1.0
    total = k + other_k
    some = np.arange(max(0, total - other_n), min(n, total) + 1, dtype=np.float64)
    logs = _log_choose(n, some) + _log_choose(other_n, total - some)
    chance = np.exp(logs - logs.max())
    here = chance[k - int(some[0])]
    return float(min(1.0, chance[chance <= here * (1 + _TIE)].sum() / chance.sum()))


def _log_choose(n: float, k: Floats) -> Floats:
    return np.asarray(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1))


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
        return Estimate.undefined(
            reason_code="no-units", metric=metric, reason="no units", n=0, level=level, **about
        )
    about.setdefault("events", int(successes))
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


def clustered_proportion(
    events: npt.ArrayLike, sizes: npt.ArrayLike, *, metric: str, level: float = 0.95, **about: Any
) -> Estimate:
    r"""Return a proportion of units that share clusters, with an exact interval for fewer units.

    The interval of Korn and Graubard: that of Clopper and Pearson for :math:`n^* = n / d` units,
    where d is how many times as large the variance is as that of independent units,

    .. math:: d = \max\left(1, \frac{\sum_c (e_c - p n_c)^2}{n p (1 - p)} \frac{G}{G - 1}\right)
              \left(\frac{t_{G - 1}}{t_{n - 1}}\right)^2

    and no more than n. Without any spread (no event, or nothing else) the data do not show d; then
    each of the G clusters counts as one unit. Undefined without units.

    `events` and `sizes` are the numbers of events and of units in each cluster.

    References
    ----------
    Korn and Graubard (1998), Confidence intervals for proportions with small expected number of
    positive counts estimated from survey data, Survey Methodology 24, 193-201.

    Examples
    --------
    >>> found = clustered_proportion([4, 0, 0, 0, 0], [4, 4, 4, 4, 4], metric="fails")
    >>> round(found.value, 2), [round(end, 3) for end in found.interval]
    (0.2, [0.0, 0.901])
    """
    counts, n_c = np.asarray(events, dtype=np.float64), np.asarray(sizes, dtype=np.float64)
    counts, n_c = counts[n_c > 0], n_c[n_c > 0]
    n, clusters, successes = float(n_c.sum()), len(n_c), float(counts.sum())
    if not clusters:
        return proportion(0, 0, metric=metric, level=level, **about)
    share = successes / n
    effective = float(clusters)
    if clusters > 1 and 0 < successes < n:
        spread = float(np.sum((counts - share * n_c) ** 2)) * clusters / (clusters - 1)
        effect = max(spread / (n * share * (1 - share)), 1.0)
        tail = (1 + level) / 2
        ratio = float(stdtrit(n - 1, tail) / stdtrit(clusters - 1, tail))
        effective = min(n / effect * ratio**2, n)
    low, high = exact(share * effective, effective, level)
    about.setdefault("events", int(successes))
    return Estimate(
        metric=metric,
        value=share,
        interval=(float(low), float(high)),
        method="exact for clustered units (Korn-Graubard)",
        n=int(n),
        level=level,
        **about,
    )
