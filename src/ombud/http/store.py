"""Every answer ever given, on disk: one SQLite file that survives a kill at any moment.

A *call* is written twice: when a question is about to be sent, and when its reply is there. Both
writes are committed (write-ahead log, ``synchronous=FULL``) before they count. So after a kill -9
or a power cut the file knows three kinds of questions: answered (never asked again), never sent,
and *in flight* (sent, reply not on disk). Only the last are uncertain; there are never more of
them than requests under way, plus the replies of one commit that was being written (milliseconds).

Questions are not stored, only their hashes (in the column ``text``). Raw replies are stored as
they came, without keys. What an answer means is not known here: an outcome is a word, and only
``error`` has a meaning, that the question may be asked again.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Self

from ombud.errors import ResultError

_APPLICATION = 0x6F6D6264
_SCHEMA_VERSION = 1
_RESERVE_BYTES = 2**21
_SCHEMA = """
CREATE TABLE IF NOT EXISTS systems (
    id INTEGER PRIMARY KEY, system TEXT, version TEXT, UNIQUE (system, version)
);
CREATE TABLE IF NOT EXISTS calls (
    system INTEGER NOT NULL REFERENCES systems,
    text BLOB NOT NULL,
    repeat INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    asked REAL NOT NULL,
    answered REAL,
    status INTEGER,
    outcome TEXT,
    reason TEXT,
    raw BLOB,
    UNIQUE (system, text, repeat, attempt)
);
"""
_INSERT = "INSERT INTO calls (system, text, repeat, attempt, asked) VALUES (?, ?, ?, ?, ?)"
_UPDATE = (
    "UPDATE calls SET answered = ?, status = ?, outcome = ?, reason = ?, raw = ? "
    "WHERE system = ? AND text = ? AND repeat = ? AND attempt = ? AND answered IS NULL"
)
_LATEST = (
    "SELECT text, repeat, max(attempt), asked, answered, status, outcome, reason, raw FROM calls "
    "WHERE system = ? {some} GROUP BY text, repeat"
)
_SOME = "AND (text, repeat) IN (SELECT text, repeat FROM temp.wanted)"
_OWN = (
    "typeof(text) = 'blob' AND typeof(repeat) = 'integer' AND typeof(attempt) = 'integer' "
    "AND typeof(asked) = 'real' AND typeof(answered) IN ('real', 'null') "
    "AND typeof(status) IN ('integer', 'null') AND typeof(raw) IN ('blob', 'null') "
    "AND (answered IS NULL OR (typeof(outcome) = 'text' AND typeof(reason) = 'text'))"
)

Key = tuple[bytes, int]
"""A question's hash, and 0 for the first time it is asked, 1 for the second, ..."""


def hash_of(*parts: str | bytes) -> bytes:
    """Return the 16-byte hash by which a question is known in the store.

    Several parts differ from others that read the same when joined.
    """
    digest = blake2b(digest_size=16)
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(data if len(parts) == 1 else len(data).to_bytes(8, "big") + data)
    return digest.digest()


def default_path(name: str) -> Path:
    """Return ``$OMBUD_CACHE/NAME.sqlite``, by default in ``.ombud`` of this folder."""
    return Path(os.environ.get("OMBUD_CACHE") or ".ombud") / f"{name}.sqlite"


@dataclass(frozen=True, slots=True)
class Call:
    """One time a question was sent: the last attempt for its key.

    `answered` is None while in flight; `raw` is None when no reply came.
    """

    attempt: int
    asked: float
    answered: float | None
    status: int | None
    outcome: str
    reason: str
    raw: bytes | None


class AnswerStore:
    """The calls of one system and version in a cache file.

    The file is made when absent, readable by its owner only.
    """

    def __init__(self, path: Path, system: str, version: str) -> None:
        self.path = Path(path)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))
            self._db = sqlite3.connect(self.path, timeout=60, check_same_thread=False)
            try:
                self._system = self._enter(system, version)
            except BaseException:
                self._db.close()
                raise
        except (OSError, sqlite3.DatabaseError) as fault:
            raise ResultError(
                f"answer cache {self.path}: {fault}. Name another file, or repair this one"
            ) from None
        run = blake2b(f"{system}\x1f{version}".encode(), digest_size=6).hexdigest()
        self._lock_file = self.path.with_name(f"{self.path.name}.{run}.lock")
        self._reserve_file = self.path.with_name(f"{self.path.name}.{run}.reserve")

    def _enter(self, system: str, version: str) -> int:
        """Return the number of a system and version in the file."""
        self._prepare()
        with self._db:
            names = (system, version)
            self._db.execute("INSERT OR IGNORE INTO systems (system, version) VALUES (?, ?)", names)
            query = "SELECT id FROM systems WHERE system = ? AND version = ?"
            return int(self._db.execute(query, names).fetchone()[0])

    def _prepare(self) -> None:
        application = self._db.execute("PRAGMA application_id").fetchone()[0]
        version = self._db.execute("PRAGMA user_version").fetchone()[0]
        empty = self._db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0
        if not empty and application != _APPLICATION:
            raise ResultError(f"{self.path} is a database, but not an answer cache of ombud")
        if version > _SCHEMA_VERSION:
            raise ResultError(f"{self.path} was written by a newer ombud; update ombud")
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = FULL")
        if empty:
            self._db.executescript(
                f"BEGIN IMMEDIATE; {_SCHEMA} PRAGMA application_id = {_APPLICATION}; "
                f"PRAGMA user_version = {_SCHEMA_VERSION}; COMMIT;"
            )

    def latest(self, keys: Collection[Key] | None = None) -> dict[Key, Call]:
        """Return the last call of every question that was ever sent."""
        with self._readable():
            if keys is not None:
                self._db.execute("CREATE TEMP TABLE IF NOT EXISTS wanted (text BLOB, repeat INT)")
                self._db.execute("DELETE FROM temp.wanted")
                self._db.executemany("INSERT INTO temp.wanted VALUES (?, ?)", keys)
            some = "" if keys is None else _SOME
            query = _LATEST.format(some=some)
            odd = f"SELECT 1 FROM calls WHERE system = ? {some} AND NOT ({_OWN}) LIMIT 1"
            if self._db.execute(odd, (self._system,)).fetchone():
                raise ResultError(
                    f"answer cache {self.path} holds rows that ombud did not write. "
                    "Name another file, or repair this one"
                )
            rows = self._db.execute(query, (self._system,)).fetchall()
            self._db.commit()
        return {(text, repeat): Call(*rest) for text, repeat, *rest in rows}

    @contextmanager
    def _readable(self) -> Iterator[None]:
        """Turn a damaged file into a sentence."""
        try:
            yield
        except (OSError, sqlite3.DatabaseError) as fault:
            raise ResultError(
                f"answer cache {self.path}: {fault}. Name another file, or repair this one"
            ) from None

    def write(
        self, asked: Sequence[tuple[Key, int, float]], answered: Sequence[tuple[Key, Call]]
    ) -> None:
        """Write some calls in one transaction; on return they are on disk.

        `asked` are key, attempt and time of questions about to be sent; `answered`, keys and calls
        whose reply is there.
        """
        with self._db:
            if asked:
                self._db.executemany(
                    _INSERT, [(self._system, *key, attempt, when) for key, attempt, when in asked]
                )
            if answered:
                self._db.executemany(
                    _UPDATE,
                    [
                        (
                            c.answered,
                            c.status,
                            c.outcome,
                            c.reason,
                            c.raw,
                            self._system,
                            *key,
                            c.attempt,
                        )
                        for key, c in answered
                    ],
                )

    def reserve(self) -> None:
        """Set room aside on the disk, so that replies under way fit when it is full."""
        with suppress(OSError):  # without the reserve a full disk is still noticed
            self._reserve_file.write_bytes(bytes(_RESERVE_BYTES))

    def rescue(self, answered: Sequence[tuple[Key, Call]]) -> None:
        """Write replies after a failed write, in the room set aside."""
        self._reserve_file.unlink(missing_ok=True)
        self.write([], answered)

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the right to ask this system; a killed process lets go of it by itself."""
        try:
            import fcntl
        except ImportError:  # Windows: two runs at once are not noticed there
            yield
            return
        with open(self._lock_file, "w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise ResultError(
                    f"another run is asking the same system with the cache {self.path}; "
                    "wait for it, or name another cache"
                ) from None
            try:
                yield
            finally:
                self._reserve_file.unlink(missing_ok=True)

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
