"""An annotation project: a folder with one database."""

from __future__ import annotations

import json
import shutil
import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing
from hashlib import blake2b
from pathlib import Path
from typing import Any, Self

from pydantic import ValidationError

from ombud.app.errors import AppError
from ombud.app.people import Role, invite
from ombud.app.rating_queue import refresh
from ombud.app.settings import ProjectSettings, shipped_guidelines
from ombud.app.store import Store
from ombud.app.texts import TextRow, explicit_of, read_texts, spans_of
from ombud.errors import DataError
from ombud.files import write_atomically

_FILE = "annotation.sqlite"


class Project:
    """Texts, people and ratings of one annotation project.

    Parameters
    ----------
    folder
        The folder; `Project.create` makes one.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with Project.create(folder, ProjectSettings(title="Forum posts")) as project:
    ...         project.add_texts({"id": ["a", "b"], "text": ["One.", "Two."]})
    2
    """

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder)
        if not self.holds_one(self.folder):
            raise AppError(
                f"{self.folder} holds no annotation project; make one with "
                f"`ombud annotation new {self.folder}`"
            )
        self.store = Store(self.folder / _FILE)
        self._settings: tuple[str, ProjectSettings] | None = None

    @staticmethod
    def holds_one(folder: Path | str) -> bool:
        """Say whether there is a project in a folder."""
        return (Path(folder) / _FILE).is_file()

    @classmethod
    def create(
        cls,
        folder: Path | str,
        settings: ProjectSettings | None = None,
        *,
        guidelines: tuple[str, str] | None = None,
    ) -> Self:
        """Make a project in a folder that has none.

        Parameters
        ----------
        folder
            The folder; made if need be.
        settings
            What is asked of raters.
        guidelines
            Their version and their Markdown; by default those that come with the package.
        """
        asked = settings or ProjectSettings()
        version, markdown = guidelines or shipped_guidelines()
        store = Store(Path(folder) / _FILE, create=True)

        def fill(db: sqlite3.Connection) -> None:
            db.execute("INSERT INTO meta VALUES ('settings', ?)", (asked.model_dump_json(),))
            db.execute("INSERT INTO meta VALUES ('round', 'main')")
            _add_guidelines(db, version, markdown, time.time())

        try:
            store.write(fill)
        finally:
            store.close()
        return cls(folder)

    def backup(self, path: Path | str) -> Path:
        """Write a copy of the project as it is at one moment, also while people rate."""

        def write(part: Path) -> None:
            with closing(sqlite3.connect(self.store.path, timeout=60)) as db:
                db.execute("VACUUM INTO ?", (str(part),))
            part.chmod(0o600)

        path = Path(path)
        if path.exists():
            raise AppError(f"{path} is there already; nothing was written")
        try:
            write_atomically(path, write)
            path.chmod(0o600)
        except sqlite3.Error as fault:
            raise AppError(f"{path} could not be written: {fault}") from None
        return path

    @classmethod
    def restore(cls, backup: Path | str, folder: Path | str) -> Self:
        """Make a project of a backup, in a folder that has none, and open it.

        Sessions and invitations of the backup end: some may have been revoked since.
        """
        folder = Path(folder)
        if cls.holds_one(folder):
            raise AppError(f"{folder} holds a project already; nothing was changed")
        if not Path(backup).is_file():
            raise AppError(f"there is no file {backup}")

        def write(part: Path) -> None:
            shutil.copyfile(backup, part)
            store = Store(part)
            try:
                store.write(_close_doors)
            finally:
                store.close()

        write_atomically(folder / _FILE, write)
        (folder / _FILE).chmod(0o600)
        return cls(folder)

    @property
    def settings(self) -> ProjectSettings:
        """What is asked of raters, as stored at this moment."""
        (stored,) = self.store.read(
            lambda db: db.execute("SELECT value FROM meta WHERE key = 'settings'").fetchone()
        )
        if self._settings is None or self._settings[0] != stored:
            try:
                self._settings = (stored, ProjectSettings.model_validate_json(stored))
            except ValidationError as error:
                raise AppError(f"{self.store.path}: its settings are damaged: {error}") from None
        return self._settings[1]

    def change_settings(self, **changes: Any) -> ProjectSettings:
        """Change some settings; what is wanted for every text is computed again."""
        try:
            changed = ProjectSettings.model_validate(self.settings.model_dump() | changes)
        except ValidationError as error:
            faults = "; ".join(f"{e['loc'][0]}: {e['msg']}" for e in error.errors())
            raise AppError(f"settings: {faults}") from None

        def store(db: sqlite3.Connection) -> None:
            db.execute(
                "UPDATE meta SET value = ? WHERE key = 'settings'", (changed.model_dump_json(),)
            )
            for (text,) in db.execute("SELECT id FROM texts").fetchall():
                refresh(db, text, changed)

        self.store.write(store)
        return changed

    def add_texts(self, frame: Any, *, round_: str = "main", source: str = "") -> int:
        """Add texts to a round; return how many.

        Parameters
        ----------
        frame
            A file (Parquet, CSV, TSV, JSONL) or frame with `text`, and optionally `id` (default:
            the row number) and `topics` (a list, or words parted by ``|``). Other columns are kept
            and exported again.
        round_
            ``"main"`` or ``"pilot"``. Both may hold the same text: it is then rated anew.
        source
            The table's name in messages.

        Raises
        ------
        DataError
            With every fault; nothing is added then.
        """
        settings = self.settings
        rows = read_texts(frame, settings, source=source)
        spans = spans_of([row.text for row in rows], settings)
        explicits = explicit_of([row.text for row in rows], settings)
        slots = settings.raters_per_text if round_ == "main" else 1

        def add(db: sqlite3.Connection) -> int:
            _check_new(db, rows, round_)
            db.executemany(
                "INSERT INTO texts "
                "(name, round, text, topics, spans, explicit, about, place, slots) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                [
                    (
                        row.name,
                        round_,
                        row.text,
                        json.dumps(row.topics),
                        json.dumps(at),
                        explicit,
                        json.dumps(row.about, ensure_ascii=False),
                        _place(settings.seed, row.name),
                        slots,
                    )
                    for row, at, explicit in zip(rows, spans, explicits, strict=True)
                ],
            )
            return len(rows)

        if round_ not in {"main", "pilot"}:
            raise AppError(f"{round_!r} is no round for texts; rounds are main and pilot")
        return self.store.write(add)

    def invite(self, name: str, role: Role = "rater", *, hours: float = 14 * 24) -> str:
        """Return the token of a new invitation; the link is ``/invite/<token>``."""
        return self.store.write(lambda db: invite(db, name, role, now=time.time(), hours=hours))

    def set_address(self, address: str) -> None:
        """Remember where browsers reach the running app; empty when it stops."""
        self.store.write(
            lambda db: db.execute("INSERT OR REPLACE INTO meta VALUES ('address', ?)", (address,))
        )

    def address(self) -> str:
        """Return where browsers reach the running app; empty where none runs."""
        row = self.store.read(
            lambda db: db.execute("SELECT value FROM meta WHERE key = 'address'").fetchone()
        )
        return str(row[0]) if row else ""

    def change_guidelines(self, version: str, markdown: str) -> None:
        """Put new guidelines in force; ratings keep the version they were made with."""
        self.store.write(lambda db: _add_guidelines(db, version, markdown, time.time()))

    def close(self) -> None:
        """Finish what waits and close the file."""
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _place(seed: int, name: str) -> int:
    """Return where a text stands in the project's random order."""
    digest = blake2b(f"{seed}\x1f{name}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


def _close_doors(db: sqlite3.Connection) -> None:
    """End all sessions and invitations of a copy that is whole."""
    try:
        faults = [row[0] for row in db.execute("PRAGMA integrity_check(1)")]
        faults += [f"a row of {row[0]} refers to nothing" for row in
                   db.execute("PRAGMA foreign_key_check")]  # fmt: skip
    except sqlite3.DatabaseError as fault:
        raise AppError(f"the backup is damaged: {fault}") from None
    if faults != ["ok"]:
        raise AppError(f"the backup is damaged: {faults[-1]}")
    db.execute("DELETE FROM sessions")
    db.execute("UPDATE invitations SET revoked = ? WHERE revoked IS NULL", (time.time(),))


def _check_new(db: sqlite3.Connection, rows: Sequence[TextRow], round_: str) -> None:
    known = {row[0] for row in db.execute("SELECT name FROM texts WHERE round = ?", (round_,))}
    twice = [row.name for row in rows if row.name in known]
    if twice:
        fault = f"{len(twice):,} ids are in the {round_} round already; the first: {twice[0]!r}"
        raise DataError("texts", [fault])


def _add_guidelines(db: sqlite3.Connection, version: str, markdown: str, now: float) -> None:
    """Store a version of the guidelines; a version never changes."""
    version = version.strip()
    if not version or len(version) > 60:
        raise AppError("guidelines need a version of 1 to 60 characters, such as delicate@2")
    if not markdown.strip():
        raise AppError("the guidelines are empty")
    if db.execute("SELECT 1 FROM guidelines WHERE version = ?", (version,)).fetchone():
        raise AppError(f"guidelines {version} are there already; give the new text a new version")
    db.execute(
        "INSERT INTO guidelines (version, markdown, created) VALUES (?, ?, ?)",
        (version, markdown, now),
    )
