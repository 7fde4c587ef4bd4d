"""The marginal likelihood of the propagation model: latents integrated out by quadrature.

A user's log odds t and the log odds x of each of their lists are one-dimensional integrals inside
one another. Both integrands are log-concave (a binomial likelihood times a normal density, and
convolutions of such), hence have one peak; Gauss-Hermite nodes are put around it. A count at 0 or
at its maximum beside a wide normal density is a step times a bell: no symmetric rule fits that, and
Gauss-Legendre nodes are put on either side of the peak, as far as the integrand reaches there.

Everything is held in the units of the normal densities, t = mu + sigma zeta and
x = b + s t + v delta, so that nothing is divided by a standard deviation that may be almost zero.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ombud.questions.authors.model._counts import Counts
from ombud.stats.statistics import Floats

# Numbers of one array while integrating (512 KiB): what stays in a core's cache.
HELD = 2**16
_ROOT_TWO_PI = float(np.sqrt(2 * np.pi))
# Newton's steps end when the last one moved a log odds by less than this.
_NEAR = 0.02
# Split rules end where the logarithm of the integrand is so far below its peak.
_DROP = 8.0
# Exponents above this would overflow.
_ROOM = 600.0


# The log integrals of all lists of each user together, at users x nodes of t.
Lists = Callable[[Floats], Floats]


class Reader(Protocol):
    """Tables of one system's integrals."""

    def read(self, middle: Floats, v: Floats) -> Floats:
        """Return the log integrals at points x users x nodes."""


class Exhausted(Exception):
    """The budget of integrand evaluations is spent."""


class Work:
    """Count evaluations of integrands against a budget.

    Work is counted, not timed: whether a fit ends early depends on the data alone, never on how
    busy the machine is.

    A budget is part of its `parent`, if any; both are charged.
    """

    def __init__(self, limit: float, parent: Work | None = None) -> None:
        self.limit, self.parent, self.spent = limit, parent, 0.0

    @property
    def left(self) -> float:
        """How many evaluations are left."""
        return self.limit - self.spent

    def part(self, share: float) -> Work:
        """Return a budget that may spend a share of what is left."""
        return Work(share * self.left, self)

    def spend(self, evaluations: float) -> None:
        """Charge evaluations before they are made; raise `Exhausted` if they exceed the budget."""
        if evaluations > self.left:
            raise Exhausted
        self.spent += evaluations
        if self.parent is not None:
            self.parent.spend(evaluations)


@dataclass(frozen=True, slots=True)
class Nodes:
    """How many nodes the integral over users and the one over each list have."""

    # How many; even numbers where they are split.
    users: int = 11
    lists: int = 9
    # Whether either side of a peak has its own, as far as the integrand reaches there.
    split: bool = False

    def work(self, counts: Counts) -> int:
        """Return how many evaluations of an integrand one point of the parameters takes.

        Those of split rules count one and a half times: their reach has to be found.
        """
        # Without lists it takes as long to place the nodes as some lists would take.
        once = len(counts.count) * self.users * max(3, counts.systems * self.lists)
        return once * 3 // 2 if self.split else once

    def doubled(self) -> Nodes:
        """Return about twice as many, for a check; half as many again where they are split."""
        if self.split:
            return Nodes(self.users * 3 // 4 * 2, self.lists * 3 // 4 * 2, True)
        return Nodes(2 * self.users + 1, 2 * self.lists + 1)


@dataclass(frozen=True, slots=True)
class Parameters:
    """Rows of mu, of sigma, and of b, s and v by system: one for all users, or one for each."""

    mean: Floats
    spread: Floats
    intercept: Floats
    slope: Floats
    residual: Floats

    @classmethod
    def unpack(cls, points: Floats) -> Parameters:
        """Read them from rows of (mu, log sigma, b..., s..., log v...), or from one."""
        points = np.atleast_2d(points)
        b, s, v = np.moveaxis(points[:, 2:].reshape(len(points), 3, -1), 1, 0)
        return cls(points[:, 0], np.exp(points[:, 1]), b, s, np.exp(v))

    def rows(self, chosen: NDArray[np.bool_]) -> Parameters:
        """Return some of the rows."""
        return Parameters(*(getattr(self, part.name)[chosen] for part in fields(self)))

    def middle(self, a: int, t: Floats) -> Floats:
        """Return b + s t of one system."""
        return self.intercept[:, a, None] + self.slope[:, a, None] * t


@lru_cache
def _hermite(count: int) -> tuple[Floats, Floats]:
    """Return nodes, and log weights that already hold the exp(node**2 / 2)."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(count)
    return nodes, np.log(weights) + nodes**2 / 2


@lru_cache
def _legendre(count: int) -> tuple[Floats, Floats]:
    """Return nodes on (-1, 0) and on (0, 1), half of them each, and log weights."""
    nodes, weights = np.polynomial.legendre.leggauss(count // 2)
    right, logs = (nodes + 1) / 2, np.log(weights / 2)
    return np.concatenate([-right[::-1], right]), np.concatenate([logs[::-1], logs])


def _logistic(x: Floats) -> tuple[Floats, Floats]:
    """Return log(1 + exp(x)) and the derivative of it."""
    small = np.exp(-np.abs(x))
    share = 1 / (1 + small)
    return np.maximum(x, 0) + np.log(1 + small), np.where(x >= 0, share, small * share)


def _share(x: Floats) -> Floats:
    """Return the logistic function."""
    small = np.exp(-np.abs(x))
    found: Floats = np.where(x >= 0, 1.0, small) / (1 + small)
    return found


def peaks(
    counts: Counts, at: Parameters, steps: int = 60, begin: tuple[Floats, Floats] | None = None
) -> tuple[Floats, Floats]:
    """Return where each user's integrand peaks, and how wide it is (both on the scale of t).

    The joint peak over t and all x is found by Newton's method; since every x depends on t alone,
    the Hessian is an arrow and its Schur complement is a sum.
    """
    if begin is None:
        known = np.maximum(counts.known, 1)
        start = np.log((counts.count + 0.5) / (known - counts.count + 0.5)) - counts.offset
        shrink = at.spread**2 / (at.spread**2 + 4 / known)
        begin = at.mean + shrink * (start - at.mean), np.zeros(counts.list_count.shape)
    t, delta = begin
    k, r, s, v = counts.list_count, counts.list_known, at.slope, at.residual
    variance = at.spread**2
    width = np.ones_like(t)
    for step in range(steps):
        x = counts.list_offset + at.intercept + s * t[:, None] + v * delta
        p, q = _share(counts.offset + t), _share(x)
        weight = r * q * (1 - q)
        slack = 1 / (1 + v**2 * weight)
        pull = k - r * q
        down = v * pull - delta
        # t in units of sigma: gradient and Schur complement of the negative Hessian.
        width = 1 + variance * (counts.known * p * (1 - p) + (s**2 * weight * slack).sum(axis=1))
        gradient = at.spread * (counts.count - counts.known * p + (s * pull).sum(axis=1))
        gradient -= (t - at.mean) / at.spread
        gradient -= at.spread * (s * v * weight * slack * down).sum(axis=1)
        if step == steps - 1:
            break
        move = at.spread * gradient / width
        moves = (down - s * v * weight * move[:, None]) * slack
        largest = np.maximum(
            np.abs(move), (np.abs(s * move[:, None] + v * moves)).max(axis=1, initial=0.0)
        )
        damp = np.minimum(1, 2 / np.maximum(largest, 1e-300))
        t = t + damp * move
        delta = delta + damp[:, None] * moves
        # The peak only places nodes: the next step would be far smaller than this one.
        far = largest > _NEAR
        if not far.any():
            break
        if 2 * np.count_nonzero(far) < len(t) == len(at.mean):
            # Only those that are still on their way go on.
            rest = peaks(counts.rows(far), at.rows(far), steps - step - 1, (t[far], delta[far]))
            t[far], found = rest
            width = at.spread / np.sqrt(width)
            width[far] = found
            return t, width
    return t, at.spread / np.sqrt(width)


def _user_reach(
    counts: Counts, at: Parameters, centre: Floats, width: Floats, lists: Lists | None
) -> Floats:
    """Return how far to the left and to the right of its peak each user's integrand reaches.

    This places nodes, and need not be exact. Without tables every x is at its best for the t in
    question.
    """
    sides = np.array([-1.0, 1.0])
    # No integrand is wider than the normal density of t.
    widest = (np.sqrt(2 * _DROP) * at.spread + np.zeros_like(centre))[:, None]

    def log_integrand(t: Floats) -> Floats:
        odds = counts.offset[:, None] + t
        z = (t - at.mean[:, None]) / at.spread[:, None]
        value = counts.count[:, None] * odds - counts.known[:, None] * _logistic(odds)[0]
        value -= 0.5 * z * z
        if lists is not None:
            return value + lists(t)
        for a in range(counts.systems):
            k, r = counts.list_count[:, a, None], counts.list_known[:, a, None]
            middle = counts.list_offset[:, a, None] + at.middle(a, t)
            v = at.residual[:, a, None]
            delta, _ = _list_peak(k, r, middle, v)
            x = middle + v * delta
            value += k * x - r * _logistic(x)[0] - 0.5 * delta**2
        return value

    top = log_integrand(centre[:, None])
    away: Floats = np.minimum(width[:, None] * np.sqrt(2 * _DROP), widest) + 0 * sides
    near, far = np.zeros_like(away), widest + 0 * sides
    # Logarithms of how far it falls, relative to how far it should, at both.
    low, high = np.full_like(away, -np.inf), np.full_like(away, np.inf)
    for _ in range(3):
        fall = top - log_integrand(centre[:, None] + sides * away)
        fall = np.log(np.maximum(fall, 1e-3) / _DROP)
        short = fall < 0
        near, low = np.where(short, away, near), np.where(short, fall, low)
        far, high = np.where(short, far, away), np.where(short, high, fall)
        # Between a line and a parabola; between two places, as an exponential grows.
        guess = away * np.exp(np.clip(-0.65 * fall, -3, 3))
        with np.errstate(invalid="ignore"):
            between = near + (far - near) * low / (low - high)
        both = np.isfinite(low) & np.isfinite(high)
        away = np.clip(np.where(both, between, guess), near, far)
    return away


def user_nodes(
    counts: Counts, at: Parameters, count: int, split: bool = False, lists: Lists | None = None
) -> tuple[Floats, Floats, Floats]:
    """Return users x nodes: t, the same in units of sigma, and log weights.

    The weights hold the likelihood of the profile and the density of t.
    """
    centre, width = peaks(counts, at)
    if split:
        nodes, logs = _legendre(count)
        away = _user_reach(counts, at, centre, width, lists)
        reach = np.where(nodes < 0, away[:, :1], away[:, 1:])
    else:
        nodes, logs = _hermite(count)
        reach = width[:, None]
    t = centre[:, None] + reach * nodes
    weights = logs + np.log(reach)
    odds = counts.offset[:, None] + t
    weights = weights + counts.count[:, None] * odds - counts.known[:, None] * _logistic(odds)[0]
    z = (t - at.mean[:, None]) / at.spread[:, None]
    return t, z, weights - 0.5 * z * z - np.log(at.spread * _ROOT_TWO_PI)[:, None]


@dataclass(frozen=True, slots=True)
class Integral:
    """The logarithm of a list's integral and its derivatives.

    With respect to the middle of x, to the log of its standard deviation, and second ones;
    those that were not asked for are empty.
    """

    value: Floats
    by_middle: Floats
    by_log_sd: Floats
    twice_middle: Floats
    mixed: Floats
    twice_log_sd: Floats


def _list_peak(k: Floats, r: Floats, middle: Floats, v: Floats) -> tuple[Floats, Floats]:
    """Return where a list's integrand peaks, in units of v from the middle, and how wide it is.

    Newton's method between two ends that close in: a step beyond them is halved instead, so that
    the peak is found however far the middle is from the counts and however wide v.
    """
    # Begin where a normal likelihood with the same mean and curvature would put the peak.
    odds = (k + 0.5) / (r - k + 0.5)
    precision = (r + 1) * odds / (1 + odds) ** 2
    low, high = -v * (r - k) + 0 * middle, v * k + 0 * middle
    delta = v * precision / (1 + v**2 * precision) * (np.log(odds) - middle)
    delta = np.clip(delta, low, high)
    for _ in range(40):
        p = _share(middle + v * delta)
        bend = 1 + v**2 * r * p * (1 - p)
        up = v * (k - r * p) - delta
        low, high = np.where(up > 0, delta, low), np.where(up > 0, high, delta)
        then = delta + up / bend
        beyond = (then < low) | (then > high)
        if beyond.any():
            then = np.where(beyond, (low + high) / 2, then)
        furthest = float((np.abs(then - delta) * np.sqrt(bend)).max(initial=0.0))
        delta = then
        # The peak only places the nodes: a part of the width is near enough.
        if furthest < 0.1:
            break
    return delta, 1 / np.sqrt(bend)


def _list_reach(
    k: Floats, r: Floats, middle: Floats, v: Floats, delta: Floats, width: Floats
) -> tuple[Floats, Floats]:
    """Return how far a list's integrand reaches to the left and to the right of its peak."""

    def log_integrand(z: Floats) -> tuple[Floats, Floats]:
        x = middle + v * z
        soft, p = _logistic(x)
        return k * x - r * soft - 0.5 * z * z, v * (k - r * p) - z

    top, _ = log_integrand(delta)
    # It is convex how far the logarithm falls, and at least half the square of the distance.
    widest = float(np.sqrt(2 * _DROP))
    found = []
    for side in (-1.0, 1.0):
        away = widest * width
        for _ in range(2):
            value, slope = log_integrand(delta + side * away)
            short = top - value - _DROP
            away = np.clip(away - short / np.maximum(-side * slope, 1e-9), 0.2 * away, widest)
        found.append(away)
    return found[0], found[1]


def list_integral(
    k: Floats,
    r: Floats,
    middle: Floats,
    residual: float | Floats,
    count: int,
    derivatives: bool,
    split: bool = False,
) -> Integral:
    """Integrate a binomial likelihood, without its coefficient, over x ~ Normal(middle, residual).

    `k` and `r` are items of the identity and of known identity, shaped to broadcast against
    `middle`; `count` is how many nodes. With `split`, either side of the peak has its own nodes.
    """
    v = np.asarray(residual, dtype=np.float64)
    delta, width = _list_peak(k, r, middle, v)
    if split:
        nodes, logs = _legendre(count)
        left, right = _list_reach(k, r, middle, v, delta, width)
        reach = np.where(nodes < 0, left[..., None], right[..., None])
        logs = logs + np.log(reach)
    else:
        nodes, logs = _hermite(count)
        reach = width[..., None]
    z = delta[..., None] + reach * nodes
    x = middle[..., None] + v[..., None] * z
    small = np.exp(-np.abs(x))
    softplus = np.log(1 + small)
    softplus += np.maximum(x, 0)
    e = k[..., None] * x
    e -= r[..., None] * softplus
    e -= 0.5 * z * z
    top = e[..., count // 2].copy()
    e -= top[..., None]
    e += logs
    if e.max(initial=0.0) > _ROOM:
        # Nodes around a peak that was not found, at residuals so wide that the prior rules them
        # out: the number need not be exact, but it must be one.
        missed = np.maximum(e.max(axis=-1) - _ROOM, 0.0)
        e -= missed[..., None]
        top += missed
    np.exp(e, out=e)
    total = e.sum(axis=-1)
    value = top + np.log((total if split else total * width) / _ROOT_TWO_PI)
    none = np.zeros(0)
    if not derivatives:
        return Integral(value, none, none, none, none, none)
    e /= total[..., None]
    share = 1 / (1 + small)
    share *= np.where(x >= 0, 1.0, small)
    pull = k[..., None] - r[..., None] * share
    turn = v[..., None] * z
    weighted = e * pull
    first, second = weighted.sum(axis=-1), (weighted * turn).sum(axis=-1)
    # Derivatives of the log of a mean: mean of the second ones plus the covariance of the first.
    bent = pull * pull - r[..., None] * share * (1 - share)
    bent *= e
    twice = bent.sum(axis=-1) - first**2
    bent *= turn
    mixed = bent.sum(axis=-1) - first * second
    bent *= turn
    both = bent.sum(axis=-1) + second - second**2
    return Integral(value, first, second, twice, mixed, both)


@dataclass(frozen=True, slots=True)
class Likelihood:
    """Marginal log likelihood, gradient and Hessian."""

    value: float
    gradient: Floats
    hessian: Floats


def log_likelihood(counts: Counts, point: Floats, nodes: Nodes) -> Likelihood:
    """Return the marginal log likelihood and derivatives, without the binomial coefficients.

    `point` is (mu, log sigma, b..., s..., log v...).
    """
    at = Parameters.unpack(point)
    size = len(point)
    t, z, logs = user_nodes(counts, at, nodes.users, nodes.split)
    total = 0.0
    gradient = np.zeros(size)
    hessian = np.zeros((size, size))
    step = max(1, HELD // (nodes.users * nodes.lists))
    for start in range(0, len(t), step):
        part = slice(start, start + step)
        found, log = t[part], logs[part]
        lists = [
            list_integral(
                counts.list_count[part, a, None],
                counts.list_known[part, a, None],
                counts.list_offset[part, a, None] + at.middle(a, found),
                at.residual[:, a, None],
                nodes.lists,
                True,
                nodes.split,
            )
            for a in range(counts.systems)
        ]
        for one in lists:
            log = log + one.value
        top = log.max(axis=1)
        share = np.exp(log - top[:, None])
        whole = share.sum(axis=1)
        often = counts.times[part]
        total += float(often @ (top + np.log(whole)))
        share /= whole[:, None]
        scores = _scores(z[part], found, at, lists)
        mean = np.einsum("uq,uqd->ud", share, scores)
        gradient += often @ mean
        share *= often[:, None]
        rows = (scores * np.sqrt(share)[..., None]).reshape(-1, size)
        hessian += rows.T @ rows - (mean * often[:, None]).T @ mean
        hessian += _bend(share, z[part], found, at, lists)
    return Likelihood(total, gradient, hessian)


def log_likelihoods(
    counts: Counts, points: Floats, nodes: Nodes, tables: Sequence[Reader] | None = None
) -> Floats:
    """Return the marginal log likelihood at many points, without the binomial coefficients.

    `points` is points x (mu, log sigma, b..., s..., log v...). `tables` are of the integrals of
    each system's lists; without them every integral is taken.
    """
    users = len(counts.count)
    total = np.zeros(len(points))
    # Split rules do most of their work on one number for each pair, not on one for each node.
    held = HELD * (4 if nodes.split else 1)
    if tables is None:
        step = max(1, held // (nodes.users * (nodes.lists if counts.systems else 4)))
    else:
        step = max(1, held // (4 * nodes.users * users)) * users
    for start in range(0, users * len(points), step):
        # Pairs of a point and a user, point by point.
        which, user = np.divmod(np.arange(start, min(start + step, users * len(points))), users)
        part, at = counts.rows(user), Parameters.unpack(points[which])

        def lists(t: Floats, part: Counts = part, at: Parameters = at) -> Floats:
            found = np.zeros(t.shape)
            for a in range(counts.systems):
                middle = part.list_offset[:, a, None] + at.middle(a, t)
                if tables is not None:
                    shape = (-1, users, t.shape[1])
                    v = at.residual[::users, a]
                    found += tables[a].read(middle.reshape(shape), v).reshape(t.shape)
                    continue
                k, r = part.list_count[:, a, None], part.list_known[:, a, None]
                v = at.residual[:, a, None]
                found += list_integral(k, r, middle, v, nodes.lists, False, nodes.split).value
            return found

        t, _, log = user_nodes(
            part, at, nodes.users, nodes.split, None if tables is None else lists
        )
        log = log + lists(t)
        top = log.max(axis=1)
        found = part.times * (top + np.log(np.exp(log - top[:, None]).sum(axis=1)))
        total += np.bincount(which, weights=found, minlength=len(points))
    return total


def _scores(z: Floats, t: Floats, at: Parameters, lists: list[Integral]) -> Floats:
    """Return users x nodes x parameters: the gradient of the log integrand at each node."""
    systems = len(lists)
    found = np.empty((*t.shape, 2 + 3 * systems))
    found[..., 0], found[..., 1] = z / float(at.spread[0]), z * z - 1
    for a, one in enumerate(lists):
        found[..., 2 + a] = one.by_middle
        found[..., 2 + systems + a] = one.by_middle * t
        found[..., 2 + 2 * systems + a] = one.by_log_sd
    return found


def _bend(share: Floats, z: Floats, t: Floats, at: Parameters, lists: list[Integral]) -> Floats:
    """Return the weighted sum of the Hessians of the log integrands."""
    systems = len(lists)
    found = np.zeros((2 + 3 * systems, 2 + 3 * systems))
    spread = float(at.spread[0])
    found[0, 0] = -share.sum() / spread**2
    found[0, 1] = found[1, 0] = -2 * np.vdot(share, z) / spread
    found[1, 1] = -2 * np.vdot(share, z * z)
    for a, one in enumerate(lists):
        b, s, v = 2 + a, 2 + systems + a, 2 + 2 * systems + a
        twice, mixed = share * one.twice_middle, share * one.mixed
        found[b, b] = twice.sum()
        found[b, s] = found[s, b] = np.vdot(twice, t)
        found[s, s] = np.vdot(twice, t * t)
        found[b, v] = found[v, b] = mixed.sum()
        found[s, v] = found[v, s] = np.vdot(mixed, t)
        found[v, v] = np.vdot(share, one.twice_log_sd)
    return found
