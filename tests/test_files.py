"""Files written whole, read with errors that name them, and never outside their folder."""

from __future__ import annotations

import os
import socket
import subprocess
from pathlib import Path

import polars as pl
import pytest

from ombud.errors import ResultError
from ombud.files import (
    inside,
    read_json,
    read_parquet,
    remove_leftovers,
    sweep,
    write_folder,
    write_json,
    write_parquet,
)


def test_a_name_stays_in_its_folder(tmp_path: Path) -> None:
    assert inside(tmp_path, "rows", "00", "a.parquet") == tmp_path / "rows" / "00" / "a.parquet"
    assert inside(tmp_path / "rows", "a.parquet") == tmp_path / "rows" / "a.parquet"
    for parts in (("../x",), ("outputs", "../x"), ("outputs", "../outputs2/x"), ("rows", "/x")):
        with pytest.raises(ResultError, match="leads out"):
            inside(tmp_path, *parts)


@pytest.mark.parametrize("linked", ["rows", "rows/00", "rows/00/a.parquet"])
def test_a_link_in_a_result_is_not_followed(tmp_path: Path, linked: str) -> None:
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "00").mkdir(parents=True)
    result = tmp_path / "result"
    (result / linked).parent.mkdir(parents=True)
    (result / linked).symlink_to(elsewhere)
    with pytest.raises(ResultError, match="by a link"):
        inside(result, "rows", "00", "a.parquet")


def test_a_linked_folder_given_alone_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "outputs").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ResultError, match="by a link"):
        inside(tmp_path / "outputs", "a.parquet")


def test_the_way_to_a_result_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "monday").mkdir()
    (tmp_path / "latest").symlink_to(tmp_path / "monday")
    found = inside(tmp_path / "latest", "outputs", "a.parquet")
    assert found == tmp_path / "monday" / "outputs" / "a.parquet"


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"[" * 200_000, "nested too deeply"),
        (b'{"a": NaN}', "NaN is no number"),
        (b'{"a": -Infinity}', "no number"),
        (b"{", "is not JSON"),
        (b"\xff", "is not JSON"),
        (b"[]", "an object was expected"),
    ],
    ids=["deep", "nan", "infinity", "cut", "bytes", "list"],
)
def test_json_that_is_none_names_its_file(tmp_path: Path, content: bytes, why: str) -> None:
    path = tmp_path / "some.json"
    path.write_bytes(content)
    with pytest.raises(ResultError, match=rf"some\.json.*{why}"):
        read_json(path)


def test_what_is_no_file_names_itself(tmp_path: Path) -> None:
    for read in (read_json, read_parquet):
        with pytest.raises(ResultError, match="absent is missing"):
            read(tmp_path / "absent")
    with pytest.raises(ResultError, match="cannot be read: Is a directory"):
        read_json(tmp_path)


def test_parquet_that_is_none_names_its_file(tmp_path: Path) -> None:
    path = tmp_path / "table.parquet"
    frame = pl.DataFrame({"a": range(1000)})
    write_parquet(path, frame)
    assert read_parquet(path).equals(frame)
    whole = path.read_bytes()
    for content in (b"", b"not parquet", whole[:-9], b"PAR1" + bytes(200) + whole[-40:]):
        path.write_bytes(content)
        with pytest.raises(ResultError, match=r"table\.parquet is not Parquet"):
            read_parquet(path)


def test_json_comes_back(tmp_path: Path) -> None:
    content = {"b": [1, 2.5, None], "a": "ä"}
    write_json(tmp_path / "x.json", content)
    assert read_json(tmp_path / "x.json") == content


def test_half_a_character_survives_as_an_escape(tmp_path: Path) -> None:
    content = {"a": "\ud800 \u00e4"}
    write_json(tmp_path / "a.json", content)
    assert read_json(tmp_path / "a.json") == content


def _neighbour(folder: Path, name: str, process: int) -> Path:
    return folder / f".{name}.{socket.gethostname()}-{process}.abc_1.part"


def test_what_killed_writes_left_is_removed_and_what_is_being_written_stays(tmp_path: Path) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    for name in ("a.txt", "deep/b.txt"):
        folder = (tmp_path / name).parent
        folder.mkdir(exist_ok=True)
        for process in (ended.pid, os.getpid()):
            _neighbour(folder, Path(name).name, process).write_text("half")
    (tmp_path / ".a.txt.elsewhere-1.abc_1.part").write_text("of another machine")
    remove_leftovers(tmp_path / "a.txt")
    assert not _neighbour(tmp_path, "a.txt", ended.pid).exists()
    assert _neighbour(tmp_path / "deep", "b.txt", ended.pid).exists()
    sweep(tmp_path)
    left = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.part"))
    assert left == sorted(
        str(path.relative_to(tmp_path))
        for path in (
            _neighbour(tmp_path, "a.txt", os.getpid()),
            _neighbour(tmp_path / "deep", "b.txt", os.getpid()),
            tmp_path / ".a.txt.elsewhere-1.abc_1.part",
        )
    )


def test_a_folder_is_the_old_one_or_the_new_one(tmp_path: Path) -> None:
    target = tmp_path / "f"

    def write(part: Path) -> None:
        (part / "x").write_text("new")

    def fails(part: Path) -> None:
        (part / "x").write_text("half")
        raise OSError("no room")

    write_folder(target, lambda part: (part / "x").write_text("old") and None)
    with pytest.raises(OSError, match="no room"):
        write_folder(target, fails)
    assert (target / "x").read_text() == "old" and len(list(tmp_path.iterdir())) == 1
    # Killed between the two steps of a replacement: the old one is put back.
    target.rename(tmp_path / ".f.old")
    remove_leftovers(target)
    assert (target / "x").read_text() == "old"
    write_folder(target, write)
    assert (target / "x").read_text() == "new" and len(list(tmp_path.iterdir())) == 1
