"""What a project holds, as tables: one row a rating, and one row a text with its labels."""

from __future__ import annotations

import json
import sqlite3
from datetime import UTC, datetime
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ombud.app.settings import ProjectSettings
from ombud.questions.delicate.ratings import DELICATE_FROM, HIGHEST_RISK, risk_labels

_RATINGS = """
SELECT t.name AS id, t.round, p.name AS rater, a.repeat, a.attempt, a.state, a.answer, a.risk,
  a.topics, a.target, a.guidelines, a.began, a.ended, a.active, a.shown, a.origin,
  r.accepted, r.reason
FROM assignments a JOIN texts t ON t.id = a.text JOIN people p ON p.id = a.person
LEFT JOIN reviews r ON r.assignment = a.id
WHERE a.state IN ('done', 'skipped') ORDER BY a.ended, a.id
"""
_SCHEMA: dict[str, Any] = {
    "id": pl.String, "round": pl.String, "rater": pl.String, "repeat": pl.Boolean,
    "attempt": pl.Int64, "skipped": pl.Boolean, "answer": pl.String, "risk": pl.Int64,
    "topics": pl.List(pl.String), "target": pl.String, "guidelines": pl.String,
    "time": pl.Datetime("us", "UTC"), "seconds": pl.Float64, "active_seconds": pl.Float64,
    "shown": pl.Boolean, "accepted": pl.Boolean, "reason": pl.String,
}  # fmt: skip


def _moment(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)


def ratings_table(db: sqlite3.Connection) -> pl.DataFrame:
    """Return every rating and every skip, rater by rater.

    `risk` is from 0 (not delicate) to 5, and missing where the text cannot be judged or was
    skipped; `seconds` is from the first look to the answer, `active_seconds` what the browser saw
    of it.
    """
    rows = []
    for row in db.execute(_RATINGS):
        judged = row["answer"] in {"not delicate", "delicate"}
        imported = row["origin"] != "app"
        rows.append(
            {
                "id": row["id"],
                "round": row["round"],
                "rater": row["rater"],
                "repeat": bool(row["repeat"]),
                "attempt": row["attempt"],
                "skipped": row["state"] == "skipped",
                "answer": row["answer"],
                "risk": (row["risk"] or 0) if judged else None,
                "topics": json.loads(row["topics"]),
                "target": row["target"] or None,
                "guidelines": row["guidelines"],
                "time": _moment(row["ended"]),
                "seconds": row["active"] if imported else row["ended"] - row["began"],
                "active_seconds": row["active"],
                "shown": None if imported else bool(row["shown"]),
                "accepted": None if row["accepted"] is None else bool(row["accepted"]),
                "reason": row["reason"] or None,
            }
        )
    return pl.DataFrame(rows, schema=_SCHEMA)


def texts_table(db: sqlite3.Connection) -> pl.DataFrame:
    """Return every text with its round, state and topics, and the columns it came with."""
    rows: list[dict[str, Any]] = []
    for row in db.execute("SELECT * FROM texts ORDER BY round DESC, id"):
        own = {
            "id": row["name"],
            "round": row["round"],
            "text": row["text"],
            "state": row["state"],
            "topics": json.loads(row["topics"]),
            "explicit": None if row["explicit"] is None else bool(row["explicit"]),
        }
        about = json.loads(row["about"])
        rows.append(own | {key if key not in own else f"{key}_": v for key, v in about.items()})
    schema: dict[str, Any] = {"topics": pl.List(pl.String), "explicit": pl.Boolean}
    if not rows:
        names = ("id", "round", "text", "state", "topics", "explicit")
        return pl.DataFrame(schema={name: schema.get(name, pl.String) for name in names})
    return pl.DataFrame(rows, schema_overrides=schema, infer_schema_length=None)


def rating_matrix(
    ratings: pl.DataFrame, texts: list[str], raters: list[str]
) -> NDArray[np.float64]:
    """Return first ratings as a matrix, texts by raters; NaN where there is none."""
    matrix = np.full((len(texts), len(raters)), np.nan)
    first = ratings.filter(
        ~pl.col("repeat"), pl.col("attempt") == 1, ~pl.col("skipped"), pl.col("risk").is_not_null()
    )
    row = {name: at for at, name in enumerate(texts)}
    column = {name: at for at, name in enumerate(raters)}
    rows = first["id"].replace_strict(row, default=None, return_dtype=pl.Int64)
    columns = first["rater"].replace_strict(column, default=None, return_dtype=pl.Int64)
    known = (rows.is_not_null() & columns.is_not_null()).to_numpy()
    matrix[rows.to_numpy()[known].astype(int), columns.to_numpy()[known].astype(int)] = first[
        "risk"
    ].to_numpy()[known]
    return matrix


def labels_table(db: sqlite3.Connection, settings: ProjectSettings) -> pl.DataFrame:
    """Return every text of the main round with its three labels and the shares of raters.

    `risk` is the class with at least two votes, or what adjudication decided (`adjudicated` is
    true), which then also decides `identified` (above 0) and `delicate` (3 or more). It is missing
    where neither is there yet, with the median in `median_risk`. Missing labels are missing: a text
    that was discarded, or that waits for raters, has none.
    """
    texts = texts_table(db).filter(pl.col("round") == "main")
    ratings = ratings_table(db).filter(pl.col("round") == "main")
    raters = ratings["rater"].unique(maintain_order=True).to_list()
    matrix = rating_matrix(ratings, texts["id"].to_list(), raters)
    labels = risk_labels(matrix, least_votes=min(2, settings.raters_per_text))
    rated = texts["state"].is_in(["complete", "split", "settled"]).to_numpy()
    decided = {
        row["name"]: row
        for row in db.execute(
            "SELECT t.name, j.answer, j.risk FROM adjudications j JOIN texts t ON t.id = j.text "
            "WHERE t.round = 'main'"
        )
    }
    cannot = ratings.filter(pl.col("answer") == "cannot be judged").group_by("id").len("cannot")
    risk: list[int | None] = []
    for at, name in enumerate(texts["id"].to_list()):
        if name in decided:
            answer = decided[name]["answer"]
            risk.append(None if answer == "cannot be judged" else decided[name]["risk"] or 0)
        else:
            risk.append(int(labels.risk[at]) if rated[at] and labels.risk[at] >= 0 else None)
    # What adjudication decided holds for all three labels: they must not contradict one another.
    settled = np.array([name in decided for name in texts["id"]], dtype=bool)
    given = np.array([-1 if value is None else value for value in risk], dtype=np.int64)
    identified = np.where(settled, np.where(given < 0, -1, given > 0), labels.identified)
    delicate = np.where(settled, np.where(given < 0, -1, given >= DELICATE_FROM), labels.delicate)
    made = texts.with_columns(
        _flags("identified", identified.astype(np.int8), rated | settled),
        _flags("delicate", delicate.astype(np.int8), rated | settled),
        pl.Series("risk", risk, dtype=pl.Int64),
        pl.Series("median_risk", np.where(rated, labels.median, np.nan)).fill_nan(None),
        pl.Series("adjudicated", settled, dtype=pl.Boolean),
        pl.Series("ratings", labels.ratings),
        *(
            pl.Series(f"share_{r}", labels.shares[:, r]).fill_nan(None)
            for r in range(HIGHEST_RISK + 1)
        ),
    )
    joined = made.join(cannot, on="id", how="left", maintain_order="left")
    return joined.with_columns(pl.col("cannot").fill_null(0))


def _flags(name: str, labels: NDArray[np.int8], rated: NDArray[np.bool_]) -> pl.Series:
    known = rated & (labels >= 0)
    return pl.select(pl.when(pl.Series(known)).then(pl.Series(labels == 1)).alias(name)).to_series()
