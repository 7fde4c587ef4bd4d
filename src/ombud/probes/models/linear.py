"""EASE: scores are linear in every entry of the history."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from ombud.probes.edits import EditSpace, History, Singles, rows_of
from ombud.probes.models.base import Block, top_sum
from ombud.systems.recommenders.ease import EASE

Array = NDArray[np.float64]


class LinearBox:
    """The white box of EASE: an edit of item i by d adds ``d B_i`` to all scores.

    Parameters
    ----------
    model
        A trained `EASE`.
    """

    affine = True

    def __init__(self, model: EASE) -> None:
        self.model = model
        self.weights = model.weights
        self.known = model._state.known

    def scores(self, histories: Sequence[History]) -> Array:
        """Return the scores of all items for each history; NaN where there is none."""
        rows = rows_of(histories, len(self.known)).astype(np.float64)
        out: Array = np.asarray(rows @ self.weights, np.float64)
        out[:, ~self.known] = np.nan
        out[[not self.known[h.items].any() for h in histories]] = np.nan
        return out

    def _change(self, singles: Singles) -> NDArray[np.float32]:
        return np.nan_to_num(singles.after) - np.nan_to_num(singles.before)

    def blocks(self, history: History, singles: Singles, rows: int) -> Iterator[Block]:
        """Yield the scores of all items after each single edit."""
        now = (history.values.astype(np.float64) @ self.weights[history.items]).astype(np.float32)
        now[~self.known] = np.nan
        change, known = self._change(singles), self.known[history.items]
        # Taking back the last known item, or adding only unknown ones, leaves nothing to go by.
        left = known.sum() - (np.isnan(singles.after) & self.known[singles.items]).astype(int)
        left += np.isnan(singles.before) & self.known[singles.items]
        for start in range(0, len(singles), rows):
            part = slice(start, min(start + rows, len(singles)))
            block = self.weights[singles.items[part]] * change[part, None]
            block += now
            block[left[part] <= 0] = np.nan
            yield part, block

    def gains(self, history: History, singles: Singles, direction: Array) -> Array | None:
        """Return what each single edit adds to a weighted sum of scores."""
        effect = self.weights @ np.where(self.known, direction, 0.0)
        return np.asarray(self._change(singles) * effect[singles.items], np.float64)

    def gap_bounds(self, space: EditSpace, target: int, rivals: NDArray[np.int64]) -> Array | None:
        """Return what ``score(target) - score(rival)`` cannot exceed; edits add up."""
        if not self.known[target]:
            return None
        history = space.history
        now = history.values.astype(np.float64) @ self.weights[history.items]
        singles = space.singles(shown=np.arange(space.n_items, dtype=np.int32))
        change = self._change(singles).astype(np.float64)
        up, down = np.zeros(space.n_items), np.zeros(space.n_items)
        np.maximum.at(up, singles.items, change)
        np.minimum.at(down, singles.items, change)
        apart = self.weights[:, [target]].astype(np.float64) - self.weights[:, rivals]
        gain = np.maximum(apart * up[:, None], apart * down[:, None])
        found: Array = now[target] - now[rivals] + top_sum(gain, space.budget)
        return found
