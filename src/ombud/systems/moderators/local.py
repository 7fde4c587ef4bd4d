"""What moderators on this machine share: clean strings in, decisions out."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ombud.data.decisions import Decisions, score_outcomes
from ombud.data.exclusions import Exclusion
from ombud.data.texts import Texts
from ombud.systems.base import Moderator, Progress
from ombud.systems.moderators.answers import without_surrogates

CHUNK = 4096
# What tokenizers without a limit state, and the marks that they put around a text.
_NO_LIMIT, _MARKS = 10**9, 4


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


def cut_texts(name: str, tokenizer: Any, texts: Sequence[str], most: int) -> tuple[Exclusion, ...]:
    """Return a notice of how many texts are longer than a model reads, in tokens.

    No text has more tokens than bytes and marks, so that most are not split to be counted.
    """
    if tokenizer is None or not 0 < most < _NO_LIMIT:
        return ()
    long = [text for text in texts if len(text.encode()) + _MARKS > most]
    sizes = [len(tokenizer(text, truncation=False)["input_ids"]) for text in long]
    count = sum(size > most for size in sizes)
    reason = (
        f"note: {name} read only the first {most:,} tokens of {count:,} of {len(texts):,} texts"
    )
    return (Exclusion("answers", "texts", 0, reason, len(texts)),) if count else ()


def scored(
    ids: NDArray[Any],
    scores: NDArray[np.float32],
    threshold: float | None,
    categories: Mapping[str, NDArray[np.float32]] | None = None,
    version: str = "",
) -> Decisions:
    """Return decisions by threshold, or scores alone without one."""
    outcomes = score_outcomes(scores, threshold)
    named = dict(categories or {})
    matrix = np.column_stack(list(named.values())).astype(np.float32) if named else None
    return Decisions(ids, outcomes, scores, tuple(named), matrix, version=version)


def package_version(distribution: str) -> str:
    """Return a distribution and its version, such as ``thing 1.2``."""
    try:
        return f"{distribution} {version(distribution)}"
    except PackageNotFoundError:
        return distribution
