"""RQ5: what it costs to steer lists towards a mix of identities."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pydantic import Field, model_validator

from ombud.audits.analysis import Analysis, AnalysisResult, Context, all_interactions
from ombud.audits.presets import Options
from ombud.data.exclusions import Exclusion
from ombud.data.recommendations import Recommendations
from ombud.errors import PlanError
from ombud.metrics.accuracy.ranking import MRR, NDCG, HitRate
from ombud.metrics.base import Outputs
from ombud.questions.authors.creators import (
    Creators,
    creators_of,
    exposure_of,
    lists_in,
    profile_users,
    shares,
)
from ombud.questions.authors.options import RerankingOptions
from ombud.questions.authors.shares import mean_share
from ombud.registry import analysis
from ombud.rng import generator
from ombud.stats.estimate import Estimate
from ombud.stats.losses import relative_loss
from ombud.stats.means import mean_estimate
from ombud.stats.statistics import Floats
from ombud.systems.base import Recommender
from ombud.systems.rerankers.balance import balance, calibrate_identities
from ombud.systems.rerankers.prefixes import with_minimums

if TYPE_CHECKING:
    from ombud.data.dataset import Dataset
    from ombud.data.interactions import Interactions


_EVERY = 1_000_000_000
LOSS = "creator-reranking/relative-loss"
"""The key of what a strategy costs."""


@analysis("creator-reranking")
class CreatorReranking(RerankingOptions, Analysis):
    """Rerank every system's lists, and give the balance after it and the loss of accuracy.

    The candidates are the lists themselves, as deep as they were asked for: no system is trained
    or asked again, and recorded lists can be reranked too. Accuracy is the reciprocal rank of the
    held-out item in a list of `accuracy_at`; the loss is paired over users. Below 50 hits there is
    no percentage: `details` has the counts.

    - **Unit**: the user.
    - **Undefined**: the loss, without held-out items or with fewer than 50 hits.
    - **Does not capture**: what users would do with the changed lists.

    References
    ----------
    Ekstrand and Kluver (2021), Exploring author gender in book rating and recommendation, UMUAI.
    """

    apart: bool = False
    """Whether accuracy is left to the analysis ``creator-accuracy``."""

    @model_validator(mode="after")
    def _lists_fit(self) -> CreatorReranking:
        if self.candidates != "all" and self.candidates < max(self.k, self.accuracy_at):
            raise ValueError(
                f"candidates is {self.candidates}; the list itself has "
                f"{max(self.k, self.accuracy_at)} positions"
            )
        return self

    @property
    def most(self) -> int:
        """How many candidates there are at most."""
        return _EVERY if self.candidates == "all" else self.candidates

    @property
    def depth(self) -> int:
        """How many places of a list are looked at; an audit asks for no more than there are."""
        return self.most

    def analyze(self, context: Context) -> AnalysisResult:
        """Return balance and loss of every system and strategy."""
        data, outputs, settings = context.data, context.outputs, context.settings
        creators = creators_of(data, self.attribute, self.registered_name)
        lists = lists_in(outputs, self.registered_name)
        assert data.interactions is not None  # creators_of has checked
        mixed, exclusions = _mixable(creators, data, self.fewest_items)
        if len(mixed.names) < 2:
            reason = f"fewer than two identities have {self.fewest_items} items"
            e = Estimate.undefined(
                reason_code="too-few-groups",
                metric="relative loss of MRR",
                key=LOSS,
                reason=reason,
                n=0,
                unit="user",
            )
            return AnalysisResult((e,), {}, tuple(exclusions))
        estimates: list[Estimate] = []
        rows: list[dict[str, Any]] = []
        for system, answered in lists.items():
            past = mixed.in_profiles(data.interactions, answered.users)
            before = answered.top(self.most)
            own = _Reranked(self, creators, mixed, data, system, before, settings.level)
            estimates += [] if self.apart else [own.accuracy("as recommended", before)]
            for strategy in self.strategies:
                after = self._changed(strategy, before, mixed, shares(past))
                estimates += own.told(strategy, after, past.sum(axis=1) >= self.least)
                rows.append(own.row(strategy, after))
                # A reranker adds to the exclusions of its lists; report only its own.
                new = after.exclusions[len(before.exclusions) :]
                exclusions += [
                    replace(e, where=f"{strategy}: {e.where}", system=system) for e in new
                ]
        table = pl.DataFrame(rows, infer_schema_length=None)
        return AnalysisResult(tuple(estimates), {"creator-reranking": table}, tuple(exclusions))

    def check(self, creators: Creators, data: Dataset) -> None:
        """Refuse what the identities at hand do not allow, before anything is trained."""
        mixed, _ = _mixable(creators, data, self.fewest_items)
        if len(mixed.names) >= 2:
            self._mix(mixed)
            if "FA*IR" in self.strategies:
                self._guarded(mixed)

    def _changed(
        self, strategy: str, lists: Recommendations, mixed: Creators, own: Floats
    ) -> Recommendations:
        n = max(self.k, self.accuracy_at)
        places = exposure_of(n) if self.exposure else None
        if strategy == "Calibrated":
            return calibrate_identities(lists, mixed.items, mixed.codes, own, n, places=places)
        if strategy == "FA*IR":
            g = self._guarded(mixed)
            share = float(self._mix(mixed)[g])
            return with_minimums(lists, mixed.items, mixed.codes, g, share, n)
        target = own if strategy == "GreedyReflect" else self._mix(mixed)
        take: Any = "single" if strategy == "SingleEQ" else "greedy"
        return balance(lists, mixed.items, mixed.codes, target, n, take=take, places=places)

    def _guarded(self, mixed: Creators) -> int:
        """Return the identity that FA*IR gives minimums: it knows one and the rest."""
        if not self.minimum_for and len(mixed.names) > 2:
            raise PlanError(
                "FA*IR gives one identity a minimum: name one of "
                f"{', '.join(mixed.names)} in minimum_for"
            )
        return mixed.index(self.minimum_for or mixed.chief)

    def _mix(self, mixed: Creators) -> Floats:
        if self.target is None:
            return np.full(len(mixed.names), 1 / len(mixed.names))
        if set(self.target) != set(mixed.names):
            raise PlanError(
                f"target names {', '.join(sorted(self.target))}; the identities with enough items "
                f"are {', '.join(sorted(mixed.names))}"
            )
        return np.array([self.target[name] for name in mixed.names], dtype=np.float64)


@dataclass(frozen=True, eq=False)
class _Reranked:
    """One system before and after."""

    asked: CreatorReranking
    creators: Creators
    mixed: Creators
    data: Dataset
    system: str
    before: Recommendations
    level: float

    def accuracy(self, strategy: str, lists: Recommendations) -> Estimate:
        """Return the mean reciprocal rank after a strategy."""
        about: dict[str, Any] = {
            "metric": f"MRR@{self.asked.accuracy_at}",
            "key": "creator-reranking/mrr",
            "system": self.system,
            "group": strategy,
            "unit": "user",
            "level": self.level,
        }
        found = self._reciprocal(lists)
        if found is None:
            return Estimate.undefined(
                reason_code="no-units", reason="nothing is held out", n=0, **about
            )
        hits = {"hits": int(np.count_nonzero(found[1])), "strategy": strategy}
        return mean_estimate(found[1], details=hits, **about)

    def told(
        self, strategy: str, after: Recommendations, enough: NDArray[np.bool_]
    ) -> list[Estimate]:
        """Return balance, accuracy and loss of one strategy."""
        users = np.asarray(after.users)
        sample = profile_users(self.data, users) & enough
        counts = self.creators.in_lists(after, self.asked.k)[sample]
        values = shares(counts)
        seen = shares(self.creators.in_lists(after, self.asked.k, exposure_of(self.asked.k)))
        details = {
            "strategy": strategy,
            "candidates": min(self.asked.most, int(self.before.items.shape[1])),
            # Items of unknown identity are always allowed, so they move up.
            "known_places": int(counts.sum()),
            "places": int(np.minimum(after.lengths[sample], self.asked.k).sum()),
        }
        about: dict[str, Any] = {"system": self.system, "level": self.level}
        found = []
        for g, name in enumerate(self.creators.names):
            own = seen[sample, g]
            own = own[~np.isnan(own)]
            said = details | {"exposure_mean": float(own.mean()) if len(own) else None}
            found.append(mean_share(values[:, g], "reranked", name, said, group=strategy, **about))
        if self.asked.apart:
            return found
        return [*found, self.accuracy(strategy, after), self._loss(strategy, after)]

    def _loss(self, strategy: str, after: Recommendations) -> Estimate:
        name: dict[str, Any] = {
            "metric": "relative loss of MRR",
            "key": LOSS,
            "group": strategy,
            "unit": "user",
        }
        about: dict[str, Any] = {"system": self.system, "level": self.level, "against": self.system}
        first, second = self._reciprocal(self.before), self._reciprocal(after)
        if first is None or second is None or not len(first[1]):
            reason = "no user has something held out"
            return Estimate.undefined(
                reason_code="no-units", reason=reason, n=0, kind="ratio", **name, **about
            )
        e = relative_loss(first[1], second[1], **name, **about)
        return e.replace(details={**e.details, "strategy": strategy})

    def _reciprocal(self, lists: Recommendations) -> tuple[NDArray[Any], Floats] | None:
        if self.data.test is None:
            return None
        # A list that a strategy emptied counts as a miss, so both have the same users.
        rows = MRR(k=self.asked.accuracy_at, no_list="zero").measure(lists, self.data)
        return rows.ids, np.asarray(rows.columns["value"][:, 0], dtype=np.float64)

    def row(self, strategy: str, after: Recommendations) -> dict[str, Any]:
        """Return how many lists became short or stayed as they were."""
        n = max(self.asked.k, self.asked.accuracy_at)
        same = (after.items[:, :n] == self.before.top(n).items[:, : after.items.shape[1]]).all(
            axis=1
        )
        return {
            "system": self.system,
            "strategy": strategy,
            "lists": len(after),
            "unchanged": int(np.count_nonzero(same)),
            "short": int(np.count_nonzero(after.lengths < np.minimum(n, self.before.lengths))),
            "candidates": int(np.median(self.before.lengths)) if len(after) else 0,
        }


def _mixable(creators: Creators, data: Dataset, fewest: int) -> tuple[Creators, list[Exclusion]]:
    """Return the identities with enough items on the platform; the others count as unknown."""
    assert data.interactions is not None  # creators_of has checked
    items = np.bincount(
        creators.on(data.interactions.items) + 1, minlength=len(creators.names) + 1
    )[1:]
    kept = np.flatnonzero(items >= fewest)
    lost = np.flatnonzero(items < fewest)
    new = np.full(len(creators.names) + 1, -1, dtype=np.int64)
    new[kept] = np.arange(len(kept))
    names = tuple(creators.names[g] for g in kept)
    mixed = Creators(
        creators.attribute, names, creators.items, new[creators.codes], creators.status
    )
    reason = f"fewer than {fewest} items: the identity takes no part in the mix of lists"
    exclusions = [
        Exclusion(f"reranking: {creators.names[g]}", "items", int(items[g]), reason) for g in lost
    ]
    return mixed, exclusions


def hold_one_out(
    interactions: Interactions, taken: NDArray[np.bool_], n: int, seed: int
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return up to `n` users with at least 5 interactions, and which entry of each is held out.

    Users that are `taken` are not drawn.
    """
    sizes = np.diff(interactions.matrix.indptr)
    others = np.flatnonzero((sizes >= 5) & ~taken)
    rng = generator(seed, "authors", "accuracy")
    second = np.sort(rng.permutation(others)[:n])
    held = np.zeros(interactions.matrix.nnz, dtype=bool)
    starts = interactions.matrix.indptr[second]
    held[starts + np.floor(rng.random(len(second)) * sizes[second]).astype(np.int64)] = True
    return second, held


@analysis("creator-accuracy")
class CreatorAccuracy(CreatorReranking):
    """Accuracy, and what strategies cost, of systems that are trained again for it.

    The audited lists may come from systems trained on all interactions. For accuracy, one
    interaction of each of some further users is held out, systems are trained again on the rest,
    and their lists for these users are reranked (Ekstrand and Kluver do so).

    - **Unit**: the user.
    - **Undefined**: as in ``creator-reranking``. Systems that cannot be trained are counted.
    - **Does not capture**: the audited lists themselves, which come from another training.

    References
    ----------
    Ekstrand and Kluver (2021), Exploring author gender in book rating and recommendation, UMUAI.
    """

    accuracy_users: int = Field(default=5000, ge=1)
    """The number of users with one interaction held out."""

    asks_systems: ClassVar[bool] = True

    @property
    def depth(self) -> int:
        """No list of the audit itself is looked at."""
        return 1

    def analyze(self, context: Context) -> AnalysisResult:
        """Hold out, train again, and measure."""
        data, name = context.data, self.registered_name
        whole = all_interactions(data, name)
        taken = np.zeros(whole.n_users, dtype=bool)
        audited = next(iter(lists_in(context.outputs, name).values())).users
        taken[whole.users.codes(np.asarray(audited))] = True
        second, held = hold_one_out(whole, taken, self.accuracy_users, context.settings.seed)
        every = {n: s for n, s in context.systems.items() if isinstance(s, Recommender)}
        gone: tuple[Exclusion, ...] = ()
        if lost := sum(not s.trainable for s in every.values()):
            reason = "ombud does not train what was recorded or fitted elsewhere"
            gone = (Exclusion(name, "systems", lost, reason, len(every)),)
        trained = {n: s for n, s in every.items() if s.trainable}
        if not len(second) or not trained:
            return AnalysisResult((), exclusions=gone)
        train, test = whole.select(~held), replace(whole.select(held), exclusions=())
        apart = replace(data, interactions=train, test=test)
        users = whole.users.take(second)
        n = min(self.most, whole.n_items)
        lists: dict[str, Outputs] = {}
        for system, own in trained.items():
            again = deepcopy(own)
            again.bind(apart)
            again.fit(train, progress=context.progress)
            lists[system] = again.recommend(np.asarray(users), n)
        found = super().analyze(replace(context, data=apart, outputs=lists))
        kept = [e for e in found.estimates if e.key in {LOSS, "creator-reranking/mrr"}]
        for metric in (HitRate, NDCG):
            measure = metric(k=self.accuracy_at, no_list="zero")
            for system, some in lists.items():
                values = measure.measure(some, apart).columns["value"][:, 0]
                about = {"key": f"{name}/{measure.registered_name}", "system": system}
                kept.append(
                    mean_estimate(
                        values, metric=measure.title, unit="user",
                        level=context.settings.level, **about,
                    )
                )  # fmt: skip
        return AnalysisResult(tuple(kept), {}, (*gone, *found.exclusions))


TUNED = "creator-tuning/value"
"""The key of what a search reached."""


@analysis("creator-tuning")
class CreatorTuning(Options, Analysis):
    """The best value that ``ombud tune`` found for each system, to be set beside the audit's own.

    Nothing is measured here. The preset ``authors`` adds it where it takes tuned parameters.

    - **Unit**: the user of the tuning sample.
    - **Undefined**: never.
    - **Does not capture**: that the best of many trials flatters; there is no interval.
    """

    metric: str = ""
    """What the search maximized, such as ``mrr@100``."""
    values: dict[str, float] = Field(default_factory=dict)
    """The best value of each system."""

    def analyze(self, context: Context) -> AnalysisResult:
        """Return the values as they were found."""
        method = "none: the best of many trials, on other users"
        return AnalysisResult(
            tuple(
                Estimate(
                    metric=f"{self.metric} at tuning", key=TUNED, value=float(value),
                    interval=None, method=method, n=0, system=system, unit="user",
                    details={"metric": self.metric},
                )
                for system, value in self.values.items()
            )
        )  # fmt: skip
