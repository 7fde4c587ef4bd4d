"""Tables of list integrals: each is taken once on a grid, and read by interpolation afterwards.

The integral of a list depends on its counts and on two numbers: where its normal density stands, m,
and how wide that is, v. Its logarithm is smooth in asinh(m / 3) and in log(v**2 + a constant); down
to v = 0, since the integral solves the heat equation in v**2. So a table for each pair of counts
serves all nodes of all users at all points, and nodes can be placed anew at every point. How far
this is from the integral is measured, never assumed: see `_importance._check`.
"""

from __future__ import annotations

from copy import copy

import numpy as np
from numpy.typing import NDArray

from ombud.questions.authors.model._counts import Counts
from ombud.questions.authors.model._kernel import HELD, Nodes, Work, list_integral
from ombud.stats.statistics import Floats

# Steps of the grid: in m, in units of which it grows beyond the second number, and in log v**2.
_STEP, _BEND, _LEVEL = 0.25, 3.0, 0.25
# Points on which each interpolation stands.
_STENCIL = 6
# Columns that are made at once.
_BLOCK = 8
_SCALES = [
    1.0 / float(np.prod([j - i for i in range(_STENCIL) if i != j])) for j in range(_STENCIL)
]


def _weights(at: Floats) -> list[Floats]:
    """Return the weight of each point of a stencil for places counted from the first."""
    away = [at - i for i in range(_STENCIL)]
    before, after = [np.ones_like(at)], [np.ones_like(at)]
    for i in range(_STENCIL - 1):
        before.append(before[-1] * away[i])
        after.append(after[-1] * away[-1 - i])
    return [before[j] * after[-1 - j] * _SCALES[j] for j in range(_STENCIL)]


class ListTable:
    """Logarithms of the integrals of one system's lists, for all m and v that were needed.

    With `split`, either side of a peak has its own nodes.
    """

    def __init__(self, counts: Counts, system: int, nodes: int, split: bool, work: Work) -> None:
        both = np.stack([counts.list_count[:, system], counts.list_known[:, system]], axis=1)
        pairs, self._row = np.unique(both, axis=0, return_inverse=True)
        self._k, self._r = pairs.T
        self._nodes, self._split, self._work = nodes, split, work
        self._floor = 1 / max(25.0, float(self._r.max(initial=0.0)))
        # Levels x pairs x columns; the numbers of the first level and of the first column.
        self._values, self._origin = np.empty((0, len(pairs), 0)), (0, 0)
        # The table, the v and what was interpolated between levels when it was last read.
        self._across: tuple[Floats, Floats, Floats] = self._values, np.empty(0), np.empty(0)

    def rows(self, users: NDArray[np.int64]) -> ListTable:
        """Return the table for some of the users."""
        part = copy(self)
        part._row = self._row[users]
        return part

    def within(self, work: Work) -> ListTable:
        """Return the table with another budget for what is added to it."""
        part = copy(self)
        part._work = work
        return part

    def _cells(self, levels: Floats, columns: Floats) -> Floats:
        """Integrate on a part of the grid: levels x pairs x columns."""
        m = _BEND * np.sinh(columns * (_STEP / _BEND))
        v = np.sqrt(self._floor * np.expm1(levels * _LEVEL))
        size = len(self._k) * len(columns)
        self._work.spend(len(levels) * size * self._nodes * (1 + self._split))
        found = np.empty((len(levels), len(self._k), len(columns)))
        step = max(1, HELD // max(1, len(columns) * self._nodes))
        for i, residual in enumerate(v):
            for start in range(0, len(self._k), step):
                part = slice(start, start + step)
                k, r = self._k[part, None], self._r[part, None]
                middle = np.broadcast_to(m, (len(k), len(m)))
                one = list_integral(k, r, middle, residual, self._nodes, False, self._split)
                found[i, part] = one.value
        return found

    def _reach(self, levels: tuple[int, int], columns: tuple[int, int]) -> None:
        """Make the table as large as these levels and columns ask for."""
        a, b = self._origin
        old = (a, a + self._values.shape[0]), (b, b + self._values.shape[2])
        if not self._values.size:
            old = (levels[0], levels[0]), (columns[0], columns[0])
        low, high = min(levels[0], old[0][0]), max(levels[1], old[0][1])
        left, right = min(columns[0], old[1][0]), max(columns[1], old[1][1])
        if ((low, high), (left, right)) == old:
            return
        wider = np.empty((high - low, len(self._k), right - left))
        if self._values.size:
            kept = (
                slice(old[0][0] - low, old[0][1] - low),
                slice(old[1][0] - left, old[1][1] - left),
            )
            wider[kept[0], :, kept[1]] = self._values
        # Beside the old part, then above and below it.
        for rows, sides in (
            (old[0], (left, old[1][0])),
            (old[0], (old[1][1], right)),
            ((low, old[0][0]), (left, right)),
            ((old[0][1], high), (left, right)),
        ):
            if rows[0] < rows[1] and sides[0] < sides[1]:
                new = self._cells(np.arange(*rows, dtype=float), np.arange(*sides, dtype=float))
                wider[rows[0] - low : rows[1] - low, :, sides[0] - left : sides[1] - left] = new
        self._values, self._origin = wider, (low, left)

    def _level(self, v: Floats) -> Floats:
        return np.log1p(v**2 / self._floor) / _LEVEL

    def _column(self, m: Floats) -> Floats:
        size = np.abs(m) / _BEND
        away = np.log(size + np.sqrt(1 + size * size))
        return np.copysign(away, m) * (_BEND / _STEP)

    def read(self, middle: Floats, v: Floats) -> Floats:
        """Return the log integrals at points x users x nodes.

        `middle` is points x users x nodes; `v` is that of each point.
        """
        level, column = self._level(v), self._column(middle)
        cell = np.floor(column)
        start = np.maximum(np.floor(level).astype(np.int64) - 2, 0)
        low, high = int(start.min()), int(start.max()) + _STENCIL
        first, last = int(cell.min()) - 2, int(cell.max()) + _STENCIL - 2
        # In blocks, so that a table seldom grows.
        self._reach((low, high), (first // _BLOCK * _BLOCK, -(-last // _BLOCK) * _BLOCK))
        _, pairs, wide = self._values.shape
        # Where nodes are placed by what the table holds, the same points come several times.
        if self._across[0] is not self._values or not np.array_equal(self._across[1], v):
            share = np.zeros((len(v), high - low))
            for j, weight in enumerate(_weights(level - start)):
                share[np.arange(len(v)), start - low + j] = weight
            used = self._values[low - self._origin[0] : high - self._origin[0]]
            self._across = self._values, v, share @ used.reshape(high - low, -1)
        weights = _weights(column - cell + 2)
        index = cell.astype(np.int64) - (2 + self._origin[1])
        index += (np.arange(len(v))[:, None] * pairs + self._row)[..., None] * wide
        flat = self._across[2].ravel()
        found = weights[0] * flat[index]
        for weight in weights[1:]:
            index += 1
            found += weight * flat[index]
        return found


def list_tables(counts: Counts, nodes: Nodes, work: Work) -> list[ListTable]:
    """Return an empty table for each system."""
    size = 20 if nodes.split else nodes.lists // 2 * 2 + 5
    return [ListTable(counts, a, size, nodes.split, work) for a in range(counts.systems)]


def table_work(counts: Counts, nodes: Nodes) -> float:
    """Return how many evaluations of an integrand it is worth to read the tables for one point.

    Reading takes about three times as long as an evaluation. Split rules read eight times more
    to see how far each side reaches.
    """
    return 3.0 * len(counts.count) * (nodes.users + 8 * nodes.split) * counts.systems
