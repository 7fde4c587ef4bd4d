"""Ask each system once, or once in each repeat, and keep what it said."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ombud import registry
from ombud.audits.plan import Plan
from ombud.audits.run_folder import RunFolder
from ombud.data.dataset import NO_HISTORY, Dataset, lists_without_history
from ombud.data.decisions import Decisions, Outcome
from ombud.data.exclusions import Exclusion
from ombud.data.predictions import Predictions
from ombud.data.recommendations import Recommendations
from ombud.data.texts import Texts
from ombud.errors import AuditedSystemError, DataError, OmbudError, PlanError
from ombud.metrics.base import Outputs
from ombud.systems.base import Moderator, Progress, Recommender
from ombud.systems.own import read_decisions, read_lists
from ombud.systems.quote import CostQuote
from ombud.systems.rerankers.base import Reranker

System: TypeAlias = Recommender | Moderator
CHUNK = 2000
"""How many users are asked about at a time; what was answered is stored after each part."""


def _unheard(text: str) -> None:
    """Say nothing."""


@dataclass(frozen=True)
class SystemOutputs:
    """What one system answered."""

    outputs: Outputs  # its lists or decisions
    # Its predictions of held-out ratings, where a metric reads them.
    predictions: Predictions | None = None


@dataclass(frozen=True)
class OutputCollector:
    """How systems are asked in one audit."""

    data: Dataset  # the data; recommenders that can be trained are trained on its interactions
    users: NDArray[Any]  # the users to ask for
    depth: int  # the length of the lists
    predictions: bool  # whether a metric reads predicted ratings
    store: RunFolder | None  # where answers are kept, or None
    progress: Progress  # called with (done, total, note)
    # Called with what a person should read before, or in place of, asking.
    notice: Callable[[str], None] = _unheard
    # Whether systems are asked more later, so that they are trained even if answers are stored.
    trained: bool = False
    thresholds: tuple[str, ...] = ()  # Systems whose thresholds an analysis chooses

    def announce(self, systems: Mapping[str, System]) -> None:
        """Say what asking each service would take and cost, before any of them is asked."""
        for name, system in systems.items():
            if self._stored(name, system) is None and (quote := self.quote(name, system)):
                self.notice(str(quote))

    def quote(self, name: str, system: System) -> CostQuote | None:
        """Return what asking a service would take and cost; None if it is none. Asks nothing."""
        if isinstance(system, Reranker):
            # What it is put around is asked for at least as much as the lists are long.
            return self.quote(name, system.inner)
        if isinstance(system, Moderator):
            return system.quote(self._texts())
        quote = system.quote_lists(self.users, max(1, self.depth), CHUNK)
        return None if quote is None else replace(quote, system=name)

    def ask(self, name: str, system: System) -> SystemOutputs:
        """Return what a system answers, from the store where it was asked before."""
        outputs = self._stored(name, system, aloud=True)
        predictor = self._predictor(name, system)
        predictions = None
        if predictor is not None and self.store is not None:
            predictions = self.store.predictions(name)
        asked = outputs is None or (predictor is not None and predictions is None)
        if isinstance(system, Recommender):
            system.bind(self.data)
            if system.trainable and (asked or self.trained):
                assert self.data.interactions is not None  # the audit has checked

                def training(done: int, total: int, note: str) -> None:
                    self.progress(done, total, f"Training {name}")

                training(0, 1, "")
                system.fit(self.data.interactions, progress=training)
        if outputs is None:
            outputs = self._outputs(name, system)
            if self.store is not None:
                self.store.store_outputs(name, outputs)
        if predictor is not None and predictions is None:
            predictions = self._predictions(name, predictor)
            if self.store is not None:
                self.store.store_predictions(name, predictions)
        return SystemOutputs(outputs, predictions)

    def _predictor(self, name: str, system: System) -> Recommender | None:
        """Return the system when it is to be asked for ratings."""
        if not self.predictions or not isinstance(system, Recommender):
            return None
        if system.predicts_ratings is None:
            raise PlanError(
                f"{name} has predict(users, items) but does not say whether that is a rating; give "
                "the class a line: predicts_ratings = True (or False)"
            )
        return system if system.predicts_ratings else None

    def _outputs(self, name: str, system: System) -> Outputs:
        if isinstance(system, Recommender):
            return self._recommendations(name, system)

        def show(done: int, total: int, note: str) -> None:
            self.progress(done, total, note or f"Querying {name}")

        show(0, 1, "")
        made = read_decisions(name, system.moderate(self._texts(), progress=show), self._texts())
        if not made.lacks_decisions or name in self.thresholds:
            return made
        fix = f"to measure flags, add threshold = NUMBER under [systems.{name}]"
        if system.former_threshold is not None:
            fix = (
                f"add threshold = {system.former_threshold} under [systems.{name}] to flag as "
                "earlier versions of ombud did"
            )
        reason = f"they are scores without decisions, so flags are not measured; {fix}"
        count = int(np.count_nonzero(made.outcomes == Outcome.SCORED))
        self.notice(f"{name}: of its answers, {count:,} are scores without decisions; {fix}")
        note = Exclusion("answers", "answers", count, reason, len(made), "warning/no-decisions")
        return replace(made, exclusions=(*made.exclusions, note))

    def _texts(self) -> Texts:
        if self.data.texts is None:
            raise PlanError("a moderator is audited, but the data has no texts")
        return self.data.texts

    def _stored(self, name: str, system: System, aloud: bool = False) -> Outputs | None:
        """Return stored answers; not those of a service with errors, which may be over by now."""
        outputs = None if self.store is None else self.store.outputs(name)
        if not isinstance(outputs, Decisions) or not isinstance(system, Moderator):
            return outputs
        errors = int(np.count_nonzero(outputs.outcomes == Outcome.ERROR))
        quote = system.quote(self._texts()) if errors else None
        if quote is None:
            return outputs
        questions = quote.questions
        if questions <= errors:
            return None
        # The cache has gone: asking again would pay again for what is stored here.
        if aloud:
            self.notice(
                f"{name}: {errors:,} stored answers are errors and are kept, because the answer "
                f"cache does not hold the others: {questions:,} questions would be asked again. "
                f"Delete outputs/{name}.parquet in the result folder to ask them all"
            )
        return outputs

    def _recommendations(self, name: str, system: Recommender) -> Recommendations:
        parts = []
        for number, start in enumerate(range(0, len(self.users), CHUNK)):
            self.progress(start, len(self.users), f"Recommendations of {name}")
            ask = self._asker(name, system, self.users[start : start + CHUNK])
            parts.append(ask() if self.store is None else self.store.part(name, number, ask))
        self.progress(len(self.users), len(self.users), f"Recommendations of {name}")
        answer = Recommendations.concat(parts)
        foreign = self.data.foreign_items(name, answer.shown)
        noted = (*self._unasked(system), *self._seen_before(system), *foreign)
        return replace(answer, exclusions=(*answer.exclusions, *noted))

    def _seen_before(self, system: Recommender) -> tuple[Exclusion, ...]:
        """Warn of accuracy that a model fitted elsewhere may owe to what it has seen."""
        if not system.fitted_elsewhere or self.data.test is None:
            return ()
        reason = (
            "it was fitted elsewhere and may have seen the held-out interactions; its accuracy "
            "may be too high"
        )
        return (Exclusion("accuracy", "", 0, reason, key="warning/fitted-elsewhere"),)

    def _unasked(self, system: Recommender) -> tuple[Exclusion, ...]:
        """Count recorded lists of users whom the data does not know."""
        recorded = system.record
        if recorded is None or self.data.interactions is None:
            return ()
        users = self.data.interactions.users
        unknown = int(np.count_nonzero(users.codes(recorded.users) < 0))
        if not unknown:
            return ()
        if unknown == len(recorded):
            ids = f"{recorded.users[:2].tolist()}, in histories {users.ids[:2].tolist()}"
            raise DataError(system.name, [f"{NO_HISTORY} (users of lists: {ids})"])
        return (lists_without_history(unknown, len(recorded)),)

    def _asker(
        self, name: str, system: Recommender, users: NDArray[Any]
    ) -> Callable[[], Recommendations]:
        def ask() -> Recommendations:
            depth = max(1, self.depth)
            if system.trainable and self.data.interactions is not None:
                depth = min(depth, max(1, len(self.data.interactions.items)))
            told = system.recommend(users, depth)
            allowed = system.recommends_seen
            if allowed is None:
                # Systems of ombud leave seen items out; a record says what was shown.
                allowed = isinstance(told, Recommendations)
            seen = None if allowed else self.data.interactions
            answer = read_lists(name, told, users, depth, seen)
            if len(answer) != len(users):
                raise AuditedSystemError(
                    f"{name} answered with {len(answer)} lists; one for each of {len(users)} users "
                    "was expected"
                )
            return answer

        return ask

    def _predictions(self, name: str, system: Recommender) -> Predictions:
        if self.data.test is None:
            raise PlanError("predicted ratings need held-out ratings; give the plan a [split]")
        self.progress(0, 1, f"Predictions of {name}")
        return Predictions.of_held_out(self.data.test, system.predict, self.users, name)


REPEATS = "repeats"
"""The folder of a result that holds what systems answered in further repeats."""

_FOLDS = "k-fold"


@dataclass(frozen=True)
class Randomness:
    """What in an audit hangs on chance, beside which users or texts are in the data."""

    # How often the audit was made; more than 1 brings `split` and `training` into intervals.
    repeats: int
    split: bool  # whether what was held out was drawn at random
    training: bool  # whether a system is trained, or makes its lists, with a seed
    labels: bool  # whether doubt about labels is in the intervals of some measure

    @property
    def said(self) -> str:
        """One sentence, or two: what an interval holds, and what not."""
        parts = []
        if self.split:
            parts.append("what was held out")
        if self.training:
            parts.append("the chance in training")
        inside = "which users or texts happened to be in the data"
        if self.repeats > 1 and parts:
            inside += f", {' and '.join(parts)} (over {self.repeats} repeats)"
        if self.labels:
            inside += ", and doubt about labels where a measure says so"
        text = f"An interval covers chance: {inside}."
        if self.repeats == 1 and parts:
            verb = "was" if len(parts) == 1 else "were"
            text += (
                f" It does not cover {' or '.join(parts)}, which {verb} drawn once; repeat = 5 in "
                "the plan would bring that in."
            )
        return text


def randomness_of(plan: Plan) -> Randomness:
    """Return what hangs on chance in the audit of a plan.

    Examples
    --------
    >>> plan = Plan(systems={"a": {"type": "svd"}}, split={"method": "per-user"}, repeat=5)
    >>> randomness_of(plan)
    Randomness(repeats=5, split=True, training=True, labels=False)
    """
    return Randomness(
        repeats=plan.repeat,
        split=bool(plan.split) and plan.split.get("method", "per-user") != "time",
        training=any(_seeded(config) for config in plan.systems.values()),
        labels=any(spec.get("votes") == "probability" for spec in plan.metrics),
    )


def check_repeats(plan: Plan) -> None:
    """Refuse repeats that would all be the same, or that ask for more folds than there are."""
    if plan.repeat == 1:
        return
    found = randomness_of(plan)
    if not found.split and not found.training:
        raise PlanError(
            f"repeat = {plan.repeat} would repeat the same: the plan holds nothing out at random, "
            "and no system is trained with a seed"
        )
    folds = int(plan.split.get("folds", 5))
    if plan.split.get("method") == _FOLDS and plan.repeat > folds:
        raise PlanError(f"repeat = {plan.repeat}, but the split has {folds} folds; give it more")


def repeated_plan(plan: Plan, number: int) -> Plan:
    """Return the plan of one repeat: another fold or split, and another seed of every system.

    The plan is completed by its preset. Repeats count from 1; repeat 0 is the plan itself.
    """
    split = dict(plan.split)
    if split.get("method") == _FOLDS:
        folds = int(split.get("folds", 5))
        split["fold"] = (int(split.get("fold", 0)) + number) % folds
    elif split:
        split["seed"] = int(split.get("seed", plan.seed)) + number
    systems = {name: _reseeded(config, number) for name, config in plan.systems.items()}
    return plan.model_copy(update={"repeat": 1, "split": split, "systems": systems})


def _takes_seed(kind: object) -> bool:
    try:
        return "seed" in registry.argument_types("recommender", str(kind))
    except OmbudError:  # a moderator, or a system from Python
        return False


def _trains(kind: object) -> bool:
    # A seed of what asks a service is of its waits.
    return kind != "http" and _takes_seed(kind)


def _seeded(config: dict[str, Any]) -> bool:
    inner = config.get("inner")
    return _trains(config.get("type")) or (isinstance(inner, dict) and _seeded(inner))


def _reseeded(config: dict[str, Any], number: int) -> dict[str, Any]:
    made = dict(config)
    if _trains(config.get("type")):
        made["seed"] = int(config.get("seed", 0)) + number
    if isinstance(config.get("inner"), dict):
        made["inner"] = _reseeded(config["inner"], number)
    return made
