"""How large a maximum is when nothing was changed: the floor that a real change must rise above.

Training again on the same data with another seed, or for one pass more, moves lists too. The
largest of many such moves grows with their number, and so does the largest over many treatments:
the two are compared at the same number of runs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

Floats = NDArray[np.float64]

NoiseKind = Literal["seed", "pass", "repeat"]
"""Another seed; some passes more; the same system asked again."""


def _choose(n: Floats, k: float) -> Floats:
    """Return the logarithm of the binomial coefficient, -inf where it is 0."""
    with np.errstate(all="ignore"):
        log = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
    return np.where(n >= k, log, -np.inf)


def expected_maximum(values: Floats, size: int) -> Floats:
    r"""Return the expected largest of ``size`` values drawn without replacement, column by column.

    With sorted values :math:`x_{(1)} \le \ldots \le x_{(m)}` it is
    :math:`\sum_k x_{(k)} \binom{k-1}{r-1} / \binom{m}{r}`. NaN is no value; a column with fewer
    than ``size`` values has none.

    `values` is runs x columns.

    Examples
    --------
    >>> expected_maximum(np.array([[1.0], [2.0], [3.0]]), 2).round(4).tolist()
    [2.6667]
    """
    if size < 1:
        raise ValueError(f"size is {size}; a largest value needs at least one")
    ordered = np.sort(values, axis=0)
    count = np.count_nonzero(~np.isnan(values), axis=0)
    place = np.arange(1, len(values) + 1)[:, None]
    with np.errstate(all="ignore"):
        weights = np.exp(
            _choose((place - 1).astype(np.float64), size - 1.0)
            - _choose(count.astype(np.float64), float(size))
        )
    weights = np.where(place <= count, weights, 0.0)
    total = np.sum(np.where(weights > 0, weights * np.nan_to_num(ordered), 0.0), axis=0)
    return np.where(count >= size, total, np.nan)


def chance_of_any(values: Floats, size: int) -> Floats:
    """Return the chance that some of ``size`` values drawn without replacement is above zero.

    Examples
    --------
    >>> chance_of_any(np.array([[0.0], [0.0], [1.0]]), 2).round(4).tolist()
    [0.6667]
    """
    return expected_maximum(np.where(np.isnan(values), np.nan, values > 0), size)


@dataclass(frozen=True, eq=False)
class NoiseFloor:
    """Distances between trainings on the same data."""

    kind: NoiseKind  # what differed between them
    # For each distance by name, runs x targets.
    distances: dict[str, Floats] = field(default_factory=dict)
    # Whether training is deterministic, so that the floor is 0 without any doubt.
    exact: bool = False

    @property
    def runs(self) -> int:
        """How many runs there are."""
        return max((len(found) for found in self.distances.values()), default=0)
