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
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar

from ombud.app.errors import AppError, NotStoredError

_T = TypeVar("_T")
_Job = tuple[Callable[[sqlite3.Connection], Any], "Future[Any]"]

_APPLICATION = 0x6F6D6261  # "omba"
_SCHEMA_VERSION = 1
_MOST_AT_ONCE = 128


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
            schema = (files("ombud.app") / "schema.sql").read_text(encoding="utf-8")
            self._db.executescript(
                f"BEGIN IMMEDIATE; {schema} PRAGMA application_id = {_APPLICATION}; "
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
