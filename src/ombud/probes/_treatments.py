"""Which treatments of other users are worth a training: ranked, chosen, and drawn at random."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ombud.errors import DataError, PlanError
from ombud.probes.influence import Influence, Prediction, predict
from ombud.probes.others import OtherUsers, UserSwap, nearest_users
from ombud.probes.training import Change, ListChange

if TYPE_CHECKING:
    from ombud.data.groups import Grouping
    from ombud.data.interactions import Interactions
    from ombud.probes.retraining import Retraining, StabilityPlan
    from ombud.systems.base import Progress


Floats = NDArray[np.float64]


def candidates(
    space: OtherUsers,
    plan: StabilityPlan,
    rows: NDArray[np.int64],
    rng: np.random.Generator,
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
        influence, retraining.data, rows, swaps, n=retraining.plan.n, lists=lists,
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
