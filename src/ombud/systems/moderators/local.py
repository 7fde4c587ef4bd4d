"""What moderators on this machine share: clean strings in, decisions out."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ombud.data.decisions import Decisions, Outcome
from ombud.data.texts import Texts
from ombud.errors import AuditedSystemError
from ombud.systems.base import Moderator, Progress
from ombud.systems.moderators.answers import Answer, decisions_of, error, without_surrogates

CHUNK = 4096


class LocalModerator(Moderator):
    """A text model on this machine: `decide` must be given, on strings that UTF-8 can hold."""

    def moderate(self, texts: Texts, *, progress: Progress | None = None) -> Decisions:
        """Return one outcome a text, in the order of the texts."""
        del progress
        return self.decide(np.asarray(texts.ids), clean_texts(texts))

    @abstractmethod
    def decide(self, ids: NDArray[Any], texts: list[str]) -> Decisions:
        """Return one outcome for each of some texts, which have these ids."""


def clean_texts(texts: Texts) -> list[str]:
    """Return the texts as strings that UTF-8 can hold."""
    return [without_surrogates(str(text)) for text in texts.texts]


def in_chunks(
    score: Callable[[list[str]], NDArray[Any]], texts: Sequence[str], width: int = 0
) -> NDArray[np.float32]:
    """Return the scores of many texts, some thousands at a time, to keep memory flat.

    `score` gives one row for each text, of so many columns; a width of 0 is one score a text.
    """
    parts = [
        np.asarray(score(list(texts[at : at + CHUNK])), dtype=np.float32)
        for at in range(0, len(texts), CHUNK)
    ]
    shape = (0, width) if width else (0,)
    return np.concatenate(parts) if parts else np.empty(shape, dtype=np.float32)


def scored(
    ids: NDArray[Any],
    scores: NDArray[np.float32],
    threshold: float,
    categories: Mapping[str, NDArray[np.float32]] | None = None,
    version: str = "",
) -> Decisions:
    """Return decisions by threshold; a score that is not a number is an error."""
    flags = (scores >= threshold).astype(np.int8)
    outcomes = np.where(np.isnan(scores), np.int8(Outcome.ERROR), flags)
    named = dict(categories or {})
    matrix = np.column_stack(list(named.values())).astype(np.float32) if named else None
    return Decisions(ids, outcomes, scores, tuple(named), matrix, version=version)


def package_version(distribution: str) -> str:
    """Return a distribution and its version, such as ``thing 1.2``."""
    try:
        return f"{distribution} {version(distribution)}"
    except PackageNotFoundError:
        return distribution


# Any Python function as a moderator.


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
