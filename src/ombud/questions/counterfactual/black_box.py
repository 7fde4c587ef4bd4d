"""Reach, escape and drift-in of a system of which only the lists are known."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ombud.data.exclusions import Exclusion
from ombud.metrics.engine.estimator import Settings
from ombud.probes import BlackBoxReachability, HttpHistorySystem
from ombud.probes.blackbox.questions import Questions
from ombud.probes.blackbox.reach import BlackBoxReach, ListGoal
from ombud.probes.blackbox.surrogate import AnswerModel, item_features
from ombud.probes.blackbox.systems import Fields, FieldSystem, HistorySystem
from ombud.probes.escape import Way, curve
from ombud.probes.summaries import ReachTable, reach_summary
from ombud.questions.counterfactual.checkpoint import WHERE, PartResult
from ombud.questions.counterfactual.reach import by_decile
from ombud.questions.counterfactual.sample import AuditSample
from ombud.rng import generator
from ombud.stats import Estimate, proportion

if TYPE_CHECKING:
    from ombud.audits.analysis import Context
    from ombud.questions.counterfactual.analysis import Counterfactual


def query_lists(
    plan: Counterfactual,
    name: str,
    system: HistorySystem,
    asked: AuditSample,
    labels: Mapping[str, NDArray[np.bool_]],
    context: Context,
    fields: Fields | None = None,
) -> PartResult:
    """Return what querying shows of reach, escape and drift-in: lower bounds, and they say so.

    The questions of the whole run are limited by ``queries``, and shared out over users; every
    answer is read for all targets and labels. Answers are kept in the folder of the run, so that a
    run that was killed goes on. Users that no question was left for are counted.
    """
    settings, folder = context.settings, context.folder
    users, targets = asked.users(plan.users), asked.targets(plan.targets)
    cache = None
    if folder is not None:
        # Names may differ in what a file system does not tell apart.
        cache = folder / f"questions-{hashlib.sha256(name.encode()).hexdigest()[:16]}.sqlite"
    part = PartResult()
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
    learner = AnswerModel(item_features(asked.interactions))
    goals = _label_goals(plan, asked, labels)
    most = max(plan.budget, plan.escape_budget if goals else 0)
    ways: dict[_Goal, list[Way]] = {key: [] for key in goals}
    rng = generator(settings.seed, "counterfactual", "black box", name)
    steady = queried = 0
    try:
        # In random order, so that a budget that ends early leaves out no level of activity.
        for number, line in enumerate(rng.permutation(len(users.units)).tolist()):
            context.progress(number, len(users.units), f"Querying {name} through its lists alone")
            left = questions.budget.left
            each = plan.queries if left is None else left // (len(users.units) - number)
            if each < _FEWEST:
                continue
            space = asked.space(int(users.units[line]), most)
            if fields is not None:
                space = fields.space(space)
            free = np.flatnonzero(~np.isin(targets.units, space.history.items))
            wanted = [ListGoal((int(t),), budget=plan.budget) for t in targets.units[free]]
            probe = BlackBoxReachability(k=plan.k, queries=each, seed=settings.seed)
            found = probe.of(questions, space, [*wanted, *goals.values()], surrogate=learner)
            if not found or not found[0].unedited[0]:
                continue
            queried += 1
            steady += not found[0].unedited[1]
            reached[line, free] = [1.0 if one.shown else 0.5 for one in found[: len(free)]]
            for key, one in zip(goals, found[len(free) :], strict=True):
                ways[key].append(_way(one, goals[key], plan.k))
        spent, notes = questions.spent, questions.notes
    finally:
        questions.close()
    if lost := len(users.units) - queried:
        reason = f"the {plan.queries:,} queries of the plan were spent before"
        if questions.failure:
            reason = f"the system stopped answering ({questions.failure})"
        part.exclusions.append(
            Exclusion(WHERE, "users", lost, reason, len(users.units), "not-queried", name)
        )
    part.estimates.append(
        proportion(
            steady, queried, metric=f"users whose list stays the same when queried again@{plan.k}",
            key="consistency/asked-twice", unit="user", system=name, level=settings.level,
            details={"policy": "frozen", "k": plan.k, "black_box": True},
        )
    )  # fmt: skip
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
    found_of_all = by_decile(reach_summary(table, target_groups=groups, **options))
    for label, direction in dict.fromkeys(key[:2] for key in goals):
        curves, left_out = _curve(plan, name, label, direction, ways, settings)
        found_of_all += curves
        part.exclusions += left_out
    note = "; ".join(("black box: a lower bound", *notes))
    part.estimates += [
        e.replace(
            key=f"asked-{e.key}",
            metric=f"{e.metric}, through lists alone",
            details={**e.details, "queries": spent, "black_box": True},
            note=note,
        )
        for e in found_of_all
    ]
    part.cost(name, "reach through lists alone", queried, spent, 0)
    return part


_FEWEST = 3

_Goal = tuple[str, str, bool]
"""A label, a direction, and whether items whose label is unknown are taken to be without it."""


def _label_goals(
    plan: Counterfactual, asked: AuditSample, labels: Mapping[str, NDArray[np.bool_]]
) -> dict[_Goal, ListGoal]:
    """Return what escape and drift-in want of a list, twice where labels are unknown."""
    goals = {}
    for direction in ("escape", "drift-in"):
        for label, labelled in labels.items() if direction in plan.parts else ():
            known = asked.known(label)
            for surely in (True, False):
                if surely or not known.all():
                    items = np.flatnonzero(labelled if surely else labelled | ~known)
                    out = direction == "escape"
                    goals[label, direction, surely] = ListGoal(
                        tuple(items.tolist()),
                        plan.permitted if out else plan.permitted + 1,
                        "out" if out else "in",
                        rated=plan.rate_labelled or not out,
                        budget=plan.escape_budget,
                    )
    return goals


def _way(found: BlackBoxReach, goal: ListGoal, k: int) -> Way:
    """Return what querying has shown of escape or drift-in as one person's way."""
    today, after = (shown[:k] for shown in found.lists)
    others = today[(today >= 0) & ~np.isin(today, goal.items)]
    done = found.fewest.cost is not None
    return Way(
        fewest=found.fewest,
        before=int(np.isin(today, goal.items).sum()),
        after=int(np.isin(after, goal.items).sum()) if done else None,
        kept=float(np.isin(others, after).mean()) if done and len(others) else None,
        random=None,
        retrained=None,
    )


def _curve(
    plan: Counterfactual,
    name: str,
    label: str,
    direction: str,
    ways: Mapping[_Goal, Sequence[Way]],
    settings: Settings,
) -> tuple[list[Estimate], list[Exclusion]]:
    """Return the share of users who are through by 1, 2, ... edits; unknown labels may not tell."""
    surely = ways[label, direction, True]
    possibly = ways.get((label, direction, False), surely)
    decided = [a for a, b in zip(surely, possibly, strict=True) if a.fewest.cost == b.fewest.cost]
    words = "escaped" if direction == "escape" else "drifted in"
    curves, left_out = curve(
        decided, plan.escape_budget, name=words, key=direction, label=label, system=name,
        level=settings.level,
    )  # fmt: skip
    where = f"{direction} through lists alone, {label}"
    counted = [Exclusion(where, e.what, e.count, e.reason, e.of, system=name) for e in left_out]
    if lost := len(surely) - len(decided):
        reason = "how many edits they need depends on items whose label is unknown"
        counted.append(Exclusion(where, "users", lost, reason, len(surely), system=name))
    ending = f" (frozen)@{plan.k}"
    # The whole budget alone: how few edits do it, a search by lists cannot say.
    whole = [e for e in curves if e.details.get("edits", plan.escape_budget) == plan.escape_budget]
    return [e.replace(metric=e.metric + ending) for e in whole if "median" not in e.key], counted
