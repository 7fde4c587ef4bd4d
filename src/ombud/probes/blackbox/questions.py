"""Asking a black box: within a budget, never twice, in parallel, going on after a kill."""

from __future__ import annotations

import json
import os
import sqlite3
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from hashlib import blake2b
from pathlib import Path
from threading import Lock
from typing import Any, Literal, NoReturn

import numpy as np
from numpy.typing import NDArray

from ombud.data.ids import Vocabulary
from ombud.errors import AuditedSystemError, OmbudError, PlanError, ResultError
from ombud.http.store import check_structure, checksum, open_database
from ombud.probes.blackbox.systems import HistorySystem, ManyHistories, TryAgainError, check_writes
from ombud.probes.edits import History
from ombud.systems.recommenders.adapters.answers import as_answer


class BudgetSpentError(OmbudError):
    """A search wanted to ask more questions than it was allowed."""


class QueryBudget:
    """A number of questions that threads may share; it is taken before a question is asked.

    Parameters
    ----------
    limit
        The most questions; None for no limit.

    Examples
    --------
    >>> budget = QueryBudget(3)
    >>> budget.grant(2), budget.grant(2), budget.grant(2)
    (2, 1, 0)
    >>> budget.spent, budget.left
    (3, 0)
    """

    def __init__(self, limit: int | None = None) -> None:
        if limit is not None and limit < 1:
            raise PlanError(f"queries is {limit}; at least one question is needed")
        self.limit = limit
        self._spent = 0
        self._lock = Lock()

    @property
    def spent(self) -> int:
        """How many questions were taken."""
        return self._spent

    @property
    def left(self) -> int | None:
        """How many questions are left; None without a limit."""
        return None if self.limit is None else self.limit - self._spent

    def grant(self, wanted: int) -> int:
        """Take up to ``wanted`` questions and return how many were there to take."""
        with self._lock:
            given = wanted if self.limit is None else min(wanted, self.limit - self._spent)
            self._spent += given
            return given

    def take(self, wanted: int = 1) -> None:
        """Take exactly ``wanted`` questions.

        Raises
        ------
        BudgetSpentError
            When there are fewer; then none is taken.
        """
        with self._lock:
            if self.limit is not None and self._spent + wanted > self.limit:
                raise BudgetSpentError(
                    f"{wanted} more questions were wanted, and {self.limit - self._spent} of "
                    f"{self.limit} are left"
                )
            self._spent += wanted


_APPLICATION = 0x6F6D6271
_SCHEMA = """
CREATE TABLE asked (run TEXT NOT NULL, question BLOB NOT NULL, answer TEXT, checksum BLOB);
CREATE INDEX asked_question ON asked (question);
CREATE INDEX asked_run ON asked (run);
"""
_SET_ANSWER = (
    "UPDATE asked SET answer = ?1, checksum = ombud_checksum(run, question, ?1) WHERE rowid = ?2"
)
_VERSION = 1
_PORTION = 64


class Questions:
    """The one door to a black box.

    A question is written to the file before it is asked and its answer as soon as it is there: a
    run that was killed goes on from its answers. Questions that were under way then may have been
    answered: they count, and are not asked a second time unless `in_flight` says so.

    Two counts are kept. What was sent, written down before it goes out, never exceeds the limit
    and is what is reported, whatever way a search takes after a kill. Beside it `budget` counts
    what this attempt used: an answer of an earlier attempt counts when it is used, as it did then,
    so that the search takes the same way as if nothing had happened.

    Parameters
    ----------
    system
        What is asked.
    catalogue
        The items that are known; others in an answer are counted, and keep their position.
    n
        Length of the lists asked for.
    limit
        The most questions of this run, those of its earlier attempts included; None for no limit.
    cache
        A file, or None to remember only until the end.
    run
        The name of the run that the budget belongs to.
    parallel
        Questions under way at a time.
    retries
        How often a question without an answer is asked again; each try counts.
    sandbox
        Whether a system that writes to accounts may be asked.
    in_flight
        What becomes of questions that were under way when an earlier attempt was killed: they stay
        without an answer (``leave``), or are asked again and counted again (``ask``).
    """

    def __init__(
        self,
        system: HistorySystem,
        catalogue: Vocabulary,
        n: int,
        *,
        limit: int | None = None,
        cache: Path | None = None,
        run: str = "run",
        parallel: int = 1,
        retries: int = 3,
        sandbox: bool = False,
        in_flight: Literal["leave", "ask"] = "leave",
    ) -> None:
        check_writes(system, sandbox)
        if parallel < 1 or n < 1 or retries < 0:
            raise PlanError("n and parallel must be at least 1, and retries 0")
        self.system, self.catalogue, self.n, self.run = system, catalogue, n, run
        self.parallel, self.retries = parallel, retries
        self._lock = threading.Lock()
        self._db = _open(cache)
        counted = "SELECT count(*), count(nullif(answer, '')) FROM asked WHERE run = ?"
        self.earlier, answered = map(int, self._db.execute(counted, (run,)).fetchone())
        if limit is not None and self.earlier > limit:
            raise PlanError(
                f"run {run!r} has asked {self.earlier:,} questions already, over its limit of "
                f"{limit:,}"
            )
        # Tries that failed, or were lost in a kill: they count against the limit like any other.
        self._sent = self.earlier
        self._limit = limit
        self._used: set[bytes] = set()
        lost = self.earlier - answered
        self.budget = QueryBudget(None if limit is None else max(1, limit - lost))
        self._in_flight = self._lost_in_a_kill() if in_flight == "leave" else frozenset()
        self.left: set[bytes] = set()
        self.from_cache = 0
        self.unknown_items = 0
        self.unsteady = False  # whether the same question was seen to get another answer
        self.failure = ""
        # Parted, so that system "a" of version "b1" is not "ab" of version "1".
        self._stamp = f"{system.name}\x1f{system.version}\x1f{n}".encode()

    @property
    def spent(self) -> int:
        """Questions sent by this run so far, those of its earlier attempts included."""
        return self._sent

    def _lost_in_a_kill(self) -> frozenset[bytes]:
        """Return the questions that were sent and have no answer: they may have been answered."""
        rows = self._db.execute(
            "SELECT question FROM asked GROUP BY question "
            "HAVING count(answer) < count(*) AND NOT max(coalesce(answer, '') <> '')"
        )
        return frozenset(bytes(row[0]) for row in rows)

    def _key(self, history: History, repeat: int) -> bytes:
        digest = blake2b(self._stamp, digest_size=16)
        digest.update(history.items.astype("<i4").tobytes())
        digest.update(history.values.astype("<f4").tobytes())
        digest.update(repeat.to_bytes(4, "big"))
        return digest.digest()

    def ask(
        self, histories: Sequence[History], *, repeat: int = 0
    ) -> list[NDArray[np.int32] | None]:
        """Return one list of item codes per history, -1 for an unknown item; None for no list.

        That is, where the budget was spent before it, or where the question was under way when an
        earlier attempt was killed and is not to be asked again.

        The same history is asked once; another number of the repetition is another question.

        Raises
        ------
        AuditedSystemError
            When the system gives no usable answer; answers so far are kept.
        """
        keys = [self._key(history, repeat) for history in histories]
        known: dict[bytes, list[Any]] = {}
        todo: list[tuple[bytes, History]] = []
        for key, history in dict(zip(keys, histories, strict=True)).items():
            if key in self._in_flight:
                self.left.add(key)
                continue
            answer, mine = self._stored(key)
            free = answer is not None and (key in self._used or not mine)
            if answer is None and self.failure:
                self._stop()
            if not free and not self.budget.grant(1):
                continue
            self._used.add(key)
            if answer is not None:
                self.from_cache += 1
                known[key] = answer
            else:
                todo.append((key, history))
        if todo:
            self._send(todo, known)
        return [self._codes(known[key]) if key in known else None for key in keys]

    def _stored(self, key: bytes) -> tuple[list[Any] | None, bool]:
        """Return an answer that is there, and whether this run has asked for it."""
        with self._lock:
            rows = self._db.execute(
                "SELECT answer, run = ? FROM asked WHERE question = ? AND answer <> '' "
                "AND checksum = ombud_checksum(run, ?, answer)",
                (self.run, key, key),
            ).fetchall()
        return (json.loads(rows[0][0]), any(mine for _, mine in rows)) if rows else (None, False)

    def _send(self, todo: list[tuple[bytes, History]], known: dict[bytes, list[Any]]) -> None:
        many = self.system if isinstance(self.system, ManyHistories) else None
        size = _PORTION if many is not None else 1
        portions = [todo[start : start + size] for start in range(0, len(todo), size)]

        def work(portion: list[tuple[bytes, History]]) -> None:
            if self.failure:
                return
            rows = self._note(portion)
            portion = portion[: len(rows)]
            if not portion:
                return
            asked = [self._as_given(history) for _, history in portion]
            for attempt in range(self.retries + 1):
                try:
                    answers = (
                        many.recommend_many(asked, self.n)
                        if many is not None
                        else [self.system.recommend(asked[0], self.n)]
                    )
                    plain = [self._plain(answer) for answer in answers]
                    break
                except TryAgainError as problem:
                    self._tell_unanswered(rows)
                    # Another try is another question to the system: it is counted as one.
                    if attempt == self.retries or not self.budget.grant(len(portion)):
                        return self._fail(str(problem))
                    time.sleep(problem.wait * 2**attempt)
                    rows = self._note(portion, whole=True)
                    if not rows:
                        return self._fail(str(problem))
                except Exception as problem:  # a foreign system may fail in any way
                    self._tell_unanswered(rows)
                    return self._fail(f"{type(problem).__name__}: {problem}")
            self._keep(rows, plain)
            for (key, _), answer in zip(portion, plain, strict=True):
                known[key] = answer

        if self.parallel == 1:
            for portion in portions:
                work(portion)
        else:
            with ThreadPoolExecutor(self.parallel) as pool:
                list(pool.map(work, portions))
        if self.failure:
            self._stop()

    def _stop(self) -> NoReturn:
        raise AuditedSystemError(
            f"{self.system.name} stopped answering after {self.spent:,} questions "
            f"({self.failure}); answers so far are kept"
        )

    def _fail(self, reason: str) -> None:
        if not self.failure:
            self.failure = reason

    def _note(self, portion: list[tuple[bytes, History]], *, whole: bool = False) -> list[int]:
        """Write questions down before they are asked; a kill now leaves them counted.

        Returns a row for each that the limit still permits, the first ones; with `whole`, for all
        or for none. The count and the rows change together: threads cannot overtake each other.
        """
        with self._lock, self._db:
            rows: list[int] = []
            room = len(portion) if self._limit is None else self._limit - self._sent
            if whole and room < len(portion):
                return rows
            permitted = portion[: max(room, 0)]
            self._sent += len(permitted)
            for key, _ in permitted:
                done = self._db.execute(
                    "INSERT INTO asked VALUES (?, ?, NULL, ?)",
                    (self.run, key, checksum(self.run, key, None)),
                )
                rows.append(int(done.lastrowid or 0))
            return rows

    def _keep(self, rows: list[int], answers: list[list[Any]]) -> None:
        with self._lock, self._db:
            words = map(json.dumps, answers)
            self._db.executemany(_SET_ANSWER, [*zip(words, rows, strict=True)])

    def _tell_unanswered(self, rows: list[int]) -> None:
        """Note that these questions ended without an answer: they are not in flight."""
        with self._lock, self._db:
            self._db.executemany(_SET_ANSWER, [("", row) for row in rows])

    def _as_given(self, history: History) -> dict[Any, float]:
        ids = self.catalogue.take(history.items).tolist()
        return dict(zip(ids, history.values.tolist(), strict=True))

    def _plain(self, answer: Any) -> list[Any]:
        items = answer.tolist() if isinstance(answer, np.ndarray) else answer
        if isinstance(items, tuple):
            items = list(items)
        if isinstance(items, list):
            items = [i.item() if isinstance(i, np.generic) else i for i in items]
        checked = as_answer(items)
        if checked.fault:
            raise AuditedSystemError(f"it answered with {checked.fault} ({checked.detail})")
        return list(checked.items)[: self.n]

    def _codes(self, answer: list[Any]) -> NDArray[np.int32]:
        if not answer:
            return np.empty(0, np.int32)
        text = isinstance(self.catalogue.ids[0], str) if len(self.catalogue) else False
        fits = [item for item in answer if isinstance(item, str) == text]
        codes = np.full(len(answer), -1, np.int32)
        if fits:
            codes[[isinstance(item, str) == text for item in answer]] = self.catalogue.codes(fits)
        self.unknown_items += int((codes < 0).sum())
        return codes

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know of the asking."""
        said = [f"{self.spent:,} questions were asked"]
        if self.left:
            said.append(
                f"{len(self.left):,} questions were under way when an earlier attempt ended and "
                "stay without an answer (in_flight = 'ask' asks them again)"
            )
        if self.unknown_items:
            said.append(f"{self.unknown_items:,} positions held items that are not in the catalog")
        if self.failure:
            said.append(f"the system stopped answering: {self.failure}")
        return tuple(said)

    def close(self) -> None:
        """Close the file."""
        self._db.close()


def _open(path: Path | None) -> sqlite3.Connection:
    try:
        if path is not None:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        db = open_database(path or ":memory:")
        empty = db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0
        application = db.execute("PRAGMA application_id").fetchone()[0]
        if not empty and application != _APPLICATION:
            raise ResultError(f"{path} is a database, but not one of questions to a recommender")
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = NORMAL")
        if empty:
            db.executescript(
                f"BEGIN IMMEDIATE; {_SCHEMA} PRAGMA application_id = {_APPLICATION}; "
                f"PRAGMA user_version = {_VERSION}; COMMIT;"
            )
        else:
            _check_rows(db)
    except (OSError, OverflowError, MemoryError, sqlite3.Error) as fault:
        raise ResultError(f"cache {path}: {fault}. Name another file") from None
    return db


def _check_rows(db: sqlite3.Connection) -> None:
    """Make damaged rows questions without an answer, and give rows of older files a checksum.

    Damaged questions count against the budget, because they were sent, and may be sent again.
    """
    with db:
        db.execute("BEGIN IMMEDIATE")
        check_structure(db)
        old = db.execute("PRAGMA user_version").fetchone()[0] < _VERSION
        if old:
            db.execute("ALTER TABLE asked ADD COLUMN checksum BLOB")
            db.execute(f"PRAGMA user_version = {_VERSION}")
        rows = db.execute("SELECT rowid, checksum, run, question, answer FROM asked NOT INDEXED")
        changed = []
        for rowid, stored, *row in rows:
            if old or stored != checksum(*row):
                row = row if old and _is_row(*row) else _unanswered(*row)
                changed.append((*row, checksum(*row), rowid))
        db.executemany(
            "UPDATE asked SET run = ?, question = ?, answer = ?, checksum = ? WHERE rowid = ?",
            changed,
        )


def _is_row(run: Any, question: Any, answer: Any) -> bool:
    try:
        readable = not answer or isinstance(json.loads(answer), list)
    except (TypeError, ValueError, RecursionError):
        return False
    return readable and isinstance(run, str) and run.isprintable() and isinstance(question, bytes)


def _unanswered(run: Any, question: Any, _: Any) -> list[Any]:
    named = isinstance(run, str) and run.isprintable()
    return [run if named else "damaged", question if isinstance(question, bytes) else b"", ""]
