"""Neighbour models, and any other that folds in: scores by the model's own kernels.

Scores are piecewise in the entries, so single edits are enumerated; beyond one edit there is no
bound, and a search is verified.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ombud.probes.edits import EditSpace, History, Singles, rows_of
from ombud.probes.models.base import Block
from ombud.probes.outcomes import score_histories
from ombud.systems.recommenders.item_knn import ItemKNN
from ombud.systems.recommenders.model import Model

Array = NDArray[np.float64]


class ModelBox:
    """The white box of a model that scores new histories.

    Parameters
    ----------
    model
        A trained model that folds in, such as `ItemKNN` or `UserKNN`.
    own
        The person's row among the model's users, or -1.
    """

    def __init__(self, model: Model, own: int = -1) -> None:
        self.model, self.own = model, own
        # Which items are neighbours depends on the set of rated items, not on their values.
        self.affine = isinstance(model, ItemKNN)

    def scores(self, histories: Sequence[History]) -> Array:
        """Return the scores of all items for each history; NaN where there is none."""
        rows = rows_of(histories, self.model.interactions.n_items)
        return score_histories(self.model, rows, self.own).astype(np.float64)

    def blocks(self, history: History, singles: Singles, rows: int) -> Iterator[Block]:
        """Yield the scores of all items after each single edit."""
        n_items = self.model.interactions.n_items
        for start in range(0, len(singles), rows):
            part = slice(start, min(start + rows, len(singles)))
            edited = edited_rows(history, singles.take(np.arange(part.start, part.stop)), n_items)
            yield part, score_histories(self.model, edited, self.own)

    def gains(self, history: History, singles: Singles, direction: Array) -> Array | None:
        """Return None: a gain costs as much as the scores."""
        return None

    def gap_bounds(self, space: EditSpace, target: int, rivals: NDArray[np.int64]) -> Array | None:
        """Return None: nothing is known beyond enumeration."""
        return None


class ItemBox(ModelBox):
    """The white box of item-kNN: an edit changes the scores of the edited item's neighbours only.

    Parameters
    ----------
    model
        A trained `ItemKNN`.
    """

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


def edited_rows(history: History, singles: Singles, n_items: int) -> sparse.csr_array:
    """Return the history after each single edit, as sparse rows.

    Examples
    --------
    >>> edits = Singles(np.array([1, 0]), np.array([np.nan, 4.0]), np.array([2.0, np.nan]))
    >>> edited_rows(History.of([0, 2], [4, 5]), edits, 3).toarray().tolist()
    [[4.0, 2.0, 5.0], [0.0, 0.0, 5.0]]
    """
    count, length = len(singles), len(history)
    items = np.tile(history.items, (count, 1))
    values = np.tile(history.values, (count, 1))
    added, removed = np.isnan(singles.before), np.isnan(singles.after)
    keep = np.ones((count, length), bool)
    old = np.flatnonzero(~added)
    place = np.searchsorted(history.items, singles.items[old])
    values[old, place] = singles.after[old]
    keep[old[removed[old]], place[removed[old]]] = False
    rows = np.concatenate([np.nonzero(keep)[0], np.flatnonzero(added)])
    columns = np.concatenate([items[keep], singles.items[added]])
    data = np.concatenate([values[keep], singles.after[added]])
    return sparse.csr_array(
        sparse.coo_array((data.astype(np.float32), (rows, columns)), shape=(count, n_items))
    )
