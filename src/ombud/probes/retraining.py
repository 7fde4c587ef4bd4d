"""What users are shown after the recommender was trained on other data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ombud.data.interactions import Interactions
from ombud.errors import AuditedSystemError, PlanError
from ombud.probes.distances import first_lists
from ombud.probes.influence import masked, sharpness
from ombud.probes.models import influence_of
from ombud.probes.models.ease import EaseInfluence
from ombud.probes.others import SwapKind, UserSwap, swapped
from ombud.probes.recipe import Policy
from ombud.probes.training import (
    Change,
    ModelTrainer,
    ProbabilityChange,
    Shown,
    Trainer,
    compare_all,
    show,
)
from ombud.systems.recommenders.bpr import BPR
from ombud.systems.recommenders.ease import EASE
from ombud.systems.recommenders.factors import FactorModel

Floats = NDArray[np.float64]


class Keep(Protocol):
    """Keeps JSON-ready answers by key, and gives them back as JSON does."""

    def __call__(self, key: Sequence[Any], find: Callable[[], Any]) -> Any:
        """Return what is kept under a key; find and keep it if nothing is."""
        ...


def _forget(key: Sequence[Any], find: Callable[[], Any]) -> Any:
    return find()


def _mark(swap: UserSwap) -> tuple[Any, ...]:
    """Return what tells a swap from others, short enough for a key."""
    digest = blake2b(digest_size=16)
    for part in (swap.histories.indptr, swap.histories.indices, swap.histories.data):
        digest.update(np.ascontiguousarray(part).astype("<f8").tobytes())
    return swap.kind, list(map(int, swap.rows)), digest.hexdigest()


@dataclass(frozen=True, kw_only=True)
class StabilityPlan:
    """What to try.

    Parameters
    ----------
    kind
        How other users' data may differ: one of `SWAP_KINDS`. Kinds are reported apart.
    budget
        At most so many other users differ.
    k
        The length of a list.
    shortlist
        How many treatments with the highest predicted influence on a target are trained for.
    random
        How many random treatments are trained for, the same for all targets.
    pool
        How many random treatments are ranked by influence where they cannot all be listed.
    noise_runs
        How many trainings on unchanged data the noise floor has, of each kind.
    passes
        A warm start of so many passes, for models that can; None to train anew. Then the
        comparison is with a copy continued as long on the unchanged data.
    seeds
        Seeds of the training; distances are averaged over them, each with and without treatment.
    repeats
        How often a system that answers at random without a seed is asked; 1 refuses it.
    share
        The share of entries that differ in a ``changed`` user.
    seed
        Of the search itself.
    """

    kind: SwapKind = "removed"
    budget: int = 1
    k: int = 10
    shortlist: int = 3
    random: int = 20
    pool: int = 500
    noise_runs: int = 10
    passes: int | None = 2
    seeds: tuple[int, ...] = (0,)
    repeats: int = 1
    share: float = 0.5
    seed: int = 0

    def __post_init__(self) -> None:
        faults = []
        for name, least in (
            ("k", 1), ("shortlist", 0), ("random", 0), ("pool", 1), ("noise_runs", 0),
            ("repeats", 1), ("seed", 0),
        ):  # fmt: skip
            if getattr(self, name) < least:
                faults.append(f"{name} is {getattr(self, name)}; it must be at least {least}")
        if self.shortlist + self.random == 0:
            faults.append("shortlist and random are both 0; nothing would be tried")
        if self.passes is not None and self.passes < 1:
            faults.append(f"passes is {self.passes}; it must be at least 1, or None")
        if not self.seeds or min(self.seeds) < 0 or len(set(self.seeds)) < len(self.seeds):
            faults.append(f"seeds is {self.seeds}; different numbers from 0 on are needed")
        if faults:
            raise PlanError("stability: " + "; ".join(faults))


class Retraining:
    """What some users are shown after the recommender is trained on other data.

    Every treatment is trained for once per seed, and its distances are kept.

    `rows` are the targets and `slots` the rows for planted users. Distances are kept in `keep`, to
    go on from after a kill; None for nowhere.
    """

    policy: Policy = "retrained"

    def __init__(
        self,
        trainer: Trainer,
        interactions: Interactions,
        rows: NDArray[np.int64],
        changes: Sequence[Change],
        plan: StabilityPlan,
        *,
        slots: int,
        keep: Keep | None = None,
    ) -> None:
        self.keep = _forget if keep is None else keep
        self.trainer, self.rows, self.changes, self.plan = trainer, rows, changes, plan
        self.original, self.slots = interactions, slots
        self.data = swapped(interactions, None, slots=slots)
        self.queries = 0
        self.bases = [self._base(seed) for seed in plan.seeds]
        self.influence = influence_of(self.bases[0])
        # Training EASE takes a matrix of items x items each time; its formula is exact.
        self.formula = self.influence if isinstance(self.influence, EaseInfluence) else None
        self.score_change = self._score_change()
        self.shown = [self._show(base) for base in self.bases]
        self.deterministic = self._check_repeats()
        self.warm = plan.passes is not None and self._can_continue(self.bases[0])
        self.controls = self.shown
        if self.warm:
            self.controls = [self._show(self._continued(base, None)) for base in self.bases]
        self._found: dict[int, tuple[UserSwap, dict[str, Floats]]] = {}

    def _score_change(self) -> ProbabilityChange | None:
        """Return the distance that influence predicts, to be compared with; None without one.

        It is measured beside the distances asked for.
        """
        if self.influence is None:
            return None
        today = [masked(self.influence.today(row), self.data, row) for row in self.rows.tolist()]
        change = ProbabilityChange(sharpness(np.array(today), self.plan.k))
        if change.name not in {asked.name for asked in self.changes}:
            self.changes = [*self.changes, change]
        return change

    def _base(self, seed: int) -> Any:
        """Return the model trained on the data as they are; one without a seed is trained."""
        trainer = self.trainer
        if isinstance(trainer, ModelTrainer) and isinstance(trainer.model, EASE) and not self.slots:
            with suppress(AuditedSystemError):  # it was not trained
                if trainer.model.interactions is self.original:
                    return trainer.model
        return self._train(self.data, seed)

    def _train(self, data: Interactions, seed: int) -> Any:
        self.queries += 1
        return self.trainer.train(data, seed)

    def _show(self, recommender: Any) -> Shown:
        if self.formula is not None:
            return self._by_formula(None)
        needs = any(change.needs_scores for change in self.changes)
        return show(
            recommender, self.data, self.rows, self.plan.k, scores=needs, repeats=self.plan.repeats
        )

    def _check_repeats(self) -> bool:
        """Return whether the same data and seed give the same lists; refuse it if they do not.

        A system that is asked repeatedly may be random: then frequencies are compared.
        """
        if self.formula is not None:
            return True
        again = self._show(self._train(self.data, self.plan.seeds[0]))
        same = bool(np.array_equal(again.lists, self.shown[0].lists))
        if not same and self.plan.repeats == 1:
            changed = int(np.count_nonzero((again.lists != self.shown[0].lists).any(axis=1)))
            raise AuditedSystemError(
                f"{self.trainer.name} gave other lists to {changed:,} of {len(self.rows):,} users "
                "when trained twice on the same data with the same seed; give it a seed, or ask "
                "repeatedly (repeats) and compare distributions"
            )
        return same

    @staticmethod
    def _can_continue(model: Any) -> bool:
        return isinstance(model, FactorModel) and not isinstance(model, BPR)

    def _continued(self, base: Any, swap: UserSwap | None, more: int = 0) -> Any:
        self.queries += 1
        assert self.plan.passes is not None
        data = self.data if swap is None else swapped(self.original, swap, slots=self.slots)
        return base.continued(data, self.plan.passes + more)

    def distances(self, swap: UserSwap) -> dict[str, Floats]:
        """Return every distance by name, one number per target; NaN where its own data change."""
        if id(swap) not in self._found:
            found = self._remembered(("swap", *_mark(swap)), lambda: self._trained_for(swap))
            # The swap is kept with its numbers, so that its identity stays its own.
            self._found[id(swap)] = (swap, found)
        return self._found[id(swap)][1]

    def _remembered(
        self, key: Sequence[Any], find: Callable[[], dict[str, Floats]]
    ) -> dict[str, Floats]:
        """Return distances that are kept with the number of trainings they cost."""

        def plain() -> tuple[dict[str, list[float]], int]:
            before = self.queries
            found = {name: values.tolist() for name, values in find().items()}
            cost, self.queries = self.queries - before, before
            return found, cost

        told, cost = self.keep(key, plain)
        self.queries += cost
        return {name: np.array(values, np.float64) for name, values in told.items()}

    def _trained_for(self, swap: UserSwap) -> dict[str, Floats]:
        per_seed: list[dict[str, Floats]] = []
        if self.formula is not None:
            after = self._by_formula(swap)
            per_seed = [compare_all(self.changes, control, after) for control in self.controls]
        for seed, base, control in (
            () if per_seed else zip(self.plan.seeds, self.bases, self.controls, strict=True)
        ):
            if self.warm:
                model = self._continued(base, swap)
            else:
                data = swapped(self.original, swap, slots=self.slots)
                model = self._train(data, seed)
            per_seed.append(compare_all(self.changes, control, self._show(model)))
        own = np.isin(self.rows, swap.rows)
        return {
            name: np.where(own, np.nan, np.mean([one[name] for one in per_seed], axis=0))
            for name in per_seed[0]
        }

    def _by_formula(self, swap: UserSwap | None) -> Shown:
        """Return what targets are shown, after a swap, by the exact formula of the model."""
        assert self.formula is not None
        prepared = None if swap is None else self.formula.prepare([swap])
        found = []
        for row in self.rows.tolist():
            after = self.formula.today(row) if prepared is None else prepared.scores(row)[0]
            found.append(masked(after.astype(np.float32), self.data, row))
        scores = np.array(found)
        return Shown(first_lists(scores, self.plan.k), scores)

    def noise(self, kind: str, run: int) -> dict[str, Floats]:
        """Return the distances between two trainings on the same data."""
        return self._remembered(("noise", kind, run), lambda: self._noise(kind, run))

    def _noise(self, kind: str, run: int) -> dict[str, Floats]:
        base = self.bases[0]
        if kind == "pass":
            return compare_all(
                self.changes, self.controls[0], self._show(self._continued(base, None, run + 1))
            )
        other = max(self.plan.seeds) + 1 + run if kind == "seed" else self.plan.seeds[0]
        return compare_all(self.changes, self.shown[0], self._show(self._train(self.data, other)))

    def of_target(self, target: int, change: str) -> _TargetChange:
        """Return one target's distance by one name, as the outcome of a recipe."""
        return _TargetChange(self, target, change)


@dataclass(frozen=True, eq=False)
class _TargetChange:
    retraining: Retraining
    target: int
    change: str

    @property
    def policy(self) -> Policy:
        return self.retraining.policy

    @property
    def queries(self) -> int:
        return self.retraining.queries

    def after(self, treatments: Sequence[UserSwap]) -> list[float]:
        return [
            float(self.retraining.distances(swap)[self.change][self.target]) if swap.cost else 0.0
            for swap in treatments
        ]
