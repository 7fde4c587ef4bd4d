"""What resampling gives back: points, draws, intervals and contrasts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ombud.stats._design import Design
from ombud.stats._jackknife import acceleration, leave_out
from ombud.stats.bootstrapped import Bootstrapped, Contrast, How
from ombud.stats.estimate import Estimate
from ombud.stats.intervals import Interval, Intervals, Method, intervals_of_draws
from ombud.stats.statistics import Floats, Mean, Statistic, as_rows, known_rows

__all__ = ["Replicates", "Sample"]

Left = tuple[Floats, npt.NDArray[np.bool_]]
# Leave-one-out values kept for reuse between contrasts (numbers, 256 MiB).
_KEPT = 2**25


@dataclass(frozen=True, eq=False)
class Sample:
    """Values of units and the statistic that is computed from them.

    Parameters
    ----------
    values
        Shape (units, columns), or (units,) for one column. NaN in any column means that the
        unit does not contribute.
    statistic
        The mean by default.
    """

    values: Floats
    statistic: Statistic = field(default_factory=Mean)

    def __post_init__(self) -> None:
        rows = as_rows(self.values)
        expected = len(self.statistic.columns)
        if rows.shape[1] != expected:
            raise ValueError(
                f"values have {rows.shape[1]} columns; {type(self.statistic).__name__} "
                f"expects {expected}: {', '.join(self.statistic.columns)}"
            )
        if np.isinf(rows).any():
            raise ValueError("some values are infinite; say NaN where a unit does not contribute")
        object.__setattr__(self, "values", rows)

    @classmethod
    def many(cls, values: npt.ArrayLike, statistic: Statistic | None = None) -> list[Sample]:
        """Return one sample per column of values of shape (units, samples).

        Examples
        --------
        >>> len(Sample.many(np.zeros((10, 3))))
        3
        """
        chosen = Mean() if statistic is None else statistic
        return [cls(column, chosen) for column in np.asarray(values, dtype=np.float64).T]


@dataclass(eq=False)
class Replicates:
    """Every sample in every group, with its replicates.

    Parameters
    ----------
    samples, design
        What was resampled.
    point
        The statistics, shape (samples, groups); NaN where undefined.
    draws
        Their replicates, shape (replicates, samples, groups); NaN where undefined.
    n
        Contributing independent units (clusters when clustered), shape (samples, groups).
    """

    samples: tuple[Sample, ...]
    design: Design
    point: Floats
    draws: Floats
    n: npt.NDArray[np.int64]
    _deferred: list[tuple[list[int], Callable[[], Floats]]] = field(default_factory=list)
    _accelerations: Floats | None = None
    _left: dict[tuple[int, int], Left | None] = field(default_factory=dict)

    @classmethod
    def empty(cls, samples: tuple[Sample, ...], design: Design, replicates: int) -> Replicates:
        """Return undefined replicates of the right shape."""
        shape = (len(samples), design.member.shape[1])
        return cls(
            samples,
            design,
            np.full(shape, np.nan),
            np.full((replicates, *shape), np.nan),
            np.zeros(shape, dtype=np.int64),
        )

    def defer(self, samples: list[int], accelerations: Callable[[], Floats]) -> None:
        """Keep how the accelerations of some samples are found, for when they are asked for."""
        self._deferred.append((samples, accelerations))

    @property
    def accelerations(self) -> Floats:
        """BCa accelerations, shape (samples, groups); NaN where undefined."""
        if self._accelerations is None:
            found = np.full(self.point.shape, np.nan)
            done: set[int] = set()
            for samples, find in self._deferred:
                found[samples] = find()
                done.update(samples)
            for s in set(range(len(self.samples))) - done:
                for g in range(self.design.member.shape[1]):
                    left = self.leave_out(s, g)
                    found[s, g] = np.nan if left is None else acceleration(left[0][left[1]])
            self._accelerations = found
        return self._accelerations

    def leave_out(self, s: int, g: int = 0) -> Left | None:
        """Return the statistic without each resampled unit, and which units contribute.

        None when that would take too long.
        """
        if (s, g) not in self._left:
            if (len(self._left) + 1) * self.design.size > _KEPT:
                self._left.clear()
            sample = self.samples[s]
            self._left[s, g] = leave_out(sample.values, sample.statistic, self.design, g)
        return self._left[s, g]

    def contributors(self, s: int, g: int = 0) -> npt.NDArray[np.bool_]:
        """Return which resampled units contribute to a sample in a group."""
        known = self.design.member[:, g] & known_rows(self.samples[s].values)
        if self.design.order is None:
            return known
        present = np.zeros(self.design.size, dtype=np.bool_)
        present[self.design.cluster[known]] = True
        return present

    def intervals(self, *, level: float = 0.95, method: Method = "bca") -> Intervals:
        """Return all intervals at once, as arrays of shape (samples, groups).

        ``"bca"`` corrects for skewness and is the default; ``"expanded"`` is a percentile interval
        widened for few units (below about 100 the other two are too short); ``"percentile"`` is
        the plain one.
        """
        shape = self.point.shape
        flat = intervals_of_draws(
            self.draws.reshape(len(self.draws), -1),
            self.point.ravel(),
            self.n.ravel(),
            level=level,
            acceleration=self.accelerations.ravel() if method == "bca" else None,
            least=self.n.ravel() if method == "expanded" else None,
        )
        return Intervals(
            flat.low.reshape(shape),
            flat.high.reshape(shape),
            flat.undefined.reshape(shape),
            flat.method.reshape(shape),
            flat.reason.reshape(shape),
        )

    def at(self, s: int, g: int = 0) -> Bootstrapped:
        """Return one sample in one group.

        A statistic with a `log_shift` is tested by the logarithm of its value plus that number.
        """
        shift = getattr(self.samples[s].statistic, "log_shift", None)
        return Bootstrapped(
            log=shift is not None,
            shift=shift or 0.0,
            point=float(self.point[s, g]),
            draws=self.draws[:, s, g],
            n=int(self.n[s, g]),
            least=int(self.n[s, g]),
            left=lambda: self.leave_out(s, g),
        )

    def interval(
        self, s: int, g: int = 0, *, level: float = 0.95, method: Method = "bca"
    ) -> Interval:
        """Return the interval of one sample in one group."""
        return self.at(s, g).interval(level=level, method=method)

    def estimate(
        self,
        s: int,
        g: int = 0,
        *,
        metric: str,
        level: float = 0.95,
        method: Method = "bca",
        **about: Any,
    ) -> Estimate:
        """Return one sample in one group as an estimate."""
        return self.at(s, g).estimate(metric=metric, level=level, method=method, **about)

    def contrast(
        self, first: tuple[int, int], second: tuple[int, int], how: How = "difference"
    ) -> Contrast:
        """Return first minus (or over) second, resampled jointly.

        Parameters
        ----------
        first, second
            A sample and a group each.
        how
            ``"difference"`` or ``"ratio"``.
        """
        return Contrast.of(self, first, second, how)

    def contrasts(
        self,
        pairs: Iterable[tuple[tuple[int, int], tuple[int, int]]],
        how: How = "difference",
    ) -> list[Contrast]:
        """Return many contrasts; each is made when it is asked for something."""
        return [self.contrast(first, second, how) for first, second in pairs]
