"""Searching the edits of a history: all of them where they are few, a beam where they are many."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ombud.probes.distances import probabilities
from ombud.probes.edits import Edits, EditSpace, History, Singles
from ombud.probes.models.base import WhiteBox

_PORTION = 256


class Goal(Protocol):
    """What a search makes as large as possible."""

    @property
    def exclude_seen(self) -> bool:
        """Whether items of the history are left out."""
        ...

    def values(self, masked: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the goal for each row of scores, -inf for what cannot be listed."""
        ...

    def direction(self, masked: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return in which direction of the scores the goal grows, at one row."""
        ...


def mask(
    scores: NDArray[Any], histories: Sequence[History], exclude_seen: bool
) -> NDArray[np.float64]:
    """Return scores with -inf for what cannot be listed."""
    out = np.where(np.isnan(scores), -np.inf, scores).astype(np.float64)
    if exclude_seen:
        for row, history in zip(out, histories, strict=True):
            row[history.items] = -np.inf
    return out


@dataclass(frozen=True)
class Objective:
    """What is made as large as possible: the log-probability of a set of items, or its margin."""

    targets: tuple[int, ...]  # item codes
    k: int  # length of the list; the margin is over the k-th best of the other items
    beta: float | None = None  # None for the margin
    exclude_seen: bool = True  # whether items of the history are excluded

    def masked(self, scores: NDArray[Any], histories: Sequence[History]) -> NDArray[np.float64]:
        """Return scores with -inf for what cannot be listed."""
        return mask(scores, histories, self.exclude_seen)

    def values(self, masked: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the objective of each row of masked scores."""
        wanted = list(self.targets)
        if self.beta is not None:
            chances = probabilities(masked, self.beta, nothing=0.0)
            with np.errstate(divide="ignore"):
                found: NDArray[np.float64] = np.log(chances[:, wanted].sum(1))
            return found
        mine = masked[:, wanted].max(axis=1)
        others = masked.copy()
        others[:, wanted] = -np.inf
        k = min(self.k, others.shape[1])
        rival = np.partition(others, others.shape[1] - k, axis=1)[:, others.shape[1] - k]
        rival = np.where(np.isneginf(rival), -1e30, rival)
        return np.where(np.isneginf(mine), -np.inf, mine - rival)

    def direction(self, masked: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the gradient of the objective in the scores, at one row of masked scores.

        For the margin, which has none, it points from the present list to the nearest target.
        """
        wanted = list(self.targets)
        out = np.zeros(len(masked))
        if self.beta is not None:
            chances = probabilities(masked, self.beta, nothing=0.0)
            total = chances[wanted].sum()
            if total > 0:
                out[wanted] = chances[wanted] / total
            else:
                out[wanted] = 1 / len(wanted)
            return out - chances
        order = np.argsort(-masked, kind="stable")[: self.k]
        order = order[np.isfinite(masked[order])]
        if len(order):
            out[order] -= 1 / len(order)
        out[wanted[int(np.argmax(masked[wanted]))]] += 1
        return out


@dataclass(frozen=True)
class Found:
    """The best treatments of each number of edits, best first, with their objective."""

    by_cost: tuple[tuple[tuple[float, Edits], ...], ...]
    complete: bool
    tried: int

    @property
    def best(self) -> tuple[float, Edits]:
        """The best treatment of any cost; among equals, the cheapest."""
        return max((e for level in self.by_cost for e in level), key=lambda e: (e[0], -len(e[1])))

    def candidates(self, count: int) -> list[Edits]:
        """Return the best treatments, to be run through the recommender."""
        every = [entry for level in self.by_cost for entry in level if entry[1]]
        every.sort(key=lambda e: (-e[0], len(e[1])))
        return [edits for _, edits in every[:count]]


def _evaluate(box: WhiteBox, objective: Goal, histories: Sequence[History]) -> NDArray[np.float64]:
    found = []
    for start in range(0, len(histories), _PORTION):
        some = histories[start : start + _PORTION]
        found.append(objective.values(mask(box.scores(some), some, objective.exclude_seen)))
    return np.concatenate(found) if found else np.empty(0)


def single_values(
    box: WhiteBox, history: History, singles: Singles, objective: Goal
) -> NDArray[np.float64]:
    """Return the objective after each single edit of a history."""
    out = np.empty(len(singles))
    added, removed = np.isnan(singles.before), np.isnan(singles.after)
    for part, block in box.blocks(history, singles, _PORTION):
        scores = np.where(np.isnan(block), -np.inf, block).astype(np.float64)
        if objective.exclude_seen:
            back = scores[np.arange(len(scores)), singles.items[part]]
            scores[:, history.items] = -np.inf
            rows = np.flatnonzero(added[part])
            scores[rows, singles.items[part][rows]] = -np.inf
            rows = np.flatnonzero(removed[part])
            scores[rows, singles.items[part][rows]] = back[rows]
        out[part] = objective.values(scores)
    return out


def number_of_treatments(space: EditSpace) -> int:
    """Return an upper bound of the number of treatments within the budget."""
    count = len(space.singles(shown=np.arange(space.n_items, dtype=np.int32)))
    return sum(comb(count, b) for b in range(space.budget + 1))


def treatments(space: EditSpace) -> Iterator[Edits]:
    """Yield every treatment within the budget."""
    singles = space.singles()
    edits = [singles.edit(i) for i in range(len(singles))]
    for count in range(space.budget + 1):
        for chosen in combinations(edits, count):
            if len({e.item for e in chosen}) == count:
                yield chosen


def exhaustive(
    box: WhiteBox, space: EditSpace, objective: Goal, *, shown: NDArray[np.int32] | None = None
) -> Found:
    """Try every treatment within the budget; of realistic edits, whose order matters, only one.

    ``shown`` is the list as it is, best first; needed when edits must be realistic.
    """
    if space.realistic is not None and space.budget != 1:
        raise ValueError("realistic edits are searched step by step")
    by_cost: list[list[tuple[float, Edits]]] = [[] for _ in range(space.budget + 1)]
    if space.budget == 1:
        singles = space.singles(shown=shown)
        values = single_values(box, space.history, singles, objective)
        now = float(_evaluate(box, objective, [space.history])[0])
        first = np.argsort(-values, kind="stable")[:8].tolist()
        best = tuple((float(values[i]), (singles.edit(i),)) for i in first)
        return Found((((now, ()),), best), True, len(singles) + 1)
    tried = 0
    portion: list[Edits] = []

    def settle() -> None:
        values = _evaluate(box, objective, [space.history.after(e) for e in portion])
        for value, edits in zip(values.tolist(), portion, strict=True):
            by_cost[len(edits)].append((value, edits))
        for level in by_cost:
            level.sort(key=lambda e: -e[0])
            del level[8:]
        portion.clear()

    for edits in treatments(space):
        portion.append(edits)
        tried += 1
        if len(portion) == _PORTION:
            settle()
    settle()
    return Found(tuple(tuple(level) for level in by_cost), True, tried)


def _screened(
    box: WhiteBox,
    space: EditSpace,
    objective: Goal,
    history: History,
    scores: NDArray[np.float64],
    shown: NDArray[np.int32] | None,
    screen: int,
    memory: dict[str, Singles],
) -> Singles:
    """Return the single edits that promise most."""
    singles = space.singles(history, shown)
    gains = box.gains(history, singles, objective.direction(scores))
    if gains is None:
        if "shortlist" in memory:
            near = memory["shortlist"]
            wanted = set(zip(near.items.tolist(), np.nan_to_num(near.after).tolist(), strict=True))
            pairs = zip(singles.items.tolist(), np.nan_to_num(singles.after).tolist(), strict=True)
            return singles.take(np.array([p in wanted for p in pairs], bool))
        gains = single_values(box, history, singles, objective)
        top = np.argsort(-gains, kind="stable")[:screen]
        memory["shortlist"] = singles.take(top)
        return singles.take(top)
    top = np.argsort(-gains, kind="stable")[:screen]
    return singles.take(top)


def beam(
    box: WhiteBox,
    space: EditSpace,
    objective: Goal,
    *,
    width: int = 5,
    screen: int = 48,
    start: Edits = (),
    lists: Callable[[History], NDArray[np.int32]] | None = None,
) -> Found:
    """Add one edit at a time, keeping the best few; the first steps do not depend on the budget.

    Parameters
    ----------
    box, space, objective
        Where, within what, and for what.
    width
        How many treatments are kept after each step.
    screen
        How many single edits are tried for each, by the gradient where the model has one.
    start
        Edits that are made in any case; they count.
    lists
        The list shown for a history; needed when edits must be realistic.
    """
    first = space.history.after(start)
    now = float(_evaluate(box, objective, [first])[0])
    level: list[tuple[float, Edits]] = [(now, start)]
    by_cost: list[list[tuple[float, Edits]]] = [[] for _ in range(len(start))] + [level]
    if start:
        by_cost[0] = [(float(_evaluate(box, objective, [space.history])[0]), ())]
    memory: dict[str, Singles] = {}
    tried = 1
    for _ in range(len(start), space.budget):
        following: dict[frozenset[Any], tuple[float, Edits]] = {}
        for _, edits in level:
            history = space.history.after(edits)
            scores = mask(box.scores([history]), [history], objective.exclude_seen)[0]
            shown = lists(history) if lists is not None else None
            singles = _screened(box, space, objective, history, scores, shown, screen, memory)
            values = single_values(box, history, singles, objective)
            tried += len(singles)
            for i in np.argsort(-values, kind="stable")[:width]:
                edit = singles.edit(int(i))
                following.setdefault(frozenset({*edits, edit}), (float(values[i]), (*edits, edit)))
        if not following:
            break
        level = sorted(following.values(), key=lambda entry: -entry[0])[:width]
        by_cost.append(level)
    return Found(tuple(tuple(entry) for entry in by_cost), False, tried)
