"""User-kNN: an edit changes the person's own row only, so training again is a fold-in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ombud.probes.edits import EditSpace
from ombud.probes.influence import Influence, centred_rows, history_of, row_numbers
from ombud.probes.models.base import ModelBox, SingleEdits, settled_edits
from ombud.systems.recommenders.user_knn import UserKNN

if TYPE_CHECKING:
    from ombud.probes.others import UserSwap

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class UserUpdate:
    """User-kNN trained on the data with a person's history replaced, by the model's own kernel."""

    model: UserKNN
    close: bool = False

    def box(self, own: int) -> ModelBox:
        """Return the scores after edits of one person's history, the model trained again."""
        return ModelBox(self.model, own)

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
        """Evaluate all single edits for some targets."""
        return settled_edits(self.box(own), space, targets, k=k, beta=beta, shown=shown)


class UserKNNInfluence(Influence):
    """User-kNN after swaps: a target's similarity to the users who stay does not change.

    For each item the nearest users who have it are kept in order, as many more than the model
    uses as users may leave; a swap takes users out of these rows and puts others in.
    """

    exact = True

    def __init__(self, model: UserKNN) -> None:
        self.model, self.data = model, model.interactions
        self.values, self.means, self.scale = centred_rows(self.data.matrix, self.data.explicit)
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
        values, _, scale = centred_rows(swap.histories, data.explicit)
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
