"""One SQLite file in WAL mode: nothing is confirmed before it is on disk.

All writes go through one thread. It takes what waits, does it in one transaction with a savepoint
for each, commits (with ``synchronous = FULL``, so the log is flushed to disk), and only then
answers: many people at once cost one flush, and a killed process loses nothing that was confirmed.
"""

from __future__ import annotations

import os
import queue
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypeVar

from ombud.app.errors import AppError, NotStoredError

_T = TypeVar("_T")
_Job = tuple[Callable[[sqlite3.Connection], Any], "Future[Any]"]

_APPLICATION = 0x6F6D6261  # "omba"
_SCHEMA_VERSION = 1
_MOST_AT_ONCE = 128
_SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
CREATE TABLE guidelines (
  number INTEGER PRIMARY KEY, version TEXT NOT NULL UNIQUE, markdown TEXT NOT NULL,
  created REAL NOT NULL
) STRICT;
CREATE TABLE people (
  id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE,
  role TEXT NOT NULL CHECK (role IN ('rater', 'reviewer', 'lead')),
  created REAL NOT NULL, welcomed REAL, gone REAL,
  standing TEXT NOT NULL DEFAULT 'new' CHECK (standing IN ('new', 'passed', 'training')),
  attempt INTEGER NOT NULL DEFAULT 1, finished INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE TABLE invitations (
  id INTEGER PRIMARY KEY, person INTEGER NOT NULL REFERENCES people, hash BLOB NOT NULL UNIQUE,
  created REAL NOT NULL, expires REAL NOT NULL, revoked REAL
) STRICT;
CREATE TABLE sessions (
  hash BLOB PRIMARY KEY, person INTEGER NOT NULL REFERENCES people, csrf TEXT NOT NULL,
  created REAL NOT NULL, expires REAL NOT NULL
) STRICT;
CREATE TABLE texts (
  id INTEGER PRIMARY KEY, name TEXT NOT NULL,
  round TEXT NOT NULL CHECK (round IN ('pilot', 'main')),
  text TEXT NOT NULL, topics TEXT NOT NULL, spans TEXT NOT NULL, explicit INTEGER,
  about TEXT NOT NULL,
  place INTEGER NOT NULL, slots INTEGER NOT NULL,
  state TEXT NOT NULL DEFAULT 'open'
    CHECK (state IN ('open', 'complete', 'split', 'settled', 'discarded')),
  UNIQUE (round, name)
) STRICT;
CREATE TABLE counts (
  round TEXT NOT NULL, state TEXT NOT NULL, n INTEGER NOT NULL, PRIMARY KEY (round, state)
) STRICT;
CREATE TRIGGER counted AFTER INSERT ON texts BEGIN
  INSERT INTO counts VALUES (new.round, new.state, 1)
    ON CONFLICT (round, state) DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER recounted AFTER UPDATE OF state ON texts WHEN old.state != new.state BEGIN
  UPDATE counts SET n = n - 1 WHERE round = old.round AND state = old.state;
  INSERT INTO counts VALUES (new.round, new.state, 1)
    ON CONFLICT (round, state) DO UPDATE SET n = n + 1;
END;
CREATE INDEX texts_next ON texts (round, state, slots, place);
CREATE TABLE assignments (
  id INTEGER PRIMARY KEY, text INTEGER NOT NULL REFERENCES texts,
  person INTEGER NOT NULL REFERENCES people,
  repeat INTEGER NOT NULL DEFAULT 0, attempt INTEGER NOT NULL DEFAULT 1,
  state TEXT NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'done', 'skipped', 'released')),
  answer TEXT CHECK (answer IN ('not delicate', 'delicate', 'cannot be judged')),
  risk INTEGER CHECK (risk BETWEEN 1 AND 5),
  topics TEXT NOT NULL DEFAULT '[]', target TEXT NOT NULL DEFAULT '',
  guidelines TEXT NOT NULL, began REAL NOT NULL, touched REAL NOT NULL, ended REAL, active REAL,
  shown INTEGER NOT NULL DEFAULT 0, number INTEGER, again INTEGER NOT NULL DEFAULT 0,
  review INTEGER NOT NULL DEFAULT 0, origin TEXT NOT NULL DEFAULT 'app',
  CHECK (state != 'done' OR (answer IS NOT NULL AND (answer = 'delicate') = (risk IS NOT NULL)))
) STRICT;
CREATE UNIQUE INDEX one_open ON assignments (person) WHERE state = 'open';
CREATE UNIQUE INDEX one_rating ON assignments (text, person, repeat, attempt)
  WHERE state IN ('open', 'done');
CREATE INDEX by_person ON assignments (person, state, ended);
CREATE INDEX by_text ON assignments (text, person);
CREATE INDEX repeats ON assignments (person, number) WHERE again = 1;
CREATE INDEX to_review ON assignments (review, state) WHERE review = 1;
CREATE TABLE changes (
  assignment INTEGER NOT NULL REFERENCES assignments, answer TEXT, risk INTEGER, topics TEXT,
  target TEXT, ended REAL, changed REAL NOT NULL
) STRICT;
CREATE TABLE reviews (
  assignment INTEGER PRIMARY KEY REFERENCES assignments,
  person INTEGER NOT NULL REFERENCES people, accepted INTEGER NOT NULL, reason TEXT NOT NULL,
  created REAL NOT NULL, CHECK (accepted = 1 OR reason != '')
) STRICT;
CREATE TABLE adjudications (
  text INTEGER PRIMARY KEY REFERENCES texts, person INTEGER NOT NULL REFERENCES people,
  answer TEXT NOT NULL, risk INTEGER, reason TEXT NOT NULL, created REAL NOT NULL
) STRICT;
CREATE TABLE claims (
  kind TEXT NOT NULL, item INTEGER NOT NULL, person INTEGER NOT NULL, expires REAL NOT NULL,
  PRIMARY KEY (kind, item)
) STRICT;
"""


class Store:
    """The database of one annotation project.

    With `create` the file is made; one that is there already is refused.
    """

    def __init__(self, path: Path, *, create: bool = False) -> None:
        self.path = Path(path)
        try:
            if create:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
            elif not self.path.is_file():
                raise AppError(f"there is no annotation project at {self.path}")
            self._db = self._connect()
            self._prepare(create)
        except FileExistsError:
            raise AppError(f"{self.path} is there already; nothing was changed") from None
        except (OSError, sqlite3.DatabaseError) as fault:
            raise AppError(f"{self.path} cannot be opened as a project: {fault}") from None
        self._local = threading.local()
        self._readers: list[sqlite3.Connection] = []
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._closed = False
        self._writer = threading.Thread(target=self._work, name="ombud-writer", daemon=True)
        self._writer.start()

    def _connect(self) -> sqlite3.Connection:
        db = sqlite3.connect(self.path, timeout=20, isolation_level=None, check_same_thread=False)
        db.row_factory = sqlite3.Row
        db.execute("PRAGMA trusted_schema = OFF")
        db.execute("PRAGMA foreign_keys = ON")
        return db

    def _prepare(self, create: bool) -> None:
        application = self._db.execute("PRAGMA application_id").fetchone()[0]
        version = self._db.execute("PRAGMA user_version").fetchone()[0]
        if not create and application != _APPLICATION:
            raise AppError(f"{self.path} is no annotation project of ombud")
        if version > _SCHEMA_VERSION:
            raise AppError(f"{self.path} was written by a newer ombud; update ombud to open it")
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = FULL")
        if create:
            self._db.executescript(
                f"BEGIN IMMEDIATE; {_SCHEMA} PRAGMA application_id = {_APPLICATION}; "
                f"PRAGMA user_version = {_SCHEMA_VERSION}; COMMIT;"
            )

    def read(self, work: Callable[[sqlite3.Connection], _T]) -> _T:
        """Return what `work` finds, with a connection of this thread that cannot write."""
        db: sqlite3.Connection | None = getattr(self._local, "db", None)
        if db is None:
            db = self._connect()
            db.execute("PRAGMA query_only = ON")
            self._local.db = db
            self._readers.append(db)
        if db.in_transaction:  # a question within a question sees the same moment
            return work(db)
        db.execute("BEGIN")
        try:
            return work(db)
        finally:
            db.execute("ROLLBACK")

    def submit(self, work: Callable[[sqlite3.Connection], _T]) -> Future[_T]:
        """Queue a change; the future is done when it is on disk, or was refused whole."""
        future: Future[_T] = Future()
        if self._closed:
            raise AppError("the project is closed")
        self._jobs.put((work, future))
        return future

    def write(self, work: Callable[[sqlite3.Connection], _T]) -> _T:
        """Make a change and wait until it is on disk."""
        return self.submit(work).result()

    def close(self) -> None:
        """Finish what waits and close the file."""
        if self._closed:
            return
        self._closed = True
        self._jobs.put(None)
        self._writer.join()
        for db in (*self._readers, self._db):
            db.close()

    def _work(self) -> None:
        while (first := self._jobs.get()) is not None:
            batch = [first]
            ends = False
            while len(batch) < _MOST_AT_ONCE:
                try:
                    job = self._jobs.get_nowait()
                except queue.Empty:
                    break
                if job is None:
                    ends = True
                    break
                batch.append(job)
            self._do(batch)
            if ends:
                return

    def _do(self, batch: list[_Job]) -> None:
        """Do some changes in one transaction; answer after the commit."""
        # Whoever hung up before it began gets nothing; from here on nobody can be cancelled.
        batch = [job for job in batch if job[1].set_running_or_notify_cancel()]
        done: list[tuple[Future[Any], Any, BaseException | None]] = []
        db = self._db
        try:
            db.execute("BEGIN IMMEDIATE")
            for work, future in batch:
                db.execute("SAVEPOINT one")
                try:
                    done.append((future, work(db), None))
                except sqlite3.OperationalError:
                    raise  # the disk, not the request: nobody in this transaction is stored
                except BaseException as error:
                    db.execute("ROLLBACK TO one")
                    done.append((future, None, error))
                db.execute("RELEASE one")
            db.execute("COMMIT")
        except BaseException as fault:
            if db.in_transaction:
                db.execute("ROLLBACK")
            refused = NotStoredError(
                f"this could not be stored ({fault}). What was confirmed before is kept; "
                "try again when there is room on the disk"
            )
            for _, future in batch:
                future.set_exception(refused)
            return
        for future, result, refusal in done:
            if refusal is None:
                future.set_result(result)
            else:
                future.set_exception(refusal)
