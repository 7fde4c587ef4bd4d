"""What anything with ``recommend(history)`` can be seen to show one person, by querying it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, betaln, xlog1py, xlogy

from ombud.errors import AuditedSystemError, PlanError
from ombud.probes.blackbox.questions import Questions
from ombud.probes.blackbox.surrogate import AnswerModel
from ombud.probes.edits import Edit, Edits, EditSpace, Singles
from ombud.probes.recipe import Bracket, Fewest
from ombud.registry import probe
from ombud.rng import generator

Floats = NDArray[np.float64]

_BATCH = 16  # queries chosen at a time, whatever runs in parallel; one of them is unedited
_SURE = 200.0  # odds at which a difference between paired answers counts as shown
_NOT_AGAIN = "no query was left to ask about the witness once more"
_USUAL = 0.5  # a share of answers above which a list that changes by itself meets a goal today
_GIVE_UP = 8  # pairs after which a witness that is not ahead is given up


@dataclass(frozen=True)
class ListGoal:
    """What the first k positions of a list should come to hold, or to be rid of.

    Parameters
    ----------
    items
        Item codes.
    count
        ``in``: the list should hold at least so many of them; ``out``: at most so many.
    towards
        ``in`` or ``out``.
    rated
        Whether edits may rate these items. Seen items leave most lists, so a target of reach may
        not be rated.
    budget
        The most edits; None for the budget of the edit space.
    """

    items: tuple[int, ...]
    count: int = 1
    towards: Literal["in", "out"] = "in"
    rated: bool = False
    budget: int | None = None

    def __post_init__(self) -> None:
        if self.count < (self.towards == "in"):
            raise PlanError(f"count is {self.count}; at least 1 item can enter, 0 can stay")


@dataclass(frozen=True, eq=False)
class BlackBoxReach:
    """What querying has shown of one goal."""

    targets: tuple[int, ...]  # item codes
    # Whether an edit attained the goal: a lower bound, without a proof of the contrary. For a
    # system that changes its mind, the share of queries about the witness in which it was
    # attained; `today` is that share among unedited queries put in between.
    in_list: Bracket[Edits]
    # Whether it is shown that the list meets the goal today, or that an edit, rather than chance
    # or the passing of time, makes it do so.
    shown: bool
    interval: tuple[float, float] | None  # of the share, if the system changes its mind
    # Best rank today and best rank seen; None beyond the length of the lists asked for.
    rank_today: int | None
    rank_best: int | None
    # How often the unedited history was queried, and how often the answer was not the first one.
    unedited: tuple[int, int]
    lists: tuple[NDArray[np.int32], NDArray[np.int32]]  # today's, and the one after the witness
    notes: tuple[str, ...] = field(default=())  # what a reader must know

    @property
    def fewest(self) -> Fewest[Edits]:
        """The fewest edits that were seen to attain the goal; nothing is proved of fewer."""
        bracket = self.in_list
        return Fewest(
            cost=bracket.cost if self.shown else None,
            at_least=0 if self.shown and not bracket.cost else 1,
            none_exists=False,
            witness=bracket.witness if self.shown else None,
            budget=bracket.budget,
            policy=bracket.policy,
            solver=bracket.solver,
            queries=bracket.queries,
        )


def paired_odds(gained: int, lost: int) -> float:
    r"""Return the evidence that a witness does more than chance, from paired answers.

    Of pairs of a query about the witness and an unedited one beside it, in random order, those
    count in which one attains the goal and the other does not. Without an effect each is as likely
    a gain as a loss, however the system drifts meanwhile. The evidence is the mean likelihood of
    shares of gains above one half, against one half:

    .. math:: 2^{n+1} \int_{1/2}^1 p^g (1-p)^l\,dp,\quad n = g + l

    Its expectation without an effect is at most 1 whenever one looks, so the chance that it ever
    reaches c is at most 1/c.

    Examples
    --------
    >>> round(paired_odds(1, 0), 3), round(paired_odds(11, 0)), paired_odds(0, 0)
    (1.5, 341, 1.0)
    """
    total = gained + lost
    inside = betaln(gained + 1, lost + 1) + np.log(betainc(lost + 1, gained + 1, 0.5))
    return float(np.exp((total + 1) * np.log(2) + inside))


def share_at_any_time(hits: int, of: int, level: float = 0.95) -> tuple[float, float]:
    """Return an interval of a share that holds however the number of trials was chosen.

    All shares whose likelihood is not below that of the uniform mixture by 1 / (1 - level).

    Examples
    --------
    >>> low, high = share_at_any_time(5, 10)
    >>> round(low, 2), round(high, 2), share_at_any_time(0, 0)
    (0.13, 0.87, (0.0, 1.0))
    """
    shares = np.linspace(0, 1, 2001)
    mixed = betaln(hits + 1, of - hits + 1)
    kept = shares[mixed - xlogy(hits, shares) - xlog1py(of - hits, -shares) < -np.log1p(-level)]
    return float(kept[0]), float(kept[-1])


@probe("black-box-reachability")
@dataclass(frozen=True, kw_only=True)
class BlackBoxReachability:
    """Query a system of which only the lists are known for what one person could be shown.

    Every answer is read for all goals. Single edits are queried first, half of them at random and
    half as a surrogate proposes that is fitted to the answers so far, then the best of them
    together, then one edit at a time is exchanged for another. Unedited queries stand in between,
    so that a list that changes by itself is not taken for one that an edit changed: if they
    differ, for this person or an earlier one, or a witness does not hold when it is queried again,
    witnesses and unedited histories are queried in pairs until the difference is shown, given up,
    or the queries are spent.

    Parameters
    ----------
    k
        Length of the list in question; the lists asked for may be longer, which guides the search.
    queries
        Queries about one person at most; None for as many as the run has.
    singles
        The share of them that goes to single edits where more than one is permitted.
    shortlist
        How many single edits are combined and exchanged.
    repeats
        The most pairs of a witness and an unedited history, for a system that changes its mind.
    seed
        Of the order of single edits and of pairs.
    """

    k: int = 10
    queries: int | None = None
    singles: float = 0.5
    shortlist: int = 32
    repeats: int = 40
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
        targets: Sequence[int | Sequence[int] | ListGoal],
        *,
        surrogate: AnswerModel | None = None,
    ) -> list[BlackBoxReach]:
        """Return what querying shows of each target for one person.

        Parameters
        ----------
        questions
            The door to the system.
        space
            The person's permitted edits.
        targets
            Item codes, or sets of them, or goals.
        surrogate
            What is learned from answers; one for several persons learns from all of them.
        """
        if self.k > questions.n:
            raise PlanError(f"k is {self.k}, but lists of {questions.n} are asked for")
        goals = [
            target
            if isinstance(target, ListGoal)
            else ListGoal((int(target),))
            if isinstance(target, int | np.integer)
            else ListGoal(tuple(sorted(map(int, target))))
            for target in targets
        ]
        return _Person(self, questions, space, goals, surrogate).run()


class _Goals:
    """Goals as arrays, so that one answer is read for all of them at once."""

    def __init__(self, goals: Sequence[ListGoal], k: int, n: int, space: EditSpace) -> None:
        self.k, self.n = k, n
        self.members = np.zeros((len(goals), space.n_items), np.bool_)
        for place, goal in enumerate(goals):
            self.members[place, list(goal.items)] = True
        self.out = np.array([goal.towards == "out" for goal in goals], np.bool_)
        self.count = np.array([goal.count for goal in goals], np.int64)
        self.closed = np.array([not goal.rated for goal in goals], np.bool_)
        self.budget = np.array(
            [space.budget if g.budget is None else min(g.budget, space.budget) for g in goals]
        )

    def __len__(self) -> int:
        return len(self.count)

    def ranks(self, answer: NDArray[np.int32]) -> NDArray[np.int64]:
        """Return the rank of the item that decides each goal; n + 1 beyond the list."""
        hits = self.members[:, answer] & (answer >= 0)
        before = hits.cumsum(axis=1) < (self.count + self.out)[:, None]
        ranks = before.sum(axis=1) + 1
        return np.where(ranks > len(answer), self.n + 1, ranks)

    def values(self, answer: NDArray[np.int32]) -> Floats:
        """Return how far each goal is attained; `attained` says from where on."""
        ranks = self.ranks(answer)
        first = answer[: self.k]
        held = (self.members[:, first] & (first >= 0)).sum(axis=1)
        return np.where(self.out, self.count - held + ranks / (self.n + 2), -ranks)

    def attained(self, values: Floats) -> NDArray[np.bool_]:
        """Return which goals are attained."""
        return np.where(self.out, values >= 0, -values <= self.k)

    def permits(self, items: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Return which goals permit that an edit rates an item, by goal and item."""
        return ~(self.members[:, items] & self.closed[:, None])


class _Person:
    """The search for one person; everything that was answered is kept and read for all goals."""

    def __init__(
        self,
        asked: BlackBoxReachability,
        questions: Questions,
        space: EditSpace,
        goals: Sequence[ListGoal],
        surrogate: AnswerModel | None,
    ) -> None:
        self.asked, self.questions, self.space = asked, questions, space
        self.given, self.surrogate = goals, surrogate
        self.goals = _Goals(goals, asked.k, questions.n, space)
        self.start, self.sent = questions.budget.spent, questions.spent
        self.values: dict[Edits, Floats] = {}
        self.lists: dict[Edits, NDArray[np.int32]] = {}
        self.unedited: list[NDArray[np.int32]] = []
        self.witness: list[Edits] = [()] * len(goals)
        self.notes: list[str] = list(space.notes)
        self.short = 0
        self.stable = not questions.unsteady
        # Of the witness of each goal: pairs, gains, losses, and answers that attain the goal.
        self.paired, self.gained, self.lost, self.hits, self.without = np.zeros((5, len(goals)))
        self.decided: set[int] = set()
        self.turns: dict[Edits, int] = {}  # how often a witness was queried again
        words = [str(item) for item in space.history.items[:50].tolist()]
        self.rng = generator(asked.seed, "black-box", *words)

    def _left(self) -> int:
        """Return how many queries are left, those for asking once more about witnesses apart."""
        limits = [10**9]
        if self.asked.queries is not None:
            limits.append(self.asked.queries - (self.questions.budget.spent - self.start))
        if self.questions.budget.left is not None:
            limits.append(self.questions.budget.left)
        witnesses = {witness for witness in self.witness if witness}
        return max(min(limits) - len(witnesses) - bool(witnesses), 0)

    # -- Reading answers.

    def _control(self) -> NDArray[np.int32] | None:
        """Query the unedited history once more."""
        (answer,) = self.questions.ask([self.space.history], repeat=len(self.unedited))
        if answer is not None:
            self.unedited.append(answer)
        return answer

    @property
    def changes(self) -> int:
        """How many unedited queries were answered otherwise than the first."""
        return sum(not np.array_equal(a, self.unedited[0]) for a in self.unedited[1:])

    def _read(self, treatment: Edits, answer: NDArray[np.int32]) -> None:
        goals = self.goals
        values = goals.values(answer)
        # A list that lacks items, or holds unknown ones, has not got rid of anything.
        whole = int((answer >= 0)[: goals.k].sum())
        if treatment and whole < int((self.unedited[0] >= 0)[: goals.k].sum()):
            self.short += 1
            values = np.where(goals.out, np.minimum(values, -1.0), values)
        given = [e.item for e in treatment if e.after is not None]
        permitted = goals.permits(np.array(given, np.int32)).all(axis=1)
        values = np.where(permitted & (goals.budget >= len(treatment)), values, -np.inf)
        self.values[treatment], self.lists[treatment] = values, answer
        for g in np.flatnonzero(np.isfinite(values)).tolist():
            if self._worth(g, treatment) > self._worth(g, self.witness[g]):
                self.witness[g] = treatment

    def _worth(self, g: int, treatment: Edits) -> tuple[bool, float, int]:
        """Return what orders treatments: those that attain a goal by cost, others by value."""
        values = self.values[treatment]
        done = bool(self.goals.attained(values)[g])
        return done, 0.0 if done else float(values[g]), -len(treatment)

    def _open(self) -> NDArray[np.int64]:
        """Return the goals that no answer has attained yet."""
        done = [bool(self.goals.attained(self.values[w])[g]) for g, w in enumerate(self.witness)]
        return np.flatnonzero(~np.array(done, np.bool_))

    def _try(self, treatments: Sequence[Edits]) -> None:
        """Query treatments; those beyond the budget are dropped."""
        for treatment in treatments if self.space.realistic is not None else ():
            # Each item must stand in the list that the edits before it lead to.
            for place in range(1, len(treatment)):
                self._send([treatment[:place]])
        self._send([t for t in dict.fromkeys(treatments) if self._was_shown(t)])

    def _send(self, treatments: Sequence[Edits]) -> None:
        new = [t for t in treatments if t not in self.values and self._was_shown(t)]
        new = new[: self._left()]
        if not new:
            return
        answers = self.questions.ask([self.space.history.after(t) for t in new])
        read = [(t, a) for t, a in zip(new, answers, strict=True) if a is not None]
        for treatment, answer in read:
            self._read(treatment, answer)
        if self.surrogate is not None:
            today = self.unedited[-1]
            self.surrogate.learn(self.space, [(t, today, answer) for t, answer in read])

    def _was_shown(self, treatment: Edits) -> bool:
        """Return whether a realistic edit rates what stands in the list before it."""
        places = self.space.realistic
        if places is None:
            return True
        for place, edit in enumerate(treatment):
            if edit.kind == "add":
                shown = self.lists.get(treatment[:place])
                if shown is None or edit.item not in shown[:places]:
                    return False
        return True

    # -- Searching.

    def _ordered(self, singles: Singles) -> NDArray[np.int64]:
        """Return single edits in random order, behind those that must be tried.

        A target that was rated can come back only if that is taken back; fields are few.
        """
        order = self.rng.permutation(len(singles))
        rated = np.isin(singles.items, np.flatnonzero(self.goals.members.any(axis=0)))
        first = rated & np.isnan(singles.after)
        if self.surrogate is not None:
            first |= singles.items >= len(self.surrogate.features)
        return np.concatenate([order[first[order]], order[~first[order]]])

    def _begin(self) -> bool:
        """Query the unedited history, and line up the single edits."""
        today = self._control()
        if today is None:
            self.notes.append(
                "the first query has no answer: the budget was spent, or it was lost in a kill"
            )
            return False
        self._read((), today)
        self.singles = self.space.singles(shown=None if self.space.realistic is None else today)
        self.order = self._ordered(self.singles).tolist()
        self.tried = np.zeros(len(self.singles), np.bool_)
        return self.space.budget > 0

    def _look(self) -> None:
        """Search for edits that attain the open goals."""
        last = 0 if self.space.budget == 1 else int(self._left() * (1 - self.asked.singles))
        while self._left() > last + 1 and len(some := self._open()) and not self.tried.all():
            batch = self._batch(some, min(_BATCH - 1, self._left() - last - 1))
            self._control()
            self._try([(self.singles.edit(i),) for i in batch])
        if self.space.budget > 1:
            for number, g in enumerate(open_ := self._open().tolist()):
                self._combine(g, self._left() // (len(open_) - number))

    def _batch(self, some: NDArray[np.int64], size: int) -> list[int]:
        """Return single edits to query next: as the surrogate proposes, and at random."""
        batch = []
        if self.surrogate is not None and self.surrogate.learned:
            batch = self._proposed(some, size // 2)
            self.tried[batch] = True
        while len(batch) < size and self.order:
            if not self.tried[i := self.order.pop(0)]:
                self.tried[i] = True
                batch.append(i)
        return batch

    def _proposed(self, some: NDArray[np.int64], size: int) -> list[int]:
        """Return the edits that the surrogate proposes, for one open goal after the other."""
        assert self.surrogate is not None
        singles = self.singles
        goals = some[self.rng.permutation(len(some))[:size]]
        members, sign = self.goals.members[goals], np.where(self.goals.out[goals], -1.0, 1.0)
        guess = self.surrogate.guess(self.space, singles, members) * sign
        rates = ~np.isnan(singles.after)
        guess[rates] = np.where(
            self.goals.permits(singles.items[rates])[goals].T, guess[rates], -np.inf
        )
        guess[self.tried] = -np.inf
        found: list[int] = []
        for column in np.tile(np.arange(len(goals)), -(-size // max(len(goals), 1)))[:size]:
            best = int(np.argmax(guess[:, column]))
            if np.isfinite(guess[best, column]):
                found.append(best)
                guess[best] = -np.inf
        return found

    def _combine(self, g: int, allowed: int) -> None:
        """Apply the best single edits together, exchange one at a time, then try at random."""
        least = self._left() - allowed
        tried = [t for t, values in self.values.items() if len(t) == 1 and values[g] > -np.inf]
        ranked = [t[0] for t in sorted(tried, key=lambda t: -self.values[t][g])]
        best: dict[int, Edit] = {}
        for edit in ranked:
            best.setdefault(edit.item, edit)
        apart = list(best.values())
        budget = min(int(self.goals.budget[g]), len(apart))
        if budget < 2:
            return
        short = ranked[: self.asked.shortlist]
        self._some([tuple(apart[:b]) for b in range(2, budget + 1)], least)
        current = tuple(apart[:budget])
        improved = True
        while improved and self._left() > least and g in self._open():
            improved = False
            for slot in range(budget):
                rest = current[:slot] + current[slot + 1 :]
                taken = {e.item for e in rest}
                trials = [(*rest, e) for e in short if e.item not in taken and e != current[slot]]
                self._some(trials, least)
                found = [(self.values[t][g], t) for t in trials if t in self.values]
                now = self.values[current][g] if current in self.values else -np.inf
                value, better = max(found, key=lambda pair: pair[0], default=(-np.inf, current))
                if value > now:
                    current, improved = better, True
        fresh = True
        while fresh and self._left() > least and g in self._open():
            drawn = [self.rng.permutation(len(ranked))[:budget] for _ in range(10 * _BATCH)]
            some = {tuple(ranked[i] for i in sorted(places.tolist())) for places in drawn}
            new = sorted(
                (t for t in some if len({e.item for e in t}) == budget and t not in self.values),
                key=lambda t: [(e.item, e.after or 0.0) for e in t],
            )
            before = len(self.values)
            self._some([new[i] for i in self.rng.permutation(len(new))[: _BATCH - 1]], least)
            fresh = len(self.values) > before

    def _some(self, treatments: list[Edits], least: int) -> None:
        """Query treatments as long as more than `least` queries are left, with controls."""
        for start in range(0, len(treatments), _BATCH - 1):
            room = self._left() - least - 1
            if room < 1 or not len(self._open()):
                return
            self._control()
            self._try(treatments[start : start + min(_BATCH - 1, room)])

    # -- Asking again.

    def _verify(self) -> bool:
        """Query witnesses and unedited histories in pairs; return whether a goal is open again.

        The queries of a pair lie side by side, in random order. Where all answers are as before,
        one pair is enough.
        """
        again = False
        pending = set(range(len(self.goals))) - set(self._open().tolist()) - self.decided
        while pending:
            some = list(dict.fromkeys(w for g in sorted(pending) if (w := self.witness[g])))
            if not self._room(len(some) + 1):
                break
            answers: dict[Edits, NDArray[np.int32] | None] = {}
            for treatment in (self.rng.permutation(len(some) + 1) - 1).tolist():
                if treatment < 0:
                    answers[()] = self._control()
                    continue
                edits = some[treatment]
                self.turns[edits] = turn = self.turns.get(edits, 0) + 1
                (answers[edits],) = self.questions.ask(
                    [self.space.history.after(edits)], repeat=turn
                )
            if answers[()] is None:
                break
            self._count(pending, answers)
            for g in sorted(pending):
                verdict = True if self.stable else self._verdict(g)
                if verdict is None:
                    continue
                pending.discard(g)
                if verdict:
                    self.decided.add(g)
                else:
                    self._refute(g)
                    again = True
        return again and self._left() > 1

    def _count(self, pending: set[int], answers: dict[Edits, NDArray[np.int32] | None]) -> None:
        """Count the pairs of one turn."""
        goals, unedited = self.goals, answers[()]
        assert unedited is not None
        without = goals.attained(goals.values(unedited))
        for g in pending:
            answer = answers[self.witness[g]]
            if answer is None or not self.witness[g]:
                continue
            self.stable &= np.array_equal(answer, self.lists[self.witness[g]])
            does = bool(goals.attained(goals.values(answer))[g])
            self.paired[g] += 1
            self.hits[g] += does
            self.without[g] += without[g]
            self.gained[g] += does and not without[g]
            self.lost[g] += without[g] and not does
        self.stable &= not self.changes

    def _always(self, g: int) -> list[bool]:
        """Return for each unedited query whether the answer attains a goal."""
        values = [self.goals.values(answer) for answer in self.unedited]
        return [bool(self.goals.attained(one)[g]) for one in values]

    def _verdict(self, g: int) -> bool | None:
        """Return whether a witness is shown to attain its goal, or refuted; None for not yet."""
        if not self.witness[g]:
            always = self._always(g)
            if not all(always) or len(always) > self.asked.repeats:
                return False
            return True if share_at_any_time(len(always), len(always))[0] >= _USUAL else None
        gained, lost = int(self.gained[g]), int(self.lost[g])
        if paired_odds(gained, lost) >= _SURE:
            return True
        hopeless = self.paired[g] >= _GIVE_UP and gained <= lost
        return False if hopeless or self.paired[g] >= self.asked.repeats else None

    def _refute(self, g: int) -> None:
        """Go on with the next best edits for a goal."""
        self.values[self.witness[g]][g] = -np.inf
        self.witness[g] = max(self.values, key=lambda treatment: self._worth(g, treatment))
        for counted in (self.paired, self.gained, self.lost, self.hits, self.without):
            counted[g] = 0

    def _room(self, wanted: int) -> bool:
        left = self.questions.budget.left
        mine = self.asked.queries
        mine_left = None if mine is None else mine - (self.questions.budget.spent - self.start)
        return all(one is None or one >= wanted for one in (left, mine_left))

    def run(self) -> list[BlackBoxReach]:
        """Return what was seen of each goal."""
        try:
            if self._begin():
                self._look()
            while self.unedited and self._verify():
                self._look()
        except AuditedSystemError as problem:
            self.notes.append(str(problem))
        if self.changes or not self.stable:
            self.stable, self.questions.unsteady = False, True
            self.notes.append(
                f"the system changes its mind: {self.changes:,} of {len(self.unedited) - 1:,} "
                "repeated queries about the unedited history were answered otherwise"
            )
        if self.short:
            self.notes.append(f"{self.short:,} lists were shorter than the unedited one")
        return [self._of_goal(g) for g in range(len(self.goals))]

    def _of_goal(self, g: int) -> BlackBoxReach:
        goals, witness = self.goals, self.witness[g]
        if not self.unedited:
            return self._result(g, (0.0, 0.0), None, False, ())
        always = self._always(g)
        today = float(np.mean(always))
        if self.stable:
            done = bool(goals.attained(self.values[witness])[g])
            note = (_NOT_AGAIN,) if done and witness and not self.paired[g] else ()
            return self._result(g, (today, float(done)), None, done, note)
        shown = g in self.decided
        if not witness or not self.paired[g]:
            interval = share_at_any_time(sum(always), len(always))
            return self._result(g, (today, today), interval, shown, ())
        share, today = (float(x[g] / self.paired[g]) for x in (self.hits, self.without))
        interval = share_at_any_time(int(self.hits[g]), int(self.paired[g]))
        return self._result(g, (today, share), interval, shown, ())

    def _result(
        self,
        g: int,
        shares: tuple[float, float],
        interval: tuple[float, float] | None,
        shown: bool,
        notes: tuple[str, ...],
    ) -> BlackBoxReach:
        """Return a goal with the shares of answers that attain it, today and after the witness."""
        witness = self.witness[g]
        bracket: Bracket[Edits] = Bracket(
            attained=shares[1],
            bound=None,
            today=shares[0],
            witness=witness,
            cost=len(witness),
            budget=int(self.goals.budget[g]),
            policy="frozen",
            seeks="greatest",
            solver="black box" + (", guided by a surrogate" if self.surrogate is not None else ""),
            queries=self.questions.spent - self.sent,
        )
        ranks = [int(self.goals.ranks(self.lists[t])[g]) for t in ((), witness) if t in self.lists]
        seen = [rank if rank <= self.questions.n else None for rank in ranks] or [None]
        none = np.empty(0, np.int32)
        return BlackBoxReach(
            targets=self.given[g].items,
            in_list=bracket,
            shown=shown,
            interval=interval,
            rank_today=seen[0],
            rank_best=seen[-1],
            unedited=(len(self.unedited), self.changes),
            lists=(self.lists.get((), none), self.lists.get(witness, none)),
            notes=(*self.notes, *notes),
        )
