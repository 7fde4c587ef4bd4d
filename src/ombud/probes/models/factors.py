"""SVD, explicit and implicit ALS: a user's vector by ridge regression on fixed item factors.

The vector is ``p = A^-1 (sum t_i x_i - b sum x_i)``, ``A = G + sum w_i x_i x_i' + r(n) I``; b is
the damped user bias of explicit ALS (0 elsewhere) and n the number of ratings. A single edit
changes A by one outer product, and by a penalty that depends only on the kind of edit; so one
inverse for each kind, and the Sherman-Morrison formula, give the vectors of all single edits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ombud.errors import PlanError
from ombud.probes.edits import EditSpace, History, Singles
from ombud.probes.models.base import Block, top_sum
from ombud.systems.recommenders.als import ExplicitALS, ImplicitALS
from ombud.systems.recommenders.factors import FactorModel
from ombud.systems.recommenders.svd import SVD

Array = NDArray[np.float64]


@dataclass(frozen=True)
class _Normal:
    """The normal equations of one history, without the ridge."""

    a: Array
    c: Array
    s: Array
    n: int
    total: float


class FactorBox:
    """The white box of a factor model that folds in.

    Parameters
    ----------
    model
        A trained `SVD`, `ExplicitALS` or `ImplicitALS`.
    """

    def __init__(self, model: FactorModel) -> None:
        self.model = model
        items = np.asarray(model.item_factors, np.float64)
        self.offset = np.asarray(model._offset, np.float64)
        self.known = np.isfinite(self.offset)
        self.damping: float | None = None
        self.alpha: float | None = None
        self.ridge = self.ridge_per_entry = 0.0
        if isinstance(model, SVD):
            items = np.column_stack([items, np.ones(len(items))])
            self.ridge_per_entry = model.regularization
        elif isinstance(model, ExplicitALS):
            self.ridge_per_entry, self.damping = model.regularization, model.damping
        elif isinstance(model, ImplicitALS):
            self.ridge, self.alpha = model.regularization, model.alpha
        else:
            raise PlanError(f"{model.name} does not fold in; there is no white box for it")
        items[~self.known] = 0
        self.x = items
        self.affine = self.alpha is None
        self.gram = items.T @ items if self.alpha is not None else np.zeros(2 * items.shape[1:])
        self._x32_t = np.ascontiguousarray(items.T, np.float32)
        self._offset32 = self.offset.astype(np.float32)

    # The parts of one entry: its weight in A, and its target.

    def _weight(self, values: Array) -> Array:
        return np.ones_like(values) if self.alpha is None else self.alpha * values

    def _target(self, items: NDArray[np.int32], values: Array) -> Array:
        if self.alpha is None:
            return values - np.where(self.known[items], self.offset[items], 0.0)
        return 1.0 + self.alpha * values

    def _penalty(self, n: int) -> float:
        return self.ridge + self.ridge_per_entry * n

    def _bias(self, total: Array | float, n: Array | float) -> Array | float:
        return 0.0 if self.damping is None else total / np.maximum(n + self.damping, 1e-300)

    def _normal(self, history: History) -> _Normal:
        kept = self.known[history.items]
        items, values = history.items[kept], history.values[kept].astype(np.float64)
        near, target = self.x[items], self._target(items, values)
        a = self.gram + (near * self._weight(values)[:, None]).T @ near
        return _Normal(a, target @ near, near.sum(axis=0), len(items), float(target.sum()))

    def _inverse(self, normal: _Normal, n: int) -> Array:
        inverse: NDArray[Any] = np.linalg.inv(normal.a + self._penalty(n) * np.eye(len(normal.a)))
        return inverse

    def vector(self, history: History) -> Array:
        """Return the user's vector for a history; zeros without a known item."""
        normal = self._normal(history)
        if normal.n == 0:
            return np.zeros(self.x.shape[1])
        bias = self._bias(normal.total, normal.n)
        solved: Array = self._inverse(normal, normal.n) @ (normal.c - bias * normal.s)
        return solved

    def _nothing(self, vectors: Array) -> NDArray[np.bool_]:
        """Which vectors stand for nobody: without biases there is nothing to rank by."""
        if self.alpha is None:
            return np.zeros(len(vectors), bool)
        return np.asarray(~vectors.any(axis=1), bool)

    def scores(self, histories: Sequence[History]) -> Array:
        """Return the scores of all items for each history; NaN where there is none.

        They lack the part that is equal for all items of a person (the user bias of explicit ALS),
        which changes no order and no probability.
        """
        vectors = np.array([self.vector(h) for h in histories]).reshape(-1, self.x.shape[1])
        out: Array = vectors @ self.x.T + self.offset
        out[self._nothing(vectors)] = np.nan
        return out

    def vectors(self, history: History, singles: Singles) -> Array:
        """Return the user's vector after each single edit."""
        normal, items = self._normal(history), singles.items
        added, removed = np.isnan(singles.before), np.isnan(singles.after)
        before = np.nan_to_num(singles.before.astype(np.float64))
        after = np.nan_to_num(singles.after.astype(np.float64))
        step = np.where(added, 1, np.where(removed, -1, 0))
        weight = np.where(removed, 0.0, self._weight(after))
        weight -= np.where(added, 0.0, self._weight(before))
        shift = np.where(removed, 0.0, self._target(items, after))
        shift -= np.where(added, 0.0, self._target(items, before))
        bias = np.broadcast_to(
            np.asarray(self._bias(normal.total + shift, normal.n + step.astype(float))), step.shape
        )
        out = np.empty((len(singles), self.x.shape[1]))
        for kind in (-1, 0, 1):
            chosen = np.flatnonzero(step == kind)
            n = normal.n + kind
            if len(chosen) == 0:
                continue
            if n <= 0:
                out[chosen] = 0
                continue
            inverse = self._inverse(normal, n)
            u, z = inverse @ normal.c, inverse @ normal.s
            x = self.x[items[chosen]]
            v = x @ inverse
            h, w, b = np.einsum("ef,ef->e", x, v), weight[chosen], bias[chosen]
            g = shift[chosen] - b * kind
            along = x @ u - b * (x @ z) + g * h
            factor = g - w * along / (1 + w * h)
            out[chosen] = u - b[:, None] * z + v * factor[:, None]
        unknown = ~self.known[items]
        if unknown.any():
            out[unknown] = self.vector(history)
        return out

    def blocks(self, history: History, singles: Singles, rows: int) -> Iterator[Block]:
        """Yield the scores of all items after each single edit."""
        vectors = self.vectors(history, singles)
        nothing = self._nothing(vectors)
        narrow = vectors.astype(np.float32)
        out = np.empty((rows, len(self.offset)), np.float32)
        for start in range(0, len(singles), rows):
            part = slice(start, min(start + rows, len(singles)))
            block = out[: part.stop - start]
            np.matmul(narrow[part], self._x32_t, out=block)
            block += self._offset32
            if nothing[part].any():
                block[nothing[part]] = np.nan
            yield part, block

    def gains(self, history: History, singles: Singles, direction: Array) -> Array | None:
        """Return what each single edit adds to a weighted sum of scores."""
        line = self.x.T @ np.where(self.known, direction, 0.0)
        found: Array = self.vectors(history, singles) @ line - self.vector(history) @ line
        return found

    def gap_bounds(self, space: EditSpace, target: int, rivals: NDArray[np.int64]) -> Array | None:
        """Return what ``score(target) - score(rival)`` cannot exceed within the budget.

        Let u be the columns of the edited items in the metric of A and y solve
        ``(I + S U'A^-1 U) y = e``, e being the residual that each edit brings. Then the gap moves
        by ``sum a_i y_i``, ``a_i = x_i' A^-1 (x_t - x_j)``, and
        ``y_i = (e_i - s_i u_i . z) / (1 + s_i h_i)`` where z is what the other edits do; its length
        is bounded by R, the solution of ``R = top(alpha) + R top(beta)`` over the B - 1 largest.
        So the B largest of ``(a_i e_i + |a_i s_i| sqrt(h_i) R) / (1 + s_i h_i)`` bound the gap; for
        one edit the bound is exact.
        """
        normal = self._normal(space.history)
        direction = self.x[target] - self.x[rivals]
        offset = self.offset[target] - self.offset[rivals]
        if not self.known[target]:
            return None
        every = _Options.of(self, space)
        low, high = min(0, -space.budget), space.budget
        if "add" not in space.kinds:
            high = 0
        if "remove" not in space.kinds:
            low = 0
        counted = self.ridge_per_entry > 0 or self.damping is not None
        if not counted:
            low = high = 0
        best = np.full(len(rivals), -np.inf)
        for net in range(low, high + 1):
            n = normal.n + net
            if n <= 0 and self.ridge_per_entry > 0:
                best = np.maximum(best, offset)  # everything taken back: the vector is zero
                continue
            inverse = self._inverse(normal, n)
            options = every.of_net(net, space.budget) if counted else every
            for bias in options.biases(self, normal, n, space.budget):
                found = options.bound(self, normal, inverse, bias, direction, space.budget)
                if found is None:
                    return None
                best = np.maximum(best, offset + found)
        return best


@dataclass(frozen=True)
class _Options:
    """The least and greatest of what an edit of each item can bring: target shift and weight."""

    items: NDArray[np.int32]
    shift: Array
    weight: Array
    step: Array

    @classmethod
    def of(cls, box: FactorBox, space: EditSpace) -> _Options:
        singles = space.singles(shown=np.arange(space.n_items, dtype=np.int32))
        singles = singles.take(box.known[singles.items])
        added, removed = np.isnan(singles.before), np.isnan(singles.after)
        before = np.nan_to_num(singles.before.astype(np.float64))
        after = np.nan_to_num(singles.after.astype(np.float64))
        shift = np.where(removed, 0.0, box._target(singles.items, after))
        shift -= np.where(added, 0.0, box._target(singles.items, before))
        weight = np.where(removed, 0.0, box._weight(after))
        weight -= np.where(added, 0.0, box._weight(before))
        step = np.where(added, 1.0, np.where(removed, -1.0, 0.0))
        return cls(singles.items, shift, weight, step)

    def of_net(self, net: int, budget: int) -> _Options:
        """Return the options that can be among ``budget`` edits that add ``net`` entries."""
        adds, removals = (budget + net) // 2, (budget - net) // 2
        kept = (self.step == 0) & (abs(net) < budget)
        kept = kept | ((self.step > 0) & (adds > 0)) | ((self.step < 0) & (removals > 0))
        return _Options(self.items[kept], self.shift[kept], self.weight[kept], self.step[kept])

    def biases(self, box: FactorBox, normal: _Normal, n: int, budget: int) -> tuple[float, ...]:
        """Return the least and the greatest user bias that edits can bring about."""
        if box.damping is None:
            return (0.0,)
        span = []
        for sign in (-1.0, 1.0):
            most = _largest(self.items, sign * self.shift, len(box.known))
            span.append(normal.total + sign * float(top_sum(most[:, None], budget)[0]))
        return tuple(float(box._bias(total, n)) for total in span)

    def bound(
        self,
        box: FactorBox,
        normal: _Normal,
        inverse: Array,
        bias: float,
        direction: Array,
        budget: int,
    ) -> Array | None:
        """Return the bound of the change of the gap from today's data with another penalty."""
        p = inverse @ (normal.c - bias * normal.s)
        x = box.x[self.items]
        v = x @ inverse
        h = np.maximum(np.einsum("ef,ef->e", x, v), 0.0)
        e = self.shift - bias * self.step - self.weight * (x @ p)
        denominator = 1 + self.weight * h
        if (denominator <= 1e-9).any():
            return None
        size, spread = len(box.known), np.sqrt(h)
        alpha = _largest(self.items, spread * np.abs(e) / denominator, size)
        beta = _largest(self.items, np.abs(self.weight) * h / denominator, size)
        most = budget - 1
        contraction = float(top_sum(beta[:, None], most)[0])
        if contraction >= 1:
            return None
        others = float(top_sum(alpha[:, None], most)[0]) / (1 - contraction)
        a = v @ direction.T
        change = a * (e / denominator)[:, None]
        change += np.abs(a) * (np.abs(self.weight) * spread * others / denominator)[:, None]
        # The best option of each item; the order of singles keeps items in runs by option.
        per_item = np.zeros((size, direction.shape[0]))
        for option in _runs(self.items):
            rows = self.items[option]
            per_item[rows] = np.maximum(per_item[rows], change[option])
        found: Array = direction @ p + top_sum(per_item, budget)
        return found


def _largest(items: NDArray[np.int32], values: Array, size: int) -> Array:
    out = np.zeros(size)
    np.maximum.at(out, items, values)
    return out


def _runs(items: NDArray[np.int32]) -> list[slice]:
    """Return slices in which items rise, so that none occurs twice in one."""
    cuts = np.flatnonzero(np.diff(items) <= 0) + 1
    ends = [0, *cuts.tolist(), len(items)]
    return [slice(a, b) for a, b in zip(ends[:-1], ends[1:], strict=True)]
