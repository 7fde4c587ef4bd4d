"""A disk that takes no more: each write fails for real, as the kernel says, and nothing is lost."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from ombud.audits import Audit, Result
from ombud.audits.plan import StatisticsPlan
from ombud.errors import ResultError
from ombud.files import write_json, write_parquet, write_text
from ombud.http.store import AnswerStore
from ombud.metrics import ShareGap
from ombud.worlds import World, small_world

resource = pytest.importorskip("resource", reason="limits of file sizes are a thing of Unix")


@contextmanager
def room_for(size: int) -> Iterator[None]:
    """Let no file grow over this many bytes: a write beyond it fails, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.fixture(scope="module")
def world() -> World:
    return small_world(seed=3)


def audit(world: World) -> Audit:
    quick = StatisticsPlan(replicates=100)
    return Audit(world.dataset, world.recommenders()[:1], [ShareGap(k=10)], statistics=quick)


@pytest.mark.parametrize("size", [0, 400, 3_000, 12_000, 30_000])
def test_a_run_that_finds_no_room_says_so_and_goes_on_later(
    size: int, world: World, tmp_path: Path
) -> None:
    with room_for(size), pytest.raises(OSError) as caught:
        audit(world).run(tmp_path / "r")
    assert caught.value.filename, "the file that found no room is named"
    assert not any(p.name.endswith(".part") for p in (tmp_path / "r").rglob("*"))
    result = audit(world).run(tmp_path / "r")
    assert result.estimates == audit(world).run().estimates
    assert Result.load(tmp_path / "r").verify().is_intact


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full on this machine")
def test_what_polars_says_of_a_full_disk_is_an_error_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame, real = pl.DataFrame({"a": np.arange(50_000)}), pl.DataFrame.write_parquet

    def to_full(self: pl.DataFrame, path: Path, **options: Any) -> None:
        real(self, "/dev/full", **options)

    write_parquet(tmp_path / "a.parquet", frame.head(3))
    monkeypatch.setattr(pl.DataFrame, "write_parquet", to_full)
    with pytest.raises(OSError, match="No space left on device") as caught:
        write_parquet(tmp_path / "a.parquet", frame)
    assert caught.value.filename == str(tmp_path / "a.parquet")
    assert pl.read_parquet(tmp_path / "a.parquet").height == 3, "the old file stands"
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("size", [0, 10])
def test_texts_that_find_no_room_leave_the_old_ones(size: int, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    write_json(path, {"a": 1})
    with room_for(size), pytest.raises(OSError):
        write_json(path, {"a": list(range(100))})
    with room_for(size), pytest.raises(OSError):
        write_text(path, "x" * 1000)
    assert path.read_text() == '{\n "a": 1\n}\n'
    assert len(list(tmp_path.iterdir())) == 1


def scribbled(path: Path, at: int) -> None:
    content = bytearray(path.read_bytes())
    content[at : at + 400] = b"\xa5" * len(content[at : at + 400])
    path.write_bytes(content)


# what is done to a cache of answers
CORRUPT = {
    "empty of SQLite": lambda path: path.write_bytes(b"no database"),
    "cut": lambda path: path.write_bytes(path.read_bytes()[:5000]),
    "header": lambda path: scribbled(path, 0),
    "first page": lambda path: scribbled(path, 100),
    "a folder": lambda path: (path.unlink(), path.mkdir()),
    "a foreign database": lambda path: (path.unlink(), shutil.copy(foreign(path), path)),
    "a dangling link": lambda path: (path.unlink(), path.symlink_to(path.parent / "a" / "b" / "c")),
}


def foreign(path: Path) -> Path:
    import sqlite3

    other = path.with_name("other.sqlite")
    with sqlite3.connect(other) as database:
        database.execute("CREATE TABLE cookies (a)")
    database.close()
    return other


@pytest.mark.parametrize("name", CORRUPT)
def test_a_corrupt_cache_is_named(name: str, tmp_path: Path) -> None:
    path = tmp_path / "answers.sqlite"
    store = AnswerStore(path, "m", "1")
    store.write([((bytes([i]) * 16, 0), 1, 1.0) for i in range(50)], [])
    store.close()
    for more in tmp_path.glob("answers.sqlite-*"):
        more.unlink()
    CORRUPT[name](path)
    with (
        pytest.raises(ResultError, match=r"answers\.sqlite"),
        closing(AnswerStore(path, "m", "1")) as s,
    ):
        s.latest()
