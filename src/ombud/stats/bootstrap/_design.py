"""Units, their groups and clusters; and many sum-type samples as one matrix."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ombud.stats.statistics import Custom, Floats, OfSums, Statistic, known_rows, without_each

BLOCK = 16_384
# Small enough for a processor's cache, large enough for a matrix product.
_CHUNK_BYTES = 16 * 2**20


def chunks(replicates: int, units: int) -> list[tuple[int, int]]:
    """Cut the replicates so that one chunk of counts stays within 16 MiB."""
    step = max(1, min(replicates, _CHUNK_BYTES // (8 * max(units, 1))))
    return [(start, min(start + step, replicates)) for start in range(0, replicates, step)]


class Counts:
    """Counts of n draws with replacement from n units, for each replicate.

    Units are cut into blocks of fixed size. How many draws fall into each block is multinomial,
    and within a block draws are uniform, which together is the ordinary bootstrap. Each block has
    a stream of its own, so that counts depend on the seed, the number of units and the replicate,
    and not on what is computed from them or in which chunks.
    """

    def __init__(self, units: int, replicates: int, seed: int) -> None:
        self.edges = [*range(0, units, BLOCK), units]
        sizes = np.diff(self.edges)
        first, *others = np.random.SeedSequence(seed).spawn(len(sizes) + 1)
        self._buffer = np.empty(0)
        self._streams = [np.random.default_rng(child) for child in others]
        if len(sizes) == 1:
            self._totals = np.full((replicates, 1), units)
        else:
            shares = sizes / units
            self._totals = np.random.default_rng(first).multinomial(units, shares, size=replicates)

    @property
    def blocks(self) -> list[tuple[int, int]]:
        """First and last unit (excluded) of every block."""
        return list(zip(self.edges[:-1], self.edges[1:], strict=True))

    def draw(self, block: int, start: int, stop: int) -> Floats:
        """Return the counts of a block for some replicates; call in the order of replicates.

        The array is overwritten by the next call.
        """
        size = self.edges[block + 1] - self.edges[block]
        totals = self._totals[start:stop, block]
        stream = self._streams[block]
        # Fresh memory for every chunk would cost as much as the drawing.
        if self._buffer.size < (stop - start) * size:
            self._buffer = np.empty((stop - start) * size)
        counts = self._buffer[: (stop - start) * size].reshape(stop - start, size)
        # Small blocks are drawn several replicates at a time, to save calls.
        step = max(1, BLOCK // size)
        for row in range(0, stop - start, step):
            some = totals[row : row + step]
            drawn = stream.integers(0, size, size=int(some.sum()))
            if step > 1:
                drawn += np.repeat(np.arange(len(some)) * size, some)
            flat = np.bincount(drawn, minlength=len(some) * size)
            counts[row : row + step] = flat.reshape(len(some), size)
        return counts

    def draw_all(self, start: int, stop: int) -> Floats:
        """Return the counts of all units for some replicates."""
        counts = np.empty((stop - start, self.edges[-1]))
        for block, (low, high) in enumerate(self.blocks):
            counts[:, low:high] = self.draw(block, start, stop)
        return counts


Ints = npt.NDArray[np.int64]
Rows = slice | Ints


# With fewer units of a kind, a product for each kind costs more than one for each group.
_LEAST_OF_KIND = 64


class Kinds(NamedTuple):
    """Units of a block, those in the same groups beside each other.

    `order` are the units, `edges` where each kind begins and ends, `member` is kinds x groups.
    """

    order: Ints
    edges: Ints
    member: Floats


class Design:
    """Which units there are, to which groups they belong, and what is resampled.

    Parameters
    ----------
    units
        The number of rows.
    groups
        Membership, shape (units, groups); None means one group that is everyone.
    clusters
        The cluster of each unit; None means that units are independent.
    """

    def __init__(
        self, units: int, groups: npt.ArrayLike | None, clusters: npt.ArrayLike | None
    ) -> None:
        self.units = units
        everyone = np.ones((units, 1), dtype=np.bool_)
        member = everyone if groups is None else np.asarray(groups)
        if member.ndim == 1:
            member = member[:, None]
        if member.dtype != np.bool_ or member.shape[0] != units or member.ndim != 2:
            raise ValueError(
                f"groups have shape {member.shape} and type {member.dtype}; "
                f"expected booleans of shape ({units}, groups)"
            )
        self.member: npt.NDArray[np.bool_] = member
        self.whole = groups is None
        self.order: Ints | None = None
        self.size = units
        if clusters is not None:
            names = np.asarray(clusters)
            if names.shape != (units,):
                raise ValueError(f"clusters have shape {names.shape}; expected ({units},)")
            if names.dtype.kind == "f" and np.isnan(names).any():
                raise ValueError("some units have no cluster (NaN); name it or leave them out")
            result, cluster = np.unique(names, return_inverse=True)
            self.size = len(result)
            self.cluster: Ints = cluster.astype(np.int64)
            self.order = np.argsort(self.cluster, kind="stable")
            self._starts = np.searchsorted(self.cluster[self.order], np.arange(self.size + 1))

    @property
    def load(self) -> float:
        """How many times the units are held at once when cut by group."""
        if self.order is not None:
            return float(self.member.shape[1])
        return max(1.0, float(self.member.mean(axis=0).sum())) if self.units else 1.0

    def spread(self, weights: Floats) -> Floats:
        """Turn weights of resampled units (clusters) into weights of rows."""
        return weights if self.order is None else weights[:, self.cluster]

    def kinds(self, low: int, high: int) -> Kinds | None:
        """Return the units of a block by the groups they are in; None where that gains nothing.

        Groups of an attribute share its units out, so units are of few kinds, and one product for
        each kind serves all groups that it is in.
        """
        if self.order is not None or self.whole or self.member.shape[1] < 2:
            return None
        member = self.member[low:high]
        bits = np.packbits(member, axis=1)
        code = np.zeros(len(bits), dtype=np.int64)
        for column in bits.T:
            code = np.unique(code * 256 + column, return_inverse=True)[1]
            if code.max() >= len(bits) // _LEAST_OF_KIND:
                return None
        order = np.argsort(code, kind="stable")
        edges = np.searchsorted(code[order], np.arange(code.max() + 2))
        return Kinds(order, edges, member[order[edges[:-1]]].astype(np.float64))

    def pieces(
        self, low: int, high: int, terms: Callable[[Rows], Floats]
    ) -> list[tuple[Ints | slice, Floats]]:
        """Return for each group the resampled units of a block that are in it, and their sums."""
        if self.order is None:
            matrix = terms(slice(low, high))
            if self.whole:
                return [(slice(None), matrix)]
            inside = [np.flatnonzero(column) for column in self.member[low:high].T]
            return [(ids, matrix[ids]) for ids in inside]
        return self._clustered(low, high, terms)

    def _clustered(
        self, low: int, high: int, terms: Callable[[Rows], Floats]
    ) -> list[tuple[Ints | slice, Floats]]:
        assert self.order is not None
        start, stop = int(self._starts[low]), int(self._starts[high])
        groups = self.member.shape[1]
        sums: Floats | None = None
        present = np.zeros((groups, high - low), dtype=np.bool_)
        for first in range(start, stop, BLOCK):
            rows = self.order[first : min(first + BLOCK, stop)]
            matrix = terms(rows)
            if sums is None:
                sums = np.zeros((groups, high - low, matrix.shape[1]))
            for g in range(groups):
                inside = np.flatnonzero(self.member[rows, g])
                if len(inside):
                    local = self.cluster[rows[inside]] - low
                    begin = np.flatnonzero(np.diff(local, prepend=-1))
                    sums[g, local[begin]] += np.add.reduceat(matrix[inside], begin, axis=0)
                    present[g, local[begin]] = True
        assert sums is not None
        ids = [np.flatnonzero(row) for row in present]
        return [(some, sums[g, some]) for g, some in enumerate(ids)]


class Stack:
    """Sum-type samples side by side, so that one matrix product serves them all.

    Samples with the same missing units share one column of weights.
    """

    def __init__(self, samples: Sequence[tuple[Floats, OfSums]]) -> None:
        self._samples = samples
        self._weights: dict[bytes, int] = {}
        self._spans: list[tuple[int, int]] = []
        self._complete: list[bool] = []
        own: list[bytes] = []
        width = 0
        for values, statistic in samples:
            terms = statistic.terms_of(np.zeros((1, values.shape[1]))).shape[1]
            self._spans.append((width, width + terms))
            width += terms
            known = known_rows(values)
            complete = bool(known.all())
            self._complete.append(complete)
            key = b"" if complete else blake2b(np.packbits(known).tobytes()).digest()
            own.append(key)
        self._first_of: dict[int, int] = {}
        for index, key in enumerate(own):
            if key not in self._weights:
                self._weights[key] = width
                self._first_of[width] = index
                width += 1
        self.width = width
        self.weight_of = np.array([self._weights[key] for key in own], dtype=np.int64)
        kinds: dict[OfSums, list[int]] = {}
        for index, (_, statistic) in enumerate(samples):
            kinds.setdefault(statistic, []).append(index)
        self._layout = [
            (
                statistic,
                np.array(members),
                np.array([[*range(*self._spans[i]), self.weight_of[i]] for i in members]),
            )
            for statistic, members in kinds.items()
        ]

    def terms(self, rows: Rows) -> Floats:
        """Return the terms of some units, zero where a sample does not know the unit."""
        matrix: Floats | None = None
        for index, (values, statistic) in enumerate(self._samples):
            some = values[rows]
            if matrix is None:
                matrix = np.empty((len(some), self.width))
            first, last = self._spans[index]
            if self._complete[index]:
                matrix[:, first:last] = statistic.terms_of(some)
                known: npt.NDArray[np.bool_] | None = None
            else:
                known = known_rows(some)
                matrix[:, first:last] = 0.0
                matrix[known, first:last] = statistic.terms_of(some[known])
            weight = int(self.weight_of[index])
            if self._first_of[weight] == index:
                matrix[:, weight] = 1.0 if known is None else known
        assert matrix is not None
        return matrix

    def layout(self) -> Iterator[tuple[OfSums, Ints, Ints]]:
        """Yield each kind of statistic with its samples and their columns (samples, K + 1)."""
        yield from self._layout

    def columns_of(self, index: int) -> tuple[OfSums, Ints]:
        """Return the statistic of a sample and the columns of its terms, the weight last."""
        columns = [*range(*self._spans[index]), int(self.weight_of[index])]
        return self._samples[index][1], np.array(columns)

    def evaluate(self, sums: Floats) -> Floats:
        """Turn sums of shape (..., width) into statistics of shape (..., samples)."""
        result = np.empty((*sums.shape[:-1], len(self._samples)))
        for statistic, members, columns in self._layout:
            result[..., members] = statistic.evaluate(sums[..., columns])
        return result


# Matrix products on one thread.


@cache
def _controller() -> Any:
    try:
        from threadpoolctl import ThreadpoolController
    except ImportError:  # statistics run with numpy and scipy alone, then on all threads
        return None
    return ThreadpoolController()  # looks through all loaded libraries, so once


def one_thread() -> AbstractContextManager[Any]:
    """Return a context in which products of matrices run on the thread that asks for them."""
    controller = _controller()
    if controller is None:
        return nullcontext()
    limited: AbstractContextManager[Any] = controller.limit(limits=1, user_api="blas")
    return limited


# Leaving each resampled unit out in turn.


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
