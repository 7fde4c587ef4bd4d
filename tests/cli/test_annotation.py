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
    assert "add --what" in run("annotation", "export", project, str(tmp_path / "x.zip"))[1]
    assert "10=Anna" in run("annotation", "import", project, "a.json", "--rater", "10")[1]
    code, output = run("annotation", "import", project, str(tmp_path / "none.json"))
    assert code == 2 and "there is no file" in output.replace("\n", " ")


def test_agreement_as_json(project: str) -> None:
    code, output = run("annotation", "agreement", project, "--json")
    found = json.loads(output)
    assert code == 0 and found["ratings"] == 0
    assert {e["reason"] for e in found["overall"]} == {"no text has two ratings"}


def test_an_export_has_any_name(project: str, tmp_path: Path) -> None:
    mine, own = tmp_path / "pilot 2026.csv", tmp_path / "labels.csv"
    assert run("annotation", "export", project, str(mine), "--what", "labels")[0] == 0
    assert run("annotation", "export", project, str(own))[0] == 0
    assert mine.read_bytes() == own.read_bytes()
    code, output = run("annotation", "export", project, str(mine), "--what", "people")
    assert code == 2 and "--what people" in output
    code, output = run("annotation", "export", project, "x.zip", "--what", "labels")
    assert code == 2 and ".parquet or .csv" in " ".join(output.split())


def test_an_invitation_leads_to_the_running_app(project: str) -> None:
    from ombud.app.project import Project

    code, output = run("annotation", "invite", project, "Anna")
    assert code == 0 and "is not running" in output and "http://127.0.0.1:8765/invite/" in output
    with Project(project) as opened:
        opened.set_address("http://127.0.0.1:9191")
    code, output = run("annotation", "invite", project, "Anna")
    assert code == 0 and "http://127.0.0.1:9191/invite/" in output and "not running" not in output
    output = run("annotation", "invite", project, "Ben", "--address", "https://a.example.org/")[1]
    assert "https://a.example.org/invite/" in output


def test_guidelines_have_an_example_for_each_level_and_topic() -> None:
    from ombud.app.settings import shipped_guidelines
    from ombud.taxonomy.model import load_taxonomy

    version, text = shipped_guidelines()
    assert version == "delicate@2"
    for level in ("not delicate", *"12345"):
        assert text.count(f"\n| {level} | ") >= 1
    rows = [line.split(" | ")[0] for line in text.splitlines() if line.startswith("| ")]
    assert {f"| {label.title}" for label in load_taxonomy("delicate@1").labels} <= set(rows)
    asked = text[text.index("## Questions that come up") :].count("\n**")
    assert asked >= 10
