"""The counterfactual analysis: probes run against the live systems of an audit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ombud.audits.analysis import Analysis, AnalysisResult, Context
from ombud.data.exclusions import Exclusion
from ombud.data.recommendations import Recommendations
from ombud.errors import AuditedSystemError, PlanError
from ombud.metrics.engine.estimator import Settings
from ombud.probes import History, HttpHistorySystem
from ombud.probes.attainable import Attainable, ListMetric, intra_list_diversity
from ombud.probes.blackbox.systems import AskedModel, Fields
from ombud.probes.consistency import Consistency, consistency
from ombud.probes.models import open_box
from ombud.probes.outcomes import FrozenOutcome
from ombud.probes.summaries import attainable_summary
from ombud.questions.counterfactual.black_box import query_lists
from ombud.questions.counterfactual.checkpoint import (
    WHERE,
    Checkpoint,
    PartResult,
    part_from_json,
    part_to_json,
    rows_to_tables,
)
from ombud.questions.counterfactual.escape import estimate_escape
from ombud.questions.counterfactual.preset import CounterfactualOptions
from ombud.questions.counterfactual.reach import (
    estimate_reach,
    estimate_retrained_reach,
    estimate_set_reach,
    today,
)
from ombud.questions.counterfactual.sample import AuditSample
from ombud.questions.counterfactual.stability import estimate_stability
from ombud.registry import analysis
from ombud.rng import generator
from ombud.stats import Estimate, proportion
from ombud.stats.bootstrap.resample import estimate
from ombud.systems.recommenders.bpr import BPR
from ombud.systems.recommenders.model import Model


@analysis("counterfactual")
class Counterfactual(CounterfactualOptions, Analysis):
    """Ask the systems what they would show if people, or other people's data, were different.

    The budget is stated: so many users, targets, edits and trainings, queries to a black box
    counted. What is spent is in the table ``counterfactual-cost``. Reach and stability are about
    models that are trained again (policy *retrained*); reach of sets, escape, drift-in and, if
    asked for, reach of deployed models hold the model fixed (policy *frozen*), and some of the
    edits found are checked after retraining.
    """

    asks_systems: ClassVar[bool] = True

    def analyze(self, context: Context) -> AnalysisResult:
        """Return what the systems would show otherwise."""
        data, settings = context.data, context.settings
        asked = AuditSample(
            data, settings.seed, self.values, self.realistic, self.kinds, self.editable,
            self.unknown,
        )  # fmt: skip
        models, left_out = trainable_models(context)
        whole = PartResult(exclusions=left_out)
        if asked.without_history:
            reason = "they have no history to edit"
            count = asked.without_history
            total = asked.interactions.n_users
            whole.exclusions.append(Exclusion(WHERE, "users", count, reason, total))
        if {"escape", "drift-in"} & set(self.parts) and (open_ := asked.unlabeled_items):
            reason = "some of their labels are unknown. How labels enter and leave lists " + (
                'is measured as if they were "yes"'
                if self.unknown
                else "is not measured for users where these items decide it. If every item was "
                'checked, declare [data] unlabeled = "no"'
            )
            total = asked.interactions.n_items
            # The answer is about more than labels: some unknown ones are no warning.
            key = "warning/unlabeled-items" if 2 * open_ > total else "unlabeled-items"
            whole.exclusions.append(Exclusion(WHERE, "items", open_, reason, total, key))
        unknown = sorted(set(self.black_box) - set(models))
        if unknown and models:
            raise PlanError(
                f"counterfactual: black_box names {', '.join(unknown)}; the systems that can be "
                f"asked about a history are {', '.join(models)}"
            )
        labels = self._labels(asked, context)
        kept = Checkpoint.in_folder(context.folder if models else None)
        for number, (name, model) in enumerate(models.items()):
            context.progress(number, len(models), f"Querying {name} with changed histories")
            whole.add(self._system(name, model, labels, asked, context, settings, kept))
        for name, given in self.services.items():
            options = {"name": name, "sandbox": self.sandbox, **given}
            permitted = options.pop("fields", {})
            service = HttpHistorySystem(**options)
            fields = Fields(asked.interactions.items, permitted) if permitted else None
            whole.add(query_lists(self, name, service, asked, labels, context, fields))
        context.progress(len(models), len(models), "Querying: done")
        return AnalysisResult(
            tuple(whole.estimates),
            rows_to_tables(whole.rows),
            tuple(dict.fromkeys(whole.exclusions)),
        )

    def _system(
        self,
        name: str,
        model: Model,
        labels: dict[str, NDArray[np.bool_]],
        asked: AuditSample,
        context: Context,
        settings: Settings,
        kept: Checkpoint,
    ) -> PartResult:
        part = PartResult()
        checked = check_system(
            name, model, context, asked, self.k, max(self.users, self.people), settings
        )
        part.estimates += checked.estimates
        mine = kept.within(name)

        def add(what: str, find: Callable[[Checkpoint], PartResult]) -> None:
            context.progress(0, 1, f"{_STEPS.get(what, what)}: {name}")
            inner = mine.within(what)
            part.add(part_from_json(mine(("part", what), lambda: part_to_json(find(inner)))))

        # BPR cannot take in a history, but it can be trained on one.
        askable = not checked.reason or isinstance(model, BPR)
        if "reach" in self.parts and self.retrained_users != 0 and askable:
            add(
                "retrained",
                lambda k: estimate_retrained_reach(
                    self, name, model, asked, settings, k, context.progress
                ),
            )
        if checked.reason:
            reason = f"frozen reach and escape are not asked: {checked.reason}"
            total = len(context.systems)
            part.exclusions.append(
                Exclusion(WHERE, "systems", 1, reason, total, "not-frozen", name)
            )
        else:
            for person, row in enumerate(asked.order[: self.people].tolist(), 1):
                for rank, title in enumerate(today(model, asked, row, self.k), 1):
                    part.row(
                        "counterfactual-lists", system=name, person=person, rank=rank, item=title
                    )
            if "reach" in self.parts:
                if self.frozen:
                    add("reach", lambda k: estimate_reach(self, name, model, asked, settings, k))
                if self.sets:
                    add("sets", lambda k: estimate_set_reach(self, name, model, asked, settings, k))
            if name in self.black_box:
                part.add(query_lists(self, name, AskedModel(model), asked, labels, context))
            ways = [one for one in self.parts if one in ("escape", "drift-in")]
            if ways:
                add(
                    "ways",
                    lambda k: estimate_escape(self, ways, name, model, labels, asked, settings, k),
                )
            if "diversity" in self.parts:
                add(
                    "diversity", lambda k: estimate_diversity(self, name, model, asked, settings, k)
                )
        if "stability" in self.parts:
            add(
                "stability",
                lambda k: estimate_stability(
                    self, name, model, labels, asked, settings, context.progress, k
                ),
            )
        return part

    def _labels(self, asked: AuditSample, context: Context) -> dict[str, NDArray[np.bool_]]:
        """Return the labels to ask about: those named, or those that most places hold."""
        known = dict(asked.labelled)
        missing = sorted(set(self.labels) - set(known))
        if missing:
            raise PlanError(
                f"counterfactual: labels names {', '.join(missing)}; the data has "
                f"{', '.join(known) or 'no labels'}"
            )
        if self.labels:
            return {name: known[name] for name in self.labels}
        wanted = {"escape", "drift-in"} & set(self.parts)
        if not wanted:
            return {}
        if not known:
            raise PlanError(
                "counterfactual: escape and drift-in need labels, and the data has none; leave "
                'them out: parts = ["reach", "diversity", "stability"]'
            )
        places = dict.fromkeys(known, 0)
        for outputs in context.outputs.values():
            if isinstance(outputs, Recommendations):
                codes = outputs.in_catalogue(asked.interactions.items)[:, : self.k]
                for name, labelled in known.items():
                    places[name] += int(labelled[codes[codes >= 0]].sum())
        most = sorted(places, key=lambda name: -places[name])[: self.most_labels]
        return {name: known[name] for name in most}


# Which systems accept another history, and whether they answer as recorded.


def trainable_models(context: Context) -> tuple[dict[str, Model], list[Exclusion]]:
    """Return the systems that ombud can train and look into; the others are counted."""
    models: dict[str, Model] = {}
    left_out = []
    for name, system in context.systems.items():
        if isinstance(system, Model):
            models[name] = system
            continue
        reason = "it answers for the users it knows; another history cannot be put to it"
        left_out.append(
            Exclusion(WHERE, "systems", 1, reason, len(context.systems), "not-probed", name)
        )
    return models, left_out


@dataclass(frozen=True)
class ConsistencyCheck:
    """Whether a frozen model can be asked, and what the check said."""

    reason: str  # Why it cannot be asked; empty if it can
    # The share of lists that are as recorded, and how much of each list is.
    estimates: tuple[Estimate, ...] = ()


def check_system(
    name: str,
    model: Model,
    context: Context,
    asked: AuditSample,
    k: int,
    count: int,
    settings: Settings,
) -> ConsistencyCheck:
    """Ask a frozen model about unchanged histories, twice, and compare with what was recorded.

    A factor model that folds a history in need not give the list that it gives to the user it was
    trained on: every number of policy *frozen* is about the former, and this says how far apart
    they are.
    """
    try:
        open_box(model)
    except AuditedSystemError as error:
        return ConsistencyCheck(str(error))
    recorded = context.outputs[name]
    assert isinstance(recorded, Recommendations)  # it is a recommender
    users = asked.interactions.users
    known = np.isin(users.ids[asked.order], recorded.users)
    rows = asked.order[known][:count]
    now, again = _lists(model, asked, rows, k)
    lists = recorded.for_users(users.ids[rows]).in_catalogue(asked.interactions.items)[:, :k]
    found = consistency(list(lists), now, again)
    if not found.deterministic:
        return ConsistencyCheck("its lists are drawn at random, whatever the history holds")
    return ConsistencyCheck("", _estimates(name, found, list(lists), now, k, settings))


def _lists(
    model: Model, asked: AuditSample, rows: NDArray[np.int64], k: int
) -> tuple[list[NDArray[np.int32]], list[NDArray[np.int32]]]:
    first, second = [], []
    for row in rows.tolist():
        history = History.of_user(asked.interactions, row)
        one, two = FrozenOutcome(model, history, k, own=row).of([history, history])
        first.append(one.items)
        second.append(two.items)
    return first, second


def _estimates(
    name: str,
    found: Consistency,
    recorded: list[NDArray[np.int32]],
    now: list[NDArray[np.int32]],
    k: int,
    settings: Settings,
) -> tuple[Estimate, ...]:
    """Return the share of lists that are the same, and the mean overlap."""
    about: dict[str, Any] = {
        "unit": "user",
        "system": name,
        "level": settings.level,
        "details": {"policy": "frozen", "k": k},
    }
    same = proportion(
        found.same,
        found.users,
        metric=f"lists as recorded, before any edit (frozen)@{k}",
        key="consistency/same",
        **about,
    )
    shared = [
        float(np.isin(old[old >= 0], new).mean())
        for old, new in zip(recorded, now, strict=True)
        if (old >= 0).any()
    ]
    metric = f"overlap with recorded lists, before any edit (frozen)@{k}"
    about |= {"metric": metric, "key": "consistency/overlap"}
    if not shared:
        return same, Estimate.undefined(
            reason_code="not-measured", reason="no list was recorded", n=0, **about
        )
    rng = generator(settings.seed, "counterfactual", "overlap", name)
    return same, estimate(np.array(shared), replicates=settings.replicates, rng=rng, **about)


# Diversity of lists beside what edits, and a broad history, could attain.


_STEPS = {"reach": "Items within reach", "retrained": "Items within reach after retraining",
          "sets": "Sets of items within reach", "ways": "Edits that bring or remove labels",
          "diversity": "Attainable diversity", "stability": "Effect of other users"}  # fmt: skip
"""Steps in words, by the name that a checkpoint has for them."""

_COMPARED = 30


def estimate_diversity(
    plan: Counterfactual,
    name: str,
    model: Model,
    asked: AuditSample,
    settings: Settings,
    kept: Checkpoint,
) -> PartResult:
    """Return the diversity of lists beside what edits, and a broad history, could attain."""
    part = PartResult()
    metric = intra_list_diversity(asked.interactions)
    probe = Attainable(k=plan.k, tries=plan.tries, seed=settings.seed)
    rows = asked.order[: plan.moved]
    observed, attained, broad = (np.full(len(rows), np.nan) for _ in range(3))
    questions = 0

    def of_user(row: int) -> tuple[float, float, float, int]:
        found = probe.of(model, asked.space(row, plan.escape_budget), metric, own=row)
        other = _broad(asked, row, metric, settings.seed)
        if other < 0:
            return found.today, found.attained, float("nan"), found.queries
        history = History.of_user(asked.interactions, other)
        (shown,) = FrozenOutcome(model, history, plan.k, own=other).of([history])
        wide = metric(shown.items[shown.items >= 0])
        return found.today, found.attained, wide, found.queries + 1

    for place, row in enumerate(rows.tolist()):
        told = kept(("user", row), partial(of_user, row))
        observed[place], attained[place], broad[place] = told[:3]
        questions += told[3]
    known = ~np.isnan(observed)
    part.estimates += attainable_summary(
        f"intra-list diversity@{plan.k}",
        observed[known],
        attained[known],
        broad=broad[known],
        system=name,
        policy="frozen",
        budget=plan.escape_budget,
        level=settings.level,
        replicates=settings.replicates,
        seed=settings.seed,
    )
    part.cost(name, "diversity", len(rows), questions, 0)
    return part


def _broad(asked: AuditSample, row: int, metric: ListMetric, seed: int) -> int:
    """Return the user of broadest taste among some of the same activity; -1 if there is none."""
    same = np.flatnonzero(asked.activity == asked.activity[row])
    same = same[same != row]
    if not len(same):
        return -1
    rng = generator(seed, "counterfactual", "broad", str(row))
    some = rng.permutation(same)[:_COMPARED]
    spread = [metric(History.of_user(asked.interactions, int(one)).items) for one in some]
    if np.isnan(spread).all():
        return -1
    return int(some[int(np.nanargmax(spread))])
