"""What an edit brings into a list, guessed from the answers that a black box gave so far."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import svds

from ombud.data.interactions import Interactions
from ombud.probes.edits import Edits, EditSpace, Singles

Floats = NDArray[np.float64]

_RIDGE = 1.0
_PRIOR = 0.05  # of "a rated item brings similar ones", which answers soon outweigh


class AnswerModel:
    """A linear model of which items enter and leave a list after an edit.

    An edit is described by the features of its item, once times the change of its value and once
    times its coming or going; an answer by the features of the items that entered the list, less
    those of the items that left it. One matrix between the two is fitted by ridge regression, so
    every answer about any item and any person improves every guess. Guesses only decide what is
    queried next: whatever they are worth, an answer counts.

    Parameters
    ----------
    features
        One row per item of the catalog, such as `item_features` of histories at hand.
    """

    def __init__(self, features: Floats) -> None:
        self.features = features
        size = features.shape[1]
        self._inputs = _RIDGE * np.eye(2 * size)
        self._outputs = _RIDGE * np.eye(size) + features.T @ features
        self._moved = np.zeros((2 * size, size))
        self._moved[:size] = _RIDGE * _PRIOR * self._outputs
        self.learned = 0

    def learn(
        self,
        space: EditSpace,
        answers: Sequence[tuple[Edits, NDArray[np.int32], NDArray[np.int32]]],
    ) -> None:
        """Take in edits, each with the unedited list and the list after it."""
        for edits, today, answer in answers:
            if not edits:
                continue
            before = np.array([np.nan if e.before is None else e.before for e in edits])
            after = np.array([np.nan if e.after is None else e.after for e in edits])
            items = np.array([e.item for e in edits])
            row = self._of_edits(space, items, before, after).sum(axis=0)
            moved = self._sum(np.setdiff1d(answer, today)) - self._sum(np.setdiff1d(today, answer))
            self._inputs += np.outer(row, row)
            self._moved += np.outer(row, moved)
            self.learned += 1

    def guess(self, space: EditSpace, singles: Singles, members: NDArray[np.bool_]) -> Floats:
        """Return for each single edit how far it moves each set of items into the list."""
        known = members[:, : len(self.features)].astype(np.float64)
        wanted = known @ self.features / np.maximum(known.sum(axis=1, keepdims=True), 1)
        weights = np.linalg.solve(self._inputs, self._moved)
        directions = weights @ np.linalg.solve(self._outputs, wanted.T)
        rows = self._of_edits(space, singles.items, singles.before, singles.after)
        guessed: Floats = rows @ directions
        return guessed

    def _sum(self, items: NDArray[np.int32]) -> Floats:
        known = items[(items >= 0) & (items < len(self.features))]
        total: Floats = self.features[known].sum(axis=0)
        return total

    def _of_edits(
        self,
        space: EditSpace,
        items: NDArray[np.integer],
        before: NDArray[np.floating],
        after: NDArray[np.floating],
    ) -> Floats:
        """Return one row per edit."""
        low, high = min(space.values), max(space.values)
        middle, half = ((low + high) / 2, (high - low) / 2) if high > low else (0.0, high or 1.0)
        value = np.nan_to_num((after - middle) / half) - np.nan_to_num((before - middle) / half)
        comes = np.isnan(before).astype(np.float64) - np.isnan(after)
        inside = items < len(self.features)
        of_item = np.where(inside[:, None], self.features[np.where(inside, items, 0)], 0.0)
        return np.hstack([of_item * value[:, None], of_item * comes[:, None]])


def item_features(interactions: Interactions, size: int = 16) -> Floats:
    """Return unit rows that are near each other where the same people interacted with the items.

    The leading singular vectors of the interactions, each divided by the roots of the activity of
    its user and the popularity of its item; items without any are rows of zeros.
    """
    given = interactions.matrix
    matrix: Any = sparse.csr_array(
        (np.ones(given.nnz), given.indices, given.indptr), shape=given.shape
    )
    scale = [1 / np.sqrt(np.maximum(matrix.sum(axis=axis), 1.0)) for axis in (1, 0)]
    scaled = sparse.diags_array(scale[0]) @ matrix @ sparse.diags_array(scale[1])
    size = min(size, min(matrix.shape) - 1)
    if size < 1:
        return np.zeros((matrix.shape[1], 1))
    _, values, vectors = svds(scaled, k=size, v0=np.ones(min(matrix.shape)))
    rows = vectors.T * values
    found: Floats = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    return found
