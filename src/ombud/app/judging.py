"""Reviews of pilot labels, pass marks, and texts without a majority."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from ombud.app.errors import AppError, ConflictError, NotAllowedError
from ombud.app.people import Person
from ombud.app.rating_queue import current_round, refresh
from ombud.app.settings import ANSWERS, ProjectSettings
from ombud.stats.estimate import Estimate
from ombud.stats.proportions import proportion
from ombud.text.folding import mask

Kind = Literal["review", "adjudication"]

_CLAIM_SECONDS = 600.0
_LONGEST_REASON = 2000


@dataclass(frozen=True, slots=True)
class Vote:
    """What one rater said of a text."""

    answer: str
    risk: int | None
    topics: tuple[str, ...]
    target: str


@dataclass(frozen=True, slots=True)
class Case:
    """A label to review, or a text to decide; `waiting` counts this one too."""

    kind: Kind
    item: int
    text: str
    spans: tuple[tuple[int, int], ...]
    votes: tuple[Vote, ...]
    waiting: int


@dataclass(frozen=True)
class Acceptance:
    """How many labels of the pilot reviewers accepted: overall, by rater, by topic."""

    overall: Estimate
    by_rater: tuple[Estimate, ...]
    by_topic: tuple[Estimate, ...]
    waiting: int


_WAITING = {
    "review": (
        "SELECT a.id FROM assignments a LEFT JOIN reviews r ON r.assignment = a.id "
        "WHERE a.review = 1 AND a.state = 'done' AND r.assignment IS NULL"
    ),
    "adjudication": "SELECT t.id FROM texts t WHERE t.state = 'split' AND t.round = 'main'",
}


def _check(person: Person) -> None:
    if person.role == "rater":
        raise NotAllowedError("raters do not judge what raters say")


def next_case(db: sqlite3.Connection, kind: Kind, person: Person, now: float) -> Case | None:
    """Return what a reviewer looks at next; nobody else is given it for ten minutes."""
    _check(person)
    waiting = [row[0] for row in db.execute(_WAITING[kind] + " ORDER BY 1")]
    if not waiting:
        return None
    db.execute("DELETE FROM claims WHERE expires <= ?", (now,))
    claims = dict(db.execute("SELECT item, person FROM claims WHERE kind = ?", (kind,)).fetchall())
    mine = [item for item in waiting if claims.get(item) == person.id]
    free = mine or [item for item in waiting if item not in claims]
    if not free:
        return None
    item = free[0]
    db.execute(
        "INSERT INTO claims VALUES (?, ?, ?, ?) "
        "ON CONFLICT (kind, item) DO UPDATE SET expires = excluded.expires",
        (kind, item, person.id, now + _CLAIM_SECONDS),
    )
    where = "a.id = ?" if kind == "review" else "a.text = ? AND a.repeat = 0 AND a.attempt = 1"
    rows = db.execute(
        f"SELECT a.*, t.text AS words, t.spans FROM assignments a JOIN texts t ON t.id = a.text "
        f"WHERE {where} AND a.state = 'done' ORDER BY a.risk",
        (item,),
    ).fetchall()
    votes = tuple(
        Vote(row["answer"], row["risk"], tuple(json.loads(row["topics"])), row["target"])
        for row in rows
    )
    spans = tuple((start, end) for start, end in json.loads(rows[0]["spans"]))
    return Case(kind, item, rows[0]["words"], spans, votes, len(waiting))


def review(
    db: sqlite3.Connection,
    person: Person,
    assignment: int,
    *,
    accepted: bool,
    reason: str = "",
    now: float,
) -> None:
    """Accept a label of the pilot, or reject it with a reason that its rater will read."""
    _check(person)
    reason = _reason(reason)
    if not accepted and not reason:
        raise AppError("a rejection needs a reason: the rater learns from it")
    row = db.execute(
        "SELECT 1 FROM assignments WHERE id = ? AND review = 1 AND state = 'done'", (assignment,)
    ).fetchone()
    if row is None:
        raise ConflictError("this label was changed by its rater meanwhile; nothing was stored")
    before = db.execute(
        "SELECT person, accepted, reason FROM reviews WHERE assignment = ?", (assignment,)
    ).fetchone()
    if before is not None:
        if tuple(before) == (person.id, int(accepted), reason):
            return
        raise ConflictError("this label was reviewed already; that review was kept")
    db.execute(
        "INSERT INTO reviews VALUES (?, ?, ?, ?, ?)",
        (assignment, person.id, int(accepted), reason, now),
    )
    db.execute("DELETE FROM claims WHERE kind = 'review' AND item = ?", (assignment,))


def adjudicate(
    db: sqlite3.Connection,
    settings: ProjectSettings,
    person: Person,
    text: int,
    *,
    answer: str,
    risk: int | None,
    reason: str = "",
    now: float,
) -> None:
    """Decide the risk class of a text on which raters did not agree."""
    _check(person)
    if answer not in ANSWERS or (answer == "delicate") != (risk is not None):
        raise AppError("a decision is one of the answers, with a risk if it is delicate")
    if risk is not None and not 1 <= risk <= 5:
        raise AppError(f"a risk is from 1 to 5, not {risk}")
    before = db.execute(
        "SELECT person, answer, risk FROM adjudications WHERE text = ?", (text,)
    ).fetchone()
    if before is not None:
        if tuple(before) == (person.id, answer, risk):
            return  # the same click, sent twice
        raise ConflictError("this text was decided already; that decision was kept")
    row = db.execute("SELECT state FROM texts WHERE id = ?", (text,)).fetchone()
    if row is None or row[0] != "split":
        raise ConflictError("this text does not wait for a decision; nothing was stored")
    db.execute(
        "INSERT INTO adjudications VALUES (?, ?, ?, ?, ?, ?)",
        (text, person.id, answer, risk, _reason(reason), now),
    )
    db.execute("DELETE FROM claims WHERE kind = 'adjudication' AND item = ?", (text,))
    refresh(db, text, settings)


def _reason(reason: str) -> str:
    reason = reason.strip()
    if len(reason) > _LONGEST_REASON:
        raise AppError(f"a reason has at most {_LONGEST_REASON:,} characters")
    return reason


def acceptance(db: sqlite3.Connection, settings: ProjectSettings) -> Acceptance:
    """Return acceptance rates with Wilson intervals; a rater's is that of the latest attempt."""
    rows = db.execute(
        "SELECT r.accepted, p.name, a.attempt, p.attempt AS latest, t.topics, a.topics AS marked "
        "FROM reviews r JOIN assignments a ON a.id = r.assignment "
        "JOIN people p ON p.id = a.person JOIN texts t ON t.id = a.text"
    ).fetchall()
    named = [row[0] for row in db.execute("SELECT name FROM people WHERE role = 'rater'")]
    by_rater = [
        _rate(
            (row["accepted"] for row in rows if row["name"] == name and row[2] == row["latest"]),
            name,
        )
        for name in named
    ]
    by_topic = []
    for topic in settings.topics:
        some = [
            row["accepted"]
            for row in rows
            if topic.id in json.loads(row["topics"]) or topic.id in json.loads(row["marked"])
        ]
        if some:
            by_topic.append(_rate(some, topic.title))
    waiting = db.execute(f"SELECT count(*) FROM ({_WAITING['review']})").fetchone()[0]
    overall = _rate((row["accepted"] for row in rows), "")
    return Acceptance(overall, tuple(by_rater), tuple(by_topic), waiting)


def _rate(accepted: Iterable[int], group: str) -> Estimate:
    votes = list(accepted)
    return proportion(sum(votes), len(votes), metric="acceptance", unit="label", group=group)


def apply_pass_mark(db: sqlite3.Connection, settings: ProjectSettings) -> dict[str, list[str]]:
    """Let raters at or above the mark pass, and send those below it to training.

    Raters without a reviewed label stay as they are. Returns names by what happened to them.
    """
    done: dict[str, list[str]] = {"passed": [], "training": [], "not reviewed": []}
    rates = {rate.group: rate for rate in acceptance(db, settings).by_rater}
    for person, name, standing in db.execute(
        "SELECT id, name, standing FROM people WHERE role = 'rater' AND gone IS NULL"
    ).fetchall():
        rate = rates[name]
        if standing == "passed":
            continue
        if rate.value is None:
            done["not reviewed"].append(name)
        elif rate.value >= settings.pass_mark:
            db.execute("UPDATE people SET standing = 'passed' WHERE id = ?", (person,))
            done["passed"].append(name)
        else:
            db.execute(
                "UPDATE people SET standing = 'training', attempt = attempt + 1 WHERE id = ?",
                (person,),
            )
            done["training"].append(name)
    return done


def feedback(db: sqlite3.Connection, person: int) -> list[tuple[Vote, str, str, int]]:
    """Return a rater's rejected labels: the label, the text, the reason, the attempt."""
    rows = db.execute(
        "SELECT a.*, t.text AS words, t.spans, r.reason FROM reviews r "
        "JOIN assignments a ON a.id = r.assignment JOIN texts t ON t.id = a.text "
        "WHERE a.person = ? AND r.accepted = 0 ORDER BY a.attempt DESC, r.created",
        (person,),
    )
    return [
        (
            Vote(row["answer"], row["risk"], tuple(json.loads(row["topics"])), row["target"]),
            mask(row["words"], [(a, b) for a, b in json.loads(row["spans"])]),
            row["reason"],
            row["attempt"],
        )
        for row in rows
    ]


def open_round(db: sqlite3.Connection, round_: str) -> None:
    """Open the pilot or the main round, or close both; what is stored stays."""
    if round_ not in {"pilot", "main", "closed"}:
        raise AppError(f"{round_!r} is no round; rounds are pilot, main and closed")
    if round_ != current_round(db):
        db.execute("UPDATE meta SET value = ? WHERE key = 'round'", (round_,))
