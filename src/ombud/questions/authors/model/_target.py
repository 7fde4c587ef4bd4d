"""The posterior of the collapsed model: prior, starting point, mode and curvature."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ombud.questions.authors.model._counts import Counts
from ombud.questions.authors.model._kernel import Likelihood, Nodes, Work, log_likelihood
from ombud.questions.authors.model.priors import Priors
from ombud.stats.statistics import Floats

# Steps with split rules, and with others, which are cheap: a bent ridge may take a hundred.
_SPLIT_ROUNDS, _ROUNDS = 60, 240
# How far from the mode, as half the squared distance in posterior standard deviations.
_NEAR = 1e-3
# Beyond these a normal density on the log scale is no help, and the numbers are no longer safe.
_BOUNDS = {"centre": (-300.0, 300.0), "log sd": (-12.0, 7.0), "slope": (-1000.0, 1000.0)}


@dataclass(frozen=True, slots=True)
class Mode:
    """The highest point of the posterior, and the covariance that its curvature gives."""

    point: Floats
    cover: Floats
    reached: bool


def log_prior(points: Floats, priors: Priors) -> tuple[Floats, Floats, Floats]:
    """Return the log prior density on the scale of the points, its gradient and curvature.

    `points` is points x (mu, log sigma, b..., s..., log v...), or one of them. The priors are those
    of mu, sigma, b, s and v; the Jacobian of the logarithms is included.
    """
    systems = (points.shape[-1] - 2) // 3
    centre = np.repeat([0.0, np.inf, 0.0, 0.0, np.inf], [1, 1, systems, systems, systems])
    sds = np.repeat(
        [priors.mean_sd, 1.0, priors.intercept_sd, priors.slope_sd, 1.0],
        [1, 1, systems, systems, systems],
    )
    rates = np.repeat(
        [0.0, priors.spread_rate, 0.0, 0.0, priors.residual_rate], [1, 1, systems, systems, systems]
    )
    scale = np.isinf(centre)
    with np.errstate(over="ignore"):
        sizes = np.exp(np.where(scale, points, 0.0))
    z = np.where(scale, 0.0, points / sds)
    value = np.where(scale, points - rates * sizes + np.log(np.where(scale, rates, 1.0)), 0.0)
    value = value - np.where(scale, 0.0, 0.5 * z * z + np.log(sds * np.sqrt(2 * np.pi)))
    gradient = np.where(scale, 1 - rates * sizes, -z / sds)
    return value.sum(axis=-1), gradient, np.where(scale, -rates * sizes, -(sds**-2.0))


def starting_point(counts: Counts) -> Floats:
    """Return a rough point from means and covariances of smoothed log odds."""
    known = counts.known > 0
    t = _log_odds(counts.count, counts.known) - counts.offset
    error = 1 / np.maximum(counts.known, 1) * 4.5
    often = counts.times * known
    mean = np.average(t, weights=often)
    variance = max(0.05, np.average((t - mean) ** 2 - error, weights=often))
    intercept, slope, residual = [], [], []
    for a in range(counts.systems):
        there = often * (counts.list_known[:, a] > 0)
        if not there.any():
            # Only users without a profile have a list.
            there = counts.times * (counts.list_known[:, a] > 0)
        x = _log_odds(counts.list_count[:, a], counts.list_known[:, a])
        x = x - counts.list_offset[:, a]
        level, own = np.average(x, weights=there), np.average(t, weights=there)
        both = np.average((t - own) * (x - level), weights=there)
        s = np.clip(both / variance, -3, 3)
        noise = 4.5 / np.maximum(counts.list_known[:, a], 1)
        rest = np.average((x - level) ** 2 - noise, weights=there) - s * s * variance
        intercept.append(level - s * own)
        slope.append(s)
        residual.append(0.5 * np.log(max(0.02, rest)))
    return np.array([mean, 0.5 * np.log(variance), *intercept, *slope, *residual])


def _log_odds(count: Floats, known: Floats) -> Floats:
    return np.log((count + 0.5) / (known - count + 0.5))


def find_mode(
    counts: Counts, priors: Priors, nodes: Nodes, work: Work, start: Floats | None = None
) -> Mode:
    """Climb to the mode by Newton's method, with the curvature there.

    Steps are shortened (Levenberg's way) until they lead uphill.
    """
    # Derivatives take about twice as long as the values.
    each = 3 * nodes.work(counts)
    systems = counts.systems
    keys = ["centre", "log sd", *["centre"] * systems, *["slope"] * systems]
    low, high = np.array([_BOUNDS[key] for key in [*keys, *["log sd"] * systems]]).T
    point = np.clip(starting_point(counts) if start is None else start, low, high)
    work.spend(each)
    now = _posterior(counts, point, priors, nodes)
    damping, left = 0.01, np.inf
    for _ in range(_SPLIT_ROUNDS if nodes.split else _ROUNDS):
        cover, definite = _inverse(now.hessian)
        step = cover @ now.gradient
        left = float(now.gradient @ step)
        if definite and left < _NEAR:
            break
        if not definite or damping > 0.01:
            bend = -now.hessian
            bend[np.diag_indices_from(bend)] += damping * np.maximum(np.abs(np.diag(bend)), 1e-8)
            step = _inverse(-bend)[0] @ now.gradient
        # No step moves a log odds by more than 2 or a log standard deviation by more than 1.
        step *= min(1.0, 1 / float(np.abs(step[1]).max(initial=0.5)))
        step *= min(1.0, 1 / float(np.abs(step[2 + 2 * systems :]).max(initial=0.5)))
        tried = np.clip(point + step, low, high)
        work.spend(each)
        then = _posterior(counts, tried, priors, nodes)
        # Close to the mode the coarse integrals are less exact than their gradients.
        nearer = left < 1 and float(then.gradient @ cover @ then.gradient) < left
        if np.isfinite(then.value) and (then.value > now.value or nearer):
            point, now, damping = tried, then, max(damping / 10, 0.01)
        else:
            damping = max(damping, 0.1) * 4
            if damping > 1e8:
                break
    inside = bool(np.all((point > low) & (point < high)))
    return Mode(point, cover, definite and inside and left < _NEAR)


def _posterior(counts: Counts, point: Floats, priors: Priors, nodes: Nodes) -> Likelihood:
    found = log_likelihood(counts, point, nodes)
    prior, steep, bend = log_prior(point, priors)
    return Likelihood(
        found.value + float(prior), found.gradient + steep, found.hessian + np.diag(bend)
    )


def _inverse(hessian: Floats) -> tuple[Floats, bool]:
    """Return the inverse of the negative Hessian, and whether that is positive definite.

    If it is not, directions without curvature count as if they had some.
    """
    scale = 1 / np.sqrt(np.maximum(np.abs(np.diag(hessian)), 1e-12))
    values, vectors = np.linalg.eigh(-hessian * scale * scale[:, None])
    definite = bool(values[0] > 1e-7)
    moved = scale[:, None] * vectors
    return (moved / np.maximum(np.abs(values), 1e-4 if not definite else 1e-7)) @ moved.T, definite
