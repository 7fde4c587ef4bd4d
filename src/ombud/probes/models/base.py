"""What the search asks of a model whose inside is known."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ombud.data.interactions import Interactions
from ombud.probes.edits import Edits, EditSpace, History, Singles, rows_of
from ombud.probes.outcomes import edited_interactions, score_histories
from ombud.systems.recommenders.item_knn import ItemKNN
from ombud.systems.recommenders.model import Model

Array = NDArray[np.float64]

PROMISING = 48
"""How many of the best single edits are remembered for searches of more."""

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


class NoBounds(ABC):
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


class ModelBox:
    """The white box of a model that scores new histories.

    `own` is the person's row among the model's users, or -1.
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


class TrainedBox(NoBounds):
    """Any model, trained anew for each history: for spaces of few treatments.

    The model is copied, never changed. `own` is the person's row; -1 adds the person to the data.
    """

    def __init__(self, model: Model, own: int, data: Interactions | None = None) -> None:
        self.model, self.own = model, own
        self.data = model.interactions if data is None else data
        self.trainings = 0

    def scores(self, histories: Sequence[History]) -> Array:
        """Return the scores of all items for each history; NaN where there is none."""
        data = self.data
        model: Any = self.model  # models are dataclasses, which their base class is not
        out = np.empty((len(histories), data.n_items))
        for place, history in enumerate(histories):
            edited, row = edited_interactions(data, self.own, history)
            trained: Model = replace(model).fit(edited)
            self.trainings += 1
            out[place] = trained.score(edited.users.ids[[row]], data.items.ids)[0]
        return out


@dataclass(frozen=True, eq=False)
class SingleEdits:
    """What single edits do for some targets, the model trained again after each of them.

    All arrays have one entry per target. Log-probabilities are -inf for what cannot be listed, and
    an edit is its place in ``singles``, -1 for none.
    """

    singles: Singles
    today: Array  # log-probability without an edit
    best: Array  # the greatest log-probability
    edit: NDArray[np.int64]  # the edit that gives it
    # The margin over the k-th best of the other items, today and at most: zero or more in the list.
    margin_today: Array
    margin: Array
    margin_edit: NDArray[np.int64]
    promising: NDArray[np.int64]  # targets x edits: the best edits first, -1 where there are fewer
    evaluated: int  # edits whose probabilities were computed in full

    @classmethod
    def of(cls, singles: Singles, log_probability: Array, margin: Array) -> SingleEdits:
        """Return the best of tables of edits x targets, whose first row is today."""
        first, second = log_probability.argmax(axis=0), margin.argmax(axis=0)
        line = np.arange(len(first))
        order = np.argsort(-log_probability[1:], axis=0, kind="stable")[:PROMISING].T
        return cls(
            singles, log_probability[0], log_probability[first, line], first - 1, margin[0],
            margin[second, line], second - 1, order, len(singles),
        )  # fmt: skip

    def edits(self, index: int) -> Edits:
        """Return an edit as a treatment."""
        return () if index < 0 else (self.singles.edit(index),)


class ClosedForm(Protocol):
    """What training on another history of one person would give, for one trained model."""

    @property
    def close(self) -> bool:
        """Whether scores may differ from training's in the last digits of 32 bits."""
        ...

    def box(self, own: int) -> WhiteBox:
        """Return the scores after edits of one person's history, the model trained again.

        `own` is the person's row among the model's users; -1 adds the person to the data.
        """
        ...

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
        """Evaluate all single edits for some targets; with a beta of 0, lists only."""
        ...


def settled_edits(
    box: WhiteBox,
    space: EditSpace,
    targets: NDArray[np.int64],
    *,
    k: int,
    beta: float,
    shown: NDArray[np.int32] | None = None,
) -> SingleEdits:
    """Evaluate all single edits by the scores that a box gives."""
    from ombud.probes import _kernels

    singles = space.singles(shown=shown)
    tables = np.empty((2, len(singles) + 1, len(targets)))
    seen = np.zeros(space.n_items, bool)
    seen[space.history.items] = True
    adds, removes = np.isnan(singles.before), np.isnan(singles.after)
    nothing, nobody = np.full(1, -1, np.int32), np.zeros(1, bool)
    now = box.scores([space.history]).astype(np.float32)
    _kernels.score_singles(
        now, seen, nothing, nobody, nobody, targets, beta, k, tables[0, :1], tables[1, :1]
    )
    for part, block in box.blocks(space.history, singles, max(8, 2**18 // space.n_items)):
        rows = slice(part.start + 1, part.stop + 1)
        _kernels.score_singles(
            block, seen, singles.items[part], adds[part], removes[part], targets, beta, k,
            tables[0, rows], tables[1, rows],
        )  # fmt: skip
    return SingleEdits.of(singles, *tables)
