r"""Evidence that a mean changed, with one rate of false alarms for all looks at a series.

A series is looked at again and again. Each look gives a *recursive residual*: how far it is from
all earlier looks together, in standard errors. While the mean stays what it is, whatever it is,
residuals are independent and standard normal, so that the likelihood ratio of a change after look j
is a martingale. Mixed over the size of the change (a normal distribution) and over j (weights that
sum to one), it is an *e-process*: the chance that it ever exceeds 1 / alpha is at most alpha
(Ville's inequality), for as many looks as one likes.

References
----------
Ramdas, Grünwald, Vovk and Shafer (2023), *Game-theoretic statistics and safe anytime-valid
inference*. Vovk and Wang (2021), *E-values* (averages, and closed testing). Brown, Durbin and Evans
(1975), *Techniques for testing the constancy of regression relationships over time*.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import log_ndtr, ndtri, stdtr

from ombud.stats.statistics import Floats

PRIOR_SIZE = 2.0
"""Standard deviation of the change that is looked for, in standard errors of one look."""

_SMALLEST = 1e-300  # the smallest p-value that is turned into a normal deviate


def start_weights(looks: int) -> Floats:
    r"""Return the weight of a change at each look after the first.

    :math:`w_j = 1 / \ln(j + e - 1) - 1 / \ln(j + e)`: the sum over all j from 1 on is one, so the
    number of looks need not be known.

    Examples
    --------
    >>> start_weights(4).round(3).tolist()
    [0.0, 0.239, 0.117, 0.071]
    """
    ends = 1 / np.log(np.arange(looks) + np.e)
    return np.concatenate([[0.0], -np.diff(ends)])[:looks]


@dataclass(frozen=True, eq=False)
class Residuals:
    """The recursive residuals of one number over a series of looks.

    Parameters
    ----------
    z
        One a look: standard normal and independent while the mean is constant. NaN where a look
        says nothing, as the first one does.
    up, down
        The same as evidence for an increase, and for a decrease: where a look stands out in that
        direction because few units are extreme, it counts for no more than its own spread bears.
    shift
        Starts x looks: how far a change of one unit at look j moves the residual of look t.
    scale
        The standard error of one look: changes of about this size are looked for.
    inflation
        Starts x looks: by how much the units that looks share inflate the variance of the
        evidence for a start; None where looks share no units.
    """

    z: Floats
    up: Floats
    down: Floats
    shift: Floats
    scale: float
    inflation: Floats | None = None


def change_sums(
    z: npt.ArrayLike, shift: Floats, inflation: Floats | None = None
) -> tuple[Floats, Floats]:
    r"""Return for each look what was summed for a change at one look: information and score.

    With :math:`c_t` the shift, :math:`A_t = \sum c_s^2` and :math:`B_t = \sum c_s z_s` over looks
    s from the start to t, both divided by the inflation. `z` may hold many series, looks last.
    """
    known = np.asarray(z, dtype=np.float64)
    c = np.where(np.isnan(known), 0.0, shift)
    sums = np.cumsum(c**2, axis=-1), np.cumsum(c * np.nan_to_num(known), axis=-1)
    return sums if inflation is None else (sums[0] / inflation, sums[1] / inflation)


def log_mixture(information: Floats, score: Floats, tau: float) -> Floats:
    r"""Return the logarithm of the likelihood ratio of an increase, mixed over its size.

    The size is half-normal, that of a normal distribution with standard deviation :math:`\tau`:

    .. math:: \frac{\tau^2 B^2}{2 (1 + \tau^2 A)} - \frac{1}{2} \ln(1 + \tau^2 A)
              + \ln 2 \Phi(\tau B / \sqrt{1 + \tau^2 A})
    """
    grown = 1 + tau**2 * information
    far = tau * score / np.sqrt(grown)
    return np.asarray(far**2 / 2 - np.log(grown) / 2 + log_ndtr(far) + np.log(2))


def log_evidence(
    up: npt.ArrayLike,
    down: npt.ArrayLike,
    shift: Floats,
    tau: float,
    inflation: Floats | None = None,
) -> Floats:
    """Return the logarithm of the likelihood ratio of a change at one look, in either direction.

    Where `up` and `down` are the same, it is that of a normal distribution of the size around zero.
    """
    if up is down:
        information, score = change_sums(up, shift, inflation)
        grown = 1 + tau**2 * information
        return np.asarray(tau**2 * score**2 / (2 * grown) - np.log(grown) / 2)
    rise = change_sums(up, shift, inflation)
    fall = change_sums(down, shift, inflation)
    both = log_mixture(*rise, tau), log_mixture(fall[0], -fall[1], tau)
    return np.asarray(np.logaddexp(*both) - np.log(2))


def evidence(residuals: Residuals) -> Floats:
    """Return the logarithms of the likelihood ratios, starts x looks; 0 before a start."""
    looks = len(residuals.z)
    tau = PRIOR_SIZE * residuals.scale
    logs = np.zeros((looks, looks))
    for start in range(1, looks):
        inflation = None if residuals.inflation is None else residuals.inflation[start]
        shift = residuals.shift[start]
        logs[start] = log_evidence(residuals.up, residuals.down, shift, tau, inflation)
    return logs


def _sums(residuals: Residuals, start: int) -> tuple[Floats, Floats]:
    inflation = None if residuals.inflation is None else residuals.inflation[start]
    return change_sums(residuals.z, residuals.shift[start], inflation)


def e_process(logs: Floats) -> Floats:
    """Return the evidence of each look: the weighted sum over all starts, also those to come."""
    looks = len(logs)
    weights = start_weights(looks)
    return np.asarray(weights @ np.exp(np.minimum(logs, 600.0)) + (1 - weights.sum()))


@dataclass(frozen=True)
class Change:
    """The most likely change of a number, as seen at one look."""

    start: int  # the look at which it most likely changed
    size: float
    interval: tuple[float, float]  # of the size, given that look; holds at every look together


def most_likely_change(
    residuals: Residuals, logs: Floats, look: int, level: float
) -> Change | None:
    r"""Return the start with the largest weighted likelihood ratio, and an interval for the size.

    The interval holds those sizes d with
    :math:`|B - A d| \le \sqrt{(A + \tau^{-2}) (2 \ln(1 / (1 - level)) + \ln(1 + \tau^2 A))}`: a
    confidence sequence, so an alarm that stops the series does not spoil it.
    """
    with np.errstate(divide="ignore"):
        weighted = np.log(start_weights(len(logs))) + logs[:, look]
    weighted[look + 1 :] = -np.inf
    start = int(np.argmax(weighted))
    information, score = (part[look] for part in _sums(residuals, start))
    if not information > 0:
        return None
    tau = PRIOR_SIZE * residuals.scale
    far = 2 * np.log(1 / (1 - level)) + np.log1p(tau**2 * information)
    half = float(np.sqrt((information + tau**-2) * far) / information)
    size = float(score / information)
    return Change(start, size, (size - half, size + half))


def closed_testing(e: npt.ArrayLike, alpha: float) -> npt.NDArray[np.bool_]:
    """Return which of several e-values are named, any of them falsely with a chance of alpha.

    A number is named where the average over every set of numbers that holds it reaches 1 / alpha.
    The average of e-values is an e-value under any dependence.

    Examples
    --------
    >>> closed_testing([70.0, 0.5, 30.0], 0.05).tolist()
    [True, False, False]
    """
    values = np.asarray(e, dtype=np.float64)
    order = np.argsort(values, kind="stable")
    ascending = values[order]
    # The worst set that holds a number adds the smallest of the others.
    below = np.concatenate([[0.0], np.cumsum(ascending)])
    counts = np.arange(len(values) + 1)
    named = np.zeros(len(values), dtype=bool)
    for rank, place in enumerate(order):
        # With m others: the m smallest, without the number itself.
        others = np.where(counts <= rank, below, below - values[place])
        sizes = np.where(counts <= rank, counts, counts - 1)
        worst = (values[place] + others) / (sizes + 1)
        named[place] = bool((worst >= 1 / alpha).all())
    return named


def mean_residuals(values: list[Floats]) -> Residuals:
    r"""Return the residuals of means of new units at each look.

    A look of n units with mean x is compared with the mean m of the N units before it:
    :math:`(x - m) / \sqrt{s^2 / N + s^2 / n}` with :math:`s^2` the variance of the units before
    it. As evidence for its own direction, :math:`s^2 / n` is :math:`q^2 / n` where that is larger,
    with :math:`q^2` the mean square of the look's own units around m. The t distribution with N - 1
    degrees of freedom turns it into a normal deviate. Units that are 0 or 1 are counts:
    see `count_residuals`.
    """
    n = np.array([len(v) for v in values], dtype=np.float64)
    if all(((v == 0) | (v == 1)).all() for v in values):
        return count_residuals(np.array([v.sum() for v in values]), n)
    some = next((v for v in values if len(v)), np.zeros(1))
    # Around the mean of the first look, so that large values do not swallow small variances.
    values = [v - some.mean() for v in values]
    total = np.array([v.sum() for v in values])
    squares = np.array([(v**2).sum() for v in values])
    before = _before(n)
    tiny = 1e-12 * max(np.abs(some).max(initial=0.0), *(np.abs(v).max(initial=0.0) for v in values))
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = _before(total) / before
        spread = (_before(squares) - before * mean**2) / (before - 1)
        own = (squares - 2 * mean * total) / n + mean**2
        spread, own = (np.where(part <= tiny**2, 0.0, part) for part in (spread, own))
        error, wide = (
            np.sqrt(spread / before + part / n) for part in (spread, np.maximum(spread, own))
        )
        # Where the units before were all alike, only a look's own spread is known.
        error = np.where(error > 0, error, wide)
        error = np.where((before >= 2) & (n > 0) & (error > 0), error, np.nan)
        gap = total / n - mean
        z, less = (_deviates(gap / part, before - 1) for part in (error, np.maximum(error, wide)))
    return _residuals(z, less, _shift(n, error), error)


def _residuals(
    z: Floats, less: Floats, shift: Floats, error: Floats, inflation: Floats | None = None
) -> Residuals:
    """Return residuals of which the extreme ones count for less in their own direction."""
    up, down = (z, z) if less is z else (np.where(z > 0, less, z), np.where(z < 0, less, z))
    return Residuals(z, up, down, shift, _scale(error), inflation)


def _deviates(t: Floats, freedom: Floats) -> Floats:
    p = np.maximum(stdtr(freedom, -np.abs(t)), _SMALLEST)
    return np.asarray(-np.sign(t) * ndtri(p))


def _before(x: Floats) -> Floats:
    return np.concatenate([[0.0], np.cumsum(x)[:-1]])


def _shift(n: Floats, error: Floats) -> Floats:
    """Return starts x looks: the share of earlier units from before a start, in standard errors."""
    before = _before(n)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = before[:, None] / before[None, :]
        shift = np.nan_to_num(share / error, nan=0.0, posinf=0.0)
    return np.triu(shift)


def _scale(error: Floats) -> float:
    known = error[~np.isnan(error)]
    # The first residual has the errors of two looks.
    return float(known[0] / np.sqrt(2)) if len(known) else 1.0


def summary_residuals(value: Floats, error: Floats, n: Floats) -> Residuals:
    """Return the residuals of means of which each look gives the value and its standard error.

    NaN where a look has none. The units before a look give its variance, as in `mean_residuals`.
    """
    known = ~np.isnan(value) & ~np.isnan(error) & (n > 0)
    n = np.where(known, n, 0.0)
    before = _before(n)
    spread = _before(np.where(known, n * n * error**2, 0.0)) / np.maximum(before, 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        gap = value - _before(np.where(known, n * value, 0.0)) / before
        pooled = np.sqrt(spread / before + spread / n)
        wide = np.sqrt(spread / before + np.maximum(spread / n, error**2))
        usable = np.where(known & (before > 0) & (pooled > 0), pooled, np.nan)
        wide = np.where(np.isnan(usable), np.nan, wide)
        z, less = (_deviates(gap / part, np.maximum(before - 1, 1)) for part in (usable, wide))
    return _residuals(z, less, _shift(n, usable), usable)


def count_residuals(events: Floats, n: Floats) -> Residuals:
    """Return the residuals of rates: exact, however rare the events are.

    Given all events so far, those of the last look are hypergeometric whatever the rate is, and
    independent of the looks before. The residual is the normal deviate of the mid-p-value.

    Examples
    --------
    >>> count_residuals(np.array([0.0, 3.0]), np.array([10.0, 10.0])).z.round(2).tolist()
    [nan, 1.62]
    """
    before, seen = _before(n), _before(events)
    units, found = before + n, seen + events
    from scipy.stats import hypergeom

    telling = (before > 0) & (n > 0) & (found > 0) & (found < units)
    error = np.full(len(n), np.nan)
    z = np.full(len(n), np.nan)
    known = tuple(part[telling].astype(np.int64) for part in (events, units, found, n))
    half = hypergeom.pmf(*known) / 2
    lower = np.maximum(hypergeom.cdf(known[0] - 1, *known[1:]) + half, _SMALLEST)
    upper = np.maximum(hypergeom.sf(*known) + half, _SMALLEST)
    z[telling] = np.where(
        lower < upper, ndtri(np.minimum(lower, 0.5)), -ndtri(np.minimum(upper, 0.5))
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        rate = found / units
        error[telling] = np.sqrt(rate * (1 - rate) * (1 / before + 1 / n))[telling]
    return _residuals(z, z, _shift(n, error), error)


def paired_residuals(
    values: Floats, clusters: npt.NDArray[np.integer[Any]] | None = None
) -> Residuals:
    r"""Return the residuals of units that are measured again at each look.

    Each unit is compared with the mean of its own earlier looks, and the differences r of a look
    are compared with their spread at earlier looks (as evidence for its own direction, with
    :math:`\sqrt{\sum r^2}` where that is larger). So what units have in common over looks
    cancels out. Where the differences of a unit persist (a system that was changed once answers
    each user otherwise from then on), later looks repeat earlier ones: evidence is divided by the
    inflation of its variance, clustered by unit.

    Parameters
    ----------
    values
        Units x looks; NaN where a unit was not measured.
    clusters
        What units share, as codes; their differences are then summed.
    """
    looks = values.shape[1]
    known = ~np.isnan(values)
    filled = np.where(known, values, 0.0)
    times = np.cumsum(known, axis=1) - known
    with np.errstate(divide="ignore", invalid="ignore"):
        r = filled - (np.cumsum(filled, axis=1) - filled) / times
    usable = known & (times > 0)
    r = np.where(usable, r, 0.0)
    size = np.abs(filled).max(initial=0.0)
    r[np.abs(r) <= 1e-12 * size] = 0.0
    n = usable.sum(axis=0).astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        # A difference from k earlier looks has the variance of 1 + 1 / k looks.
        grown = np.where(usable, 1 + 1 / times, 0.0)
        squares = (_summed(r, clusters) ** 2).sum(axis=0)
        own = np.sqrt(squares) / n
        spread = _before(squares) / _before(grown.sum(axis=0))
        error = np.sqrt(spread * grown.sum(axis=0)) / n
        error = np.where(error > 0, error, own)
        error = np.where(error > 0, error, np.nan)
        gap = r.sum(axis=0) / n
        z, less = gap / error, gap / np.fmax(error, own)
    shift = np.zeros((looks, looks))
    with np.errstate(divide="ignore", invalid="ignore"):
        for start in range(1, looks):
            earlier = known[:, :start].sum(axis=1)
            share = np.where(usable, np.minimum(earlier[:, None], times) / times, 0.0)
            shift[start] = np.nan_to_num(share.sum(axis=0) / n / error, nan=0.0, posinf=0.0)
    shift = np.triu(shift)
    with np.errstate(divide="ignore", invalid="ignore"):
        parts = _summed(np.nan_to_num(np.where(usable, (r - gap) / (n * error), 0.0)), clusters)
    return _residuals(z, less, shift, error, _inflation(parts.T @ parts, shift))


def _summed(r: Floats, clusters: npt.NDArray[np.integer[Any]] | None) -> Floats:
    if clusters is None:
        return r
    result = np.zeros((int(clusters.max(initial=0)) + 1, r.shape[1]))
    np.add.at(result, clusters, r)
    return result


def _inflation(gram: Floats, shift: Floats) -> Floats:
    """Return the variance of each score, clustered by unit, over that of independent looks."""
    lower = np.tril(gram, -1)
    own = np.diag(gram)
    result = np.ones_like(shift)
    for start in range(1, len(shift)):
        c = shift[start]
        clustered = np.cumsum(c**2 * own + 2 * c * (lower @ c))
        alone = np.cumsum(c**2 * own)
        ratio = np.divide(clustered, alone, out=np.ones(len(c)), where=alone > 0)
        result[start] = np.maximum(ratio, 1.0)
    return result
