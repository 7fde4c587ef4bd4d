"""Neighbour models, and any other that folds in: scores by the model's own kernels.

Scores are piecewise in the entries, so single edits are enumerated; beyond one edit there is no
bound, and a search is verified.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ombud.probes.edits import EditSpace, History, Singles, rows_of
from ombud.probes.influence import Influence, history_of, row_numbers
from ombud.probes.models.base import Block
from ombud.probes.outcomes import score_histories
from ombud.systems.recommenders.item_knn import ItemKNN
from ombud.systems.recommenders.model import Model

if TYPE_CHECKING:
    from ombud.probes.others import UserSwap
    from ombud.systems.recommenders import UserKNN


Array = NDArray[np.float64]


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


# Exact scores after swaps for the neighbour models; only what changed users touch is redone.


Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def _centred(rows: sparse.csr_array, explicit: bool) -> tuple[Floats, Floats, Floats]:
    """Return each entry less its row's mean (explicit), the means, and one over the lengths."""
    number = row_numbers(rows)
    heads = np.maximum(np.diff(rows.indptr), 1)
    values, means = rows.data.astype(np.float64), np.zeros(rows.shape[0])
    if explicit:
        means = np.bincount(number, weights=values, minlength=rows.shape[0]) / heads
        values = values - means[number]
    squares = np.bincount(number, weights=values**2, minlength=rows.shape[0])
    real = squares > 1e-10 * heads
    return values, means, np.where(real, 1 / np.sqrt(np.where(real, squares, 1.0)), 0.0)


class UserKNNInfluence(Influence):
    """User-kNN after swaps: a target's similarity to the users who stay does not change.

    For each item the nearest users who have it are kept in order, as many more than the model
    uses as users may leave; a swap takes users out of these rows and puts others in.
    """

    exact = True

    def __init__(self, model: UserKNN) -> None:
        self.model, self.data = model, model.interactions
        self.values, self.means, self.scale = _centred(self.data.matrix, self.data.explicit)
        self.rows = sparse.csr_array(
            (self.values, self.data.matrix.indices, self.data.matrix.indptr),
            shape=self.data.matrix.shape,
        )

    def own(self, target: int) -> Floats:
        """Return the target's row as a unit vector over items."""
        items, _ = history_of(self.data, target)
        part = slice(self.data.matrix.indptr[target], self.data.matrix.indptr[target + 1])
        own = np.zeros(self.data.n_items)
        own[items] = self.values[part] * self.scale[target]
        return own

    def near(self, target: int, spare: int) -> _Near:
        """Return the nearest users of each item, nearest first, and those that are spare."""
        model, matrix = self.model, self.data.matrix
        similar = np.asarray(self.rows @ self.own(target)) * self.scale
        similar[target] = 0.0
        users = np.flatnonzero(similar >= model.min_similarity)
        users = users[np.argsort(-similar[users], kind="stable")]
        most = len(users) if model.neighbours is None else model.neighbours
        width = max(1, min(len(users), most + spare))
        chosen = sparse.csr_array(self.rows[users])
        by_item = chosen.tocsc()
        counts = np.diff(by_item.indptr)
        place = np.arange(by_item.nnz) - np.repeat(by_item.indptr[:-1], counts)
        item = np.repeat(np.arange(matrix.shape[1]), counts)
        kept = place < width
        who = np.full((matrix.shape[1], width), -1, np.int64)
        who[item[kept], place[kept]] = users[by_item.indices[kept]]
        similarity, deviation = np.zeros((2, *who.shape))
        similarity[item[kept], place[kept]] = similar[users[by_item.indices[kept]]]
        deviation[item[kept], place[kept]] = by_item.data[kept]
        return _Near(who, similarity, deviation, most)

    def scored(self, near: _Near, target: int) -> Floats:
        """Return scores from rows of neighbours that are in order."""
        similarity, deviation = (a[:, : near.most] for a in (near.similarity, near.deviation))
        count = np.count_nonzero(near.who[:, : near.most] >= 0, axis=1)
        if self.data.explicit:
            with np.errstate(all="ignore"):
                score = (similarity * deviation).sum(axis=1) / similarity.sum(axis=1)
            score += self.means[target]
        else:
            score = similarity.sum(axis=1)
        return np.where(count >= self.model.min_neighbours, score, np.nan)

    def today(self, target: int) -> Floats:
        """Return the target's scores as they are."""
        return self.scored(self.near(target, 0), target)

    def prepare(self, swaps: Sequence[UserSwap]) -> _PreparedUsers:
        """Return the swaps; everything else depends on the target."""
        return _PreparedUsers(self, swaps)


@dataclass(frozen=True, eq=False)
class _Near:
    """Items x places: users (-1 for none), their similarity, and their deviations on the item."""

    who: Ints
    similarity: Floats
    deviation: Floats
    most: int


@dataclass(frozen=True, eq=False)
class _PreparedUsers:
    influence: UserKNNInfluence
    swaps: Sequence[UserSwap]

    def scores(self, target: int) -> Floats:
        influence = self.influence
        spare = max((swap.cost for swap in self.swaps), default=0)
        near = influence.near(target, spare)
        # With all users as neighbours, those who come must have a place too.
        now, own = influence.scored(near, target), influence.own(target)
        out = np.tile(now, (len(self.swaps), 1))
        for number, swap in enumerate(self.swaps):
            items, part = self._after(near, own, swap)
            out[number, items] = influence.scored(part, target)[: len(items)]
        return out

    def _after(self, near: _Near, own: Floats, swap: UserSwap) -> tuple[Ints, _Near]:
        """Return the items that a swap touches and their neighbours after it."""
        influence, data = self.influence, self.influence.data
        old = [row for row in swap.rows if row < data.n_users]
        touched = [history_of(data, row)[0] for row in old]
        touched.append(swap.histories.indices.astype(np.int64))
        items = np.unique(np.concatenate(touched))
        who, similarity = near.who[items], near.similarity[items]
        deviation = near.deviation[items]
        gone = np.isin(who, old)
        who, similarity = np.where(gone, -1, who), np.where(gone, 0.0, similarity)
        values, _, scale = _centred(swap.histories, data.explicit)
        number = row_numbers(swap.histories)
        alike = np.bincount(
            number, weights=values * own[swap.histories.indices], minlength=swap.cost
        )
        alike = np.asarray(alike * scale)
        more = np.full((len(items), swap.cost), -1)
        extra = np.zeros((2, len(items), swap.cost))
        counted = alike[number] >= influence.model.min_similarity
        place = np.searchsorted(items, swap.histories.indices[counted])
        column = number[counted]
        more[place, column] = np.array(swap.rows)[column]
        extra[0, place, column], extra[1, place, column] = alike[column], values[counted]
        who = np.concatenate([who, more], axis=1)
        similarity = np.concatenate([similarity, extra[0]], axis=1)
        deviation = np.concatenate([deviation, extra[1]], axis=1)
        # Nearest first; on a tie the lower user.
        order = np.lexsort((who, -similarity), axis=1)
        who = np.take_along_axis(who, order, axis=1)
        similarity = np.take_along_axis(similarity, order, axis=1)
        deviation = np.take_along_axis(deviation, order, axis=1)
        most = near.most if influence.model.neighbours is not None else who.shape[1]
        return items, _Near(who, similarity, np.where(who >= 0, deviation, 0.0), most)


class ItemKNNInfluence(Influence):
    """Item-kNN after swaps: the sums behind the cosines of the history's items are updated.

    For every item h of the target's history and every item i the sums over common users of
    :math:`r_h r_i`, :math:`r_h`, :math:`r_i` and 1 give the centred product; a swap changes them
    only where a changed user has both. Means and lengths follow. Costs grow with the length of
    the history times the number of items for each swap: exact, but no faster than milliseconds.
    """

    exact = True

    def __init__(self, model: ItemKNN) -> None:
        self.model, self.data = model, model.interactions
        matrix, n_items = self.data.matrix, self.data.n_items
        codes, values = matrix.indices, matrix.data.astype(np.float64)
        if not self.data.explicit and values.min() == values.max():
            values = np.ones_like(values)
        self.values = sparse.csr_array((values, codes, matrix.indptr), shape=matrix.shape)
        self.counts = np.bincount(codes, minlength=n_items).astype(np.float64)
        self.sums: Floats = np.bincount(codes, weights=values, minlength=n_items).astype(float)
        squares = np.bincount(codes, weights=values**2, minlength=n_items)
        self.squares: Floats = squares.astype(float)

    def tables(self, items: Ints) -> _Tables:
        """Return sums over common users of some items with all items."""
        ones = sparse.csr_array(
            (np.ones(self.values.nnz), self.values.indices, self.values.indptr),
            shape=self.values.shape,
        )
        here, present = self.values[:, items].T, ones[:, items].T
        return _Tables(
            (here @ self.values).toarray(),
            (here @ ones).toarray(),
            (present @ self.values).toarray(),
            (present @ ones).toarray(),
            self.counts,
            self.sums,
            self.squares,
        )

    def scored(self, items: Ints, values: Floats, tables: _Tables) -> Floats:
        """Return the scores of all items for a history, from its tables."""
        model, explicit = self.model, self.data.explicit
        heads = np.maximum(tables.counts, 1)
        means = tables.sums / heads if explicit else np.zeros_like(tables.sums)
        product, squares = tables.product, tables.squares - tables.counts * means**2
        if explicit:
            own = means[items][:, None]
            product = product - means * tables.left - own * tables.right + own * means * tables.both
        # Sums of squares that cancel leave rounding dust of the size of the sums.
        real = squares > np.maximum(1e-10 * heads, 1e-13 * tables.squares)
        scale = np.where(real, 1 / np.sqrt(np.where(real, squares, 1.0)), 0.0)
        similar = product * scale[items][:, None] * scale
        similar[np.arange(len(items)), items] = 0.0
        similar[similar < model.min_similarity] = 0.0
        # Neighbours of each item of the history; then, for each item, the nearest of those.
        similar = _largest(similar, model.stored)
        if model.neighbours is not None and len(items) > model.neighbours:
            similar = _largest(similar.T, model.neighbours).T
        count = np.count_nonzero(similar, axis=0)
        deviations = values - means[items]
        with np.errstate(all="ignore"):
            score = deviations @ similar
            if explicit:
                score = score / similar.sum(axis=0) + means
        return np.where(count >= model.min_neighbours, score, np.nan)

    def today(self, target: int) -> Floats:
        """Return the target's scores as they are."""
        items, values = history_of(self.data, target)
        return self.scored(items, values, self.tables(items))

    def prepare(self, swaps: Sequence[UserSwap]) -> _PreparedItems:
        """Return the swaps; everything else depends on the target."""
        return _PreparedItems(self, swaps)


def _largest(values: Floats, count: int) -> Floats:
    """Return rows with all but their largest positive values set to 0; on ties the first stay."""
    if values.shape[1] <= count:
        return values
    edge = -np.partition(-values, count - 1, axis=1)[:, count - 1 : count]
    above = values > edge
    tied = (values == edge) & (edge > 0)
    room = count - np.count_nonzero(above, axis=1, keepdims=True)
    kept = above | (tied & (np.cumsum(tied, axis=1) <= room))
    return np.where(kept, values, 0.0)


@dataclass(frozen=True, eq=False)
class _Tables:
    product: Floats
    left: Floats
    right: Floats
    both: Floats
    counts: Floats
    sums: Floats
    squares: Floats

    def copy(self) -> _Tables:
        return _Tables(*(a.copy() for a in self.parts()))

    def parts(self) -> tuple[Floats, ...]:
        return (
            self.product, self.left, self.right, self.both, self.counts, self.sums, self.squares,
        )  # fmt: skip

    def add(self, items: Ints, codes: Ints, values: Floats, sign: float) -> None:
        """Count one user's history in, or out."""
        self.counts[codes] += sign
        self.sums[codes] += sign * values
        self.squares[codes] += sign * values**2
        _, rows, place = np.intersect1d(items, codes, assume_unique=True, return_indices=True)
        block, own = np.ix_(rows, codes), values[place][:, None]
        self.product[block] += sign * own * values
        self.left[block] += sign * own
        self.right[block] += sign * values
        self.both[block] += sign


@dataclass(frozen=True, eq=False)
class _PreparedItems:
    influence: ItemKNNInfluence
    swaps: Sequence[UserSwap]

    def scores(self, target: int) -> Floats:
        influence, data = self.influence, self.influence.data
        items, values = history_of(data, target)
        tables = influence.tables(items)
        out = np.empty((len(self.swaps), data.n_items))
        for number, swap in enumerate(self.swaps):
            after = tables.copy()
            for row in swap.rows:
                if row < data.n_users:
                    after.add(items, *self._row(influence.values, row), sign=-1.0)
            for row in range(swap.cost):
                after.add(items, *self._row(swap.histories, row), sign=1.0)
            out[number] = influence.scored(items, values, after)
        return out

    @staticmethod
    def _row(matrix: sparse.csr_array, row: int) -> tuple[Ints, Floats]:
        part = slice(matrix.indptr[row], matrix.indptr[row + 1])
        return matrix.indices[part].astype(np.int64), matrix.data[part].astype(np.float64)
