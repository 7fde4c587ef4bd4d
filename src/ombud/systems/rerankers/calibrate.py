"""Calibrated reranking: towards the mix of a user's own history, or towards a target share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ombud.data.exclusions import Exclusion
from ombud.data.ids import Ids
from ombud.data.interactions import Interactions
from ombud.data.labels import Labels, LabelState
from ombud.data.recommendations import Recommendations
from ombud.errors import PlanError
from ombud.metrics.calibration import item_mixes
from ombud.metrics.history import History, Weighting, history_matrix
from ombud.registry import recommender
from ombud.stats.statistics import Floats
from ombud.systems.base import Recommender
from ombud.systems.rerankers.base import Reranker
from ombud.systems.rerankers.greedy import Cost, greedy_order

Target = Mapping[str, float] | Literal["history"]
"""What lists are moved towards: the user's own mix, or a share for each of some labels."""


def calibrate(
    lists: Recommendations,
    labels: Labels,
    interactions: Interactions | None = None,
    *,
    target: Target = "history",
    strength: float = 0.5,
    n: int | None = None,
    history: History = "relevant",
    weighting: Weighting = "share",
    alpha: float = 0.01,
) -> Recommendations:
    r"""Return lists reordered, and cut, so that their labels come nearer to a target.

    Places are filled one after the other with the candidate that maximises
    :math:`(1 - \lambda) r_i - \lambda D`, with :math:`r_i` the relevance, 0 to 1 within each list
    (its score, rescaled; its rank where there are no scores), and D the divergence of the list
    from the target: Steck's, as in the metric ``miscalibration``, when the target is the history;
    the sum over the named labels of :math:`p \log(p / q) + (1 - p) \log((1 - p)/(1 - q))`,
    when it is a share for each. Unknown labels count as *no*.

    Parameters
    ----------
    lists
        Candidates: longer lists than wanted.
    labels
        Labels of the items.
    interactions
        Users' histories, for ``target="history"``. A user without one keeps their list.
    target
        ``"history"``, or the share of lists that each of some labels should have.
    strength
        Lambda: 0 keeps the order, 1 looks at the target alone.
    n
        How many places; default, as many as there are candidates.
    history, weighting, alpha
        As in ``miscalibration``.

    References
    ----------
    Steck (2018), Calibrated recommendations, RecSys.
    """
    if not 0 <= strength <= 1:
        raise PlanError(f"strength is {strength}; it must be 0 to 1")
    n = lists.items.shape[1] if n is None else n
    codes = lists.in_catalogue(labels.items)
    # Places that have ended stand for an item without labels; they are never chosen.
    rows = np.where(codes < 0, np.int32(len(labels.items)), codes)
    if target == "history":
        if interactions is None:
            raise PlanError("target='history' needs interactions")
        cost: Cost = "mix"
        weights = item_mixes(labels)
        aim, there = _history(lists.users, labels, interactions, weights, history)
    else:
        cost = "share"
        weights, aim = _shares(labels, target, len(lists))
        there = np.ones(len(lists), dtype=bool)
    width = min(n, lists.items.shape[1])
    places = np.ones(width) if weighting == "share" else 1 / np.log2(np.arange(width) + 2)
    order = np.tile(np.arange(width), (len(lists), 1))
    order[there] = greedy_order(
        relevance_of(lists)[there],
        rows[there],
        weights,
        aim[there],
        n=width,
        strength=strength,
        cost=cost,
        alpha=alpha,
        places=places,
    )
    return reordered(lists, order)


def reordered(
    lists: Recommendations, order: NDArray[np.int64], lost: tuple[Exclusion, ...] = ()
) -> Recommendations:
    """Return lists made of places of others.

    `order` is users x places: positions in the candidates, -1 where a list has ended. `lost` is
    counted beside what the lists already count.
    """
    taken = np.where(order < 0, 0, order)
    items = np.where(order < 0, np.int32(-1), np.take_along_axis(lists.items, taken, axis=1))
    scores = None
    if lists.scores is not None:
        moved = np.take_along_axis(lists.scores, taken, axis=1)
        scores = np.where(items < 0, np.float32("nan"), moved)
    return Recommendations(lists.users, items, lists.catalogue, scores, (*lists.exclusions, *lost))


def relevance_of(lists: Recommendations) -> Floats:
    """Return 0 to 1 within each list, -inf where it has ended."""
    used = lists.items >= 0
    width = lists.items.shape[1]
    if lists.scores is None or not np.isfinite(lists.scores[used]).all():
        value = np.tile(1 - np.arange(width) / max(width, 1), (len(lists), 1))
    else:
        filled = np.where(used, lists.scores, np.nan).astype(np.float64)
        low = np.fmin.reduce(filled, axis=1, keepdims=True)
        spread = np.fmax.reduce(filled, axis=1, keepdims=True) - low
        value = np.divide(filled - low, spread, out=np.ones_like(filled), where=spread > 0)
    return np.where(used, value, -np.inf)


def _history(
    users: NDArray[Any],
    labels: Labels,
    interactions: Interactions,
    weights: sparse.csr_array,
    history: History,
) -> tuple[Floats, NDArray[np.bool_]]:
    """Return the mix of each user's history, and who has one."""
    codes = interactions.users.codes(users)
    there = codes >= 0
    past = history_matrix(interactions, history, codes[there], labels.items)
    result = np.asarray((past @ weights).todense(), dtype=np.float64)
    whole = result.sum(axis=1)
    aim = np.zeros((len(codes), weights.shape[1]))
    aim[there] = np.divide(result, whole[:, None], where=whole[:, None] > 0, out=result)
    there[there] = whole > 0
    return aim, there


def _shares(
    labels: Labels, target: Mapping[str, float], users: int
) -> tuple[sparse.csr_array, Floats]:
    if not target:
        raise PlanError("target names no label; give a share for at least one")
    wrong = {name: share for name, share in target.items() if not 0 <= share <= 1}
    if wrong:
        raise PlanError(f"target shares are {wrong}; a share is 0 to 1")
    chosen = labels.select(tuple(target))
    yes = (chosen.states == LabelState.YES).astype(np.float32)
    weights = sparse.csr_array(np.vstack([yes, np.zeros((1, yes.shape[1]), dtype=np.float32)]))
    return weights, np.tile(np.array(list(target.values()), dtype=np.float64), (users, 1))


@recommender("calibrated")
class CalibratedReranker(Reranker):
    """A recommender whose lists are moved towards a mix of labels; see `calibrate`.

    Parameters
    ----------
    inner
        The recommender; or, as a plan has it, its `type` and arguments.
    target, strength, history, weighting, alpha
        As in `calibrate`.
    candidates
        The inner recommender is asked for this many times the length of the list.
    name
        The system's name in the report.
    """

    def __init__(
        self,
        inner: Recommender | Mapping[str, Any],
        target: Target = "history",
        strength: float = 0.5,
        candidates: int = 3,
        history: History = "relevant",
        weighting: Weighting = "share",
        alpha: float = 0.01,
        name: str = "",
    ) -> None:
        super().__init__(inner, name)
        if candidates < 1:
            raise PlanError(f"candidates is {candidates}; at least 1 is needed")
        if not 0 <= strength <= 1:
            raise PlanError(f"strength is {strength}; it must be 0 to 1")
        self.candidates = candidates
        self.options: dict[str, Any] = {
            "target": target,
            "strength": strength,
            "history": history,
            "weighting": weighting,
            "alpha": alpha,
        }

    def recommend(self, users: Ids, n: int, exclude_seen: bool = True) -> Recommendations:
        """Return n items for each user, calibrated."""
        data = self._data()
        assert data.labels is not None  # bind has checked
        lists = self.inner.recommend(users, n * self.candidates, exclude_seen)
        return calibrate(lists, data.labels, data.interactions, n=n, **self.options)
