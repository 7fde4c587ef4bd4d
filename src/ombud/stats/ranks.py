"""The bootstrap of medians of many groups, through ranks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ombud.stats.bootstrap._design import Design
from ombud.stats.bootstrap.patterns import resample_patterns
from ombud.stats.bootstrap.replicates import Left, Replicates, Sample
from ombud.stats.bootstrap.resample import resample
from ombud.stats.statistics import Floats, Mean, Median


@dataclass(eq=False)
class RankReplicates(Replicates):
    """Replicates without leave-one-out values, so that intervals are percentile intervals."""

    def leave_out(self, s: int, g: int = 0) -> Left | None:
        """Return None: leaving units out of a median says little about its skewness."""
        return None


def resample_medians(
    values: Sequence[npt.NDArray[np.float64]],
    *,
    groups: npt.NDArray[np.bool_],
    clusters: npt.ArrayLike | None = None,
    replicates: int = 2000,
    rng: np.random.Generator,
) -> RankReplicates:
    r"""Resample units (or clusters) and recompute the median of each sample in each group.

    In a replicate, the share of units that lie in the lower half of their group is
    :math:`p^*`, which is a mean and quickly resampled; the replicate of the median is the
    quantile :math:`1 - p^*` of the group. The distribution of a single median is that of the
    ordinary bootstrap up to :math:`1/\sqrt n`; the correlation of a group with the whole, on which
    the interval of their ratio rests, is right to first order (Bahadur's representation). Samples
    are resampled one by one: medians of two samples (systems) must not be contrasted.

    Parameters
    ----------
    values
        For each sample one number a unit, NaN where the unit does not contribute.
    groups
        Booleans of shape (units, groups).
    clusters, replicates, rng
        As in `ombud.stats.bootstrap.resample.resample`.

    References
    ----------
    Bahadur (1966), Annals of Mathematical Statistics 37, 577-580.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> x = rng.normal(size=2000)
    >>> drawn = resample_medians([x], groups=np.ones((2000, 1), dtype=bool), rng=rng)
    >>> bool(abs(drawn.draws.std() - np.sqrt(np.pi / 2 / 2000)) < 0.006)
    True
    """
    samples = tuple(Sample(v, Median()) for v in values)
    design = Design(len(groups), groups, clusters)
    empty = Replicates.empty(samples, design, replicates)
    result = RankReplicates(samples, design, empty.point, empty.draws, empty.n)
    for s, sample in enumerate(samples):
        order, lower, ordered = _halves(sample.values[:, 0], groups)
        means = [Sample(column, Mean()) for column in lower.T]
        whole = np.ones((len(groups), 1), dtype=bool)
        drawn = None
        if clusters is None:
            # Kinds of units do not depend on their order.
            drawn = resample_patterns(means, groups=whole, replicates=replicates, rng=rng)
        if drawn is None:
            back = np.empty_like(lower)
            back[order] = lower
            means = [Sample(column, Mean()) for column in back.T]
            drawn = resample(means, clusters=clusters, replicates=replicates, rng=rng)
        for g, x in enumerate(ordered):
            result.n[s, g] = drawn.n[g, 0]
            if len(x):
                result.point[s, g] = (x[(len(x) - 1) // 2] + x[len(x) // 2]) / 2
                result.draws[:, s, g] = _quantile(x, 1 - drawn.draws[:, g, 0])
    return result


def _halves(
    x: Floats, groups: npt.NDArray[np.bool_]
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.float64], list[Floats]]:
    """Return units in order, whether each is in the lower half of each group, and each group.

    Ties are broken by place, which changes no quantile. With an odd number of units the middle
    one counts half.
    """
    order = np.argsort(x, kind="stable")
    known = np.count_nonzero(~np.isnan(x))
    ascending, member = x[order[:known]], groups[order[:known]]
    lower = np.full(groups.shape, np.nan, order="F")
    ordered = []
    for g in range(groups.shape[1]):
        inside = np.flatnonzero(member[:, g])
        lower[inside, g] = np.clip(len(inside) / 2 - np.arange(len(inside)), 0.0, 1.0)
        ordered.append(ascending[inside])
    return order, lower, ordered


def _quantile(ordered: Floats, share: Floats) -> Floats:
    """Return quantiles halfway between the lower and the upper inverse of the distribution."""
    n = len(ordered)
    position = share * n
    below = np.clip(np.ceil(position - 1e-9) - 1, 0, n - 1)
    above = np.clip(np.floor(position + 1e-9), 0, n - 1)
    result = (ordered[_whole(below)] + ordered[_whole(above)]) / 2
    return np.where(np.isnan(share), np.nan, result)


def _whole(position: Floats) -> npt.NDArray[np.int64]:
    """Return positions as whole numbers; those that do not exist as 0."""
    return np.nan_to_num(position).astype(np.int64)


def resample_by_pattern(
    samples: Sequence[Sample],
    groups: npt.NDArray[np.bool_] | None,
    clusters: npt.NDArray[np.int32] | None,
    replicates: int,
    rng: np.random.Generator,
) -> Replicates:
    """Resample units (or clusters) by the fastest way that the values allow.

    Units with the same values are drawn together where they are few kinds; medians are resampled
    through the share of units below each value.
    """
    everyone = np.ones((len(samples[0].values), 1), dtype=bool) if groups is None else groups
    if isinstance(samples[0].statistic, Median):
        values = [sample.values[:, 0] for sample in samples]
        return resample_medians(
            values, groups=everyone, clusters=clusters, replicates=replicates, rng=rng
        )
    if clusters is None:
        drawn = resample_patterns(samples, groups=everyone, replicates=replicates, rng=rng)
        if drawn is not None:
            return drawn
    return resample(samples, groups=everyone, clusters=clusters, replicates=replicates, rng=rng)
