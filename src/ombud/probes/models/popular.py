"""Popularity: the same for everyone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ombud.probes.influence import Floats, Influence, count_changes

if TYPE_CHECKING:
    from ombud.probes.others import UserSwap
    from ombud.systems.recommenders import Popular


class PopularInfluence(Influence):
    """Popularity after swaps: counts and sums are added up again."""

    exact = True

    def __init__(self, model: Popular) -> None:
        self.model, self.data = model, model.interactions
        matrix, n_items = self.data.matrix, self.data.n_items
        self.counts = np.bincount(matrix.indices, minlength=n_items).astype(np.float64)
        sums = np.bincount(matrix.indices, weights=matrix.data, minlength=n_items)
        self.sums = sums.astype(np.float64)

    def values(self, counts: Floats, sums: Floats) -> Floats:
        """Return the value by which items are ordered; NaN where there is none."""
        if self.model.by == "count":
            # Items nobody has stand at the end of the order, as in the model.
            return counts + np.zeros_like(sums)
        damping = self.model.damping if self.model.by == "damped-mean" else 0.0
        mean = sums.sum(axis=-1, keepdims=True) / counts.sum(axis=-1, keepdims=True)
        with np.errstate(all="ignore"):
            value = (sums + damping * mean) / (counts + damping)
        return np.where(counts > 0, value, np.nan)

    def today(self, target: int) -> Floats:
        """Return the target's scores as they are: those of everyone."""
        return self.values(self.counts, self.sums)

    def prepare(self, swaps: Sequence[UserSwap]) -> _PreparedPopular:
        """Return the values after each swap."""
        counts, sums = count_changes(self.data, swaps)
        return _PreparedPopular(self.values(self.counts + counts, self.sums + sums))


@dataclass(frozen=True, eq=False)
class _PreparedPopular:
    values: Floats

    def scores(self, target: int) -> Floats:
        return self.values.copy()
