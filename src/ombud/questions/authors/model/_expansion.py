"""The log likelihood at many points at once: one matrix product instead of many integrals.

Over the width of a posterior the logarithm of each list's integral is a smooth function of where
its normal density stands, m = b + s t, and of its variance v**2 (of the variance, not of v: the
integral solves the heat equation, so it is smooth down to v = 0). It is interpolated once, at each
node of each user, by a polynomial. Since m is linear in b and s, all of them together are
linear in the monomials of (b, s, v**2), and a block of users costs one product for all points.
How far this is from the integral is measured, never assumed: see `_importance._check`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import comb

import numpy as np
from numpy.typing import NDArray

from ombud.questions.authors.model._counts import Counts
from ombud.questions.authors.model._kernel import Nodes, Parameters, list_integral, user_nodes
from ombud.stats.statistics import Floats

# Numbers of one array while multiplying (16 MiB in 32 bits).
_HELD = 2**22
# Points further from the middle than this, in standard deviations, are integrated.
_FAR = 7.0

Singles = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Region:
    """Where the points are: a middle, and how far they go from it."""

    middle: Floats  # (mu, log sigma, b..., s..., log v...)
    cover: Floats  # Covariance of the points
    variances: Floats  # Systems x 2: the lowest and the highest v**2


@dataclass(frozen=True, slots=True)
class _Basis:
    """The polynomial in m and v**2: points to interpolate at, and its terms."""

    # Chebyshev points for m and for the variance, on (-1, 1).
    along: Floats
    across: Floats
    solve: Floats  # Turns values at all pairs of them into the coefficients of the terms
    terms: list[tuple[int, int]]  # Powers of m and of the variance
    # Powers of b, s and the variance, and the term each belongs to.
    monomials: list[tuple[int, int, int, int]]


@lru_cache
def _basis(degree: int) -> _Basis:
    """Return the polynomials of a total degree, and one less in the variance."""
    terms = [(i, j) for i in range(degree + 1) for j in range(min(degree - 1, degree - i) + 1)]
    along, across = (
        np.cos(np.pi * (np.arange(size) + 0.5) / size) for size in (degree + 1, degree)
    )
    a, c = (axis.ravel() for axis in np.meshgrid(along, across, indexing="ij"))
    solve = np.linalg.pinv(np.stack([a**i * c**j for i, j in terms], axis=1))
    monomials = [
        (i - part, part, j, term)
        for term, (i, j) in enumerate(terms)
        for part in range(i + 1)
        if i + j
    ]
    return _Basis(along, across, solve, terms, monomials)


def _system(region: Region, a: int, systems: int) -> tuple[float, float, float, Floats]:
    """Return what t is measured from, the scales of b and of s, and the covariance of both."""
    rows = np.array([2 + a, 2 + systems + a])
    cover = region.cover[np.ix_(rows, rows)]
    # b + s t is best known where its variance over the posterior is least.
    pivot = -cover[0, 1] / max(cover[1, 1], 1e-300)
    level = float(np.sqrt(max(cover[0, 0] - cover[0, 1] ** 2 / max(cover[1, 1], 1e-300), 1e-12)))
    return float(pivot), level, float(np.sqrt(max(cover[1, 1], 1e-12))), cover


def outside(points: Floats, region: Region) -> NDArray[np.bool_]:
    """Return which points are so far away that no polynomial was made for them."""
    systems = len(region.variances)
    far = np.zeros(len(points), dtype=bool)
    for a in range(systems):
        pivot, level, tilt, _ = _system(region, a, systems)
        low, high = region.variances[a]
        steep = points[:, 2 + systems + a] - region.middle[2 + systems + a]
        up = points[:, 2 + a] - region.middle[2 + a] + pivot * steep
        size = (np.exp(2 * points[:, 2 + 2 * systems + a]) - (low + high) / 2) / (high - low) * 2
        far |= (np.abs(up) > _FAR * level) | (np.abs(steep) > _FAR * tilt) | (size > 2)
    return far


def expansion_work(counts: Counts, points: int, nodes: Nodes, degree: int) -> int:
    """Return how many evaluations of an integrand `expanded` is worth.

    A point at a node takes a matrix product and an exponential in 32 bits: about half of one.
    """
    basis = _basis(degree)
    grid = len(basis.along) * len(basis.across) * nodes.lists
    return len(counts.count) * nodes.users * (counts.systems * grid + points // 2)


def expanded(counts: Counts, points: Floats, region: Region, nodes: Nodes, degree: int) -> Floats:
    """Return the marginal log likelihood at each point.

    `points` is points x parameters, and `region` where they are; `degree` is that of the
    polynomials.
    """
    systems = counts.systems
    basis = _basis(degree)
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
        steep = (points[:, 2 + systems + a] - at.slope[:, a]) / tilt
        up = points[:, 2 + a] - at.intercept[:, a] + pivot * steep * tilt
        size = (np.exp(2 * points[:, 2 + 2 * systems + a]) - (low + high) / 2) / ((high - low) / 2)
        features += [(up / level) ** i * steep**k * size**j for i, k, j, _ in basis.monomials]
    matrix = np.stack(features).astype(np.float32)
    total = np.zeros(len(points))
    rows = max(1, min(2**15 // nodes.users, _HELD // (nodes.users * len(points))))
    for start in range(0, len(counts.count), rows):
        part = counts.rows(np.arange(start, min(start + rows, len(counts.count))))
        base, coefficients = _coefficients(part, at, scales, nodes, basis)
        moved = coefficients.reshape(-1, coefficients.shape[-1]) @ matrix
        moved = moved.reshape(len(base), nodes.users, len(points))
        top = base.max(axis=1)
        moved += (base - top[:, None]).astype(np.float32)[:, :, None]
        # Far outside the region a polynomial may be anything; the check would see its weight.
        np.exp(np.minimum(moved, np.float32(60), out=moved), out=moved)
        # A point so far away that nothing is left gets next to no weight.
        logs = np.log(np.maximum(moved.sum(axis=1), np.float32(1e-37)))
        total += part.times @ logs.astype(np.float64) + float(part.times @ top)
    normal = np.log(spread) + 0.5 * (points[:, 0] / spread) ** 2
    total -= counts.times.sum() * (normal - np.log(at.spread) - 0.5 * (at.mean / at.spread) ** 2)
    return total


def _coefficients(
    part: Counts,
    at: Parameters,
    scales: list[tuple[float, float, float, Floats, float, float]],
    nodes: Nodes,
    basis: _Basis,
) -> tuple[Floats, Singles]:
    """Return users x nodes log integrands in the middle, and how they move with the features."""
    t, _, base = user_nodes(part, at, nodes.users, nodes.split)
    along, across, monomials = basis.along, basis.across, basis.monomials
    found = np.empty((*t.shape, 2 + len(scales) * len(monomials)), dtype=np.float32)
    found[..., 0], found[..., 1] = t * t, t
    for a, (pivot, level, tilt, cover, centre, half) in enumerate(scales):
        away = t - pivot
        reach = 4 * np.sqrt(cover[0, 0] + 2 * t * cover[0, 1] + t * t * cover[1, 1] + 1e-12)
        middle = part.list_offset[:, a, None] + at.middle(a, t)
        m = middle[..., None, None] + (reach[..., None] * along)[..., None]
        v = np.sqrt(np.maximum(centre + half * across, 0.0))
        k = part.list_count[:, a, None, None, None]
        r = part.list_known[:, a, None, None, None]
        m = np.broadcast_to(m, (*t.shape, len(along), len(across)))
        v = np.broadcast_to(v, m.shape)
        values = list_integral(k, r, m, v, nodes.lists, False, nodes.split).value
        terms = values.reshape(*t.shape, -1) @ basis.solve.T
        base += terms[..., 0]
        column = 2 + a * len(monomials)
        for shift, (i, s, _, term) in enumerate(monomials):
            factor = comb(i + s, s) * (level / reach) ** i * (tilt * away / reach) ** s
            found[..., column + shift] = terms[..., term] * factor
    return base, found
