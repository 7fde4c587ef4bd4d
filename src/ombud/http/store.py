"""Every answer ever given, on disk: one SQLite file that survives a kill at any moment.

A *call* is written twice: when a question is about to be sent, and when its reply is there. Both
writes are committed (write-ahead log, ``synchronous=FULL``) before they count. So after a kill -9
or a power cut the file knows three kinds of questions: answered (never asked again), never sent,
and *in flight* (sent, reply not on disk). Only the last are uncertain; there are never more of
them than requests under way, plus the replies of one commit that was being written (milliseconds).

Questions are not stored, only their hashes (in the column ``text``). Raw replies are stored as
they came, without keys. What an answer means is not known here: an outcome is a word, and only
``error`` has a meaning, that the question may be asked again.

Each row has a *checksum* of all that it says, the names of system and version included, so that a
disk that flips bits changes no answer. Rows that do not match theirs are moved to the table
``damaged`` and their questions are asked again; a file most of whose rows are damaged is refused.
The checksum detects accidents, not forgery: whoever can write the file can write checksums.
"""

from __future__ import annotations

import os
import sqlite3
import struct
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, Self

from ombud.errors import ResultError

_APPLICATION = 0x6F6D6264
_SCHEMA_VERSION = 2
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
    checksum BLOB,
    UNIQUE (system, text, repeat, attempt)
);
"""
_INSERT = (
    "INSERT INTO calls (system, text, repeat, attempt, asked, checksum) VALUES (?, ?, ?, ?, ?, ?)"
)
_UPDATE = (
    "UPDATE calls SET answered = ?1, status = ?2, outcome = ?3, reason = ?4, raw = ?5, checksum = "
    "ombud_checksum(?6, ?7, text, repeat, attempt, asked, CAST(?1 AS REAL), ?2, ?3, ?4, ?5) "
    "WHERE system = ?8 AND text = ?9 AND repeat = ?10 AND attempt = ?11 AND answered IS NULL"
)
_COLUMNS = "text, repeat, attempt, asked, answered, status, outcome, reason, raw"
_READ = "SELECT rowid, checksum, {columns} FROM calls {index} WHERE system = ? {some}"
_SOME = "AND (text, repeat) IN (SELECT text, repeat FROM temp.wanted)"
_MOVE = (
    "CREATE TABLE IF NOT EXISTS damaged AS SELECT * FROM calls WHERE 0",
    "INSERT INTO damaged SELECT * FROM calls NOT INDEXED WHERE rowid IN temp.spoilt",
    "DELETE FROM calls WHERE rowid IN temp.spoilt",
)
_PORTION = 200

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


def checksum(*values: bytes | str | float | None) -> bytes:
    """Return a checksum of values of SQLite, by which a change of any of them is noticed."""
    digest = blake2b(digest_size=8)
    for value in values:
        if isinstance(value, float):
            data, kind = struct.pack("<d", value), b"f"
        elif isinstance(value, str):
            data, kind = value.encode(errors="surrogateescape"), b"s"
        elif isinstance(value, bytes):
            data, kind = value, b"b"
        else:
            data, kind = str(value).encode(), b"i"
        digest.update(kind + len(data).to_bytes(8, "big"))
        digest.update(data)
    return digest.digest()


def open_database(path: Path | str, read_only: bool = False) -> sqlite3.Connection:
    """Open a file of rows with checksums; text that damage made unreadable stays comparable."""
    if Path(path).exists() and not Path(path).is_file():
        raise OSError(f"{path} is not a regular file")
    where = f"{Path(path).absolute().as_uri()}?mode=ro" if read_only else path
    db = sqlite3.connect(where, timeout=60, check_same_thread=False, uri=read_only)
    db.text_factory = lambda text: text.decode(errors="surrogateescape")
    db.create_function("ombud_checksum", -1, checksum, deterministic=True)
    return db


def check_structure(db: sqlite3.Connection) -> None:
    """Rebuild indexes that do not match their table; DatabaseError when that does not help."""
    if db.execute("PRAGMA integrity_check(1)").fetchone()[0] != "ok":
        db.execute("REINDEX")
        if (fault := db.execute("PRAGMA integrity_check(1)").fetchone()[0]) != "ok":
            raise sqlite3.DatabaseError(" ".join(str(fault).split()))


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
        self._names = (system, version)
        self._spoilt: list[tuple[int]] = []
        with self._readable():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))
            self._db = open_database(self.path)
            try:
                self._system = self._enter()
            except BaseException:
                self._db.close()
                raise
        run = blake2b(f"{system}\x1f{version}".encode(), digest_size=6).hexdigest()
        self._lock_file = self.path.with_name(f"{self.path.name}.{run}.lock")
        self._reserve_file = self.path.with_name(f"{self.path.name}.{run}.reserve")

    def _enter(self) -> int:
        """Return the number of the system and version in the file."""
        self._prepare()
        with self._db:
            insert = "INSERT OR IGNORE INTO systems (system, version) VALUES (?, ?)"
            self._db.execute(insert, self._names)
            query = "SELECT id FROM systems WHERE system = ? AND version = ?"
            return int(self._db.execute(query, self._names).fetchone()[0])

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
        elif version < _SCHEMA_VERSION:
            self._upgrade()

    def _upgrade(self) -> None:
        """Give each row of an older file its checksum, all in one transaction."""
        with self._db:
            self._db.execute("BEGIN IMMEDIATE")
            if self._db.execute("PRAGMA user_version").fetchone()[0] == _SCHEMA_VERSION:
                return  # another process was first
            check_structure(self._db)
            self._db.execute("ALTER TABLE calls ADD COLUMN checksum BLOB")
            query = (
                f"SELECT calls.rowid, systems.system, version, {_COLUMNS} FROM calls NOT INDEXED "
                "JOIN systems ON systems.id = calls.system "
                f"WHERE calls.rowid > ? ORDER BY calls.rowid LIMIT {_PORTION}"
            )
            last: tuple[int, ...] = (-(2**63),)
            while rows := self._db.execute(query, last).fetchall():
                last = (rows[-1][0],)
                self._db.executemany(
                    "UPDATE calls SET checksum = ? WHERE rowid = ?",
                    [(checksum(*row[1:]), row[0]) for row in rows if _is_call(*row[3:])],
                )
            self._db.execute(f"PRAGMA user_version = {_SCHEMA_VERSION}")

    def latest(self, keys: Collection[Key] | None = None) -> dict[Key, Call]:
        """Return the last call of every question that was ever sent, as far as it is undamaged."""
        calls: dict[Key, Call] = {}
        spoilt: list[tuple[int]] = []
        intact = 0
        with self._readable():
            if keys is not None:
                self._db.execute("CREATE TEMP TABLE IF NOT EXISTS wanted (text BLOB, repeat INT)")
                self._db.execute("DELETE FROM temp.wanted")
                self._db.executemany("INSERT INTO temp.wanted VALUES (?, ?)", keys)
            index, some = ("NOT INDEXED", "") if keys is None else ("", _SOME)
            query = _READ.format(columns=_COLUMNS, index=index, some=some)
            for rowid, stored, *row in self._db.execute(query, (self._system,)):
                if stored != checksum(*self._names, *row):
                    spoilt.append((rowid,))
                    continue
                intact += 1
                key, call = (row[0], row[1]), Call(*row[2:])
                if key not in calls or calls[key].attempt < call.attempt:
                    calls[key] = call
            self._db.commit()
        self._spoilt = spoilt
        if len(spoilt) > max(1, intact):
            raise ResultError(
                f"answer cache {self.path}: {len(spoilt):,} of {len(spoilt) + intact:,} entries "
                "are damaged (their checksums do not match). Restore a backup of the file, or name "
                "another file to query the system again"
            )
        return calls

    @property
    def damaged(self) -> int:
        """How many entries `latest` met that are damaged; their questions count as new."""
        return len(self._spoilt)

    def _set_aside(self) -> None:
        """Move damaged entries out of the way of new ones."""
        self._db.execute("CREATE TEMP TABLE IF NOT EXISTS spoilt (row INTEGER PRIMARY KEY)")
        self._db.executemany("INSERT OR IGNORE INTO temp.spoilt VALUES (?)", self._spoilt)
        for step in _MOVE:
            self._db.execute(step)
        check_structure(self._db)
        self._spoilt = []

    @contextmanager
    def _readable(self) -> Iterator[None]:
        """Turn a damaged file into an error message that names it."""
        try:
            yield
        except (OSError, UnicodeError, OverflowError, MemoryError, sqlite3.Error) as fault:
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
        new = [self._in_flight(*question) for question in asked]
        replies = [
            (c.answered, c.status, c.outcome, c.reason, c.raw, *self._names, self._system)
            + (*key, c.attempt)
            for key, c in answered
        ]
        try:
            if self._spoilt:
                with self._db:
                    self._set_aside()
            with self._db:
                self._write(new, replies)
        except UnicodeDecodeError as fault:  # SQLite quotes a damaged table
            raise sqlite3.DatabaseError(f"it is damaged: {fault}") from None

    def _write(self, new: Sequence[tuple[Any, ...]], replies: Sequence[tuple[Any, ...]]) -> None:
        try:
            self._db.executemany(_INSERT, new)
        except sqlite3.IntegrityError:  # a damaged index shows rows that are not there
            self._db.rollback()
            check_structure(self._db)
            self._db.executemany(_INSERT, new)
        if self._db.executemany(_UPDATE, replies).rowcount < len(replies):
            check_structure(self._db)  # a damaged index hides rows
            self._db.executemany(_UPDATE, replies)

    def _in_flight(self, key: Key, attempt: int, when: float) -> tuple[object, ...]:
        row = (*key, attempt, float(when))
        return (self._system, *row, checksum(*self._names, *row, *[None] * 5))

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


def _is_call(*row: object) -> bool:
    """Return whether a row of an older file is of the types that ombud writes."""
    types = (bytes, int, int, float, float | None, int | None, str | None, str | None, bytes | None)
    words = [value for value in row if isinstance(value, str)]
    return (
        all(map(isinstance, row, types))
        and (row[4] is None or len(words) == 2)
        and not any("\ud800" <= c <= "\udfff" for word in words for c in word)
    )
