"""The bootstrap: many statistics, systems and groups on the same resampled units."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ombud.stats.bootstrap._design import (
    BLOCK,
    Counts,
    Design,
    Kinds,
    Stack,
    chunks,
    one_thread,
    sum_moments,
)
from ombud.stats.bootstrap.replicates import Replicates, Sample
from ombud.stats.estimate import Estimate
from ombud.stats.intervals import Method
from ombud.stats.statistics import Floats, Mean, OfSums, Statistic, as_rows, known_rows

# Numbers held at once while summing, per kind of table (256 MiB).
_HELD = 2**25


def resample(
    samples: Sequence[Sample],
    *,
    groups: npt.ArrayLike | None = None,
    clusters: npt.ArrayLike | None = None,
    replicates: int = 2000,
    rng: np.random.Generator,
) -> Replicates:
    """Resample units (or clusters) with replacement and recompute every sample in every group.

    All samples share the resampled units, so that any difference or ratio of two of them, or of
    two groups, or of a group and the whole it is part of, is resampled jointly.

    Parameters
    ----------
    samples
        Values and statistics over the same units, in the same order.
    groups
        Booleans of shape (units, groups); groups may overlap and be empty. None is one group of
        everyone, at index 0. Membership goes with the unit.
    clusters
        What is resampled in place of units, one name per unit.
    replicates
        How often.
    rng
        Source of randomness; one number is taken from it. The counts then depend on that number
        and the number of units only: adding a sample or a group changes no other result.

    Notes
    -----
    Sum-type statistics (`OfSums`) of all samples are one matrix product per block of units and
    group. Beside the draws themselves, memory stays below about 600 MiB whatever the sizes.

    Bootstrap intervals of few units are short: nominal 95 % intervals of a mean covered 0.87 to
    0.90 with 10 units, 0.92 with 30, 0.94 with 100 and 0.945 with 1,000 in simulation. The method
    ``"expanded"`` corrects this for symmetric values.

    References
    ----------
    Efron and Tibshirani (1993), *An Introduction to the Bootstrap*; Davison and Hinkley (1997),
    section 3.8, for clusters.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> a, b = rng.normal(size=(2, 200))
    >>> drawn = resample([Sample(a), Sample(a + 0.1 * b + 1)], rng=rng)
    >>> change = drawn.contrast((1, 0), (0, 0))
    >>> interval = change.interval()
    >>> bool(interval.low < 1 < interval.high), bool(interval.high - interval.low < 0.05)
    (True, True)
    """
    if not samples:
        raise ValueError("there is no sample to resample; give at least one")
    if replicates < 2:
        raise ValueError(f"replicates is {replicates}; at least 2 are needed, 2000 is usual")
    units = len(samples[0].values)
    lengths = sorted({len(sample.values) for sample in samples})
    if len(lengths) > 1:
        raise ValueError(f"samples have {lengths} units; all samples must share the same units")
    design = Design(units, groups, clusters)
    result = Replicates.empty(tuple(samples), design, replicates)
    seed = int(rng.integers(2**63))
    if units == 0:
        return result
    sums = [i for i, sample in enumerate(samples) if isinstance(sample.statistic, OfSums)]
    others = [i for i, sample in enumerate(samples) if not isinstance(sample.statistic, OfSums)]
    with one_thread():
        for batch in _batches(samples, sums, design, replicates):
            _sum_pass(result, batch, seed)
        if others:
            _general_pass(result, others, seed)
    return result


def _batches(
    samples: Sequence[Sample], indices: list[int], design: Design, replicates: int
) -> list[list[int]]:
    groups = design.member.shape[1]
    most = int(min(_HELD // (replicates * groups), _HELD // (BLOCK * design.load)))
    batches: list[list[int]] = []
    width = most
    for index in indices:
        values, statistic = samples[index].values, samples[index].statistic
        assert isinstance(statistic, OfSums)
        needs = statistic.terms_of(np.zeros((1, values.shape[1]))).shape[1] + 1
        if width + needs > most:
            batches.append([])
            width = 0
        batches[-1].append(index)
        width += needs
    return batches


def _stack(result: Replicates, batch: list[int]) -> Stack:
    chosen: list[tuple[Floats, OfSums]] = []
    for index in batch:
        statistic = result.samples[index].statistic
        assert isinstance(statistic, OfSums)
        chosen.append((result.samples[index].values, statistic))
    return Stack(chosen)


def _sum_pass(result: Replicates, batch: list[int], seed: int) -> None:
    """Fill in one batch of sum-type samples."""
    design, stack = result.design, _stack(result, batch)
    replicates, groups = len(result.draws), design.member.shape[1]
    counts = Counts(design.size, replicates, seed)
    sums = np.zeros((replicates, groups, stack.width))
    total = np.zeros((groups, stack.width))
    size = np.zeros((groups, stack.width))
    n = np.zeros((groups, len(batch)), dtype=np.int64)
    for block, (low, high) in enumerate(counts.blocks):
        pieces = design.pieces(low, high, stack.terms)
        for g, (_, matrix) in enumerate(pieces):
            total[g] += matrix.sum(axis=0)
            size[g] += np.abs(matrix).sum(axis=0)
            n[g] += np.count_nonzero(matrix, axis=0)[stack.weight_of]
        kinds = design.kinds(low, high)
        if kinds is not None:
            terms = stack.terms(slice(low, high))[kinds.order]
        for start, stop in chunks(replicates, high - low):
            weights = counts.draw(block, start, stop)
            if kinds is not None:
                sums[start:stop] += _by_kind(weights, kinds, terms)
                continue
            for g, (ids, matrix) in enumerate(pieces):
                if len(matrix):
                    sums[start:stop, g] += weights[:, ids] @ matrix
    point = stack.evaluate(total)
    result.point[batch] = point.T
    result.n[batch] = n.T
    for g in range(groups):
        result.draws[:, batch, g] = stack.evaluate(sums[:, g])

    def moments() -> Floats:
        return sum_moments(stack, design, total, size, point).swapaxes(1, 2)

    result.defer(batch, moments)


def _by_kind(weights: Floats, kinds: Kinds, terms: Floats) -> Floats:
    """Return the sums of each replicate and group, from one product for each kind of unit."""
    ordered = np.take(weights, kinds.order, axis=1)
    parts = np.stack(
        [
            ordered[:, low:high] @ terms[low:high]
            for low, high in zip(kinds.edges[:-1], kinds.edges[1:], strict=True)
        ],
        axis=1,
    )
    return np.asarray(np.einsum("kg,rkw->rgw", kinds.member, parts, optimize=True))


def _general_pass(result: Replicates, indices: list[int], seed: int) -> None:
    """Fill in samples whose statistic needs all units of a replicate at once."""
    design = result.design
    members = [np.flatnonzero(column) for column in design.member.T]
    for index in indices:
        values, statistic = result.samples[index].values, result.samples[index].statistic
        known = known_rows(values)
        for g, rows in enumerate(members):
            counted = rows[known[rows]]
            result.n[index, g] = (
                len(counted) if design.order is None else len(np.unique(design.cluster[counted]))
            )
            if len(counted):
                result.point[index, g] = statistic.point(values[counted])
    counts = Counts(design.size, len(result.draws), seed)
    for start, stop in chunks(len(result.draws), max(design.size, design.units)):
        weights = design.spread(counts.draw_all(start, stop))
        for g, rows in enumerate(members):
            part = weights if design.whole else weights[:, rows]
            for index in indices:
                values, statistic = result.samples[index].values, result.samples[index].statistic
                if result.n[index, g]:
                    some = values if design.whole else values[rows]
                    result.draws[start:stop, index, g] = statistic.replicates(some, part)


def estimate(
    values: npt.ArrayLike,
    statistic: Statistic | None = None,
    *,
    metric: str,
    rng: np.random.Generator,
    unit: str = "row",
    clusters: npt.ArrayLike | None = None,
    level: float = 0.95,
    method: Method = "bca",
    replicates: int = 2000,
    **about: Any,
) -> Estimate:
    """Return one statistic of one set of units with its bootstrap interval.

    Parameters
    ----------
    values
        One row per unit; NaN in any column means that the unit does not contribute.
    statistic
        What to compute; the mean by default.
    metric, unit, about
        How the estimate is named; `about` are further fields of `Estimate`.
    rng, clusters, replicates
        As in `resample`.
    level, method
        Of the interval.

    Examples
    --------
    >>> values = np.random.default_rng(0).exponential(size=100)
    >>> e = estimate(values, metric="time", unit="user", rng=np.random.default_rng(1))
    >>> e.method, e.n, e.interval[0] < e.value < e.interval[1]
    ('BCa bootstrap', 100, True)
    """
    chosen = Mean() if statistic is None else statistic
    drawn = resample(
        [Sample(as_rows(values), chosen)], clusters=clusters, replicates=replicates, rng=rng
    )
    return drawn.estimate(0, metric=metric, unit=unit, level=level, method=method, **about)
