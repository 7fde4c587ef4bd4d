"""Reachability of anything with ``recommend(history)``: a lower bound, by asking."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ombud.errors import AuditedSystemError, PlanError
from ombud.probes.blackbox.questions import Questions
from ombud.probes.edits import Edits, EditSpace, History, Singles
from ombud.probes.models.base import WhiteBox
from ombud.probes.recipe import Bracket
from ombud.probes.search import Objective
from ombud.registry import probe
from ombud.rng import generator
from ombud.stats.proportions import wilson


@dataclass(frozen=True, eq=False)
class BlackBoxReach:
    """What asking has shown of one target."""

    targets: tuple[int, ...]  # item codes
    # Whether one of them was brought among the first k: a lower bound, without a proof of the
    # contrary. For a random system, the share of repeats in which it was.
    in_list: Bracket[Edits]
    interval: tuple[float, float] | None  # of that share, for a random system; None otherwise
    # Best rank today and best rank seen; None beyond the length of the lists asked for.
    rank_today: int | None
    rank_best: int | None
    notes: tuple[str, ...] = field(default=())  # what a reader must know


@probe("black-box-reachability")
@dataclass(frozen=True, kw_only=True)
class BlackBoxReachability:
    """Ask what one person could be shown, of a system of which only the lists are known.

    Single edits are asked first, at random, every second one by a surrogate where there is one (a
    model that ombud trained on data at hand); then the best of them together; then one edit
    at a time is exchanged for another, until the questions are spent. All answers are kept, so
    targets of one person share their single edits. The witness is asked once more at the end.

    Parameters
    ----------
    k
        Length of the list in question; the lists asked for may be longer, which guides the search.
    queries
        Questions for one target at most; None for as many as the run has.
    singles
        The share of them that goes to single edits.
    shortlist
        How many single edits are combined and exchanged.
    repeats
        How often a random system is asked the same; 1 for a deterministic one.
    seed
        Of the order of single edits without a surrogate.
    """

    k: int = 10
    queries: int | None = None
    singles: float = 0.5
    shortlist: int = 32
    repeats: int = 1
    seed: int = 0

    def __post_init__(self) -> None:
        wrong = self.k < 1 or self.shortlist < 1 or self.repeats < 1 or not 0 < self.singles <= 1
        if wrong or (self.queries is not None and self.queries < 3):
            raise PlanError(
                "black-box-reachability: k, shortlist and repeats are at least 1, queries at "
                "least 3, and singles is a share above 0"
            )

    def of(
        self,
        questions: Questions,
        space: EditSpace,
        targets: Sequence[int | Sequence[int]],
        *,
        surrogate: WhiteBox | None = None,
    ) -> list[BlackBoxReach]:
        """Return what asking shows of each target for one person.

        Parameters
        ----------
        questions
            The door to the system.
        space
            The person's permitted edits.
        targets
            Item codes, or sets of them.
        surrogate
            A model whose inside is known, to guess by; its guesses are always asked.
        """
        if self.k > questions.n:
            raise PlanError(f"k is {self.k}, but lists of {questions.n} are asked for")
        sets = [(t,) if isinstance(t, int | np.integer) else tuple(t) for t in targets]
        return [
            _Search(self, questions, space, tuple(sorted(map(int, group))), surrogate).run()
            for group in sets
        ]


class _Search:
    def __init__(
        self,
        asked: BlackBoxReachability,
        questions: Questions,
        space: EditSpace,
        group: tuple[int, ...],
        surrogate: WhiteBox | None,
    ) -> None:
        self.asked, self.questions, self.group, self.surrogate = asked, questions, group, surrogate
        self.space = space.without_rating(group)
        self.start = questions.spent
        self.best: tuple[float, Edits] = (-np.inf, ())
        self.values: dict[Edits, float] = {}
        self.notes: list[str] = list(self.space.notes)

    def _left(self) -> int:
        """Questions left for this target, one kept for the witness."""
        limits = [10**9]
        if self.asked.queries is not None:
            limits.append(self.asked.queries - (self.questions.spent - self.start))
        if self.questions.budget.left is not None:
            limits.append(self.questions.budget.left)
        return max(min(limits) - 1, 0)

    def _rank(self, answer: NDArray[np.int32]) -> int | None:
        places = np.flatnonzero(np.isin(answer, self.group))
        return int(places[0]) + 1 if len(places) else None

    def _try(self, treatments: list[Edits]) -> None:
        """Ask about treatments; those beyond the budget are left out."""
        new = [t for t in dict.fromkeys(treatments) if t not in self.values][: self._left()]
        if self.space.realistic is not None:
            new = [t for t in new if self._was_shown(t)]
        answers = self.questions.ask([self.space.history.after(t) for t in new])
        for treatment, answer in zip(new, answers, strict=True):
            if answer is None:
                continue
            rank = self._rank(answer)
            value = -float(rank if rank is not None else self.questions.n + 1)
            self.values[treatment] = value
            if (value, -len(treatment)) > (self.best[0], -len(self.best[1])):
                self.best = (value, treatment)

    def _was_shown(self, treatment: Edits) -> bool:
        places = self.space.realistic or 0
        for place, edit in enumerate(treatment):
            if edit.kind == "add":
                (shown,) = self.questions.ask([self.space.history.after(treatment[:place])])
                if shown is None or edit.item not in shown[:places]:
                    return False
        return True

    def _ordered(self, today: NDArray[np.int32]) -> Singles:
        shown = today if self.space.realistic is not None else None
        singles = self.space.singles(shown=shown)
        rated = [t for t in self.group if self.space.history.value(t) is not None]
        guess: NDArray[np.int64] | None = None
        if self.surrogate is not None:
            history = self.space.history
            objective = Objective(self.group, self.asked.k)
            masked = objective.masked(self.surrogate.scores([history]), [history])[0]
            gains = self.surrogate.gains(history, singles, objective.direction(masked))
            if gains is not None:
                guess = np.argsort(-gains, kind="stable")
        rng = generator(self.asked.seed, "black-box", *map(str, self.group))
        order = rng.permutation(len(singles))
        if guess is not None:
            # Every second question is left to chance, in case the surrogate knows nothing.
            both = np.column_stack([guess, order]).ravel()
            order = both[np.sort(np.unique(both, return_index=True)[1])]
        first = np.isin(singles.items[order], rated)
        return singles.take(np.concatenate([order[first], order[~first]]))

    def _search(self) -> int | None:
        (today,) = self.questions.ask([self.space.history])
        if today is None:
            self.notes.append(
                "the first question has no answer: the budget was spent, or it was lost in a kill"
            )
            return None
        rank = self._rank(today)
        self.values[()] = -float(rank if rank is not None else self.questions.n + 1)
        self.best = (self.values[()], ())
        if self.space.budget == 0:
            return rank
        singles = self._ordered(today)
        count = min(len(singles), max(1, int(self._left() * self.asked.singles)))
        if self.space.budget == 1:
            count = min(len(singles), self._left())
        self._try([(singles.edit(i),) for i in range(count)])
        if self.space.budget > 1:
            self._combine(singles)
        return rank

    def _combine(self, singles: Singles) -> None:
        """Apply the best single edits together, then exchange one at a time."""
        known = [(self.values.get((singles.edit(i),), -np.inf), -i) for i in range(len(singles))]
        order = sorted(range(len(singles)), key=lambda i: known[i], reverse=True)
        short, used = [], set()
        for i in order:
            edit = singles.edit(i)
            if edit.item not in used:
                short.append(edit)
                used.add(edit.item)
            if len(short) == self.asked.shortlist:
                break
        budget = min(self.space.budget, len(short))
        self._try([tuple(short[:b]) for b in range(2, budget + 1)])
        current = tuple(short[:budget])
        improved = True
        while improved and self._left() > 0:
            improved = False
            for slot in range(budget):
                rest = current[:slot] + current[slot + 1 :]
                taken = {e.item for e in rest}
                trials = [(*rest, e) for e in short if e.item not in taken and e != current[slot]]
                before = self.values.get(current, -np.inf)
                self._try(trials)
                better = max(trials, key=lambda t: self.values.get(t, -np.inf), default=current)
                if self.values.get(better, -np.inf) > before:
                    current, improved = better, True
                if self._left() <= 0:
                    break

    def run(self) -> BlackBoxReach:
        today: int | None = None
        try:
            today = self._search()
            share, interval = self._verified()
        except AuditedSystemError as problem:
            self.notes.append(str(problem))
            share, interval = float(-self.best[0] <= self.asked.k), None
            self.notes.append("the witness could not be asked once more")
        bracket = Bracket(
            attained=share,
            bound=None,
            today=float(today is not None and today <= self.asked.k),
            witness=self.best[1],
            cost=len(self.best[1]),
            budget=self.space.budget,
            policy="frozen",
            seeks="greatest",
            solver="black box" + (", guided by a surrogate" if self.surrogate is not None else ""),
            queries=self.questions.spent - self.start,
        )
        seen = -self.best[0] if np.isfinite(self.best[0]) else np.inf
        best = int(seen) if seen <= self.questions.n else None
        return BlackBoxReach(self.group, bracket, interval, today, best, tuple(self.notes))

    def _verified(self) -> tuple[float, tuple[float, float] | None]:
        """Ask about the witness anew and return the share of answers that hold a target."""
        if not np.isfinite(self.best[0]):
            return 0.0, None
        history = self.space.history.after(self.best[1])
        if self.asked.repeats == 1:
            (again,) = self.questions.ask([history], repeat=1)
            if again is None:
                self.notes.append("no question was left to ask about the witness once more")
                return float(-self.best[0] <= self.asked.k), None
            rank = self._rank(again)
            if (rank if rank is not None else self.questions.n + 1) != -self.best[0]:
                self.notes.append(
                    "the system gave another answer to the same question; ask it with repeats"
                )
            return float(rank is not None and rank <= self.asked.k), None
        ranks = []
        for repeat in range(1, self.asked.repeats + 1):
            (again,) = self.questions.ask([history], repeat=repeat)
            if again is not None:
                ranks.append(self._rank(again))
        hits = sum(rank is not None and rank <= self.asked.k for rank in ranks)
        if not ranks:
            return 0.0, (0.0, 1.0)
        low, high = wilson(hits, len(ranks))
        return hits / len(ranks), (float(low), float(high))


def same_answers(questions: Questions, histories: Sequence[History], times: int = 2) -> int:
    """Return for how many histories the system gives the same list every time it is asked."""
    rounds = [questions.ask(histories, repeat=repeat) for repeat in range(times)]
    same = 0
    for answers in zip(*rounds, strict=True):
        told = [a.tolist() for a in answers if a is not None]
        same += len(told) == times and all(t == told[0] for t in told)
    return same
