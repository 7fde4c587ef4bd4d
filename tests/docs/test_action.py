"""The GitHub action: its form, and its shell steps run for real."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from ombud.worlds import small_world

yaml = pytest.importorskip("yaml", reason="pyyaml is not installed (requirements-test.txt)")
ROOT = Path(__file__).parents[2]
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())
STEPS: list[dict[str, Any]] = ACTION["runs"]["steps"]

needs_bash = pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")

PLAN = """
[expect."little more violence"]
limit = "value <= 0.5"
where = 'label == "violence" and group == ""'
reason = "agreed"
[data]
interactions = "interactions.parquet"
labels = "labels.parquet"
[systems.ours]
type = "recorded"
path = "recommendations/amplifying.parquet"
[[metrics]]
name = "share-gap"
[statistics]
replicates = 100
"""


def test_the_action_is_whole() -> None:
    assert ACTION["runs"]["using"] == "composite"
    assert {name for name, one in ACTION["inputs"].items() if one.get("required")} == {"plan"}
    used = set(re.findall(r"inputs\.([a-z-]+)", (ROOT / "action.yml").read_text()))
    assert used == set(ACTION["inputs"])
    for step in STEPS:
        assert ("run" in step) != ("uses" in step)
        # Text of an input in a script would be run as a part of it.
        assert "run" not in step or ("${{" not in step["run"] and step["shell"] == "bash")
    ids = {step.get("id") for step in STEPS}
    for output in ACTION["outputs"].values():
        assert re.search(r"steps\.(\w+)\.", output["value"]).group(1) in ids  # type: ignore[union-attr]


def with_inputs(text: str, given: dict[str, str]) -> str:
    def value(found: re.Match[str]) -> str:
        return given.get(found.group(1), ACTION["inputs"][found.group(1)].get("default", ""))

    text = text.replace(" || steps.run.outputs.fingerprint", "")
    return re.sub(r"\$\{\{ inputs\.([a-z-]+) \}\}", value, text)


def run_step(step: dict[str, Any], given: dict[str, str], folder: Path) -> int:
    """Run a step as GitHub does, with what lies in ``bin`` found first."""
    more = {name: with_inputs(text, given) for name, text in step["env"].items()}
    path = f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
    files = {"GITHUB_OUTPUT": folder / "outputs", "GITHUB_STEP_SUMMARY": folder / "shown.md"}
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
        cwd=folder,
        env=os.environ | {"PATH": path} | {name: str(f) for name, f in files.items()} | more,
        stdout=subprocess.DEVNULL,
    ).returncode


def put_ombud(folder: Path, script: str) -> None:
    shim = folder / "bin" / "ombud"
    shim.parent.mkdir()
    shim.write_text(f"#!/bin/sh\n{script}\n")
    shim.chmod(0o755)


OURS = [step for step in STEPS if "run" in step and not step["name"].startswith("Install")]
STUB = 'for word in "$@"; do echo "$word" >> words; done; echo told > "a b/summary.md"; exit CODE'


@needs_bash
@pytest.mark.parametrize(
    ("code", "verdict"), [(0, "open"), (1, "closed"), (2, None), (4, "edited")]
)
def test_inputs_reach_the_commands_as_they_are(
    code: int, verdict: str | None, tmp_path: Path
) -> None:
    put_ombud(tmp_path, STUB.replace("CODE", str(code)))
    (tmp_path / "a b").mkdir()
    conditions = "value > 1\n\n  $(touch hacked)\n"
    given = {"folder": "a b", "gate": "g.toml", "fail-if": conditions, "fail-if-undecided": "true"}
    given["fingerprint"] = "9f2c"
    assert run_step(OURS[1], given, tmp_path) == code
    words = (tmp_path / "words").read_text().splitlines()
    assert words[:2] == ["check", "a b"]
    pairs = list(zip(words, words[1:], strict=False))
    assert ("--gate", "g.toml") in pairs and "--fail-if-undecided" in words
    assert ("--fingerprint", "9f2c") in pairs
    assert [b for a, b in pairs if a == "--fail-if"] == ["value > 1", "  $(touch hacked)"]
    assert not (tmp_path / "hacked").exists()
    shown = (tmp_path / "shown.md").read_text()
    assert shown.startswith("told\n") and ("edited" in shown) == (code == 4)
    said = (tmp_path / "outputs").read_text().splitlines()
    assert said == ["report=a b/report.html", *([f"verdict={verdict}"] if verdict else [])]


@needs_bash
@pytest.mark.slow
def test_its_steps_run_the_audit_and_close_the_build(tmp_path: Path) -> None:
    small_world(seed=1, users=60).write(tmp_path, 10)
    (tmp_path / "plan.toml").write_text(PLAN)
    put_ombud(tmp_path, f'exec "{sys.executable}" -m ombud "$@"')
    condition = 'label == "violence" and value > 0 and group == ""'
    given = {"plan": "plan.toml", "folder": "a result", "fail-if": condition}
    assert [run_step(step, given, tmp_path) for step in OURS] == [0, 1]
    assert (tmp_path / "outputs").read_text().splitlines()[-1] == "verdict=closed"
    assert "not met" in (tmp_path / "shown.md").read_text()
    outputs = (tmp_path / "outputs").read_text()
    assert re.match(r"fingerprint=[0-9a-f]{64}\n", outputs)
    suite = ElementTree.parse(tmp_path / "a result" / "gate.xml").getroot()[0]
    assert suite.get("failures") == "1"
    assert (tmp_path / "a result" / "report.html").exists()


@needs_bash
def test_every_script_is_understood_by_the_shell() -> None:
    for step in STEPS:
        if "run" in step:
            subprocess.run(["bash", "-n", "-c", step["run"]], check=True)
