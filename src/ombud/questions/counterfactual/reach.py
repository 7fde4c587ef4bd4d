"""Reachability in an audit: which items could people be shown if they edited their own history."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ombud.data.exclusions import Exclusion
from ombud.probes import EditSpace, Reachability
from ombud.probes.categories import over_categorisation
from ombud.probes.escape import readable
from ombud.probes.models import closed_form
from ombud.probes.models.base import ClosedForm
from ombud.probes.outcomes import FrozenOutcome, InTopK, RetrainedOutcome
from ombud.probes.reachability import Reach
from ombud.probes.recipe import Policy
from ombud.probes.sampling import StratifiedSample
from ombud.probes.summaries import ReachTable, reach_summary
from ombud.questions.counterfactual.checkpoint import (
    WHERE,
    Checkpoint,
    PartResult,
    reach_from_json,
    reach_to_json,
)
from ombud.questions.counterfactual.sample import DECILE, AuditSample
from ombud.rng import generator
from ombud.stats import Estimate, proportion
from ombud.stats.crossed import resample_crossed
from ombud.systems.recommenders.model import Model

if TYPE_CHECKING:
    from ombud.metrics.engine.estimator import Settings
    from ombud.questions.counterfactual.analysis import Counterfactual


_WORDS = {True: "yes", False: "no", None: "undecided"}


def estimate_reach(
    plan: Counterfactual,
    name: str,
    model: Model,
    asked: AuditSample,
    settings: Settings,
    kept: Checkpoint,
) -> PartResult:
    """Return what sampled users can reach of sampled targets, with the model frozen."""
    users, targets = asked.users(plan.users), asked.targets(plan.targets)
    probe = Reachability(k=plan.k, beta=plan.beta or None, policy="frozen")
    part, found, queries = PartResult(), [], 0
    people = {int(row): number for number, row in enumerate(asked.order[: plan.people], 1)}
    seen = 0

    def of_user(row: int) -> dict[int, Reach]:
        plain = kept(("user", row), lambda: _of_user(probe, plan, model, asked, row, targets.units))
        return {int(target): reach_from_json(one) for target, one in plain}

    for row in users.units.tolist():
        reaches = of_user(row)
        found.append([reaches.get(t) for t in targets.units.tolist()])
        seen += len(targets.units) - len(reaches)
        queries += sum(r.in_list.queries for r in reaches.values())
    for row, number in people.items():
        reaches = of_user(row)
        queries += sum(r.in_list.queries for r in reaches.values())
        _tell(part, name, number, reaches, asked, plan)
    if seen:
        reason = "the user has seen the target; it is not asked about"
        pairs = len(users.units) * len(targets.units)
        part.exclusions.append(Exclusion(WHERE, "pairs", seen, reason, pairs, system=name))
    table = _table(plan, name, "frozen", users, targets, found)
    if not plan.beta:
        table = replace(table, today=None, best=None)
    groups = asked.user_groups(users.units)
    options: dict[str, Any] = {
        "level": settings.level, "replicates": settings.replicates, "seed": settings.seed
    }  # fmt: skip
    found_groups = asked.target_groups(targets.units)
    part.estimates += by_decile(
        reach_summary(table, user_groups=groups, target_groups=found_groups, **options)
    )
    popular = asked.popularity[targets.units] * 2 > asked.popularity.max()
    part.estimates.append(popularity_gap(table, popular, settings))
    attributes = asked.attributes(users.units)
    boxes = over_categorisation(
        table.reachable, attributes, system=name, level=settings.level, seed=settings.seed
    )
    part.estimates += [
        e.replace(details={**e.details, "policy": "frozen", "budget": plan.budget}) for e in boxes
    ]
    trained, trainings = _after_training(
        plan, name, model, asked, users.units, found, settings, kept
    )
    part.estimates.append(trained)
    part.cost(name, "reach", len(users.units) + len(people), queries, trainings)
    return part


def _table(
    plan: Counterfactual,
    name: str,
    policy: Policy,
    users: StratifiedSample,
    targets: StratifiedSample,
    found: list[list[Reach | None]],
) -> ReachTable:
    return ReachTable.from_reaches(
        found,
        system=name, policy=policy, budget=plan.budget, k=plan.k,
        user_weights=users.weights, target_weights=targets.weights,
        user_strata=users.strata, target_strata=targets.strata,
    )  # fmt: skip


def estimate_retrained_reach(
    plan: Counterfactual,
    name: str,
    model: Model,
    asked: AuditSample,
    settings: Settings,
    kept: Checkpoint,
) -> PartResult:
    """Return what some users can reach with the model trained again, where a closed form tells.

    Elsewhere nothing bounds what training does, and the system is counted as left out.
    """
    part = PartResult()
    closed = closed_form(model)
    if closed is None:
        reason = (
            "its training has no closed form: nothing bounds what training on an edited history "
            "shows, so that reach under policy retrained is undecided but for the witnesses run"
        )
        part.exclusions.append(Exclusion(WHERE, "systems", 1, reason, key="undecided", system=name))
        return part
    users, targets = asked.users(plan.retrained_users), asked.targets(plan.targets)
    probe = Reachability(k=plan.k, policy="retrained")
    found, trainings = [], 0
    for row in users.units.tolist():
        find = partial(_of_user, probe, plan, model, asked, row, targets.units, closed)
        plain = kept(("user", row), find)
        reaches = {int(target): reach_from_json(one) for target, one in plain}
        found.append([reaches.get(t) for t in targets.units.tolist()])
        trainings += max((r.in_list.queries for r in reaches.values()), default=0)
    table = _table(plan, name, "retrained", users, targets, found)
    table = replace(table, today=None, best=None)
    summary = reach_summary(
        table, level=settings.level, replicates=settings.replicates, seed=settings.seed
    )
    part.estimates += [e.replace(key=f"retrained-{e.key}") for e in summary]
    part.cost(name, "reach, retrained", len(users.units), 0, trainings)
    return part


def estimate_set_reach(
    plan: Counterfactual,
    name: str,
    model: Model,
    asked: AuditSample,
    settings: Settings,
    kept: Checkpoint,
) -> PartResult:
    """Return how many users can bring any item of a set into their list, with the model frozen."""
    part, queries = PartResult(), 0
    users, sets = asked.users(plan.users), asked.sets(plan.sets)
    probe = Reachability(k=plan.k, policy="frozen")
    found = []
    for row in users.units.tolist():

        def ask(row: int = row) -> list[dict[str, Any]]:
            wanted = [items.tolist() for items in sets.values()]
            reaches = probe.of(model, asked.space(row, plan.budget), wanted, own=row)
            # The items of a set are known; a thousand codes for each user need not be kept.
            return [reach_to_json(replace(one, targets=())) for one in reaches]

        reaches = [reach_from_json(plain) for plain in kept(("user", row), ask)]
        queries += max((r.in_list.queries for r in reaches), default=0)
        found.append(reaches)
    ending = f"(budget {plan.budget}, frozen)@{plan.k}"
    for place, (label, items) in enumerate(sets.items()):
        mine = [reaches[place] for reaches in found]
        details = {
            "policy": "frozen", "budget": plan.budget, "k": plan.k, "items": len(items),
            "today": float(np.mean([r.in_list.today for r in mine])),
        }  # fmt: skip
        # Activity groups are of one size and drawn from alike, so that people count alike.
        for key, words, hits in (
            ("proved", "proved", sum(r.reachable is True for r in mine)),
            ("possible", "not ruled out", sum(r.reachable is not False for r in mine)),
        ):
            part.estimates.append(
                proportion(
                    hits, len(mine), unit="user", system=name, level=settings.level, label=label,
                    metric=f"users who can bring in any item of a set, {words} {ending}",
                    key=f"reach/set/{key}", details=details,
                )
            )  # fmt: skip
    part.cost(name, "reach of sets", len(users.units), queries, 0)
    return part


def _of_user(
    probe: Reachability,
    plan: Counterfactual,
    model: Model,
    asked: AuditSample,
    row: int,
    targets: np.ndarray,
    closed: ClosedForm | None = None,
) -> list[tuple[int, dict[str, Any]]]:
    """Return what one user can reach of the targets they have not seen, as plain values."""
    space = asked.space(row, plan.budget)
    unseen = [int(t) for t in targets if space.history.value(int(t)) is None]
    reaches = probe.of(model, space, unseen, own=row, closed=closed)
    return [(target, reach_to_json(one)) for target, one in zip(unseen, reaches, strict=True)]


def _tell(
    part: PartResult,
    name: str,
    person: int,
    reaches: dict[int, Reach],
    asked: AuditSample,
    plan: Counterfactual,
) -> None:
    for target, reach in reaches.items():
        edits = readable(reach.in_list.witness, asked.titles, asked.interactions.explicit)
        part.row(
            "counterfactual-reach",
            system=name,
            person=person,
            item=str(asked.titles[target]),
            decile=int(asked.popularity[target]) + 1,
            reachable=_WORDS[reach.reachable],
            edits="; ".join(edits) if reach.reachable else "",
            rank_today=reach.rank_today,
            rank_best=reach.rank_best,
            policy="frozen",
            budget=plan.budget,
        )


def by_decile(estimates: Iterable[Estimate]) -> list[Estimate]:
    """Return summaries of target groups with deciles as groups; those of labels have own keys."""
    found = []
    for e in estimates:
        number = e.label.removeprefix(DECILE)
        if e.label.startswith(DECILE) and number.isdecimal():
            e = e.replace(
                label="",
                group=f"items of popularity {e.label}",
                details={**e.details, "decile": int(number)},
            )
        elif e.label:
            e = e.replace(key=e.key.replace("reach/", "reach/label/", 1))
        found.append(e)
    return found


def popularity_gap(table: ReachTable, popular: np.ndarray, settings: Settings) -> Estimate:
    r"""Return availability of the less popular half of items minus that of the more popular half.

    Both halves are resampled jointly, over users and targets. Pairs that are proved reachable
    count; undecided ones do not.

    `popular` says which targets are of the more popular half.
    """
    proved = np.where(np.isnan(table.reachable), np.nan, table.reachable == 1)
    drawn = resample_crossed(
        proved,
        row_weights=table.user_weights,
        column_weights=table.target_weights,
        row_strata=table.user_strata,
        column_strata=table.target_strata,
        column_groups=np.column_stack([~popular, popular]),
        replicates=settings.replicates,
        rng=generator(settings.seed, "counterfactual", "popularity", table.system),
    )
    shares = [float(drawn.point[0, 0, half]) for half in (0, 1)]
    known = {} if np.isnan(shares).any() else {"less_popular": shares[0], "more_popular": shares[1]}
    # Shares are of the targets that a user has not seen.
    (less, more), (of_less, of_more) = (
        (part[:, ~popular].sum(axis=1), part[:, popular].sum(axis=1))
        for part in (np.nan_to_num(proved), ~np.isnan(proved))
    )
    return drawn.difference(
        (0, 0, 0),
        (0, 0, 1),
        events=int(np.count_nonzero(less * of_more != more * of_less)),
        metric=f"availability, less popular half of the items (budget {table.budget}, "
        f"{table.policy})@{table.k}",
        key="reach/popularity-gap",
        against="more popular half",
        system=table.system,
        level=settings.level,
        details={"policy": table.policy, "budget": table.budget, "k": table.k, **known},
    )


def _after_training(
    plan: Counterfactual,
    name: str,
    model: Model,
    asked: AuditSample,
    rows: np.ndarray,
    found: list[list[Reach | None]],
    settings: Settings,
    kept: Checkpoint,
) -> tuple[Estimate, int]:
    """Return how many witnesses still do it when the model is trained on the edited data."""
    made = [
        (int(row), reach)
        for row, reaches in zip(rows.tolist(), found, strict=True)
        for reach in reaches
        if reach is not None and reach.reachable and reach.in_list.cost
    ]
    rng = generator(settings.seed, "counterfactual", "trained", name)
    chosen = rng.permutation(len(made))[: plan.retrained]

    def holds(row: int, reach: Reach) -> bool:
        space: EditSpace = asked.space(row, plan.budget)
        outcome = RetrainedOutcome(model, asked.interactions, space.history, plan.k, own=row)
        (after,) = outcome.after([reach.in_list.witness])
        return bool(InTopK(reach.targets, plan.k).value(after, after))

    hits = 0
    for row, reach in (made[place] for place in chosen.tolist()):
        hits += kept(("holds", row, reach.targets), partial(holds, row, reach))
    about: dict[str, Any] = {
        "metric": f"witnesses that hold after training again (budget {plan.budget})@{plan.k}",
        "key": "reach/holds-retrained",
        "system": name,
        "level": settings.level,
        "unit": "pair",
        "details": {"policy": "retrained", "budget": plan.budget, "k": plan.k, "of": len(made)},
    }
    if len(chosen):
        return proportion(hits, len(chosen), **about), len(chosen)
    reason = "no edit brought a target into a list" if plan.retrained else "none was trained for"
    return Estimate.undefined(
        reason_code="no-units" if plan.retrained else "not-measured", reason=reason, n=0, **about
    ), 0


def today(model: Model, asked: AuditSample, row: int, k: int) -> list[str]:
    """Return the titles of one person's list as the frozen model gives it."""
    history = asked.space(row, 0).history
    (shown,) = FrozenOutcome(model, history, k, own=row).of([history])
    return [str(asked.titles[i]) for i in shown.items.tolist() if i >= 0]
