"""Past outputs as systems: the simplest way to be audited, and the most used."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ombud.data.decisions import Decisions, Outcome
from ombud.data.exclusions import Exclusion
from ombud.data.frames import Frame, MappedFile
from ombud.data.ids import Ids, Vocabulary
from ombud.data.recommendations import Recommendations
from ombud.data.texts import Texts
from ombud.errors import DataError, PlanError
from ombud.registry import hint, moderator, recommender
from ombud.systems.base import Moderator, Progress, Recommender

_LISTS = ("user", "item", "rank", "score")
_DECISIONS = ("id", "outcome", "flagged", "score", "repeat", "categories")


def _mapped(frame: Frame, columns: dict[str, str], known: tuple[str, ...]) -> Frame:
    """Return a file or frame of which only the named columns are read; as it is without names."""
    for ours in columns:
        if ours not in known:
            raise PlanError(f"columns names {ours!r}; {hint(ours, known)}")
    return MappedFile(frame, columns, only=True) if columns else frame


@recommender("recorded")
@dataclass
class RecordedRecommendations(Recommender):
    """A file or frame of past recommendations (`user`, `item`, `rank` or `score`).

    `exclude_seen` is ignored: the record says what was shown.

    Parameters
    ----------
    path
        The file (Parquet, CSV, TSV, JSONL); from Python also a frame, or `Recommendations`.
    name
        The system's name in the report; default, the file's name, or ``recorded``.
    columns
        Which columns are `user`, `item`, `rank` and `score`, where they are called otherwise:
        ``{user = "customer", item = "product"}``. Others are then not read.

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
            self._lists = given if isinstance(given, Recommendations) else self._read(given)
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
            self._lists = self._read(self.path)
        return self._lists

    def _read(self, frame: Frame) -> Recommendations:
        return Recommendations.from_frame(_mapped(frame, self.columns, _LISTS))

    @property
    def record(self) -> Recommendations:
        """Everything that was recorded."""
        return self.lists

    def recommend(self, users: Ids, n: int, exclude_seen: bool = True) -> Recommendations:
        """Return the recorded lists of some users, cut to n; no list where none was recorded."""
        return self.lists.top(n).for_users(users)


@moderator("recorded")
@dataclass
class RecordedDecisions(Moderator):
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
        Which columns of the file are `id`, `flagged`, `outcome`, `score` and so on, where they are
        called otherwise: ``{id = "index", flagged = "openAI_flag"}``. Others are then not read.

    Examples
    --------
    >>> import polars as pl
    >>> past = pl.DataFrame({"id": ["a", "b"], "flagged": [True, False]})
    >>> RecordedDecisions(past, name="mine").decisions.outcomes.tolist()
    [1, 0]
    """

    path: Path
    name: str = ""
    threshold: float | None = None
    columns: dict[str, str] = field(default_factory=dict)
    _decisions: Decisions | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        given: Any = self.path
        if not isinstance(given, str | PathLike):
            if not isinstance(given, Decisions):
                given = self._read(given)
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
            self._decisions = self._read(self.path)
        return self._decisions

    def _read(self, frame: Frame) -> Decisions:
        chosen = _mapped(frame, self.columns, _DECISIONS)
        return Decisions.from_frame(chosen, threshold=self.threshold)

    @property
    def record(self) -> Decisions:
        """Everything that was recorded."""
        return self.decisions

    def moderate(self, texts: Texts, *, progress: Progress | None = None) -> Decisions:
        """Return every recorded outcome of each text; ERROR where none was recorded.

        Raises
        ------
        DataError
            If none of the recorded ids is that of a text.
        """
        past = self.decisions
        said, strangers, lacking = decisions_about(past, texts)
        count = len(np.unique(past.ids))
        if len(texts) and count and lacking == len(texts):
            known = f"ids such as {_told(past.ids)}, the texts such as {_told(texts.ids)}"
            raise DataError(
                str(self.path),
                [f"none of its {count:,} ids is that of a text: it has {known}"],
            )
        unmatched = unmatched_decisions(self.path.name, strangers, count, lacking, len(texts))
        return replace(said, exclusions=unmatched)


def decisions_about(past: Decisions, texts: Texts) -> tuple[Decisions, int, int]:
    """Return what was recorded about some texts, ERROR where nothing was.

    Also how many recorded ids are of no text, and how many texts have no decision.
    """
    place = Vocabulary(texts.ids).codes(past.ids)
    kept = np.flatnonzero(place >= 0)
    kept = kept[np.argsort(place[kept], kind="stable")]
    recorded = np.zeros(len(texts), dtype=bool)
    recorded[place[kept]] = True
    strangers = len(np.unique(past.ids[place < 0]))
    lacking = np.flatnonzero(~recorded)
    ids = np.concatenate([np.asarray(texts.ids)[place[kept]], np.asarray(texts.ids)[lacking]])
    missing = len(lacking)
    repeats = None
    if past.repeats is not None and np.any(past.repeats[kept] > 0):
        repeats = np.concatenate([past.repeats[kept], np.zeros(missing, dtype=np.int32)])
    categories = None
    if past.category_scores is not None:
        width = past.category_scores.shape[1]
        nothing = np.full((missing, width), np.nan, dtype=np.float32)
        categories = np.concatenate([past.category_scores[kept], nothing])
    result = Decisions(
        ids,
        np.concatenate([past.outcomes[kept], np.full(missing, Outcome.ERROR, np.int8)]),
        np.concatenate([past.scores[kept], np.full(missing, np.nan, np.float32)]),
        past.categories,
        categories,
        repeats,
        version=past.version,
    )
    return result if repeats is not None else _in_order(result, texts), strangers, missing


def unmatched_decisions(
    name: str, strangers: int, count: int, lacking: int, texts: int
) -> tuple[Exclusion, ...]:
    """Return what is said of ids that have no counterpart.

    Parameters
    ----------
    name
        The file.
    strangers, count
        How many of its ids are of no text, and how many it has.
    lacking, texts
        How many texts it has no decision about, and how many there are.
    """
    found = []
    if strangers:
        key = "warning/unknown-ids" if 2 * strangers > count else ""
        reason = "they are about texts that are not in the data"
        found.append(Exclusion("recorded", "decisions", strangers, reason, count, key))
    if 2 * lacking > texts:
        reason = f"{name} has no decision about them"
        key = "warning/no-decision"
        found.append(Exclusion("recorded", "texts", lacking, reason, texts, key))
    return tuple(found)


def _in_order(decisions: Decisions, texts: Texts) -> Decisions:
    """Return decisions with one row for each text in the order of the texts."""
    rows = Vocabulary(decisions.ids).codes(texts.ids)
    scores = decisions.category_scores
    return replace(
        decisions,
        ids=texts.ids,
        outcomes=decisions.outcomes[rows],
        scores=decisions.scores[rows],
        category_scores=None if scores is None else scores[rows],
    )


def _told(ids: NDArray[Any]) -> str:
    return ", ".join(repr(one) for one in ids[:2].tolist())
