"""What moderators answered: one outcome per text, refusals and errors included."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from typing import Any, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ombud.data.exclusions import Exclusion
from ombud.data.faults import rows_where
from ombud.data.frames import (
    FLOAT32_MAX,
    Column,
    Frame,
    MappedFile,
    open_frame,
    read_table,
    without_copies,
)
from ombud.data.reading import note
from ombud.errors import DataError


class Outcome(IntEnum):
    """What became of one text; only the first two are decisions.

    A service that states scores and no decision leaves its texts `SCORED`, unless somebody sets a
    threshold: to flag is then nobody's choice, and metrics of flags are undefined.
    """

    ALLOWED = 0
    FLAGGED = 1
    REFUSED = 2
    ERROR = 3
    UNPARSEABLE = 4
    SCORED = 5


NO_DECISIONS = (
    "the system states scores and no decisions; set threshold in its section of the plan to "
    "measure flags"
)
"""Why metrics of flags are undefined for a system that only states scores."""


@dataclass(frozen=True, eq=False)
class Decisions:
    """Outcomes of one moderator, with scores where it gives scores.

    Parameters
    ----------
    ids
        The id of the text of each row. A text has one row for each time it was asked about.
    outcomes
        Values of `Outcome`.
    scores
        One score a row (higher = more likely flagged), NaN where there is none.
    categories
        Names of the moderator's categories, in the order of `category_scores`.
    category_scores
        Rows x categories, NaN where not given; or None.
    repeats
        0 for the first time a text was asked about, 1 for the second, and so on.
    version
        The model version that answered, as the service reported it.
    exclusions
        What was left out while reading.
    """

    ids: NDArray[Any]
    outcomes: NDArray[np.int8]
    scores: NDArray[np.float32]
    categories: tuple[str, ...] = ()
    category_scores: NDArray[np.float32] | None = None
    repeats: NDArray[np.int32] | None = None
    version: str = ""
    exclusions: tuple[Exclusion, ...] = field(default=())

    @classmethod
    def from_frame(
        cls, frame: Frame, *, threshold: float | None = None, version: str = "", source: str = ""
    ) -> Self:
        """Read recorded outcomes from a frame or file.

        Parameters
        ----------
        frame
            Has `id` and one of `outcome` (allowed, flagged, refused, error, unparseable, scored),
            `flagged` (true/false) or `score`; optionally `repeat` and `categories` (JSON object
            of category to score).
        threshold
            With scores only: a text is flagged when its score reaches the threshold. Without one
            there are scores and no decisions.
        version
            The version of the system that decided.
        source
            The table's name in messages.
        """
        columns = [
            Column("id", "id"),
            Column("outcome", "text", required=False),
            Column("flagged", "flag", required=False, nullable=True),
            Column(
                "score", "number", required=False, nullable=True, low=-FLOAT32_MAX, high=FLOAT32_MAX
            ),
            Column("repeat", "count", required=False, low=0),
            Column("categories", "text", required=False, nullable=True),
        ]
        table = read_table(frame, columns, source)
        name = source or (str(frame) if isinstance(frame, str | Path) else "decisions")
        table, copies = without_copies(table, "decisions")
        scores = np.full(table.height, np.nan, dtype=np.float32)
        if "score" in table.columns:
            scores = table["score"].cast(pl.Float32).fill_null(float("nan")).to_numpy()
        outcomes = _outcomes(table, scores, threshold, name)
        key = ["id", "repeat"] if "repeat" in table.columns else ["id"]
        if rows := rows_where(table, ~pl.struct(key).is_first_distinct()):
            fault = (
                f"a text is decided again in {rows}. Does the last row count (an appeal: --read "
            )
            fault += (
                "decisions.duplicates=last), or is each a decision (--read decisions.duplicates"
            )
            fault += (
                "=repeats, or --map decisions.repeat=COLUMN that numbers them 0, 1, ...)? In a "
            )
            raise DataError(name, [f'{fault}plan: reading = {{duplicates = "last"}} of the system'])
        repeats = table["repeat"].cast(pl.Int32).to_numpy() if "repeat" in table.columns else None
        names, matrix = _categories(table, name)
        if "score" not in table.columns:
            _note_probabilities(frame, name)
        ids, left_out = table["id"].to_numpy(), tuple(copies)
        return cls(ids, outcomes, scores, names, matrix, repeats, version, left_out)

    @property
    def decided(self) -> NDArray[np.bool_]:
        """Whether a row is a decision, not a refusal or an error."""
        return self.outcomes <= Outcome.FLAGGED.value

    @property
    def answered(self) -> NDArray[np.bool_]:
        """Whether a row is a decision, or a score without one."""
        return np.isin(self.outcomes, (Outcome.ALLOWED, Outcome.FLAGGED, Outcome.SCORED))

    @property
    def lacks_decisions(self) -> bool:
        """Whether the system states scores and no decisions."""
        return bool(np.any(self.outcomes == Outcome.SCORED.value))

    def __len__(self) -> int:
        return len(self.ids)

    def to_frame(self) -> pl.DataFrame:
        """Return the columns that `from_frame` reads."""
        text = np.array([outcome.name.lower() for outcome in Outcome], dtype=object)
        score = pl.Series(self.scores).fill_nan(None)
        columns: dict[str, Any] = {"id": self.ids, "outcome": text[self.outcomes], "score": score}
        if self.repeats is not None:
            columns["repeat"] = self.repeats
        if self.category_scores is not None:
            columns["categories"] = [
                json.dumps(
                    {
                        c: float(v)
                        for c, v in zip(self.categories, row, strict=True)
                        if not np.isnan(v)
                    }
                )
                for row in self.category_scores
            ]
        return pl.DataFrame(columns)

    def __repr__(self) -> str:
        counts = ", ".join(
            f"{int(np.count_nonzero(self.outcomes == o)):,} {o.name.lower()}" for o in Outcome
        )
        return f"Decisions({counts})"


def _note_probabilities(frame: Frame, name: str) -> None:
    """Note a column that looks like a score and is not read as one."""
    if isinstance(frame, MappedFile) and frame.only:
        return
    found = open_frame(frame)[0].collect_schema().names()
    for column in found:
        if column.strip().lower() in _SCORES:
            text = f'column {column!r} is not read; if it is the score, set columns = {{score = "'
            note(name, f'{text}{column}"}}', "assumed/ignored-score")


_SCORES = ("probability", "prob", "proba", "confidence", "toxicity", "likelihood")


def _refuse_contradictions(table: pl.DataFrame, outcomes: NDArray[np.int8], name: str) -> None:
    """Refuse rows in which `outcome` and `flagged` say different things."""
    if not {"outcome", "flagged"} <= set(table.columns):
        return
    flagged = table["flagged"].cast(pl.Int8).fill_null(-1).to_numpy()
    wrong = (flagged >= 0) & (outcomes <= Outcome.FLAGGED) & (flagged != outcomes)
    if rows := rows_where(table, pl.Series(wrong)):
        fault = f"columns 'outcome' and 'flagged' disagree in {rows}; remove the wrong one"
        raise DataError(name, [fault])


def _outcomes(
    table: pl.DataFrame, scores: NDArray[np.float32], threshold: float | None, name: str
) -> NDArray[np.int8]:
    if "outcome" in table.columns:
        known = {outcome.name.lower(): int(outcome) for outcome in Outcome}
        text = table["outcome"].str.to_lowercase()
        if rows := rows_where(table, ~text.is_in(list(known))):
            raise DataError(name, [f"column 'outcome' is none of {', '.join(known)} in {rows}"])
        outcomes = text.replace_strict(known, return_dtype=pl.Int8).to_numpy()
        _refuse_contradictions(table, outcomes, name)
        if (outcomes == Outcome.SCORED).any() and (outcomes <= Outcome.FLAGGED).any():
            fault = "column 'outcome' is 'scored' in some rows and a decision in others; split them"
            raise DataError(name, [f"{fault} into two systems"])
        if rows := rows_where(table, pl.Series((outcomes == Outcome.SCORED) & np.isnan(scores))):
            raise DataError(name, [f"column 'outcome' is 'scored' without a score in {rows}"])
        return outcomes
    if "flagged" in table.columns:
        flagged = table["flagged"].cast(pl.Int8)
        return flagged.fill_null(int(Outcome.ERROR)).to_numpy()
    if "score" in table.columns:
        return score_outcomes(scores, threshold)
    raise DataError(name, ["one of the columns 'outcome', 'flagged' or 'score' is needed"])


def score_outcomes(scores: NDArray[Any], threshold: float | None) -> NDArray[np.int8]:
    """Return what scores decide: flagged from a threshold on; without one, no decision.

    A score that is not a number is an error.

    Examples
    --------
    >>> score_outcomes(np.array([0.2, 0.7, np.nan]), 0.5).tolist()
    [0, 1, 3]
    >>> score_outcomes(np.array([0.2, 0.7, np.nan]), None).tolist()
    [5, 5, 3]
    """
    if threshold is None:
        outcomes = np.full(len(scores), Outcome.SCORED, dtype=np.int8)
    else:
        outcomes = (scores >= threshold).astype(np.int8)
    return np.where(np.isnan(scores), np.int8(Outcome.ERROR), outcomes)


def _categories(
    table: pl.DataFrame, name: str
) -> tuple[tuple[str, ...], NDArray[np.float32] | None]:
    if "categories" not in table.columns:
        return (), None
    try:
        rows = [json.loads(cell) if cell else {} for cell in table["categories"].to_list()]
        names = tuple(sorted({category for row in rows for category in row}))
        wide = np.array([[float(row.get(one, np.nan)) for one in names] for row in rows])
        if np.any(np.abs(wide) > FLOAT32_MAX):
            raise ValueError(f"a score is beyond {FLOAT32_MAX:.1e}")
        matrix = wide.astype(np.float32)
    except (ValueError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        fault = f"column 'categories' must hold JSON objects of category to score: {error}"
        raise DataError(name, [fault]) from None
    return names, matrix.reshape(len(rows), len(names))
