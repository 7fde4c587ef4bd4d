"""The recommender as a procedure: data in, lists for some users out, again and again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from ombud.data.interactions import Interactions
from ombud.errors import AuditedSystemError
from ombud.probes.distances import ListDistance, expected_distance, probabilities, total_variation
from ombud.systems.base import Recommender

Floats = NDArray[np.float64]


@runtime_checkable
class Trainer(Protocol):
    """What turns data into a policy."""

    @property
    def name(self) -> str:
        """The system's name."""
        ...

    @property
    def seeded(self) -> bool:
        """Whether another seed may give another policy."""
        ...

    def train(self, interactions: Interactions, seed: int) -> Recommender:
        """Return a policy trained on data; the same data and seed give the same policy."""
        ...


@dataclass(frozen=True, eq=False)
class ModelTrainer:
    """A model of ombud, trained anew each time.

    Parameters
    ----------
    model
        Its arguments are kept; seed 0 means the model's own, s the s-th after it.
    """

    model: Any

    def __post_init__(self) -> None:
        if not is_dataclass(self.model) or not hasattr(self.model, "fit"):
            raise TypeError("the model must be one of ombud's; use FunctionTrainer for others")

    @property
    def name(self) -> str:
        """The system's name."""
        return str(self.model.name)

    @property
    def seeded(self) -> bool:
        """Whether the model has a seed."""
        return any(f.name == "seed" for f in fields(self.model))

    def train(self, interactions: Interactions, seed: int) -> Any:
        """Return the model, fitted."""
        changes = {"seed": self.model.seed + seed} if self.seeded else {}
        fresh = replace(self.model, **changes)
        fresh.name = self.model.name
        return fresh.fit(interactions)


@dataclass(frozen=True, eq=False)
class FunctionTrainer:
    """Any function from interactions and a seed to something that recommends.

    Parameters
    ----------
    name
        The system's name.
    function
        Called with the interactions and a seed.
    seeded
        Whether the seed matters.
    """

    name: str
    function: Callable[[Interactions, int], Recommender]
    seeded: bool = True

    def train(self, interactions: Interactions, seed: int) -> Recommender:
        """Return what the function returns."""
        return self.function(interactions, seed)


@dataclass(frozen=True, eq=False)
class Shown:
    """What some users are shown."""

    lists: NDArray[np.int32]  # users x places: item codes, -1 where a list has ended
    # Users x items, NaN for seen items and items without a score; None where there are none.
    scores: Floats | None = None
    # Users x items: how often each item was first in repeated answers; None when asked once.
    frequencies: Floats | None = None


def show(
    recommender: Any,
    interactions: Interactions,
    rows: NDArray[np.int64],
    n: int,
    *,
    scores: bool = False,
    repeats: int = 1,
) -> Shown:
    """Ask a recommender for the lists of some users.

    Parameters
    ----------
    recommender
        Has `recommend`, and `score` when scores are wanted.
    interactions
        Whose rows and items are meant.
    rows
        Rows of users.
    n
        The length of a list.
    scores
        Whether to ask for the scores of all unseen items too.
    repeats
        How often to ask; more than once gives frequencies of the first item.
    """
    users = interactions.users.take(rows)
    lists = _codes(recommender, interactions, users, n)
    frequencies = None
    if repeats > 1:
        frequencies = np.zeros((len(rows), interactions.n_items))
        first = lists[:, 0]
        for time in range(repeats):
            if time:
                first = _codes(recommender, interactions, users, n)[:, 0]
            there = first >= 0
            frequencies[np.flatnonzero(there), first[there]] += 1 / repeats
    if not scores:
        return Shown(lists, None, frequencies)
    if not hasattr(recommender, "score"):
        raise AuditedSystemError(
            f"{recommender.name} gives no scores, so that no distribution is known; compare lists"
        )
    found = np.array(recommender.score(users, interactions.items.arrow), dtype=np.float64)
    matrix = interactions.matrix
    for place, row in enumerate(rows.tolist()):
        found[place, matrix.indices[matrix.indptr[row] : matrix.indptr[row + 1]]] = np.nan
    return Shown(lists, found, frequencies)


def _codes(
    recommender: Any, interactions: Interactions, users: NDArray[Any], n: int
) -> NDArray[np.int32]:
    answer = recommender.recommend(users, n)
    if len(answer) != len(users):
        raise AuditedSystemError(
            f"{recommender.name} was asked for {len(users):,} lists and gave {len(answer):,}"
        )
    if answer.catalogue == interactions.items:
        return np.asarray(answer.items[:, :n], dtype=np.int32)
    translate = np.append(interactions.items.codes(answer.catalogue.arrow), np.int32(-1))
    lists = translate[answer.items[:, :n]]
    unknown = int(np.count_nonzero((lists < 0) & (answer.items[:, :n] >= 0)))
    if unknown:
        raise AuditedSystemError(
            f"{recommender.name} recommends {unknown:,} items that are not in the catalogue"
        )
    return np.asarray(lists, dtype=np.int32)


@runtime_checkable
class Change(Protocol):
    """How far apart what some users are shown is, before and after; one number per user."""

    @property
    def name(self) -> str:
        """The name as printed."""
        ...

    @property
    def needs_scores(self) -> bool:
        """Whether it reads scores."""
        ...

    def __call__(self, before: Shown, after: Shown) -> Floats:
        """Return one distance per user; NaN where it is undefined."""
        ...


@dataclass(frozen=True, eq=False)
class ListChange:
    """A distance between the lists of a system that always gives the same list."""

    distance: ListDistance
    needs_scores: bool = False

    @property
    def name(self) -> str:
        """The name as printed."""
        return self.distance.name

    def __call__(self, before: Shown, after: Shown) -> Floats:
        """Return one distance per user."""
        return self.distance(before.lists, after.lists)


@dataclass(frozen=True, eq=False)
class ProbabilityChange:
    """Total variation between the distributions of the first item.

    Frequencies of repeated answers are used where there are any; otherwise the distribution is
    ``softmax(beta * score)`` over unseen items.
    """

    # How strongly the system prefers high scores; None when answers are repeated.
    beta: float | None = None

    @property
    def needs_scores(self) -> bool:
        """Whether it reads scores."""
        return self.beta is not None

    @property
    def name(self) -> str:
        """The name as printed."""
        how = "repeated answers" if self.beta is None else f"softmax, beta = {self.beta:g}"
        return f"total variation ({how})"

    def __call__(self, before: Shown, after: Shown) -> Floats:
        """Return one distance per user."""
        sides = [self._distribution(side) for side in (before, after)]
        return total_variation(*sides)

    def _distribution(self, shown: Shown) -> Floats:
        if self.beta is None:
            if shown.frequencies is None:
                raise AuditedSystemError("answers were not repeated, so frequencies are not known")
            return shown.frequencies
        assert shown.scores is not None
        return probabilities(shown.scores, self.beta)


@dataclass(frozen=True, eq=False)
class ExpectedChange:
    """The expected distance between lists sampled from scores, under common random numbers."""

    distance: ListDistance
    n: int
    beta: float
    draws: int = 64
    seed: int = 0
    needs_scores: bool = True

    @property
    def name(self) -> str:
        """The name as printed."""
        return f"expected {self.distance.name} (softmax, beta = {self.beta:g})"

    def __call__(self, before: Shown, after: Shown) -> Floats:
        """Return one distance per user."""
        assert before.scores is not None and after.scores is not None
        rng = np.random.default_rng(self.seed)
        return expected_distance(
            before.scores, after.scores, self.distance, n=self.n, beta=self.beta,
            draws=self.draws, rng=rng,
        )[0]  # fmt: skip


def compare_all(changes: Sequence[Change], before: Shown, after: Shown) -> dict[str, Floats]:
    """Return every change by name."""
    return {change.name: change(before, after) for change in changes}
