"""Reach through lists alone: a model as a black box, or a service behind HTTP."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ombud.data.exclusions import Exclusion
from ombud.probes import BlackBoxReachability, HistorySystem, Questions, ReachTable
from ombud.probes.summaries import reach_summary
from ombud.questions.counterfactual.check import WHERE
from ombud.questions.counterfactual.part import Part
from ombud.questions.counterfactual.reach import by_decile
from ombud.questions.counterfactual.sample import Asked

if TYPE_CHECKING:
    from ombud.metrics.engine import Settings
    from ombud.questions.counterfactual.analyses import Counterfactual

__all__ = ["asked_reach"]


def asked_reach(
    plan: Counterfactual,
    name: str,
    system: HistorySystem,
    asked: Asked,
    settings: Settings,
    folder: Path | None,
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
    questions = Questions(
        system, asked.interactions.items, plan.k, limit=plan.queries, cache=cache,
        sandbox=plan.sandbox,
    )  # fmt: skip
    unasked = 0
    try:
        probe = BlackBoxReachability(k=plan.k, queries=each, seed=settings.seed)
        # Spread over users first, so that a budget that ends early leaves no user out.
        for column, target in enumerate(targets.units.tolist()):
            for line, row in enumerate(users.units.tolist()):
                space = asked.space(row, plan.budget)
                if space.history.value(target) is not None:
                    continue
                if questions.budget.left is not None and questions.budget.left < 2:
                    unasked += 1
                    continue
                (found,) = probe.of(questions, space, [target])
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
