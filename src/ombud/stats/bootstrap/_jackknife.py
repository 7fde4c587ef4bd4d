"""Leaving each resampled unit out in turn."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ombud.stats.bootstrap._counts import BLOCK
from ombud.stats.bootstrap._design import Design, Stack
from ombud.stats.statistics import Custom, Floats, OfSums, Statistic, known_rows, without_each

# Above this many evaluations the jackknife of a general statistic is left out.
_WORK = 200_000_000


def acceleration(values: Floats) -> float:
    """Return the BCa acceleration from leave-one-out values; NaN when one is undefined."""
    if len(values) < 2 or not np.isfinite(values).all():
        return float("nan")
    d = values.mean() - values
    squares = float(np.sum(d**2))
    if squares <= 0:
        return float("nan")
    return float(np.sum(d**3) / (6 * squares**1.5))


def leave_out(
    values: Floats, statistic: Statistic, design: Design, group: int
) -> tuple[Floats, npt.NDArray[np.bool_]] | None:
    """Return the statistic of a group without each resampled unit, and which units matter.

    None when it would take too long (a general statistic of many clusters).
    """
    member = design.member[:, group]
    counted = member & known_rows(values)
    if design.order is None:
        if isinstance(statistic, Custom) and np.count_nonzero(counted) ** 2 > _WORK:
            return None
        result = np.full(design.size, np.nan)
        if counted.any():
            result[:] = statistic.point(values[counted])
            result[counted] = statistic.jackknife(values[counted])
        return result, counted
    present = np.zeros(design.size, dtype=np.bool_)
    present[design.cluster[counted]] = True
    result = np.full(design.size, np.nan)
    if not present.any():
        return result, present
    rows, cluster = values[counted], design.cluster[counted]
    result[:] = statistic.point(rows)
    if isinstance(statistic, OfSums):
        terms = np.column_stack([statistic.terms_of(rows), np.ones(len(rows))])
        by_cluster = np.zeros((design.size, terms.shape[1]))
        for k, term in enumerate(terms.T):
            by_cluster[:, k] = np.bincount(cluster, weights=term, minlength=design.size)
        left = without_each(by_cluster, terms.sum(axis=0), np.abs(terms).sum(axis=0))
        result[present] = statistic.evaluate(left[present])
        return result, present
    found = np.flatnonzero(present)
    if len(found) * len(rows) > _WORK:
        return None
    step = max(1, 2**22 // len(rows))
    for first in range(0, len(found), step):
        some = found[first : first + step]
        weights = (cluster[None, :] != some[:, None]).astype(np.float64)
        result[some] = statistic.replicates(rows, weights)
    return result, present


def sum_moments(stack: Stack, design: Design, total: Floats, size: Floats, point: Floats) -> Floats:
    """Return moments of leave-one-out values of all samples and groups in one pass over the units.

    They are sums over units of the first three powers of what leaving the unit out changes, shape
    (3, groups, samples). `total` and `size` are sums and sums of absolute terms, shape
    (groups, width); `point` has shape (groups, samples).
    """
    moments = np.zeros((3, *point.shape))
    for low in range(0, design.size, BLOCK):
        high = min(low + BLOCK, design.size)
        for g, (_, matrix) in enumerate(design.pieces(low, high, stack.terms)):
            for statistic, members, columns in stack.layout():
                step = max(64, 2**21 // columns.size)
                for first in range(0, len(matrix), step):
                    some = matrix[first : first + step]
                    left = without_each(some, total[g], size[g])[:, columns]
                    d = statistic.evaluate(left) - point[g, members]
                    # A unit the sample does not know changes nothing.
                    d[some[:, columns[:, -1]] == 0] = 0.0
                    moments[0, g, members] += d.sum(axis=0)
                    moments[1, g, members] += (d**2).sum(axis=0)
                    moments[2, g, members] += (d**3).sum(axis=0)
    return moments


def accelerations_of(moments: Floats, n: Floats) -> Floats:
    """Return the accelerations from the moments of `sum_moments`, of so many units each."""
    with np.errstate(all="ignore"):
        mean = moments[0] / n
        squares = moments[1] - n * mean**2
        cubes = moments[2] - 3 * mean * moments[1] + 2 * n * mean**3
        enough = (squares > 0) & (n >= 2)
        return np.where(enough, -cubes / (6 * squares**1.5), np.nan)
