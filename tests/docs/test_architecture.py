"""The page on the architecture names what is there, and nothing else."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from runpy import run_path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "contributing" / "architecture.md").read_text()
SOURCE = ROOT / "src" / "ombud"
TREE = PAGE.split("## The tree")[1].split("## The path")[0]


def rows() -> list[list[str]]:
    lines = [line for line in TREE.splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_every_folder_has_a_row_and_every_row_a_folder() -> None:
    named = [row[0].strip("`") for row in rows()]
    folders = {p.name for p in SOURCE.iterdir() if p.is_dir() and not p.name.startswith("_")}
    assert set(named) == folders
    assert len(named) == len(set(named))


def test_the_rows_stand_in_the_order_of_the_layers() -> None:
    layers = run_path(str(ROOT / "tests" / "house" / "test_layers.py"))["RANK"]
    ranks = [layers[row[0].strip("`")] for row in rows() if row[0].strip("`") in layers]
    assert ranks == sorted(ranks)


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


def test_files_and_folders_named_on_the_page_exist() -> None:
    for name in re.findall(r"`([a-z_/]+\.py)`", PAGE):
        where = ROOT / name if name.startswith("tests/") else SOURCE / name
        assert where.exists() or list(SOURCE.rglob(name)), name
    for folder in re.findall(r"`([a-z_]+)/`", PAGE):
        if folder in {"outputs", "rows"}:
            continue  # of a result
        assert list(SOURCE.rglob(folder)), folder
    for folder in re.findall(r"`([a-z]+/[a-z]+)`", PAGE):
        assert (SOURCE / folder).is_dir() or (ROOT / folder).is_dir(), folder


def test_names_on_the_page_are_in_the_code() -> None:
    code = "\n".join(path.read_text("utf-8") for path in SOURCE.rglob("*.py"))
    for name in re.findall(r"`([A-Z][A-Za-z]+)(?:\.[a-z_]+)?(?:\([a-z]*\))?`", PAGE):
        assert re.search(rf"^class {name}\b", code, re.MULTILINE), name
    for name in re.findall(r"`[A-Z]\w+\.([a-z_]+)(?:\([a-z]*\))?`", PAGE):
        assert re.search(rf"^    def {name}\b", code, re.MULTILINE), name
