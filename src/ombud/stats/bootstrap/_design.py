"""Units, their groups and clusters; and many sum-type samples as one matrix."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from hashlib import blake2b
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ombud.stats.bootstrap._counts import BLOCK
from ombud.stats.statistics import Floats, OfSums, known_rows

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
