"""Rerankers towards a mix of creators' identities: equal, any target, or the user's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from ombud.data.dataset import Dataset
from ombud.data.exclusions import Exclusion
from ombud.data.ids import Ids, Vocabulary
from ombud.data.interactions import Interactions
from ombud.data.recommendations import Recommendations
from ombud.errors import PlanError
from ombud.registry import recommender
from ombud.stats.statistics import Floats
from ombud.systems.base import Progress, Recommender
from ombud.systems.rerankers.base import Reranker
from ombud.systems.rerankers.calibrate import relevance_of, reordered
from ombud.systems.rerankers.greedy import greedy_order
from ombud.systems.rerankers.quota import ABSENT, UNKNOWN_IDENTITY, Pass, choose_by_quota

BALANCE = "balanced lists"
"""Where the exclusions say which lists ended early or were left as they are."""

Balance: TypeAlias = Literal["equal", "profile"] | Mapping[str, float]
"""The target mix: all the same, each user's own, or a share for every identity."""


def identity_codes(
    lists: Recommendations, items: Vocabulary, codes: NDArray[np.integer]
) -> NDArray[np.int64]:
    """Return the identity at every place of every list.

    `codes` has the identity of each of `items`, `UNKNOWN_IDENTITY` where it is not known; an item
    of a list that is not among them is unknown too.
    """
    if len(codes) != len(items):
        raise PlanError(f"{len(codes)} codes for {len(items)} items")
    padded = np.append(np.asarray(codes, dtype=np.int64), [UNKNOWN_IDENTITY, ABSENT])
    # -2: not among the items; -1: the list has ended.
    return padded[lists.in_catalogue(items)]


def profile_mix(
    interactions: Interactions,
    users: Ids,
    items: Vocabulary,
    codes: NDArray[np.integer],
    identities: int,
) -> Floats:
    """Return users x identities: shares among items of known identity in users' histories.

    NaN for a user without any. The interactions are those that the system was trained on: a
    held-out item is not among them.
    """
    rows = interactions.users.codes(users)
    found = items.codes(interactions.items.arrow)
    known = np.append(np.asarray(codes, dtype=np.int64), UNKNOWN_IDENTITY)[found]
    columns = np.flatnonzero(known >= 0)
    member = sparse.csr_array(
        (np.ones(len(columns)), (columns, known[columns])), shape=(len(known), identities)
    )
    seen = sparse.csr_array(interactions.matrix)
    there = sparse.csr_array((np.ones(seen.nnz), seen.indices, seen.indptr), shape=seen.shape)
    counts = np.zeros((len(rows), identities))
    counts[rows >= 0] = (there[rows[rows >= 0]] @ member).toarray()
    whole = counts.sum(axis=1, keepdims=True)
    shares: Floats = np.full(counts.shape, np.nan)
    np.divide(counts, whole, out=shares, where=whole > 0)
    return shares


def balance(
    lists: Recommendations,
    items: Vocabulary,
    codes: NDArray[np.integer],
    target: ArrayLike,
    n: int | None = None,
    *,
    take: Pass = "greedy",
    places: ArrayLike | None = None,
) -> Recommendations:
    """Return lists whose every prefix is close to a target mix; see `choose_by_quota`.

    Lists that ended early because no candidate was allowed, and lists that were left as they
    are because their user has no target, are counted in the exclusions.

    Parameters
    ----------
    lists
        Candidates: the full rankings, or as much of them as there is.
    items, codes
        The identity of each item, as in `identity_codes`.
    target, take, places
        As in `choose_by_quota`.
    n
        How many places; default, as many as there are candidates.
    """
    n = lists.items.shape[1] if n is None else n
    found = choose_by_quota(
        identity_codes(lists, items, codes), target, n, take=take, places=places
    )
    lost = []
    for what, count, reason in (
        ("full lists", found.ended_early, "no candidate was left that the target mix allows"),
        ("changes", found.untouched, "the user has no target mix; the list is left as it is"),
    ):
        if count.any():
            lost.append(Exclusion(BALANCE, what, int(count.sum()), reason, len(lists)))
    return reordered(lists, found.order, tuple(lost))


def calibrate_identities(
    lists: Recommendations,
    items: Vocabulary,
    codes: NDArray[np.integer],
    target: ArrayLike,
    n: int | None = None,
    *,
    strength: float = 0.5,
    alpha: float = 0.01,
    places: ArrayLike | None = None,
) -> Recommendations:
    r"""Return lists traded between relevance and a target mix (Steck's calibration).

    Places are filled one after the other with the candidate that maximises
    :math:`(1 - \lambda) r_i - \lambda KL(p, q)`, with r the relevance within the list and q the
    mix of what is in it, unknown identities not counted.

    Parameters
    ----------
    lists, items, codes, target, n
        As in `balance`; a user whose target is NaN keeps their list.
    strength
        Lambda: 0 keeps the order, 1 looks at the mix alone.
    alpha
        How much of the target is mixed into q, so that no share is zero.
    places
        The exposure of each place; default, all count the same.

    References
    ----------
    Steck (2018), Calibrated recommendations, RecSys.
    """
    if not 0 <= strength <= 1:
        raise PlanError(f"strength is {strength}; it must be 0 to 1")
    n = min(lists.items.shape[1] if n is None else n, lists.items.shape[1])
    found = identity_codes(lists, items, codes)
    aim = np.asarray(target, dtype=np.float64)
    aim = np.tile(aim, (len(lists), 1)) if aim.ndim == 1 else aim
    identities = aim.shape[1]
    if found.max(initial=0) >= identities or len(aim) != len(lists):
        raise PlanError(f"target has shape {np.shape(target)}; it fits neither lists nor codes")
    there = ~np.isnan(aim).any(axis=1)
    # One row of weights for each identity, and one without any.
    weights = sparse.csr_array(
        np.vstack([np.eye(identities, dtype=np.float32), np.zeros(identities, dtype=np.float32)])
    )
    order = np.tile(np.arange(n), (len(lists), 1))
    order[there] = greedy_order(
        relevance_of(lists)[there],
        np.where(found >= 0, found, identities).astype(np.int32)[there],
        weights,
        aim[there],
        n=n,
        strength=strength,
        cost="mix",
        alpha=alpha,
        places=np.ones(n) if places is None else np.asarray(places, dtype=np.float64)[:n],
    )
    lost: tuple[Exclusion, ...] = ()
    if not there.all():
        reason = "the user has no target mix; the list is left as it is"
        lost = (Exclusion(BALANCE, "changes", int((~there).sum()), reason, len(lists)),)
    return reordered(lists, order, lost)


class BalancedReranker(Reranker):
    """A recommender whose lists are kept close to a mix of identities.

    The inner recommender, recorded or live, is asked for `candidates` times the length of the
    list; the whole ranking is the best it can be asked for.

    Parameters
    ----------
    inner
        The recommender; or, as a plan has it, its `type` and arguments.
    items, codes
        The identity of each item; `UNKNOWN_IDENTITY` where it is not known.
    identities
        Their names, in the order of the codes.
    target
        ``equal``, ``profile`` (each user's own mix; a user without one keeps their list), or a
        share for every identity.
    take
        ``single``: SingleEQ's one pass; ``greedy``: GreedyEQ, and GreedyReflect with ``profile``.
    exposure
        Whether places count by their exposure, 1 / log2(rank + 1), or all the same.
    candidates
        How many times the length of the list the inner recommender is asked for.
    name
        The system's name in the report.
    """

    def __init__(
        self,
        inner: Recommender | Mapping[str, Any],
        items: Vocabulary,
        codes: NDArray[np.integer],
        identities: Sequence[str],
        target: Balance = "equal",
        take: Pass = "greedy",
        exposure: bool = False,
        candidates: int = 20,
        name: str = "",
    ) -> None:
        super().__init__(inner, name)
        if candidates < 1:
            raise PlanError(f"candidates is {candidates}; at least 1 is needed")
        if len(identities) < 2 or len(set(identities)) != len(identities):
            raise PlanError("a mix needs two or more identities with different names")
        if isinstance(target, Mapping) and set(target) != set(identities):
            raise PlanError(f"target names {sorted(target)}; identities are {sorted(identities)}")
        if isinstance(target, str) and target not in {"equal", "profile"}:
            raise PlanError(f"target is {target!r}; equal, profile or a share for each identity")
        self.items, self.codes, self.identities = items, codes, tuple(identities)
        self.target: Balance = target
        self.take: Pass = take
        self.exposure, self.candidates = exposure, candidates
        self.interactions: Interactions | None = None

    def bind(self, data: Dataset) -> Self:
        """Take users' histories from the data."""
        self.data = data
        self.interactions = data.interactions
        self.inner.bind(data)
        return self

    def fit(self, interactions: Interactions, *, progress: Progress | None = None) -> Self:
        """Train the inner recommender; profiles are then those it was trained on."""
        self.interactions = interactions
        return super().fit(interactions, progress=progress)

    def recommend(self, users: Ids, n: int, exclude_seen: bool = True) -> Recommendations:
        """Return n items for each user, close to the target mix at every length."""
        lists = self.inner.recommend(users, n * self.candidates, exclude_seen)
        places = 1 / np.log2(np.arange(n) + 2) if self.exposure else None
        return balance(
            lists, self.items, self.codes, self._aim(users), n, take=self.take, places=places
        )

    def _aim(self, users: Ids) -> Floats:
        count = len(self.identities)
        if self.target == "equal":
            return np.full(count, 1 / count)
        if isinstance(self.target, Mapping):
            return np.array([self.target[name] for name in self.identities], dtype=np.float64)
        if self.interactions is None:
            raise PlanError(f"{self.name} needs interactions for the profiles; bind or fit it")
        return profile_mix(self.interactions, users, self.items, self.codes, count)


@recommender("balanced")
class CreatorReranker(BalancedReranker):
    """A recommender whose lists are kept close to a mix of creators' identities.

    Identities come from the table of items of the audited data; see `BalancedReranker`.

    Parameters
    ----------
    inner
        The recommender; or, as a plan has it, its `type` and arguments.
    attribute
        Which attribute of the items; default, the only one.
    target, take, exposure, candidates, name
        As in `BalancedReranker`.
    """

    def __init__(
        self,
        inner: Recommender | Mapping[str, Any],
        attribute: str = "",
        target: Balance = "equal",
        take: Pass = "greedy",
        exposure: bool = False,
        candidates: int = 20,
        name: str = "",
    ) -> None:
        # The identities are known when the data is; two names stand in for them until then.
        nobody = Vocabulary(np.empty(0, dtype=np.int64)), np.empty(0, dtype=np.int64)
        super().__init__(inner, *nobody, ("", "-"), "equal", take, exposure, candidates, name)
        self.attribute = attribute
        self.target = target

    def bind(self, data: Dataset) -> Self:
        """Take identities and histories from the data."""
        if data.items is None:
            raise PlanError(f"{self.name} needs a table of items; the data has none")
        known = data.items.descriptive
        if self.attribute not in known and (self.attribute or len(known) > 1):
            raise PlanError(f"{self.name}: name one attribute of the items: {', '.join(known)}")
        values = data.items.values[self.attribute or known[0]]
        there = np.array([value is not None for value in values], dtype=bool)
        found, codes = np.unique(values[there].astype(str), return_inverse=True)
        if len(found) < 2:
            raise PlanError(f"{self.name}: a mix needs two identities; items have {len(found)}")
        if isinstance(self.target, Mapping) and set(self.target) != set(found):
            raise PlanError(
                f"{self.name}: target names {', '.join(sorted(self.target))}; identities are "
                f"{', '.join(found)}"
            )
        self.codes = np.full(len(values), UNKNOWN_IDENTITY, dtype=np.int64)
        self.codes[there] = codes
        self.items = data.items.items
        self.identities = tuple(str(name) for name in found)
        return super().bind(data)
