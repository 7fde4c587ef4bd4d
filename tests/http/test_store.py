"""The answer store: what was asked, what was answered, what is damaged."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from ombud.errors import ResultError
from ombud.http.store import AnswerStore, Call, checksum, default_path, hash_of


def call(attempt: int, outcome: str = "allowed") -> Call:
    return Call(attempt, 1.0, 2.0, 200, outcome, "", b"{}")


def test_the_cache_keeps_the_last_attempt_of_each_key_and_system(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "a.sqlite"
    key = (b"x" * 16, 0)
    with AnswerStore(path, "s", "1") as cache:
        cache.write([(key, 0, 1.0)], [])
        assert cache.latest()[key].answered is None
        cache.write([], [(key, call(0, "error"))])
        cache.write([(key, 1, 3.0)], [])
        assert cache.latest()[key].answered is None
        cache.write([], [(key, call(1))])
    with AnswerStore(path, "s", "1") as cache:
        assert cache.latest()[key].outcome == "allowed"
        with pytest.raises(sqlite3.IntegrityError):
            cache.write([(key, 1, 3.0)], [])
    with AnswerStore(path, "s", "2") as cache:
        assert cache.latest() == {}
    assert path.stat().st_mode & 0o077 == 0


def test_a_cache_of_a_newer_ombud_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    AnswerStore(path, "s", "1").close()
    db = sqlite3.connect(path)
    db.execute("PRAGMA user_version = 99")
    db.close()
    with pytest.raises(ResultError, match="newer ombud"):
        AnswerStore(path, "s", "1")


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(ResultError, match="Name another file"):
        AnswerStore(tmp_path / "file" / "a.sqlite", "s", "1")


def test_the_default_cache_can_be_moved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMBUD_CACHE", raising=False)
    assert default_path("moderators") == Path(".ombud/moderators.sqlite")
    monkeypatch.setenv("OMBUD_CACHE", "elsewhere")
    assert default_path("x") == Path("elsewhere/x.sqlite")


def test_only_the_keys_that_are_wanted_are_read(tmp_path: Path) -> None:
    keys = [(hash_of(f"text {i}"), i % 2) for i in range(2000)]
    with AnswerStore(tmp_path / "a.sqlite", "s", "1") as cache:
        cache.write([(key, 0, 1.0) for key in keys], [(key, call(0)) for key in keys])
        assert cache.latest(keys[:700]).keys() == set(keys[:700])
        assert cache.latest([(keys[0][0], 1), (b"other", 0)]) == {}
        assert cache.latest([]) == {}
        assert len(cache.latest()) == 2000


def test_hashes_of_several_parts_are_told_apart() -> None:
    assert hash_of("ab", "c") != hash_of("a", "bc") != hash_of("abc")
    assert hash_of("a") == hash_of(b"a")


def filled_store(path: Path) -> None:
    keys = [(hash_of(f"text {i}"), 0) for i in range(3000)]
    with AnswerStore(path, "s", "1") as cache:
        cache.write([(key, 0, 1.0) for key in keys], [(key, call(0)) for key in keys])


@pytest.mark.parametrize("at", [0, 30, 100, 2000, 4096, 9000, 40_000])
def test_a_damaged_file_is_a_sentence(tmp_path: Path, at: int) -> None:
    path = tmp_path / "a.sqlite"
    filled_store(path)
    data = bytearray(path.read_bytes())
    for start in range(at, len(data), 8192):
        data[start : start + 900] = b"\x99" * len(data[start : start + 900])
    path.write_bytes(data)
    with pytest.raises(ResultError, match=r"a\.sqlite"), AnswerStore(path, "s", "1") as cache:
        cache.latest()


def changed(path: Path, change: str, rows: int = 1) -> Path:
    """Make a store of some answered questions, and change it as a foreign program would."""
    keys = [(bytes([row]) * 16, 0) for row in range(rows)]
    with AnswerStore(path, "s", "1") as cache:
        cache.write([(key, 0, 1.0) for key in keys], [(key, call(0)) for key in keys])
    db = sqlite3.connect(path)
    db.execute(change)
    db.commit()
    db.close()
    return path


@pytest.mark.parametrize(
    "change", ["DROP TABLE calls", "ALTER TABLE calls DROP COLUMN raw", "DROP TABLE systems"]
)
def test_tables_that_ombud_did_not_write_are_an_error(tmp_path: Path, change: str) -> None:
    path = changed(tmp_path / "a.sqlite", change)
    with pytest.raises(ResultError, match=r"a\.sqlite"), AnswerStore(path, "s", "1") as cache:
        cache.latest()


@pytest.mark.parametrize(
    "value",
    ["text = 'words'", "repeat = 1", "attempt = 9223372036854775807", "asked = 'soon'", "raw = 5"]
    + ["raw = x'7b7e'", "status = 'fine'", "status = 201", "outcome = x'00'", "outcome = 'flagged'"]
    + ["reason = CAST(x'ff00' AS TEXT)", "answered = NULL", "checksum = NULL", "answered = 1e999"],
)
def test_a_row_that_does_not_match_its_checksum_is_asked_again(tmp_path: Path, value: str) -> None:
    change = f"UPDATE calls SET {value} WHERE rowid = 2"
    path, key = changed(tmp_path / "a.sqlite", change, rows=3), (b"\x01" * 16, 0)
    with AnswerStore(path, "s", "1") as cache:
        calls = cache.latest()
        assert cache.damaged == 1
        assert calls == {(bytes([i]) * 16, 0): call(0) for i in (0, 2)}
    with AnswerStore(path, "s", "1") as cache:
        cache.latest()
        cache.write([(key, 0, 5.0)], [])  # the first time it is sent, as far as is known
        cache.write([], [(key, Call(0, 5.0, 6.0, 200, "allowed", "", b"{}"))])
    with AnswerStore(path, "s", "1") as cache:
        assert cache.latest()[key].asked == 5.0
        assert len(cache.latest()) == 3
        assert cache.damaged == 0
    db = sqlite3.connect(path)
    assert db.execute("SELECT count(*) FROM damaged").fetchone() == (1,)
    db.close()


def test_a_file_that_is_mostly_damaged_is_refused(tmp_path: Path) -> None:
    change = "UPDATE calls SET status = status + 1 WHERE rowid < 9"
    path = changed(tmp_path / "a.sqlite", change, rows=10)
    with (
        pytest.raises(ResultError, match=r"8 of 10 entries are damaged.*backup"),
        AnswerStore(path, "s", "1") as cache,
    ):
        cache.latest()


def test_the_order_of_columns_and_types_counts() -> None:
    values = [
        (b"ab", b"c"),
        (b"a", b"bc"),
        ("ab", b"c"),
        (1, 2),
        (12,),
        (1.0, 2),
        (None,),
        ("None",),
    ]
    assert len({checksum(*value) for value in values}) == len(values)
    assert checksum("\udcff") != checksum("\udcfe")
