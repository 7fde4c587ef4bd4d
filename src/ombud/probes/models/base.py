"""What the search asks of a model whose inside is known."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ombud.probes.edits import EditSpace, History, Singles

Block = tuple[slice, NDArray[np.float32]]
"""Some single edits, and the scores of all items after each of them."""


class WhiteBox(Protocol):
    """Scores after edits, without asking the model history by history.

    Attributes
    ----------
    affine
        Whether scores are affine in the values of a fixed set of rated items.
    """

    affine: bool

    def scores(self, histories: Sequence[History]) -> NDArray[np.float64]:
        """Return the scores of all items for each history; NaN where there is none."""
        ...

    def blocks(self, history: History, singles: Singles, rows: int) -> Iterator[Block]:
        """Yield the scores of all items after each single edit, so many edits at a time."""
        ...

    def gains(
        self, history: History, singles: Singles, direction: NDArray[np.float64]
    ) -> NDArray[np.float64] | None:
        """Return ``direction . (scores after - scores now)`` for each single edit.

        None where this is no cheaper than the scores themselves.
        """
        ...

    def gap_bounds(
        self, space: EditSpace, target: int, rivals: NDArray[np.int64]
    ) -> NDArray[np.float64] | None:
        """Return, for each rival, a number that ``score(target) - score(rival)`` cannot exceed.

        It holds for every permitted treatment within the budget; None where nothing is known.
        """
        ...


def top_sum(values: NDArray[np.float64], count: int) -> NDArray[np.float64]:
    """Return the sum of the ``count`` largest positive values of each column.

    Examples
    --------
    >>> top_sum(np.array([[1.0, -1.0], [3.0, -2.0], [2.0, 5.0]]), 2).tolist()
    [5.0, 5.0]
    """
    if count <= 0 or len(values) == 0:
        return np.zeros(values.shape[1:])
    if count < len(values):
        values = np.partition(values, len(values) - count, axis=0)[-count:]
    total: NDArray[np.float64] = np.maximum(values, 0).sum(axis=0)
    return total
