"""The log likelihood at many points at once: one matrix product instead of many integrals.

Over the width of a posterior the logarithm of each list's integral is a smooth function of where
its normal density stands, m = b + s t, and of its variance v**2 (of the variance, not of v: the
integral solves the heat equation, so it is smooth down to v = 0). It is interpolated once, at each
node of each user, by a polynomial. Since m is linear in b and s, all of them together are
linear in the monomials of (b, s, v**2), and a block of users costs one product for all points.
How far this is from the integral is measured, never assumed: see `_importance.check`.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb

import numpy as np
from numpy.typing import NDArray

from ombud.stats.propagation._counts import Counts
from ombud.stats.propagation._kernel import Nodes, Parameters, list_integral, user_nodes
from ombud.stats.statistics import Floats

__all__ = ["Region", "expanded"]

_DEGREE = 4
_DEGREE_VARIANCE = 3
_TERMS = [
    (i, j)
    for i in range(_DEGREE + 1)
    for j in range(min(_DEGREE_VARIANCE, _DEGREE - i) + 1)
]
# (power of b, power of s, power of the variance, and the term that it belongs to)
_MONOMIALS = [
    (i - part, part, j, term)
    for term, (i, j) in enumerate(_TERMS)
    for part in range(i + 1)
    if i + j
]
# Numbers of one array while multiplying (16 MiB in 32 bits).
_HELD = 2**22

Singles = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Region:
    """Where the points are: a middle, and how far they go from it.

    Parameters
    ----------
    middle
        (mu, log sigma, b..., s..., log v...).
    cover
        Covariance of the points.
    variances
        Systems x 2: the lowest and the highest v**2.
    """

    middle: Floats
    cover: Floats
    variances: Floats


def _polynomials(degree: int) -> Floats:
    """Return Chebyshev points on (-1, 1)."""
    return np.cos(np.pi * (np.arange(degree + 1) + 0.5) / (degree + 1))


def _solver() -> tuple[Floats, Floats, Floats]:
    """Return the points along m, those along the variance, and values -> coefficients."""
    along, across = _polynomials(_DEGREE), _polynomials(_DEGREE_VARIANCE)
    a, c = np.meshgrid(along, across, indexing="ij")
    design = np.stack([a.ravel() ** i * c.ravel() ** j for i, j in _TERMS], axis=1)
    return along, across, np.linalg.pinv(design)


def _system(region: Region, a: int, systems: int) -> tuple[float, float, float, Floats]:
    """Return what t is measured from, the scales of b and of s, and the covariance of both."""
    rows = np.array([2 + a, 2 + systems + a])
    cover = region.cover[np.ix_(rows, rows)]
    # b + s t is best known where its variance over the posterior is least.
    pivot = -cover[0, 1] / max(cover[1, 1], 1e-300)
    level = float(np.sqrt(max(cover[0, 0] - cover[0, 1] ** 2 / max(cover[1, 1], 1e-300), 1e-12)))
    return float(pivot), level, float(np.sqrt(max(cover[1, 1], 1e-12))), cover


def expanded(counts: Counts, points: Floats, region: Region, nodes: Nodes) -> Floats:
    """Return the marginal log likelihood at each point.

    Parameters
    ----------
    counts
        The data.
    points
        Points x parameters.
    region
        Where the points are.
    nodes
        How many.
    """
    systems = counts.systems
    at = Parameters.unpack(region.middle)
    spread = np.exp(points[:, 1])
    features = [
        -0.5 * (spread**-2 - at.spread**-2),
        points[:, 0] * spread**-2 - at.mean * at.spread**-2,
    ]
    scales = []
    for a in range(systems):
        pivot, level, tilt, cover = _system(region, a, systems)
        low, high = region.variances[a]
        scales.append((pivot, level, tilt, cover, (low + high) / 2, (high - low) / 2))
        steep = (points[:, 2 + systems + a] - at.slope[a]) / tilt
        up = points[:, 2 + a] - at.intercept[a] + pivot * steep * tilt
        size = (np.exp(2 * points[:, 2 + 2 * systems + a]) - (low + high) / 2) / ((high - low) / 2)
        features += [(up / level) ** i * steep**k * size**j for i, k, j, _ in _MONOMIALS]
    matrix = np.stack(features).astype(np.float32)
    total = np.zeros(len(points))
    rows = max(1, min(2**15 // nodes.users, _HELD // (nodes.users * len(points))))
    for start in range(0, len(counts.count), rows):
        part = counts.rows(np.arange(start, min(start + rows, len(counts.count))))
        base, coefficients = _coefficients(part, at, scales, nodes)
        moved = coefficients.reshape(-1, coefficients.shape[-1]) @ matrix
        moved = moved.reshape(len(base), nodes.users, len(points))
        top = base.max(axis=1)
        moved += (base - top[:, None]).astype(np.float32)[:, :, None]
        np.exp(moved, out=moved)
        # A point so far away that nothing is left gets next to no weight.
        logs = np.log(np.maximum(moved.sum(axis=1), np.float32(1e-37)))
        total += part.times @ logs.astype(np.float64) + float(part.times @ top)
    normal = np.log(spread) + 0.5 * (points[:, 0] / spread) ** 2
    return total - counts.times.sum() * (normal - np.log(at.spread) - 0.5 * (at.mean / at.spread) ** 2)


def _coefficients(
    part: Counts,
    at: Parameters,
    scales: list[tuple[float, float, float, Floats, float, float]],
    nodes: Nodes,
) -> tuple[Floats, Singles]:
    """Return users x nodes log integrands in the middle, and how they move with the features."""
    t, weights = user_nodes(part, at, nodes.users)
    z = (t - at.mean) / at.spread
    base = weights - 0.5 * z * z - np.log(at.spread * np.sqrt(2 * np.pi))
    found = np.empty((*t.shape, 2 + len(scales) * len(_MONOMIALS)), dtype=np.float32)
    found[..., 0], found[..., 1] = t * t, t
    along, across, solve = _solver()
    for a, (pivot, level, tilt, cover, centre, half) in enumerate(scales):
        away = t - pivot
        reach = 4 * np.sqrt(cover[0, 0] + 2 * t * cover[0, 1] + t * t * cover[1, 1] + 1e-12)
        middle = at.intercept[a] + at.slope[a] * t
        m = middle[..., None, None] + (reach[..., None] * along)[..., None]
        v = np.sqrt(np.maximum(centre + half * across, 0.0))
        k = part.list_count[:, a, None, None, None]
        r = part.list_known[:, a, None, None, None]
        m = np.broadcast_to(m, (*t.shape, len(along), len(across)))
        values = list_integral(k, r, m, np.broadcast_to(v, m.shape), nodes.lists, 0).value
        terms = values.reshape(*t.shape, -1) @ solve.T
        base += terms[..., 0]
        column = 2 + a * len(_MONOMIALS)
        for shift, (i, s, _, term) in enumerate(_MONOMIALS):
            factor = comb(i + s, s) * (level / reach) ** i * (tilt * away / reach) ** s
            found[..., column + shift] = terms[..., term] * factor
    return base, found
