"""Item-kNN: an edit changes what is known of one item, and the scores of the items near it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ombud.data.interactions import Interactions
from ombud.probes.edits import EditSpace, History, Singles
from ombud.probes.influence import Influence
from ombud.probes.models.base import Block, ModelBox, SingleEdits, TrainedBox, settled_edits
from ombud.probes.others import UserSwap, swapped
from ombud.probes.outcomes import edited_interactions, score_histories
from ombud.systems.recommenders.item_knn import ItemKNN
from ombud.systems.recommenders.neighbours import inverse_lengths, means

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
            *(*columns.arrays, *tables),
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
    """Item-kNN after swaps: trained again, but only for the items of a target's history.

    A swap changes the means and lengths of all items that changed users have, and with them who is
    a stored neighbor; so the lists of the history's items are made anew, in the precision and order
    of training. Some milliseconds for each swap and target.
    """

    exact = True

    def __init__(self, model: ItemKNN) -> None:
        self.model, self.data = model, model.interactions

    def today(self, target: int) -> Floats:
        """Return the target's scores as they are."""
        return self.after(self.data, target)

    def after(self, data: Interactions, target: int) -> Floats:
        """Return the target's scores with other data."""
        lazy: Any = replace(self.model, lazy=True)
        found: Floats = lazy.fit(data).score(data.users.ids[[target]], data.items.arrow)[0]
        return found.astype(np.float64)

    def prepare(self, swaps: Sequence[UserSwap]) -> _PreparedItems:
        """Return the swaps; everything else depends on the target."""
        return _PreparedItems(self, swaps)


@dataclass(frozen=True, eq=False)
class _PreparedItems:
    influence: ItemKNNInfluence
    swaps: Sequence[UserSwap]

    def scores(self, target: int) -> Floats:
        influence = self.influence
        out = np.empty((len(self.swaps), influence.data.n_items))
        for number, swap in enumerate(self.swaps):
            beyond = max((row + 1 - influence.data.n_users for row in swap.rows), default=0)
            data = swapped(influence.data, swap, slots=max(beyond, 0))
            out[number] = influence.after(data, target)
        return out
