"""Draws from the collapsed posterior: importance sampling around the mode, checked afterwards.

A normal approximation at the mode proposes, the posterior weighs. Where a standard deviation is
not far from zero its posterior on the log scale has a long left tail that no normal density
follows; along such directions the proposal follows the posterior itself, read off a line of points.
When the weights are still uneven, the proposal is fitted to the weighted draws and tried again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import PchipInterpolator
from scipy.special import gammaln, logsumexp, ndtr

from ombud.questions.authors.model._counts import Counts
from ombud.questions.authors.model._expansion import Region, expanded
from ombud.questions.authors.model._kernel import Nodes, log_likelihoods
from ombud.questions.authors.model._target import Mode, find_mode, log_prior
from ombud.questions.authors.model.priors import Priors
from ombud.stats.statistics import Floats


def pareto_fit(excess: Floats) -> tuple[float, float]:
    """Return shape and scale of a generalised Pareto distribution (Zhang and Stephens, 2009).

    Parameters
    ----------
    excess
        Sorted excesses over the threshold, positive.

    Examples
    --------
    >>> k, scale = pareto_fit(-np.log1p(-(np.arange(1000) + 0.5) / 1000))
    >>> abs(round(k, 1)), round(scale, 1)
    (0.0, 1.0)
    """
    n = len(excess)
    points = 30 + int(np.sqrt(n))
    quarter = excess[int(n / 4 + 0.5) - 1]
    theta = 1 - np.sqrt(points / (np.arange(1, points + 1) - 0.5))
    theta = theta / (3 * quarter) + 1 / excess[-1]
    shape = np.log1p(-theta[:, None] * excess).mean(axis=1)
    profile = n * (np.log(-theta / shape) - shape - 1)
    weights = np.exp(profile - logsumexp(profile))
    best = float(weights @ theta)
    k = float(np.log1p(-best * excess).mean())
    scale = -k / best
    # Pulled towards 1/2 as if by ten more values, as PSIS does.
    return (n * k + 5) / (n + 10), scale


def smooth_weights(logs: Floats) -> tuple[Floats, float]:
    """Return normalised weights with a smoothed tail, and the tail's shape k-hat.

    k-hat below 0.7 means that the weighted means can be trusted.

    Parameters
    ----------
    logs
        Logarithms of the raw weights; -inf where a weight is zero.

    References
    ----------
    Vehtari, Simpson, Gelman, Yao and Gabry (2024), Pareto smoothed importance sampling, JMLR.
    """
    logs = logs - logs.max()
    n = len(logs)
    tail = int(np.ceil(min(0.2 * n, 3 * np.sqrt(n))))
    order = np.argsort(logs, kind="stable")
    largest = order[n - tail :]
    cut = max(logs[order[n - tail - 1]], np.log(np.finfo(float).tiny))
    excess = np.exp(logs[largest]) - np.exp(cut)
    if tail < 5 or excess[0] <= 0 or excess[-1] - excess[0] < 1e-12:
        k = -np.inf if tail >= 5 and excess[-1] < 1e-12 else np.inf
    else:
        k, scale = pareto_fit(excess)
        share = (np.arange(tail) + 0.5) / tail
        quantile = (
            -scale * np.log1p(-share)
            if abs(k) < 1e-9
            else scale * np.expm1(-k * np.log1p(-share)) / k
        )
        logs = logs.copy()
        logs[largest] = np.minimum(np.log(np.exp(cut) + quantile), 0.0)
    return np.exp(logs - logsumexp(logs)), k


# Sets of draws that are made independently of one another, as chains are.
_SETS = 4
# Weights this even are enough; else the proposal is fitted again.
_ENOUGH = 0.1
_ROUNDS = 4
# Where fewer draws than this are effective, or the tail of their weights looks heavy, as many are
# made from the best proposal as give the wanted number, at least four times and at most so many
# times as many: a fit with less than 400 is refused.
_FEW, _WANTED, _LONGER = 500, 800, 8
# Log standard deviations less certain than this follow the posterior itself.
_SKEWED = 0.12
_HEAVY = 0.7
# How much flatter than the posterior a proposal along one of them is; with only the mean beside it
# there is no other parameter whose weights would suffer.
_FLATTER, _FLATTER_ALONE = 0.9, 0.6
_CHECKED_POINTS = 12
_CHECKED_USERS = 800
# Degrees of the polynomials that are tried in turn, the error that is small enough (nats), and to
# which part of it a higher degree should bring it.
# Each is tried with so many users or more: with few, the posterior is too wide for low degrees.
_DEGREES = {4: 2000, 6: 200, 8: 0, 10: 0}
_TOLERATED = 0.05
_GAIN = 0.25
# At most so many points are integrated one by one.
_EXACT_DRAWS = 2048
# Nodes for the draws and for the way to the mode, tried in turn. Lists at 0 and at 1 beside others
# make a residual so wide that few nodes do not suffice.
_LEVELS = (
    (Nodes(9, 7), Nodes(7, 5)),
    (Nodes(19, 15), Nodes(15, 11)),
    (Nodes(39, 41), Nodes(25, 31)),
)


@dataclass(frozen=True, slots=True)
class Drawn:
    """Weighted draws and how far they can be trusted.

    Parameters
    ----------
    points
        Draws x (mu, log sigma, b..., s..., log v...).
    weights
        They sum to 1.
    sets
        Which independent set each draw belongs to.
    khat
        Shape of the weights' tail.
    error
        Standard deviation over the posterior of the log likelihood's numerical error, in nats.
    worst_error
        The largest such error among the points checked.
    degree
        Of the polynomials by which the likelihood was computed; 0 if it was integrated at each.
    rounds
        How often the proposal was fitted.
    """

    points: Floats
    weights: Floats
    sets: NDArray[np.int64]
    khat: float
    error: float
    worst_error: float
    degree: int
    rounds: int

    @property
    def even(self) -> float:
        """Effective draws over draws: 1 where all weigh the same."""
        return 1 / float((self.weights**2).sum()) / len(self.weights)


@dataclass(frozen=True)
class _Marginal:
    """A density in one direction, given by points of its logarithm."""

    grid: Floats
    density: Floats
    cumulated: Floats

    @classmethod
    def through(cls, places: Floats, logs: Floats, flatter: float) -> _Marginal:
        step = (places[-1] - places[0]) / 800
        # Both ends go on as straight lines of the log density until nothing is left.
        left = max((logs[1] - logs[0]) / (places[1] - places[0]), 0.5)
        right = min((logs[-1] - logs[-2]) / (places[-1] - places[-2]), -0.5)
        before = places[0] - step * np.arange(int(min(25 / left, 40) / step), 0, -1)
        after = places[-1] + step * np.arange(1, int(min(25 / -right, 10) / step) + 1)
        inside = np.linspace(places[0], places[-1], 801)
        curve = PchipInterpolator(places, logs)(inside)
        grid = np.concatenate([before, inside, after])
        values = np.concatenate(
            [logs[0] + left * (before - places[0]), curve, logs[-1] + right * (after - places[-1])]
        )
        # A little wider than what was found, so that the weights stay bounded.
        values = flatter * (values - values.max())
        density = np.exp(values)
        parts = (density[1:] + density[:-1]) / 2 * np.diff(grid)
        cumulated = np.concatenate([[0.0], np.cumsum(parts)])
        return cls(grid, density / cumulated[-1], cumulated / cumulated[-1])

    def quantile(self, share: Floats) -> Floats:
        return np.interp(share, self.cumulated, self.grid)

    def log_density(self, at: Floats) -> Floats:
        # Between two points the quantile is linear, so the density is flat there.
        cell = np.clip(np.searchsorted(self.grid, at, side="right") - 1, 0, len(self.grid) - 2)
        mass = np.diff(self.cumulated)[cell]
        with np.errstate(divide="ignore"):
            return np.log(mass / np.diff(self.grid)[cell])

    def sd(self) -> tuple[float, float]:
        """Return mean and standard deviation."""
        centres = (self.grid[1:] + self.grid[:-1]) / 2
        mass = np.diff(self.cumulated)
        mean = float(mass @ centres)
        return mean, float(np.sqrt(mass @ (centres - mean) ** 2))


def _felt(away: Floats, which: NDArray[np.intp], dimensions: int) -> Floats:
    """Return how far other parameters feel that a log standard deviation moved.

    A residual acts through its variance: once that is almost zero, less of it changes nothing. So
    does the spread of users where there is only their mean beside it; slopes go on to grow as it
    shrinks.
    """
    saturating = np.where(away < 0, np.expm1(2 * np.minimum(away, 0.0)) / 2, away)
    return np.where((which > 1) | (dimensions == 2), saturating, away)


class _Proposal:
    """Skewed directions by their own densities, joined as normals; the rest a Student t."""

    def __init__(
        self, middle: Floats, cover: Floats, marginals: dict[int, _Marginal] | None = None
    ) -> None:
        self.middle, self.cover = middle, cover
        self.marginals = marginals or {}
        self.own = np.array(sorted(self.marginals), dtype=np.intp)
        self.rest = np.setdiff1d(np.arange(len(middle)), self.own)
        self.sds = np.sqrt(np.diag(cover))
        own = cover[np.ix_(self.own, self.own)]
        across = cover[np.ix_(self.rest, self.own)]
        self.pull = np.linalg.solve(own, across.T).T if len(self.own) else across
        left = cover[np.ix_(self.rest, self.rest)] - self.pull @ across.T
        self.root = np.linalg.cholesky((left + left.T) / 2)
        self.correlation = own / np.outer(self.sds[self.own], self.sds[self.own])
        # In few dimensions heavy tails cost little, and a mean whose spread grows needs them.
        self.df = 5.0 if len(self.rest) <= 2 else max(20.0, 1.0 * len(middle))

    def draw(self, count: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Return points and their log density."""
        points = np.empty((count, len(self.middle)))
        logs = np.zeros(count)
        if len(self.own):
            root = np.linalg.cholesky(self.correlation)
            e = rng.standard_normal((count, len(self.own)))
            z = e @ root.T
            logs += -0.5 * (e**2).sum(axis=1) + 0.5 * (z**2).sum(axis=1)
            logs -= float(np.log(np.diag(root)).sum())
            for i, j in enumerate(self.own):
                density = self.marginals[int(j)]
                points[:, j] = density.quantile(ndtr(z[:, i]))
                logs += density.log_density(points[:, j])
        d = len(self.rest)
        if d:
            e = rng.standard_normal((count, d))
            e /= np.sqrt(rng.chisquare(self.df, count) / self.df)[:, None]
            shift = (
                _felt(points[:, self.own] - self.middle[self.own], self.own, len(self.middle))
                @ self.pull.T
            )
            points[:, self.rest] = self.middle[self.rest] + shift + e @ self.root.T
            logs += -0.5 * (self.df + d) * np.log1p((e**2).sum(axis=1) / self.df)
            logs += float(
                gammaln((self.df + d) / 2)
                - gammaln(self.df / 2)
                - 0.5 * d * np.log(self.df * np.pi)
                - np.log(np.diag(self.root)).sum()
            )
        return points, logs

    def region(self, systems: int) -> Region:
        """Return where the draws lie."""
        low, high = ndtr(-4.0), ndtr(4.0)
        variances = np.empty((systems, 2))
        for a in range(systems):
            j = 2 + 2 * systems + a
            if j in self.marginals:
                ends = self.marginals[j].quantile(np.array([low, high]))
            else:
                ends = self.middle[j] + 4 * self.sds[j] * np.array([-1.0, 1.0])
            variances[a] = np.exp(2 * ends)
        return Region(self.middle, self.cover, variances)


@dataclass(frozen=True, slots=True)
class _Target:
    """What is drawn from, and with how many nodes."""

    counts: Counts
    priors: Priors
    nodes: Nodes

    def values(self, points: Floats, region: Region, degree: int, some: Counts) -> Floats:
        """Return the log likelihood of some of the users at each point."""
        if degree:
            return expanded(some, points, region, self.nodes, degree)
        return log_likelihoods(some, points, self.nodes)

    def some_users(self, rng: np.random.Generator) -> tuple[Counts, float]:
        """Return users on which errors are measured, and how many times as many there are."""
        rows = len(self.counts.count)
        if rows <= _CHECKED_USERS:
            return self.counts, 1.0
        chosen = np.sort(rng.choice(rows, _CHECKED_USERS, replace=False))
        return self.counts.rows(chosen), rows / _CHECKED_USERS


def draw(
    counts: Counts, priors: Priors, draws: int, rng: np.random.Generator
) -> tuple[Drawn, Mode]:
    """Return weighted draws from the posterior, and its mode.

    Parameters
    ----------
    counts
        The data.
    priors
        The priors.
    draws
        How many, in four independent sets.
    rng
        Source of randomness.
    """
    target, mode = _settled(counts, priors, rng)
    marginals = _skewed(target, mode)
    first = _Proposal(mode.point, mode.cover, marginals)
    users = counts.times.sum()
    ways = [degree for degree, fewest in _DEGREES.items() if users >= fewest]
    if not counts.systems:
        # Nodes that stay where they are cannot follow a sigma that may be almost zero.
        ways = [] if 1 in marginals else ways[:1]
    best = np.inf
    for degree in [*ways, 0]:
        found = _weighted(target, first, draws, degree, rng)
        if degree and found.error > max(_TOLERATED, _GAIN * best):
            # A higher degree hardly helps: it is the nodes, which stay where the mode wants them.
            target = replace(target, nodes=target.nodes.finer())
            found = _weighted(target, first, draws, degree, rng)
        if found.error <= _TOLERATED and found.khat < _HEAVY:
            break
        best = min(best, found.error)
    return found, mode


def _settled(counts: Counts, priors: Priors, rng: np.random.Generator) -> tuple[_Target, Mode]:
    """Find the mode with as few nodes as suffice around it."""
    for nodes, coarse in _LEVELS:
        target = _Target(counts, priors, nodes)
        mode = find_mode(counts, priors, coarse)
        if not mode.reached:
            continue
        points = rng.multivariate_normal(mode.point, mode.cover, _CHECKED_POINTS)
        part, times = target.some_users(rng)
        away = log_likelihoods(part, points, nodes)
        away -= log_likelihoods(part, points, nodes.doubled())
        if times * away.std(ddof=1) <= _TOLERATED:
            break
    return target, mode


def _weighted(
    target: _Target, proposal: _Proposal, draws: int, degree: int, rng: np.random.Generator
) -> Drawn:
    """Draw and weigh; refit the proposal while the weights are uneven; measure the error."""
    size = (draws if degree else min(draws, _EXACT_DRAWS)) // _SETS * _SETS
    best = found = _once(target, proposal, size, degree, rng)
    source = proposal
    while best.even < _ENOUGH and found.error <= _TOLERATED and found.rounds < _ROUNDS:
        proposal = _refitted(found.points, found.weights)
        found = replace(_once(target, proposal, size, degree, rng), rounds=found.rounds + 1)
        if found.even > best.even and found.error <= _TOLERATED:
            best, source = found, proposal
    effective = best.even * size
    if (effective < _FEW or not best.khat < _HEAVY) and best.error <= _TOLERATED:
        times = min(_LONGER, max(4, int(np.ceil(_WANTED / effective))))
        longer = _once(target, source, times * size, degree, rng)
        best = replace(longer, rounds=found.rounds + 1)
    return best


def _once(
    target: _Target, proposal: _Proposal, size: int, degree: int, rng: np.random.Generator
) -> Drawn:
    """Draw from one proposal and weigh."""
    region = proposal.region(target.counts.systems)
    points, proposed = proposal.draw(size, rng)
    values = target.values(points, region, degree, target.counts)
    logs = values + log_prior(points, target.priors)[0] - proposed
    weights, khat = smooth_weights(np.where(np.isfinite(logs), logs, -np.inf))
    error, worst = _check(target, points, weights, region, degree, rng)
    sets = np.arange(size, dtype=np.int64) * _SETS // size
    return Drawn(points, weights, sets, khat, error, worst, degree, 1)


def _skewed(target: _Target, mode: Mode) -> dict[int, _Marginal]:
    """Return densities along the log standard deviations that are not certain."""
    systems = target.counts.systems
    sds = np.sqrt(np.diag(mode.cover))
    found = {}
    for j in [1, *range(2 + 2 * systems, 2 + 3 * systems)]:
        if sds[j] < _SKEWED:
            continue
        direction = mode.cover[:, j] / mode.cover[j, j]
        # Left, where the tail is long, further than right.
        places = np.concatenate([-np.geomspace(8, 0.5, 7), [0.0], np.linspace(0.5, 4.5, 9)])
        places = places * min(sds[j], 0.75)
        points = mode.point + _felt(places[:, None], np.array([j]), len(mode.point)) * direction
        points[:, j] = mode.point[j] + places
        logs = log_likelihoods(target.counts, points, target.nodes)
        logs += log_prior(points, target.priors)[0]
        found[j] = _Marginal.through(points[:, j], logs, _FLATTER if systems else _FLATTER_ALONE)
    return found


def _refitted(points: Floats, weights: Floats) -> _Proposal:
    """Return a proposal with the weighted mean and covariance, wider by a fifth."""
    # Flattened until enough draws stand behind the covariance.
    wanted, power = 3 * points.shape[1], 1.0
    logs = np.log(np.maximum(weights, 1e-300))
    flat = weights
    while 1 / float((flat**2).sum()) < wanted and power > 0.01:
        power *= 0.8
        flat = np.exp(power * logs - logsumexp(power * logs))
    middle = flat @ points
    away = points - middle
    cover = 1.2 * (away * flat[:, None]).T @ away
    cover[np.diag_indices_from(cover)] *= 1 + 1e-9
    return _Proposal(middle, cover)


def _check(
    target: _Target,
    points: Floats,
    weights: Floats,
    region: Region,
    degree: int,
    rng: np.random.Generator,
) -> tuple[float, float]:
    """Compare with twice as many nodes, put where each point wants them, on some users."""
    chosen = points[rng.choice(len(points), _CHECKED_POINTS, p=weights)]
    part, times = target.some_users(rng)
    away = target.values(chosen, region, degree, part)
    away -= log_likelihoods(part, chosen, target.nodes.doubled())
    # A constant is no error: weights are relative.
    away = (away - away.mean()) * times
    return float(away.std(ddof=1)), float(np.abs(away).max())
