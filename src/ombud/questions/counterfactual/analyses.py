"""The counterfactual analysis: probes run against the live systems of an audit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from ombud.audits.analyses import Analysed, LiveSystems
from ombud.data.dataset import Dataset
from ombud.data.exclusions import Exclusion
from ombud.data.recommendations import Recommendations
from ombud.errors import PlanError
from ombud.metrics.engine.estimator import Settings
from ombud.probes import (
    EDIT_KINDS,
    SWAP_KINDS,
    AskedModel,
    EditKind,
    Fields,
    HttpHistorySystem,
    SwapKind,
)
from ombud.questions.counterfactual.asking import asked_reach
from ombud.questions.counterfactual.check import WHERE, check_system, models_in
from ombud.questions.counterfactual.diversity import diversity_of
from ombud.questions.counterfactual.kept import Kept, part_from, plain_part
from ombud.questions.counterfactual.part import Part, tables_of
from ombud.questions.counterfactual.reach import (
    reach_of,
    retrained_of,
    sets_of,
    today,
)
from ombud.questions.counterfactual.sample import Asked
from ombud.questions.counterfactual.stability import stability_of
from ombud.questions.counterfactual.ways import ways_of
from ombud.registry import analysis
from ombud.systems.recommenders.model import Model

if TYPE_CHECKING:
    pass


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
        if {"escape", "drift-in"} & set(self.parts) and (open_ := asked.unlabeled_items):
            reason = (
                "some of their labels are unknown, and escape and drift-in count them as "
                f'"{self.unknown}"; state what that means with [data] unlabeled'
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
