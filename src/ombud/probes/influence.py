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
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ombud.probes.distances import probabilities

if TYPE_CHECKING:
    from ombud.data.interactions import Interactions
    from ombud.probes.others import UserSwap
    from ombud.systems.base import Progress

__all__ = [
    "Influence",
    "Prepared",
    "history_of",
    "influence_of",
    "masked",
    "predicted_distances",
    "row_numbers",
    "rows_before",
    "stacked_after",
    "swap_of_row",
]

Floats = NDArray[np.float64]

_SWAPS_AT_ONCE = 256


class Prepared(Protocol):
    """The part of the answer for some swaps that does not depend on the target."""

    def scores(self, target: int) -> Floats:
        """Return the target's scores after each swap, swaps x items; NaN where there is none."""
        ...


class Influence(ABC):
    """Scores after swaps of other users' data, for one trained model.

    Parameters
    ----------
    exact
        Whether the scores are those of a model trained anew, up to rounding.
    """

    exact: bool = False

    @abstractmethod
    def prepare(self, swaps: Sequence[UserSwap]) -> Prepared:
        """Return what can be computed for some swaps, whoever the target is."""

    @abstractmethod
    def today(self, target: int) -> Floats:
        """Return the target's scores as they are, one per item."""


def influence_of(model: Any) -> Influence | None:
    """Return the influence of a trained model, or None where there is no formula for it.

    Parameters
    ----------
    model
        An explicit or implicit ALS, SVD, EASE, item-kNN, user-kNN or popularity model of ombud.
    """
    from ombud.probes._influence_factors import ExplicitInfluence, ImplicitInfluence
    from ombud.probes._influence_linear import EaseInfluence, PopularInfluence
    from ombud.probes._influence_neighbours import ItemKNNInfluence, UserKNNInfluence
    from ombud.systems.recommenders import (
        EASE,
        SVD,
        ExplicitALS,
        ImplicitALS,
        ItemKNN,
        Popular,
        UserKNN,
    )

    for kind, influence in (
        (ExplicitALS, ExplicitInfluence),
        (SVD, ExplicitInfluence),
        (ImplicitALS, ImplicitInfluence),
        (EASE, EaseInfluence),
        (UserKNN, UserKNNInfluence),
        (ItemKNN, ItemKNNInfluence),
        (Popular, PopularInfluence),
    ):
        if type(model) is kind:
            found: Influence = influence(model)
            return found
    return None


def masked(scores: NDArray[Any], interactions: Interactions, target: int) -> Floats:
    """Return scores without those of the items that the target has seen (NaN there)."""
    out = np.array(scores, dtype=np.float64)
    matrix = interactions.matrix
    out[..., matrix.indices[matrix.indptr[target] : matrix.indptr[target + 1]]] = np.nan
    return out


def predicted_distances(
    influence: Influence,
    interactions: Interactions,
    targets: Sequence[int],
    swaps: Sequence[UserSwap],
    *,
    beta: float = 4.0,
    progress: Progress | None = None,
) -> Floats:
    """Return how far each swap is predicted to move each target, swaps x targets.

    The measure is the total variation between the distributions ``softmax(beta * score)`` over
    unseen items: it answers to changes that leave the list as it is, so that it can rank.

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
    beta
        How strongly high scores are preferred, in units of the model's scores.
    progress
        Called with (done, total, note).

    Returns
    -------
    array
        NaN where a swap changes the target's own data.
    """
    out = np.full((len(swaps), len(targets)), np.nan)
    now = [probabilities(masked(influence.today(j), interactions, j)[None], beta) for j in targets]
    for start in range(0, len(swaps), _SWAPS_AT_ONCE):
        part = swaps[start : start + _SWAPS_AT_ONCE]
        prepared = influence.prepare(part)
        for t, j in enumerate(targets):
            after = masked(prepared.scores(j), interactions, j).astype(np.float32)
            gone = 0.5 * np.abs(probabilities(after, beta) - now[t]).sum(axis=1)
            touched = np.array([swap.touches(j) for swap in part])
            out[start : start + len(part), t] = np.where(touched, np.nan, gone)
        if progress is not None:
            progress(min(start + len(part), len(swaps)), len(swaps), "candidates ranked")
    return out


def rows_before(interactions: Interactions, swaps: Sequence[UserSwap]) -> sparse.csr_array:
    """Return the present histories of all users of some swaps, one row each; empty if planted."""
    matrix = interactions.matrix
    rows = np.array([row for swap in swaps for row in swap.rows], dtype=np.int64)
    old = rows < interactions.n_users
    if old.all():
        return sparse.csr_array(matrix[rows])
    found = sparse.lil_array((len(rows), matrix.shape[1]), dtype=matrix.dtype)
    result = sparse.csr_array(found)
    if old.any():
        counts = np.zeros(len(rows), np.int64)
        kept = sparse.csr_array(matrix[rows[old]])
        counts[old] = np.diff(kept.indptr)
        starts = np.concatenate([[0], np.cumsum(counts)])
        result = sparse.csr_array(
            (kept.data, kept.indices, starts), shape=(len(rows), matrix.shape[1])
        )
    return result


def stacked_after(swaps: Sequence[UserSwap], n_items: int) -> sparse.csr_array:
    """Return the new histories of all users of some swaps, one row each."""
    histories = [swap.histories for swap in swaps if swap.cost]
    if not histories:
        return sparse.csr_array((0, n_items), dtype=np.float32)
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
