"""What is computed from units: a statistic takes one row per unit and gives one number."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
"""An array of 64-bit floats."""

# Sums that cancel to less than this share of their size are zero up to rounding.
_ROUNDING = 1e-12


def as_rows(values: npt.ArrayLike) -> Floats:
    """Return values as a float array with one row per unit; a flat array becomes one column."""
    rows = np.asarray(values, dtype=np.float64)
    if rows.ndim == 1:
        rows = rows[:, None]
    if rows.ndim != 2:
        raise ValueError(
            f"values have {rows.ndim} dimensions; expected one row per unit and one column per part"
        )
    return rows


def known_rows(values: Floats) -> npt.NDArray[np.bool_]:
    """Return which units contribute: those without NaN."""
    return np.asarray(~np.isnan(values).any(axis=1), dtype=np.bool_)


@runtime_checkable
class Statistic(Protocol):
    """What the bootstrap needs to know of a statistic.

    Rows with NaN in any column belong to units that do not contribute.
    """

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns it reads, in order."""
        ...

    @property
    def log_shift(self) -> float | None:
        """What is added before its logarithm is tested; None to test the value itself."""
        ...

    def point(self, values: Floats, weights: Floats | None = None) -> float:
        """Return the statistic of the units; NaN when it is undefined."""
        ...

    def replicates(self, values: Floats, weights: Floats) -> Floats:
        """Return the statistic for each row of `weights`, shape (replicates, units)."""
        ...

    def jackknife(self, values: Floats) -> Floats:
        """Return the statistic with each unit left out in turn."""
        ...


@dataclass(frozen=True)
class OfSums:
    """A statistic that depends on the units through sums alone.

    With terms :math:`t_k(x_i)` and weights :math:`w_i` it is
    ``combine(sum(w * t_1), ..., sum(w * t_K), sum(w))``. Every replicate is then a row of one
    matrix product, and leaving a unit out is one subtraction.

    Examples
    --------
    >>> variance = OfSums(
    ...     ("value",),
    ...     lambda total, squares, n: squares / n - (total / n) ** 2,
    ...     terms=lambda x: np.column_stack([x, x**2]),
    ... )
    >>> variance.point(as_rows([1.0, 3.0]))
    1.0
    """

    columns: tuple[str, ...]  # names of the columns it reads
    # Takes the K sums and the sum of weights, arrays of one shape, and gives that shape. A result
    # that is not finite is undefined.
    combine: Callable[..., Floats]
    # Turns rows of shape (units, columns) into terms of shape (units, K); by default the columns
    # are the terms.
    terms: Callable[[Floats], Floats] | None = None

    log_shift: ClassVar[float | None] = None

    def terms_of(self, values: Floats) -> Floats:
        """Return the summed terms of each unit."""
        return values if self.terms is None else self.terms(values)

    def evaluate(self, sums: Floats) -> Floats:
        """Return the statistic from sums of shape (..., K + 1), the weight last."""
        parts = [sums[..., k] for k in range(sums.shape[-1])]
        with np.errstate(all="ignore"):
            result = np.asarray(self.combine(*parts), dtype=np.float64)
            return np.where(np.isfinite(result) & (parts[-1] > 0), result, np.nan)

    def _with_weight(self, values: Floats) -> tuple[Floats, npt.NDArray[np.bool_]]:
        known = known_rows(values)
        terms = self.terms_of(values[known])
        return np.column_stack([terms, np.ones(len(terms))]), known

    def point(self, values: Floats, weights: Floats | None = None) -> float:
        """Return the statistic of the units; NaN when it is undefined."""
        terms, known = self._with_weight(values)
        sums = terms.sum(axis=0) if weights is None else weights[known] @ terms
        return float(self.evaluate(sums))

    def replicates(self, values: Floats, weights: Floats) -> Floats:
        """Return the statistic for each row of `weights`."""
        terms, known = self._with_weight(values)
        return self.evaluate(weights[:, known] @ terms)

    def jackknife(self, values: Floats) -> Floats:
        """Return the statistic with each unit left out in turn."""
        terms, known = self._with_weight(values)
        result = np.full(len(values), self.point(values))
        result[known] = self.evaluate(without_each(terms, terms.sum(axis=0)))
        return result


def without_each(terms: Floats, total: Floats, scale: Floats | None = None) -> Floats:
    """Return total minus each row, with what is zero up to rounding made zero."""
    left = total - terms
    size = np.abs(terms).sum(axis=0) if scale is None else scale
    left[np.abs(left) <= _ROUNDING * size] = 0.0
    return left


def _mean(total: Floats, weight: Floats) -> Floats:
    return total / weight


def _ratio(top: Floats, bottom: Floats, weight: Floats) -> Floats:
    return top / bottom


def _times_weight(values: Floats) -> Floats:
    return np.column_stack([values[:, 0] * values[:, 1], values[:, 1]])


class Mean(OfSums):
    r"""The mean over units, :math:`\sum x_i / n`; undefined without units.

    Examples
    --------
    >>> Mean().point(as_rows([1.0, 2.0, np.nan]))
    1.5
    """

    def __init__(self) -> None:
        super().__init__(("value",), _mean)


class RatioOfSums(OfSums):
    r"""Sum over sum, :math:`\sum a_i / \sum b_i`; undefined when the denominator is zero.

    For rates pooled over units (events over trials), where units with more trials count more.
    It does not say how the rate varies between units.

    Examples
    --------
    >>> RatioOfSums().point(as_rows([[1, 2], [2, 10]]))
    0.25
    """

    def __init__(self) -> None:
        super().__init__(("numerator", "denominator"), _ratio)


class WeightedMean(OfSums):
    r"""The weighted mean, :math:`\sum w_i x_i / \sum w_i`; undefined when weights sum to zero.

    Examples
    --------
    >>> WeightedMean().point(as_rows([[1.0, 3.0], [5.0, 1.0]]))
    2.0
    """

    def __init__(self) -> None:
        super().__init__(("value", "weight"), _ratio, _times_weight)


@dataclass(frozen=True)
class Quantile:
    """The q-quantile over units: the mean of the lower and upper inverse of the distribution.

    The definition is number 2 of Hyndman and Fan (1996); the half-quantile is the usual median.
    Its jackknife takes few distinct values, so its BCa acceleration is rough.

    Examples
    --------
    >>> Quantile(0.5).point(as_rows([4.0, 1.0, 2.0, 3.0]))
    2.5
    """

    q: float
    columns: tuple[str, ...] = ("value",)

    log_shift: ClassVar[float | None] = None

    def __post_init__(self) -> None:
        if not 0 < self.q < 1:
            raise ValueError(f"q is {self.q}; a quantile needs 0 < q < 1")

    def point(self, values: Floats, weights: Floats | None = None) -> float:
        """Return the quantile of the units; NaN without units."""
        w = np.ones(len(values)) if weights is None else weights
        return float(self.replicates(values, w[None, :])[0])

    def replicates(self, values: Floats, weights: Floats) -> Floats:
        """Return the quantile for each row of `weights`."""
        x = values[:, 0]
        order = np.argsort(x, kind="stable")[: np.count_nonzero(~np.isnan(x))]
        if not len(order):
            return np.full(len(weights), np.nan)
        cumulated = np.cumsum(weights[:, order], axis=1)
        total = cumulated[:, -1]
        x = x[order]
        slack = _ROUNDING * total
        target = self.q * total
        # The first unit that reaches the target, and the first that goes beyond it.
        reach = np.argmax(cumulated >= (target - slack)[:, None], axis=1)
        beyond = np.argmax(cumulated > (target + slack)[:, None], axis=1)
        return np.where(total > 0, (x[reach] + x[beyond]) / 2, np.nan)

    def jackknife(self, values: Floats) -> Floats:
        """Return the quantile with each unit left out in turn."""
        result = np.full(len(values), self.point(values))
        known = np.flatnonzero(~np.isnan(values[:, 0]))
        left = len(known) - 1
        if left < 1:
            result[known] = np.nan
            return result
        order = known[np.argsort(values[known, 0], kind="stable")]
        x = values[order, 0]
        position = self.q * left
        nearest = round(position)
        tie = abs(position - nearest) <= _ROUNDING * left
        reach = nearest - 1 if tie else int(np.ceil(position)) - 1
        beyond = nearest if tie else reach
        removed = np.arange(len(order))

        def without(rank: int) -> Floats:
            return np.asarray(np.where(removed > rank, x[rank], x[rank + 1]))

        result[order] = (without(reach) + without(beyond)) / 2
        return result


class Median(Quantile):
    """The median over units; the mean of the two middle units when their number is even.

    Examples
    --------
    >>> Median().point(as_rows([1.0, 2.0, 30.0]))
    2.0
    """

    def __init__(self) -> None:
        super().__init__(0.5)


@dataclass(frozen=True)
class Custom:
    """Any function of the rows; slow, because each replicate calls it once.

    Parameters
    ----------
    function
        Takes rows of shape (units, columns), some of them repeated, and returns one number,
        NaN when it is undefined.
    columns
        Names of the columns it reads.

    Examples
    --------
    >>> Custom(lambda rows: float(np.ptp(rows)), ("value",)).point(as_rows([1.0, 4.0]))
    3.0
    """

    function: Callable[[Floats], float]
    columns: tuple[str, ...] = ("value",)

    log_shift: ClassVar[float | None] = None

    def point(self, values: Floats, weights: Floats | None = None) -> float:
        """Return the function of the rows; NaN without rows or when it is undefined."""
        known = known_rows(values)
        rows = values[known]
        if weights is not None:
            times = weights[known]
            if not np.all(times == np.floor(times)):
                raise ValueError("a custom statistic repeats rows, so weights must be whole")
            rows = np.repeat(rows, times.astype(np.int64), axis=0)
        return float(self.function(rows)) if len(rows) else float("nan")

    def replicates(self, values: Floats, weights: Floats) -> Floats:
        """Return the function for each row of `weights`."""
        return np.array([self.point(values, row) for row in weights], dtype=np.float64)

    def jackknife(self, values: Floats) -> Floats:
        """Return the function with each unit left out in turn."""
        result = np.full(len(values), self.point(values))
        for unit in np.flatnonzero(known_rows(values)):
            result[unit] = self.point(np.delete(values, unit, axis=0))
        return result
