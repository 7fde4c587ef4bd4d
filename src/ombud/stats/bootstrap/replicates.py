"""What resampling gives back: points, draws, intervals and contrasts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy.special import stdtr

from ombud.stats.bootstrap._design import Design, acceleration, accelerations_of, leave_out
from ombud.stats.estimate import Estimate
from ombud.stats.intervals import Interval, Intervals, Method, intervals_of_draws
from ombud.stats.statistics import Floats, Mean, Statistic, as_rows, known_rows

How = Literal["difference", "ratio"]

# Below this the bootstrap distribution has too few distinct values to be trusted.
_FEW = 20
# On the log scale, more replicates at or below zero than this bend the standard error.
_AT_ZERO = 0.01


@dataclass(frozen=True, slots=True)
class Test:
    """A two-sided test of a null value."""

    __test__ = False  # not a test case

    p: float  # the p-value; NaN without a test
    # Distance from the null in standard errors, and the degrees of freedom of its reference.
    statistic: float
    df: float
    error: str  # how the standard error was found
    reason: str = ""  # why there is no test; empty otherwise


def _no_moments() -> None:
    return None


@dataclass(frozen=True, eq=False, kw_only=True)
class ResampledStatistic:
    """A number with its replicates."""

    point: float  # the number; NaN when undefined
    draws: Floats  # its replicates; NaN where undefined
    n: int  # Independent units that contribute
    smallest_n: int  # Units of its smallest part, which sets the degrees of freedom of tests
    # Finds leave-one-out values and who contributes; None when that takes too long.
    leave_one_out: Callable[[], tuple[Floats, npt.NDArray[np.bool_]] | None]
    log: bool = False  # whether tests work on the log scale (ratios)
    # Added before the logarithm is taken: 1 for a ratio of which 1 was subtracted.
    shift: float = 0.0
    # Finds the moments of leave-one-out values and of how many units they are; None when only
    # `leave_one_out` can tell.
    moments: Callable[[], tuple[Floats, int] | None] = _no_moments

    @property
    def acceleration(self) -> float:
        """The BCa acceleration from the jackknife; NaN when undefined."""
        known = self.moments()
        if known is not None:
            return float(accelerations_of(known[0], np.asarray(float(known[1]))))
        left = self.leave_one_out()
        return float("nan") if left is None else acceleration(left[0][left[1]])

    def interval(self, *, level: float = 0.95, method: Method = "bca") -> Interval:
        """Return the interval; percentile, and named so, where BCa is undefined."""
        a = np.array([self.acceleration]) if method == "bca" else None
        result = intervals_of_draws(
            self.draws[:, None],
            np.array([self.point]),
            np.array([self.n]),
            level=level,
            acceleration=a,
            least=np.array([self.smallest_n]) if method == "expanded" else None,
        )
        return result.at(0)

    def test(self, null: float) -> Test:
        r"""Test a null value, two-sided.

        The statistic is :math:`(\hat\theta - \theta_0) / s` with the bootstrap standard error
        :math:`s`, referred to Student's t with one degree of freedom less than the units of
        the smaller part; ratios are compared by their logarithms. It is not a count of
        replicates, because p-values that are corrected over many labels must be able to fall
        far below one over the number of replicates. Where more than one in a hundred
        replicates of a ratio are zero, the standard error is the jackknife's.

        Notes
        -----
        It leans on the statistic being near normal (or log-normal). In simulations without an
        effect and with about 20 events in the smaller part, a test at 0.05 alarmed in 3 to 5 %,
        at 0.01 in 0.4 to 1.1 % and at 0.001 in 0.02 to 0.17 % of the runs; with 5 events, ratios
        to the whole alarm twice as often as they should at 0.001.
        """
        none = float("nan")
        if self.log and not null + self.shift > 0:
            raise ValueError(f"null is {null}; a ratio is tested against a positive number")
        if np.isnan(self.point):
            return Test(none, none, none, "", "the statistic is undefined on these units")
        if self.smallest_n < 2:
            return Test(none, none, none, "", "fewer than two independent units in one part")
        if self.log and not self.point + self.shift > 0:
            return Test(none, none, none, "", "a ratio of zero has no logarithm")
        defined = self.draws[~np.isnan(self.draws)]
        if 2 * len(defined) < len(self.draws):
            return Test(none, none, none, "", "more than half of the replicates are undefined")
        error, source = self._error(defined)
        size = abs(np.log(self.point + self.shift)) if self.log else abs(self.point)
        if not error > 1e-12 * max(size, 1e-300):
            return Test(none, none, none, source, "no standard error: the units show no spread")
        distance = self._scaled(self.point) - self._scaled(null)
        df = float(self.smallest_n - 1)
        t = float(distance / error)
        return Test(float(2 * stdtr(df, -abs(t))), t, df, source)

    def _error(self, defined: Floats) -> tuple[float, str]:
        if self.log and np.mean(defined + self.shift <= 0) > _AT_ZERO:
            left = self.leave_one_out()
            values = np.empty(0) if left is None else left[0][left[1]] + self.shift
            if len(values) < 2 or not np.all(values > 0):
                return float("nan"), "jackknife"
            n = len(values)
            return float(np.log(values).std() * np.sqrt(n - 1)), "jackknife"
        scaled = defined
        if self.log:
            scaled = np.log(defined[defined + self.shift > 0] + self.shift)
        # The bootstrap divides by n where an unbiased variance divides by n - 1.
        return float(
            scaled.std(ddof=1) * np.sqrt(self.smallest_n / (self.smallest_n - 1))
        ), "bootstrap"

    def _scaled(self, value: float) -> float:
        return float(np.log(value + self.shift)) if self.log else value

    def p_value(self, null: float) -> float:
        """Return the two-sided p-value of a null value; NaN where `test` says why."""
        return self.test(null).p

    def estimate(
        self,
        *,
        metric: str,
        level: float = 0.95,
        method: Method = "bca",
        null: float | None = None,
        **about: Any,
    ) -> Estimate:
        """Return it as an estimate; with `null`, also its p-value.

        The p-value of the estimate is at least one over the number of replicates plus one.
        """
        interval = self.interval(level=level, method=method)
        about["level"] = level
        about["undefined_replicates"] = interval.undefined
        if np.isnan(self.point):
            return Estimate.undefined(
                reason_code="not-estimable" if self.n else "no-units",
                metric=metric,
                reason=interval.reason,
                n=self.n,
                null=null,
                **about,
            )
        notes = [about.pop("note", "")]
        p: float | None = None
        if interval.ends is not None and self.smallest_n < _FEW:
            notes.append(f"{self.smallest_n} units: a bootstrap of so few is only a rough guide")
        if null is not None and interval.ends is None:
            # Replicates without spread give no interval; a p-value of rounding errors would.
            notes.append("no p-value: there is no interval")
        elif null is not None:
            test = self.test(null)
            if test.reason:
                notes.append(f"no p-value: {test.reason}")
            else:
                p = test.p
        result = Estimate(
            metric=metric,
            value=self.point,
            interval=interval.ends,
            method=interval.method,
            n=self.n,
            null=null,
            note="; ".join(note for note in notes if note),
            **about,
        )
        return result if p is None else result.resampled_p(p, len(self.draws))


def contrasted(a: Floats, b: Floats, how: How) -> Floats:
    """Return the difference, or the ratio where there is one."""
    if how == "difference":
        return a - b
    with np.errstate(all="ignore"):
        return np.where(b != 0, a / b, np.nan)


@dataclass(frozen=True, eq=False, kw_only=True)
class Contrast(ResampledStatistic):
    """A difference or a ratio of two bootstrapped numbers on the same resampled units."""

    how: How
    parts: tuple[float, float]

    @classmethod
    def of(
        cls, drawn: Replicates, first: tuple[int, int], second: tuple[int, int], how: How
    ) -> Contrast:
        """Contrast two samples or groups of `drawn`."""
        if how not in ("difference", "ratio"):
            raise ValueError(f"how is {how!r}; expected 'difference' or 'ratio'")

        def apply(a: Floats, b: Floats) -> Floats:
            return contrasted(a, b, how)

        def left() -> tuple[Floats, npt.NDArray[np.bool_]] | None:
            one, two = drawn.leave_out(*first), drawn.leave_out(*second)
            if one is None or two is None:
                return None
            return apply(one[0], two[0]), one[1] | two[1]

        n = (int(drawn.n[first]), int(drawn.n[second]))
        union = max(n)
        if first != second and min(n) > 0:
            union = drawn.n_of_either(first, second)
        a, b = drawn.point[first], drawn.point[second]
        return cls(
            point=float(apply(a, b)),
            draws=apply(drawn.draws[:, first[0], first[1]], drawn.draws[:, second[0], second[1]]),
            n=union,
            smallest_n=min(n),
            leave_one_out=left,
            moments=lambda: drawn.moments_between(first, second, how),
            log=how == "ratio",
            how=how,
            parts=(float(a), float(b)),
        )

    def estimate(
        self,
        *,
        metric: str,
        level: float = 0.95,
        method: Method = "bca",
        null: float | None = None,
        **about: Any,
    ) -> Estimate:
        """Return it as an estimate of a gap or a ratio, tested against 0 or 1 by default."""
        kind: dict[str, Any] = {"kind": "ratio" if self.log else "gap"}
        chosen = (1.0 if self.log else 0.0) if null is None else null
        return super().estimate(
            metric=metric, level=level, method=method, null=chosen, **(kind | about)
        )


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
    """Every sample in every group, with its replicates."""

    # What was resampled.
    samples: tuple[Sample, ...]
    design: Design
    point: Floats  # the statistics, shape (samples, groups); NaN where undefined
    draws: Floats  # their replicates, shape (replicates, samples, groups); NaN where undefined
    # Contributing independent units (clusters when clustered), shape (samples, groups).
    n: npt.NDArray[np.int64]
    _deferred: list[tuple[list[int], Callable[[], Floats]]] = field(default_factory=list)
    _accelerations: Floats | None = None
    _moments: Floats | None = None
    _disjoint: dict[tuple[int, int], bool] = field(default_factory=dict)
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

    def defer(self, samples: list[int], moments: Callable[[], Floats]) -> None:
        """Keep how moments of leave-one-out values are found, for when they are asked for.

        They have the shape (3, samples, groups), see `sum_moments` in `_jackknife`.
        """
        self._deferred.append((samples, moments))

    def moments(self, s: int, g: int) -> tuple[Floats, int] | None:
        """Return moments of leave-one-out values and of how many units; None when not known."""
        if not any(s in samples for samples, _ in self._deferred):
            return None
        if self._moments is None:
            self._moments = np.full((3, *self.point.shape), np.nan)
            for samples, find in self._deferred:
                self._moments[:, samples] = find()
        return self._moments[:, s, g], int(self.n[s, g])

    def moments_between(
        self, first: tuple[int, int], second: tuple[int, int], how: How
    ) -> tuple[Floats, int] | None:
        """Return the moments of a difference of two groups that share no unit; else None."""
        groups = (first[1], second[1])
        if how != "difference" or first[0] != second[0] or self.design.order is not None:
            return None
        if groups not in self._disjoint:
            both = self.design.member[:, groups[0]] & self.design.member[:, groups[1]]
            self._disjoint[groups] = not both.any()
        one, two = self.moments(*first), self.moments(*second)
        if not self._disjoint[groups] or one is None or two is None:
            return None
        # Leaving out a unit of the second group changes the difference the other way.
        return one[0] + np.array([-1.0, 1.0, -1.0]) * two[0], one[1] + two[1]

    @property
    def accelerations(self) -> Floats:
        """BCa accelerations, shape (samples, groups); NaN where undefined."""
        if self._accelerations is None:
            result = np.full(self.point.shape, np.nan)
            done: set[int] = set()
            for samples, _ in self._deferred:
                for s in samples:
                    known = [self.moments(s, g) for g in range(self.design.member.shape[1])]
                    moments = np.stack([one[0] for one in known if one is not None], axis=1)
                    result[s] = accelerations_of(moments, self.n[s].astype(np.float64))
                done.update(samples)
            for s in set(range(len(self.samples))) - done:
                for g in range(self.design.member.shape[1]):
                    left = self.leave_out(s, g)
                    result[s, g] = np.nan if left is None else acceleration(left[0][left[1]])
            self._accelerations = result
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

    def n_of_either(self, first: tuple[int, int], second: tuple[int, int]) -> int:
        """Return how many resampled units contribute to one sample and group or the other."""
        return int(np.count_nonzero(self.contributors(*first) | self.contributors(*second)))

    def column_means(self, s: int, g: int) -> Floats | None:
        """Return the mean of each column over the rows that contribute; None without any."""
        values = self.samples[s].values[self.design.member[:, g]]
        values = values[known_rows(values)]
        return np.asarray(values.mean(axis=0)) if len(values) else None

    def count_above_zero(self, s: int, g: int, column: int) -> int:
        """Return how many rows of a group lie above zero in a column."""
        values = self.samples[s].values[:, column]
        return int(np.count_nonzero((values > 0) & self.design.member[:, g]))

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

    def at(self, s: int, g: int = 0) -> ResampledStatistic:
        """Return one sample in one group.

        A statistic with a `log_shift` is tested by the logarithm of its value plus that number.
        """
        shift = self.samples[s].statistic.log_shift
        return ResampledStatistic(
            log=shift is not None,
            shift=shift or 0.0,
            point=float(self.point[s, g]),
            draws=self.draws[:, s, g],
            n=int(self.n[s, g]),
            smallest_n=int(self.n[s, g]),
            leave_one_out=lambda: self.leave_out(s, g),
            moments=lambda: self.moments(s, g),
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

        `first` and `second` are a sample and a group each.
        """
        return Contrast.of(self, first, second, how)

    def contrasts(
        self, pairs: Iterable[tuple[tuple[int, int], tuple[int, int]]], how: How = "difference"
    ) -> list[Contrast]:
        """Return many contrasts; each is made when it is asked for something."""
        return [self.contrast(first, second, how) for first, second in pairs]
