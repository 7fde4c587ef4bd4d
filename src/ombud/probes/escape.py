"""Escape and drift-in: the fewest edits after which a label leaves a list, or enters it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ombud.data.exclusions import Exclusion
from ombud.errors import PlanError
from ombud.probes.edits import Edit, Edits, EditSpace, History
from ombud.probes.models import open_box
from ombud.probes.models.base import WhiteBox
from ombud.probes.outcomes import FrozenOutcome, RetrainedOutcome
from ombud.probes.recipe import Fewest, Outcome, Recipe
from ombud.probes.search import beam, exhaustive, mask, number_of_treatments, single_values
from ombud.registry import probe
from ombud.rng import generator
from ombud.stats import Estimate
from ombud.stats.proportions import wilson
from ombud.systems.recommenders.model import Model

_FAR = 1e30


@dataclass(frozen=True, eq=False)
class LabelGoal:
    """How far a list of k is from holding at most ``permitted`` labelled items (or more).

    At most h of the first k are labelled just when the (k - h)-th best unlabelled item stands
    before the (h + 1)-th best labelled one; the goal is the difference of their scores.
    """

    labelled: NDArray[np.bool_]
    k: int
    permitted: int = 0
    towards: Literal["out", "in"] = "out"
    exclude_seen: bool = True

    def values(self, masked: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the difference for each row; zero or more when the goal is reached."""
        mine = _best(masked[:, self.labelled], self.permitted + 1)
        others = _best(masked[:, ~self.labelled], self.k - self.permitted)
        found = np.where(np.isneginf(mine), _FAR, np.maximum(others, -_FAR) - mine)
        return found if self.towards == "out" else -found

    def direction(self, masked: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return weights that raise the items near the border on one side against the other."""
        out = np.zeros(len(masked))
        for group, count, sign in (
            (self.labelled, max(self.permitted + 1, self.k // 2), -1.0),
            (~self.labelled, self.k - self.permitted, 1.0),
        ):
            where = np.flatnonzero(group & np.isfinite(masked))
            top = where[np.argsort(-masked[where], kind="stable")[:count]]
            if len(top):
                out[top] += sign / len(top)
        return out if self.towards == "out" else -out


def _best(scores: NDArray[np.float64], place: int) -> NDArray[np.float64]:
    """Return the ``place``-th largest of each row; -inf where there are fewer."""
    if place > scores.shape[1]:
        return np.full(len(scores), -np.inf)
    cut = scores.shape[1] - place
    found: NDArray[np.float64] = np.partition(scores, cut, axis=1)[:, cut]
    return found


@dataclass(frozen=True, eq=False)
class LabelCount:
    """How many of the first k items carry a label."""

    labelled: NDArray[np.bool_]
    k: int
    seeks: Literal["greatest", "least"] = "least"
    name: str = "labelled items in the list"

    def value(self, before: Outcome, after: Outcome) -> float:
        """Return the count."""
        items = after.items[: self.k]
        return float(self.labelled[items[items >= 0]].sum())


@dataclass(frozen=True, eq=False)
class Way:
    """One person's way out of a label, or into it."""

    fewest: Fewest[Edits]  # the fewest edits found, and what is proved of them
    # Labelled items in the list today, and after the witness.
    before: int
    after: int | None
    # The share of today's unlabelled items that stay in the list: what was not paid.
    kept: float | None
    # The share of as many random edits that do it too; None when none were tried.
    random: float | None
    # Whether it still holds after the model is trained on the edited data; None when not run.
    retrained: bool | None


@dataclass(frozen=True, kw_only=True)
class _Ways:
    k: int = 10
    permitted: int = 0
    width: int = 5
    screen: int = 48
    exhaustive: int = 20_000
    random: int = 0
    retrain: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        if self.k < 1 or not 0 <= self.permitted < self.k:
            raise PlanError(
                f"k is {self.k} and permitted {self.permitted}; permitted is below k and not "
                "negative"
            )

    @property
    def _towards(self) -> Literal["out", "in"]:
        raise NotImplementedError

    def of(
        self, model: Model, space: EditSpace, labelled: NDArray[np.bool_], *, own: int = -1
    ) -> Way:
        """Return one person's fewest edits.

        `labelled` says which items of the catalogue carry the label; unknown items count as the
        plan says. `own` is the person's row among the model's users, -1 for somebody it was not
        trained on.
        """
        if len(labelled) != space.n_items:
            raise PlanError(f"{len(labelled):,} labels for {space.n_items:,} items")
        goal = LabelGoal(labelled, self.k, self.permitted, self._towards)
        outcome = FrozenOutcome(model, space.history, self.k, own=own)
        out = self._towards == "out"
        functional = LabelCount(labelled, self.k, "least" if out else "greatest")
        threshold = float(self.permitted if out else self.permitted + 1)
        recipe: Recipe[Edits, Outcome] = Recipe(
            "escape" if out else "drift-in", space, outcome, functional
        )
        (today,) = outcome.after([()])
        before = int(functional.value(today, today))
        if (before <= self.permitted) == out:
            found = recipe.fewest([], threshold=threshold, solver="the list as it is")
            return Way(found, before, before, 1.0, None, None)
        candidates, at_least, none_exists, solver = self._search(model, space, goal, own)
        found = recipe.fewest(
            candidates, threshold=threshold, at_least=at_least, none_exists=none_exists,
            solver=solver,
        )  # fmt: skip
        if found.witness is None:
            return Way(found, before, None, None, None, None)
        (after,) = outcome.after([found.witness])
        unlabelled = today.items[(today.items >= 0) & ~labelled[today.items]]
        kept = float(np.isin(unlabelled, after.items).mean()) if len(unlabelled) else None
        return Way(
            found,
            before,
            int(functional.value(today, after)),
            kept,
            self._by_chance(recipe, space, len(found.witness), threshold),
            self._after_training(model, space, found.witness, functional, threshold, own),
        )

    def _search(
        self, model: Model, space: EditSpace, goal: LabelGoal, own: int
    ) -> tuple[list[Edits], int, bool, str]:
        """Return treatments to run, the least cost that is proved, and whether none exists."""
        box = open_box(model, own)
        scores = mask(box.scores([space.history]), [space.history], True)[0]
        finite = scores[np.isfinite(scores)]
        near = 1e-4 * max(float(np.ptp(finite)) if len(finite) else 1.0, 1e-6)
        one: list[Edits]
        if space.budget < 1:
            return [], 1, True, "no edit is permitted"
        if space.realistic is None and number_of_treatments(space) <= self.exhaustive:
            found, one = exhaustive(box, space, goal), []
            solver = "all treatments"
        else:
            shown = _list_of(box, space.history) if space.realistic is not None else None
            singles = space.singles(shown=shown)
            values = single_values(box, space.history, singles, goal)
            order = np.argsort(-values, kind="stable")[:3]
            # Near a tie only the recommender itself can tell.
            one = [(singles.edit(int(i)),) for i in order if values[i] >= -near]
            sure = bool(len(values) and values[order[0]] >= near)
            if sure or space.budget == 1:
                return one, 1, not one, "all single edits"
            found = beam(
                box, space, goal, width=self.width, screen=self.screen,
                lists=partial(_list_of, box) if space.realistic is not None else None,
            )  # fmt: skip
            solver = f"beam of {self.width}, {self.screen} screened"
        complete = found.complete
        doing: list[Edits] = list(one)
        at_least = 1
        for cost, level in enumerate(found.by_cost):
            good = [edits for value, edits in level if value >= -near and edits]
            doing += good[:3]
            if complete and not good and not doing:
                at_least = cost + 1
        if not complete and not one:
            at_least = 2  # every single edit was tried
        return doing, at_least, complete and not doing, solver

    def _by_chance(
        self, recipe: Recipe[Edits, Outcome], space: EditSpace, count: int, threshold: float
    ) -> float | None:
        if self.random < 1 or count == 0:
            return None
        rng = generator(self.seed, recipe.name, "random edits")
        singles = space.singles(shown=np.arange(space.n_items, dtype=np.int32))
        treatments: list[Edits] = [()]
        for _ in range(self.random):
            chosen: dict[int, Edit] = {}
            for i in rng.permutation(len(singles)):
                edit = singles.edit(int(i))
                chosen.setdefault(edit.item, edit)
                if len(chosen) == count:
                    break
            treatments.append(tuple(chosen.values()))
        outcomes = recipe.outcome.after(treatments)
        values = [recipe.functional.value(outcomes[0], after) for after in outcomes[1:]]
        done = [v <= threshold if self._towards == "out" else v >= threshold for v in values]
        return float(np.mean(done))

    def _after_training(
        self,
        model: Model,
        space: EditSpace,
        witness: Edits,
        functional: LabelCount,
        threshold: float,
        own: int,
    ) -> bool | None:
        if not self.retrain:
            return None
        again = RetrainedOutcome(model, model.interactions, space.history, self.k, own=own)
        (shown,) = again.after([witness])
        value = functional.value(shown, shown)
        return value <= threshold if self._towards == "out" else value >= threshold


@probe("escape")
@dataclass(frozen=True, kw_only=True)
class Escape(_Ways):
    """Ask for the fewest edits after which at most ``permitted`` of the first k carry a label.

    One edit is tried in all ways, so that one edit, or that one is not enough, is proved; more are
    searched by a beam, and *more than the budget* is said where none was found. Policy *frozen*;
    with ``retrain`` the witness is run once more on a model trained on the edited data.

    Parameters
    ----------
    k, permitted
        Length of the list, and how many labelled items may stay in it.
    width, screen, exhaustive
        As in `ombud.probes.reachability.Reachability`.
    random
        How many random treatments of the same number of edits are tried beside the witness.
    retrain
        Whether the witness is run after training anew.
    seed
        Of the random treatments.
    """

    @property
    def _towards(self) -> Literal["out", "in"]:
        return "out"


@probe("drift-in")
@dataclass(frozen=True, kw_only=True)
class DriftIn(_Ways):
    """Ask for the fewest edits after which more than ``permitted`` of the first k carry a label.

    The mirror of `Escape`, with the same parameters.
    """

    @property
    def _towards(self) -> Literal["out", "in"]:
        return "in"


def _list_of(box: WhiteBox, history: History) -> NDArray[np.int32]:
    """Return all items that can be listed, best first."""
    now = mask(box.scores([history]), [history], True)[0]
    order = np.argsort(-now, kind="stable")
    return np.asarray(order[np.isfinite(now[order])], np.int32)


def readable(
    edits: Sequence[Edit], titles: Mapping[int, str] | Sequence[str], explicit: bool = True
) -> list[str]:
    """Return edits as a list that a person can read.

    Examples
    --------
    >>> readable([Edit(0, None, 5.0), Edit(1, 4.0, None)], ["Heat", "Seven"])
    ['rate Heat 5', 'take back Seven']
    """
    return [edit.in_words(str(titles[edit.item]), explicit) for edit in edits]


def curve(
    ways: Sequence[Way],
    budget: int,
    *,
    name: str = "escaped",
    key: str = "escape",
    label: str = "",
    group: str = "",
    system: str = "",
    level: float = 0.95,
) -> tuple[list[Estimate], list[Exclusion]]:
    """Return the share of people who are through by 1, 2, ... edits, and the median.

    Who is beyond the budget is censored there, and stays in the denominator. Who is through without
    any edit was never at risk: counted as an exclusion. Intervals are Wilson's, over people; beside
    the number found stands, in the details, the number that is not excluded by a proof.

    Parameters
    ----------
    ways
        One per person.
    budget
        The edits that were permitted.
    name, key, label, group, system
        What the estimates are called, for readers and for programs, and are about.
    level
        Coverage of the intervals.
    """
    at_risk = [w for w in ways if w.fewest.cost != 0]
    free = len(ways) - len(at_risk)
    left_out = []
    if free:
        reason = "the list is as wanted without any edit"
        left_out.append(Exclusion(name, "users", free, reason, len(ways)))
    about: dict[str, Any] = {"label": label, "group": group, "system": system, "unit": "user"}
    if not at_risk:
        reason = "nobody's list was otherwise to begin with"
        metric = f"{name} by {budget} edits"
        share = f"{key}/share"
        return [
            Estimate.undefined(
                reason_code="no-units", metric=metric, reason=reason, n=0, key=share, **about
            )
        ], left_out
    n, found = len(at_risk), []
    costs = np.array([np.inf if w.fewest.cost is None else w.fewest.cost for w in at_risk])
    least = np.array(
        [np.inf if w.fewest.none_exists else w.fewest.at_least for w in at_risk], float
    )
    for edits in range(1, budget + 1):
        hits = int((costs <= edits).sum())
        low, high = wilson(hits, n, level)
        most = int((least <= edits).sum())
        found.append(
            Estimate(
                metric=f"{name} by {edits} edit{'s' if edits > 1 else ''}",
                value=hits / n,
                interval=(float(low), float(high)),
                method="wilson",
                n=n,
                level=level,
                key=f"{key}/share",
                details={
                    "edits": edits,
                    "found": hits,
                    "not_excluded": max(most, hits),
                    "censored": int(np.isinf(costs).sum()),
                    "policy": "frozen",
                },
                **about,
            )
        )
    if (costs <= budget).mean() >= 0.5:
        middle = float(np.sort(costs)[(n - 1) // 2])
        found.append(
            Estimate(
                metric=f"edits until half have {name}",
                key=f"{key}/median",
                value=middle,
                interval=None,
                method="none: read it off the curve",
                n=n,
                level=level,
                **about,
            )  # fmt: skip
        )
    else:
        found.append(
            Estimate.undefined(
                reason_code="not-estimable",
                metric=f"edits until half have {name}",
                key=f"{key}/median",
                reason=f"fewer than half have {name} by {budget} edits",
                n=n,
                **about,
            )  # fmt: skip
        )
    return found, left_out
