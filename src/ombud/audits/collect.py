"""Ask each system once, and keep what it said."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ombud.audits.run_folder import RunFolder
from ombud.data.dataset import Dataset
from ombud.data.decisions import Decisions, Outcome
from ombud.data.exclusions import Exclusion
from ombud.data.predictions import Predictions
from ombud.data.recommendations import Recommendations
from ombud.data.texts import Texts
from ombud.errors import AuditedSystemError, PlanError
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
    """What one system answered.

    Parameters
    ----------
    outputs
        Its lists or decisions.
    predictions
        Its predictions of held-out ratings, where a metric reads them.
    """

    outputs: Outputs
    predictions: Predictions | None = None


@dataclass(frozen=True)
class OutputCollector:
    """How systems are asked in one audit.

    Parameters
    ----------
    data
        The data; recommenders that can be trained are trained on its interactions.
    users
        The users to ask for.
    depth
        The length of the lists.
    predictions
        Whether a metric reads predicted ratings.
    store
        Where answers are kept, or None.
    progress
        Called with (done, total, note).
    notice
        Called with what a person should read before, or in place of, asking.
    trained
        Whether systems are asked more later, so that they are trained even if answers are stored.
    """

    data: Dataset
    users: NDArray[Any]
    depth: int
    predictions: bool
    store: RunFolder | None
    progress: Progress
    notice: Callable[[str], None] = _unheard
    trained: bool = False

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
        return read_decisions(name, system.moderate(self._texts(), progress=show), self._texts())

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
        noted = (*self._unasked(system), *self._seen_before(system))
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
        unknown = int(np.count_nonzero(self.data.interactions.users.codes(recorded.users) < 0))
        if not unknown:
            return ()
        reason = "their users have no history, so there is nothing to compare with"
        return (Exclusion("recommendations", "lists", unknown, reason, len(recorded)),)

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
