"""A user's own taxonomy file: good ones load, bad ones give all faults at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from ombud.errors import DataError
from ombud.taxonomy.model import read_taxonomy

GOOD = """
name = "house"
version = 2
title = "House rules"
source = "us"
licence = "ours"
parents = [{ id = "loud", title = "Loud things" }]
labels = [
  { id = "drums", title = "Drums", description = "Beat.", parent = "loud", aliases = ["Tom-tom"] },
  { id = "harp", title = "Harp" },
]
"""


def _file(folder: Path, text: str) -> Path:
    path = folder / "house.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_good_file(tmp_path: Path) -> None:
    house = read_taxonomy(_file(tmp_path, GOOD))
    assert house.key == "house@2"
    assert house.resolve("TOM TOM") == "drums"
    assert house.to_parents() == {"drums": "loud"}
    assert house.published is None


def test_all_faults_in_one_error(tmp_path: Path) -> None:
    bad = """
name = ""
version = 0
source = "us"
licence = "ours"
colour = "red"
published = -1
parents = "none"
labels = [
  { title = "No id" },
  { id = "a", title = "A", parent = "nowhere", size = 3 },
  { id = "b", title = "B", parent = "nowhere" },
  { id = "b", title = "B again" },
  { id = "c", title = "b" },
  { id = "d", title = "Underage sex" },
  { id = "e", title = "E", aliases = "x" },
  5,
]
refused = [{ id = "r" }]
"""
    with pytest.raises(DataError) as caught:
        read_taxonomy(_file(tmp_path, bad))
    text = "\n".join(caught.value.faults)
    for part in (
        "unknown key 'colour'",
        "name: found ''",
        "version: found 0",
        "title: found None",
        "published: found -1",
        "parents: expected a list",
        "labels 1: id is missing",
        "labels 2: unknown key 'size'",
        "parent 'nowhere' is not an id",
        "labels 4: id 'b' stands already at labels 3",
        "labels 5: spelling 'b' also stands for labels 3",
        "a refused label",
        "labels 7: aliases is not a list",
        "labels 8: expected a table",
        "refused 1: expected a table",
    ):
        assert part in text
    assert "nderage" not in text


def test_not_toml_and_not_utf8(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="not TOML"):
        read_taxonomy(_file(tmp_path, "labels = ["))
    path = tmp_path / "latin.toml"
    path.write_bytes(b'name = "caf\xe9"')
    with pytest.raises(DataError, match="byte 11: not UTF-8"):
        read_taxonomy(path)
    with pytest.raises(DataError, match="labels: none found"):
        read_taxonomy(_file(tmp_path, GOOD.split("labels = [")[0]))
