"""How much other people's data move what a user is shown.

The stability of a user with budget B is the largest distance between their list and their list
after up to B *other* users are removed, planted, replaced or changed (Akpinar et al. 2022). The
policy is always *retrained*: nothing of other users' data reaches a frozen model. A maximum over
so many data sets is only bounded from below, by treatments that were really trained for; beside it
stand what random treatments do, and what training again does when nothing is changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ombud.data.exclusions import Exclusion
from ombud.data.groups import Grouping
from ombud.data.ids import Ids
from ombud.data.interactions import Interactions
from ombud.errors import DataError, PlanError
from ombud.probes.distances import FirstItem, Jaccard, ListDistance
from ombud.probes.influence import Influence, Prediction, predict
from ombud.probes.noise_floor import NoiseFloor, NoiseKind
from ombud.probes.others import OtherUsers, UserSwap, nearest_users
from ombud.probes.recipe import Bracket, Policy, Recipe
from ombud.probes.retraining import Keep, Retraining, StabilityPlan
from ombud.probes.training import Change, ListChange, ModelTrainer, Trainer
from ombud.registry import probe
from ombud.rng import generator
from ombud.systems.base import Progress

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class _Largest:
    name: str
    seeks: Any = "greatest"

    def value(self, before: float, after: float) -> float:
        return after


@dataclass(frozen=True, eq=False)
class StabilityResult:
    """What was tried, and what it did."""

    system: str  # the recommender's name
    plan: StabilityPlan  # what was asked for
    targets: NDArray[np.int64]  # rows of the target users
    changes: tuple[str, ...]  # names of the distances, the leading one first
    swaps: tuple[UserSwap, ...]  # the treatments that were trained for
    # For each distance by name, swaps x targets; NaN where a swap touches the target.
    distances: dict[str, Floats]
    shortlisted: NDArray[np.bool_]  # swaps x targets: which were chosen for that target
    random: NDArray[np.bool_]  # which swaps are random ones
    predicted: Floats  # swaps x targets: predicted influence, NaN where there was no formula
    # For each distance by name, one bracket per target: the largest distance found, its witness,
    # and a bound where all treatments could be computed exactly.
    brackets: dict[str, tuple[Bracket[UserSwap], ...]]
    noise: tuple[NoiseFloor, ...]  # noise floors, by kind
    candidates: int  # how many treatments were ranked
    # The name of the distance that influence predicts; it is among `distances`, and empty where
    # there is no formula.
    score_change: str
    # ``"exact"``, ``"one step"``, or ``"overlap of histories"`` where there is no formula.
    influence: str
    deterministic: bool  # whether two trainings with the same seed gave the same lists
    warm: bool  # whether trainings started from the present model
    trainings: int  # how often the recommender was trained
    # Names of user groups, and users x groups.
    groups: tuple[str, ...] = ()
    members: NDArray[np.bool_] = field(default_factory=lambda: np.zeros((0, 0), np.bool_))
    # Swaps x groups: random treatments that touch only users of the group.
    swap_groups: NDArray[np.bool_] = field(default_factory=lambda: np.zeros((0, 0), np.bool_))
    exclusions: tuple[Exclusion, ...] = ()  # targets that were excluded
    policy: Policy = "retrained"


@probe("stability")
@dataclass(frozen=True, kw_only=True)
class Stability(StabilityPlan):
    """Ask how far other users' data move what some users are shown.

    The parameters are those of `StabilityPlan`; `ombud.probes.stability_estimates` turns the result
    into numbers.
    """

    def of(
        self, system: Any, interactions: Interactions, users: Ids, **options: Any
    ) -> StabilityResult:
        """Return what was tried and what it did; the options are those of `stability`."""
        return stability(system, interactions, users, self, **options)


def stability(
    system: Any,
    interactions: Interactions,
    users: Ids,
    plan: StabilityPlan | None = None,
    *,
    changes: Sequence[Change | ListDistance] = (),
    groups: Grouping | None = None,
    progress: Progress | None = None,
    keep: Keep | None = None,
) -> StabilityResult:
    """Try treatments of other users and measure how far they move what some users are shown.

    Parameters
    ----------
    system
        A model of ombud (it is not changed), or a `Trainer`.
    interactions
        The data as they are.
    users
        The ids of the target users.
    plan
        What to try.
    changes
        Distances; the first leads the search. By default 1 - Jaccard, and whether the first item
        changed, which is always among them.
    groups
        Groups of users; random treatments are then drawn for each group too.
    progress
        Called with (done, total, note) between trainings.
    keep
        Where the distances of every training are kept, so that a run that was killed goes on.

    Notes
    -----
    Treatments are ranked by `ombud.probes.influence` where the model has a formula, by the overlap
    of histories otherwise. For removals of one user from a model with an exact formula all others
    are ranked, so the largest distance is bounded above as well.
    """
    plan = StabilityPlan() if plan is None else plan
    trainer = system if isinstance(system, Trainer) else ModelTrainer(system)
    rows, exclusions = _targets(interactions, users)
    space = OtherUsers(interactions, plan.kind, plan.budget, share=plan.share)
    compared = _changes(changes)
    retraining = Retraining(
        trainer, interactions, rows, compared, plan, slots=space.slots, keep=keep
    )
    influence = retraining.influence
    rng = generator(plan.seed, "stability", plan.kind)
    singles, complete = candidates(space, plan, rows, rng)
    prediction = predicted_influence(influence, retraining, singles, lists=True, progress=progress)
    order = ranking(prediction, compared[0], retraining, singles, rows)
    chosen, wanted = shortlist(space, plan, singles, order, rng)
    drawn, groups_of = random_treatments(space, plan, rows, groups, rng)
    swaps = [*chosen, *drawn]
    found: dict[str, list[Floats]] = {change.name: [] for change in retraining.changes}
    for number, swap in enumerate(swaps):
        for name, values in retraining.distances(swap).items():
            found[name].append(values)
        if progress is not None:
            progress(number + 1, len(swaps), "treatments trained for")
    distances = {name: np.array(values) for name, values in found.items()}
    again = predicted_influence(influence, retraining, swaps)
    nowhere = np.full((len(swaps), len(rows)), np.nan)
    exact = influence is not None and influence.exact
    provable = complete and exact and len(plan.seeds) == 1
    bound = prediction if provable else None
    brackets = _brackets(space, retraining, swaps, distances, bound, compared)
    shortlisted = np.zeros((len(swaps), len(rows)), np.bool_)
    shortlisted[: len(chosen)] = wanted
    names, members = group_members(interactions, groups)
    named = "exact" if exact else "one step"
    return StabilityResult(
        system=trainer.name,
        plan=plan,
        targets=rows,
        changes=tuple(change.name for change in compared),
        swaps=tuple(swaps),
        distances=distances,
        shortlisted=shortlisted,
        random=np.arange(len(swaps)) >= len(chosen),
        predicted=nowhere if again is None else again.moved,
        brackets=brackets,
        noise=_noise(retraining, progress),
        candidates=len(singles),
        score_change="" if retraining.score_change is None else retraining.score_change.name,
        influence=named if influence is not None else "overlap of histories",
        deterministic=retraining.deterministic,
        warm=retraining.warm,
        trainings=retraining.queries,
        groups=names,
        members=members,
        swap_groups=np.concatenate([np.zeros((len(chosen), len(names)), np.bool_), groups_of]),
        exclusions=exclusions,
    )


def _targets(
    interactions: Interactions, users: Ids
) -> tuple[NDArray[np.int64], tuple[Exclusion, ...]]:
    codes = interactions.users.codes(users).astype(np.int64)
    if len(np.unique(codes[codes >= 0])) < np.count_nonzero(codes >= 0):
        raise DataError("stability", ["a target user is named twice"])
    lengths = np.diff(interactions.matrix.indptr)
    known = codes >= 0
    active = known & (lengths[np.where(known, codes, 0)] > 0)
    exclusions = []
    for left_out, reason in (
        (~known, "the user is not in the interactions"),
        (known & ~active, "the user has no history, so that only defaults are shown"),
    ):
        if left_out.any():
            count = int(np.count_nonzero(left_out))
            exclusions.append(Exclusion("stability", "target users", count, reason, len(codes)))
    if not active.any():
        raise DataError("stability", ["no target user is in the interactions with a history"])
    return codes[active], tuple(exclusions)


def _changes(changes: Sequence[Change | ListDistance]) -> list[Change]:
    wanted: list[Change] = []
    for change in changes or (Jaccard(),):
        wanted.append(change if isinstance(change, Change) else ListChange(change))
    first = ListChange(FirstItem())
    if first.name not in {change.name for change in wanted}:
        wanted.append(first)
    return wanted


def _brackets(
    space: OtherUsers,
    retraining: Retraining,
    swaps: Sequence[UserSwap],
    distances: dict[str, Floats],
    prediction: Prediction | None,
    changes: Sequence[Change],
) -> dict[str, tuple[Bracket[UserSwap], ...]]:
    """Return for each distance one bracket per target."""
    found = {}
    for change in changes:
        bounds = None if prediction is None else predicted_distance(prediction, change)
        brackets = []
        for t in range(len(retraining.rows)):
            values = distances[change.name][:, t]
            known = [s for s, value in zip(swaps, values, strict=True) if not np.isnan(value)]
            attained = float(np.nanmax(values, initial=0.0))
            bound = None
            solver = "influence, then training"
            if bounds is not None:
                highest = float(np.nanmax(bounds[:, t], initial=0.0))
                # Rounding may decide a tie otherwise in training; then nothing is proved.
                if attained <= highest + 1e-9:
                    bound, solver = highest, "all single removals in closed form"
            recipe = Recipe(
                "stability", space, retraining.of_target(t, change.name), _Largest(change.name)
            )
            brackets.append(recipe.best(known, bound=bound, solver=solver))
        found[change.name] = tuple(brackets)
    return found


def _noise(retraining: Retraining, progress: Progress | None) -> tuple[NoiseFloor, ...]:
    plan, trainer = retraining.plan, retraining.trainer
    names = [change.name for change in retraining.changes]
    if not trainer.seeded and retraining.deterministic:
        zeros = {name: np.zeros((max(plan.noise_runs, 1), len(retraining.rows))) for name in names}
        return (NoiseFloor("seed", zeros, exact=True),)
    kinds: list[NoiseKind] = ["seed"] if trainer.seeded else ["repeat"]
    if retraining.warm:
        kinds.append("pass")
    floors = []
    for kind in kinds if plan.noise_runs else []:
        runs: dict[str, list[Floats]] = {name: [] for name in names}
        for run in range(plan.noise_runs):
            for name, values in retraining.noise(kind, run).items():
                runs[name].append(values)
            if progress is not None:
                progress(run + 1, plan.noise_runs, f"noise runs ({kind})")
        floors.append(NoiseFloor(kind, {n: np.array(v) for n, v in runs.items()}))
    return tuple(floors)


# Which treatments of other users are worth a training: ranked, chosen, and drawn at random.


def candidates(
    space: OtherUsers, plan: StabilityPlan, rows: NDArray[np.int64], rng: np.random.Generator
) -> tuple[list[UserSwap], bool]:
    """Return treatments to rank, and whether they are all there are."""
    if plan.kind == "removed":
        return space.removals(), plan.budget == 1
    if plan.kind == "planted-neighbours":
        each = max(1, plan.pool // len(rows))
        return [s for row in rows for s in space.draw(each, rng, target=int(row))], False
    return space.draw(plan.pool, rng), False


def predicted_influence(
    influence: Influence | None,
    retraining: Retraining,
    swaps: Sequence[UserSwap],
    *,
    lists: bool = False,
    progress: Progress | None = None,
) -> Prediction | None:
    """Return what swaps are predicted to do to the targets; None without a formula."""
    if influence is None:
        return None
    rows, change = retraining.rows.tolist(), retraining.score_change
    assert change is not None
    return predict(
        influence, retraining.data, rows, swaps, n=retraining.plan.k, lists=lists,
        beta=change.beta, progress=progress,
    )  # fmt: skip


def predicted_distance(prediction: Prediction, change: Change) -> Floats | None:
    """Return the predicted distance between lists, swaps x targets; None if it reads scores."""
    if not isinstance(change, ListChange):
        return None
    swaps, targets, n = prediction.lists.shape
    today = np.broadcast_to(prediction.today, (swaps, targets, n)).reshape(-1, n)
    found = change.distance(today, prediction.lists.reshape(-1, n)).reshape(swaps, targets)
    return np.where(np.isnan(prediction.moved), np.nan, found)


def ranking(
    prediction: Prediction | None,
    lead: Change,
    retraining: Retraining,
    swaps: Sequence[UserSwap],
    rows: NDArray[np.int64],
) -> Floats:
    """Return swaps x targets: the higher, the sooner it is tried; -inf where it may not be."""
    if prediction is None:
        score = np.full((len(swaps), len(rows)), -np.inf)
        for t, row in enumerate(rows.tolist()):
            near = nearest_users(retraining.original, row)
            place = np.full(retraining.data.n_users, -np.inf)
            place[near] = -np.arange(len(near), dtype=np.float64)
            for s, swap in enumerate(swaps):
                if not swap.touches(row):
                    score[s, t] = max((place[r] for r in swap.rows), default=-np.inf)
        return score
    moved = np.where(np.isnan(prediction.moved), -np.inf, prediction.moved)
    listed = predicted_distance(prediction, lead)
    if listed is None:
        return moved
    # Lists first; among equal lists, how far the scores moved (at most 1).
    return np.where(np.isfinite(moved), np.nan_to_num(listed) * 1e3 + moved, -np.inf)


def shortlist(
    space: OtherUsers,
    plan: StabilityPlan,
    singles: Sequence[UserSwap],
    order_by: Floats,
    rng: np.random.Generator,
) -> tuple[list[UserSwap], NDArray[np.bool_]]:
    """Return the treatments to train for, and for which target each was chosen."""
    targets = order_by.shape[1]
    chosen: list[UserSwap] = []
    wanted: list[NDArray[np.bool_]] = []
    known: dict[tuple[int, ...], int] = {}
    joint = plan.kind == "removed" and plan.budget > 1
    for t in range(targets):
        order = np.argsort(-order_by[:, t], kind="stable")
        order = order[np.isfinite(order_by[order, t])]
        for rank in range(min(plan.shortlist, len(order))):
            key: tuple[int, ...] = (int(order[rank]),)
            if joint:
                # The best together; then others drawn from the best few.
                best = order[: plan.budget if rank == 0 else 4 * plan.budget]
                size = min(plan.budget, len(best))
                key = tuple(sorted(int(x) for x in rng.choice(best, size, replace=False)))
            if key not in known:
                known[key] = len(chosen)
                chosen.append(singles[key[0]] if len(key) == 1 else space.joined(
                    [singles[number] for number in key]))  # fmt: skip
                wanted.append(np.zeros(targets, np.bool_))
            wanted[known[key]][t] = True
    return chosen, np.array(wanted, dtype=np.bool_).reshape(len(chosen), targets)


def random_treatments(
    space: OtherUsers,
    plan: StabilityPlan,
    rows: NDArray[np.int64],
    groups: Grouping | None,
    rng: np.random.Generator,
) -> tuple[list[UserSwap], NDArray[np.bool_]]:
    """Return random treatments, of anyone and then of each group, and whose they are."""
    names, members = group_members(space.interactions, groups)

    def draw(source: OtherUsers, count: int) -> list[UserSwap]:
        if plan.kind != "planted-neighbours":
            return source.draw(count, rng)
        targets = rng.choice(rows, count)
        return [source.draw(1, rng, target=int(row))[0] for row in targets]

    drawn = draw(space, plan.random)
    marks = [np.zeros(len(names), np.bool_)] * len(drawn)
    for g in range(len(names)):
        inside = np.flatnonzero(members[:, g])
        try:
            source = OtherUsers(
                space.interactions, plan.kind, plan.budget, group=inside, share=plan.share
            )
        except PlanError:
            continue  # a group of too few users moves nobody; its cells stay undefined
        more = draw(source, plan.random)
        drawn += more
        marks += [np.arange(len(names)) == g] * len(more)
    return drawn, np.array(marks, dtype=np.bool_).reshape(len(drawn), len(names))


def group_members(
    interactions: Interactions, groups: Grouping | None
) -> tuple[tuple[str, ...], NDArray[np.bool_]]:
    """Return the names of the groups, and users x groups, in the order of the interactions."""
    if groups is None:
        return (), np.zeros((interactions.n_users, 0), np.bool_)
    codes = groups.units.codes(interactions.users.arrow)
    if (codes < 0).all():
        raise DataError("stability", ["no user of the groups is in the interactions"])
    members = groups.members[np.where(codes >= 0, codes, 0)] & (codes >= 0)[:, None]
    return groups.names, members
