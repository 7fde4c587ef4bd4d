"""The bootstrap of units that take few distinct values, drawn by distinct rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ombud.stats.bootstrap._design import Design, Stack, one_thread
from ombud.stats.bootstrap.replicates import How, Left, Replicates, Sample, contrasted
from ombud.stats.statistics import Floats, OfSums, without_each

# Numbers of counts held at once: 2 MiB, which stay in the cache from drawing to adding up.
_HELD = 2**18
# With more kinds than this, those of few units are drawn unit by unit.
_MANY, _RARE = 256, 8
# A column of which so many units take so few values is tried as one of those values.
_LOOKED_AT, _FEW = 4096, 8
# So many kinds times so many values are still whole numbers of 32 bits.
_MOST = 46_000


@dataclass(eq=False)
class PatternReplicates(Replicates):
    """Replicates of kinds of units, which also tell what leaving one unit out changes."""

    # Kinds x width: what one unit of a kind adds to each sum.
    terms: Floats = field(default_factory=lambda: np.empty((0, 0)))
    # How many units are of each kind.
    counts: npt.NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    # Kinds x groups.
    member: npt.NDArray[np.bool_] = field(default_factory=lambda: np.empty((0, 0), dtype=np.bool_))
    stack: Stack | None = None  # which terms make which sample
    # The first unit of each kind.
    first: npt.NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    _without: dict[tuple[int, int], Left] = field(default_factory=dict)

    def _without_kind(self, s: int, g: int) -> Left:
        """Return the statistic without a unit of each kind, and which kinds contribute."""
        if (s, g) not in self._without:
            assert self.stack is not None  # resample_patterns has set it
            statistic, columns = self.stack.columns_of(s)
            inside = self.member[:, g]
            terms = self.terms[:, columns]
            many = self.counts[inside].astype(np.float64)
            total, size = many @ terms[inside], many @ np.abs(terms[inside])
            counted = inside & (terms[:, -1] != 0)
            values = np.full(len(terms), self.point[s, g])
            values[counted] = statistic.evaluate(without_each(terms[counted], total, size))
            self._without[s, g] = values, counted
        return self._without[s, g]

    def moments(self, s: int, g: int) -> tuple[Floats, int] | None:
        """Return moments of leave-one-out values and of how many units."""
        values, counted = self._without_kind(s, g)
        return self._moments_of(values - self.point[s, g], counted)

    def moments_between(
        self, first: tuple[int, int], second: tuple[int, int], how: How
    ) -> tuple[Floats, int] | None:
        """Return the moments of a contrast of any two samples and groups."""
        (one, there), (two, here) = self._without_kind(*first), self._without_kind(*second)
        whole = contrasted(self.point[first], self.point[second], how)
        return self._moments_of(contrasted(one, two, how) - whole, there | here)

    def _moments_of(self, change: Floats, counted: npt.NDArray[np.bool_]) -> tuple[Floats, int]:
        d, many = change[counted], self.counts[counted].astype(np.float64)
        return np.array([many @ d, many @ d**2, many @ d**3]), int(many.sum())

    def n_of_either(self, first: tuple[int, int], second: tuple[int, int]) -> int:
        """Return how many units contribute to one sample and group or the other."""
        one, two = self._without_kind(*first)[1], self._without_kind(*second)[1]
        return int(self.counts[one | two].sum())


def resample_patterns(
    samples: Sequence[Sample],
    *,
    groups: npt.NDArray[np.bool_],
    replicates: int = 2000,
    rng: np.random.Generator,
    most: int = 20_000,
) -> Replicates | None:
    """Resample independent units by their distinct rows: the same bootstrap, many times faster.

    Units with the same values in all samples and the same groups are interchangeable, so how
    often each *kind* of unit is drawn is multinomial. Flags of five systems on 500,000 texts in
    nine groups are some thousand kinds.

    Parameters
    ----------
    samples
        Values of independent units, with statistics of the sum type.
    groups
        Booleans of shape (units, groups).
    replicates, rng
        As in `ombud.stats.resample`; the draws are others, of the same distribution.
    most
        With more kinds than this there is nothing to gain.

    Returns
    -------
    The replicates; None when there are too many kinds, or a statistic is not of the sum type.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> flags = (rng.random(1000) < 0.2).astype(float)
    >>> everyone = np.ones((1000, 1), dtype=bool)
    >>> drawn = resample_patterns([Sample(flags)], groups=everyone, rng=rng)
    >>> bool(abs(drawn.draws.std() - np.sqrt(flags.mean() * (1 - flags.mean()) / 1000)) < 0.001)
    True
    """
    chosen = [(s.values, s.statistic) for s in samples if isinstance(s.statistic, OfSums)]
    if len(chosen) < len(samples):
        return None
    design = Design(len(samples[0].values), groups, None)
    stack = Stack(chosen)
    kinds = _kinds(samples, groups, most)
    if kinds is None:
        return None
    first, counts = kinds
    empty = Replicates.empty(tuple(samples), design, replicates)
    if not len(first):
        return empty
    terms = stack.terms(first)
    inside = groups[first]
    result = PatternReplicates(
        empty.samples,
        design,
        empty.point,
        empty.draws,
        empty.n,
        terms=terms,
        counts=counts,
        member=inside,
        stack=stack,
        first=first,
    )
    # Kinds x (groups, width): what one unit of a kind adds to each sum of each group.
    wide = (inside[:, :, None] * terms[:, None, :]).reshape(len(first), -1)
    shape = (groups.shape[1], stack.width)
    total = (counts.astype(np.float64) @ wide).reshape(shape)
    result.point[:] = stack.evaluate(total).T
    members = (counts @ (wide != 0)).reshape(shape)
    result.n[:] = members[:, stack.weight_of].T
    step = max(1, _HELD // max(len(first), wide.shape[1]))
    kinds_drawn = _KindsDrawn(counts)
    wide = wide[kinds_drawn.order]
    with one_thread():
        for start in range(0, replicates, step):
            stop = min(start + step, replicates)
            drawn = kinds_drawn.draw(stop - start, rng)
            sums = (drawn @ wide).reshape(stop - start, *shape)
            result.draws[start:stop] = stack.evaluate(sums).swapaxes(1, 2)
    return result


class _KindsDrawn:
    """How often each kind is drawn when as many units are drawn as there are.

    A draw of a multinomial takes one binomial for each kind. Most kinds may have a unit or two:
    those are one kind together, whose units are then drawn one by one.
    """

    def __init__(self, counts: npt.NDArray[np.int64]) -> None:
        rare = counts <= (_RARE if len(counts) > _MANY else 0)
        self.order = np.argsort(rare, kind="stable")  # common kinds, then rare ones
        self._units = int(counts.sum())
        self._common, few = np.split(counts[self.order], [np.count_nonzero(~rare)])
        self._owner = np.repeat(np.arange(len(few)), few)
        self._n_rare = len(few)

    def draw(self, replicates: int, rng: np.random.Generator) -> Floats:
        """Return how often each kind is drawn, in the order of `order`: replicates x kinds."""
        together = [len(self._owner)] if self._n_rare else []
        shares = np.append(self._common, together) / self._units
        drawn = rng.multinomial(self._units, shares, size=replicates)
        n_common = len(self._common)
        result = np.empty((replicates, n_common + self._n_rare))
        result[:, :n_common] = drawn[:, :n_common]
        if self._n_rare:
            many = drawn[:, -1]
            kind = self._owner[rng.integers(0, len(self._owner), int(many.sum()))]
            kind += np.repeat(np.arange(replicates) * self._n_rare, many)
            found = np.bincount(kind, minlength=replicates * self._n_rare)
            result[:, n_common:] = found.reshape(replicates, self._n_rare)
        return result


def _kinds(
    samples: Sequence[Sample], groups: npt.NDArray[np.bool_], most: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]] | None:
    """Return the first unit of each kind, and how many units are of it."""
    most = min(most, _MOST)
    columns: list[npt.NDArray[Any]] = [*np.packbits(groups, axis=1).T]
    columns += [_comparable(column) for s in samples for column in s.values.T]
    units = len(groups)
    code, kinds = np.zeros(units, dtype=np.int32), min(units, 1)
    for column in columns:
        found = _distinct(column, most)
        if found is None:
            return None
        index, distinct = found
        code, kinds = _dense(code * np.int32(distinct) + index, kinds * distinct)
        if kinds > most:
            return None
    first = np.empty(kinds, dtype=np.int64)
    # Of several units of a kind the one that is written last, the first, stays.
    first[code[::-1]] = np.arange(units - 1, -1, -1)
    return first, np.bincount(code, minlength=kinds).astype(np.int64)


def _distinct(
    column: npt.NDArray[Any], most: int
) -> tuple[npt.NDArray[np.integer[Any]], int] | None:
    """Return the place of each value among the distinct ones in order, and how many there are."""
    candidates = np.unique(column[:: max(1, len(column) // _LOOKED_AT)])
    while 0 < len(candidates) <= _FEW:
        # Flags and the like take few values: those of some units, and those that turn up beside.
        index = np.zeros(len(column), dtype=np.uint8)
        for value in candidates[1:]:
            index += column >= value
        others = candidates[index] != column
        if not others.any():
            return index, len(candidates)
        candidates = np.union1d(candidates, column[others])
    values, place = np.unique(column, return_inverse=True)
    return None if len(values) > most else (place.astype(np.int32), len(values))


def _dense(code: npt.NDArray[np.int32], below: int) -> tuple[npt.NDArray[np.int32], int]:
    """Return codes without gaps, in the same order, and how many there are."""
    if below > 4 * len(code) + _LOOKED_AT:
        values, index = np.unique(code, return_inverse=True)
        return index.astype(np.int32), len(values)
    taken = np.zeros(below, dtype=np.bool_)
    taken[code] = True
    place = np.cumsum(taken, dtype=np.int32) - np.int32(1)
    return place[code], int(place[-1]) + 1 if below else 0


def _comparable(column: Floats) -> Floats:
    """Return values in which missing ones are equal to each other."""
    return np.where(np.isnan(column), np.inf, column)
