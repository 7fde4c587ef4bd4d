"""The page on the layout names what is there, and nothing else."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "design.md").read_text()
SOURCE = ROOT / "src" / "ombud"


def rows() -> list[list[str]]:
    lines = [line for line in PAGE.splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_every_folder_has_a_row_and_every_row_a_folder() -> None:
    named = [row[0].strip("`") for row in rows()]
    folders = {p.name for p in SOURCE.iterdir() if p.is_dir() and not p.name.startswith("_")}
    assert set(named) == folders
    assert len(named) == len(set(named))


def test_what_a_folder_needs_is_a_dependency() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    name = re.compile(r"[A-Za-z0-9_-]+")
    core = {name.match(d)[0] for d in project["dependencies"]}
    for _, _, needs in rows():
        packages = re.findall(r"`([^`]+)`", needs.split("(extra")[0])
        extra = re.search(r"extra `([^`]+)`", needs)
        known = core if extra is None else {name.match(d)[0] for d in extras[extra[1]]}
        assert set(packages) <= known, needs


def test_files_named_on_the_page_exist() -> None:
    for name in re.findall(r"`([a-z_]+\.py)`", PAGE):
        assert (SOURCE / name).exists(), name
    for folder in re.findall(r"`([a-z_]+)/`", PAGE):
        if folder in {"inputs", "outputs", "rows"}:
            continue  # of a result
        assert list(SOURCE.rglob(folder)), folder
