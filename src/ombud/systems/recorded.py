"""Past outputs as systems: the simplest way to be audited, and the most used."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from ombud.data.decisions import Decisions, Outcome
from ombud.data.exclusions import Exclusion
from ombud.data.frames import Frame, MappedFile, open_frame
from ombud.data.ids import FROM_ZERO, Ids, Vocabulary, counted_from_zero
from ombud.data.reading import PLAIN, Reading, noting
from ombud.data.recommendations import Recommendations
from ombud.data.texts import Texts
from ombud.errors import DataError, PlanError
from ombud.registry import hint, moderator, recommender
from ombud.systems.base import Moderator, Progress, Recommender
from ombud.systems.saved_outputs import SavedOutput, matched, read_saved

_LISTS = ("user", "item", "rank", "score")
_DECISIONS = ("id", "outcome", "flagged", "score", "repeat", "categories")


_T = TypeVar("_T", Recommendations, Decisions)
# How LensKit, RecBole and implicit call the columns of lists.
_TOOLS = {
    "user": ("user_id", "userid", "qid"),
    "item": ("item_id", "itemid", "docno", "docid"),
    "score": ("prediction",),
}


def _tool_columns(frame: Frame) -> dict[str, str]:
    """Return the columns of lists as common tools write them; empty if they are ombud's own."""
    try:
        found = open_frame(frame)[0].collect_schema().names()
    except Exception:  # the error comes where the table is read
        return {}
    if {"user", "item"} <= {name.strip().lower() for name in found}:
        return {}
    made = {ours: ours for ours in _LISTS if ours in found}
    for ours, names in _TOOLS.items():
        theirs = next((c for c in found if c.strip().lower() in names), None)
        if theirs is not None:
            made.setdefault(ours, theirs)
    return made if {"user", "item"} <= set(made) else {}


def _read(
    read: Callable[[Frame], _T],
    frame: Frame,
    columns: Mapping[str, str],
    reading: Mapping[str, Any],
    known: tuple[str, ...],
) -> _T:
    """Read a file or frame: only the named columns, and all of them if none are named."""
    for ours in columns:
        if ours not in known:
            raise PlanError(f"columns names {ours!r}; {hint(ours, known)}")
    chosen = Reading.from_dict(reading, "reading")
    if columns or chosen != PLAIN:
        frame = MappedFile(frame, columns, bool(columns), chosen, "reading = {...} of the system")
    notes: list[Exclusion]
    with noting() as notes:
        made: _T = read(frame)
    return replace(made, exclusions=(*made.exclusions, *notes)) if notes else made


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
    reading
        How the file is written, where detection should not decide (`ombud.data.Reading`):
        ``{where = {model = "A"}}``, ``{items = ["rec1", "rec2"]}``, ``{decimal = ","}``.

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
    reading: dict[str, Any] = field(default_factory=dict)
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
        columns = self.columns or _tool_columns(frame)
        return _read(Recommendations.from_frame, frame, columns, self.reading, _LISTS)

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

    Also saved outputs of common tools: Hugging Face pipelines (`label` and `score`, or all labels
    of each text), Detoxify, OpenAI moderation replies and batches, Perspective, and Azure AI
    Content Safety. Outputs without ids are matched by the text they repeat, else by row.

    Parameters
    ----------
    path
        The file (Parquet, CSV, TSV, JSON, JSONL); from Python also a frame, a list of replies, or
        `Decisions`.
    name
        The system's name in the report; default, the file's name, or ``recorded``.
    threshold
        With scores only: flag when the score reaches it.
    columns
        Which columns of the file are `id`, `flagged`, `outcome`, `score` and so on, where they are
        called otherwise: ``{id = "index", flagged = "openAI_flag"}``. Others are then not read.
    reading
        How the file is written, where detection should not decide (`ombud.data.Reading`):
        ``{yes = ["removed", "hidden"]}``, ``{decimal = ","}``.

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
    reading: dict[str, Any] = field(default_factory=dict)
    _decisions: Decisions | None = field(default=None, init=False, repr=False)
    _saved: SavedOutput | None = field(default=None, init=False, repr=False)

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
        name = frame.name if isinstance(frame, Path) else str(self.name or "recorded")
        chosen = Reading.from_dict(self.reading, "reading")
        notes: list[Exclusion]
        with noting() as notes:
            self._saved = read_saved(frame, self.columns, chosen, self.threshold, name)
        if self._saved is not None:
            past = self._saved.decisions
            return replace(past, exclusions=(*past.exclusions, *notes))
        read = partial(Decisions.from_frame, threshold=self.threshold)
        return _read(read, frame, self.columns, self.reading, _DECISIONS)

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
        saved = self._saved or SavedOutput(past, _key_of(past, texts))
        if saved.key != "id":
            notes: list[Exclusion]
            with noting() as notes:
                past = matched(replace(saved, decisions=past), texts, self.path.name)
            past = replace(past, exclusions=(*past.exclusions, *notes))
        elif counted_from_zero(past.ids, texts.ids):
            # Matched as they are, every decision would be about the text before its own.
            if not counted_from_zero(past.ids, texts.ids, whole=True):
                raise DataError(str(self.path), [FROM_ZERO])
            why = "its ids start with 0 and those of the texts with 1: id 0 is taken as text 1"
            first = Exclusion(self.path.name, "", 0, why, None, "warning/rows-from-0")
            past = replace(past, ids=past.ids + 1, exclusions=(*past.exclusions, first))
        said, strangers, lacking = decisions_about(past, texts)
        count = len(np.unique(past.ids))
        if len(texts) and count and lacking == len(texts):
            known = f"ids such as {_told(past.ids)}, the texts such as {_told(texts.ids)}"
            fault = (
                f"none of its {count:,} ids is that of a text: it has {known}. Name the columns "
                "that hold the same ids: --map texts.id=COLUMN and --map decisions.id=COLUMN of "
                "ombud audit, or id in [data.columns.texts] and [systems.NAME.columns]"
            )
            raise DataError(str(self.path), [fault])
        unmatched = unmatched_decisions(self.path.name, strangers, count, lacking, len(texts))
        return replace(said, exclusions=(*past.exclusions, *unmatched))


def _key_of(past: Decisions, texts: Texts) -> Literal["id", "text"]:
    """Return by what decisions name their texts: the text itself, if no id is that of a text."""
    if past.ids.dtype.kind not in "UO" or (Vocabulary(texts.ids).codes(past.ids) >= 0).any():
        return "id"
    known = set(texts.texts.tolist())
    return "text" if any(one in known for one in past.ids.tolist()) else "id"


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
