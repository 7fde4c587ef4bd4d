"""Archives that lead out of the folder, or grow without end, are refused."""

from __future__ import annotations

import gzip
import stat
import struct
import zipfile
from pathlib import Path

import pytest

from ombud.data.archives import Limits, extract_zip, gunzip
from ombud.errors import DataError


def archive(tmp_path: Path, entries: dict[str, bytes], mode: int = 0) -> Path:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as opened:
        for name, content in entries.items():
            info = zipfile.ZipInfo(name)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = mode << 16
            opened.writestr(info, content)
    return path


def target(tmp_path: Path) -> Path:
    folder = tmp_path / "out" / "deep"
    folder.mkdir(parents=True)
    return folder


def test_wanted_files_come_out_flat(tmp_path: Path) -> None:
    path = archive(tmp_path, {"ml/ratings.csv": b"a,b\n", "ml/README.txt": b"no"})
    folder = target(tmp_path)
    found = extract_zip(path, folder, names=["ratings.csv", "links.csv"])
    assert found == {"ratings.csv": folder / "ratings.csv"}
    assert [p.name for p in folder.iterdir()] == ["ratings.csv"]
    assert found["ratings.csv"].read_bytes() == b"a,b\n"


@pytest.mark.parametrize(
    "name",
    ["../ratings.csv", "/ratings.csv", "ml/../../ratings.csv", "..\\ratings.csv", "C:ratings.csv"],
)
def test_a_path_that_leads_out_is_refused(tmp_path: Path, name: str) -> None:
    path = archive(tmp_path, {"ml/ratings.csv": b"good", name: b"bad"})
    folder = target(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(DataError, match="leads out|another path"):
        extract_zip(path, folder)
    assert sorted(tmp_path.rglob("*")) == before, "nothing may be written"


def test_links_encryption_and_twins_are_refused(tmp_path: Path) -> None:
    folder = target(tmp_path)
    with pytest.raises(DataError, match="is a link"):
        extract_zip(archive(tmp_path, {"ratings.csv": b"/etc"}, stat.S_IFLNK | 0o777), folder)
    with pytest.raises(DataError, match="two files are called"):
        extract_zip(archive(tmp_path, {"a/r.csv": b"1", "b/r.csv": b"2"}), folder)
    path = archive(tmp_path, {"r.csv": b"1"})
    data = bytearray(path.read_bytes())
    place = data.index(b"PK\x01\x02") + 8
    data[place] |= 1
    path.write_bytes(data)
    with pytest.raises(DataError, match="encrypted"):
        extract_zip(path, folder)


def test_a_bomb_is_refused_by_what_it_declares(tmp_path: Path) -> None:
    path = archive(tmp_path, {"ratings.csv": bytes(40 << 20)})
    with pytest.raises(DataError, match="would take"):
        extract_zip(path, target(tmp_path))


def test_a_bomb_that_lies_about_its_size_is_refused(tmp_path: Path) -> None:
    path = archive(tmp_path, {"ratings.csv": bytes(3 << 20)})
    data = bytearray(path.read_bytes())
    for mark, offset in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        place = data.index(mark) + offset
        data[place : place + 4] = struct.pack("<I", 100)
    path.write_bytes(data)
    folder = target(tmp_path)
    with pytest.raises(DataError):
        extract_zip(path, folder, limits=Limits(ratio=2, always=1 << 20))
    assert sum(p.stat().st_size for p in folder.iterdir()) <= 1 << 20


def test_damage_and_too_many_entries(tmp_path: Path) -> None:
    path = archive(tmp_path, {f"{n}.csv": b"x" for n in range(5)})
    with pytest.raises(DataError, match="lists 5 entries"):
        extract_zip(path, target(tmp_path), limits=Limits(members=4))
    path.write_bytes(path.read_bytes()[:30])
    with pytest.raises(DataError, match="cannot be read as a ZIP"):
        extract_zip(path, tmp_path)


def test_gunzip(tmp_path: Path) -> None:
    packed = tmp_path / "r.dat.gz"
    packed.write_bytes(gzip.compress(b"1::2::3::4\n" * 100))
    assert gunzip(packed, tmp_path / "r.dat").read_bytes().count(b"\n") == 100
    packed.write_bytes(gzip.compress(bytes(4 << 20)))
    with pytest.raises(DataError, match="grows beyond"):
        gunzip(packed, tmp_path / "s.dat", limits=Limits(ratio=2, always=1 << 20))
    assert not (tmp_path / "s.dat").exists()
    packed.write_bytes(gzip.compress(b"abc" * 1000)[:20])
    with pytest.raises(DataError, match="gzip"):
        gunzip(packed, tmp_path / "t.dat")
