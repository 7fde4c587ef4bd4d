"""What a user installs: the code and its own small data, and nothing that lay about."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path, PurePosixPath

import pytest

ROOT = Path(__file__).parents[2]
ENDINGS = {
    ".py",
    ".typed",
    ".html",
    ".css",
    ".js",
    ".toml",
    ".json",
    ".csv",
    ".tsv",
    ".txt",
    ".md",
    ".svg",
    ".sql",
}
LARGEST = 1_000_000
SECRET = re.compile(
    rb"-----BEGIN [A-Z ]*PRIVATE KEY|\bsk-[A-Za-z0-9]{20,}|\bAKIA[0-9A-Z]{16}\b"
    rb"|\bgh[pousr]_[A-Za-z0-9]{30,}|\bAIza[0-9A-Za-z_-]{30,}|/root/"
)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    builders = pytest.importorskip("hatchling.builders.wheel", reason="hatchling is not installed")
    folder = tmp_path_factory.mktemp("wheel")
    (made,) = builders.WheelBuilder(str(ROOT)).build(directory=str(folder), versions=["standard"])
    return zipfile.ZipFile(made)


def test_the_wheel_holds_the_package_alone(wheel: zipfile.ZipFile) -> None:
    names = [PurePosixPath(name) for name in wheel.namelist()]
    inside = [name for name in names if name.parts[0] == "ombud"]
    others = {name.parts[0] for name in names} - {"ombud"}
    assert all(re.fullmatch(r"ombud-[^/]+\.dist-info", name) for name in others), others
    assert {name.suffix for name in inside} <= ENDINGS
    assert not [n for n in inside if {"tests", "__pycache__", ".hypothesis"} & set(n.parts)]
    assert not [n for n in inside if n.name.startswith((".", "test_", "conftest"))]


def test_what_is_needed_at_run_time_is_there(wheel: zipfile.ZipFile) -> None:
    names = set(wheel.namelist())
    source = ROOT / "src"
    for file in (source / "ombud").rglob("*"):
        if file.is_file() and "__pycache__" not in file.parts:
            assert file.relative_to(source).as_posix() in names
    assert {"ombud/py.typed", "ombud/report/templates/page.html"} <= names
    assert any(re.fullmatch(r"ombud/taxonomy/.+\.(toml|json|csv|tsv|txt)", name) for name in names)
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)


def test_no_data_set_and_no_secret_is_in_it(wheel: zipfile.ZipFile) -> None:
    for info in wheel.infolist():
        assert info.file_size < LARGEST, f"{info.filename} has {info.file_size:,} bytes"
        found = SECRET.search(wheel.read(info))
        assert found is None, f"{info.filename} holds {found[0]!r}"
