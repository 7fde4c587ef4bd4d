"""Ratings into a project from elsewhere, and tables out of it as files."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import polars as pl

from ombud.app.errors import AppError
from ombud.app.label_studio import ImportedRating, labelling_config, tasks
from ombud.app.people import add_person
from ombud.app.project import Project
from ombud.app.rating_queue import guidelines_version, refresh
from ombud.app.settings import ANSWERS, TARGETS, ProjectSettings
from ombud.app.tables import labels_table, ratings_table
from ombud.app.texts import split_topics
from ombud.data.faults import first_rows
from ombud.data.frames import Column, open_frame, read_table
from ombud.errors import DataError
from ombud.files import csv_text, without_apostrophe, write_atomically

EXPORTS: dict[str, str] = {
    "ratings.parquet": "Every rating, rater by rater (Parquet)",
    "ratings.csv": "Every rating, rater by rater (CSV)",
    "labels.parquet": "Every text with its three labels and the shares of raters (Parquet)",
    "labels.csv": "Every text with its three labels and the shares of raters (CSV)",
    "label-studio-config.xml": "Labelling configuration for Label Studio",
    "label-studio-tasks.json": "Tasks for Label Studio",
    "label-studio-export.json": "Tasks with the ratings made here, as Label Studio exports them",
}
"""What can be taken out of a project, by the name of the file."""

_COLUMNS = (
    Column("id", "id"),
    Column("rater", "text"),
    Column("answer", "text", nullable=True),
    Column("risk", "number", required=False, low=0, high=5, nullable=True),
    Column("skipped", "flag", required=False, nullable=True),
    Column("repeat", "flag", required=False, nullable=True),
    Column("round", "text", required=False, nullable=True),
    Column("attempt", "number", required=False, nullable=True),
    Column("target", "text", required=False, nullable=True),
    Column("seconds", "number", required=False, nullable=True),
)


def export_bytes(project: Project, name: str) -> bytes:
    """Return the content of one of the `EXPORTS`."""
    if name not in EXPORTS:
        raise AppError(f"there is no export {name!r}; there are {', '.join(EXPORTS)}")
    settings = project.settings
    if name == "label-studio-config.xml":
        return labelling_config(settings).encode()
    if name.startswith("label-studio"):
        with_ratings = name == "label-studio-export.json"
        found = project.store.read(lambda db: tasks(db, annotations=with_ratings))
        return (json.dumps(found, ensure_ascii=False, indent=1) + "\n").encode()
    kind, _, form = name.partition(".")
    table = project.store.read(
        ratings_table if kind == "ratings" else lambda db: labels_table(db, settings)
    )
    return _file(table, form)


def _file(table: pl.DataFrame, form: str) -> bytes:
    target = BytesIO()
    if form == "parquet":
        table.write_parquet(target, compression="zstd")
    else:
        nested = [n for n, kind in table.schema.items() if isinstance(kind, pl.List)]
        others = [n for n, kind in table.schema.items() if isinstance(kind, pl.Struct)]
        flat = table.with_columns(
            *(pl.col(n).cast(pl.List(pl.String)).list.join("|") for n in nested),
            *(pl.col(n).struct.json_encode() for n in others),
        )
        return csv_text(flat).encode()
    return target.getvalue()


def export(project: Project, name: str, path: Path) -> Path:
    """Write one of the `EXPORTS` to a file, whole or not at all."""
    content = export_bytes(project, name)
    write_atomically(path, lambda part: _write(part, content))
    return path


def _write(part: Path, content: bytes) -> None:
    part.write_bytes(content)


def read_ratings(
    frame: Any, settings: ProjectSettings, *, source: str = ""
) -> list[ImportedRating]:
    """Read ratings from a table such as `ombud annotation export` writes.

    Columns `id`, `rater` and `answer`; `risk` (1 to 5) where the answer is delicate; optionally
    `topics`, `target`, `skipped`, `seconds`. Repeats and pilot ratings are refused: what they mean
    depends on the project they were made in.

    Raises
    ------
    DataError
        With every fault.
    """
    columns = list(_COLUMNS)
    table = read_table(frame, columns, source)
    topics: list[Any] = [None] * table.height
    lazy, name = open_frame(frame, source)
    if "topics" in lazy.collect_schema().names():
        topics = lazy.select("topics").collect(backend="polars").to_native()["topics"].to_list()
    known = {topic.id for topic in settings.topics}
    faults: dict[str, list[int]] = {}
    found: list[ImportedRating] = []
    for number, (row, cell) in enumerate(zip(table.iter_rows(named=True), topics, strict=True), 1):
        skipped, answer, risk = bool(row.get("skipped")), row["answer"] or "", row.get("risk")
        marked, target = split_topics(cell), row.get("target") or ""
        risk = None if risk is None or risk != risk or answer != "delicate" else int(risk)
        strange = [topic for topic in marked if topic not in known]
        problems = {
            f"unknown answer {answer!r}; known: {', '.join(ANSWERS)}": not skipped
            and answer not in ANSWERS,
            "a rater without a name": not row["rater"].strip(),
            "delicate, but without a risk from 1 to 5": answer == "delicate" and not risk,
            f"unknown topic {strange[0]!r}" if strange else "": bool(strange),
            f"unknown target {target!r}": bool(target) and target not in TARGETS,
            "a repeat or a pilot rating": bool(row.get("repeat"))
            or (row.get("round") or "main") != "main"
            or (row.get("attempt") or 1) != 1,
        }
        for problem, found_it in problems.items():
            if found_it:
                faults.setdefault(problem, []).append(number)
        found.append(
            ImportedRating(
                text=without_apostrophe(str(row["id"])),
                rater=without_apostrophe(row["rater"]),
                skipped=skipped,
                answer="" if skipped else answer,
                risk=risk,
                topics=marked,
                target=target,
                time=None,
                seconds=row.get("seconds"),
            )
        )
    if faults:
        raise DataError(name, [f"{what}: {first_rows(at, len(at))}" for what, at in faults.items()])
    return found


def add_ratings(
    project: Project,
    ratings: Sequence[ImportedRating],
    *,
    new_raters: bool = False,
    source: str = "ratings",
) -> int:
    """Add ratings made elsewhere to the main round; return how many. All of them, or none.

    Ratings are from `read_ratings` or `ombud.app.label_studio.read_export`. With `new_raters`,
    raters that the project does not know are added to it. `source` is what to call them in
    messages.

    Raises
    ------
    DataError
        If texts or raters are unknown, or somebody rated a text already.
    """
    settings = project.settings
    now = time.time()

    def add(db: sqlite3.Connection) -> int:
        texts = dict(db.execute("SELECT name, id FROM texts WHERE round = 'main'").fetchall())
        people = dict(db.execute("SELECT name, id FROM people WHERE role = 'rater'").fetchall())
        faults = _unknown("texts", [r.text for r in ratings if r.text not in texts])
        strangers = [r.rater for r in ratings if r.rater not in people]
        if not new_raters:
            faults += _unknown("raters", strangers)
        known = db.execute(
            "SELECT t.name, p.name FROM assignments a JOIN texts t ON t.id = a.text "
            "JOIN people p ON p.id = a.person WHERE t.round = 'main' AND a.repeat = 0 "
            "AND a.state IN ('open', 'done')"
        )
        done = {tuple(pair) for pair in known}
        twice: list[str] = []
        for r in ratings:
            pair = (r.text, r.rater)
            if pair in done and not r.skipped:
                twice.append(f"{r.text} by {r.rater}")
            done.add(pair)
        if twice:
            faults.append(
                f"{len(twice):,} ratings of a text by somebody who rated it already; "
                f"the first: {twice[0]}"
            )
        if faults:
            raise DataError(source, faults)
        for name in dict.fromkeys(strangers):
            people[name] = add_person(db, name, "rater", now)
        version = guidelines_version(db)
        for r in ratings:
            _add(db, r, texts[r.text], people[r.rater], version, now)
        for text in {texts[r.text] for r in ratings}:
            refresh(db, text, settings)
        return len(ratings)

    return project.store.write(add)


def _unknown(what: str, names: Sequence[str]) -> list[str]:
    if not names:
        return []
    found = list(dict.fromkeys(names))
    return [f"{len(found):,} {what} that the project does not have; the first: {found[0]!r}"]


def _add(
    db: sqlite3.Connection, r: ImportedRating, text: int, person: int, version: str, now: float
) -> None:
    ended = r.time if r.time is not None else now
    db.execute(
        "INSERT INTO assignments (text, person, state, answer, risk, topics, target, guidelines, "
        "began, touched, ended, active, origin) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            text,
            person,
            "skipped" if r.skipped else "done",
            None if r.skipped else r.answer,
            r.risk,
            json.dumps(r.topics),
            r.target,
            version,
            ended - (r.seconds or 0),
            now,
            ended,
            r.seconds,
            "import",
        ),
    )
