"""Reach by asking alone: what a system without a known model can be seen to show."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ombud.data.exclusions import Exclusion
from ombud.metrics.engine.estimator import Settings
from ombud.probes import BlackBoxReachability, HttpHistorySystem
from ombud.probes.blackbox.questions import Questions
from ombud.probes.blackbox.reach import same_answers
from ombud.probes.blackbox.systems import Fields, FieldSystem, HistorySystem
from ombud.probes.summaries import ReachTable, reach_summary
from ombud.questions.counterfactual.checkpoint import WHERE, PartResult
from ombud.questions.counterfactual.reach import by_decile
from ombud.questions.counterfactual.sample import AuditSample
from ombud.stats import proportion

if TYPE_CHECKING:
    pass

if TYPE_CHECKING:
    from ombud.questions.counterfactual.analysis import Counterfactual


def black_box_reach(
    plan: Counterfactual,
    name: str,
    system: HistorySystem,
    asked: AuditSample,
    settings: Settings,
    folder: Path | None,
    fields: Fields | None = None,
) -> PartResult:
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
    part = PartResult()
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
    part: PartResult,
    plan: Counterfactual,
    name: str,
    questions: Questions,
    asked: AuditSample,
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
