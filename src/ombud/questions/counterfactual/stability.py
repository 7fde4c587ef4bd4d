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
from ombud.questions.counterfactual.sample import AuditSample
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
            k=plan.k,
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
