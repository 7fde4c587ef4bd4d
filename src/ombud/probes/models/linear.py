"""EASE: scores are linear in every entry of the history."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ombud.probes.edits import EditSpace, History, Singles, rows_of
from ombud.probes.influence import (
    Influence,
    history_of,
    row_numbers,
    rows_before,
    stacked_after,
    swap_of_row,
)
from ombud.probes.models.base import Block, top_sum
from ombud.systems.recommenders.ease import EASE

if TYPE_CHECKING:
    from ombud.probes.others import UserSwap
    from ombud.systems.recommenders import Popular


Array = NDArray[np.float64]


class LinearBox:
    """The white box of EASE: an edit of item i by d adds ``d B_i`` to all scores."""

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


# Exact scores after swaps for the linear item model and for popularity.


Floats = NDArray[np.float64]


def _changes(
    influence: EaseInfluence | PopularInfluence, swaps: Sequence[UserSwap]
) -> tuple[Floats, Floats]:
    """Return by how much each swap changes the count, and the sum of values, of each item."""
    data = influence.data
    counts, sums = np.zeros((2, len(swaps), data.n_items))
    which = swap_of_row(swaps)
    for sign, rows in ((-1.0, rows_before(data, swaps)), (1.0, stacked_after(swaps, data.n_items))):
        place = (which[row_numbers(rows)], rows.indices)
        np.add.at(counts, place, sign)
        np.add.at(sums, place, sign * rows.data)
    return counts, sums


class EaseInfluence(Influence):
    r"""EASE after swaps, by the Woodbury identity.

    With U the changed histories as columns and S their signs (-1 before, +1 after),
    :math:`P' = P - P U (S + U^\top P U)^{-1} U^\top P`; a target's scores need only
    :math:`x_j^\top P'` and the diagonal of :math:`P'`.
    """

    exact = True

    def __init__(self, model: EASE) -> None:
        self.data = model.interactions
        matrix = self.data.matrix.astype(np.float64)
        gram = (matrix.T @ matrix).toarray()
        gram[np.diag_indices_from(gram)] += model.regularization
        self.inverse = np.linalg.inv(gram)
        self.counts = np.bincount(self.data.matrix.indices, minlength=self.data.n_items)

    def today(self, target: int) -> Floats:
        """Return the target's scores as they are."""
        own, product = self.own(target)
        scores = own - product / np.diag(self.inverse)
        scores[self.counts == 0] = np.nan
        return np.where(own.any(), scores, np.nan)

    def own(self, target: int) -> tuple[Floats, Floats]:
        """Return the target's history x, and x'P."""
        items, values = history_of(self.data, target)
        own = np.zeros(self.data.n_items)
        own[items] = values
        return own, values @ self.inverse[items]

    def prepare(self, swaps: Sequence[UserSwap]) -> _PreparedEase:
        """Return the images P U of the changed histories, and the inner inverses."""
        before = rows_before(self.data, swaps).astype(np.float64)
        after = stacked_after(swaps, self.data.n_items).astype(np.float64)
        which = swap_of_row(swaps)
        images = np.concatenate([before @ self.inverse, after @ self.inverse])
        inner = []
        for number in range(len(swaps)):
            rows = np.flatnonzero(which == number)
            both = np.concatenate([rows, len(which) + rows])
            columns = np.concatenate([before[rows].toarray(), after[rows].toarray()])
            signs = np.repeat([-1.0, 1.0], len(rows))
            inner.append((both, np.linalg.inv(np.diag(signs) + columns @ images[both].T)))
        counts, _ = _changes(self, swaps)
        return _PreparedEase(self, images, inner, self.counts + counts > 0)


@dataclass(frozen=True, eq=False)
class _PreparedEase:
    influence: EaseInfluence
    images: Floats
    inner: list[tuple[NDArray[np.int64], Floats]]
    known: NDArray[np.bool_]

    def scores(self, target: int) -> Floats:
        own, product = self.influence.own(target)
        diagonal = np.diag(self.influence.inverse)
        out = np.full(self.known.shape, np.nan)
        for number, (rows, middle) in enumerate(self.inner):
            images = self.images[rows]
            turned = middle @ images
            changed = product - (images @ own) @ turned
            scale = diagonal - np.einsum("mi,mi->i", images, turned)
            known = self.known[number]
            if own[known].any():
                out[number, known] = (own - changed / scale)[known]
        return out


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
        counts, sums = _changes(self, swaps)
        return _PreparedPopular(self.values(self.counts + counts, self.sums + sums))


@dataclass(frozen=True, eq=False)
class _PreparedPopular:
    values: Floats

    def scores(self, target: int) -> Floats:
        return self.values.copy()
