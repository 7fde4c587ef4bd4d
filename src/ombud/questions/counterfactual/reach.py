"""Reachability in an audit: which items could people be shown if they edited their own history."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ombud.data.exclusions import Exclusion
from ombud.probes import EditSpace, Reachability
from ombud.probes.categories import over_categorisation
from ombud.probes.escape import readable
from ombud.probes.influence import sharpness
from ombud.probes.models import closed_form
from ombud.probes.models.base import ClosedForm
from ombud.probes.outcomes import (
    FrozenOutcome,
    InTopK,
    ProbabilityOf,
    RetrainedOutcome,
    retrained_outcome,
)
from ombud.probes.reachability import Reach
from ombud.probes.recipe import Policy
from ombud.probes.sampling import StratifiedSample
from ombud.probes.stability_estimates import rank_correlation
from ombud.probes.summaries import ReachTable, reach_summary
from ombud.probes.training import ModelTrainer
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
from ombud.systems.base import Progress, silent
from ombud.systems.recommenders.model import Model

if TYPE_CHECKING:
    from ombud.metrics.engine.estimator import Settings
    from ombud.questions.counterfactual.analysis import Counterfactual


_AGREES = 1e-4
_SHARP = 100
_FEW = (20, 10)
"""How many users and targets are asked about by default where every candidate is trained for."""

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
    beta = system_beta(plan, model, asked) if plan.drawing == "softmax" else None
    probe = Reachability(k=plan.k, beta=beta, policy="frozen")
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
        _tell(part, name, number, reaches, asked, plan, "frozen")
    if seen:
        reason = "the user has seen the target; it is not asked about"
        pairs = len(users.units) * len(targets.units)
        part.exclusions.append(Exclusion(WHERE, "pairs", seen, reason, pairs, system=name))
    table = _table(plan, name, "frozen", users, targets, found)
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


@dataclass(frozen=True)
class _Retrained:
    """Definition 1 of one system: what is asked of whom, and what is shared between people."""

    plan: Counterfactual
    name: str
    model: Model
    asked: AuditSample
    closed: ClosedForm | None
    probe: Reachability
    baselines: dict[int | None, Model]

    @property
    def seeds(self) -> int:
        """How many trainings a probability is the mean of."""
        seeded = ModelTrainer(self.model).seeded and self.closed is None
        return len(self.probe.seeds) if seeded else 1

    def of_user(self, row: int, targets: np.ndarray) -> list[dict[str, Any]]:
        """Return what one user can reach of all targets, rated ones too, as plain values."""
        space = self.asked.space(row, self.plan.budget)
        reaches = self.probe.of(
            self.model, space, [int(t) for t in targets], own=row, closed=self.closed,
            baselines=self.baselines,
        )  # fmt: skip
        return [reach_to_json(one) for one in reaches]

    def last_shown(self, row: int) -> float:
        """Return today's probability of the last place of one user's list."""
        history = self.asked.space(row, 0).history
        outcome = RetrainedOutcome(
            self.model, self.asked.interactions, history, self.plan.k, beta=self.probe.beta,
            own=row, seeds=self.probe.seeds if self.seeds > 1 else (), baselines=self.baselines,
        )  # fmt: skip
        if self.seeds == 1:
            self.baselines.setdefault(None, self.model)
        (shown,) = outcome.after([()])
        assert shown.probabilities is not None
        chances = np.sort(shown.probabilities[shown.probabilities > 0])[::-1]
        return float(chances[min(self.plan.k, len(chances)) - 1]) if len(chances) else np.inf

    def agrees(self, row: int, reach: Reach) -> bool:
        """Return whether training gives what the exact update says of a witness."""
        drawn = reach.in_list if reach.probability is None else reach.probability
        history = self.asked.space(row, self.plan.budget).history
        outcome = RetrainedOutcome(
            self.model, self.asked.interactions, history, self.probe.k, beta=self.probe.beta,
            own=row,
        )  # fmt: skip
        (after,) = outcome.after([drawn.witness])
        if self.probe.beta is None:
            return InTopK(reach.targets, self.probe.k).value(after, after) == drawn.attained
        found = ProbabilityOf(reach.targets).value(after, after)
        with np.errstate(divide="ignore", invalid="ignore"):
            apart = abs(np.log(found) - np.log(drawn.attained))
        return bool(found == drawn.attained or apart <= _AGREES)


def system_beta(plan: Counterfactual, model: Model, asked: AuditSample) -> float:
    """Return the inverse temperature of a system: that of the plan, or the system's own.

    By default the first items of a list have e^6 times the odds of an average item.
    """
    if plan.beta:
        return plan.beta
    rows = np.sort(asked.order[:_SHARP])
    users = asked.interactions.users.ids[rows]
    scores = model.score(users, asked.interactions.items.ids).astype(np.float64)
    for line, row in enumerate(rows.tolist()):
        scores[line, asked.space(row, 0).history.items] = np.nan
    return float(f"{sharpness(scores, plan.k):.4g}")


def estimate_retrained_reach(
    plan: Counterfactual,
    name: str,
    model: Model,
    asked: AuditSample,
    settings: Settings,
    kept: Checkpoint,
    progress: Progress = silent,
) -> PartResult:
    """Return Definition 1: the probability today and at best, with the model trained again.

    Models with exact updates are asked about all users and targets; others are trained for
    candidates, for fewer users and targets unless the plan says how many.
    """
    part = PartResult()
    closed = closed_form(model)
    beta = system_beta(plan, model, asked) if plan.drawing == "softmax" else None
    own_seeds = tuple(range(plan.choosing_seeds + plan.seeds))
    probe = Reachability(
        k=1 if plan.drawing == "first" else plan.k, beta=beta, policy="retrained", confirm=False,
        verify=plan.candidates, choosing=own_seeds[: plan.choosing_seeds],
        seeds=own_seeds[plan.choosing_seeds :],
    )  # fmt: skip
    one = _Retrained(plan, name, model, asked, closed, probe, {})
    few = closed is None and plan.retrained_users is None
    count = plan.users if plan.retrained_users is None else plan.retrained_users
    users = asked.users(min(count, _FEW[0]) if few else count)
    targets = asked.targets(min(plan.targets, _FEW[1]) if few else plan.targets)
    rows = users.units.tolist()
    found: list[list[Reach]] = []
    last = np.full(len(rows), np.nan)
    for place, row in enumerate(rows):
        progress(place, len(rows), f"Items within reach after retraining: {name}")
        plain = kept(("user", row), partial(one.of_user, row, targets.units))
        found.append([reach_from_json(reach) for reach in plain])
        if beta is not None:
            last[place] = kept(("last", row), partial(one.last_shown, row))
    progress(len(rows), len(rows), f"Items within reach after retraining: {name}")
    agreed, compared, trainings = _agreement(one, rows, found, settings, kept)
    narrow = plan.values == "ends" and len(asked.scale) > 2
    if agreed < compared or narrow:
        found = [[_searched(reach) for reach in reaches] for reaches in found]
    rated = np.array([
        [asked.space(row, 0).history.value(int(t)) is not None for t in targets.units]
        for row in rows
    ])  # fmt: skip
    details: dict[str, Any] = {
        "drawing": plan.drawing, "beta": beta, "seeds": one.seeds, "values": plan.values,
        "exact_updates": closed is not None, "witnesses_trained": compared,
        "witnesses_agree": agreed, "stratified": asked.is_stratified(len(rows)),
    }  # fmt: skip
    part.estimates += _definition(
        one, users, targets, found, rated, last, details, settings
    )  # fmt: skip
    for row, reaches in zip(rows, found, strict=True):
        for target, reach in zip(targets.units.tolist(), reaches, strict=True):
            _pair(part, one, row, target, reach)
    trainings += sum(r.in_list.queries for reaches in found for r in reaches[-1:])
    part.cost(name, "reach, retrained", len(users.units), 0, trainings)
    for number, row in enumerate(asked.order[: plan.people].tolist(), 1):
        plain = kept(("user", row), partial(one.of_user, row, targets.units))
        mine = {
            int(t): reach_from_json(reach)
            for t, reach in zip(targets.units, plain, strict=True)
            if asked.space(row, 0).history.value(int(t)) is None
        }
        if narrow or agreed < compared:
            mine = {target: _searched(reach) for target, reach in mine.items()}
        _tell(part, name, number, mine, asked, plan, "retrained")
    return part


def _agreement(
    one: _Retrained, rows: list[int], found: list[list[Reach]], settings: Settings, kept: Checkpoint
) -> tuple[int, int, int]:
    """Train for some witnesses of exact updates; return how many agree, of how many, trainings."""
    if one.closed is None:
        return 0, 0, 0
    made = [
        (row, reach)
        for row, reaches in zip(rows, found, strict=True)
        for reach in reaches
        if (reach.in_list if reach.probability is None else reach.probability).witness
    ]
    rng = generator(settings.seed, "counterfactual", "agreement", one.name)
    chosen = rng.permutation(len(made))[: one.plan.retrained].tolist()
    agreed = sum(
        kept(("agrees", made[i][0], made[i][1].targets), partial(one.agrees, *made[i]))
        for i in chosen
    )
    return agreed, len(chosen), len(chosen)


def _searched(reach: Reach) -> Reach:
    """Return what is left of a proof where not every edit was tried, or training disagrees."""
    chance = reach.probability
    listed = reach.in_list if reach.in_list.attained >= 1 else replace(reach.in_list, bound=None)
    chance = None if chance is None else replace(chance, bound=None)
    return replace(reach, in_list=listed, probability=chance)


def _definition(
    one: _Retrained,
    users: StratifiedSample,
    targets: StratifiedSample,
    found: list[list[Reach]],
    rated: np.ndarray,
    last: np.ndarray,
    details: dict[str, Any],
    settings: Settings,
) -> list[Estimate]:
    """Return the estimates of Definition 1, of unrated targets and of rated ones."""
    plan, asked = one.plan, one.asked
    options: dict[str, Any] = {
        "level": settings.level, "replicates": settings.replicates, "seed": settings.seed
    }  # fmt: skip

    def table_of(mask: np.ndarray) -> ReachTable:
        some = [
            [reach if inside else None for reach, inside in zip(line, row, strict=True)]
            for line, row in zip(found, mask, strict=True)
        ]
        return _table(plan, one.name, "retrained", users, targets, some)

    table = table_of(~rated)
    if one.probe.beta is not None:
        assert table.best is not None
        shown = np.where(np.isnan(table.best), np.nan, table.best >= last[:, None])
        table = replace(table, shown=shown)
    summary = by_decile(
        reach_summary(
            table, user_groups=asked.user_groups(users.units),
            target_groups=asked.target_groups(targets.units), **options,
        )
    )  # fmt: skip
    popular = asked.popularity[targets.units] * 2 > asked.popularity.max()
    summary.append(popularity_gap(table, popular, settings))
    if rated.any():
        summary += [
            e.replace(key="reach/rated/best", metric=f"{e.metric}, rating taken back")
            for e in reach_summary(table_of(rated), **options)
            if e.key == "reach/best"
        ]
    summary += _frozen_beside(one, found, ~rated, settings)
    return [e.replace(key=f"retrained-{e.key}", details={**e.details, **details}) for e in summary]


def _frozen_beside(
    one: _Retrained, found: list[list[Reach]], mask: np.ndarray, settings: Settings
) -> list[Estimate]:
    """Return the rank correlation of frozen and retrained log-lift, where both are known."""
    pairs = [
        (reach.frozen, reach.probability)
        for line, row in zip(found, mask, strict=True)
        for reach, inside in zip(line, row, strict=True)
        if inside and reach.frozen is not None and reach.probability is not None
    ]
    lifts = np.array([
        (np.log(frozen[1] / frozen[0]), np.log(chance.attained / chance.today))
        for frozen, chance in pairs
        if frozen[0] > 0 and chance.today > 0
    ]).reshape(-1, 2)  # fmt: skip
    if not pairs:
        return []
    about: dict[str, Any] = {
        "metric": f"rank correlation of frozen and retrained log-lift (budget {one.plan.budget})",
        "key": "reach/frozen-correlation", "system": one.name, "unit": "pair", "n": len(lifts),
        "level": settings.level,
        "details": {"policy": "retrained", "budget": one.plan.budget, "k": one.plan.k},
    }  # fmt: skip
    value = rank_correlation(lifts[:, 0], lifts[:, 1])
    if np.isnan(value):
        reason = "one of the two does not vary"
        return [Estimate.undefined(reason_code="no-variation", reason=reason, **about)]
    method = "none: pairs share users and targets"
    return [Estimate(value=value, interval=None, method=method, **about)]


def _pair(part: PartResult, one: _Retrained, row: int, target: int, reach: Reach) -> None:
    """Write a pair of a user and a target: the columns of Definition 1."""
    plan, asked = one.plan, one.asked
    drawn = reach.in_list if reach.probability is None else reach.probability
    low, high = reach.gain_interval or (None, None)
    part.row(
        "counterfactual-pairs",
        system=one.name,
        user=int(np.flatnonzero(asked.order == row)[0]) + 1,
        item=str(asked.titles[target]),
        decile=int(asked.popularity[target]) + 1,
        rated=asked.space(row, 0).history.value(target) is not None,
        policy="retrained",
        budget=plan.budget,
        drawing=plan.drawing,
        beta=one.probe.beta,
        seeds=one.seeds,
        today=drawn.today,
        best=drawn.attained,
        bound=drawn.bound,
        status=drawn.status,
        gain=drawn.attained - drawn.today,
        log_lift=float(np.log(drawn.attained / drawn.today)) if drawn.today > 0 else None,
        gain_low=low,
        gain_high=high,
        edits="; ".join(readable(drawn.witness, asked.titles, asked.interactions.explicit)),
        frozen_today=None if reach.frozen is None else reach.frozen[0],
        frozen_best=None if reach.frozen is None else reach.frozen[1],
    )


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
) -> list[tuple[int, dict[str, Any]]]:
    """Return what one user can reach of the targets they have not seen, as plain values."""
    space = asked.space(row, plan.budget)
    unseen = [int(t) for t in targets if space.history.value(int(t)) is None]
    reaches = probe.of(model, space, unseen, own=row)
    return [(target, reach_to_json(one)) for target, one in zip(unseen, reaches, strict=True)]


def _tell(
    part: PartResult,
    name: str,
    person: int,
    reaches: dict[int, Reach],
    asked: AuditSample,
    plan: Counterfactual,
    policy: Policy,
) -> None:
    for target, reach in reaches.items():
        drawn = reach.in_list if reach.probability is None else reach.probability
        known = drawn if policy == "retrained" else reach.in_list
        edits = readable(known.witness, asked.titles, asked.interactions.explicit)
        part.row(
            "counterfactual-reach",
            system=name,
            person=person,
            item=str(asked.titles[target]),
            decile=int(asked.popularity[target]) + 1,
            reachable=_WORDS[reach.reachable],
            edits="; ".join(edits) if reach.reachable or policy == "retrained" else "",
            rank_today=reach.rank_today,
            rank_best=reach.rank_best,
            today=drawn.today,
            best=drawn.attained,
            status=drawn.status,
            policy=policy,
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

    closed = closed_form(model) if len(chosen) else None

    def holds(row: int, reach: Reach) -> bool:
        space: EditSpace = asked.space(row, plan.budget)
        outcome = retrained_outcome(model, closed, asked.interactions, space.history, plan.k, row)
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
