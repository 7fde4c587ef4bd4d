"""Ratios of two correlated means or rates, with intervals on the log scale."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import betainc

from ombud.stats.estimate import Estimate
from ombud.stats.proportions import normal_quantile, wilson
from ombud.stats.statistics import Floats

Against = Literal["whole", "complement"]


class Ratios(NamedTuple):
    """Ratios with their ends, as arrays of one shape.

    `ratio` is NaN where undefined, `low` and `high` where there is no interval; `adjusted` marks
    ratios of zero, whose upper end comes from counts with one half added.
    """

    ratio: Floats
    low: Floats
    high: Floats
    adjusted: npt.NDArray[np.bool_]


def _log_variance(
    events: Floats, n: Floats, whole_events: Floats, whole_n: Floats, against: Against
) -> Floats:
    """Return the variance of the log ratio from the four kinds of unit."""
    rest_events, rest_n = whole_events - events, whole_n - n
    if against == "complement":
        return 1 / events - 1 / n + 1 / rest_events - 1 / rest_n
    event, other = -1 / whole_events + 1 / whole_n, 1 / whole_n
    return np.asarray(
        events * (1 / events - 1 / n + event) ** 2
        + (n - events) * (-1 / n + other) ** 2
        + rest_events * event**2
        + (rest_n - rest_events) * other**2
    )


def rate_ratio(
    events: npt.ArrayLike,
    n: npt.ArrayLike,
    whole_events: npt.ArrayLike,
    whole_n: npt.ArrayLike,
    level: float = 0.95,
    against: Against = "whole",
) -> Ratios:
    r"""Return the rate of a group over the rate of the whole it is part of, or of the rest.

    .. math:: \theta = \frac{e/n}{E/N}, \qquad \theta e^{\pm z s}

    where :math:`s^2` is the delta-method variance of :math:`\log\theta` with the covariance of
    part and whole (or Katz's independent form against the complement). Units are independent
    trials. Undefined when n is 0 or there is no event to compare with. A group without events
    has ratio 0 and the interval from 0 to the upper end with one half event added to each part
    (Walter 1975), marked in `adjusted`. There is no interval when every unit has the event.
    The ratio does not show how rare events are: read it beside the rates.

    References
    ----------
    Katz et al. (1978), Biometrics 34, 469-474; Walter (1975), Biometrika 62, 371-374.

    Examples
    --------
    >>> found = rate_ratio(30, 100, 100, 1000)
    >>> round(float(found.ratio), 2), round(float(found.low), 2), round(float(found.high), 2)
    (3.0, 2.3, 3.91)
    """
    e, size, all_e, all_n = (
        np.asarray(a, dtype=np.float64)
        for a in np.broadcast_arrays(events, n, whole_events, whole_n)
    )
    wrong = (e < 0) | (e > size) | (all_e - e < 0) | (all_e - e > all_n - size)
    if np.any(wrong):
        raise ValueError(
            f"{np.count_nonzero(wrong)} groups have more events than units, or more than the whole"
        )
    z = normal_quantile(level)
    with np.errstate(all="ignore"):
        other = all_e / all_n if against == "whole" else (all_e - e) / (all_n - size)
        ratio = (e / size) / other
        ratio = np.where(np.isfinite(ratio), ratio, np.nan)
        spread = z * np.sqrt(_log_variance(e, size, all_e, all_n, against))
        low, high = ratio * np.exp(-spread), ratio * np.exp(spread)
        adjusted = ratio == 0
        # Half an event in the group, and against the complement half a one there too.
        more = 0.5 if against == "whole" else 1.0
        half = (e + 0.5, size + 0.5, all_e + more, all_n + more)
        other_half = (
            half[2] / half[3] if against == "whole" else (half[2] - half[0]) / (half[3] - half[1])
        )
        top = np.sqrt(_log_variance(*half, against))
        upper = half[0] / half[1] / other_half * np.exp(z * top)
    low = np.where(adjusted, 0.0, low)
    high = np.where(adjusted, upper, high)
    none = ~(high > low) | ~np.isfinite(high)
    return Ratios(ratio, np.where(none, np.nan, low), np.where(none, np.nan, high), adjusted)


def truncated_rate(
    events: float, n: float, least: float, level: float = 0.95
) -> tuple[float, float]:
    r"""Return the exact interval of a rate that is only looked at with at least `least` events.

    .. math:: P(X \ge x \mid X \ge m; p_{low}) = P(X \le x \mid X \ge m; p_{high}) = \alpha/2

    The interval of Clopper and Pearson, for a binomial that is truncated below m. With just m
    events, the lower end is 0: any rate gives at least m events to those who see no others.

    Examples
    --------
    >>> truncated_rate(5, 15, 5)[0]
    0.0
    >>> low, high = truncated_rate(9, 15, 1)  # hardly truncated: Clopper and Pearson
    >>> round(low, 3), round(high, 3)
    (0.323, 0.837)
    """
    if not 0 < least <= events <= n:
        raise ValueError(f"{events:g} of {n:g} units have an event; expected {least:g} or more")
    tail = (1 - level) / 2

    def at_least(count: float, p: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        return np.asarray(betainc(count, n - count + 1, p) if count <= n else 0.0 * p)

    def crossing(rises: bool) -> float:
        low, high = 0.0, 1.0
        for _ in range(60):
            p = np.asarray((low + high) / 2)
            seen = float(at_least(least, p))
            more = float(at_least(events if rises else events + 1, p))
            share = 0.0 if not seen else (more if rises else seen - more) / seen
            share = share if seen or rises else 1.0
            low, high = (float(p), high) if (share < tail) == rises else (low, float(p))
        return (low + high) / 2

    bottom = 0.0 if events == least else crossing(True)
    return bottom, 1.0 if events == n else crossing(False)


def selected_rate_ratio(
    units: tuple[float, float, float],
    rest: tuple[float, float],
    *,
    share: float | None,
    rate: float,
    spread: float = 0.0,
    level: float = 0.95,
) -> tuple[float, float]:
    r"""Return the interval of a ratio that is only given with enough events in the group.

    Groups in which few events are expected are seen when they happen to have many, so their ratios
    are too high on average and usual intervals lie too high. Here the group's rate has the interval
    of `truncated_rate`, that of the rest Wilson's, and both are joined on the log scale by MOVER.

    Parameters
    ----------
    units
        How many units of the group have an event, how many there are, and the smallest number of
        units with an event for which there is a ratio.
    rest
        Events and (effective) units outside the group.
    share
        The group's share of the whole when the ratio is to the whole; None for one to the rest.
    rate
        The group's rate of events; differs from that of its units where these are clusters.
    spread
        The standard error of the log of events in a unit that has some.

    References
    ----------
    Donner and Zou (2012), Statistical Methods in Medical Research 21, 347-359 (MOVER).

    Examples
    --------
    >>> low, high = selected_rate_ratio((9, 15, 5), (300, 2985), share=15 / 3000, rate=9 / 15)
    >>> round(low, 1), round(high, 1)
    (2.8, 8.2)
    """
    events, n, least = units
    low, high = truncated_rate(events, n, least, level)
    other = rest[0] / rest[1]
    other_low, other_high = (float(end) for end in wilson(*rest, level))
    within = normal_quantile(level) * spread
    with np.errstate(all="ignore"):
        centre = np.log(rate) - np.log(other if other > 0 else other_high)
        down = np.hypot(np.log(events / n / low) if low else np.inf, within)
        up = np.hypot(np.log(high * n / events), within)
        gap = np.log(other_high / other) if other > 0 else 0.0
        bottom = float(np.exp(centre - np.hypot(down, gap)))
        top = float(
            np.exp(centre + np.hypot(up, np.log(other / other_low))) if other > 0 else np.inf
        )
    if share is None:
        return bottom, top
    ends = [1 / share if np.isinf(e) else e / (share * e + 1 - share) for e in (bottom, top)]
    return ends[0], ends[1]


def ratio_of_means(
    numerator: npt.ArrayLike,
    denominator: npt.ArrayLike,
    *,
    clusters: npt.ArrayLike | None = None,
    level: float = 0.95,
) -> Ratios:
    r"""Return the ratio of two means over the same units, each over the units it knows.

    The variance of the log ratio is :math:`\frac{n}{n-1}\sum_i u_i^2` with the influence
    :math:`u_i = (x_i - \bar x)/(n_x \bar x) - (y_i - \bar y)/(n_y \bar y)`, summed within
    clusters first; NaN parts have no influence. A group within its whole is
    ``ratio_of_means(np.where(member, y, np.nan), y)``. Undefined when a mean is missing or the
    means do not have the same sign; no interval with fewer than two units in a part, or without
    spread, or for a ratio of zero.

    Examples
    --------
    >>> x = np.array([2.0, 4.0, 6.0, 8.0])
    >>> found = ratio_of_means(x, x / 2 + np.array([0.1, -0.1, 0.1, -0.1]))
    >>> round(float(found.ratio), 3), bool(found.low < 2 < found.high)
    (2.0, True)
    """
    x, y = np.asarray(numerator, dtype=np.float64), np.asarray(denominator, dtype=np.float64)
    if x.shape != y.shape or x.ndim != 1:
        raise ValueError(f"parts have shapes {x.shape} and {y.shape}; expected the same units")
    z = normal_quantile(level)
    cluster = np.arange(len(x)) if clusters is None else np.unique(clusters, return_inverse=True)[1]
    influence = np.zeros(len(x))
    means: list[float] = []
    support: list[int] = []
    for part, sign in ((x, 1.0), (y, -1.0)):
        known = ~np.isnan(part)
        mean = float(part[known].mean()) if known.any() else float("nan")
        means.append(mean)
        support.append(len(np.unique(cluster[known])))
        if mean != 0:
            influence[known] += sign * (part[known] - mean) / (known.sum() * mean)
    none = np.array(np.nan)
    unadjusted = np.array(False)
    if np.isnan(means).any() or means[1] == 0 or means[0] * means[1] < 0:
        return Ratios(none, none, none, unadjusted)
    ratio = np.array(means[0] / means[1])
    least = min(support)
    u = np.bincount(cluster, weights=influence)
    error = float(np.sqrt(np.sum(u**2) * least / (least - 1))) if least > 1 else 0.0
    if not error > 1e-14 or means[0] == 0:
        return Ratios(ratio, none, none, unadjusted)
    return Ratios(
        ratio, np.array(ratio * np.exp(-z * error)), np.array(ratio * np.exp(z * error)), unadjusted
    )


def ratio_of_means_estimate(
    numerator: npt.ArrayLike,
    denominator: npt.ArrayLike,
    *,
    metric: str,
    clusters: npt.ArrayLike | None = None,
    level: float = 0.95,
    **about: Any,
) -> Estimate:
    """Return `ratio_of_means` as an estimate; its n is that of the smaller part."""
    result = ratio_of_means(numerator, denominator, clusters=clusters, level=level)
    names = np.arange(len(np.asarray(numerator))) if clusters is None else np.asarray(clusters)
    n = min(
        len(np.unique(names[~np.isnan(np.asarray(part, dtype=np.float64))]))
        for part in (numerator, denominator)
    )
    named: dict[str, Any] = {"metric": metric, "n": n, "kind": "ratio", "null": 1.0, "level": level}
    about = named | about
    if np.isnan(result.ratio):
        code, reason = "not-estimable", "the means are zero or of different sign"
        if n == 0:
            code, reason = "no-units", "no units in one part"
        return Estimate.undefined(reason_code=code, reason=reason, **about)
    value, low, high = (float(part) for part in (result.ratio, result.low, result.high))
    if np.isnan(low):
        method = "none: the units show no spread on the log scale, which is not certainty"
        return Estimate(value=value, interval=None, method=method, **about)
    return Estimate(value=value, interval=(low, high), method="log-delta", **about)
