"""Annotation commands: what goes wrong, in a sentence. What goes right runs in the docs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ombud.cli import app


def run(*words: str) -> tuple[int, str]:
    found = CliRunner().invoke(app, list(words))
    return found.exit_code, found.output + found.stderr


@pytest.fixture
def project(tmp_path: Path) -> str:
    folder = str(tmp_path / "p")
    assert run("annotation", "new", folder)[0] == 0
    return folder


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("app", "nowhere"), "there is no folder nowhere"),
        (("app", ".", "--host", "0.0.0.0"), "needs the name that browsers use"),
        (("annotation", "add", "nowhere", "t.csv"), "holds no annotation project"),
        (("annotation", "new", "q", "--mask", "all"), "mask"),
        (("annotation", "new", "q", "--version", "mine@1"), "need both --guidelines and --version"),
    ],
)
def test_faults_are_sentences(
    words: tuple[str, ...], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, output = run(*words)
    assert code == 2 and message in output.replace("\n", " ")


def test_a_project_of_ones_own(tmp_path: Path) -> None:
    guide = tmp_path / "mine.md"
    guide.write_text("# Mine\n")
    folder = str(tmp_path / "p")
    code, _ = run("annotation", "new", folder, "--guidelines", str(guide), "--version", "mine@1")
    assert code == 0
    code, output = run("annotation", "new", folder)
    assert code == 2 and "there already" in output.replace("\n", " ")


def test_wrong_roles_rounds_and_files(project: str, tmp_path: Path) -> None:
    assert "is no role" in run("annotation", "invite", project, "Anna", "--role", "king")[1]
    assert "is no round" in run("annotation", "open", project, "third")[1]
    assert "no export" in run("annotation", "export", project, str(tmp_path / "x.zip"))[1]
    assert "10=Anna" in run("annotation", "import", project, "a.json", "--rater", "10")[1]
    code, output = run("annotation", "import", project, str(tmp_path / "none.json"))
    assert code == 2 and "there is no file" in output.replace("\n", " ")


def test_agreement_as_json(project: str) -> None:
    code, output = run("annotation", "agreement", project, "--json")
    found = json.loads(output)
    assert code == 0 and found["ratings"] == 0
    assert {e["reason"] for e in found["overall"]} == {"no text has two ratings"}
