"""The best value of a metric of the list that a person can attain by edits of their history."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ombud.data.interactions import Interactions
from ombud.errors import PlanError
from ombud.probes.edits import Edits, EditSpace
from ombud.probes.outcomes import FrozenOutcome
from ombud.probes.recipe import Bracket, Outcome, Recipe
from ombud.probes.search import number_of_treatments
from ombud.registry import probe
from ombud.rng import generator
from ombud.systems.recommenders.model import Model

ListMetric = Callable[[NDArray[np.int32]], float]
"""A number for a list of item codes."""


@dataclass(frozen=True)
class _OfList:
    metric: ListMetric
    seeks: Literal["greatest", "least"]
    name: str = "metric of the list"

    def value(self, before: Outcome, after: Outcome) -> float:
        return self.metric(after.items[after.items >= 0])


@probe("attainable")
@dataclass(frozen=True, kw_only=True)
class Attainable:
    """Ask for the best value of a metric of the list within a budget of edits, model frozen.

    Edits are added one at a time, the best of those tried each time: a lower bound of what can be
    attained, exact when one edit is permitted and all were tried.
    """

    k: int = 10  # length of the list
    # Whether the greatest or the least value is wanted.
    seeks: Literal["greatest", "least"] = "greatest"
    tries: int = 100  # how many single edits are tried at each step, at random where there are more
    seed: int = 0  # of the choice

    def __post_init__(self) -> None:
        if self.k < 1 or self.tries < 1 or self.seeks not in {"greatest", "least"}:
            raise PlanError(
                "attainable: k and tries are at least 1, and seeks is 'greatest' or 'least'"
            )

    def of(
        self, model: Model, space: EditSpace, metric: ListMetric, *, own: int = -1
    ) -> Bracket[Edits]:
        """Return what one person can attain.

        `own` is the person's row among the model's users; -1 for somebody it was not trained on.
        """
        outcome = FrozenOutcome(model, space.history, self.k, own=own)
        functional = _OfList(metric, self.seeks)
        recipe: Recipe[Edits, Outcome] = Recipe("attainable", space, outcome, functional)
        rng = generator(self.seed, "attainable")
        sign = 1.0 if self.seeks == "greatest" else -1.0
        (today,) = outcome.after([()])
        current: Edits = ()
        best = sign * functional.value(today, today)
        complete = True
        for _ in range(space.budget):
            (shown,) = outcome.after([current])
            singles = space.singles(space.history.after(current), shown=shown.items)
            chosen = np.arange(len(singles))
            if len(chosen) > self.tries:
                chosen, complete = rng.choice(len(singles), self.tries, replace=False), False
            trials: list[Edits] = [(*current, singles.edit(int(i))) for i in chosen]
            values = [sign * functional.value(today, after) for after in outcome.after(trials)]
            if not values or max(values) <= best:
                break
            best = max(values)
            current = trials[int(np.argmax(values))]
        enumerated = complete and (space.budget <= 1 or number_of_treatments(space) <= 1)
        found = recipe.best(
            [current] if current else [],
            bound=sign * best if enumerated else None,
            solver="all single edits" if enumerated else f"greedy, {self.tries} tried at a time",
        )
        return found


def intra_list_diversity(interactions: Interactions) -> ListMetric:
    r"""Return the intra-list diversity by who interacted with items: 0 all alike, 1 nothing shared.

    :math:`1 - \frac{2}{n(n-1)} \sum_{i<j} \cos(u_i, u_j)`, where :math:`u_i` says which users have
    interacted with item i. NaN for lists of fewer than two items. It does not capture how alike
    items are in content.

    References
    ----------
    Ziegler, McNee, Konstan & Lausen (2005), "Improving recommendation lists through topic
    diversification", WWW.

    Examples
    --------
    >>> data = Interactions.from_arrays([0, 1, 0, 1, 2], [0, 0, 1, 1, 2])
    >>> measure = intra_list_diversity(data)
    >>> round(measure(np.array([0, 1])), 6), round(measure(np.array([0, 2])), 6)
    (0.0, 1.0)
    """
    columns = interactions.matrix.tocsc()
    who = columns.indices, columns.indptr

    def measure(items: NDArray[np.int32]) -> float:
        if len(items) < 2:
            return float("nan")
        users, ends = who
        table = np.zeros((len(items), interactions.n_users), np.float32)
        for place, item in enumerate(items.tolist()):
            table[place, users[ends[item] : ends[item + 1]]] = 1
        lengths = np.sqrt(table.sum(axis=1))
        table /= np.where(lengths > 0, lengths, 1)[:, None]
        alike = table @ table.T
        pairs = len(items) * (len(items) - 1)
        return float(1 - (alike.sum() - np.trace(alike)) / pairs)

    return measure
