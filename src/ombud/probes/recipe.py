"""The recipe of a counterfactual number: a treatment space, an outcome, and a functional.

A counterfactual metric says which data sets are permitted and what each costs (`TreatmentSpace`),
what is shown to whom under a treatment (`OutcomeOf`), and what is asked of it (`Functional`).
Reachability, stability, escape, drift-in and the attainable value of a metric are fillings; one
more takes one file that registers itself with ``@register("probe", name)``.

A maximum over treatments is rarely found exactly, so an answer is a `Bracket`: what a verified
witness attains, and, where it is known, what no permitted treatment can go beyond.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Generic, Literal, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from ombud.errors import AuditedSystemError, PlanError

Policy = Literal["frozen", "retrained"]
"""``frozen``: the deployed model folds the new history in; ``retrained``: it is trained anew."""

Chance = Literal["none", "policy", "training", "service"]
"""Where randomness comes from: sampling of the policy, seed of training, a changing service."""

Status = Literal["proved", "searched", "undecided"]
"""How an optimum is known."""

_T = TypeVar("_T")
_Y = TypeVar("_Y")
_Treated = TypeVar("_Treated", contravariant=True)
_Seen = TypeVar("_Seen", contravariant=True)
_Shown = TypeVar("_Shown", covariant=True)

_SAME = 1e-9


@dataclass(frozen=True, eq=False)
class Outcome:
    """What one person is shown.

    Parameters
    ----------
    items
        Codes of the list, best first; -1 where it has ended.
    probabilities
        The probability of each item of the catalogue to be shown first, where it is known.
    draws
        The outcomes of several trainings, of which this one is the mean.
    """

    items: NDArray[np.int32]
    probabilities: NDArray[np.float64] | None = None
    draws: tuple[Outcome, ...] = ()


class TreatmentSpace(Protocol[_T]):
    """Which data sets are permitted, and what each costs."""

    @property
    def budget(self) -> int:
        """The most that a treatment may cost."""
        ...

    def nothing(self) -> _T:
        """Return the treatment that changes nothing; its cost is 0."""
        ...

    def cost(self, treatment: _T) -> int:
        """Return what a treatment costs."""
        ...

    def faults(self, treatment: _T) -> list[str]:
        """Return why a treatment is not permitted; nothing when it is."""
        ...


class OutcomeOf(Protocol[_Treated, _Shown]):
    """What is shown under a treatment: asks the real recommender under a named policy."""

    @property
    def policy(self) -> Policy:
        """Whether the model is frozen or trained again."""
        ...

    @property
    def queries(self) -> int:
        """How often the recommender was asked so far."""
        ...

    def after(self, treatments: Sequence[_Treated]) -> Sequence[_Shown]:
        """Return one outcome per treatment."""
        ...


class Functional(Protocol[_Seen]):
    """A number for a pair of outcomes, without and with a treatment."""

    @property
    def name(self) -> str:
        """What the number is called."""
        ...

    @property
    def seeks(self) -> Literal["greatest", "least"]:
        """Whether the optimum is the greatest or the least value."""
        ...

    def value(self, before: _Seen, after: _Seen) -> float:
        """Return the number; the larger (or the smaller, by `seeks`), the further."""
        ...


@dataclass(frozen=True, kw_only=True)
class Bracket(Generic[_T]):
    """What is known of an optimum over treatments."""

    # The best value that a treatment was seen to attain, by running the recommender again.
    attained: float
    bound: float | None  # what no permitted treatment goes beyond; None where nothing is proved
    today: float  # the value without any treatment
    witness: _T  # the treatment that attains it; the treatment that changes nothing counts
    cost: int  # what the witness costs
    budget: int  # what a treatment may cost
    policy: Policy  # the policy under which the witness was run, and to which the bound applies
    seeks: Literal["greatest", "least"]  # whether the optimum is the greatest or the least value
    solver: str  # how it was searched
    queries: int  # how often the recommender was asked

    def __post_init__(self) -> None:
        if self.bound is None:
            return
        sign = 1 if self.seeks == "greatest" else -1
        slack = 1e-6 * max(1.0, abs(self.bound)) if math.isfinite(self.bound) else 0.0
        if sign * (self.bound - self.attained) < -slack:
            raise AuditedSystemError(
                f"{self.solver}: a witness attains {self.attained:g}, beyond the proved bound "
                f"{self.bound:g}; the recommender does not behave as its white box says"
            )

    @property
    def lower(self) -> float | None:
        """A lower bound of the optimum, None where none is known."""
        return self.attained if self.seeks == "greatest" else self.bound

    @property
    def upper(self) -> float | None:
        """An upper bound of the optimum, None where none is known."""
        return self.bound if self.seeks == "greatest" else self.attained

    @property
    def exact(self) -> bool:
        """Whether the bounds meet."""
        if self.bound is None:
            return False
        return abs(self.bound - self.attained) <= 1e-6 * max(1.0, abs(self.attained))

    @property
    def status(self) -> Status:
        """Return how the optimum is known.

        *proved*: the bounds meet; *searched*: a treatment was found that is better than none;
        *undecided*: none was found, and no bound excludes one.
        """
        if self.exact:
            return "proved"
        sign = 1 if self.seeks == "greatest" else -1
        return "searched" if sign * (self.attained - self.today) > _SAME else "undecided"

    def reaches(self, threshold: float) -> bool | None:
        """Return whether the optimum is at least as good as a threshold; None when undecided."""
        sign = 1 if self.seeks == "greatest" else -1
        if sign * (self.attained - threshold) >= -_SAME:
            return True
        if self.bound is not None and sign * (self.bound - threshold) < -_SAME:
            return False
        return None

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON-ready values, the witness included when it is plain data."""
        fields = asdict(self)
        fields["exact"] = self.exact
        return fields


@dataclass(frozen=True, kw_only=True)
class Fewest(Generic[_T]):
    """The least cost after which a functional reaches a threshold."""

    cost: int | None  # the least cost found, or None: more than the budget, or none exists
    at_least: int  # No permitted treatment that costs less than this reaches the threshold (proved)
    none_exists: bool  # whether it is proved that no treatment within the budget reaches it
    witness: _T | None  # the treatment, None where none was found
    # As in `Bracket`.
    budget: int
    policy: Policy
    solver: str
    queries: int

    @property
    def exact(self) -> bool:
        """Whether the least cost is known, or it is known that there is none."""
        return self.none_exists or (self.cost is not None and self.cost == self.at_least)

    @property
    def censored(self) -> bool:
        """Whether no treatment within the budget was found, nor excluded by a proof."""
        return self.cost is None and not self.none_exists


@dataclass(frozen=True)
class Recipe(Generic[_T, _Y]):
    """A counterfactual metric: a treatment space, an outcome and a functional.

    Examples
    --------
    A world in which a treatment is a number of steps, and its outcome the place reached:

    >>> class Steps:
    ...     budget = 3
    ...     def nothing(self): return 0
    ...     def cost(self, treatment): return treatment
    ...     def faults(self, treatment): return []
    >>> class Place:
    ...     policy, queries = "frozen", 0
    ...     def after(self, treatments): return [2.0 * t for t in treatments]
    >>> class Far:
    ...     name, seeks = "distance", "greatest"
    ...     def value(self, before, after): return abs(after - before)
    >>> recipe = Recipe("walk", Steps(), Place(), Far())
    >>> found = recipe.best([1, 3], bound=6.0, solver="by hand")
    >>> found.lower, found.upper, found.exact, found.witness
    (6.0, 6.0, True, 3)
    >>> recipe.fewest([3, 2], threshold=4.0, solver="by hand").cost
    2
    """

    name: str
    space: TreatmentSpace[_T]
    outcome: OutcomeOf[_T, _Y]
    functional: Functional[_Y]

    def _values(self, candidates: Iterable[_T]) -> tuple[list[_T], list[float]]:
        """Run the recommender on candidates, the treatment that changes nothing first."""
        tried = [self.space.nothing(), *candidates]
        for treatment in tried:
            faults = self.space.faults(treatment)
            cost = self.space.cost(treatment)
            if cost > self.space.budget:
                faults = [*faults, f"it costs {cost}, over the budget of {self.space.budget}"]
            if faults:
                raise PlanError(f"{self.name}: a treatment is not permitted: {'; '.join(faults)}")
        outcomes = self.outcome.after(tried)
        before = outcomes[0]
        return tried, [self.functional.value(before, after) for after in outcomes]

    def best(
        self, candidates: Iterable[_T], *, bound: float | None = None, solver: str
    ) -> Bracket[_T]:
        """Run candidates through the recommender and return the best, with what is proved.

        Doing nothing is always among the candidates: the optimum is never worse than today.
        """
        tried, values = self._values(candidates)
        sign = 1 if self.functional.seeks == "greatest" else -1
        # Among equals the cheapest is the witness.
        order = sorted(
            range(len(tried)), key=lambda i: (-sign * values[i], self.space.cost(tried[i]))
        )
        first = order[0]
        return Bracket(
            attained=values[first],
            bound=bound,
            today=values[0],
            witness=tried[first],
            cost=self.space.cost(tried[first]),
            budget=self.space.budget,
            policy=self.outcome.policy,
            seeks=self.functional.seeks,
            solver=solver,
            queries=self.outcome.queries,
        )

    def fewest(
        self,
        candidates: Iterable[_T],
        *,
        threshold: float,
        at_least: int = 0,
        none_exists: bool = False,
        solver: str,
    ) -> Fewest[_T]:
        """Run candidates through the recommender and return the cheapest that does it.

        `threshold` is what the functional must reach (in the sense of its `seeks`); `at_least` and
        `none_exists` are what is proved of the least cost.
        """
        tried, values = self._values(candidates)
        sign = 1 if self.functional.seeks == "greatest" else -1
        there = [i for i, v in enumerate(values) if sign * (v - threshold) >= -_SAME]
        found = min(there, key=lambda i: self.space.cost(tried[i]), default=None)
        cost = None if found is None else self.space.cost(tried[found])
        if cost is not None and (none_exists or cost < at_least):
            raise AuditedSystemError(
                f"{self.name}: {solver} proved that {at_least} is the least cost, but a treatment "
                f"of cost {cost} does it; the recommender does not behave as its white box says"
            )
        return Fewest(
            cost=cost,
            at_least=at_least,
            none_exists=none_exists,
            witness=None if found is None else tried[found],
            budget=self.space.budget,
            policy=self.outcome.policy,
            solver=solver,
            queries=self.outcome.queries,
        )
