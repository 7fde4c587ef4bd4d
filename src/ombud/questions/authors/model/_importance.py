"""Draws from the collapsed posterior: importance sampling around the mode, checked afterwards.

A normal approximation at the mode proposes, the posterior weighs. Where a standard deviation is
not far from zero its posterior on the log scale has a long left tail that no normal density
follows; along such directions the proposal follows the posterior itself, read off a line of points.
When the weights are still uneven, the proposal is fitted to the weighted draws, more are made from
it, and all draws are weighed as coming from the mixture of all proposals so far: none is lost.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import PchipInterpolator
from scipy.linalg import solve_triangular
from scipy.spatial.distance import cdist
from scipy.special import gammaln, logsumexp, ndtr, ndtri

from ombud.questions.authors.model._counts import Counts
from ombud.questions.authors.model._expansion import Region, expanded, expansion_work, outside
from ombud.questions.authors.model._kernel import Exhausted, Nodes, Work, log_likelihoods
from ombud.questions.authors.model._tables import ListTable, list_tables, table_work
from ombud.questions.authors.model._target import Mode, find_mode, log_prior
from ombud.questions.authors.model.posterior import Diagnostics, Drawn, Posterior
from ombud.questions.authors.model.priors import Priors
from ombud.stats.statistics import Floats


def pareto_fit(excess: Floats) -> tuple[float, float]:
    """Return shape and scale of a generalised Pareto distribution (Zhang and Stephens, 2009).

    `excess` has sorted excesses over the threshold, positive.

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

    `logs` are logarithms of the raw weights; -inf where a weight is zero.

    References
    ----------
    Vehtari, Simpson, Gelman, Yao and Gabry (2024), Pareto smoothed importance sampling, JMLR.
    """
    n = len(logs)
    if not np.isfinite(logs.max()):
        # Not one draw has any weight: nothing is known, and k-hat says so.
        return np.full(n, 1 / n), np.inf
    logs = logs - logs.max()
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
        shape = k if abs(k) > 1e-9 else 1e-9
        quantile = scale * np.expm1(-shape * np.log1p(-share)) / shape
        logs = logs.copy()
        logs[largest] = np.minimum(np.log(np.exp(cut) + quantile), 0.0)
    return np.exp(logs - logsumexp(logs)), k


# Sets of draws that are made independently of one another, as chains are.
_SETS = 4
# So many effective draws are enough, and so many a parameter, if they pass all checks; else the
# proposal is fitted again, at most so often.
_WANTED, _WANTED_EACH, _ROUNDS = 1600, 200, 24
# After so many fits of a single bell the proposal is a mixture of so many kernels.
_SIMPLE, _KERNELS = 4, 64
# Where so few are effective after so many rounds, further ones do not help.
_HOPELESS, _HOPELESS_ROUNDS = 40, 7
# Log standard deviations less certain than this follow the posterior itself.
_SKEWED = 0.12
_HEAVY = 0.7
# Up to so many directions a proposal has heavy tails.
_FEW_DIMENSIONS = 6
# How much flatter than the posterior a proposal along one of them is; with only the mean beside it
# there is no other parameter whose weights would suffer.
_FLATTER, _FLATTER_ALONE = 0.9, 0.6
# Points at which integrals are checked: so many at first, at most, and effective ones.
_CHECKED_POINTS, _MOST_CHECKED, _EFFECTIVE_CHECKS = 32, 96, 16
_CHECKED_USERS = 400
# Degrees of the polynomials that are tried in turn, and from how many users on; with fewer, the
# posterior is too wide for them. And the error that is small enough (nats).
_DEGREES = {4: 2000, 6: 200}
_TOLERATED = 0.05
# Without polynomials each round has so many draws; fewer where the budget ends, but not
# fewer than the second number.
_EXACT_DRAWS, _FEWEST_DRAWS = 1024, 256
# Nodes for the draws and for the way to the mode, tried in turn. Lists at 0 and at 1 beside others
# make a residual so wide that symmetric rules do not suffice, however many nodes they have.
_LEVELS = (
    (Nodes(9, 7), Nodes(7, 5)),
    (Nodes(12, 12, True), Nodes(20, 20, True)),
    (Nodes(20, 20, True), Nodes(30, 30, True)),
)
# So many points tell whether polynomials can follow.
_PROBES = 48


@dataclass(frozen=True)
class _Marginal:
    """A density in one direction, given by points of its logarithm."""

    grid: Floats
    density: Floats
    cumulated: Floats

    @classmethod
    def through(cls, places: Floats, logs: Floats, flatter: float) -> _Marginal:
        there = np.isfinite(logs)
        places, logs = places[there], logs[there]
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
        inside = (at >= self.grid[0]) & (at <= self.grid[-1])
        with np.errstate(divide="ignore"):
            return np.where(inside, np.log(mass / np.diff(self.grid)[cell]), -np.inf)

    def normal(self, at: Floats) -> Floats:
        """Return the standard normal values that `quantile` would turn into these."""
        share = np.interp(at, self.grid, self.cumulated)
        return ndtri(np.clip(share, 1e-300, 1 - 1e-16))


@dataclass(frozen=True, slots=True)
class _Straight:
    """Coordinates (mu, log sigma, c, h, log v), in which the posterior is closer to normal.

    Lists say where they stand for an average user, c = b + s mu, better than b. And what profiles
    and lists have in common fixes s sigma**p rather than s, with p between 1 (lists follow profiles
    closely) and 2 (they hardly do): where sigma is small, slopes are steep and their spread is
    wide, until their prior holds them. With D = log sigma - log sigma at the mode, information I
    about s there and prior precision P, s has the mean s0 (P + I) e**(p D) / (P + I e**(2 p D)) and
    the standard deviation sqrt((P + I) / (P + I e**(2 p D))) times that at the mode; h takes out
    both.
    """

    # Of the mode.
    log_sd: float
    slope: Floats
    # p and I of each system, and P.
    power: Floats
    information: Floats
    precision: float

    @classmethod
    def at(cls, mode: Mode, priors: Priors) -> _Straight:
        systems = (len(mode.point) - 2) // 3
        steep = np.arange(2 + systems, 2 + 2 * systems)
        slope, v = mode.point[steep], np.exp(mode.point[steep + systems])
        shared = np.exp(2 * mode.point[1]) * slope**2
        left = np.diag(mode.cover)[steep] - mode.cover[steep, 1] ** 2 / mode.cover[1, 1]
        precision = priors.slope_sd**-2.0
        information = np.maximum(1 / np.maximum(left, 1e-12) - precision, 0.0)
        power = 1 + v**2 / np.maximum(v**2 + shared, 1e-300)
        return cls(float(mode.point[1]), slope, power, information, precision)

    def _line(self, log_sd: Floats) -> tuple[Floats, Floats]:
        """Return mean and relative standard deviation of the slopes at each log sigma."""
        grown = np.exp(np.clip(self.power * (log_sd[:, None] - self.log_sd), -100, 100))
        whole = self.precision + self.information
        now = self.precision + self.information * grown**2
        return self.slope * whole * grown / now, np.sqrt(whole / now)

    def back(self, straight: Floats) -> tuple[Floats, Floats]:
        """Return points of the model, and the log of the volume element there."""
        systems = len(self.slope)
        points = straight.copy()
        middle, scale = self._line(straight[:, 1])
        level, steep = slice(2, 2 + systems), slice(2 + systems, 2 + 2 * systems)
        points[:, steep] = middle + scale * (straight[:, steep] - self.slope)
        points[:, level] = straight[:, level] - points[:, steep] * straight[:, :1]
        return points, np.log(scale).sum(axis=1)

    def forward(self, mode: Mode) -> tuple[Floats, Floats]:
        """Return the mode and its covariance in these coordinates."""
        systems = len(self.slope)
        turn = np.eye(len(mode.point))
        middle = mode.point.copy()
        part = (self.precision - self.information) / (self.precision + self.information)
        for a in range(systems):
            level, steep = 2 + a, 2 + systems + a
            middle[level] += self.slope[a] * mode.point[0]
            turn[level, 0], turn[level, steep] = self.slope[a], mode.point[0]
            turn[steep, 1] = -self.slope[a] * self.power[a] * part[a]
        return middle, turn @ mode.cover @ turn.T


def _felt(away: Floats, which: NDArray[np.intp], dimensions: int) -> Floats:
    """Return how far other parameters feel that a log standard deviation moved.

    A residual acts through its variance: once that is almost zero, less of it changes nothing. So
    does the spread of users where there is only their mean beside it; slopes go on to grow as it
    shrinks.
    """
    saturating = np.where(away < 0, np.expm1(2 * np.minimum(away, 0.0)) / 2, away)
    return np.where((which > 1) | (dimensions == 2), saturating, away)


def _root(cover: Floats) -> Floats:
    """Return the Cholesky factor; of what is not quite positive definite, with a little added."""
    cover = (cover + cover.T) / 2
    scale = np.sqrt(np.maximum(np.diag(cover), 1e-20))
    unit = np.eye(len(cover))
    for little in (0.0, 1e-10, 1e-7, 1e-4, 1e-1, 10.0):
        try:
            root = np.linalg.cholesky(cover / np.outer(scale, scale) + little * unit)
        except np.linalg.LinAlgError:
            continue
        return scale[:, None] * root
    return np.diag(scale)


class _Proposal:
    """Skewed directions by their own densities, joined as normals; the rest a Student t."""

    def __init__(
        self,
        straight: _Straight,
        middle: Floats,
        cover: Floats,
        plain: tuple[Floats, Floats],
        marginals: dict[int, _Marginal] | None = None,
        shifts: Floats | None = None,
    ) -> None:
        self.straight, self.middle = straight, middle
        # Where kernels stand, relative to the middle; one that stands there if there are none.
        self.shifts = np.zeros((1, len(middle))) if shifts is None else shifts
        # The same in the coordinates of the model.
        self.plain = plain
        self.marginals = marginals or {}
        self.own = np.array(sorted(self.marginals), dtype=np.intp)
        self.rest = np.setdiff1d(np.arange(len(middle)), self.own)
        self.sds = np.sqrt(np.diag(cover))
        own = cover[np.ix_(self.own, self.own)]
        across = cover[np.ix_(self.rest, self.own)]
        self.pull = np.linalg.solve(own, across.T).T if len(self.own) else across
        left = cover[np.ix_(self.rest, self.rest)] - self.pull @ across.T
        self.root = _root(left)
        self.correlation = own / np.outer(self.sds[self.own], self.sds[self.own])
        # In few dimensions heavy tails cost little, and a mean whose spread grows needs them.
        self.df = 5.0 if len(self.rest) <= _FEW_DIMENSIONS else max(20.0, 1.0 * len(middle))

    def draw(self, count: int, rng: np.random.Generator) -> Floats:
        """Return points."""
        points = np.empty((count, len(self.middle)))
        if len(self.own):
            z = rng.standard_normal((count, len(self.own))) @ _root(self.correlation).T
            for i, j in enumerate(self.own):
                points[:, j] = self.marginals[int(j)].quantile(ndtr(z[:, i]))
        e = rng.standard_normal((count, len(self.rest)))
        e /= np.sqrt(rng.chisquare(self.df, count) / self.df)[:, None]
        points[:, self.rest] = self._centres(points) + e @ self.root.T
        if len(self.shifts) > 1:
            points += self.shifts[rng.integers(len(self.shifts), size=count)]
        return points

    def log_density(self, points: Floats) -> Floats:
        """Return the log density of points, also of those that come from elsewhere."""
        logs = np.zeros(len(points))
        if len(self.own):
            root = _root(self.correlation)
            densities = [self.marginals[int(j)] for j in self.own]
            z = np.stack(
                [one.normal(points[:, j]) for j, one in zip(self.own, densities, strict=True)],
                axis=1,
            )
            e = solve_triangular(root, z.T, lower=True).T
            logs += -0.5 * (e**2).sum(axis=1) + 0.5 * (z**2).sum(axis=1)
            logs -= float(np.log(np.diag(root)).sum())
            for j, one in zip(self.own, densities, strict=True):
                logs += one.log_density(points[:, j])
        d = len(self.rest)
        away = points[:, self.rest] - self._centres(points)
        e = solve_triangular(self.root, away.T, lower=True).T
        shifts = solve_triangular(self.root, self.shifts[:, self.rest].T, lower=True).T
        far = cdist(e, shifts, "sqeuclidean")
        logs += logsumexp(-0.5 * (self.df + d) * np.log1p(far / self.df), axis=1)
        return logs + float(
            gammaln((self.df + d) / 2)
            - gammaln(self.df / 2)
            - 0.5 * d * np.log(self.df * np.pi)
            - np.log(np.diag(self.root)).sum()
            - np.log(len(shifts))
        )

    def _centres(self, points: Floats) -> Floats:
        """Return where the rest is expected, given the skewed directions."""
        away = points[:, self.own] - self.middle[self.own]
        return self.middle[self.rest] + _felt(away, self.own, len(self.middle)) @ self.pull.T

    def region(self, systems: int) -> Region:
        """Return where the draws lie."""
        low, high = ndtr(-4.0), ndtr(4.0)
        middle, cover = self.plain
        variances = np.empty((systems, 2))
        for a in range(systems):
            j = 2 + 2 * systems + a
            if j in self.marginals:
                ends = self.marginals[j].quantile(np.array([low, high]))
            else:
                ends = middle[j] + 4 * np.sqrt(cover[j, j]) * np.array([-1.0, 1.0])
            variances[a] = np.exp(2 * ends)
        return Region(middle, cover, variances)


@dataclass(frozen=True, slots=True)
class _Target:
    """What is drawn from, with how many nodes, and the budget."""

    counts: Counts
    priors: Priors
    nodes: Nodes
    work: Work
    tables: list[ListTable]

    def integrals(self, points: Floats, nodes: Nodes | None = None) -> Floats:
        """Return the log likelihood at each point, with every integral taken anew."""
        nodes = self.nodes if nodes is None else nodes
        self.work.spend(len(points) * nodes.work(self.counts))
        return log_likelihoods(self.counts, points, nodes)

    def each(self) -> float:
        """Return how many evaluations the log likelihood of one point is worth."""
        if not self.tables:
            return self.nodes.work(self.counts)
        return table_work(self.counts, self.nodes)

    def read(self, points: Floats) -> Floats:
        """Return the log likelihood at each point, by tables of integrals."""
        self.work.spend(len(points) * self.each())
        return log_likelihoods(self.counts, points, self.nodes, self.tables or None)

    def values(self, points: Floats, region: Region, degree: int) -> Floats:
        """Return the log likelihood at each point, by polynomials or by tables of integrals."""
        far = outside(points, region) if degree else np.ones(len(points), dtype=bool)
        found = np.empty(len(points))
        if far.any():
            found[far] = self.read(points[far])
        if not far.all():
            near = points[~far]
            self.work.spend(expansion_work(self.counts, len(near), self.nodes, degree))
            found[~far] = expanded(self.counts, near, region, self.nodes, degree)
        return found

    def some_users(self, rng: np.random.Generator) -> tuple[_Target, float]:
        """Return users on which errors are measured, and how many times as many there are."""
        rows = len(self.counts.count)
        if rows <= _CHECKED_USERS:
            return self, 1.0
        chosen = np.sort(rng.choice(rows, _CHECKED_USERS, replace=False))
        tables = [table.rows(chosen) for table in self.tables]
        part = replace(self, counts=self.counts.rows(chosen), tables=tables)
        return part, rows / _CHECKED_USERS

    def within(self, work: Work) -> _Target:
        """Return the same with a part of the budget."""
        return replace(self, work=work, tables=[table.within(work) for table in self.tables])


def draw(
    counts: Counts, priors: Priors, draws: int, rng: np.random.Generator, work: Work
) -> tuple[Drawn | None, Mode]:
    """Return weighted draws from the posterior, and its mode.

    There are no draws when the mode was not found. `Exhausted` is raised when the budget ends
    before the first draws.

    So many draws come in four independent sets.
    """
    target, mode = _settled(counts, priors, rng, work)
    if not mode.reached:
        return None, mode
    straight = _Straight.at(mode, priors)
    marginals = _skewed(target, mode, straight)
    first = _Proposal(straight, *straight.forward(mode), (mode.point, mode.cover), marginals)
    users = counts.times.sum()
    ways = [degree for degree, fewest in _DEGREES.items() if users >= fewest]
    if 1 in marginals or target.nodes.split:
        # Nodes that stay where they are cannot follow a sigma that is not certain: where it is
        # small they miss the peaks, and the tail that has them (steep slopes) would be cut off.
        # And polynomials hardly ever follow lists that need split rules.
        ways = []
    elif not counts.systems:
        ways = ways[:1]
    best: Drawn | None = None
    stopped = False
    for degree in [*ways, 0]:
        # Polynomials leave a third of the budget, or what a set of draws takes without them, for
        # the case that they do not suffice.
        exact = 1.2 * _EXACT_DRAWS * target.each()
        reserve = min(0.35, exact / max(work.left, 1.0)) if degree else 0.0
        own = target.within(work.part(1 - reserve))
        try:
            if degree and not _follows(own, first, degree, rng):
                continue
            found = _weighted(own, first, draws, degree, rng)
            best = found if best is None or found.error < best.error or not degree else best
            if not degree and found.error > _TOLERATED:
                # What symmetric rules miss, more nodes of them hardly find.
                nodes = own.nodes.doubled() if own.nodes.split else _LEVELS[1][0]
                finer = _with_tables(replace(own, nodes=nodes))
                found = _weighted(finer, first, draws, degree, rng)
                best = found if found.error < best.error else best
        except Exhausted:
            stopped = True
            continue
        if found.error <= _TOLERATED and found.khat < _HEAVY:
            return found, mode
    if best is None:
        raise Exhausted
    return replace(best, stopped=best.stopped or stopped), mode


def _with_tables(target: _Target) -> _Target:
    return replace(target, tables=list_tables(target.counts, target.nodes, target.work))


def _follows(target: _Target, proposal: _Proposal, degree: int, rng: np.random.Generator) -> bool:
    """Return whether polynomials come close to the integrals at a few points."""
    points, _ = proposal.straight.back(proposal.draw(_PROBES, rng))
    part, times = target.some_users(rng)
    region = proposal.region(target.counts.systems)
    away = (part.values(points, region, degree) - part.values(points, region, 0)) * times
    return bool(np.median(np.abs(away - np.median(away))) <= _TOLERATED)


def _settled(
    counts: Counts, priors: Priors, rng: np.random.Generator, work: Work
) -> tuple[_Target, Mode]:
    """Find the mode with as few nodes as suffice around it."""
    start = None
    for nodes, coarse in _LEVELS:
        target = _Target(counts, priors, nodes, work, [])
        mode = find_mode(counts, priors, coarse, work, start)
        # Also one that was not reached is nearer than where the climb began.
        start = mode.point
        if not mode.reached:
            continue
        if nodes is _LEVELS[-1][0]:
            break
        points = rng.multivariate_normal(mode.point, mode.cover, _CHECKED_POINTS // 2)
        part, times = target.some_users(rng)
        away = part.integrals(points) - part.integrals(points, nodes.doubled())
        if times * away.std(ddof=1) <= _TOLERATED:
            break
    return _with_tables(target), mode


def _weighted(
    target: _Target, proposal: _Proposal, draws: int, degree: int, rng: np.random.Generator
) -> Drawn:
    """Draw and weigh; while too few draws are effective, refit the proposal and add to them."""
    most = (draws if degree else min(draws, _EXACT_DRAWS)) // _SETS * _SETS
    wanted = max(_WANTED, _WANTED_EACH * len(proposal.middle))
    proposals: list[_Proposal] = []
    sizes: list[int] = []
    densities: list[Floats] = []  # Of all draws so far, by each of the proposals
    straight = proposal.straight
    drawn, values = np.empty((0, len(proposal.middle))), np.empty(0)
    sets = np.empty(0, dtype=np.int64)
    weights, khat, error, worst = np.empty(0), np.inf, np.inf, np.inf
    stopped = False
    # What the check of integrals costs at least is kept back for it.
    each, whole = target.each(), target.work
    if not degree:
        checks = _CHECKED_POINTS * (target.nodes.doubled().work(target.counts) + each)
        target = target.within(Work(max(whole.left - checks, 0.0), whole))
    while True:
        size = most
        if not degree:
            # A part of it goes into tables, most of them in the first round.
            afforded = (0.9 if proposals else 0.7) * target.work.left / each
            size = int(min(most, afforded)) // _SETS * _SETS
        try:
            if size < min(most, _FEWEST_DRAWS):
                raise Exhausted
            region = proposal.region(target.counts.systems)
            more = proposal.draw(size, rng)
            new, volume = straight.back(more)
            found = target.values(new, region, degree)
        except Exhausted:
            if not proposals:
                raise
            stopped = True
            break
        proposals.append(proposal)
        sizes.append(size)
        found = found + log_prior(new, target.priors)[0] + volume
        drawn = np.concatenate([drawn, more])
        values = np.concatenate([values, np.where(np.isfinite(found), found, -np.inf)])
        sets = np.concatenate([sets, np.arange(size, dtype=np.int64) * _SETS // size])
        # As if each draw came from all proposals, in proportion to how many it made.
        densities = [
            np.concatenate([known, one.log_density(more)])
            for one, known in zip(proposals, densities, strict=False)
        ]
        densities.append(proposal.log_density(drawn))
        mixed = logsumexp(densities, axis=0, b=np.array(sizes)[:, None])
        weights, khat = smooth_weights(values - mixed)
        if degree:
            # Each round has polynomials of its own: all of them must hold.
            off = _check(target, new, (values - mixed)[-size:], region, degree, rng)
            error, worst = off if len(sizes) == 1 else (max(error, off[0]), max(worst, off[1]))
            if not error <= _TOLERATED:
                break
        effective = 1 / float((weights**2).sum())
        now = Drawn(straight.back(drawn)[0], weights, sets, khat, 0.0, 0.0, degree)
        checked = Diagnostics.of(now, Posterior.of(now, target.counts.names), at_mode=True)
        enough = effective >= wanted and checked.converged
        hopeless = effective < _HOPELESS and len(proposals) >= _HOPELESS_ROUNDS
        if enough or hopeless or len(proposals) == _ROUNDS:
            break
        late = len(proposals) > _SIMPLE
        # No kernel reaches as far into the tails of standard deviations as the first proposal.
        again = late and len(proposals) % 3 == 0
        proposal = (
            proposals[0] if again else _refitted(straight, drawn, weights, rng if late else None)
        )
    points, _ = straight.back(drawn)
    if not degree:
        error, worst = _check(target.within(whole), points, values - mixed, region, degree, rng)
    return Drawn(points, weights, sets, khat, error, worst, degree, stopped)


def _skewed(target: _Target, mode: Mode, straight: _Straight) -> dict[int, _Marginal]:
    """Return densities along the log standard deviations that are not certain."""
    systems = target.counts.systems
    middle, cover = straight.forward(mode)
    sds = np.sqrt(np.diag(cover))
    found = {}
    for j in [1, *range(2 + 2 * systems, 2 + 3 * systems)]:
        if sds[j] < _SKEWED:
            continue
        direction = cover[:, j] / cover[j, j]
        # Left, where the tail is long, further than right.
        places = np.concatenate([-np.geomspace(8, 0.5, 7), [0.0], np.linspace(0.5, 4.5, 9)])
        places = places * min(sds[j], 0.75)
        line = middle + _felt(places[:, None], np.array([j]), len(middle)) * direction
        line[:, j] = middle[j] + places
        points, volume = straight.back(line)
        logs = target.read(points) if target.nodes.split else target.integrals(points)
        logs += log_prior(points, target.priors)[0] + volume
        if np.isfinite(logs).sum() < 3:
            continue
        found[j] = _Marginal.through(points[:, j], logs, _FLATTER if systems else _FLATTER_ALONE)
    return found


def _refitted(
    straight: _Straight, drawn: Floats, weights: Floats, rng: np.random.Generator | None
) -> _Proposal:
    """Return a proposal with the weighted mean and covariance, wider by a fifth.

    With `rng` it is a mixture of kernels around some of the draws, which follows a posterior that
    is bent: as wide together, each the narrower the fewer dimensions there are (West, 1993).
    """
    # Flattened until enough draws stand behind the covariance.
    flat = _flattened(np.log(np.maximum(weights, 1e-300)), 3 * drawn.shape[1])

    def moments(values: Floats) -> tuple[Floats, Floats]:
        middle = flat @ values
        away = values - middle
        cover = 1.2 * (away * flat[:, None]).T @ away
        cover[np.diag_indices_from(cover)] *= 1 + 1e-9
        return middle, cover

    (middle, cover), plain = moments(drawn), moments(straight.back(drawn)[0])
    if rng is None:
        return _Proposal(straight, middle, cover, plain)
    narrow = _KERNELS ** (-2 / (drawn.shape[1] + 4))
    chosen = drawn[rng.choice(len(drawn), _KERNELS, p=flat)]
    shifts = np.sqrt(1 - narrow) * (chosen - middle)
    return _Proposal(straight, middle, narrow * cover, plain, shifts=shifts)


def _flattened(logs: Floats, wanted: float) -> Floats:
    """Return normalized weights, raised to a power below 1 until enough of them count."""
    power = 1.0
    flat: Floats = np.exp(logs - logsumexp(logs))
    while 1 / float((flat**2).sum()) < wanted and power > 0.01:
        power *= 0.8
        flat = np.exp(power * logs - logsumexp(power * logs))
    return flat


def _check(
    target: _Target,
    points: Floats,
    logs: Floats,
    region: Region,
    degree: int,
    rng: np.random.Generator,
) -> tuple[float, float]:
    """Compare with integrals that have more nodes and no tables or polynomials, on some users.

    Points are taken from the proposal, whatever their weights: an error that takes a point's
    weight away would hide it from a choice by weights. Errors are weighed as the finer integrals
    would have it. A second figure weighs them by the weights in use, which shows points that have
    weight by error alone; the larger one counts.

    `points` and `logs` are draws, and their log weights in use; `region` and `degree` say by which
    polynomials the log likelihood was computed, if any.
    """
    part, times = target.some_users(rng)
    order = rng.permutation(len(logs))
    lacking, own = np.empty(0), np.empty(0)
    while len(lacking) < min(_MOST_CHECKED, len(order)):
        more = points[order[len(lacking) : len(lacking) + _CHECKED_POINTS]]
        try:
            fine = part.integrals(more, target.nodes.doubled())
            used = part.values(more, region, degree)
        except Exhausted:
            break
        # Beyond what numbers can hold there is nothing to compare.
        beyond = ~np.isfinite(fine) & ~np.isfinite(used)
        away = np.where(beyond, 0.0, fine - np.where(beyond, fine, used)) * times
        lacking = np.concatenate([lacking, away])
        if not np.isfinite(lacking).all():
            return np.inf, np.inf
        own = logs[order[: len(lacking)]]
        if not np.isfinite(own).any():
            continue
        finer = np.exp(own + lacking - logsumexp(own + lacking))
        if 1 / float((finer**2).sum()) >= _EFFECTIVE_CHECKS:
            break
    if not np.isfinite(own).any():
        return np.inf, np.inf
    errors, felt = [], np.zeros(len(lacking), dtype=bool)
    for found in (own + lacking, own):
        share = _flattened(found, _EFFECTIVE_CHECKS / 2)
        # A constant is no error: weights are relative.
        errors.append(float(np.sqrt(share @ (lacking - share @ lacking) ** 2)))
        felt |= share > 0.01 * share.max()
    return max(errors), float(np.ptp(lacking[felt]))
