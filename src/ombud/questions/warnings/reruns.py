"""Second runs: retraining on all interactions, and accuracy over all users."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from ombud import registry
from ombud.audits.analysis import Analysis, AnalysisResult, Context, all_interactions
from ombud.audits.presets import Options
from ombud.data.exclusions import Exclusion
from ombud.data.ids import Vocabulary
from ombud.data.interactions import Interactions
from ombud.data.predictions import Predictions
from ombud.data.recommendations import Recommendations
from ombud.data.splits import per_user
from ombud.errors import PlanError
from ombud.metrics.accuracy.held_out import Relevance
from ombud.metrics.accuracy.ratings import RMSE
from ombud.metrics.base import Metric, Outputs, Rows
from ombud.metrics.engine.estimate import estimate_metric
from ombud.metrics.engine.list_depth import with_list_depth
from ombud.questions.warnings.amplification.metric import Form
from ombud.questions.warnings.amplification.tally import Smoothing, UnknownLabels
from ombud.questions.warnings.options import Length, WarningsOptions
from ombud.registry import analysis
from ombud.rng import generator
from ombud.stats.estimate import Estimate
from ombud.systems.base import Recommender

if TYPE_CHECKING:
    from ombud.data.dataset import Dataset
    from ombud.metrics.engine.estimator import Settings


SECOND = "second-training"
EVERYONE = "accuracy-of-everyone"
_PART = 2000


@analysis(SECOND)
class SecondTraining(Options, Analysis):
    r"""Amplification of systems that were trained a second time, on held-out interactions too.

    Accuracy needs a part that was held out, amplification does not: what people are shown comes
    from a system that knows all they did. So each system that can be trained is trained once more
    on everything, asked for lists for the same users, and its lists are compared with whole
    histories (Kovacs et al. do so). ``second-training/rmse`` is the RMSE on the ratings of those
    users, *which it was trained on*: it says how closely the model fits, not how well it predicts.

    - **Unit of resampling**: the user.
    - **Undefined**: as in ``amplification-user``. Systems that cannot be trained are counted.
    - **Does not capture**: how much the split mattered by itself; a second training also differs by
      chance where training is random.

    References
    ----------
    Kovacs, Kazemian, Chee and Dean (2025), *Datasets for Navigating Sensitive Topics in
    Recommendation Systems*, section 6.2.
    """

    k: int = WarningsOptions.field("k")
    forms: tuple[Form, ...] = ("ratio-of-means", "mean")
    """How amplification is averaged over users, with one estimate for each."""
    smoothing: Smoothing = WarningsOptions.field("smoothing")
    unknown: UnknownLabels = "no"
    """How items count whose label is unknown, as in the metric ``amplification``."""

    asks_systems: ClassVar[bool] = True

    def analyze(self, context: Context) -> AnalysisResult:
        """Train on everything, ask for the same users, measure again."""
        data, settings = context.data, context.settings
        whole = all_interactions(data, SECOND)
        everything = replace(data, interactions=whole, test=None)
        lists: dict[str, Outputs] = {}
        ratings: dict[str, Outputs] = {}
        asked, gone = _trainable(context, SECOND)
        for name, system in asked.items():
            again = deepcopy(system)
            again.bind(everything)
            again.fit(whole, progress=context.progress)
            users = _users_of(context, name)
            lists[name] = _ask(again, users, self.k)
            if whole.explicit and again.predicts_ratings:
                ratings[name] = Predictions.of_held_out(whole, again.predict, users, name)
        common = {"k": self.k, "smoothing": self.smoothing, "unknown": self.unknown}
        metrics = [
            registry.create("metric", "amplification-user", {**common, "form": form})
            for form in self.forms
        ]
        estimates = _measured(metrics, lists, everything, settings, SECOND, "trained on everything")
        estimates += _measured(
            [RMSE()], ratings, everything, settings, SECOND, "on what it was trained on"
        )
        return AnalysisResult(tuple(estimates), exclusions=gone)


@analysis(EVERYONE)
class AccuracyOfEveryone(Options, Analysis):
    """Accuracy over all users with something held out, beside that of the sample.

    An audit asks for the lists of a sample of users; accuracy of rare hits needs more. Systems that
    can be trained are asked for everyone's lists, which are measured and not kept. RMSE is over all
    held-out ratings.

    With ``held_out`` or ``item_share``, each system is trained again for this: on all but a share
    of each user's interactions, or on a share of the items. So accuracy can be measured on a split
    while the audit itself is of systems that were trained on everything.

    - **Unit of resampling**: the user.
    - **Undefined**: as in ``precision``, ``recall``, ``f1`` and ``rmse``. Systems that cannot be
      trained, and services, are not asked and are counted.
    - **Does not capture**: anything but accuracy; amplification stays that of the sample.
    """

    accuracy_at: tuple[Length, ...] = WarningsOptions.field("accuracy_at")
    relevance: Relevance = "presence"
    """Which held-out interactions count as relevant, as in the metric ``precision``."""
    held_out: float = Field(default=0.0, ge=0, lt=1)
    """The share of each user's interactions that is held out here; 0 for what the plan held out."""
    item_share: float | None = WarningsOptions.field("item_share")
    users: Literal["all", "sample"] = "all"
    """``sample``: only the users whose lists the audit asked for."""

    asks_systems: ClassVar[bool] = True

    def analyze(self, context: Context) -> AnalysisResult:
        """Ask for everyone with something held out, and measure."""
        settings = context.settings
        data, left = self._split(context)
        if data.test is None:
            raise PlanError(f"{EVERYONE} needs held-out interactions; give the plan a split")
        train: Interactions = data.need("interactions", EVERYONE)
        again = train is not context.data.interactions
        held = np.diff(data.test.matrix.indptr) > 0
        asked, gone = _trainable(context, EVERYONE)
        lists: dict[str, Outputs] = {}
        ratings: dict[str, Outputs] = {}
        for name, trained in asked.items():
            system = deepcopy(trained) if again else trained
            if again:
                system.bind(data)
                system.fit(train, progress=context.progress)
            users = data.test.users.ids[held]
            if self.users == "sample":
                users = users[np.isin(users, _users_of(context, name))]
            context.progress(0, 1, f"Recommendations of {name} for {self.users} users")
            lists[name] = _ask(system, users, max(self.accuracy_at))
            if train.explicit and system.predicts_ratings:
                ratings[name] = Predictions.of_held_out(data.test, system.predict, users, name)
        about = {"relevance": self.relevance, "no_list": "zero"}
        metrics = [
            registry.create("metric", name, {"k": k, **about, **more})
            for k in self.accuracy_at
            for name, more in (("precision", {}), ("recall", {}), ("f1", {"average": "means"}))
        ]
        whose = "all users" if self.users == "all" else "the sample"
        whose += "" if self.item_share is None else f", {self.item_share:.0%} of items"
        made = _measured([RMSE()], ratings, data, settings, EVERYONE, whose)
        made += _measured(metrics, lists, data, settings, EVERYONE, whose)
        return AnalysisResult(tuple(made), exclusions=(*gone, *left))

    def _split(self, context: Context) -> tuple[Dataset, tuple[Exclusion, ...]]:
        """Return the data with the held-out part that accuracy is measured on."""
        data, seed = context.data, context.settings.seed
        if not self.held_out and self.item_share is None:
            return data, ()
        whole = all_interactions(data, EVERYONE)
        left: tuple[Exclusion, ...] = ()
        if self.item_share is not None:
            cut = item_sample(whole, self.item_share, seed)
            left = tuple(
                replace(e, where=f"accuracy: {e.where}")
                for e in cut.exclusions[len(whole.exclusions) :]
            )
            whole = cut
        parts = per_user(whole, share=self.held_out or 0.1, seed=seed)
        return replace(data, interactions=parts.train, test=parts.test), left


def item_sample(interactions: Interactions, share: float, seed: int) -> Interactions:
    """Return a random share of the items with their interactions; users without any are gone."""
    wanted = max(1, round(share * interactions.n_items))
    drawn = generator(seed, "items").permutation(interactions.n_items)[:wanted]
    kept = np.zeros(interactions.n_items, dtype=np.bool_)
    kept[drawn] = True
    part = interactions.select(kept[interactions.matrix.indices])
    met = np.diff(part.matrix.indptr) > 0
    gone = (
        ("items", "items", interactions.n_items - wanted, interactions.n_items),
        ("interactions", "users", int(np.count_nonzero(~met)), interactions.n_users),
    )
    reason = f"outside a random share of {share:g} of the items"
    left = [Exclusion(where, what, n, reason, of) for where, what, n, of in gone if n]
    # Entries stay in the order of users and items, so that their times need no new order.
    return replace(
        part,
        users=Vocabulary(interactions.users.arrow.filter(met)),
        items=Vocabulary(interactions.items.arrow.filter(kept)),
        matrix=part.matrix[np.flatnonzero(met)][:, np.flatnonzero(kept)],
        exclusions=(*interactions.exclusions, *left),
    )


def _trainable(context: Context, who: str) -> tuple[dict[str, Recommender], tuple[Exclusion, ...]]:
    """Return the systems that can be trained, and count the others."""
    every = {name: one for name, one in context.systems.items() if isinstance(one, Recommender)}
    kept = {name: one for name, one in every.items() if one.trainable}
    lost = len(every) - len(kept)
    reason = (
        "ombud does not train what was recorded or fitted elsewhere; fit = true under "
        "[systems.NAME] trains a copy of an object"
    )
    return kept, (Exclusion(who, "systems", lost, reason, len(every)),) if lost else ()


def _users_of(context: Context, name: str) -> NDArray[Any]:
    outputs = context.outputs[name]
    assert isinstance(outputs, Recommendations)  # it is a recommender's
    return np.asarray(outputs.users)


def _ask(system: Recommender, users: NDArray[Any], n: int) -> Recommendations:
    parts = [
        system.recommend(users[start : start + _PART], n) for start in range(0, len(users), _PART)
    ]
    return Recommendations.concat(parts)


def _measured(
    metrics: Iterable[Metric],
    outputs: Mapping[str, Outputs],
    data: Dataset,
    settings: Settings,
    who: str,
    how: str,
) -> list[Estimate]:
    """Return the estimates of some metrics, under names that tell them from those of the audit."""
    found: list[Estimate] = []
    for metric in metrics if outputs else ():
        rows: dict[str, Rows] = {
            name: with_list_depth(metric, metric.measure(one, data), one, data)
            for name, one in outputs.items()
        }
        found += [
            e.replace(metric=f"{e.metric}, {how}", key=f"{who}/{e.key}")
            for e in estimate_metric(metric, rows, data.users, settings)
        ]
    return found
