"""What becomes of a rater's click. The same click twice changes nothing more."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

from ombud.app.errors import AppError, ConflictError, NotAllowedError
from ombud.app.people import Person
from ombud.app.rating_queue import last_rating, open_assignment, refresh, release
from ombud.app.settings import ANSWERS, TARGETS, ProjectSettings
from ombud.questions.delicate.ratings import HIGHEST_RISK


def chosen(share: float, *names: object) -> bool:
    """Say whether something belongs to a random share; the same names give the same answer.

    Examples
    --------
    >>> chosen(1.0, "a"), chosen(0.0, "a")
    (True, False)
    """
    text = "\x1f".join(str(name) for name in names)
    draw = int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big")
    return draw < share * 2**64


def act(
    db: sqlite3.Connection,
    settings: ProjectSettings,
    person: Person,
    *,
    assignment: int,
    action: str,
    value: str = "",
    topics: Sequence[str] = (),
    active: float | None = None,
    now: float,
) -> str:
    """Do what a click asks; return what to say. The same click twice changes nothing more.

    Raises
    ------
    ConflictError
        If the text is answered already, otherwise than here. That answer is kept.
    """
    row = db.execute(
        "SELECT * FROM assignments WHERE id = ? AND person = ?", (assignment, person.id)
    ).fetchone()
    if row is None:
        raise NotAllowedError("this text is not yours to rate")
    if action == "undo":
        return _undo(db, settings, person, assignment, now)
    if row["state"] != "open":
        return _again(row, action, value)
    change: dict[str, Any] = {"touched": now}
    ends = False
    if action == "show":
        change["shown"] = 1
    elif action == "skip":
        change |= {"answer": None, "risk": None, "state": "skipped", "ended": now}
    elif action == "answer" and value in ANSWERS:
        change |= {"answer": value, "risk": None}
        ends = value != "delicate"
    elif action == "risk" and value in {str(r) for r in range(1, HIGHEST_RISK + 1)}:
        _need(row["answer"] == "delicate", "say first whether the text is delicate")
        change["risk"] = int(value)
        ends = not (settings.ask_topics or settings.ask_target)
    elif action in {"details", "finish"}:
        _need(row["risk"] is not None, "say first how risky the text is")
        change |= _details(settings, value, topics)
        ends = action == "finish"
    elif action == "back":
        change |= {"risk": None, "topics": "[]", "target": ""}
        if row["risk"] is None:
            change["answer"] = None
    else:
        raise AppError(f"{action!r} with {value!r} is nothing that can be answered")
    if change.get("state") == "skipped" or ends:
        change["active"] = active if active is None else max(0.0, min(active, now - row["began"]))
    if ends:
        change |= _finished(db, settings, person, row, now)
        if change.get("answer", row["answer"]) != "delicate":
            change |= {"topics": "[]", "target": ""}
    columns = ", ".join(f"{name} = ?" for name in change)
    db.execute(f"UPDATE assignments SET {columns} WHERE id = ?", (*change.values(), assignment))
    if "state" in change:
        refresh(db, row["text"], settings)
    return "skipped" if action == "skip" else "stored"


def _need(met: bool, message: str) -> None:
    if not met:
        raise ConflictError(message)


def _details(settings: ProjectSettings, target: str, topics: Sequence[str]) -> dict[str, Any]:
    known = {topic.id for topic in settings.topics}
    unknown = sorted(set(topics) - known)
    if unknown:
        raise AppError(f"unknown topics: {', '.join(unknown)}")
    if target and target not in TARGETS:
        raise AppError(f"unknown target {target!r}; known: {', '.join(TARGETS)}")
    kept = [topic.id for topic in settings.topics if topic.id in set(topics)]
    return {
        "topics": json.dumps(kept if settings.ask_topics else []),
        "target": target if settings.ask_target else "",
    }


def _finished(
    db: sqlite3.Connection, settings: ProjectSettings, person: Person, row: sqlite3.Row, now: float
) -> dict[str, Any]:
    db.execute("UPDATE people SET finished = finished + 1 WHERE id = ?", (person.id,))
    name, round_ = db.execute(
        "SELECT name, round FROM texts WHERE id = ?", (row["text"],)
    ).fetchone()
    (number,) = db.execute("SELECT finished FROM people WHERE id = ?", (person.id,)).fetchone()
    again = round_ == "main" and not row["repeat"]
    reviewed = round_ == "pilot"
    key = (settings.seed, name, person.name, row["attempt"])
    return {
        "state": "done",
        "ended": now,
        "number": number,
        "again": int(again and chosen(settings.repeat_share, "again", *key)),
        "review": int(reviewed and chosen(settings.review_share, "review", *key)),
    }


def _again(row: sqlite3.Row, action: str, value: str) -> str:
    """Answer a click on a text that is no longer open: a second send, or another tab."""
    same = {
        "answer": row["state"] == "done" and row["answer"] == value,
        "risk": row["state"] == "done" and str(row["risk"]) == value,
        "finish": row["state"] == "done",
        "skip": row["state"] == "skipped",
    }
    if same.get(action, False):
        return "stored before"
    if row["state"] == "released":
        raise ConflictError("this text went to somebody else while you were away; nothing changed")
    raise ConflictError(
        "this text was answered already, perhaps in another tab. That answer was kept; you can "
        "still change it"
    )


def _undo(
    db: sqlite3.Connection, settings: ProjectSettings, person: Person, assignment: int, now: float
) -> str:
    here = open_assignment(db, person.id)
    if here is not None:
        if here["id"] != assignment:
            return "stored before"  # the same click again: the earlier text is open already
        changed = db.execute("SELECT 1 FROM changes WHERE assignment = ?", (here["id"],)).fetchone()
        _need(changed is None and here["answer"] is None, "answer the text in front of you first")
    last = last_rating(db, person.id)
    _need(last is not None, "your last answer can no longer be changed")
    assert last is not None
    release(db, settings, person=person.id, now=now)
    db.execute(
        "INSERT INTO changes VALUES (?, ?, ?, ?, ?, ?, ?)",
        (*(last[k] for k in ("id", "answer", "risk", "topics", "target", "ended")), now),
    )
    db.execute(
        "UPDATE assignments SET state = 'open', answer = NULL, risk = NULL, topics = '[]', "
        "target = '', ended = NULL, active = NULL, touched = ?, again = 0, review = 0 "
        "WHERE id = ?",
        (now, last["id"]),
    )
    db.execute("UPDATE people SET finished = finished - 1 WHERE id = ?", (person.id,))
    refresh(db, last["text"], settings)
    return "reopened"
