"""Risk ratings from a file: rater by rater, joined to the texts of an audit."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ombud.data.exclusions import Exclusion
from ombud.data.frames import Column, first_rows, read_table
from ombud.data.ids import Vocabulary
from ombud.data.texts import Texts
from ombud.errors import DataError
from ombud.questions.delicate.risk_ratings import HIGHEST_RISK, RiskLabels, risk_labels


@dataclass(frozen=True, eq=False)
class Ratings:
    """Ratings of the texts of an audit.

    Parameters
    ----------
    matrix
        Texts x raters, from 0 to 5; NaN where a rater did not rate.
    raters
        Who rated.
    exclusions
        What could not be used.
    """

    matrix: NDArray[np.float64]
    raters: tuple[str, ...]
    exclusions: tuple[Exclusion, ...] = ()

    @property
    def labels(self) -> RiskLabels:
        """The three labels of each text; one rating suffices where one is all there is."""
        most = int((~np.isnan(self.matrix)).sum(axis=1).max(initial=0))
        return risk_labels(self.matrix, least_votes=min(2, max(most, 1)))

    @property
    def unanimous(self) -> NDArray[np.bool_]:
        """Whether at least two raters rated a text, and all say delicate, or all say not."""
        known = ~np.isnan(self.matrix)
        with np.errstate(invalid="ignore"):
            votes = ((self.matrix >= 3) & known).sum(axis=1)
        n = known.sum(axis=1)
        return np.asarray((n >= 2) & ((votes == 0) | (votes == n)))


def read_ratings(path: Path | str, texts: Texts) -> Ratings:
    """Read ratings from a file with `id`, `rater` and `risk`, as the annotation app exports them.

    Rows without a risk (skipped, cannot be judged) and repeats are left out and counted, and so are
    ratings of texts that the audit does not have.

    Raises
    ------
    DataError
        If a rating is not a whole number from 0 to 5, if a rater rates a text twice without
        `repeat`, or if no text of the audit is rated.
    """
    columns = [
        Column("id", "id"),
        Column("rater", "category"),
        Column("risk", "number", nullable=True, low=0, high=HIGHEST_RISK),
        Column("repeat", "flag", required=False, nullable=True),
    ]
    table = read_table(str(path), columns, str(path))
    exclusions = []
    if "repeat" in table.columns:
        again = table.filter(pl.col("repeat").fill_null(False))
        if again.height:
            reason = "repeats, which show a rater's agreement with themselves"
            exclusions.append(Exclusion("ratings", "ratings", again.height, reason, table.height))
        table = table.filter(~pl.col("repeat").fill_null(False))
    empty = table["risk"].null_count()
    if empty:
        reason = "no risk is given (skipped, or cannot be judged)"
        exclusions.append(Exclusion("ratings", "ratings", empty, reason, table.height))
        table = table.filter(pl.col("risk").is_not_null())
    broken = table.with_row_index("row", offset=1).filter(pl.col("risk") != pl.col("risk").floor())
    twice = table.with_row_index("row", offset=1).filter(
        ~pl.struct("id", "rater").is_first_distinct()
    )
    faults = []
    if broken.height:
        rows = first_rows(broken["row"].head(5).to_list(), broken.height)
        faults.append(f"column 'risk' is not a whole number in {rows}")
    if twice.height:
        rows = first_rows(twice["row"].head(5).to_list(), twice.height)
        faults.append(f"a rater rates a text again in {rows}; mark it in a column 'repeat'")
    if faults:
        raise DataError(str(path), faults)
    row = Vocabulary(np.asarray(texts.ids)).codes(table["id"].to_arrow())
    unknown = int((row < 0).sum())
    if unknown == table.height:
        raise DataError(str(path), ["none of its ids is the id of a text of the audit"])
    if unknown:
        reason = "they are of texts that are not in the data"
        exclusions.append(Exclusion("ratings", "ratings", unknown, reason, table.height))
    raters, column = Vocabulary.encode(table["rater"].cast(pl.String).to_arrow())
    matrix = np.full((len(texts), len(raters)), np.nan)
    known = row >= 0
    matrix[row[known], column[known]] = table["risk"].cast(pl.Float64).to_numpy()[known]
    return Ratings(matrix, tuple(str(name) for name in raters.ids), tuple(exclusions))
