"""Every shipped data file has a source and a license, in one list that agrees with the files."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement

PACKAGE = Path(__file__).parents[2] / "src" / "ombud"
LIST = PACKAGE / "data" / "licenses.toml"
DATA = {".csv", ".tsv", ".toml", ".txt", ".json", ".md", ".parquet", ".npz", ".gz"}
OWN = {".py", ".pyi", ".html", ".css", ".js", ".svg", ".sql", ".typed", ""}


def shipped() -> list[Path]:
    files = [p for p in PACKAGE.rglob("*") if p.is_file() and "__pycache__" not in p.parts]
    return [p for p in files if not p.name.endswith((".pyc", ".nbi", ".nbc"))]


def test_every_shipped_data_file_has_a_source_and_a_license() -> None:
    listed = tomllib.loads(LIST.read_text(encoding="utf-8"))
    found = {p.relative_to(PACKAGE).as_posix() for p in shipped() if p.suffix in DATA and p != LIST}
    assert set(listed) == found
    for name, about in listed.items():
        assert set(about) == {"source", "license"}, name
        assert all(len(about[key]) >= 3 for key in about), name


def test_nothing_else_is_shipped_than_data_and_code() -> None:
    assert {p.suffix for p in shipped()} - DATA <= OWN


def test_the_list_agrees_with_what_files_say_themselves() -> None:
    compared = 0
    for name, about in tomllib.loads(LIST.read_text(encoding="utf-8")).items():
        text = (PACKAGE / name).read_text(encoding="utf-8")[:3000]
        stated = re.search(r'^(?:# )?licence(?:: | = ")(.*?)"?$', text, re.MULTILINE)
        if stated is not None and name != "http/downloads.toml":
            assert about["license"] == stated[1].replace('\\"', "'"), name
            compared += 1
    assert compared >= 10


def test_every_requirement_has_an_upper_bound() -> None:
    project = tomllib.loads((PACKAGE.parents[1] / "pyproject.toml").read_text())["project"]
    some = [*project["dependencies"], *sum(project["optional-dependencies"].values(), [])]
    for one in map(Requirement, some):
        assert any(part.operator in {"<", "<=", "=="} for part in one.specifier), str(one)
