"""Cohen's kappa: agreement of two raters."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ombud.stats.agreement import codes
from ombud.stats.bootstrap.resample import estimate
from ombud.stats.estimate import Estimate
from ombud.stats.intervals import Method
from ombud.stats.proportions import normal_quantile
from ombud.stats.statistics import Floats, OfSums, known_rows

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
    positions of the sorted (or given) categories. Units without both ratings are left out. NaN
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
        reason = (
            "both raters used one category only, so agreement by chance is complete"
            if n
            else "no unit has both ratings"
        )
        return Estimate.undefined(
            reason_code="no-variation" if n else "no-units",
            metric=name,
            reason=reason,
            n=n,
            level=level,
            **about,
        )
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
