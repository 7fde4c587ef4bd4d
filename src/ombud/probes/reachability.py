"""Reachability: what one person could be shown within a number of edits of their own history."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, stdtrit

from ombud.data.interactions import Interactions
from ombud.errors import PlanError
from ombud.probes.edits import Edit, Edits, EditSpace, History, Singles
from ombud.probes.models import closed_form, open_box
from ombud.probes.models.base import ClosedForm, SingleEdits, TrainedBox, WhiteBox, settled_edits
from ombud.probes.outcomes import (
    FrozenOutcome,
    InTopK,
    ProbabilityOf,
    RetrainedOutcome,
    UpdatedOutcome,
    realistic_faults,
)
from ombud.probes.recipe import Bracket, Functional, Outcome, Policy, Recipe
from ombud.probes.search import Found, Objective, beam, exhaustive, number_of_treatments, treatments
from ombud.probes.training import ModelTrainer
from ombud.registry import probe
from ombud.systems.recommenders.bpr import BPR
from ombud.systems.recommenders.model import Model

_RIVALS = 40
_NEAR = 1e-4


@dataclass(frozen=True, eq=False)
class Reach:
    """What is known of one target, an item or a set of items."""

    targets: tuple[int, ...]  # item codes
    # Whether one of them can be among the first k: 1, 0, or undecided between.
    in_list: Bracket[Edits]
    # The greatest probability that one of them is drawn; None without a beta.
    probability: Bracket[Edits] | None
    # The rank of the best placed target today, and after the witness that brings it nearest; None
    # where it has no score.
    rank_today: int | None
    rank_best: int | None
    notes: tuple[str, ...] = ()  # what a reader must know
    # Why it is not known whether the target can be in the list; empty where it is known.
    why_undecided: str = ""
    # Whether training gives what an exact update says of the witnesses; None where none was run.
    agreed: bool | None = None
    # Of several trainings: the 95% interval of what is won in probability (without a beta, in the
    # share of trainings that list the target), paired by seed.
    gain_interval: tuple[float, float] | None = None
    # Where candidates came from the frozen model: its probability today, and the best it gives.
    frozen: tuple[float, float] | None = None

    @property
    def reachable(self) -> bool | None:
        """Whether a target can be in the list; None when undecided."""
        return self.in_list.reaches(1.0)


@probe("reachability")
@dataclass(frozen=True, kw_only=True)
class Reachability:
    """Ask what one person could be shown within a budget of edits, with the model's inside known.

    The answer is a bracket: a lower bound with a witness that was run through the recommender under
    the policy named, and an upper bound where the model allows one. One edit is enumerated and so
    exact; so are few edits of small catalogues. More edits are searched by a beam, and what linear
    and factor models cannot reach is proved. Under *retrained* the same holds for models whose
    training on an edited history has a closed form (`EASE`, `ItemKNN`, `UserKNN`): single edits
    are evaluated by exact updates, and witnesses compared with training. For others, every
    treatment is trained for where that is permitted (``trainings``); else candidates are found with
    the model frozen and run again with it trained on the edited data, and what none of them reaches
    is *undecided*, with the reason.

    Akpinar, Leqi, Hadfield-Menell & Lipton (2022), "Counterfactual metrics for auditing black-box
    recommender systems"; Curmei, Dean & Recht (2021), "Quantifying availability and discovery in
    recommender systems via stochastic reachability".

    Parameters
    ----------
    k
        Length of the list.
    beta
        Inverse temperature when the first item is drawn by softmax; None for a fixed list.
    policy
        ``frozen`` or ``retrained``.
    exclude_seen
        Whether items of the edited history are left out.
    width, screen
        How wide and how deep the beam looks.
    exhaustive
        Every treatment is tried where there are at most so many.
    verify
        How many of the best treatments are run through the recommender.
    trainings
        Under *retrained*, a model without a closed form is trained for every treatment where there
        are at most so many.
    seeds
        Seeds of training over which probabilities are averaged, with and without edits; none for
        the model's own. Models without a seed train once.
    choosing
        Other seeds, on which the best candidate is chosen; that one alone is then trained for with
        ``seeds``, as the largest of several means over few seeds is too high. None: candidates are
        compared on ``seeds``, which for enumerated treatments is the definition itself.
    confirm
        Whether witnesses of an exact update are trained for. If not, the update alone counts.
    """

    k: int = 10
    beta: float | None = None
    policy: Policy = "frozen"
    exclude_seen: bool = True
    width: int = 5
    screen: int = 48
    exhaustive: int = 20_000
    verify: int = 3
    trainings: int = 0
    seeds: tuple[int, ...] = ()
    choosing: tuple[int, ...] = ()
    confirm: bool = True

    def __post_init__(self) -> None:
        faults = [
            f"{name} is {value}; it must be at least 1"
            for name, value in (
                ("k", self.k), ("width", self.width), ("screen", self.screen),
                ("verify", self.verify),
            )
            if value < 1
        ]  # fmt: skip
        if self.beta is not None and not self.beta > 0:
            faults.append(f"beta is {self.beta}; it must be positive")
        if self.policy not in {"frozen", "retrained"}:
            faults.append(f"policy is {self.policy!r}; it must be 'frozen' or 'retrained'")
        if set(self.choosing) & set(self.seeds) or (self.choosing and not self.seeds):
            faults.append("choosing needs other seeds than seeds, which must not be empty")
        if faults:
            raise PlanError("reachability: " + "; ".join(faults))

    def of(
        self,
        model: Model,
        space: EditSpace,
        targets: Sequence[int | Sequence[int]],
        *,
        own: int = -1,
        closed: ClosedForm | None = None,
        baselines: dict[int | None, Model] | None = None,
    ) -> list[Reach]:
        """Return what is known of each target for one person.

        Parameters
        ----------
        model
            A trained model.
        space
            The person's permitted edits.
        targets
            Item codes, or sets of them.
        own
            The person's row among the model's users; -1 for somebody it was not trained on.
        closed
            The closed form of the model's training, when it was made before for other people.
        baselines
            Trainings on the data as they are, shared between people; filled when needed.
        """
        sets = [(t,) if isinstance(t, int | np.integer) else tuple(t) for t in targets]
        wanted = [tuple(sorted({int(i) for i in s})) for s in sets]
        for group in wanted:
            if not group or group[0] < 0 or group[-1] >= space.n_items:
                raise PlanError("a target is empty, or names an item that is not in the catalogue")
        return _Search(self, model, space, own, closed, baselines).run(wanted)


class _Search:
    """One person's question: the box, the outcome, and what all targets share."""

    def __init__(
        self,
        asked: Reachability,
        model: Model,
        space: EditSpace,
        own: int,
        closed: ClosedForm | None,
        baselines: dict[int | None, Model] | None,
    ) -> None:
        self.asked, self.model, self.space, self.own = asked, model, space, own
        self.form: ClosedForm | None = None
        if asked.policy == "retrained":
            self.form = closed_form(model) if closed is None else closed
        self.every = self.form is None and asked.policy == "retrained"
        self.every &= space.realistic is None and number_of_treatments(space) <= asked.trainings
        self.box, self.told = self._open()
        options: dict[str, Any] = {
            "beta": asked.beta, "own": own, "exclude_seen": asked.exclude_seen
        }  # fmt: skip
        self.frozen = FrozenOutcome(model, space.history, asked.k, **options)
        self.outcome: FrozenOutcome | RetrainedOutcome | UpdatedOutcome = self.frozen
        self.chooser: _Remembered | None = None
        if self.form is not None and not asked.confirm:
            self.outcome = UpdatedOutcome(self.box, model, space.history, asked.k, **options)
        elif asked.policy == "retrained":
            data: Interactions = model.interactions
            seeded = ModelTrainer(model).seeded
            options["baselines"] = {} if baselines is None else baselines

            def trained(seeds: tuple[int, ...]) -> RetrainedOutcome:
                options["seeds"] = seeds if seeded else ()
                return RetrainedOutcome(model, data, space.history, asked.k, **options)

            self.outcome = trained(asked.seeds)
            if asked.choosing and seeded:
                self.chooser = _Remembered(trained(asked.choosing))
        self.remembered = _Remembered(self.outcome)

    @cached_property
    def today(self) -> NDArray[np.float64]:
        """Today's scores of all items by the box, -inf for what cannot be listed."""
        objective = Objective((0,), self.asked.k, None, self.asked.exclude_seen)
        scores = self.box.scores([self.space.history])
        found: NDArray[np.float64] = objective.masked(scores, [self.space.history])[0]
        return found

    @cached_property
    def _spread(self) -> float:
        finite = self.today[np.isfinite(self.today)]
        return max(float(np.ptp(finite)) if len(finite) else 1.0, 1e-6)

    @property
    def _near(self) -> float:
        """How near to the list rounding decides; 0 where scores are those of training."""
        exact = self.form is not None and not self.form.close
        return 0.0 if exact else _NEAR * self._spread

    def _open(self) -> tuple[WhiteBox, bool]:
        """Return the box that is searched, and whether it tells what the policy asked for shows."""
        if self.asked.policy == "frozen":
            return open_box(self.model, self.own), True
        if self.form is not None:
            return self.form.box(self.own), True
        if isinstance(self.model, BPR):  # it has no frozen policy to be searched
            return TrainedBox(self.model, self.own), False
        return open_box(self.model, self.own), False

    def run(self, wanted: Sequence[tuple[int, ...]]) -> list[Reach]:
        plain = all(len(group) == 1 for group in wanted) and self.asked.exclude_seen
        if self.every:
            return [self._enumerated(group) for group in wanted]
        if plain and self.space.budget <= 1:
            if self.asked.policy == "retrained":
                return self._retrained([group[0] for group in wanted])
            shared = single_reach(
                self.box, self.space, k=self.asked.k, beta=self.asked.beta,
                shown=self._list_of(self.space.history),
            )  # fmt: skip
            return [self._from_singles(group[0], shared) for group in wanted]
        return [self._searched(group) for group in wanted]

    def _enumerated(self, group: tuple[int, ...]) -> Reach:
        """Train for every treatment."""
        space = self.space.without_rating(group)
        every = [t for t in treatments(self.space) if not space.faults(t)]
        return self._settle(group, every, every, None, None, "all treatments, trained for", True)

    def _retrained(self, targets: list[int]) -> list[Reach]:
        """Evaluate single edits by exact updates, or choose candidates that are trained for."""
        asked, space = self.asked, self.space
        if space.budget == 0:
            space = replace(space, editable=np.empty(0, np.int32))
        shown = self._list_of(space.history)
        codes, beta = np.array(targets, np.int64), asked.beta or 0.0
        if self.form is not None:
            found = self.form.single_edits(
                space, self.own, codes, k=asked.k, beta=beta, shown=shown
            )
            return [self._updated(place, target, found) for place, target in enumerate(targets)]
        solver = f"{asked.verify} candidates of the frozen model, trained for"
        if isinstance(self.model, BPR):
            solver = f"{asked.verify} random candidates, trained for"
            singles = space.singles(shown=shown)
            rng = np.random.default_rng(0)
            some = rng.permutation(len(singles))
        else:
            found = settled_edits(self.box, space, codes, k=asked.k, beta=beta, shown=shown)
            singles = found.singles
        reaches = []
        for place, target in enumerate(targets):
            if self.space.history.value(target) is None:
                may = singles.items != target
            else:  # only taking the rating back can bring the target into the list
                may = (singles.items == target) & np.isnan(singles.after)
            if isinstance(self.model, BPR):
                order = some.tolist()
            else:
                first = [found.margin_edit[place]] if beta == 0 else found.promising[place].tolist()
                order = [int(i) for i in (*first, found.margin_edit[place]) if i >= 0]
            order = [i for i in order if may[i]]
            edits: list[Edits] = [(singles.edit(i),) for i in order[: asked.verify]]
            reach = self._settle((target,), edits, edits, None, None, solver, False)
            if not isinstance(self.model, BPR) and beta > 0:
                both = float(np.exp(found.today[place])), float(np.exp(found.best[place]))
                reach = replace(reach, frozen=both)
            reaches.append(reach)
        return reaches

    def _updated(self, place: int, target: int, found: SingleEdits) -> Reach:
        """Return what exact updates say of a target, compared with training where it is asked."""
        asked, near = self.asked, self._near
        margin = float(found.margin[place])
        best = float(np.exp(found.best[place])) if asked.beta is not None else None
        drawn, nearest = found.edits(int(found.edit[place])), found.edits(
            int(found.margin_edit[place])
        )  # fmt: skip
        solver = "all single edits, by exact updates"
        if asked.confirm:
            listed = [nearest] if margin >= -near and nearest else []
            return self._settle(
                (target,), listed, [drawn] if drawn else [], 1.0 if margin >= -near else 0.0, best,
                solver, True, [nearest] if nearest else [],
            )  # fmt: skip
        about: dict[str, Any] = {
            "budget": self.space.budget, "policy": "retrained", "seeks": "greatest",
            "solver": solver, "queries": 0,
        }  # fmt: skip
        now = float(found.margin_today[place] >= 0)
        attained = max(now, float(margin >= (near if near else 0.0)))
        witness = nearest if attained > now else ()
        in_list: Bracket[Edits] = Bracket(
            attained=attained, bound=max(attained, float(margin >= -near)), today=now,
            witness=witness, cost=len(witness), **about,
        )  # fmt: skip
        probability = None
        if best is not None:
            today = float(np.exp(found.today[place]))
            probability = Bracket(
                attained=best, bound=best, today=today, witness=drawn, cost=len(drawn), **about
            )
        notes = self._notes(self.space, (target,))
        return Reach((target,), in_list, probability, None, None, notes, self._why(in_list))

    def _list_of(self, history: History) -> NDArray[np.int32] | None:
        if self.space.realistic is None:
            return None
        scores = Objective((0,), 1, None, self.asked.exclude_seen).masked(
            self.box.scores([history]), [history]
        )[0]
        order: NDArray[np.int32] = np.argsort(-scores, kind="stable").astype(np.int32)
        return np.asarray(order[np.isfinite(scores[order])], np.int32)

    def _notes(self, space: EditSpace, group: tuple[int, ...]) -> tuple[str, ...]:
        said = list(space.notes)
        rated = [t for t in group if self.space.history.value(t) is not None]
        if rated and self.asked.exclude_seen:
            said.append(
                f"{len(rated)} of {len(group)} targets are rated already; only taking the rating "
                "back, one of the edits, can bring them into the list"
            )
        return tuple(said)

    def _from_singles(self, target: int, shared: SingleReach) -> Reach:
        def edits(index: int) -> list[Edits]:
            return [] if index < 0 else [(shared.singles.edit(index),)]

        margin = float(shared.margin[target])
        near = self._near
        bound: float | None = 1.0 if margin >= -near else 0.0
        nearest = edits(int(shared.margin_edit[target]))
        listed = nearest if margin >= -near else []
        chance, drawn = None, []
        if shared.log_probability is not None and shared.edit is not None:
            chance = float(np.exp(shared.log_probability[target]))
            drawn = edits(int(shared.edit[target]))
        solver = "all single edits"
        return self._settle((target,), listed, drawn, bound, chance, solver, True, nearest)

    def _start(self, group: tuple[int, ...]) -> Edits | None:
        """Return edits that must come first; None when the group cannot be listed at all."""
        if not self.asked.exclude_seen:
            return ()
        rated = [(t, self.space.history.value(t)) for t in group]
        if any(value is None for _, value in rated):
            return ()
        removals = [(Edit(t, value, None),) for t, value in rated if value is not None]
        allowed = [edit for edit in removals if not self.space.faults(edit)]
        return allowed[0] if allowed else None

    def _searched(self, group: tuple[int, ...]) -> Reach:
        asked = self.asked
        space = self.space.without_rating(group)
        start = self._start(group)
        if start is None:
            return self._settle(group, [], [], 0.0, 0.0, "rated, and may not be taken back", True)
        margin = Objective(group, asked.k, None, asked.exclude_seen)
        chance = Objective(group, asked.k, asked.beta, asked.exclude_seen)
        # One edit is enumerated however many there are.
        small = space.budget == 1 or (
            space.realistic is None and number_of_treatments(space) <= asked.exhaustive
        )
        found: list[Found] = []
        for objective in (margin, chance) if asked.beta is not None else (margin,):
            if small:
                shown = self._list_of(space.history)
                found.append(exhaustive(self.box, space, objective, shown=shown))
            else:
                lists = self._list_of if space.realistic is not None else None
                found.append(
                    beam(
                        self.box,
                        space,
                        objective,
                        width=asked.width,
                        screen=asked.screen,
                        start=start,
                        lists=lists,  # type: ignore[arg-type]
                    )  # fmt: skip
                )
        listed = found[0].candidates(asked.verify)
        drawn = found[-1].candidates(asked.verify) if asked.beta is not None else []
        solver = "all treatments" if small else f"beam of {asked.width}, {asked.screen} screened"
        if small:
            best = found[0].best[0]
            bound: float | None = 1.0 if best >= -_NEAR * self._spread else 0.0
            most = float(np.exp(found[-1].best[0])) if asked.beta is not None else None
        else:
            bound, most = self._bounds(space, group)
        return self._settle(group, listed, drawn, bound, most, solver, small)

    def _bounds(
        self, space: EditSpace, group: tuple[int, ...]
    ) -> tuple[float | None, float | None]:
        """Return what membership and probability cannot exceed; None where nothing is known."""
        inside: float | None = 0.0
        total: float | None = 0.0 if self.asked.beta is not None else None
        lost = space.budget if "add" in space.kinds else 0
        others = np.setdiff1d(np.flatnonzero(np.isfinite(self.today)), group, True)
        order = others[np.argsort(-self.today[others], kind="stable")].astype(np.int64)
        rivals = order[: max(_RIVALS, self.asked.k + lost + 10)]
        if not self.asked.exclude_seen:
            lost = 0
        for target in group:
            gaps = self.box.gap_bounds(space, target, rivals)
            if gaps is None:
                return None, None
            near = _NEAR * self._spread
            if np.count_nonzero(gaps < -near) < self.asked.k + lost:
                inside = None
            if total is not None and self.asked.beta is not None:
                # Rating a rival takes it out: the strongest may all be gone.
                parts = np.sort(np.exp(np.clip(-self.asked.beta * gaps, -700, 700)))
                parts = parts[: max(len(parts) - lost, 0)]
                total += 1 / (1 + float(parts.sum()))
            if inside is None and total is None:
                break
        return inside, None if total is None else min(1.0, total)

    def _settle(
        self,
        group: tuple[int, ...],
        listed: list[Edits],
        drawn: list[Edits],
        bound: float | None,
        most: float | None,
        solver: str,
        complete: bool,
        nearest: Sequence[Edits] = (),
    ) -> Reach:
        """Run candidates through the recommender; `nearest` are only ranked by the white box."""
        asked = self.asked
        space = self.space.without_rating(group) if asked.exclude_seen else self.space
        candidates = list(dict.fromkeys([*listed, *drawn]))
        shows = self.remembered if self.told else self.frozen
        candidates = [c for c in candidates if not realistic_faults(shows, space, c)]
        if not self.told:
            bound = most = None
        agreed: list[bool] = []

        def bracket(
            functional: Functional[Outcome], limit: float | None, some: list[Edits]
        ) -> Bracket[Edits]:
            if self.chooser is not None and some:
                chosen = Recipe("reachability", space, self.chooser, functional)
                witness = chosen.best(some, solver=solver).witness
                some = [witness] if witness else []
            recipe: Recipe[Edits, Outcome] = Recipe("reachability", space, outcome, functional)
            found = recipe.best(some, solver=solver)
            if self.every and self.chooser is None:
                return replace(found, bound=found.attained)
            if limit is None:
                return found
            # An enumeration that the real recommender confirms is exact up to its rounding.
            close = abs(limit - found.attained) <= _NEAR * max(limit, 1e-6) + 1e-9
            if self.form is not None and complete:
                rounding = isinstance(functional, InTopK) and self.form.close
                agreed.append(close or rounding)
            if not close and (found.attained > limit or (agreed and not agreed[-1])):
                # The recommender does not do what its white box says: nothing is proved.
                return replace(found, bound=1.0 if found.attained >= 1 else None)
            settled = found.attained if close and (complete or found.attained > limit) else limit
            return replace(found, bound=settled)

        outcome = self.remembered
        in_list = bracket(InTopK(group, asked.k), bound, candidates)
        probability = None
        if asked.beta is not None:
            probability = bracket(ProbabilityOf(group), most, candidates)
        rank_today = rank_best = None
        if not self.every and not isinstance(self.model, BPR):
            histories = [self.space.history.after(c) for c in [(), *candidates, *nearest]]
            ranks = [self._rank(history, group) for history in histories]
            rank_today = ranks[0]
            rank_best = min((rank for rank in ranks if rank is not None), default=None)
        return Reach(
            group,
            in_list,
            probability,
            rank_today,
            rank_best,
            self._notes(space, group),
            self._why(in_list),
            all(agreed) if agreed else None,
            self._gain(in_list if probability is None else probability, group),
        )

    def _gain(self, found: Bracket[Edits], group: tuple[int, ...]) -> tuple[float, float] | None:
        """Return the interval of what the witness wins, over the seeds of training."""
        functional: Functional[Outcome] = InTopK(group, self.asked.k)
        if self.asked.beta is not None:
            functional = ProbabilityOf(group)
        before, after = self.remembered.after([(), found.witness])
        if not before.draws:
            return None
        values = [
            np.array([functional.value(one, one) for one in side.draws]) for side in (before, after)
        ]
        return paired_interval(*values, shares=self.asked.beta is None)

    def _why(self, found: Bracket[Edits]) -> str:
        if found.reaches(1.0) is not None:
            return ""
        if not self.told:
            return (
                f"nothing bounds what training {self.model.name} on the edited data does; "
                f"{self.asked.trainings:,} trainings were permitted to try all treatments"
            )
        if found.bound is None:
            return "more than one edit is searched, not enumerated, and no bound excludes it"
        return "it is so near to the list that the white box and the recommender differ"

    def _rank(self, history: History, group: tuple[int, ...]) -> int | None:
        """Return the best rank of the group by the searched box, from 1; None without a score."""
        objective = Objective(group, self.asked.k, None, self.asked.exclude_seen)
        scores = objective.masked(self.box.scores([history]), [history])[0]
        best = scores[list(group)].max()
        return None if np.isneginf(best) else int(np.count_nonzero(scores > best)) + 1


class _Remembered:
    """An outcome that is not asked twice for the same treatment."""

    def __init__(self, outcome: FrozenOutcome | RetrainedOutcome | UpdatedOutcome) -> None:
        self._outcome = outcome
        self._known: dict[Edits, Outcome] = {}

    @property
    def policy(self) -> Policy:
        return self._outcome.policy

    @property
    def queries(self) -> int:
        return self._outcome.queries

    def after(self, treatments: Sequence[Edits]) -> list[Outcome]:
        new = [t for t in dict.fromkeys(treatments) if t not in self._known]
        self._known.update(zip(new, self._outcome.after(new), strict=True))
        return [self._known[t] for t in treatments]


def paired_interval(
    before: NDArray[np.float64], after: NDArray[np.float64], *, shares: bool, level: float = 0.95
) -> tuple[float, float]:
    """Return an interval of the mean of ``after - before``, paired.

    Student's t; for values of 0 and 1 (`shares`), exact binomial limits of how often a value rises
    and how often it falls, each at half the error, so that the difference holds at the level.

    Examples
    --------
    >>> low, high = paired_interval(np.zeros(10), np.ones(10), shares=True)
    >>> round(low, 2), high
    (0.29, 1.0)
    """
    apart, n = after - before, len(before)
    if not shares:
        error = float(apart.std(ddof=1)) / np.sqrt(n) * float(stdtrit(n - 1, (1 + level) / 2))
        return float(apart.mean()) - error, float(apart.mean()) + error
    tail = (1 - level) / 4
    limits = []
    for count in (int((apart > 0).sum()), int((apart < 0).sum())):
        low = float(betaincinv(count, n - count + 1, tail)) if count else 0.0
        high = float(betaincinv(count + 1, n - count, 1 - tail)) if count < n else 1.0
        limits.append((low, high))
    (up_low, up_high), (down_low, down_high) = limits
    return max(-1.0, up_low - down_high), min(1.0, up_high - down_low)


# All single edits of a history at once: what each item can reach by one of them, exactly.


_CELLS = 2**18


@dataclass(frozen=True, eq=False)
class SingleReach:
    """The best single edit for each item of the catalogue."""

    singles: Singles  # the edits; the indices below point into them, -1 for no edit
    # The greatest log-probability of each item, and the edit that gives it; None without beta.
    log_probability: NDArray[np.float32] | None
    edit: NDArray[np.int32] | None
    # The greatest margin of each item over the k-th best of the others, and its edit. Zero or more:
    # the item is in the list of k (on a tie, the lower code is).
    margin: NDArray[np.float32]
    margin_edit: NDArray[np.int32]
    edits: int  # how many edits were enumerated; all that are permitted


def _seen(history: History, n_items: int, exclude_seen: bool) -> NDArray[np.bool_]:
    seen = np.zeros(n_items, bool)
    if exclude_seen:
        seen[history.items] = True
    return seen


def single_reach(
    box: WhiteBox,
    space: EditSpace,
    *,
    k: int = 10,
    beta: float | None = None,
    exclude_seen: bool = True,
    shown: NDArray[np.int32] | None = None,
) -> SingleReach:
    """Enumerate all single edits and return what each item of the catalogue can reach.

    With seen items left out, an edit that rates the target takes it out of the list, so no target
    is reached by rating it; otherwise use `EditSpace.without_rating` and one call for each target.

    Parameters
    ----------
    box, space
        The model and the permitted edits; a budget of 0 leaves only today's scores.
    k
        Length of the list.
    beta
        Inverse temperature of the softmax, or None.
    exclude_seen
        Whether items of the edited history are left out.
    shown
        Today's list, when edits must be realistic.
    """
    from ombud.probes import _kernels

    history, n_items = space.history, space.n_items
    singles = space.singles(shown=shown)
    if space.budget == 0:
        singles = singles.take(np.empty(0, np.int64))
    seen = _seen(history, n_items, exclude_seen)
    depth = min(k, n_items - 1)
    adds = np.isnan(singles.before) & exclude_seen
    removes = np.isnan(singles.after) & exclude_seen
    best = np.full(n_items, -np.inf, np.float32)
    margin = np.full(n_items, -np.inf, np.float32)
    arg, margin_arg = np.full(n_items, -1, np.int32), np.full(n_items, -1, np.int32)
    rows = max(8, _CELLS // n_items)

    def keep(block: NDArray[np.float32], part: slice, first: int) -> None:
        count = len(block)
        top, last, after = (np.empty(count, np.float32) for _ in range(3))
        nobody = np.zeros(count, bool)
        items = singles.items[part] if first >= 0 else np.zeros(count, np.int32)
        added, removed = (adds[part], removes[part]) if first >= 0 else (nobody, nobody)
        _kernels.thresholds(block, seen, items, added, removed, depth, top, last, after)
        shift = np.zeros(count, np.float32)
        if beta is not None:
            peak = np.where(np.isfinite(top), top, 0).astype(np.float32)
            raised = np.exp((block - peak[:, None]) * np.float32(beta))
            total = raised.sum(axis=1)
            shift = np.float32(beta) * peak + np.log(np.where(total > 0, total, 1))
        _kernels.scan(
            block, np.float32(beta or 0.0), shift.astype(np.float32), last, after, first,
            best, arg, margin, margin_arg,
        )  # fmt: skip

    keep(box.scores([history]).astype(np.float32), slice(0, 1), -1)
    for part, block in box.blocks(history, singles, rows):
        keep(block, part, part.start)
    return SingleReach(
        singles,
        best if beta is not None else None,
        arg if beta is not None else None,
        margin,
        margin_arg,
        len(singles),
    )
