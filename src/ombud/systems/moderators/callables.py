"""Any Python function as a moderator."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ombud.data.decisions import Decisions, Outcome
from ombud.errors import AuditedSystemError
from ombud.systems.moderators.answers import Answer, decisions_of, error
from ombud.systems.moderators.local import LocalModerator


@dataclass(kw_only=True)
class CallableModerator(LocalModerator):
    """A function that takes a list of texts and returns one answer each.

    It has no name in the registry on purpose: a plan is a file from anywhere, and a plan that
    could name a function to import could run anything. Use it from Python, or put it into a
    plugin that registers it.

    Parameters
    ----------
    function
        Takes a list of strings. An answer is a `bool` (flagged or not), a number (flagged when
        it reaches the threshold), an `Outcome`, an `Answer`, or None (an error).
    name
        The system's name in the report.
    threshold
        For numbers.
    version
        Of the function, for the record.
    batch
        Texts in one call. When a call raises, its texts are tried one by one, and those that
        raise again are errors.

    Examples
    --------
    >>> from ombud.data.texts import Texts
    >>> shouting = CallableModerator(function=lambda texts: [t.isupper() for t in texts])
    >>> texts = Texts.from_frame({"text": ["HEY", "hey"]})
    >>> shouting.moderate(texts).outcomes.tolist()
    [1, 0]
    """

    function: Callable[[list[str]], Sequence[Any]]
    name: str = "callable"
    threshold: float = 0.5
    version: str = ""
    batch: int = 256

    def decide(self, ids: NDArray[Any], texts: list[str]) -> Decisions:
        """Return one outcome for each text."""
        answers: list[Answer] = []
        for at in range(0, len(texts), self.batch):
            answers += self._ask(texts[at : at + self.batch])
        return decisions_of(ids, answers)

    def _ask(self, texts: list[str]) -> list[Answer]:
        try:
            given = list(self.function(texts))
        except Exception as fault:  # the audited function may fail in any way: that is an outcome
            if len(texts) == 1:
                return [error(f"{type(fault).__name__}: {fault}")]
            return [answer for text in texts for answer in self._ask([text])]
        if len(given) != len(texts):
            raise AuditedSystemError(
                f"{self.name} was given {len(texts)} texts and returned {len(given)} answers; "
                "it must return one for each"
            )
        return [self._answer(value) for value in given]

    def _answer(self, value: Any) -> Answer:
        if isinstance(value, Answer):
            return value
        if isinstance(value, bool | np.bool_ | Outcome):
            return Answer(Outcome(int(value)), version=self.version)
        if isinstance(value, int | float | np.number) and not math.isnan(value):
            return Answer(Outcome(bool(value >= self.threshold)), float(value), {}, self.version)
        return error("the function returned no answer for this text")
