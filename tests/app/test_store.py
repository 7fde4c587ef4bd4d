"""The database: durable before confirmed, whole or not at all."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

import pytest
from _filling import project, rate, rater

from ombud.app.errors import AppError, NotStoredError
from ombud.app.project import Project
from ombud.app.store import Store
from ombud.app.tables import ratings_table


def test_many_writers_at_once(tmp_path: Path) -> None:
    store = Store(tmp_path / "a.sqlite", create=True)
    futures = []

    def put(start: int) -> None:
        for n in range(start, start + 50):
            futures.append(
                store.submit(
                    lambda db, n=n: db.execute("INSERT INTO meta VALUES (?, '')", (str(n),)) and n  # type: ignore[misc]
                )
            )

    threads = [threading.Thread(target=put, args=(50 * i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(f.result() for f in futures) == list(range(400))
    assert store.read(lambda db: db.execute("SELECT count(*) FROM meta").fetchone()[0]) == 400
    store.close()


def test_one_refusal_spares_the_others(tmp_path: Path) -> None:
    store = Store(tmp_path / "a.sqlite", create=True)

    def bad(db: sqlite3.Connection) -> None:
        db.execute("INSERT INTO meta VALUES ('half', '')")
        raise AppError("no")

    good = [
        store.submit(lambda db, n=n: db.execute("INSERT INTO meta VALUES (?, '')", (n,)))
        for n in "ab"
    ]  # type: ignore[misc]
    refused = store.submit(bad)
    for future in good:
        future.result()
    with pytest.raises(AppError, match="no"):
        refused.result()
    kept = store.read(lambda db: [row[0] for row in db.execute("SELECT key FROM meta")])
    assert sorted(kept) == ["a", "b"]
    store.close()


def test_a_reader_cannot_write(tmp_path: Path) -> None:
    store = Store(tmp_path / "a.sqlite", create=True)
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        store.read(lambda db: db.execute("INSERT INTO meta VALUES ('a', '')"))
    store.close()


def test_a_full_disk_confirms_nothing_and_loses_nothing(tmp_path: Path) -> None:
    with project(tmp_path / "p", 40) as made:
        rater(made, "a")
        rate(made, "a", 4)

        def limit(db: sqlite3.Connection) -> None:
            pages = db.execute("PRAGMA page_count").fetchone()[0]
            db.execute(f"PRAGMA max_page_count = {pages}")

        made.store.write(limit)
        with pytest.raises(NotStoredError, match="database or disk is full"):
            made.store.write(
                lambda db: db.execute("INSERT INTO meta VALUES ('big', ?)", ("x" * 100_000,))
            )
        assert made.store.read(ratings_table).height == 1
        made.store.write(lambda db: db.execute("PRAGMA max_page_count = 1000000"))
        assert rate(made, "a", 2)
        assert made.store.read(ratings_table).height == 2


def test_what_is_no_project_is_refused_with_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(AppError, match="holds no annotation project"):
        Project(tmp_path)
    (tmp_path / "annotation.sqlite").write_text("hello")
    with pytest.raises(AppError, match="cannot be opened as a project"):
        Project(tmp_path)
    other = tmp_path / "other"
    other.mkdir()
    db = sqlite3.connect(other / "annotation.sqlite")
    db.execute("CREATE TABLE a (b)")
    db.close()
    with pytest.raises(AppError, match="is no annotation project of ombud"):
        Project(other)


def test_a_newer_project_is_refused(tmp_path: Path) -> None:
    project(tmp_path / "p", 1).close()
    db = sqlite3.connect(tmp_path / "p" / "annotation.sqlite")
    db.execute("PRAGMA user_version = 99")
    db.close()
    with pytest.raises(AppError, match="newer ombud"):
        Project(tmp_path / "p")


def test_a_project_is_never_written_over(tmp_path: Path) -> None:
    project(tmp_path / "p", 1).close()
    with pytest.raises(AppError, match="there already"):
        Project.create(tmp_path / "p")


def test_the_file_is_private(tmp_path: Path) -> None:
    project(tmp_path / "p", 1).close()
    assert (tmp_path / "p" / "annotation.sqlite").stat().st_mode & 0o077 == 0
