"""Item-kNN: an edit changes what is known of one item, and the scores of the items near it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ombud.data.interactions import Interactions
from ombud.probes.edits import EditSpace, History, Singles
from ombud.probes.influence import Influence, history_of
from ombud.probes.models.base import Block, ModelBox, SingleEdits, TrainedBox, settled_edits
from ombud.probes.outcomes import edited_interactions, score_histories
from ombud.systems.recommenders.item_knn import ItemKNN
from ombud.systems.recommenders.neighbours import inverse_lengths, means

if TYPE_CHECKING:
    from ombud.probes.others import UserSwap

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class ItemBox(ModelBox):
    """The white box of item-kNN: an edit changes the scores of the item's neighbours only."""

    def __init__(self, model: ItemKNN) -> None:
        super().__init__(model)
        self.knn = model
        self._lists = model._lists_for(np.arange(model.interactions.n_items, dtype=np.int32))

    def blocks(self, history: History, singles: Singles, rows: int) -> Iterator[Block]:
        """Yield the scores of all items after each single edit."""
        from ombud.probes import _kernels

        knn, lists, n_items = self.knn, self._lists, self.knn.interactions.n_items
        mean = knn._state.mean
        centre = np.zeros(n_items, np.float32) if mean is None else mean
        base = score_histories(knn, history.row(n_items))[0]
        codes = lists.codes[lists.row_of[history.items]]
        own = np.repeat(history.items, codes.shape[1])
        value = np.repeat(history.values - centre[history.items], codes.shape[1])
        similar = lists.similarities[lists.row_of[history.items]].ravel()
        flat = codes.ravel()
        kept = flat >= 0
        flat, own, value, similar = flat[kept], own[kept], value[kept], similar[kept]
        order = np.lexsort((own, -similar, flat))
        starts = np.searchsorted(flat[order], np.arange(n_items + 1)).astype(np.int64)
        after = np.nan_to_num(singles.after) - centre[singles.items]
        most = len(history) + 1 if knn.neighbours is None else knn.neighbours
        out = np.empty((rows, n_items), np.float32)
        for start in range(0, len(singles), rows):
            part = slice(start, min(start + rows, len(singles)))
            block = out[: part.stop - start]
            _kernels.item_edits(
                singles.items[part], after[part].astype(np.float32), np.isnan(singles.after[part]),
                lists.row_of, lists.codes, lists.similarities, starts, similar[order],
                value[order].astype(np.float32), own[order], mean is not None,
                knn.min_neighbours, most, base, centre, block,
            )  # fmt: skip
            yield part, block


class ItemUpdate:
    """Item-kNN trained on the data with a person's history replaced.

    A single edit changes one column, and all that follows from it is redone in the precision and
    the order of training, so that rounding decides alike who is a stored neighbor. Several edits
    are trained for, with neighbors computed only for the history's items. Made once for all people.
    """

    close = False

    def __init__(self, model: ItemKNN) -> None:
        self.model = model
        self.lazy: Any = replace(model, lazy=True)
        self.columns = _Columns.of(model.interactions)

    def box(self, own: int) -> TrainedBox:
        """Return the scores after edits of one person's history, the model trained again."""
        return TrainedBox(self.lazy, own, self.model.interactions)

    def single_edits(
        self,
        space: EditSpace,
        own: int,
        targets: NDArray[np.int64],
        *,
        k: int,
        beta: float,
        shown: NDArray[np.int32] | None = None,
    ) -> SingleEdits:
        """Evaluate all single edits for some targets."""
        from ombud.probes import _kernels

        data, history, model = self.model.interactions, space.history, self.model
        columns, row = self.columns, own
        if own < 0 or not _same(history, History.of_user(data, own)):
            edited, row = edited_interactions(data, own, history)
            columns = _Columns.of(edited)
        if columns is None or not columns.fits(space):
            return settled_edits(self.box(own), space, targets, k=k, beta=beta, shown=shown)
        singles = space.singles(shown=shown)
        order = np.argsort(singles.items, kind="stable")
        tables = np.empty((2, len(singles) + 1, len(targets)))
        _kernels.item_singles(
            row, singles.items[order].astype(np.int64), np.nan_to_num(singles.after[order]),
            targets, beta, k, min(model.stored, max(space.n_items - 1, 1)),
            2**31 if model.neighbours is None else model.neighbours,
            np.float32(model.min_similarity), model.min_neighbours, columns.explicit,
            *columns.arrays, tables[0], tables[1],
        )  # fmt: skip
        tables[:, 1 + order] = tables[:, 1:].copy()
        if not beta > 0:
            tables[0] = -np.inf
        return SingleEdits.of(singles, *tables)


@dataclass(frozen=True, eq=False)
class _Columns:
    """A matrix by row and by column as training item-kNN sees it."""

    explicit: bool
    arrays: tuple[NDArray[Any], ...]

    @classmethod
    def of(cls, data: Interactions) -> _Columns | None:
        """Return the matrix; None where an edit could change how all values are read."""
        matrix, n_items = data.matrix, data.n_items
        ratings = np.asarray(matrix.data, np.float32)
        if data.explicit:
            mean = means(matrix.indices, ratings, n_items)
            apart = ratings - mean[matrix.indices]
        else:
            if not (ratings == 1).all():
                return None
            mean, apart = np.zeros(n_items, np.float32), ratings
        scale = inverse_lengths(matrix.indices, apart, n_items)
        by_column = sparse.csr_array((ratings, matrix.indices, matrix.indptr), shape=matrix.shape)
        columns = by_column.tocsc()
        columns.sort_indices()
        return cls(
            data.explicit,
            (
                matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64), ratings, apart,
                columns.indptr.astype(np.int64), columns.indices.astype(np.int64), columns.data,
                mean, scale,
            ),
        )  # fmt: skip

    def fits(self, space: EditSpace) -> bool:
        """Return whether the kernel can take the edits."""
        return min(space.values) > 0 if self.explicit else set(space.values) == {1.0}


def _same(first: History, second: History) -> bool:
    return np.array_equal(first.items, second.items) and np.array_equal(first.values, second.values)


class ItemKNNInfluence(Influence):
    """Item-kNN after swaps: the sums behind the cosines of the history's items are updated.

    For every item h of the target's history and every item i the sums over common users of
    :math:`r_h r_i`, :math:`r_h`, :math:`r_i` and 1 give the centred product; a swap changes them
    only where a changed user has both. Means and lengths follow. Costs grow with the length of
    the history times the number of items for each swap: exact, but no faster than milliseconds.
    """

    exact = True

    def __init__(self, model: ItemKNN) -> None:
        self.model, self.data = model, model.interactions
        matrix, n_items = self.data.matrix, self.data.n_items
        codes, values = matrix.indices, matrix.data.astype(np.float64)
        if not self.data.explicit and values.min() == values.max():
            values = np.ones_like(values)
        self.values = sparse.csr_array((values, codes, matrix.indptr), shape=matrix.shape)
        self.counts = np.bincount(codes, minlength=n_items).astype(np.float64)
        self.sums: Floats = np.bincount(codes, weights=values, minlength=n_items).astype(float)
        squares = np.bincount(codes, weights=values**2, minlength=n_items)
        self.squares: Floats = squares.astype(float)

    def tables(self, items: Ints) -> _Tables:
        """Return sums over common users of some items with all items."""
        ones = sparse.csr_array(
            (np.ones(self.values.nnz), self.values.indices, self.values.indptr),
            shape=self.values.shape,
        )
        here, present = self.values[:, items].T, ones[:, items].T
        return _Tables(
            (here @ self.values).toarray(),
            (here @ ones).toarray(),
            (present @ self.values).toarray(),
            (present @ ones).toarray(),
            self.counts,
            self.sums,
            self.squares,
        )

    def scored(self, items: Ints, values: Floats, tables: _Tables) -> Floats:
        """Return the scores of all items for a history, from its tables."""
        model, explicit = self.model, self.data.explicit
        heads = np.maximum(tables.counts, 1)
        means = tables.sums / heads if explicit else np.zeros_like(tables.sums)
        product, squares = tables.product, tables.squares - tables.counts * means**2
        if explicit:
            own = means[items][:, None]
            product = product - means * tables.left - own * tables.right + own * means * tables.both
        # Sums of squares that cancel leave rounding dust of the size of the sums.
        real = squares > np.maximum(1e-10 * heads, 1e-13 * tables.squares)
        scale = np.where(real, 1 / np.sqrt(np.where(real, squares, 1.0)), 0.0)
        similar = product * scale[items][:, None] * scale
        similar[np.arange(len(items)), items] = 0.0
        similar[similar < model.min_similarity] = 0.0
        # Neighbours of each item of the history; then, for each item, the nearest of those.
        similar = _largest(similar, model.stored)
        if model.neighbours is not None and len(items) > model.neighbours:
            similar = _largest(similar.T, model.neighbours).T
        count = np.count_nonzero(similar, axis=0)
        deviations = values - means[items]
        with np.errstate(all="ignore"):
            score = deviations @ similar
            if explicit:
                score = score / similar.sum(axis=0) + means
        return np.where(count >= model.min_neighbours, score, np.nan)

    def today(self, target: int) -> Floats:
        """Return the target's scores as they are."""
        items, values = history_of(self.data, target)
        return self.scored(items, values, self.tables(items))

    def prepare(self, swaps: Sequence[UserSwap]) -> _PreparedItems:
        """Return the swaps; everything else depends on the target."""
        return _PreparedItems(self, swaps)


def _largest(values: Floats, count: int) -> Floats:
    """Return rows with all but their largest positive values set to 0; on ties the first stay."""
    if values.shape[1] <= count:
        return values
    edge = -np.partition(-values, count - 1, axis=1)[:, count - 1 : count]
    above = values > edge
    tied = (values == edge) & (edge > 0)
    room = count - np.count_nonzero(above, axis=1, keepdims=True)
    kept = above | (tied & (np.cumsum(tied, axis=1) <= room))
    return np.where(kept, values, 0.0)


@dataclass(frozen=True, eq=False)
class _Tables:
    product: Floats
    left: Floats
    right: Floats
    both: Floats
    counts: Floats
    sums: Floats
    squares: Floats

    def copy(self) -> _Tables:
        return _Tables(*(a.copy() for a in self.parts()))

    def parts(self) -> tuple[Floats, ...]:
        return (
            self.product, self.left, self.right, self.both, self.counts, self.sums, self.squares,
        )  # fmt: skip

    def add(self, items: Ints, codes: Ints, values: Floats, sign: float) -> None:
        """Count one user's history in, or out."""
        self.counts[codes] += sign
        self.sums[codes] += sign * values
        self.squares[codes] += sign * values**2
        _, rows, place = np.intersect1d(items, codes, assume_unique=True, return_indices=True)
        block, own = np.ix_(rows, codes), values[place][:, None]
        self.product[block] += sign * own * values
        self.left[block] += sign * own
        self.right[block] += sign * values
        self.both[block] += sign


@dataclass(frozen=True, eq=False)
class _PreparedItems:
    influence: ItemKNNInfluence
    swaps: Sequence[UserSwap]

    def scores(self, target: int) -> Floats:
        influence, data = self.influence, self.influence.data
        items, values = history_of(data, target)
        tables = influence.tables(items)
        out = np.empty((len(self.swaps), data.n_items))
        for number, swap in enumerate(self.swaps):
            after = tables.copy()
            for row in swap.rows:
                if row < data.n_users:
                    after.add(items, *self._row(influence.values, row), sign=-1.0)
            for row in range(swap.cost):
                after.add(items, *self._row(swap.histories, row), sign=1.0)
            out[number] = influence.scored(items, values, after)
        return out

    @staticmethod
    def _row(matrix: sparse.csr_array, row: int) -> tuple[Ints, Floats]:
        part = slice(matrix.indptr[row], matrix.indptr[row + 1])
        return matrix.indices[part].astype(np.int64), matrix.data[part].astype(np.float64)
