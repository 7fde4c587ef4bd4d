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
from ombud.probes.outcomes import score_histories
from ombud.probes.whitebox.base import Block
from ombud.systems.recommenders.item_knn import ItemKNN
from ombud.systems.recommenders.model import Model

__all__ = ["ModelBox", "edited_rows"]

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
