"""Escape and drift-in in an audit: how many edits until a label leaves the list, or enters it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ombud.data.exclusions import Exclusion
from ombud.probes import DriftIn, Escape
from ombud.probes.escape import LabelCount, Way, curve, readable
from ombud.probes.models import closed_form
from ombud.probes.outcomes import retrained_outcome
from ombud.questions.counterfactual.checkpoint import (
    Checkpoint,
    PartResult,
    path_from_json,
    path_to_json,
)
from ombud.questions.counterfactual.sample import AuditSample
from ombud.rng import generator
from ombud.stats import Estimate, proportion
from ombud.stats.bootstrap.resample import estimate
from ombud.systems.recommenders.model import Model

if TYPE_CHECKING:
    from ombud.metrics.engine.estimator import Settings
    from ombud.questions.counterfactual.analysis import Counterfactual


_NAMES = {"escape": "escaped", "drift-in": "drifted in"}


class _OneLabel:
    """One direction and one label of one system."""

    def __init__(
        self,
        plan: Counterfactual,
        direction: str,
        name: str,
        model: Model,
        label: str,
        labelled: NDArray[np.bool_],
        asked: AuditSample,
        settings: Settings,
        kept: Checkpoint,
    ) -> None:
        self.kept = kept
        self.plan, self.direction, self.name, self.model = plan, direction, name, model
        self.label, self.asked, self.settings = label, asked, settings
        # With unknown labels, a list surely lacks the label if none of them carries it, and surely
        # has it by known ones alone. Whom both readings give another answer is not counted.
        self.known = asked.known(label)
        possibly = labelled | ~self.known
        if direction == "escape":
            self.labelled, self.otherwise = possibly, labelled
        else:
            self.labelled, self.otherwise = labelled, possibly
        self.undecided = 0
        self.part = PartResult()
        self.rows: list[int] = []
        self.ways: list[Way] = []
        self.questions = self.trainings = 0
        self.closed = closed_form(model) if plan.retrained else None

    def search(self) -> None:
        """Ask about users in random order until enough of them were at risk."""
        plan, probe = self.plan, Escape if self.direction == "escape" else DriftIn
        ask = probe(k=plan.k, permitted=plan.permitted, random=plan.random, seed=self.settings.seed)
        at_risk = 0
        for row in self.asked.order[: plan.looked_at].tolist():
            if at_risk >= plan.at_risk and len(self.rows) >= plan.people:
                break
            way = path_from_json(self.kept(("user", row), partial(self._way, ask, row)))
            self.questions += way.fewest.queries
            if not self.known.all():
                find = partial(self._way, ask, row, self.otherwise)
                other = path_from_json(self.kept(("user", row, "otherwise"), find))
                self.questions += other.fewest.queries
                if other.fewest.cost != way.fewest.cost:
                    self.undecided += 1
                    continue
            self.rows.append(row)
            self.ways.append(way)
            at_risk += way.fewest.cost != 0

    def _way(
        self, ask: Escape | DriftIn, row: int, labelled: NDArray[np.bool_] | None = None
    ) -> dict[str, Any]:
        labelled = self.labelled if labelled is None else labelled
        space = self.asked.space(row, self.plan.escape_budget)
        if self.direction == "escape" and not self.plan.rate_labelled:
            # Who wants to avoid something is not asked to rate it until it is seen.
            space = space.without_rating(np.flatnonzero(labelled).tolist())
        return path_to_json(ask.of(self.model, space, labelled, own=row))

    def estimates(self) -> None:
        """Turn ways into curves, of all and of groups, and into what they cost."""
        plan, settings = self.plan, self.settings
        rows, where = np.array(self.rows, np.int64), f"{self.direction}, {self.label}"
        about: dict[str, Any] = {
            "name": _NAMES[self.direction], "key": self.direction, "label": self.label,
            "system": self.name, "level": settings.level,
        }  # fmt: skip
        found, left_out = curve(self.ways, plan.escape_budget, **about)
        groups = self.asked.user_groups(rows) | self._by_start(rows)
        risk = np.array([w.fewest.cost != 0 for w in self.ways], bool)
        if self.undecided:
            reason = (
                f"how many edits they need ({self.direction}) depends on items whose label is "
                'unknown; [data] unlabeled = "no" declares that they do not carry it'
            )
            every = len(self.ways) + self.undecided
            left_out.append(Exclusion("", "users", self.undecided, reason, every))
            if not risk.any():
                found = [e.replace(reason=f"of all users, {reason}", reason_code="no-labels")
                         for e in found]  # fmt: skip
        self.part.estimates += [self._told(e) for e in found]
        self.part.exclusions += [
            Exclusion(where, e.what, e.count, e.reason, e.of, system=self.name) for e in left_out
        ]
        for group, members in groups.items():
            if int((members & risk).sum()) < settings.minimum:
                continue  # the groups that are left out are counted below
            mine = [w for w, inside in zip(self.ways, members, strict=True) if inside]
            found, _ = curve(mine, plan.escape_budget, group=group, **about)
            self.part.estimates += [self._told(e) for e in found]
        small = sum(0 < int((m & risk).sum()) < settings.minimum for m in groups.values())
        if small:
            reason = f"fewer than {settings.minimum} of its users are at risk"
            self.part.exclusions.append(
                Exclusion(where, "user groups", small, reason, len(groups), system=self.name)
            )
        self._prices()

    def _told(self, e: Estimate) -> Estimate:
        more = {
            "policy": "frozen", "budget": self.plan.escape_budget, "k": self.plan.k,
            "permitted": self.plan.permitted, "looked_at": len(self.ways),
            "rate_labelled": self.plan.rate_labelled,
        }  # fmt: skip
        return e.replace(details={**e.details, **more}, metric=f"{e.metric} (frozen)@{self.plan.k}")

    def _by_start(self, rows: NDArray[np.int64]) -> dict[str, NDArray[np.bool_]]:
        """Return users with less and with more of the label in their history than the median."""
        own = [self.asked.space(row, 0).history.items for row in rows.tolist()]
        held = [self.labelled[items[self.known[items]]] for items in own]
        shares = np.array([one.mean() if len(one) else np.nan for one in held])
        risk = np.array([w.fewest.cost != 0 for w in self.ways], bool) & ~np.isnan(shares)
        if not risk.any():
            return {}
        middle = float(np.median(shares[risk]))
        return {
            "little of it in the history": shares <= middle,
            "much of it in the history": shares > middle,
        }

    def _prices(self) -> None:
        """Return what was kept, what as many random edits do, and what survives training."""
        done = [
            (row, way) for row, way in zip(self.rows, self.ways, strict=True) if way.fewest.cost
        ]
        kept = np.array([np.nan if w.kept is None else w.kept for _, w in done])
        chance = np.array([np.nan if w.random is None else w.random for _, w in done])
        for values, key, words in (
            (kept, "kept", "unlabelled items of the old list that stay"),
            (chance, "random", "as many random edits that do it too"),
        ):
            about = self._about(key, f"{words} ({self.direction}, frozen)", "frozen")
            known = values[~np.isnan(values)]
            if len(known) == 0:
                reason = "nobody got through by an edit"
                self.part.estimates.append(
                    Estimate.undefined(reason_code="no-units", reason=reason, n=0, **about)
                )
                continue
            rng = generator(self.settings.seed, self.direction, key, self.name, self.label)
            self.part.estimates.append(
                estimate(known, replicates=self.settings.replicates, rng=rng, **about)
            )
        rng = generator(self.settings.seed, self.direction, "trained", self.name, self.label)
        chosen = rng.permutation(len(done))[: self.plan.retrained].tolist()
        held = sum(
            self.kept(("holds", done[place][0]), partial(self._holds, *done[place]))
            for place in chosen
        )
        self.trainings += len(chosen)
        lost = sum(w.fewest.cost is None for w in self.ways)
        risk = sum(w.fewest.cost != 0 for w in self.ways)
        if self.direction == "escape" and risk:
            words = f"people at risk who cannot escape within {self.plan.escape_budget} edits"
            about = self._about("beyond", f"{words} (frozen)", "frozen")
            self.part.estimates.append(proportion(lost, risk, **about))
        words = f"still {_NAMES[self.direction]} after training again"
        about = self._about("holds-retrained", words, "retrained")
        self.part.estimates.append(proportion(held, len(chosen), **about))

    def _about(self, key: str, words: str, policy: str) -> dict[str, Any]:
        return {
            "metric": f"{words}@{self.plan.k}",
            "key": f"{self.direction}/{key}",
            "unit": "user",
            "system": self.name,
            "label": self.label,
            "level": self.settings.level,
            "details": {"policy": policy, "budget": self.plan.escape_budget, "k": self.plan.k},
        }

    def _holds(self, row: int, way: Way) -> bool:
        assert way.fewest.witness is not None  # somebody who got through
        history = self.asked.space(row, 0).history
        again = retrained_outcome(
            self.model, self.closed, self.asked.interactions, history, self.plan.k, row
        )
        (shown,) = again.after([way.fewest.witness])
        count = LabelCount(self.labelled, self.plan.k).value(shown, shown)
        out = self.direction == "escape"
        return count <= self.plan.permitted if out else count > self.plan.permitted

    def people(self) -> None:
        """Write down the ways of the people of the report."""
        ways = dict(zip(self.rows, self.ways, strict=True))
        for number, row in enumerate(self.asked.order[: self.plan.people].tolist(), 1):
            if row not in ways:
                continue
            way = ways[row]
            witness = way.fewest.witness or ()
            edits = readable(witness, self.asked.titles, self.asked.interactions.explicit)
            self.part.row(
                "counterfactual-ways",
                system=self.name,
                person=number,
                direction=self.direction,
                label=self.label,
                before=way.before,
                outcome=_outcome(way),
                cost=way.fewest.cost,
                edits="; ".join(edits),
                kept=way.kept,
                policy="frozen",
                budget=self.plan.escape_budget,
            )


def _outcome(way: Way) -> str:
    if way.fewest.cost is not None:
        return "found"
    return "none exists" if way.fewest.none_exists else "beyond the budget"


def estimate_escape(
    plan: Counterfactual,
    directions: Sequence[str],
    name: str,
    model: Model,
    labels: dict[str, NDArray[np.bool_]],
    asked: AuditSample,
    settings: Settings,
    kept: Checkpoint,
) -> PartResult:
    """Return how many edits take labels out of lists, or into them, with the model frozen."""
    part = PartResult()
    for direction in directions:
        users = questions = trainings = 0
        for label, labelled in labels.items():
            one = _OneLabel(
                plan, direction, name, model, label, labelled, asked, settings,
                kept.within(direction, label),
            )  # fmt: skip
            one.search()
            one.estimates()
            one.people()
            part.add(one.part)
            users += len(one.rows)
            questions += one.questions
            trainings += one.trainings
        part.cost(name, direction, users, questions, trainings)
    return part
