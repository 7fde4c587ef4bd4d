"""Which text a rater sees next, and what is still wanted for a text."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ombud.app.errors import NotAllowedError
from ombud.app.people import Person
from ombud.app.settings import ProjectSettings
from ombud.questions.delicate.ratings import risk_labels
from ombud.text.folding import mask

CANNOT_VOTES = 2
"""So many votes for "cannot be judged" discard a text."""

LONGEST_PAUSE = 300.0
"""Time with one text beyond these seconds counts as a pause in the hours of a day."""

_DAY = 24 * 3600.0

Step = Literal["answer", "risk", "details"]


@dataclass(frozen=True, slots=True)
class Task:
    """A text in front of a rater.

    `text` is as it may be shown: with stars in it while `covered`. `step` is what is asked.
    """

    assignment: int
    text: str
    covered: bool
    hidden_terms: int
    step: Step
    answer: str
    risk: int | None
    topics: tuple[str, ...]
    target: str
    can_undo: bool


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a rater stands, and why there is no task if there is none."""

    task: Task | None
    reason: str
    yours: int
    finished: int
    total: int
    round: str
    guidelines: str


def current_round(db: sqlite3.Connection) -> str:
    """Return the round that is open: pilot, main or closed."""
    row = db.execute("SELECT value FROM meta WHERE key = 'round'").fetchone()
    return str(row[0])


def guidelines_version(db: sqlite3.Connection) -> str:
    """Return the version of the guidelines in force."""
    row = db.execute("SELECT version FROM guidelines ORDER BY number DESC LIMIT 1").fetchone()
    return str(row[0])


def seconds_today(db: sqlite3.Connection, person: int, now: float) -> float:
    """Return how long a person was with texts since midnight (UTC), pauses cut."""
    row = db.execute(
        "SELECT coalesce(sum(min(coalesce(active, ended - began), ?)), 0) FROM assignments "
        "WHERE person = ? AND state IN ('done', 'skipped') AND ended >= ? AND origin = 'app'",
        (LONGEST_PAUSE, person, now - now % _DAY),
    ).fetchone()
    return float(row[0])


def refresh(db: sqlite3.Connection, text: int, settings: ProjectSettings) -> None:
    """Recompute what is still wanted for a text from what is there."""
    (round_,) = db.execute("SELECT round FROM texts WHERE id = ?", (text,)).fetchone()
    rows = db.execute(
        "SELECT state, answer, risk FROM assignments "
        "WHERE text = ? AND repeat = 0 AND attempt = 1 AND state IN ('open', 'done')",
        (text,),
    ).fetchall()
    done = [row for row in rows if row["state"] == "done"]
    ratings = [row["risk"] or 0 for row in done if row["answer"] != "cannot be judged"]
    wanted = settings.raters_per_text if round_ == "main" else 1
    slots = wanted - len(ratings) - (len(rows) - len(done))
    if len(done) - len(ratings) >= min(CANNOT_VOTES, wanted):
        state = "discarded"
    elif len(ratings) < wanted:
        state = "open"
    elif db.execute("SELECT 1 FROM adjudications WHERE text = ?", (text,)).fetchone():
        state = "settled"
    else:
        labels = risk_labels(np.array([ratings], dtype=np.float64), least_votes=min(2, wanted))
        state = "complete" if labels.risk[0] >= 0 else "split"
    db.execute("UPDATE texts SET slots = ?, state = ? WHERE id = ?", (slots, state, text))


def release(db: sqlite3.Connection, settings: ProjectSettings, *, person: int, now: float) -> None:
    """Give back the text that a person has open, for others to rate."""
    for (text,) in db.execute(
        "UPDATE assignments SET state = 'released', ended = ? WHERE person = ? AND state = 'open' "
        "RETURNING text",
        (now, person),
    ).fetchall():
        refresh(db, text, settings)


def _release_stale(db: sqlite3.Connection, settings: ProjectSettings, now: float) -> None:
    limit = now - settings.hold_hours * 3600
    stale = db.execute(
        "SELECT person FROM assignments WHERE state = 'open' AND touched < ?", (limit,)
    ).fetchall()
    for (person,) in stale:
        release(db, settings, person=person, now=now)


def next_task(
    db: sqlite3.Connection, settings: ProjectSettings, person: Person, now: float
) -> Progress:
    """Return the text that a rater has open, or give them the next one."""
    if person.role != "rater":
        raise NotAllowedError(f"a {person.role} does not rate texts")
    round_, version = current_round(db), guidelines_version(db)
    row = open_assignment(db, person.id)
    reason = ""
    if row is None:
        reason = _why_not(db, settings, person, round_, now)
        if not reason:
            found = _choose(db, settings, person, round_)
            if found is None:
                _release_stale(db, settings, now)
                found = _choose(db, settings, person, round_, last=True)
            if found is None:
                reason = "nothing left"
            else:
                text, repeat = found
                attempt = person.attempt if round_ == "pilot" else 1
                db.execute(
                    "INSERT INTO assignments "
                    "(text, person, repeat, attempt, guidelines, began, touched) "
                    "VALUES (?, ?, ?, ?, ?, ?, ?)",
                    (text, person.id, repeat, attempt, version, now, now),
                )
                refresh(db, text, settings)
                row = open_assignment(db, person.id)
    elif row["guidelines"] != version:
        db.execute("UPDATE assignments SET guidelines = ? WHERE id = ?", (version, row["id"]))
    total, finished = db.execute(
        "SELECT coalesce(sum(n), 0), coalesce(sum(n) FILTER (WHERE state != 'open'), 0) "
        "FROM counts WHERE round = ?",
        (round_,),
    ).fetchone()
    (yours,) = db.execute("SELECT finished FROM people WHERE id = ?", (person.id,)).fetchone()
    task = None if row is None else _task(db, settings, row)
    return Progress(task, reason, yours, finished, total, round_, version)


def open_assignment(db: sqlite3.Connection, person: int) -> sqlite3.Row | None:
    """Return what a person has in front of them, or None."""
    found: sqlite3.Row | None = db.execute(
        "SELECT * FROM assignments WHERE person = ? AND state = 'open'", (person,)
    ).fetchone()
    return found


def _why_not(
    db: sqlite3.Connection, settings: ProjectSettings, person: Person, round_: str, now: float
) -> str:
    if not person.welcomed:
        return "not welcomed"
    if round_ == "closed":
        return "closed"
    if round_ == "main" and person.standing != "passed":
        pilot = db.execute("SELECT 1 FROM texts WHERE round = 'pilot' LIMIT 1").fetchone()
        if pilot is not None:
            return "not passed"
    if round_ == "pilot" and person.standing == "passed":
        return "passed"
    cap = settings.hours_per_day
    if cap is not None and seconds_today(db, person.id, now) >= cap * 3600:
        return "enough for today"
    return ""


def _choose(
    db: sqlite3.Connection,
    settings: ProjectSettings,
    person: Person,
    round_: str,
    *,
    last: bool = False,
) -> tuple[int, int] | None:
    """Return the next text for a rater and whether it is a repeat; None when none is left."""
    if round_ == "main":
        gap = min(settings.repeat_gap, 5) if last else settings.repeat_gap
        due = db.execute(
            "SELECT a.text FROM assignments a JOIN texts t ON t.id = a.text "
            "WHERE a.person = ? AND a.again = 1 AND a.state = 'done' AND a.number <= ? "
            "AND t.round = 'main' AND NOT EXISTS (SELECT 1 FROM assignments b "
            "WHERE b.text = a.text AND b.person = a.person AND b.repeat = 1) "
            "ORDER BY a.number LIMIT 1",
            (person.id, person.finished - gap),
        ).fetchone()
        if due is not None:
            return int(due[0]), 1
    if round_ == "pilot" and person.attempt > 1:
        done = db.execute(
            "SELECT count(*) FROM assignments a JOIN texts t ON t.id = a.text WHERE a.person = ? "
            "AND a.attempt = ? AND a.state = 'done' AND t.round = 'pilot'",
            (person.id, person.attempt),
        ).fetchone()[0]
        if done >= settings.training_texts:
            return None
        condition, order = "", "place"
    else:
        # Texts that others began come first, so that texts get finished.
        condition, order = "AND state = 'open' AND slots > 0", "slots, place"
    found = db.execute(
        f"SELECT id FROM texts t WHERE round = ? {condition} AND NOT EXISTS "
        "(SELECT 1 FROM assignments a WHERE a.text = t.id AND a.person = ? "
        f"AND a.state != 'released') ORDER BY {order} LIMIT 1",
        (round_, person.id),
    ).fetchone()
    return None if found is None else (int(found[0]), 0)


def _task(db: sqlite3.Connection, settings: ProjectSettings, row: sqlite3.Row) -> Task:
    text, stored = db.execute(
        "SELECT text, spans FROM texts WHERE id = ?", (row["text"],)
    ).fetchone()
    spans: list[list[int]] = json.loads(stored)
    covered = not row["shown"] and (bool(spans) or settings.mask == "text")
    step: Step = "details"
    if row["answer"] != "delicate":
        step = "answer"
    elif row["risk"] is None:
        step = "risk"
    return Task(
        assignment=row["id"],
        text=_covered(text, spans, settings) if covered else text,
        covered=covered,
        hidden_terms=len(spans),
        step=step,
        answer=row["answer"] or "",
        risk=row["risk"],
        topics=tuple(json.loads(row["topics"])),
        target=row["target"],
        can_undo=row["answer"] is None and _may_undo(db, row),
    )


def _covered(text: str, spans: Sequence[Sequence[int]], settings: ProjectSettings) -> str:
    if settings.mask == "text":
        return ""
    return mask(text, [(start, end) for start, end in spans])


def last_rating(db: sqlite3.Connection, person: int) -> sqlite3.Row | None:
    """Return a person's newest rating, if it may still be changed."""
    row: sqlite3.Row | None = db.execute(
        "SELECT a.*, t.state AS text_state, t.round, t.slots FROM assignments a "
        "JOIN texts t ON t.id = a.text WHERE a.person = ? AND a.state = 'done' "
        "AND a.origin = 'app' ORDER BY a.ended DESC LIMIT 1",
        (person,),
    ).fetchone()
    if row is None or row["text_state"] == "settled" or row["round"] != current_round(db):
        return None
    if row["answer"] == "cannot be judged" and row["slots"] <= 0:
        return None  # somebody else has that place now
    reviewed = db.execute("SELECT 1 FROM reviews WHERE assignment = ?", (row["id"],)).fetchone()
    return None if reviewed is not None else row


def _may_undo(db: sqlite3.Connection, row: sqlite3.Row) -> bool:
    changed = db.execute("SELECT 1 FROM changes WHERE assignment = ?", (row["id"],)).fetchone()
    return changed is None and last_rating(db, row["person"]) is not None
