"""The counterfactual analysis: probes run against the live systems of an audit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from ombud.audits.analysis import Analysis, AnalysisResult, Context
from ombud.audits.presets import Options
from ombud.data.exclusions import Exclusion
from ombud.data.recommendations import Recommendations
from ombud.errors import PlanError
from ombud.metrics.engine.estimator import Settings
from ombud.probes import HttpHistorySystem
from ombud.probes.attainable import Attainable, ListMetric, intra_list_diversity
from ombud.probes.blackbox.systems import AskedModel, Fields
from ombud.probes.edits import EDIT_KINDS, EditKind, History
from ombud.probes.others import SwapKind
from ombud.probes.outcomes import FrozenOutcome
from ombud.probes.summaries import attainable_summary
from ombud.questions.counterfactual.asking import asked_reach
from ombud.questions.counterfactual.check import WHERE, check_system, models_in
from ombud.questions.counterfactual.kept import Kept, part_from, plain_part
from ombud.questions.counterfactual.part import Part, tables_of
from ombud.questions.counterfactual.reach import reach_of, retrained_of, sets_of, today
from ombud.questions.counterfactual.sample import Asked
from ombud.questions.counterfactual.stability import stability_of
from ombud.questions.counterfactual.ways import ways_of
from ombud.registry import analysis
from ombud.rng import generator
from ombud.systems.recommenders.model import Model

DistanceName = Literal["jaccard", "rank-biased", "kendall", "first-item", "label-share"]
PartName = Literal["reach", "escape", "drift-in", "diversity", "stability"]
PARTS: tuple[PartName, ...] = ("reach", "escape", "drift-in", "diversity", "stability")
"""What can be asked."""


class CounterfactualOptions(Options):
    """What the counterfactual audit asks, and how much it may spend."""

    registered_name: ClassVar[str] = "preset 'counterfactual'"

    parts: tuple[PartName, ...] = Field(default=PARTS, min_length=1)
    """What to audit: ``reach``, ``escape``, ``drift-in``, ``diversity``, ``stability``. Escape and
    drift-in need labels."""
    k: int = Field(default=10, ge=1)
    """The length of the lists."""
    users: int = Field(default=40, ge=2)
    """The number of users whose reach is audited, sampled over all levels of activity."""
    targets: int = Field(default=100, ge=2)
    """The number of items that each of them may reach, sampled over all levels of popularity."""
    budget: int = Field(default=1, ge=0)
    """The number of edits of a user's own history that reach permits. With 1, every edit is
    tried."""
    beta: float = Field(default=0.0, ge=0)
    """0 for fixed lists; otherwise the first item is drawn with probability proportional to
    exp(beta score), and the probability gained is reported as well."""
    labels: tuple[str, ...] = ()
    """The labels to escape from; by default, those most frequent in the recorded lists."""
    most_labels: int = Field(default=4, ge=1)
    """The number of labels, where the plan names none."""
    permitted: int = Field(default=0, ge=0)
    """The number of labeled items that may stay in the list."""
    rate_labelled: bool = False
    """Whether edits may rate labeled items, which removes them from the list as seen."""
    unknown: Literal["no", "yes"] | None = None
    """Whether an unknown label counts as ``yes``; ``no`` is the older name of ``unlabeled = "no"``
    under ``[data]``. Unknown labels that the plan does not declare count as *no*, and the result
    reports how many there are."""
    escape_budget: int = Field(default=3, ge=1)
    """The number of edits of a user's own history that escape and drift-in permit."""
    at_risk: int = Field(default=30, ge=1)
    """The number of users wanted whose lists contain the label (or do not, for drift-in)."""
    looked_at: int = Field(default=300, ge=1)
    """The largest number of users that are examined to find them, in random order."""
    random: int = Field(default=10, ge=0)
    """The number of random edits of the same size that are tried for comparison."""
    tries: int = Field(default=50, ge=1)
    """The number of edits tried at each step toward a more diverse list, for `moved` users and
    `escape_budget` edits."""
    values: Literal["ends", "all"] = "ends"
    """The ratings an edit may give: ``ends``, the lowest or the highest; ``all``, any."""
    realistic: int = Field(default=0, ge=0)
    """0 for edits of any item; otherwise users rate only items among the first so many positions
    of their list."""
    kinds: tuple[EditKind, ...] = Field(default=EDIT_KINDS, min_length=1)
    """The edits that are permitted: ``add``, ``change``, ``remove``."""
    editable: tuple[int | str, ...] = ()
    """The ids of the items whose entries may be edited; all by default."""
    sets: tuple[str, ...] = ()
    """Labels, and columns of the item table such as genres: each label, and each of the most
    frequent values of a column, is a set that counts as reached with any of its items."""
    retrained: int = Field(default=5, ge=0)
    """The number of edits found, of each kind, that are checked on a model retrained on the edited
    data."""
    retrained_users: int = Field(default=0, ge=0)
    """The number of users whose reach is also audited under retraining, where training has a closed
    form; every edit found is then retrained for."""
    moved: int = Field(default=20, ge=1)
    """The number of users on whose lists stability is measured."""
    others: int = Field(default=1, ge=1)
    """The number of other users whose data changes."""
    treatments: tuple[SwapKind, ...] = Field(default=("removed",), min_length=1)
    """How the data of those users changes."""
    shortlist: int = Field(default=1, ge=0)
    """The number of trainings for each user's most influential others."""
    random_treatments: int = Field(default=10, ge=0)
    """The number of trainings for others drawn at random."""
    noise_runs: int = Field(default=5, ge=0)
    """The number of trainings on unchanged data, to measure noise."""
    distances: tuple[DistanceName, ...] = ()
    """How lists are compared beside 1 - Jaccard, which leads: ``rank-biased``, ``kendall``,
    ``first-item``, ``label-share`` (for each label); with `beta`, distributions are compared
    too."""
    by_group: bool = False
    """Whether each group of users is changed separately, to show which group affects which."""
    people: int = Field(default=3, ge=0)
    """The number of users for whom the report has a page."""
    black_box: tuple[str, ...] = ()
    """Systems that are audited a second time through their lists alone."""
    queries: int = Field(default=1000, ge=10)
    """The number of queries that each of these systems and services may receive."""
    parallel: int = Field(default=1, ge=1)
    """The number of queries that may run at the same time."""
    services: Mapping[str, Mapping[str, Any]] = Field(default_factory=dict)
    """Services behind HTTP that answer a history with a list, by name, with the arguments of
    `ombud.probes.HttpHistorySystem`. ``fields`` of a service lists what edits may change beside
    ratings: by field, the current value and the values permitted."""
    sandbox: bool = False
    """Whether the services are test systems that may be sent edited histories."""

    @model_validator(mode="after")
    def _fit_together(self) -> CounterfactualOptions:
        if "label-share" in self.distances and not {"escape", "drift-in"} & set(self.parts):
            raise ValueError("distances has label-share, but no part asks about labels")
        return self


@analysis("counterfactual")
class Counterfactual(CounterfactualOptions, Analysis):
    """Ask the systems what they would show if people, or other people's data, were different.

    The budget is stated: so many users, targets, edits and trainings, queries to a black box
    counted. What is spent is in the table ``counterfactual-cost``. Reach, escape and drift-in
    hold the model fixed (policy *frozen*); some of the edits found are checked after retraining.
    Stability is measured under policy *retrained*.
    """

    asks_systems: ClassVar[bool] = True

    def analyze(self, context: Context) -> AnalysisResult:
        """Return what the systems would show otherwise."""
        data, settings = context.data, context.settings
        asked = Asked(
            data, settings.seed, self.values, self.realistic, self.kinds, self.editable,
            self.unknown or "no",
        )  # fmt: skip
        models, left_out = models_in(context)
        whole = Part(exclusions=left_out)
        if asked.without_history:
            reason = "they have no history to edit"
            count = asked.without_history
            total = asked.interactions.n_users
            whole.exclusions.append(Exclusion(WHERE, "users", count, reason, total))
        if {"escape", "drift-in"} & set(self.parts) and (open_ := asked.unlabeled_items):
            reason = (
                "some of their labels are unknown, and escape and drift-in count them as "
                f'"{self.unknown or "no"}"; state what that means with [data] unlabeled'
            )
            total = asked.interactions.n_items
            key = "warning/unlabeled-items"
            whole.exclusions.append(Exclusion(WHERE, "items", open_, reason, total, key))
        unknown = sorted(set(self.black_box) - set(models))
        if unknown and models:
            raise PlanError(
                f"counterfactual: black_box names {', '.join(unknown)}; the systems that can be "
                f"asked about a history are {', '.join(models)}"
            )
        labels = self._labels(asked, context)
        kept = Kept.in_folder(context.folder if models else None)
        for number, (name, model) in enumerate(models.items()):
            context.progress(number, len(models), f"asking {name} what it would show otherwise")
            whole.add(self._system(name, model, labels, asked, context, settings, kept))
        for name, given in self.services.items():
            options = {"name": name, "sandbox": self.sandbox, **given}
            permitted = options.pop("fields", {})
            service = HttpHistorySystem(**options)
            fields = Fields(asked.interactions.items, permitted) if permitted else None
            whole.add(asked_reach(self, name, service, asked, settings, context.folder, fields))
        context.progress(len(models), len(models), "asked")
        return AnalysisResult(
            tuple(whole.estimates), tables_of(whole.rows), tuple(dict.fromkeys(whole.exclusions))
        )

    def _system(
        self,
        name: str,
        model: Model,
        labels: dict[str, NDArray[np.bool_]],
        asked: Asked,
        context: Context,
        settings: Settings,
        kept: Kept,
    ) -> Part:
        part = Part()
        checked = check_system(
            name, model, context, asked, self.k, max(self.users, self.people), settings
        )
        part.estimates += checked.estimates
        mine = kept.within(name)

        def add(what: str, find: Callable[[Kept], Part]) -> None:
            context.progress(0, 1, f"asking {name}: {what}")
            inner = mine.within(what)
            part.add(part_from(mine(("part", what), lambda: plain_part(find(inner)))))

        if checked.reason:
            reason = f"reach and escape are not asked: {checked.reason}"
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
                add("reach", lambda k: reach_of(self, name, model, asked, settings, k))
                if self.retrained_users:
                    add("retrained", lambda k: retrained_of(self, name, model, asked, settings, k))
                if self.sets:
                    add("sets", lambda k: sets_of(self, name, model, asked, settings, k))
            if name in self.black_box:
                part.add(
                    asked_reach(self, name, AskedModel(model), asked, settings, context.folder)
                )
            ways = [one for one in self.parts if one in ("escape", "drift-in")]
            if ways:
                add("ways", lambda k: ways_of(self, ways, name, model, labels, asked, settings, k))
            if "diversity" in self.parts:
                add("diversity", lambda k: diversity_of(self, name, model, asked, settings, k))
        if "stability" in self.parts:
            add(
                "stability",
                lambda k: stability_of(
                    self, name, model, labels, asked, settings, context.progress, k
                ),
            )
        return part

    def _labels(self, asked: Asked, context: Context) -> dict[str, NDArray[np.bool_]]:
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


# Diversity of lists beside what edits, and a broad history, could attain.


_COMPARED = 30


def diversity_of(
    plan: Counterfactual, name: str, model: Model, asked: Asked, settings: Settings, kept: Kept
) -> Part:
    """Return the diversity of lists beside what edits, and a broad history, could attain."""
    part = Part()
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


def _broad(asked: Asked, row: int, metric: ListMetric, seed: int) -> int:
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
