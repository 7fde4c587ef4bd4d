"""What a model's scores would be if other users' data were different, without training it again.

One training for each of thousands of users takes days; the formulas here take about a tenth of a
millisecond each. Those of the linear and neighbour models are exact. Those of the factor models
are one step of what training would do: the item factors answer to the changed users, then the
target's own factors answer to the items; what other users do in turn is left out. They rank
candidates, which are then trained for (`ombud.probes.stability`), and the rank correlation of the
two is reported.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ombud.probes.distances import first_lists, probabilities

if TYPE_CHECKING:
    from ombud.data.interactions import Interactions
    from ombud.probes.others import UserSwap
    from ombud.systems.base import Progress


Floats = NDArray[np.float64]

_SWAPS_AT_ONCE = 256


class Prepared(Protocol):
    """The part of the answer for some swaps that does not depend on the target."""

    def scores(self, target: int) -> Floats:
        """Return the target's scores after each swap, swaps x items; NaN where there is none."""
        ...


class Influence(ABC):
    """Scores after swaps of other users' data, for one trained model."""

    exact: bool = False  # whether the scores are those of a model trained anew, up to rounding

    @abstractmethod
    def prepare(self, swaps: Sequence[UserSwap]) -> Prepared:
        """Return what can be computed for some swaps, whoever the target is."""

    @abstractmethod
    def today(self, target: int) -> Floats:
        """Return the target's scores as they are, one per item."""


def masked(scores: NDArray[Any], interactions: Interactions, target: int) -> Floats:
    """Return scores without those of the items that the target has seen (NaN there)."""
    out = np.array(scores, dtype=np.float64)
    matrix = interactions.matrix
    out[..., matrix.indices[matrix.indptr[target] : matrix.indptr[target + 1]]] = np.nan
    return out


@dataclass(frozen=True, eq=False)
class Prediction:
    """What swaps are predicted to do to targets."""

    # Swaps x targets: total variation between the distributions ``softmax(beta * score)`` over
    # unseen items. It answers to changes that leave the list as it is, so that it can rank. NaN
    # where a swap changes the target's own data.
    moved: Floats
    # Swaps x targets x places: the lists after each swap; empty when none were asked for.
    lists: NDArray[np.int32]
    today: NDArray[np.int32]  # targets x places: the lists as they are
    beta: float  # how strongly high scores were preferred


def sharpness(scores: Floats, n: int) -> float:
    """Return a beta at which the first n items usually have e^6 times the odds of an average one.

    `scores` is users x items, NaN for no score.
    """
    top = np.sort(np.where(np.isnan(scores), -np.inf, scores), axis=1)[:, -n:]
    known = np.isfinite(top).all(axis=1) & ~np.isnan(scores).all(axis=1)
    if not known.any():
        return 1.0
    spread = np.median(top[known].mean(axis=1) - np.nanmean(scores[known], axis=1))
    return float(6.0 / spread) if spread > 0 else 1.0


def predict(
    influence: Influence,
    interactions: Interactions,
    targets: Sequence[int],
    swaps: Sequence[UserSwap],
    *,
    n: int = 10,
    beta: float | None = None,
    lists: bool = False,
    progress: Progress | None = None,
) -> Prediction:
    """Return how far each swap is predicted to move each target.

    Parameters
    ----------
    influence
        Of the model trained on the interactions.
    interactions
        The data as they are.
    targets
        Rows of users.
    swaps
        Treatments.
    n
        The length of a list.
    beta
        How strongly high scores are preferred, in units of the model's scores; by default
        what `sharpness` says.
    lists
        Whether to predict the lists too.
    progress
        Called with (done, total, note).
    """
    scores = np.array([masked(influence.today(j), interactions, j) for j in targets])
    chosen = sharpness(scores, n) if beta is None else beta
    now = probabilities(scores, chosen).astype(np.float32)
    moved = np.full((len(swaps), len(targets)), np.nan)
    places = n if lists else 0
    listed = np.full((len(swaps), len(targets), places), -1, np.int32)
    for start in range(0, len(swaps), _SWAPS_AT_ONCE):
        part = swaps[start : start + _SWAPS_AT_ONCE]
        prepared = influence.prepare(part)
        here = slice(start, start + len(part))
        for t, j in enumerate(targets):
            after = masked(prepared.scores(j), interactions, j)
            touched = np.array([swap.touches(j) for swap in part])
            moved[here, t] = np.where(touched, np.nan, _moved(after, now[t], chosen))
            if lists:
                listed[here, t] = first_lists(after, n)
            if progress is not None:
                ranked = start * len(targets) + (t + 1) * len(part)
                progress(ranked, len(swaps) * len(targets), "Ranking other users by influence")
    today = first_lists(scores, n) if len(targets) else np.empty((0, n), np.int32)
    return Prediction(moved, listed, today, chosen)


def _moved(scores: Floats, now: NDArray[np.float32], beta: float) -> Floats:
    """Return the total variation of softmax distributions from one, in 32 bits: it only ranks."""
    known = ~np.isnan(scores)
    top = np.where(known, scores, -np.inf).max(axis=1, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    weights = np.where(known, beta * (scores - top), -np.inf).astype(np.float32)
    np.exp(weights, out=weights)
    total = weights.sum(axis=1, keepdims=True)
    weights /= np.where(total > 0, total, np.nan)
    weights -= now
    np.abs(weights, out=weights)
    return np.asarray(0.5 * weights.sum(axis=1, dtype=np.float64))


def rows_before(interactions: Interactions, swaps: Sequence[UserSwap]) -> sparse.csr_array:
    """Return the present histories of all users of some swaps, one row each; empty if planted."""
    matrix = interactions.matrix
    rows = np.array([row for swap in swaps for row in swap.rows], dtype=np.int64)
    old = rows < interactions.n_users
    if old.all():
        return sparse.csr_array(matrix[rows])
    kept = sparse.csr_array(matrix[rows[old]])
    counts = np.zeros(len(rows), np.int64)
    counts[old] = np.diff(kept.indptr)
    starts = np.concatenate([[0], np.cumsum(counts)])
    return sparse.csr_array((kept.data, kept.indices, starts), shape=(len(rows), matrix.shape[1]))


def stacked_after(swaps: Sequence[UserSwap], n_items: int) -> sparse.csr_array:
    """Return the new histories of all users of some swaps, one row each."""
    histories = [swap.histories for swap in swaps if swap.cost]
    if not histories:
        return sparse.csr_array(np.zeros((0, n_items), dtype=np.float32))
    counts = np.concatenate([np.diff(rows.indptr) for rows in histories])
    return sparse.csr_array(
        (
            np.concatenate([rows.data for rows in histories]),
            np.concatenate([rows.indices for rows in histories]),
            np.concatenate([[0], np.cumsum(counts)]),
        ),
        shape=(len(counts), n_items),
    )


def swap_of_row(swaps: Sequence[UserSwap]) -> NDArray[np.int64]:
    """Return for each user of some swaps, in their order, which swap it belongs to."""
    return np.repeat(np.arange(len(swaps)), [swap.cost for swap in swaps])


def history_of(interactions: Interactions, row: int) -> tuple[NDArray[np.int64], Floats]:
    """Return the items and values of one user."""
    matrix = interactions.matrix
    part = slice(matrix.indptr[row], matrix.indptr[row + 1])
    return matrix.indices[part].astype(np.int64), matrix.data[part].astype(np.float64)


def row_numbers(matrix: sparse.csr_array) -> NDArray[np.int64]:
    """Return the row of each stored entry."""
    return np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))


def count_changes(data: Interactions, swaps: Sequence[UserSwap]) -> tuple[Floats, Floats]:
    """Return by how much each swap changes the count, and the sum of values, of each item."""
    counts, sums = np.zeros((2, len(swaps), data.n_items))
    which = swap_of_row(swaps)
    for sign, rows in ((-1.0, rows_before(data, swaps)), (1.0, stacked_after(swaps, data.n_items))):
        place = (which[row_numbers(rows)], rows.indices)
        np.add.at(counts, place, sign)
        np.add.at(sums, place, sign * rows.data)
    return counts, sums


def centred_rows(rows: sparse.csr_array, explicit: bool) -> tuple[Floats, Floats, Floats]:
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
