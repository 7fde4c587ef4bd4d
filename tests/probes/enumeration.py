"""Definition 1 and 2 by trying everything: every treatment is trained for, nothing is clever.

Probabilities are worked out here from the scores of retrained models, so that the only code shared
with the probes is the recommenders themselves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations, product
from typing import Any

import numpy as np

from ombud.data.interactions import Interactions

Treatment = dict[int, float]  # item: new value, 0 for taken back


def histories(row: np.ndarray, values: Sequence[float], budget: int) -> Iterator[Treatment]:
    """Yield every treatment of at most so many entries, none first."""
    may = [[v for v in (0.0, *values) if v != row[t]] for t in range(len(row))]
    for count in range(budget + 1):
        for items in combinations(range(len(row)), count):
            for after in product(*(may[t] for t in items)):
                yield dict(zip(items, after, strict=True))


def data_of(table: np.ndarray, scale: tuple[float, float] | None) -> Interactions:
    """Return a table, 0 for not rated, with all rows and columns named in any case."""
    users, items = np.nonzero(table)
    ratings = table[users, items] if scale else None
    return Interactions.from_arrays(users, items, ratings, rating_scale=scale)


def trained_scores(model: Any, data: Interactions, row: int, after: np.ndarray) -> np.ndarray:
    """Return the scores of all items for one user, the model trained with a new history."""
    matrix = data.matrix.tolil(copy=True)
    matrix[row] = after
    edited = Interactions(
        data.users, data.items, type(data.matrix)(matrix.tocsr()), data.explicit, data.rating_scale
    )
    edited.matrix.eliminate_zeros()
    fresh = replace(model).fit(edited)
    return fresh.score(data.users.ids[[row]], data.items.ids)[0].astype(np.float64)


def drawn(scores: np.ndarray, rated: np.ndarray, rule: tuple[str, float]) -> np.ndarray:
    """Return the probability of each item under ``("list", k)`` or ``("softmax", beta)``."""
    out = np.zeros(len(scores))
    open_ = np.flatnonzero(~np.isnan(scores) & ~rated)
    if not len(open_):
        return out
    name, number = rule
    if name == "list":
        out[open_[np.argsort(-scores[open_], kind="stable")][: int(number)]] = 1
        return out
    weights = np.exp(number * (scores[open_] - scores[open_].max()))
    out[open_] = weights / weights.sum()
    return out


def truth(
    model: Any,
    data: Interactions,
    row: int,
    values: Sequence[float],
    budget: int,
    rules: Sequence[tuple[str, float]],
    seeds: Sequence[int] = (),
) -> dict[tuple[str, float], tuple[np.ndarray, np.ndarray]]:
    """Return for each rule the probabilities today and at best of all items."""
    mine = data.matrix[[row]].toarray()[0]
    found: dict[tuple[str, float], tuple[np.ndarray, np.ndarray]] = {}
    for treatment in histories(mine, values, budget):
        after = mine.copy()
        for item, value in treatment.items():
            after[item] = value
        models = [replace(model, seed=s) for s in seeds] or [model]
        scores = [trained_scores(one, data, row, after) for one in models]
        for rule in rules:
            chance = np.mean([drawn(s, after > 0, rule) for s in scores], axis=0)
            today, best = found.get(rule, (chance, chance))
            found[rule] = today, np.maximum(best, chance)
    return found
