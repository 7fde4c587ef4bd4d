"""Every reply of a recommendation service, on disk, so that nothing is asked twice."""

from __future__ import annotations

import os
import sqlite3
import threading
import zlib
from hashlib import blake2b
from pathlib import Path

from ombud.errors import ResultError

__all__ = ["Replies", "default_path"]

APPLICATION = 0x6F6D6272
SCHEMA_VERSION = 1
SCHEMA = """
CREATE TABLE replies (
    question BLOB NOT NULL, url TEXT NOT NULL, asked REAL NOT NULL, status INTEGER NOT NULL,
    usable INTEGER NOT NULL, raw BLOB NOT NULL
);
CREATE INDEX replies_question ON replies (question, usable);
"""


def default_path() -> Path:
    """Return ``$OMBUD_CACHE/recommenders.sqlite``, by default in ``.ombud`` of this folder."""
    return Path(os.environ.get("OMBUD_CACHE") or ".ombud") / "recommenders.sqlite"


class Replies:
    """A file of raw replies; those that could be used are found again by their question.

    Replies with a fault are kept too, as evidence, but never used.

    Parameters
    ----------
    path
        The file; made when absent, readable by its owner only.
    """

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        self._lock = threading.Lock()
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))
            self._db = sqlite3.connect(self.path, timeout=60, check_same_thread=False)
            self._prepare()
        except (OSError, sqlite3.DatabaseError) as fault:
            raise ResultError(
                f"cache {self.path}: {fault}. Name another file, or repair this one"
            ) from None

    def _prepare(self) -> None:
        application = self._db.execute("PRAGMA application_id").fetchone()[0]
        version = self._db.execute("PRAGMA user_version").fetchone()[0]
        empty = self._db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0
        if not empty and application != APPLICATION:
            raise ResultError(f"{self.path} is a database, but not a cache of recommendations")
        if version > SCHEMA_VERSION:
            raise ResultError(f"{self.path} was written by a newer ombud; update ombud")
        self._db.execute("PRAGMA journal_mode = WAL")
        if empty:
            self._db.executescript(
                f"BEGIN IMMEDIATE; {SCHEMA} PRAGMA application_id = {APPLICATION}; "
                f"PRAGMA user_version = {SCHEMA_VERSION}; COMMIT;"
            )

    @staticmethod
    def key(*parts: bytes) -> bytes:
        """Return the key of a question: the hash of all that its answer depends on."""
        digest = blake2b(digest_size=16)
        for part in parts:
            digest.update(len(part).to_bytes(8, "big") + part)
        return digest.digest()

    def get(self, question: bytes) -> bytes | None:
        """Return the latest usable reply to a question, or None."""
        query = (
            "SELECT raw FROM replies WHERE question = ? AND usable = 1 ORDER BY rowid DESC LIMIT 1"
        )
        with self._lock:
            row = self._db.execute(query, (question,)).fetchone()
        return None if row is None else zlib.decompress(row[0])

    def put(
        self, question: bytes, url: str, asked: float, status: int, usable: bool, raw: bytes
    ) -> None:
        """Keep a reply; on return it is in the file."""
        row = (question, url, asked, status, int(usable), zlib.compress(raw))
        with self._lock, self._db:
            self._db.execute("INSERT INTO replies VALUES (?, ?, ?, ?, ?, ?)", row)

    def close(self) -> None:
        """Close the file."""
        self._db.close()
