"""Models whose training on an edited history is known without training: what edits then score.

A person's edit changes one row of the data. User-kNN compares that row with the others, which stay,
so training again changes nothing. EASE changes by two outer products, item-kNN in what is known of
the edited items; both are recomputed exactly. Factor models are trained by iterations, whose end no
formula tells: for them only training itself does, where it is permitted for every treatment.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ombud.probes.edits import EditSpace, History, Singles
from ombud.probes.models.base import Block, WhiteBox
from ombud.probes.models.linear import EaseInfluence
from ombud.probes.models.neighbours import ItemKNNInfluence, ModelBox
from ombud.probes.outcomes import edited_interactions
from ombud.systems.recommenders.ease import EASE
from ombud.systems.recommenders.item_knn import ItemKNN
from ombud.systems.recommenders.model import Model
from ombud.systems.recommenders.user_knn import UserKNN

Array = NDArray[np.float64]


class ClosedForm(Protocol):
    """What training on another history of one person would give, for one trained model."""

    def box(self, own: int) -> WhiteBox:
        """Return the scores after edits of one person's history, the model trained again.

        `own` is the person's row among the model's users; -1 adds the person to the data.
        """
        ...


@dataclass(frozen=True, eq=False)
class _Users:
    model: UserKNN

    def box(self, own: int) -> WhiteBox:
        return ModelBox(self.model, own)


@dataclass(frozen=True, eq=False)
class _Linear:
    influence: EaseInfluence

    def box(self, own: int) -> WhiteBox:
        return RetrainedEase(self.influence, own)


@dataclass(frozen=True, eq=False)
class _Items:
    influence: ItemKNNInfluence

    def box(self, own: int) -> WhiteBox:
        return RetrainedItems(self.influence, own)


def closed_form(model: Model) -> ClosedForm | None:
    """Return what tells the scores of a retrained model exactly; None where only training does.

    For `EASE` this inverts a matrix of items x items: make it once for all people.
    """
    if isinstance(model, UserKNN):
        return _Users(model)
    if isinstance(model, EASE):
        return _Linear(EaseInfluence(model))
    if isinstance(model, ItemKNN):
        return _Items(ItemKNNInfluence(model))
    return None


class _NoBounds(ABC):
    """What a box without gradients and bounds says."""

    affine = False

    def gains(self, history: History, singles: Singles, direction: Array) -> Array | None:
        """Return None: a gain costs as much as the scores."""
        return None

    def gap_bounds(self, space: EditSpace, target: int, rivals: NDArray[np.int64]) -> Array | None:
        """Return None: nothing is known beyond enumeration."""
        return None

    @abstractmethod
    def scores(self, histories: Sequence[History]) -> Array:
        """Return the scores of all items for each history; NaN where there is none."""

    def blocks(self, history: History, singles: Singles, rows: int) -> Iterator[Block]:
        """Yield the scores of all items after each single edit."""
        for start in range(0, len(singles), rows):
            part = slice(start, min(start + rows, len(singles)))
            edited = [history.after((singles.edit(i),)) for i in range(part.start, part.stop)]
            yield part, self.scores(edited).astype(np.float32)


class RetrainedEase(_NoBounds):
    r"""EASE trained on the data with a person's history x replaced by x'.

    With P the inverse as it is, :math:`U = (x, x')` and :math:`S = diag(-1, 1)`,
    :math:`P' = P - P U (S + U^\top P U)^{-1} U^\top P`, and the scores
    :math:`x'_k - (P' x')_k / P'_{kk}` need only :math:`P x`, :math:`P x'` and the diagonal.

    `own` is the person's row; -1 is nobody, whose history is added.
    """

    def __init__(self, influence: EaseInfluence, own: int) -> None:
        self.inverse, self.n_items = influence.inverse, influence.data.n_items
        self.counts = influence.counts.astype(np.int64)
        self.diagonal = np.diag(influence.inverse).copy()
        empty = History.of([], [])
        self.mine = empty if own < 0 else History.of_user(influence.data, own)
        self.image = self._image(self.mine)

    def _image(self, history: History) -> Array:
        found: Array = history.values.astype(np.float64) @ self.inverse[history.items]
        return found

    def _scores(self, after: Array, images: Array, known: NDArray[np.bool_]) -> Array:
        """Return scores for rows x' with their images P x'; `known` has a user in the data."""
        p, mine = self.image, self.mine
        values = mine.values.astype(np.float64)
        # The inner matrix is [[u, v], [v, w]]; without an own row, u = -1 and v = 0 undo nothing.
        u = float(values @ p[mine.items]) - 1
        v = images[:, mine.items] @ values
        square = np.einsum("ri,ri->r", after, images)
        w = square + 1
        determinant = u * w - v * v
        a, b, c = w / determinant, -v / determinant, u / determinant
        # P'x' = Px' - (p, Px') M^-1 (v, x'Px')
        first, second = a * v + b * square, b * v + c * square
        product = images * (1 - second)[:, None] - first[:, None] * p
        scale = self.diagonal - a[:, None] * p**2 - c[:, None] * images**2
        scale -= 2 * b[:, None] * p * images
        out: Array = after - product / scale
        out[~known] = np.nan
        out[~after.any(axis=1)] = np.nan
        return out

    def _known(self, before: History, after: History) -> NDArray[np.bool_]:
        counts = self.counts.copy()
        counts[before.items] -= 1
        counts[after.items] += 1
        return np.asarray(counts > 0, bool)

    def scores(self, histories: Sequence[History]) -> Array:
        """Return the scores of all items for each history; NaN where there is none."""
        after = np.zeros((len(histories), self.n_items))
        known = np.empty(after.shape, bool)
        images = np.empty(after.shape)
        for row, history in enumerate(histories):
            after[row, history.items] = history.values
            images[row] = self._image(history)
            known[row] = self._known(self.mine, history)
        return self._scores(after, images, known)

    def blocks(self, history: History, singles: Singles, rows: int) -> Iterator[Block]:
        """Yield the scores of all items after each single edit."""
        now, image = np.zeros(self.n_items), self._image(history)
        now[history.items] = history.values
        known = self._known(self.mine, history)
        others = self._known(self.mine, History.of([], []))
        step = (np.nan_to_num(singles.after) - np.nan_to_num(singles.before)).astype(np.float64)
        gone = np.isnan(singles.after) & ~others[singles.items]
        for start in range(0, len(singles), rows):
            part = slice(start, min(start + rows, len(singles)))
            items = singles.items[part]
            line = np.arange(len(items))
            after = np.tile(now, (len(items), 1))
            after[line, items] += step[part]
            after[line[np.isnan(singles.after[part])], items[np.isnan(singles.after[part])]] = 0
            images = image + step[part, None] * self.inverse[items]
            there = np.tile(known, (len(items), 1))
            there[line, items] = ~gone[part]
            yield part, self._scores(after, images, there).astype(np.float32)


class RetrainedItems(_NoBounds):
    """Item-kNN trained on the data with a person's history replaced.

    The sums behind the cosines of the edited history's items are counted without the old row and
    with the new one. Milliseconds for each edit.

    `own` is the person's row; -1 is nobody, whose history is added.
    """

    def __init__(self, influence: ItemKNNInfluence, own: int) -> None:
        self.influence, self.own = influence, own
        self.mine = History.of([], []) if own < 0 else History.of_user(influence.data, own)
        flat = influence.values.data
        self.plain = not influence.data.explicit and bool(flat.min() == flat.max() == 1.0)

    def _values(self, history: History) -> Array:
        found: Array = history.values.astype(np.float64)
        return np.ones_like(found) if self.plain else found

    def scores(self, histories: Sequence[History]) -> Array:
        """Return the scores of all items for each history; NaN where there is none."""
        out = np.full((len(histories), self.influence.data.n_items), np.nan)
        for row, history in enumerate(histories):
            if len(history):
                out[row] = self._after(history)
        return out

    def _after(self, history: History) -> Array:
        items = history.items.astype(np.int64)
        tables = self.influence.tables(items).copy()
        for sign, row in ((-1.0, self.mine), (1.0, history)):
            tables.add(items, row.items.astype(np.int64), self._values(row), sign)
        return self.influence.scored(items, history.values.astype(np.float64), tables)


class TrainedBox(_NoBounds):
    """Any model, trained anew for each history: for spaces of few treatments.

    The model is copied, never changed. `own` is the person's row; -1 adds the person to the data.
    """

    def __init__(self, model: Model, own: int) -> None:
        self.model, self.own = model, own
        self.trainings = 0

    def scores(self, histories: Sequence[History]) -> Array:
        """Return the scores of all items for each history; NaN where there is none."""
        data = self.model.interactions
        model: Any = self.model  # models are dataclasses, which their base class is not
        out = np.empty((len(histories), data.n_items))
        for place, history in enumerate(histories):
            edited, row = edited_interactions(data, self.own, history)
            trained: Model = replace(model).fit(edited)
            self.trainings += 1
            out[place] = trained.score(edited.users.ids[[row]], data.items.ids)[0]
        return out
