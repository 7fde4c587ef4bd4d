"""People, their invitations and their sessions. Tokens are kept as hashes only."""

from __future__ import annotations

import secrets
import sqlite3
from dataclasses import dataclass
from hashlib import sha256
from typing import Literal, get_args

from ombud.app.errors import AppError, NotAllowedError

Role = Literal["rater", "reviewer", "lead"]

_SESSION_SECONDS = 7 * 24 * 3600.0
_LONGEST_NAME = 80


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody who takes part."""

    id: int
    name: str
    role: Role
    welcomed: bool
    gone: bool
    standing: str
    attempt: int
    finished: int


@dataclass(frozen=True, slots=True)
class Session:
    """A person at a browser, with the token that their forms must carry."""

    person: Person
    csrf: str


@dataclass(frozen=True, slots=True)
class Invitation:
    """An invitation as the lead sees it: without its token, which is not kept."""

    id: int
    person: str
    role: Role
    expires: float
    revoked: bool


def _hash_of(token: str) -> bytes:
    """Return what is stored of a token; tokens are random, so no salt is needed."""
    return sha256(token.encode()).digest()


def _person(row: sqlite3.Row) -> Person:
    return Person(
        id=row["id"],
        name=row["name"],
        role=row["role"],
        welcomed=row["welcomed"] is not None,
        gone=row["gone"] is not None,
        standing=row["standing"],
        attempt=row["attempt"],
        finished=row["finished"],
    )


def people(db: sqlite3.Connection) -> list[Person]:
    """Return everybody, in the order in which they were invited."""
    return [_person(row) for row in db.execute("SELECT * FROM people ORDER BY id")]


def person_named(db: sqlite3.Connection, name: str) -> Person | None:
    """Return the person of this name, or None."""
    row = db.execute("SELECT * FROM people WHERE name = ?", (name,)).fetchone()
    return _person(row) if row is not None else None


def add_person(db: sqlite3.Connection, name: str, role: Role, now: float) -> int:
    """Return the id of the person of this name, who is made if need be.

    Raises
    ------
    AppError
        If the name is empty or too long, or belongs to somebody with another role.
    """
    name = " ".join(name.split())
    if not 0 < len(name) <= _LONGEST_NAME:
        raise AppError(f"a name has 1 to {_LONGEST_NAME} characters; this one has {len(name)}")
    if role not in get_args(Role):
        raise AppError(f"{role!r} is no role; roles are {', '.join(get_args(Role))}")
    known = person_named(db, name)
    if known is not None:
        if known.role != role:
            raise AppError(f"{name} is a {known.role} already; choose another name")
        return known.id
    made = db.execute(
        "INSERT INTO people (name, role, created) VALUES (?, ?, ?)", (name, role, now)
    )
    assert made.lastrowid is not None
    return made.lastrowid


def invite(
    db: sqlite3.Connection, name: str, role: Role, *, now: float, hours: float = 14 * 24
) -> str:
    """Return a new token for a person; their earlier invitations and their sessions end.

    The token is shown once: only its hash is kept. The link works until it expires, so that a
    rater can come back with it from another browser.
    """
    if not 0 < hours <= 24 * 366:
        raise AppError(f"an invitation lasts up to 366 days; {hours:g} hours were asked for")
    person = add_person(db, name, role, now)
    db.execute("UPDATE people SET gone = NULL WHERE id = ?", (person,))
    db.execute(
        "UPDATE invitations SET revoked = ? WHERE person = ? AND revoked IS NULL", (now, person)
    )
    db.execute("DELETE FROM sessions WHERE person = ?", (person,))
    token = secrets.token_urlsafe(32)
    db.execute(
        "INSERT INTO invitations (person, hash, created, expires) VALUES (?, ?, ?, ?)",
        (person, _hash_of(token), now, now + hours * 3600),
    )
    return token


def invitations(db: sqlite3.Connection) -> list[Invitation]:
    """Return the newest invitation of everybody."""
    rows = db.execute(
        "SELECT i.id, p.name, p.role, i.expires, i.revoked FROM invitations i "
        "JOIN people p ON p.id = i.person "
        "WHERE i.id IN (SELECT max(id) FROM invitations GROUP BY person) ORDER BY p.id"
    )
    return [Invitation(r[0], r[1], r[2], r[3], r[4] is not None) for r in rows]


def revoke(db: sqlite3.Connection, person: int, now: float) -> None:
    """End the invitation and the sessions of a person."""
    db.execute(
        "UPDATE invitations SET revoked = ? WHERE person = ? AND revoked IS NULL", (now, person)
    )
    db.execute("DELETE FROM sessions WHERE person = ?", (person,))


def find_invited(db: sqlite3.Connection, token: str, now: float) -> Person:
    """Return whom a token invites.

    Raises
    ------
    NotAllowedError
        If it is forged, expired or revoked. The message does not say which.
    """
    row = db.execute(
        "SELECT p.* FROM invitations i JOIN people p ON p.id = i.person "
        "WHERE i.hash = ? AND i.expires > ? AND i.revoked IS NULL",
        (_hash_of(token), now),
    ).fetchone()
    if row is None:
        raise NotAllowedError(
            "This link is not valid, or not any more. Ask whoever sent it for a new one."
        )
    return _person(row)


def accept(db: sqlite3.Connection, token: str, now: float) -> str:
    """Return the token of a new session for whoever holds an invitation."""
    person = find_invited(db, token, now)
    db.execute("DELETE FROM sessions WHERE expires <= ?", (now,))
    session = secrets.token_urlsafe(32)
    db.execute(
        "INSERT INTO sessions (hash, person, csrf, created, expires) VALUES (?, ?, ?, ?, ?)",
        (_hash_of(session), person.id, secrets.token_urlsafe(32), now, now + _SESSION_SECONDS),
    )
    return session


def session_of(db: sqlite3.Connection, token: str, now: float) -> Session | None:
    """Return the session of a cookie, or None if there is none that lasts."""
    row = db.execute(
        "SELECT p.*, s.csrf FROM sessions s JOIN people p ON p.id = s.person "
        "WHERE s.hash = ? AND s.expires > ? AND p.gone IS NULL",
        (_hash_of(token), now),
    ).fetchone()
    return None if row is None else Session(_person(row), row["csrf"])


def drop_session(db: sqlite3.Connection, token: str) -> None:
    """End one session."""
    db.execute("DELETE FROM sessions WHERE hash = ?", (_hash_of(token),))


def welcome(db: sqlite3.Connection, person: int, now: float) -> None:
    """Note that a person read what is coming."""
    db.execute("UPDATE people SET welcomed = ? WHERE id = ?", (now, person))


def leave(db: sqlite3.Connection, person: int, now: float) -> None:
    """Let a person leave for good; what they rated stays."""
    db.execute("UPDATE people SET gone = ? WHERE id = ?", (now, person))
    revoke(db, person, now)
