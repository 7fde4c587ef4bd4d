"""The counterfactual analysis: probes run against the live systems of an audit."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from ombud.audits.analyses import Analysed, LiveSystems
from ombud.data.dataset import Dataset
from ombud.data.exclusions import Exclusion
from ombud.data.recommendations import Recommendations
from ombud.errors import PlanError
from ombud.metrics.engine import Settings
from ombud.probes import (
    EDIT_KINDS,
    SWAP_KINDS,
    AskedModel,
    BlackBoxReachability,
    EditKind,
    ExpectedChange,
    Fields,
    FieldSystem,
    HistorySystem,
    HttpHistorySystem,
    Jaccard,
    LabelShare,
    ListChange,
    ProbabilityChange,
    Questions,
    ReachTable,
    StabilityPlan,
    StabilityResult,
    SwapKind,
    distance_of,
    stability,
)
from ombud.probes.attainable import Attainable, ListMetric, intra_list_diversity
from ombud.probes.blackbox import same_answers
from ombud.probes.edits import History
from ombud.probes.noise_floor import expected_maximum
from ombud.probes.outcomes import FrozenOutcome
from ombud.probes.stability_estimates import stability_estimates
from ombud.probes.summaries import attainable_summary, reach_summary
from ombud.probes.training import Change
from ombud.questions.counterfactual.check import WHERE, check_system, models_in
from ombud.questions.counterfactual.kept import Kept, part_from, plain_part
from ombud.questions.counterfactual.part import Part, tables_of
from ombud.questions.counterfactual.reach import (
    by_decile,
    reach_of,
    retrained_of,
    sets_of,
    today,
)
from ombud.questions.counterfactual.sample import Asked
from ombud.questions.counterfactual.ways import ways_of
from ombud.registry import analysis
from ombud.rng import generator
from ombud.stats import proportion
from ombud.systems.recommenders.model import Model

if TYPE_CHECKING:
    from ombud.systems.base import Progress

__all__ = [
    "PARTS",
    "Counterfactual",
    "DistanceName",
    "PartName",
    "asked_reach",
    "diversity_of",
    "stability_of",
]


def asked_reach(
    plan: Counterfactual,
    name: str,
    system: HistorySystem,
    asked: Asked,
    settings: Settings,
    folder: Path | None,
    fields: Fields | None = None,
) -> Part:
    """Return what asking shows of the same users and targets: a lower bound, and it says so.

    The questions of the whole run are limited by ``queries``; their answers are kept in the
    folder of the run, so that a run that was killed goes on. Pairs that no question was left for
    are not asked about, and counted.
    """
    users, targets = asked.users(plan.users), asked.targets(plan.targets)
    cache = None
    if folder is not None:
        # Names may differ in what a file system does not tell apart.
        cache = folder / f"questions-{hashlib.sha256(name.encode()).hexdigest()[:16]}.sqlite"
    part = Part()
    each = max(3, plan.queries // max(1, len(users.units) * len(targets.units)))
    reached = np.full((len(users.units), len(targets.units)), np.nan)
    catalogue = asked.interactions.items
    if fields is not None:
        assert isinstance(system, FieldSystem)  # services are
        system, catalogue = fields.asked(system), fields.codes
    questions = Questions(
        system, catalogue, plan.k, limit=plan.queries, cache=cache,
        parallel=plan.parallel, sandbox=plan.sandbox,
        # A model of this process is asked again at nobody's cost.
        in_flight=system.in_flight if isinstance(system, HttpHistorySystem) else "ask",
    )  # fmt: skip
    unasked = 0
    try:
        repeats = _asked_twice(part, plan, name, questions, asked, users.units, settings)
        probe = BlackBoxReachability(k=plan.k, queries=each, repeats=repeats, seed=settings.seed)
        # Spread over users first, so that a budget that ends early leaves no user out.
        for column, target in enumerate(targets.units.tolist()):
            for line, row in enumerate(users.units.tolist()):
                space = asked.space(row, plan.budget)
                if fields is not None:
                    space = fields.space(space)
                if space.history.value(target) is not None:
                    continue
                if questions.budget.left is not None and questions.budget.left < 2:
                    unasked += 1
                    continue
                (found,) = probe.of(questions, space, [target])
                # A list that changes by itself is not brought in by an edit for sure.
                reached[line, column] = 1.0 if found.in_list.attained >= 1 else 0.5
        spent, notes = questions.spent, questions.notes
    finally:
        questions.close()
    if unasked:
        reason = f"the {plan.queries:,} questions of the plan were spent before"
        part.exclusions.append(
            Exclusion(WHERE, "pairs", unasked, reason, reached.size, system=name)
        )
    table = ReachTable(
        reachable=reached, system=name, policy="frozen", budget=plan.budget, k=plan.k,
        user_weights=users.weights, target_weights=targets.weights,
        user_strata=users.strata, target_strata=targets.strata,
    )  # fmt: skip
    options: dict[str, Any] = {
        "level": settings.level,
        "replicates": settings.replicates,
        "seed": settings.seed,
    }
    groups = asked.target_groups(targets.units)
    for e in by_decile(reach_summary(table, target_groups=groups, **options)):
        about = {**e.details, "queries": spent, "black_box": True}
        part.estimates.append(
            e.replace(
                key=f"asked-{e.key}",
                metric=f"{e.metric}, by asking",
                details=about,
                note="; ".join(("black box: a lower bound", *notes)),
            )  # fmt: skip
        )
    part.cost(name, "reach by asking", len(users.units), spent, 0)
    return part


_TWICE = 5
_REPEATS = 3


def _asked_twice(
    part: Part,
    plan: Counterfactual,
    name: str,
    questions: Questions,
    asked: Asked,
    rows: NDArray[np.int64],
    settings: Settings,
) -> int:
    """Ask about a few unchanged histories twice; return how often witnesses are to be asked.

    A system that changes its answer is asked about every witness repeatedly.
    """
    some = [asked.space(row, 0).history for row in rows[:_TWICE].tolist()]
    if plan.queries < 10 * len(some):
        return 1
    same = same_answers(questions, some)
    part.estimates.append(
        proportion(
            same, len(some), metric=f"lists that are the same when asked twice@{plan.k}",
            key="consistency/asked-twice", unit="user", system=name, level=settings.level,
            details={"policy": "frozen", "k": plan.k, "black_box": True},
        )
    )  # fmt: skip
    return 1 if same == len(some) else _REPEATS


def stability_of(
    plan: Counterfactual,
    name: str,
    model: Model,
    labels: Mapping[str, NDArray[np.bool_]],
    asked: Asked,
    settings: Settings,
    progress: Progress,
    kept: Kept,
) -> Part:
    """Return how far treatments of other users move the lists of some users."""
    part = Part()
    rows = asked.order[: plan.moved]
    users = asked.interactions.users.ids[rows]
    changes: list[Change] = [ListChange(Jaccard())]
    for further in plan.distances:
        if further == "label-share":
            changes += [ListChange(LabelShare(y, None, label)) for label, y in labels.items()]
        elif further not in {"jaccard", "first-item"}:  # both are always there
            changes.append(ListChange(distance_of(further)))
    if plan.beta:
        changes += [
            ProbabilityChange(plan.beta),
            ExpectedChange(Jaccard(), plan.k, plan.beta, seed=settings.seed),
        ]
    groups = asked.data.users if plan.by_group else None
    for kind in plan.treatments:
        tried = StabilityPlan(
            kind=kind,
            budget=plan.others,
            n=plan.k,
            shortlist=plan.shortlist,
            random=plan.random_treatments,
            noise_runs=plan.noise_runs,
            seed=settings.seed,
        )
        result = stability(
            model, asked.interactions, users, tried, changes=changes, groups=groups,
            progress=progress, keep=kept.within(kind),
        )  # fmt: skip
        options: dict[str, Any] = {
            "level": settings.level, "replicates": settings.replicates, "seed": settings.seed
        }  # fmt: skip
        # The probe knows the model by its type; the audit has a name for it.
        part.estimates += [e.replace(system=name) for e in stability_estimates(result, **options)]
        part.exclusions += result.exclusions
        part.cost(name, f"stability, {kind}", len(result.targets), 0, result.trainings)
        _tell(part, name, result, plan.people)
    return part


def _tell(part: Part, name: str, result: StabilityResult, people: int) -> None:
    change = ListChange(Jaccard()).name
    distances = result.distances[change]
    usual = distances[result.random]
    runs = [floor.distances[change] for floor in result.noise if floor.runs]
    for place, bracket in enumerate(result.brackets[change][:people]):
        noise = [float(expected_maximum(some, len(some))[place]) for some in runs]
        mine = usual[:, place][~np.isnan(usual[:, place])] if len(usual) else np.empty(0)
        part.row(
            "counterfactual-others",
            system=name,
            person=place + 1,
            treatment=result.plan.kind,
            distance=bracket.attained,
            exact=bracket.exact,
            typical=float(mine.mean()) if len(mine) else None,
            noise=max(noise) if noise else None,
            policy="retrained",
        )


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


DistanceName = Literal["jaccard", "rank-biased", "kendall", "first-item", "label-share"]
PartName = Literal["reach", "escape", "drift-in", "diversity", "stability"]
PARTS: tuple[PartName, ...] = ("reach", "escape", "drift-in", "diversity", "stability")
"""What can be asked."""


@analysis("counterfactual")
@dataclass(frozen=True, kw_only=True)
class Counterfactual:
    """Ask the systems what they would show if people, or other people's data, were different.

    The budget is stated: so many users, targets, edits and trainings, questions to a black box
    counted. What is spent is in the table ``counterfactual-cost``. Reach, escape and drift-in are
    about policy *frozen*; some of their witnesses are run again under *retrained*. Stability is
    about policy *retrained*.

    Parameters
    ----------
    parts
        What to ask: ``reach``, ``escape``, ``drift-in``, ``diversity``, ``stability``. Escape and
        drift-in need labels.
    k
        Length of the lists.
    users, targets
        How many users and items reach is asked about: users of all activities, items of all
        popularities.
    budget
        Edits of the own history that reach permits. With 1, every edit is tried.
    beta
        0 for fixed lists; otherwise the first item is drawn with probability proportional to
        exp(beta score), and the probability won is told too.
    labels
        Labels to escape from; default, those that most places of the recorded lists hold.
    most_labels
        How many labels, where the plan names none.
    permitted, rate_labelled
        How many labelled items may stay in the list; whether escape may rate labelled items, which
        takes them out of the list as seen.
    unknown
        Whether items whose label is not known count as ``no`` or as ``yes``.
    escape_budget
        Edits of the own history that escape and drift-in permit.
    at_risk, looked_at
        Users are looked at in random order until so many lists hold the label (or do not, for
        drift-in), and at most so many are.
    random
        Random edits of the same number that are tried beside each way.
    tries
        Edits that are tried at each step towards a more diverse list; as many users as `moved` and
        as many edits as `escape_budget`.
    values
        ``ends``: an edit rates with the least or the greatest value; ``all``: with any.
    realistic
        0 for any edit; otherwise people rate only what stands in so many places of their list.
    kinds, editable
        Permitted edits: ``add``, ``change``, ``remove``; ids of the items whose entries may change,
        default all.
    sets
        Labels, and columns of the table of items: each label, and each of the most frequent values
        of a column, is a set of which any item may come into the list.
    retrained
        How many witnesses of each kind are run again on a model trained on the edited data.
    retrained_users
        How many users' reach is asked under policy *retrained* too, where the model's training
        has a closed form; every witness is then trained for.
    moved, others, treatments
        How many users' lists stability is measured on, how many other users differ, and how.
    shortlist, random_treatments, noise_runs
        Trainings for stability: for each user's most influential others, for random ones, and on
        unchanged data.
    distances, by_group
        How stability compares lists beside 1 - Jaccard, which leads: ``rank-biased``, ``kendall``,
        ``label-share`` (of each label asked about); with ``beta``, distributions are compared too.
        Whether treatments of each group of users are tried apart, to see who moves whom.
    people
        How many people the report has a page for.
    black_box, queries, parallel
        Systems that are asked again through their lists alone, with so many questions each, and
        so many under way at a time.
    services, sandbox
        Services behind HTTP that answer a history with a list, by name (arguments of
        `ombud.probes.HttpHistorySystem`), asked in the same way. ``fields`` of a service lists what
        edits may change beside ratings: by field, today's value and the others permitted.
    """

    parts: tuple[PartName, ...] = PARTS
    k: int = 10
    users: int = 40
    targets: int = 100
    budget: int = 1
    beta: float = 0.0
    labels: tuple[str, ...] = ()
    most_labels: int = 4
    permitted: int = 0
    rate_labelled: bool = False
    unknown: Literal["no", "yes"] = "no"
    escape_budget: int = 3
    at_risk: int = 30
    looked_at: int = 300
    random: int = 10
    tries: int = 50
    values: Literal["ends", "all"] = "ends"
    realistic: int = 0
    kinds: tuple[EditKind, ...] = EDIT_KINDS
    editable: tuple[int | str, ...] = ()
    sets: tuple[str, ...] = ()
    retrained: int = 5
    retrained_users: int = 0
    moved: int = 20
    others: int = 1
    treatments: tuple[SwapKind, ...] = ("removed",)
    shortlist: int = 1
    random_treatments: int = 10
    noise_runs: int = 5
    distances: tuple[DistanceName, ...] = ()
    by_group: bool = False
    people: int = 3
    black_box: tuple[str, ...] = ()
    queries: int = 1000
    parallel: int = 1
    services: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    sandbox: bool = False

    def __post_init__(self) -> None:
        faults = [
            f"{name} is {getattr(self, name)}; it must be at least {least}"
            for name, least in (
                ("k", 1), ("users", 2), ("targets", 2), ("budget", 0), ("beta", 0),
                ("most_labels", 1), ("escape_budget", 1), ("at_risk", 1), ("looked_at", 1),
                ("random", 0), ("realistic", 0), ("tries", 1), ("retrained", 0), ("moved", 1),
                ("others", 1), ("people", 0), ("queries", 10), ("parallel", 1),
                ("retrained_users", 0),
            )
            if getattr(self, name) < least
        ]  # fmt: skip
        if not self.parts:
            faults.append("parts is empty; nothing would be asked")
        faults += [f"{p} is no part; choose from {', '.join(PARTS)}"
                   for p in self.parts if p not in PARTS]  # fmt: skip
        faults += [f"{t} is no treatment; choose from {', '.join(SWAP_KINDS)}"
                   for t in self.treatments if t not in SWAP_KINDS]  # fmt: skip
        known = get_args(DistanceName)
        faults += [f"{d} is no distance; choose from {', '.join(known)}"
                   for d in self.distances if d not in known]  # fmt: skip
        if "label-share" in self.distances and not {"escape", "drift-in"} & set(self.parts):
            faults.append("distances has label-share, but no part asks about labels")
        if faults:
            raise PlanError("counterfactual: " + "; ".join(faults))

    def analyse_systems(self, data: Dataset, live: LiveSystems, settings: Settings) -> Analysed:
        """Return what the systems would show otherwise."""
        asked = Asked(
            data, settings.seed, self.values, self.realistic, self.kinds, self.editable,
            self.unknown,
        )  # fmt: skip
        models, left_out = models_in(live)
        whole = Part(exclusions=left_out)
        if asked.without_history:
            reason = "they have no history to edit"
            count = asked.without_history
            total = asked.interactions.n_users
            whole.exclusions.append(Exclusion(WHERE, "users", count, reason, total))
        unknown = sorted(set(self.black_box) - set(models))
        if unknown and models:
            raise PlanError(
                f"counterfactual: black_box names {', '.join(unknown)}; the systems that can be "
                f"asked about a history are {', '.join(models)}"
            )
        labels = self._labels(asked, live)
        kept = Kept.in_folder(live.folder if models else None)
        for number, (name, model) in enumerate(models.items()):
            live.progress(number, len(models), f"asking {name} what it would show otherwise")
            whole.add(self._system(name, model, labels, asked, live, settings, kept))
        for name, given in self.services.items():
            options = {"name": name, "sandbox": self.sandbox, **given}
            permitted = options.pop("fields", {})
            service = HttpHistorySystem(**options)
            fields = Fields(asked.interactions.items, permitted) if permitted else None
            whole.add(asked_reach(self, name, service, asked, settings, live.folder, fields))
        live.progress(len(models), len(models), "asked")
        return Analysed(
            tuple(whole.estimates), tables_of(whole.rows), tuple(dict.fromkeys(whole.exclusions))
        )

    def _system(
        self,
        name: str,
        model: Model,
        labels: dict[str, NDArray[np.bool_]],
        asked: Asked,
        live: LiveSystems,
        settings: Settings,
        kept: Kept,
    ) -> Part:
        part = Part()
        checked = check_system(
            name, model, live, asked, self.k, max(self.users, self.people), settings
        )
        part.estimates += checked.estimates
        mine = kept.within(name)

        def add(what: str, find: Callable[[Kept], Part]) -> None:
            live.progress(0, 1, f"asking {name}: {what}")
            inner = mine.within(what)
            part.add(part_from(mine(("part", what), lambda: plain_part(find(inner)))))

        if checked.reason:
            reason = f"reach and escape are not asked: {checked.reason}"
            total = len(live.systems)
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
                part.add(asked_reach(self, name, AskedModel(model), asked, settings, live.folder))
            ways = [one for one in self.parts if one in ("escape", "drift-in")]
            if ways:
                add("ways", lambda k: ways_of(self, ways, name, model, labels, asked, settings, k))
            if "diversity" in self.parts:
                add("diversity", lambda k: diversity_of(self, name, model, asked, settings, k))
        if "stability" in self.parts:
            add(
                "stability",
                lambda k: stability_of(
                    self, name, model, labels, asked, settings, live.progress, k
                ),
            )
        return part

    def _labels(self, asked: Asked, live: LiveSystems) -> dict[str, NDArray[np.bool_]]:
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
        for outputs in live.outputs.values():
            if isinstance(outputs, Recommendations):
                codes = outputs.in_catalogue(asked.interactions.items)[:, : self.k]
                for name, labelled in known.items():
                    places[name] += int(labelled[codes[codes >= 0]].sum())
        most = sorted(places, key=lambda name: -places[name])[: self.most_labels]
        return {name: known[name] for name in most}
