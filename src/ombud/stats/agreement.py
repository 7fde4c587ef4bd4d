"""Agreement between raters: Krippendorff's alpha and Cohen's kappa."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ombud.stats.bootstrap.resample import estimate
from ombud.stats.estimate import Estimate
from ombud.stats.intervals import Method
from ombud.stats.proportions import normal_quantile
from ombud.stats.statistics import Floats, OfSums, known_rows

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
        why = ("no unit has two ratings", "all ratings are equal, so nothing could disagree")
        return _nothing(n, *why, metric=name, level=level, **about)
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


def _nothing(n: int, no_units: str, no_variation: str, **about: Any) -> Estimate:
    """Return why agreement is undefined: without ratings, or because all are the same."""
    if n:
        return Estimate.undefined(reason_code="no-variation", reason=no_variation, n=n, **about)
    return Estimate.undefined(reason_code="no-units", reason=no_units, n=n, **about)


Weights = Literal["none", "linear", "quadratic"]


def _agreement(count: int, weights: Weights) -> Floats:
    step = np.abs(np.subtract.outer(np.arange(count), np.arange(count))).astype(np.float64)
    if weights == "none":
        return np.asarray(step == 0, dtype=np.float64)
    if weights not in ("linear", "quadratic"):
        raise ValueError(f"weights is {weights!r}; expected 'none', 'linear' or 'quadratic'")
    power = 1.0 if weights == "linear" else 2.0
    return np.asarray(1 - (step / max(count - 1, 1)) ** power, dtype=np.float64)


def kappa_sample(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    weights: Weights = "none",
    categories: Sequence[Hashable] | None = None,
) -> tuple[Floats, OfSums]:
    """Return pairs of codes per unit and the statistic that makes them kappa, for `resample`."""
    pair = np.stack([np.asarray(first), np.asarray(second)], axis=-1)
    if pair.ndim != 2:
        raise ValueError(f"ratings have shape {pair.shape[:-1]}; expected one per unit and rater")
    code, names = codes(pair, categories)
    count = max(len(names), 1)
    agree = _agreement(count, weights)

    def terms(values: Floats) -> Floats:
        cell = (values[:, 0] * count + values[:, 1]).astype(np.int64)
        return np.asarray(cell[:, None] == np.arange(count**2), dtype=np.float64)

    def combine(*sums: Floats) -> Floats:
        table = np.stack(sums[:-1], axis=-1).reshape(*np.shape(sums[-1]), count, count)
        n = sums[-1]
        observed = (table * agree).sum(axis=(-2, -1)) / n
        rows, columns = table.sum(axis=-1), table.sum(axis=-2)
        expected = np.einsum("...i,ij,...j->...", rows, agree, columns) / n**2
        left = np.where(1 - expected > 1e-12, 1 - expected, np.nan)
        return np.asarray((observed - expected) / left)

    return code, OfSums(("first", "second"), combine, terms)


def cohen_kappa(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    weights: Weights = "none",
    categories: Sequence[Hashable] | None = None,
) -> float:
    r"""Return Cohen's kappa of two raters, :math:`(p_o - p_e) / (1 - p_e)`.

    With ``"linear"`` or ``"quadratic"`` weights near misses count in part, by distance between
    positions of the sorted (or given) categories. Units without both ratings are excluded. NaN
    without units, or when chance agreement is complete. Like alpha it depends on how common the
    categories are.

    References
    ----------
    Cohen (1960), Educ. Psychol. Meas. 20, 37-46; Cohen (1968), Psychol. Bull. 70, 213-220.

    Examples
    --------
    >>> round(cohen_kappa([1, 1, 0, 0], [1, 0, 0, 0]), 3)
    0.5
    """
    values, statistic = kappa_sample(first, second, weights, categories)
    return statistic.point(values)


def kappa_error(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    weights: Weights = "none",
    categories: Sequence[Hashable] | None = None,
) -> float:
    """Return the large-sample standard error of kappa; NaN when kappa is undefined.

    References
    ----------
    Fleiss, Cohen and Everitt (1969), Psychological Bulletin 72, 323-327.
    """
    values, statistic = kappa_sample(first, second, weights, categories)
    kappa = statistic.point(values)
    values = values[known_rows(values)]
    if np.isnan(kappa):
        return float("nan")
    n = len(values)
    count = int(np.sqrt(statistic.terms_of(values[:1]).shape[1]))
    agree = _agreement(count, weights)
    table = statistic.terms_of(values).sum(axis=0).reshape(count, count) / n
    rows, columns = table.sum(axis=1), table.sum(axis=0)
    expected = float(rows @ agree @ columns)
    margin = (agree @ columns)[:, None] + (rows @ agree)[None, :]
    spread = float((table * (agree - margin * (1 - kappa)) ** 2).sum())
    variance = (spread - (kappa - expected * (1 - kappa)) ** 2) / (n * (1 - expected) ** 2)
    return float(np.sqrt(max(variance, 0.0)))


def kappa_estimate(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    weights: Weights = "none",
    *,
    metric: str = "",
    categories: Sequence[Hashable] | None = None,
    level: float = 0.95,
    method: Literal["large-sample"] | Method = "large-sample",
    rng: np.random.Generator | None = None,
    replicates: int = 2000,
    **about: Any,
) -> Estimate:
    """Return Cohen's kappa with a large-sample or (with `rng`) a bootstrap interval over units.

    Examples
    --------
    >>> kappa_estimate([1, 1], [1, 1]).reason
    'both raters used one category only, so agreement by chance is complete'
    """
    values, statistic = kappa_sample(first, second, weights, categories)
    name = metric or ("Cohen's kappa" if weights == "none" else f"Cohen's kappa ({weights})")
    n = int(np.count_nonzero(known_rows(values)))
    kappa = statistic.point(values)
    if np.isnan(kappa):
        alike = "both raters used one category only, so agreement by chance is complete"
        return _nothing(n, "no unit has both ratings", alike, metric=name, level=level, **about)
    if method != "large-sample":
        if rng is None:
            raise ValueError(f"method is {method!r}, which draws at random: give rng")
        return estimate(
            values,
            statistic,
            metric=name,
            rng=rng,
            level=level,
            method=method,
            replicates=replicates,
            **about,
        )
    half = normal_quantile(level) * kappa_error(first, second, weights, categories)
    ends = (max(-1.0, kappa - half), min(1.0, kappa + half))
    none = not half > 1e-12
    return Estimate(
        metric=name,
        value=kappa,
        interval=None if none else ends,
        method="none: no spread between units, which is not certainty" if none else "large-sample",
        n=n,
        level=level,
        **about,
    )
