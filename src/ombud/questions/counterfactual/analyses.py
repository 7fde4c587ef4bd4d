"""The counterfactual analysis: probes run against the live systems of an audit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ombud.audits.analyses import Analysed, LiveSystems
from ombud.data.dataset import Dataset
from ombud.data.exclusions import Exclusion
from ombud.data.recommendations import Recommendations
from ombud.errors import PlanError
from ombud.metrics.engine import Settings
from ombud.probes import SWAP_KINDS, AskedModel, HttpHistorySystem, SwapKind
from ombud.questions.counterfactual.asking import asked_reach
from ombud.questions.counterfactual.check import WHERE, check_system, models_in
from ombud.questions.counterfactual.diversity import diversity_of
from ombud.questions.counterfactual.others import stability_of
from ombud.questions.counterfactual.part import Part, tables_of
from ombud.questions.counterfactual.reach import reach_of, today
from ombud.questions.counterfactual.sample import Asked
from ombud.questions.counterfactual.ways import ways_of
from ombud.registry import analysis
from ombud.systems.recommenders.model import Model

__all__ = ["PARTS", "Counterfactual", "PartName"]

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
    retrained
        How many witnesses of each kind are run again on a model trained on the edited data.
    moved, others, treatments
        How many users' lists stability is measured on, how many other users differ, and how.
    shortlist, random_treatments, noise_runs
        Trainings for stability: for each user's most influential others, for random ones, and on
        unchanged data.
    people
        How many people the report has a page for.
    black_box, queries
        Systems that are asked again through their lists alone, with so many questions each.
    services, sandbox
        Services behind HTTP that answer a history with a list, by name (arguments of
        `ombud.probes.HttpHistorySystem`), asked in the same way.
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
    retrained: int = 5
    moved: int = 20
    others: int = 1
    treatments: tuple[SwapKind, ...] = ("removed",)
    shortlist: int = 1
    random_treatments: int = 10
    noise_runs: int = 5
    people: int = 3
    black_box: tuple[str, ...] = ()
    queries: int = 1000
    services: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    sandbox: bool = False

    def __post_init__(self) -> None:
        faults = [
            f"{name} is {getattr(self, name)}; it must be at least {least}"
            for name, least in (
                ("k", 1), ("users", 2), ("targets", 2), ("budget", 0), ("beta", 0),
                ("most_labels", 1), ("escape_budget", 1), ("at_risk", 1), ("looked_at", 1),
                ("random", 0), ("realistic", 0), ("tries", 1), ("retrained", 0), ("moved", 1),
                ("others", 1), ("people", 0), ("queries", 10),
            )
            if getattr(self, name) < least
        ]  # fmt: skip
        if not self.parts:
            faults.append("parts is empty; nothing would be asked")
        faults += [f"{p} is no part; choose from {', '.join(PARTS)}"
                   for p in self.parts if p not in PARTS]  # fmt: skip
        faults += [f"{t} is no treatment; choose from {', '.join(SWAP_KINDS)}"
                   for t in self.treatments if t not in SWAP_KINDS]  # fmt: skip
        if faults:
            raise PlanError("counterfactual: " + "; ".join(faults))

    def analyse_systems(self, data: Dataset, live: LiveSystems, settings: Settings) -> Analysed:
        """Return what the systems would show otherwise."""
        asked = Asked(data, settings.seed, self.values, self.realistic)
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
        for number, (name, model) in enumerate(models.items()):
            live.progress(number, len(models), f"asking {name} what it would show otherwise")
            whole.add(self._system(name, model, labels, asked, live, settings))
        for name, options in self.services.items():
            service = HttpHistorySystem(**{"name": name, "sandbox": self.sandbox, **options})
            whole.add(asked_reach(self, name, service, asked, settings, live.folder))
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
    ) -> Part:
        part = Part()
        checked = check_system(
            name, model, live, asked, self.k, max(self.users, self.people), settings
        )
        part.estimates += checked.estimates
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
                part.add(reach_of(self, name, model, asked, settings))
            if name in self.black_box:
                part.add(asked_reach(self, name, AskedModel(model), asked, settings, live.folder))
            ways = [one for one in self.parts if one in ("escape", "drift-in")]
            part.add(ways_of(self, ways, name, model, labels, asked, settings))
            if "diversity" in self.parts:
                part.add(diversity_of(self, name, model, asked, settings))
        if "stability" in self.parts:
            part.add(stability_of(self, name, model, asked, settings, live.progress))
        return part

    def _labels(self, asked: Asked, live: LiveSystems) -> dict[str, NDArray[np.bool_]]:
        """Return the labels to ask about: those named, or those that most places hold."""
        known = dict(asked.labelled(self.unknown))
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
