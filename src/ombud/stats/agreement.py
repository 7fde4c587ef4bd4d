"""Agreement between raters: Krippendorff's alpha and Cohen's kappa."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ombud.stats.bootstrap.resample import estimate
from ombud.stats.estimate import Estimate
from ombud.stats.intervals import Method
from ombud.stats.statistics import Floats, OfSums

Measurement = Literal["nominal", "ordinal", "interval"]


def codes(
    ratings: npt.ArrayLike, categories: Sequence[Hashable] | None = None
) -> tuple[Floats, list[Any]]:
    """Return ratings as positions in the sorted (or given) categories, NaN where missing.

    None and NaN are missing. A rating outside given categories is an error.

    Examples
    --------
    >>> codes(["b", None, "a"])
    (array([ 1., nan,  0.]), ['a', 'b'])
    """
    raw = np.asarray(ratings)
    if raw.dtype.kind in "OUS":
        missing = np.array([v is None or v != v for v in raw.ravel()], dtype=np.bool_)
    else:
        missing = np.isnan(raw.astype(np.float64)).ravel()
    flat = raw.ravel()
    found, inverse = np.unique(flat[~missing], return_inverse=True)
    names = found.tolist()
    if categories is not None:
        position = {name: index for index, name in enumerate(categories)}
        strange = [name for name in names if name not in position]
        if strange:
            raise ValueError(f"{len(strange)} categories not expected; the first: {strange[0]!r}")
        inverse = np.array([position[name] for name in names], dtype=np.int64)[inverse]
        names = list(categories)
    result = np.full(flat.shape, np.nan)
    result[~missing] = inverse
    return result.reshape(raw.shape), names


def _nominal(count: int) -> OfSums:
    def terms(n: Floats) -> Floats:
        m = n.sum(axis=1)
        return np.column_stack([n, (m**2 - (n**2).sum(axis=1)) / (m - 1)])

    def combine(*sums: Floats) -> Floats:
        n = np.stack(sums[:count])
        total = n.sum(axis=0)
        expected = total**2 - (n**2).sum(axis=0)
        return np.asarray(1 - (total - 1) * sums[count] / expected)

    return OfSums(tuple(f"category {c}" for c in range(count)), combine, terms)


def _ordinal(count: int) -> OfSums:
    low, high = np.triu_indices(count, 1)

    def terms(n: Floats) -> Floats:
        m = n.sum(axis=1, keepdims=True)
        return np.hstack([n, n[:, low] * n[:, high] / (m - 1)])

    def combine(*sums: Floats) -> Floats:
        n, pairs = np.stack(sums[:count]), np.stack(sums[count:-1])
        total = n.sum(axis=0)
        reached = np.cumsum(n, axis=0)
        # Ratings between two categories, with half of the categories themselves.
        between = reached[high] - n[high] / 2 - reached[low] + n[low] / 2
        expected = (n[low] * n[high] * between**2).sum(axis=0)
        return np.asarray(1 - (total - 1) * (pairs * between**2).sum(axis=0) / expected)

    return OfSums(tuple(f"category {c}" for c in range(count)), combine, terms)


def _interval() -> OfSums:
    def terms(x: Floats) -> Floats:
        m, total, squares = x.T
        return np.column_stack([x, (m * squares - total**2) / (m - 1)])

    def combine(m: Floats, total: Floats, squares: Floats, within: Floats, w: Floats) -> Floats:
        expected = m * squares - total**2
        expected = np.where(expected > 1e-12 * m * squares, expected, np.nan)
        return 1 - (m - 1) * within / expected

    return OfSums(("ratings", "sum", "sum of squares"), combine, terms)


def alpha_sample(
    ratings: npt.ArrayLike,
    measurement: Measurement = "nominal",
    categories: Sequence[Hashable] | None = None,
) -> tuple[Floats, OfSums]:
    """Return values per unit and the statistic that makes them alpha, for `resample`.

    Parameters
    ----------
    ratings
        Shape (units, raters); None or NaN where a rater did not rate.
    measurement
        How categories differ: any two alike, by rank, or by distance.
    categories
        The order of categories, where sorting does not give it. Not for ``"interval"``.

    Notes
    -----
    Units with fewer than two ratings say nothing about agreement; their rows are NaN.
    """
    if np.asarray(ratings).ndim != 2:
        raise ValueError(f"ratings have shape {np.shape(ratings)}; expected (units, raters)")
    if measurement == "interval":
        x = np.array(ratings, dtype=np.float64)
        known = ~np.isnan(x)
        if known.any():
            x -= x[known].mean()  # squares of large numbers would lose digits
        x[~known] = 0.0
        values = np.column_stack([known.sum(axis=1), x.sum(axis=1), (x**2).sum(axis=1)])
        values = values.astype(np.float64)
        values[values[:, 0] < 2] = np.nan
        return values, _interval()
    if measurement not in ("nominal", "ordinal"):
        raise ValueError(f"measurement is {measurement!r}; expected nominal, ordinal or interval")
    code, names = codes(ratings, categories)
    count = max(len(names), 2)  # one category alone has no pairs of categories
    units, raters = code.shape
    known = ~np.isnan(code)
    cell = np.arange(units)[:, None] * count + np.where(known, code, 0)
    counts = np.bincount(cell[known].astype(np.int64), minlength=units * count)
    values = counts.reshape(units, count).astype(np.float64)
    values[values.sum(axis=1) < 2] = np.nan
    return values, _nominal(count) if measurement == "nominal" else _ordinal(count)


def krippendorff_alpha(
    ratings: npt.ArrayLike,
    measurement: Measurement = "nominal",
    categories: Sequence[Hashable] | None = None,
) -> float:
    r"""Return Krippendorff's alpha, agreement beyond chance for any number of raters.

    :math:`\alpha = 1 - D_o / D_e`: observed over expected disagreement, from pairs of ratings
    within units and between all ratings. Missing ratings are allowed. NaN when no unit has two
    ratings or all ratings are equal (nothing could disagree). It does not say who is right, and
    falls when one category is rare though raters agree often.

    References
    ----------
    Krippendorff (2011), *Computing Krippendorff's Alpha-Reliability*.

    Examples
    --------
    >>> round(krippendorff_alpha([[1, 1], [2, 2], [1, 2], [2, 2]]), 3)
    0.533
    """
    values, statistic = alpha_sample(ratings, measurement, categories)
    return statistic.point(values)


def alpha_estimate(
    ratings: npt.ArrayLike,
    measurement: Measurement = "nominal",
    *,
    rng: np.random.Generator,
    metric: str = "",
    categories: Sequence[Hashable] | None = None,
    clusters: npt.ArrayLike | None = None,
    level: float = 0.95,
    method: Method = "bca",
    replicates: int = 2000,
    **about: Any,
) -> Estimate:
    """Return Krippendorff's alpha with a bootstrap interval over units.

    Raters are taken as given: the interval says how alpha would vary over other units rated by
    the same raters.

    Examples
    --------
    >>> e = alpha_estimate([[1, 1], [1, 1]], rng=np.random.default_rng(0))
    >>> e.reason
    'all ratings are equal, so nothing could disagree'
    """
    values, statistic = alpha_sample(ratings, measurement, categories)
    name = metric or f"Krippendorff's alpha ({measurement})"
    n = int(np.count_nonzero(~np.isnan(values[:, 0])))
    if np.isnan(statistic.point(values)):
        reason = (
            "all ratings are equal, so nothing could disagree" if n else "no unit has two ratings"
        )
        return Estimate.undefined(
            reason_code="no-variation" if n else "no-units",
            metric=name,
            reason=reason,
            n=n,
            level=level,
            **about,
        )
    return estimate(
        values,
        statistic,
        metric=name,
        rng=rng,
        clusters=clusters,
        level=level,
        method=method,
        replicates=replicates,
        **about,
    )
