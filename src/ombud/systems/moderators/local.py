"""What moderators on this machine share: clean strings in, decisions out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ombud.data.decisions import Decisions, Outcome
from ombud.data.texts import Texts
from ombud.systems.moderators.answers import without_surrogates

CHUNK = 4096


def clean_texts(texts: Texts) -> list[str]:
    """Return the texts as strings that UTF-8 can hold."""
    return [without_surrogates(str(text)) for text in texts.texts]


def in_chunks(
    score: Callable[[list[str]], NDArray[Any]], texts: Sequence[str], width: int = 0
) -> NDArray[np.float32]:
    """Return the scores of many texts, some thousands at a time, to keep memory flat.

    Parameters
    ----------
    score
        Gives one row for each text.
    texts
        The texts.
    width
        Columns of the result; 0 for one score a text.
    """
    parts = [
        np.asarray(score(list(texts[at : at + CHUNK])), dtype=np.float32)
        for at in range(0, len(texts), CHUNK)
    ]
    shape = (0, width) if width else (0,)
    return np.concatenate(parts) if parts else np.empty(shape, dtype=np.float32)


def scored(
    texts: Texts,
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
    return Decisions(np.asarray(texts.ids), outcomes, scores, tuple(named), matrix, version=version)


def package_version(distribution: str) -> str:
    """Return a distribution and its version, such as ``thing 1.2``."""
    try:
        return f"{distribution} {version(distribution)}"
    except PackageNotFoundError:
        return distribution
