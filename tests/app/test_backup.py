"""Backups of a project that people rate in, and projects made of them."""

from __future__ import annotations

import sqlite3
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest
from _filling import fill, project
from typer.testing import CliRunner

from ombud.app.errors import AppError, NotAllowedError
from ombud.app.people import accept, find_invited, session_of
from ombud.app.project import Project
from ombud.app.tables import ratings_table, texts_table
from ombud.cli import app


def test_a_backup_becomes_a_project_with_everything_but_its_doors(tmp_path: Path) -> None:
    with project(tmp_path / "p", 12) as made:
        fill(made, ("Anna", "Ben", "Chidi"))
        token = made.invite("Anna")
        session = made.store.write(lambda db: accept(db, token, time.time()))
        path = made.backup(tmp_path / "out" / "b.sqlite")
        with Project.restore(path, tmp_path / "q") as other:
            for table in (ratings_table, texts_table):
                assert other.store.read(table).equals(made.store.read(table))
            assert other.settings == made.settings
            with pytest.raises(NotAllowedError):
                other.store.read(lambda db: find_invited(db, token, time.time()))
            assert other.store.read(lambda db: session_of(db, session, time.time())) is None
        assert made.store.read(lambda db: session_of(db, session, time.time())) is not None
    assert (
        path.stat().st_mode & 0o077
        == (tmp_path / "q" / "annotation.sqlite").stat().st_mode & 0o077
        == 0
    )
    assert [p.name for p in (tmp_path / "out").iterdir()] == ["b.sqlite"]
    assert [p.name for p in (tmp_path / "q").iterdir()] == ["annotation.sqlite"]


def test_backups_while_people_rate_hold_what_was_confirmed_before(tmp_path: Path) -> None:
    confirmed = 0
    with project(tmp_path / "p", 40, repeat_share=0) as made:
        ended = threading.Event()

        def work() -> None:
            nonlocal confirmed
            try:
                for name in ("Anna", "Ben", "Chidi"):
                    fill(made, (name,))
                    confirmed += 1
            finally:
                ended.set()

        rating = threading.Thread(target=work)
        rating.start()
        backups = []
        while not ended.is_set() or not backups:
            before = confirmed
            backups.append((before, made.backup(tmp_path / f"{len(backups)}.sqlite")))
        rating.join()
        assert confirmed == 3
    last = 0
    for number, (people, path) in enumerate(backups):
        with Project.restore(path, tmp_path / f"r{number}") as other:
            found = other.store.read(ratings_table).height
            assert found >= 40 * people
            assert found >= last, "a later backup holds no less"
            last = found


def test_what_is_no_backup_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    with project(tmp_path / "p", 12) as made:
        path = made.backup(tmp_path / "b.sqlite")
        with pytest.raises(AppError, match="there already"):
            made.backup(path)
    with pytest.raises(AppError, match="holds a project already"):
        Project.restore(path, tmp_path / "p")
    with closing(sqlite3.connect(tmp_path / "other.sqlite")) as db:
        db.execute("CREATE TABLE cookies (a)")
    (tmp_path / "words.sqlite").write_text("no database, but long enough to be taken for one" * 40)
    torn = bytearray(path.read_bytes())
    torn[4096 * 2 : 4096 * 12] = b"\xa5" * 4096 * 10
    (tmp_path / "torn.sqlite").write_bytes(torn)
    for name in ("other", "words", "torn", "gone"):
        with pytest.raises(AppError):
            Project.restore(tmp_path / f"{name}.sqlite", tmp_path / "new")
        assert not (tmp_path / "new").exists() or not list((tmp_path / "new").iterdir())


def test_a_backup_that_finds_no_room_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource", reason="limits of file sizes are a thing of Unix")
    with project(tmp_path / "p", 12) as made:
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))
        try:
            with pytest.raises(AppError, match=r"b\.sqlite could not be written"):
                made.backup(tmp_path / "out" / "b.sqlite")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert list((tmp_path / "out").iterdir()) == []
        made.backup(tmp_path / "out" / "b.sqlite")


def test_the_commands(tmp_path: Path) -> None:
    project(tmp_path / "p", 12).close()
    run = CliRunner().invoke
    words = ["app", "backup", str(tmp_path / "p"), str(tmp_path / "b.sqlite")]
    assert "wrote" in run(app, words).output
    assert "there already" in run(app, words).output
    done = run(app, ["app", "restore", str(tmp_path / "b.sqlite"), str(tmp_path / "q")])
    assert done.exit_code == 0 and "invite people again" in done.output
    assert Project.holds_one(tmp_path / "q")
    for odd in (["p", "q"], ["backup", "p"], ["restore", "a", "b", "c"]):
        assert run(app, ["app", *odd]).exit_code == 2
