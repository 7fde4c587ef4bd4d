"""The bootstrap of sums that merge: units are measured in blocks, in any order, on any machine.

Every unit (or cluster of units) falls into one of 4,096 bins, by a hash of the seed and its id.
A block of units adds its terms to the sums of their bins; blocks merge by adding those sums. At
the end bins are resampled: all units of a bin have the same weight in a replicate, which makes
bins random groups of units. So neither the size and order of blocks nor the number of threads or
machines changes a result, and what is kept does not grow with the number of units.

Units are independent, so the sum of a random group has the variance of its units, and resampling
4,096 of them tells that variance as Student's t with 4,095 degrees of freedom would. Where there
are far fewer units than bins, a bin holds one unit or none. Empty bins are drawn too, so the number
of units varies from replicate to replicate, nearly as in a Poisson bootstrap: the standard error of
a mean is 1.14 times that of the ordinary bootstrap with 5 units, 1.07 times with 10, 1.02 times
with 30, and the same to 1% from 100 on (normal values, means over six samples, 2,000 replicates).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from scipy import sparse

from ombud.stats.bootstrap._design import Counts, Design, chunks, one_thread
from ombud.stats.bootstrap.replicates import Left, Replicates, Sample
from ombud.stats.clustered_rates import RateSums
from ombud.stats.statistics import Floats, OfSums, without_each

BINS = 4096
"""How many random groups units are summed in."""

Keys = npt.NDArray[np.uint64]

# Sums are added in other orders elsewhere: what differs by less than this is the same number.
_ROUNDING = 1e-11


def mixed(keys: npt.NDArray[np.integer]) -> Keys:
    """Return 64-bit numbers whose bits all depend on all bits of those given (splitmix64).

    References
    ----------
    Steele, Lea and Flood (2014), *Fast Splittable Pseudorandom Number Generators*.

    Examples
    --------
    >>> [f"{key:x}" for key in mixed(np.array([0, 1])).tolist()]
    ['e220a8397b1dcdaf', '910a2dec89025cc1']
    """
    x = np.array(keys, dtype=np.int64 if keys.dtype.kind == "i" else np.uint64).view(np.uint64)
    x += np.uint64(0x9E3779B97F4A7C15)
    x ^= x >> np.uint64(30)
    x *= np.uint64(0xBF58476D1CE4E5B9)
    x ^= x >> np.uint64(27)
    x *= np.uint64(0x94D049BB133111EB)
    x ^= x >> np.uint64(31)
    return x


def _mixed_seed(seed: int) -> np.uint64:
    """Return 64 bits that depend on all bits of a seed, which may have any number of them."""
    own = 0
    for shift in range(0, max(1, seed.bit_length()), 64):
        part = seed >> shift & 0xFFFF_FFFF_FFFF_FFFF
        own = int(mixed(np.array([own ^ part], dtype=np.uint64))[0])
    return np.uint64(own)


def bins_of(keys: Keys, seed: int) -> npt.NDArray[np.int64]:
    """Return the bin of each unit (or cluster), from 64-bit keys of their ids.

    Examples
    --------
    >>> bins = bins_of(mixed(np.arange(40_960)), seed=1)
    >>> bool(bins.min() >= 0 and bins.max() < BINS), bool(abs(bins.mean() - BINS / 2) < 30)
    (True, True)
    """
    own = _mixed_seed(seed)
    return (mixed(keys ^ own) >> np.uint64(65 - BINS.bit_length())).astype(np.int64)


def add_to_bins(
    sums: Floats,
    bins: npt.NDArray[np.int64],
    columns: Sequence[npt.NDArray[np.int64]],
    terms: Floats,
) -> None:
    """Add terms of units to the sums of their bins, in place, for everyone and for each group.

    `sums` is bins x groups x width, `terms` units x width; `bins` has the bin of each unit, and
    `columns` for each group the units that are in it.
    """
    groups = sums.shape[1]
    place = np.concatenate([bins[inside] * groups + g for g, inside in enumerate(columns)])
    unit = np.concatenate(list(columns)) if len(columns) else np.empty(0, dtype=np.int64)
    used, row = np.unique(place, return_inverse=True)
    ones = np.ones(len(unit))
    chosen = sparse.csr_array((ones, (row, unit)), shape=(len(used), len(terms)))
    sums.reshape(-1, sums.shape[2])[used] += chosen @ terms


def _no_counts() -> npt.NDArray[np.int64]:
    return np.zeros((0, 0), dtype=np.int64)


@dataclass(eq=False)
class BinnedReplicates(Replicates):
    """Replicates of sums by bin."""

    # Bins x groups x samples x (terms, weight).
    sums: Floats = field(default_factory=lambda: np.empty((0, 0, 0, 0)))
    # Groups x samples x columns of the statistic: sums over units that contribute.
    column_sums: Floats = field(default_factory=lambda: np.empty((0, 0, 0)))
    # Groups x samples x columns: how many units lie above zero in a column.
    above_zero: npt.NDArray[np.int64] = field(default_factory=_no_counts)
    # For pairs of groups of one sample: how many units contribute to one of them.
    either: dict[tuple[int, int], npt.NDArray[np.int64]] = field(default_factory=dict)
    rates: RateSums | None = None  # what tests of rates need, where the samples are rates

    def leave_out(self, s: int, g: int = 0) -> Left | None:
        """Return the statistic without each bin, and which bins hold units that contribute."""
        statistic = self.samples[s].statistic
        assert isinstance(statistic, OfSums)  # resample_bins has checked
        terms = self.sums[:, g, s]
        present = terms[:, -1] > 0
        values = np.full(len(terms), self.point[s, g])
        left = without_each(terms[present], terms.sum(axis=0), np.abs(terms).sum(axis=0))
        values[present] = statistic.evaluate(left)
        return values, present

    def n_of_either(self, first: tuple[int, int], second: tuple[int, int]) -> int:
        """Return how many units contribute to one or the other."""
        groups = (first[1], second[1])
        if first[0] == second[0] and groups in self.either:
            return int(self.either[groups][first[0]])
        return int(max(self.n[first], self.n[second]))

    def column_means(self, s: int, g: int) -> Floats | None:
        """Return the mean of each column of the statistic over the units that contribute."""
        weight = self.sums[:, g, s, -1].sum()
        return self.column_sums[g, s] / weight if weight else None

    def count_above_zero(self, s: int, g: int, column: int) -> int:
        """Return how many units that contribute lie above zero in a column."""
        return int(self.above_zero[g, s, column])


def resample_bins(
    sums: Floats,
    statistic: OfSums,
    n: npt.NDArray[np.int64],
    *,
    replicates: int = 2000,
    seed: int = 0,
) -> BinnedReplicates:
    """Resample bins with replacement and recompute every sample in every group.

    Parameters
    ----------
    sums
        Bins x groups x samples x (terms, weight): what blocks of units have added up to.
    statistic
        The statistic of all samples.
    n
        Independent units (clusters) behind each, groups x samples.
    replicates
        How often.
    seed
        Replicates depend on it and on nothing else, so everything that was put into bins with
        the same seed is resampled together.

    Examples
    --------
    >>> from ombud.stats.statistics import Mean
    >>> x = np.random.default_rng(1).normal(size=20_000)
    >>> sums = np.zeros((BINS, 1, 2))
    >>> everyone = [np.arange(len(x))]
    >>> add_to_bins(sums, bins_of(mixed(everyone[0]), 1), everyone, np.column_stack([x, x**0]))
    >>> drawn = resample_bins(sums[:, :, None, :], Mean(), np.array([[len(x)]]), seed=1)
    >>> bool(abs(drawn.draws.std() * np.sqrt(len(x)) - 1) < 0.05)
    True
    """
    if not isinstance(statistic, OfSums):
        raise ValueError(f"{type(statistic).__name__} is no function of sums: blocks cannot merge")
    bins, groups, samples, width = sums.shape
    empty = Sample(np.empty((0, len(statistic.columns))), statistic)
    result = BinnedReplicates(
        (empty,) * samples,
        Design(0, np.empty((0, groups), dtype=np.bool_), None),
        np.full((samples, groups), np.nan),
        np.full((replicates, samples, groups), np.nan),
        n.T.copy(),
        sums=sums,
    )
    if not n.size or not n.max():
        return result
    result.point[:] = statistic.evaluate(sums.sum(axis=0)).T
    counts = Counts(bins, replicates, seed)
    flat = np.ascontiguousarray(sums).reshape(bins, -1)
    with one_thread():
        for start, stop in chunks(replicates, bins):
            drawn = counts.draw(0, start, stop) @ flat
            values = statistic.evaluate(drawn.reshape(stop - start, groups, samples, width))
            result.draws[start:stop] = values.swapaxes(1, 2)
    size = np.maximum(np.abs(result.point), np.nan_to_num(np.abs(result.draws)).max(axis=0))
    # An end of an interval hangs on how many replicates equal the number itself.
    near = np.abs(result.draws - result.point) <= _ROUNDING * size
    np.copyto(result.draws, result.point, where=near)
    return result
