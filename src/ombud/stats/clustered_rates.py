"""Rates of units that share a cluster: a score test, a design effect, and score intervals.

A Wald test of a log ratio takes its spread from the group's own events; below 1 those are few, and
the test has next to no power. A score test takes the spread from all units, as the null would have
it, so few events, or none, are evidence like any other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from ombud.stats.proportions import normal_quantile

# Ratios are looked for between these; beyond, an end is 0 or infinite.
_SMALLEST, _LARGEST = -30.0, 30.0


class ClusterScore(NamedTuple):
    """A test that a part's rate is the rest's.

    `p` is two-sided; `statistic` is negative when the part's rate is below the rest's; `effect` is
    the variance over that of independent units (the design effect of the contrast); `correlation`
    is that of two units of one cluster. NaN where there is nothing to test.
    """

    p: float
    statistic: float
    effect: float
    correlation: float


def intracluster_correlation(values: npt.ArrayLike, clusters: npt.ArrayLike) -> float:
    r"""Return the correlation of two units of one cluster, from 0 to 1; NaN without any spread.

    .. math:: \hat\rho = \frac{\sum_c \sum_{i \ne j} r_i r_j / \sum_c n_c (n_c - 1)}
              {\sum_i r_i^2 / n}, \qquad r_i = y_i - \bar y

    Examples
    --------
    >>> intracluster_correlation([1, 1, 0, 0], [1, 1, 2, 2])
    1.0
    >>> intracluster_correlation([1, 0, 1, 0], [1, 1, 2, 2])
    0.0
    """
    y = np.asarray(values, dtype=np.float64)
    place = np.unique(np.asarray(clusters), return_inverse=True)[1]
    residual = y - y.mean() if len(y) else y
    spread = float(np.mean(residual**2)) if len(y) else 0.0
    if not spread > 0:
        return float("nan")
    size = np.bincount(place).astype(np.float64)
    pairs = float(np.sum(size * (size - 1)))
    if pairs == 0:
        return 0.0
    sums, squares = np.bincount(place, residual), np.bincount(place, residual**2)
    found = float(np.sum(sums**2 - squares)) / pairs / spread
    return min(max(found, 0.0), 1.0)


def design_effect(
    values: npt.ArrayLike, clusters: npt.ArrayLike, correlation: float
) -> tuple[float, int]:
    r"""Return the variance of a mean over that of independent units, and how many clusters.

    .. math:: \max\left(1 + \rho \left(\frac{\sum_c n_c^2}{n} - 1\right),
              \frac{\sum_c (\sum_{i \in c} r_i)^2}{\sum_i r_i^2}, 1\right)

    The first is what the correlation of all units makes of these cluster sizes, and stands where
    the units themselves show no spread; the second is what they show.

    Examples
    --------
    >>> design_effect([0, 0, 0, 0], [1, 1, 2, 2], 0.5)
    (1.5, 2)
    """
    y = np.asarray(values, dtype=np.float64)
    place = np.unique(np.asarray(clusters), return_inverse=True)[1]
    size = np.bincount(place).astype(np.float64)
    effect = 1 + correlation * (float(np.sum(size**2)) / len(y) - 1)
    residual = y - y.mean()
    spread = float(np.sum(residual**2))
    if spread > 0:
        effect = max(effect, float(np.sum(np.bincount(place, residual) ** 2)) / spread)
    return max(effect, 1.0), len(size)


def cluster_score_test(
    values: npt.ArrayLike, member: npt.ArrayLike, clusters: npt.ArrayLike
) -> ClusterScore:
    r"""Test that a part's rate is that of the rest, when units of a cluster are alike.

    .. math:: z = \frac{\sum_i (y_i - \bar y)(x_i - \bar x)}{\sqrt{\max(V_m, V_r)}}, \quad
              V_m = s^2 \left(\sum_i \tilde x_i^2
              + \hat\rho \sum_{i \ne j} \tilde x_i \tilde x_j\right), \quad
              V_r = \sum_c \left(\sum_{i \in c} r_i \tilde x_i\right)^2

    with x the membership, tilde and r for deviations from the means, and sums over pairs within
    clusters. The first variance holds when units of all clusters are alike to the same degree, the
    second whatever they are, once there are events enough to see; the larger one counts. So a part
    without any event is tested too, by what its size made likely. It is that rate under the null
    which is compared, so it holds against the whole as well as against the rest.

    References
    ----------
    Guo et al. (2005), Statistics in Medicine 24, 3479-3495 (the second variance, in score tests).

    Examples
    --------
    >>> y, x = np.repeat([0, 1, 0, 1, 1, 0], 2), np.repeat([1, 1, 1, 0, 0, 0], 2)
    >>> found = cluster_score_test(y, x, np.repeat(np.arange(6), 2))
    >>> round(found.statistic, 4), round(found.effect, 4), round(found.p, 4)
    (-0.8165, 2.0, 0.4142)
    """
    y, x = np.asarray(values, dtype=np.float64), np.asarray(member, dtype=np.float64)
    none = float("nan")
    if not len(y) or x.min() == x.max() or y.min() == y.max():
        return ClusterScore(none, none, none, none)
    place = np.unique(np.asarray(clusters), return_inverse=True)[1]
    correlation = intracluster_correlation(y, place)
    residual, inside = y - y.mean(), x - x.mean()
    scores = np.bincount(place, residual * inside)
    sums, squares = np.bincount(place, inside), np.bincount(place, inside**2)
    spread, alone = float(np.mean(residual**2)), float(np.sum(squares))
    model = spread * (alone + correlation * float(np.sum(sums**2 - squares)))
    variance = max(model, float(np.sum(scores**2)))
    z = float(np.sum(scores)) / float(np.sqrt(variance)) if variance > 0 else 0.0
    return ClusterScore(float(2 * ndtr(-abs(z))), z, variance / (spread * alone), correlation)


def log_ratio_error(
    counts: tuple[float, float, float, float], moments: npt.NDArray[np.float64], *, of_whole: bool
) -> float:
    r"""Return the standard error of the log of a rate ratio, from sums over clusters.

    .. math:: \sum_c u_c^2, \qquad u_c = \frac{e_c - p n_c}{n p} - \frac{E_c - P N_c}{N P}

    squared: the delta method with clusters as units, for a part of a whole (or of the rest).

    Parameters
    ----------
    counts
        Events and units of the part, and of all.
    moments
        As in `RateSums`: sums over clusters of the products of a cluster's events and units in the
        part, and in all.
    of_whole
        Whether the ratio is to the whole; else, to the rest.

    Examples
    --------
    >>> e = np.array([[1, 1, 1, 1], [1, 2, 1, 3], [0, 1, 1, 2], [0, 0, 1, 2]])  # four clusters
    >>> error = log_ratio_error((2, 4, 4, 8), e.T @ e, of_whole=True)
    >>> round(error, 4)  # u = 1/8, 1/8, -1/4, 0
    0.3062
    """
    events, n, every, units = counts
    part = np.array([1 / events, -1 / n, 0.0, 0.0])
    other = np.array([0.0, 0.0, 1 / every, -1 / units])
    if not of_whole:
        rest, others = every - events, units - n
        other = np.array([-1 / rest, 1 / others, 1 / rest, -1 / others]) if rest else other * np.nan
    return float(np.sqrt(max(_square(moments, part - other), 0.0)))


def cluster_moments(
    values: npt.ArrayLike, member: npt.ArrayLike, clusters: npt.ArrayLike
) -> npt.NDArray[np.float64]:
    """Return the sums over clusters that `log_ratio_error` takes, of units at hand."""
    place = np.unique(np.asarray(clusters), return_inverse=True)[1]
    y, x = np.asarray(values, dtype=np.float64), np.asarray(member, dtype=np.float64)
    columns = [np.bincount(place, some) for some in (y * x, x, y, np.ones(len(y)))]
    table = np.column_stack(columns)
    return np.asarray(table.T @ table)


@dataclass(frozen=True, eq=False)
class RateSums:
    """What rates of many parts and their tests need of the units: sums that add up over blocks."""

    # Parts x samples: the sums of the values and of their squares. The first part is all units.
    events: npt.NDArray[np.float64]
    squares: npt.NDArray[np.float64]
    units: npt.NDArray[np.int64]  # parts x samples: how many there are
    # Parts x samples: in how many clusters there is an event, and a unit without it.
    with_event: npt.NDArray[np.int64]
    without: npt.NDArray[np.int64]
    # Parts x samples x 4 x 4: sums over clusters of the products of a cluster's events and units in
    # the part, and of its events and units in all.
    moments: npt.NDArray[np.float64]
    # For each sample, whether every unit is a cluster of its own.
    independent: npt.NDArray[np.bool_]

    def correlation(self, sample: int) -> float:
        """Return `intracluster_correlation` of all units of a sample."""
        n = float(self.units[0, sample])
        spread = self._spread(0, sample)
        if not spread > 0:
            return float("nan")
        moments = self.moments[0, sample]
        pairs = float(moments[3, 3]) - n
        if pairs <= 0:
            return 0.0
        mean = float(self.events[0, sample]) / n
        sums = _square(moments, np.array([0.0, 0.0, 1.0, -mean]))
        return min(max((sums - n * spread) / pairs / spread, 0.0), 1.0)

    def effect(self, part: int, sample: int) -> float:
        """Return `design_effect` of a part; without any spread, clusters count as one unit."""
        correlation = self.correlation(sample)
        if np.isnan(correlation):
            correlation = 1.0
        n, moments = float(self.units[part, sample]), self.moments[part, sample]
        effect = 1 + correlation * (float(moments[1, 1]) / n - 1)
        spread = n * self._spread(part, sample)
        if spread > 0:
            mean = float(self.events[part, sample]) / n
            effect = max(effect, _square(moments, np.array([1.0, -mean, 0.0, 0.0])) / spread)
        return max(effect, 1.0)

    def score(self, part: int, sample: int) -> ClusterScore:
        """Return `cluster_score_test` of a part against the rest."""
        none = float("nan")
        n, inside = float(self.units[0, sample]), float(self.units[part, sample])
        spread = self._spread(0, sample)
        if not n or inside in (0.0, n) or not spread > 0:
            return ClusterScore(none, none, none, none)
        y, x = float(self.events[0, sample]) / n, inside / n
        moments = self.moments[part, sample]
        correlation = self.correlation(sample)
        alone = n * x * (1 - x)
        sums = _square(moments, np.array([0.0, 1.0, 0.0, -x]))
        model = spread * (alone + correlation * (sums - alone))
        weights = np.array([1.0, -y, -x, x * y])
        variance = max(model, _square(moments, weights))
        total = float(self.events[part, sample]) - inside * y
        z = total / float(np.sqrt(variance)) if variance > 0 else 0.0
        return ClusterScore(float(2 * ndtr(-abs(z))), z, variance / (spread * alone), correlation)

    def _spread(self, part: int, sample: int) -> float:
        """Return the variance of the values; zero where it is nothing but rounding."""
        n = float(self.units[part, sample])
        if not n:
            return 0.0
        mean, square = self.events[part, sample] / n, self.squares[part, sample] / n
        return float(square - mean**2) if square - mean**2 > 1e-12 * square else 0.0


def _square(moments: npt.NDArray[np.float64], weights: npt.NDArray[np.float64]) -> float:
    """Return the sum over clusters of a squared combination of what they hold."""
    return float(weights @ moments @ weights)


def score_rate_ratio(
    events: float,
    n: float,
    rest_events: float,
    rest_n: float,
    *,
    level: float = 0.95,
    of_whole: bool = False,
) -> tuple[float, float]:
    r"""Return the score interval of a rate ratio: the ratios that a score test does not reject.

    .. math:: \left|\frac{\hat p_1 - \theta \hat p_2}
              {\sqrt{\tilde p_1 \tilde q_1 / n_1 + \theta^2 \tilde p_2 \tilde q_2 / n_2}}\right|
              \le z

    with :math:`\tilde p` the most likely rates of which the ratio is :math:`\theta`. It has ends
    for a part without events, and covers close to its level with few. `of_whole` turns the ratio to
    the rest into that to the whole, :math:`\theta / (w \theta + 1 - w)` with w the share of the
    part. Counts need not be whole: clustered ones are divided by their design effect. NaN where
    there is no event at all or a part is empty.

    References
    ----------
    Koopman (1984), Biometrics 40, 513-517.

    Examples
    --------
    >>> low, high = score_rate_ratio(36, 40, 16, 80)  # Koopman's example
    >>> round(low, 2), round(high, 2)
    (2.94, 7.15)
    >>> low, high = score_rate_ratio(0, 136, 100, 1000)
    >>> low, round(high, 2)
    (0.0, 0.27)
    """
    z = normal_quantile(level)
    if not (n > 0 and rest_n > 0 and events + rest_events > 0):
        return float("nan"), float("nan")
    one, other = events / n, rest_events / rest_n

    def distance(log_ratio: float) -> float:
        ratio = float(np.exp(log_ratio))
        a = (n + rest_n) * ratio
        b = -(n * ratio + events + rest_n + rest_events * ratio)
        c = events + rest_events
        root = float(np.sqrt(max(b * b - 4 * a * c, 0.0)))
        two = 2 * c / (-b + root)  # the smaller root, without cancellation
        first = min(ratio * two, 1.0)
        two = min(two, 1.0)
        variance = first * (1 - first) / n + ratio**2 * two * (1 - two) / rest_n
        gap = one - ratio * other
        if gap == 0:
            return 0.0
        return gap / float(np.sqrt(variance)) if variance > 0 else float(np.sign(gap)) * np.inf

    low = _end(lambda at: distance(at) - z) if events > 0 else 0.0
    high = _end(lambda at: distance(at) + z) if rest_events > 0 else float("inf")
    if not of_whole:
        return low, high
    share = n / (n + rest_n)
    ends = [1 / share if np.isinf(e) else e / (share * e + 1 - share) for e in (low, high)]
    return ends[0], ends[1]


def _end(function: Callable[[float], float]) -> float:
    """Return where a falling function of the log ratio crosses zero; 0 or infinity beyond."""
    if function(_SMALLEST) <= 0:
        return 0.0
    if function(_LARGEST) >= 0:
        return float("inf")

    def bounded(at: float) -> float:
        # An infinite distance is beyond any end: its sign is all that is looked at.
        return float(np.clip(function(at), -1e6, 1e6))

    from scipy.optimize import brentq  # takes a while to import

    return float(np.exp(brentq(bounded, _SMALLEST, _LARGEST)))
