"""Stability: how far other people's data move lists."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ombud.metrics.engine.estimator import Settings
from ombud.probes import Jaccard, StabilityPlan, stability
from ombud.probes.distances import LabelShare, distance_of
from ombud.probes.noise_floor import expected_maximum
from ombud.probes.stability import StabilityResult
from ombud.probes.stability_estimates import stability_estimates
from ombud.probes.training import Change, ExpectedChange, ListChange, ProbabilityChange
from ombud.questions.counterfactual.checkpoint import Checkpoint, PartResult
from ombud.questions.counterfactual.reach import system_beta
from ombud.questions.counterfactual.sample import AuditSample
from ombud.stats import Estimate
from ombud.systems.recommenders.model import Model

if TYPE_CHECKING:
    from ombud.systems.base import Progress

if TYPE_CHECKING:
    from ombud.questions.counterfactual.analysis import Counterfactual


def estimate_stability(
    plan: Counterfactual,
    name: str,
    model: Model,
    labels: Mapping[str, NDArray[np.bool_]],
    asked: AuditSample,
    settings: Settings,
    progress: Progress,
    kept: Checkpoint,
) -> PartResult:
    """Return how far treatments of other users move the lists of some users."""
    part = PartResult()
    rows = asked.order[: plan.moved]
    users = asked.interactions.users.ids[rows]
    changes: list[Change] = [ListChange(Jaccard())]
    for further in plan.distances:
        if further == "label-share":
            changes += [
                ListChange(LabelShare(y, asked.known(label), label)) for label, y in labels.items()
            ]
        elif further not in {"jaccard", "first-item"}:  # both are always there
            changes.append(ListChange(distance_of(further)))
    beta = None
    if plan.drawing == "softmax":
        beta = system_beta(plan, model, asked)
        changes += [
            ProbabilityChange(beta),
            ExpectedChange(Jaccard(), plan.k, beta, seed=settings.seed),
        ]
    groups = asked.data.users if plan.by_group else None
    for kind in plan.treatments:
        tried = StabilityPlan(
            kind=kind,
            budget=plan.others,
            k=plan.k,
            shortlist=plan.shortlist,
            random=plan.random_treatments,
            noise_runs=plan.noise_runs,
            seed=settings.seed,
            passes=plan.passes or None,
            seeds=tuple(range(plan.stability_seeds)),
        )
        result = stability(
            model, asked.interactions, users, tried, changes=changes, groups=groups,
            progress=progress, keep=kept.within(kind),
        )  # fmt: skip
        options: dict[str, Any] = {
            "level": settings.level, "replicates": settings.replicates, "seed": settings.seed
        }  # fmt: skip
        # The probe knows the model by its type; the audit has a name for it. A beta of each
        # system's own is in the details: distances of all systems have one name.
        part.estimates += [
            _own_beta(e.replace(system=name), None if plan.beta else beta)
            for e in stability_estimates(result, **options)
        ]
        part.exclusions += result.exclusions
        part.cost(name, f"stability, {kind}", len(result.targets), 0, result.trainings)
        _tell(part, name, result, plan.people)
    return part


def _own_beta(e: Estimate, beta: float | None) -> Estimate:
    """Return an estimate whose names leave out the beta of the system, which details have."""
    if beta is None:
        return e
    words = f"beta = {beta:g}"
    details = {**e.details, "beta": beta}
    details["distance"] = str(e.details["distance"]).replace(words, "beta of the system")
    return e.replace(metric=e.metric.replace(words, "beta of the system"), details=details)


def _tell(part: PartResult, name: str, result: StabilityResult, people: int) -> None:
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
