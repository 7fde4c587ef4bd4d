"""SVD, explicit and implicit ALS: a user's vector by ridge regression on fixed item factors.

The vector is ``p = A^-1 (sum t_i x_i - b sum x_i)``, ``A = G + sum w_i x_i x_i' + r(n) I``; b is
the damped user bias of explicit ALS (0 elsewhere) and n the number of ratings. A single edit
changes A by one outer product, and by a penalty that depends only on the kind of edit; so one
inverse for each kind, and the Sherman-Morrison formula, give the vectors of all single edits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ombud.errors import PlanError
from ombud.probes.edits import EditSpace, History, Singles
from ombud.probes.influence import (
    Influence,
    history_of,
    row_numbers,
    rows_before,
    stacked_after,
    swap_of_row,
)
from ombud.probes.models.base import Block, top_sum
from ombud.systems.recommenders.als import ExplicitALS, ImplicitALS
from ombud.systems.recommenders.factors import FactorModel
from ombud.systems.recommenders.svd import SVD

if TYPE_CHECKING:
    from ombud.probes.others import UserSwap


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
    """The white box of a factor model that folds in."""

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


# Scores after swaps for the factor models: one step of the items, then one of the target.


Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class _Entries:
    """What changes, entry by entry: a user's value on an item that leaves (-1) or comes (+1)."""

    swap: Ints
    item: Ints
    sign: Floats
    value: Floats
    user: Ints
    """Row in `design`, the factors of the users of the swaps before and after."""
    design: Floats

    @property
    def pairs(self) -> tuple[Ints, Ints, Ints]:
        """Each pair of swap and item once: the swaps, the items, and the pair of each entry."""
        width = int(self.item.max(initial=0)) + 1
        keys, pair = np.unique(self.swap * width + self.item, return_inverse=True)
        return keys // width, keys % width, pair.reshape(-1)


def _entries(
    before: sparse.csr_array, after: sparse.csr_array, which: Ints, design: Floats
) -> _Entries:
    rows = [row_numbers(before), row_numbers(after)]
    return _Entries(
        swap=np.concatenate([which[rows[0]], which[rows[1]]]),
        item=np.concatenate([before.indices, after.indices]).astype(np.int64),
        sign=np.repeat([-1.0, 1.0], [before.nnz, after.nnz]),
        value=np.concatenate([before.data, after.data]).astype(np.float64),
        user=np.concatenate([rows[0], len(which) + rows[1]]),
        design=design,
    )


def _factors_of(
    model: Any, swaps: Sequence[UserSwap], after: sparse.csr_array
) -> tuple[Floats, Floats]:
    """Return factors and biases of the users of the swaps: as trained, then folded in."""
    rows = np.array([row for swap in swaps for row in swap.rows], dtype=np.int64)
    old = np.where(rows < model.interactions.n_users, rows, 0)
    factors = model.user_factors[old].astype(np.float64)
    factors[rows >= model.interactions.n_users] = 0
    if after.nnz:
        come, bias = model.fold_in_with_bias(sparse.csr_array(after.astype(np.float32)))
    else:
        come, bias = np.zeros((len(rows), factors.shape[1])), None
    trained = np.zeros(len(rows)) if model.user_bias is None else model.user_bias[old]
    biases = np.concatenate([trained, np.zeros(len(rows)) if bias is None else bias])
    return np.concatenate([factors, come]), biases.astype(np.float64)


def _outer_sums(design: Floats, matrix: sparse.csc_array, weights: Floats) -> Floats:
    """Return for each column the weighted sum of outer products of its rows' design."""
    out = np.empty((matrix.shape[1], design.shape[1], design.shape[1]))
    for item in range(matrix.shape[1]):  # one product each, once per model
        part = slice(matrix.indptr[item], matrix.indptr[item + 1])
        rows = design[matrix.indices[part]]
        out[item] = (rows * weights[part, None]).T @ rows
    return out


def _solved(inverse: Floats, items: Ints, right: Floats) -> Floats:
    """Return ``inverse[item] @ right`` for each pair, in portions."""
    out = np.empty_like(right)
    for start in range(0, len(items), 4096):
        part = slice(start, start + 4096)
        out[part] = np.einsum("nab,nb->na", inverse[items[part]], right[part], optimize=True)
    return out


class ExplicitInfluence(Influence):
    """Explicit ALS, and SVD as the ridge regressions that its gradient steps stand for.

    For ALS the damped biases of items and the mean move too, by their own formulas. For SVD the
    biases are factors whose counterpart is 1, and stopping after E epochs of rate r counts as a
    further ridge of 1 / (E r).
    """

    def __init__(self, model: ExplicitALS | SVD) -> None:
        self.model, self.data = model, model.interactions
        matrix = self.data.matrix
        columns = matrix.tocsc()
        users, items = (f.astype(np.float64) for f in (model.user_factors, model.item_factors))
        assert model.user_bias is not None and model.item_bias is not None
        user_bias, item_bias = model.user_bias.astype(float), model.item_bias.astype(float)
        self.biased = isinstance(model, SVD)
        self.offset = item_bias + model.mean
        self.ridge = float(model.regularization)
        self.early = 0.0
        self.damping = model.damping if isinstance(model, ExplicitALS) else 0.0
        self.user_bias = user_bias
        if isinstance(model, SVD):
            self.early = 1 / (model.epochs * model.learning_rate)
            one = np.ones((max(len(users), len(items)), 1))
            self.design = np.hstack([users, one[: len(users)]])
            self.items = np.hstack([items, item_bias[:, None]])
            self.across = np.hstack([items, one[: len(items)]])
        else:
            self.design, self.items, self.across = users, items, items
        self.counts = np.diff(columns.indptr).astype(np.float64)
        self.gram = _outer_sums(self.design, columns, np.ones(columns.nnz))
        self.sums = np.zeros_like(self.items)
        np.add.at(self.sums, matrix.indices, self.design[row_numbers(matrix)])
        self._inverses: dict[int, Floats] = {}

    def inverse(self, more: int) -> Floats:
        """Return the items' inverse matrices with the penalty of so many more ratings."""
        if more not in self._inverses:
            size = self.gram.shape[1]
            shrink = self.ridge * np.maximum(self.counts + more, 0) + self.early
            # An item that loses its last rating has factors of zero; any ridge will do.
            shrink = np.where(shrink > 0, shrink, 1.0)
            inverses = np.linalg.inv(self.gram + shrink[:, None, None] * np.eye(size))
            self._inverses[more] = np.asarray(inverses, dtype=np.float64)
        return self._inverses[more]

    def today(self, target: int) -> Floats:
        """Return the target's scores as they are."""
        design = self.design[target]
        scores = self.items @ design + self.user_bias[target]
        scores += self.data_mean if self.biased else self.offset
        scores[self.counts == 0] = np.nan
        return np.asarray(scores)

    @property
    def data_mean(self) -> float:
        """The mean rating of the training data."""
        return float(self.model.mean)

    def prepare(self, swaps: Sequence[UserSwap]) -> _PreparedExplicit:
        """Return how the items' factors and biases change with each swap."""
        before, after = rows_before(self.data, swaps), stacked_after(swaps, self.data.n_items)
        factors, biases = _factors_of(self.model, swaps, after)
        if self.biased:
            factors = np.hstack([factors, np.ones((len(factors), 1))])
        entries = _entries(before, after, swap_of_row(swaps), factors)
        swap, item, pair = entries.pairs
        shift = np.zeros(len(swap))
        drift = np.zeros((len(swaps), 1))
        if not self.biased:
            shift, drift = self._bias_changes(entries, swap, item, pair, len(swaps))
        x, q = entries.design[entries.user], self.items[entries.item]
        # For SVD the item's bias is one of its factors; for ALS it is part of the offset.
        offset = self.data_mean if self.biased else self.offset[entries.item]
        error = entries.value - offset - biases[entries.user] - np.einsum("nk,nk->n", x, q)
        right = np.zeros((len(swap), self.items.shape[1]))
        np.add.at(right, pair, entries.sign[:, None] * (x * error[:, None] - self.ridge * q))
        change = np.bincount(pair, weights=entries.sign, minlength=len(swap)).astype(np.float64)
        sums = self.sums[item]
        np.add.at(sums, pair, entries.sign[:, None] * x)
        right -= shift[:, None] * sums
        moved = self._solve(entries, pair, item, change, right)
        gone = self.counts[item] + change <= 0
        moved[gone] = 0
        return _PreparedExplicit(self, len(swaps), swap, item, moved, shift, drift, gone)

    def _solve(
        self, entries: _Entries, pair: Ints, item: Ints, change: Floats, right: Floats
    ) -> Floats:
        """Solve ``(A + dA) x = right`` for each pair; rank one by Sherman and Morrison."""
        out = np.empty_like(right)
        single = np.bincount(pair, minlength=len(item)) == 1
        entry = np.empty(len(item), np.int64)
        entry[pair] = np.arange(len(pair))
        for more in (-1, 1):
            chosen = np.flatnonzero(single & (change == more))
            if len(chosen) == 0:
                continue
            x = entries.design[entries.user[entry[chosen]]]
            inverse, items = self.inverse(more), item[chosen]
            image, base = _solved(inverse, items, x), _solved(inverse, items, right[chosen])
            # The rank-one change has the sign of `more`; its denominator is never negative.
            bottom = np.maximum(1 + more * np.einsum("nk,nk->n", x, image), 1e-6)
            along = np.einsum("nk,nk->n", x, base) / bottom
            out[chosen] = base - more * image * along[:, None]
        for number in np.flatnonzero(~(single & (np.abs(change) == 1))).tolist():
            mine = np.flatnonzero(pair == number)
            x = entries.design[entries.user[mine]]
            matrix = self.gram[item[number]] + (x * entries.sign[mine, None]).T @ x
            heads = max(self.counts[item[number]] + change[number], 0.0)
            shrink = max(self.ridge * heads + self.early, 1e-6)
            out[number] = np.linalg.solve(matrix + shrink * np.eye(len(matrix)), right[number])
        return out

    def _bias_changes(
        self, entries: _Entries, swap: Ints, item: Ints, pair: Ints, swaps: int
    ) -> tuple[Floats, Floats]:
        """Return the change of each touched item's offset, and of every item's by the mean."""
        matrix, mean = self.data.matrix, self.data_mean
        total = matrix.data.sum(dtype=np.float64)
        weights = np.bincount(entries.swap, weights=entries.sign, minlength=swaps)
        added = np.bincount(entries.swap, weights=entries.sign * entries.value, minlength=swaps)
        means = (total + added) / (matrix.nnz + weights)
        heads = np.maximum(self.counts + self.damping, 1e-12)
        # offset = mean + (sum - n mean) / (n + damping)
        drift = (means - mean)[:, None] * (1 - self.counts / heads)
        n = np.bincount(pair, weights=entries.sign, minlength=len(swap))
        r = np.bincount(pair, weights=entries.sign * entries.value, minlength=len(swap))
        sums = (self.offset[item] - mean) * heads[item] + self.counts[item] * mean
        left = np.maximum(self.counts[item] + n + self.damping, 1e-12)
        fresh = means[swap] + (sums + r - (self.counts[item] + n) * means[swap]) / left
        return fresh - self.offset[item], drift


@dataclass(frozen=True, eq=False)
class _PreparedExplicit:
    influence: ExplicitInfluence
    swaps: int
    swap: Ints
    item: Ints
    moved: Floats
    shift: Floats
    drift: Floats
    gone: NDArray[np.bool_]

    def scores(self, target: int) -> Floats:
        influence = self.influence
        items, values = history_of(influence.data, target)
        design = influence.design[target]
        across = influence.across[items]
        today = influence.today(target)
        error = values - today[items]
        size = across.shape[1]
        ridge = influence.ridge * len(items) + influence.early
        inverse = np.linalg.inv(across.T @ across + ridge * np.eye(size))
        place = np.full(influence.data.n_items, -1)
        place[items] = np.arange(len(items))
        direct = self.moved @ design
        shared = np.flatnonzero(place[self.item] >= 0)
        mine = place[self.item[shared]]
        along = self.moved[shared].copy()
        if influence.biased:
            along[:, -1] = 0.0  # the counterpart of the target's bias stays 1
        pull = error[mine][:, None] * along - across[mine] * direct[shared][:, None]
        gather = sparse.csr_array(
            (np.ones(len(shared)), (self.swap[shared], np.arange(len(shared)))),
            shape=(self.swaps, len(shared)),
        )
        pulled = gather @ pull
        out = np.tile(today, (self.swaps, 1))
        if not influence.biased:
            # Offsets of all items move with the mean, those of touched items by themselves too;
            # the target's damped bias gives way to them.
            out += self.drift
            offsets = self.drift[:, items]
            offsets[self.swap[shared], mine] = self.shift[shared]
            bias = -offsets.sum(axis=1, keepdims=True) / (len(items) + influence.damping)
            pulled -= (offsets + bias) @ across
            out += bias
            out[self.swap, self.item] += self.shift - self.drift[self.swap, self.item]
        out += (pulled @ inverse) @ influence.across.T
        out[self.swap, self.item] += direct
        out[self.swap[self.gone], self.item[self.gone]] = np.nan
        return out


class ImplicitInfluence(Influence):
    """Implicit ALS: every user weighs on every item, so all items move a little.

    Items that a changed user has are solved exactly; the others, on which the user has weight 1,
    to first order in that weight.
    """

    def __init__(self, model: ImplicitALS) -> None:
        self.model, self.data = model, model.interactions
        columns = self.data.matrix.tocsc()
        self.users = model.user_factors.astype(np.float64)
        self.items = model.item_factors.astype(np.float64)
        size = self.items.shape[1]
        gram = self.users.T @ self.users + model.regularization * np.eye(size)
        own = _outer_sums(self.users, columns, model.alpha * columns.data.astype(np.float64))
        self.inverse = np.asarray(np.linalg.inv(own + gram), dtype=np.float64)
        self.around = self.items.T @ self.items + model.regularization * np.eye(size)
        self.counts = np.diff(columns.indptr)

    def today(self, target: int) -> Floats:
        """Return the target's scores as they are."""
        scores = self.items @ self.users[target]
        scores[self.counts == 0] = np.nan
        return np.where(self.users[target].any(), scores, np.nan)

    def prepare(self, swaps: Sequence[UserSwap]) -> _PreparedImplicit:
        """Return how the factors of the items that changed users have move."""
        before, after = rows_before(self.data, swaps), stacked_after(swaps, self.data.n_items)
        factors, _ = _factors_of(self.model, swaps, after)
        which = swap_of_row(swaps)
        entries = _entries(before, after, which, factors)
        swap, item, pair = entries.pairs
        x, q = entries.design[entries.user], self.items[entries.item]
        image = _solved(self.inverse, entries.item, x)
        fit, height = np.einsum("nk,nk->n", x, q), np.einsum("nk,nk->n", x, image)
        weight = entries.sign * (1 + self.model.alpha * entries.value)
        # One changed user: exact. Several on one item: the sum of what each does.
        exact = image * (weight * (1 - fit) / np.maximum(1 + weight * height, 1e-6))[:, None]
        dense = -entries.sign[:, None] * image * fit[:, None]
        moved = np.zeros((len(item), q.shape[1]))
        np.add.at(moved, pair, exact - dense)
        n = np.bincount(pair, weights=entries.sign, minlength=len(item))
        gone = self.counts[item] + n <= 0
        signs = np.repeat([-1.0, 1.0], len(which))
        present = factors.any(axis=1)
        return _PreparedImplicit(
            self, len(swaps), swap, item, moved, gone,
            factors[present], signs[present], np.tile(which, 2)[present],
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _PreparedImplicit:
    influence: ImplicitInfluence
    swaps: int
    swap: Ints
    item: Ints
    moved: Floats
    gone: NDArray[np.bool_]
    factors: Floats
    signs: Floats
    which: Ints

    def scores(self, target: int) -> Floats:
        influence = self.influence
        items, values = history_of(influence.data, target)
        own, q = influence.users[target], influence.items
        # The confidence and the aim of every item, as `ImplicitALS` is trained on them.
        weights = np.ones(len(q))
        weights[items] += influence.model.alpha * values
        wanted = np.zeros(len(q))
        wanted[items] = 1.0
        fit = q @ own
        weighted = weights * (wanted - fit)
        # All items answer to a user's weight of 1; then those the user has are put right.
        turned = np.einsum("iab,b->ia", influence.inverse, own)
        gather = sparse.csr_array(
            (-self.signs, (self.which, np.arange(len(self.which)))),
            shape=(self.swaps, len(self.which)),
        )
        fits = self.factors @ q.T
        direct = gather @ ((self.factors @ turned.T) * fits)
        touched = self.moved @ own
        direct[self.swap, self.item] += touched
        # First-order answer of the target: sum_i c_i (e_i dq_i - q_i (dq_i . p)).
        size = q.shape[1]
        tensor = (influence.inverse.reshape(len(q), -1).T * weighted) @ q
        halves = self.factors @ tensor.reshape(size, size * size)
        pulled = np.einsum("rbc,rc->rb", halves.reshape(-1, size, size), self.factors)
        pull = gather @ pulled - (direct * weights) @ q
        own_part = sparse.csr_array(
            (weighted[self.item], (self.swap, np.arange(len(self.item)))),
            shape=(self.swaps, len(self.item)),
        )
        pull += own_part @ self.moved
        mine = q[items]
        matrix = influence.around + (mine * (influence.model.alpha * values)[:, None]).T @ mine
        step = np.linalg.solve(matrix, pull.T).T
        out = influence.today(target) + direct + step @ q.T
        # An item that nobody has any more would not be scored after training.
        out[self.swap[self.gone], self.item[self.gone]] = np.nan
        return np.asarray(out)
