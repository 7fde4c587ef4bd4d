"""Past outputs as systems: the simplest way to be audited, and the most used."""

from __future__ import annotations

from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from ombud.data.decisions import Decisions, Outcome
from ombud.data.frames import Frame, MappedFile
from ombud.data.ids import Ids, Vocabulary
from ombud.data.recommendations import Recommendations
from ombud.data.texts import Texts
from ombud.errors import PlanError
from ombud.registry import hint, moderator, recommender

__all__ = ["RecordedDecisions", "RecordedRecommendations"]


_LISTS = ("user", "item", "rank", "score")
_DECISIONS = ("id", "outcome", "flagged", "score", "repeat", "categories")


def _file(path: Path, columns: dict[str, str], known: tuple[str, ...]) -> Frame:
    for ours in columns:
        if ours not in known:
            raise PlanError(f"{path.name}: columns names {ours!r}; {hint(ours, known)}")
    return MappedFile(path, columns) if columns else path


def _refuse_columns(columns: dict[str, str]) -> None:
    if columns:
        raise PlanError("columns are names in a file; rename those of a frame before giving it")


@recommender("recorded")
@dataclass
class RecordedRecommendations:
    """A file or frame of past recommendations (`user`, `item`, `rank` or `score`).

    `exclude_seen` is ignored: the record says what was shown.

    Parameters
    ----------
    path
        The file (Parquet, CSV, TSV, JSONL); from Python also a frame, or `Recommendations`.
    name
        The system's name in the report; default, the file's name, or ``recorded``.
    columns
        By the names above, the names of the columns in the file, where they are others.

    Examples
    --------
    >>> shown = {"user": [1, 1, 2], "item": ["a", "b", "a"], "rank": [1, 2, 1]}
    >>> import polars as pl
    >>> RecordedRecommendations(pl.DataFrame(shown), name="shop").lists.lengths.tolist()
    [2, 1]
    """

    path: Path
    name: str = ""
    columns: dict[str, str] = field(default_factory=dict)
    _lists: Recommendations | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        given: Any = self.path
        if not isinstance(given, str | PathLike):
            _refuse_columns(self.columns)
            self._lists = (
                given if isinstance(given, Recommendations) else Recommendations.from_frame(given)
            )
            self.path = Path(self.name or "recorded")
        self.path = Path(self.path)
        self.name = self.name or self.path.stem

    @classmethod
    def from_frame(cls, frame: Frame, name: str = "recorded") -> RecordedRecommendations:
        """Wrap recommendations that are already in memory."""
        return cls(frame, name)

    @property
    def lists(self) -> Recommendations:
        """All recorded lists."""
        if self._lists is None:
            self._lists = Recommendations.from_frame(_file(self.path, self.columns, _LISTS))
        return self._lists

    @property
    def record(self) -> Recommendations:
        """Everything that was recorded."""
        return self.lists

    def recommend(self, users: Ids, n: int, exclude_seen: bool = True) -> Recommendations:
        """Return the recorded lists of some users, cut to n; no list where none was recorded."""
        return self.lists.top(n).for_users(users)


@moderator("recorded")
@dataclass
class RecordedDecisions:
    """A file or frame of past decisions (`id` and `outcome`, `flagged` or `score`).

    Parameters
    ----------
    path
        The file (Parquet, CSV, TSV, JSONL); from Python also a frame, or `Decisions`.
    name
        The system's name in the report; default, the file's name, or ``recorded``.
    threshold
        With scores only: flag when the score reaches it.
    columns
        By the names above, the names of the columns in the file, where they are others.
    """

    path: Path
    name: str = ""
    threshold: float | None = None
    columns: dict[str, str] = field(default_factory=dict)
    _decisions: Decisions | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        given: Any = self.path
        if not isinstance(given, str | PathLike):
            _refuse_columns(self.columns)
            if not isinstance(given, Decisions):
                given = Decisions.from_frame(given, threshold=self.threshold)
            self._decisions = given
            self.path = Path(self.name or "recorded")
        self.path = Path(self.path)
        self.name = self.name or self.path.stem

    @classmethod
    def from_frame(
        cls, frame: Frame, name: str = "recorded", threshold: float | None = None
    ) -> RecordedDecisions:
        """Wrap decisions that are already in memory."""
        return cls(frame, name, threshold)

    @property
    def decisions(self) -> Decisions:
        """All recorded decisions."""
        if self._decisions is None:
            self._decisions = Decisions.from_frame(
                _file(self.path, self.columns, _DECISIONS), threshold=self.threshold
            )
        return self._decisions

    @property
    def record(self) -> Decisions:
        """Everything that was recorded."""
        return self.decisions

    def moderate(self, texts: Texts) -> Decisions:
        """Return the first recorded outcome of each text; ERROR where none was recorded."""
        past = self.decisions
        first = np.arange(len(past)) if past.repeats is None else np.flatnonzero(past.repeats == 0)
        rows = Vocabulary(past.ids[first]).codes(texts.ids)
        result = rows >= 0
        rows = first[rows].astype(np.int32)
        categories = None
        if past.category_scores is not None:
            categories = np.where(result[:, None], past.category_scores[rows], np.float32("nan"))
        return Decisions(
            texts.ids,
            np.where(result, past.outcomes[rows], np.int8(Outcome.ERROR)),
            np.where(result, past.scores[rows], np.float32("nan")),
            past.categories,
            categories,
            version=past.version,
        )
