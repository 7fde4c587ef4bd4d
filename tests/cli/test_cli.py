"""The command line as a user meets it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ombud.audits import Plan
from ombud.cli import app
from ombud.worlds import small_world

COMMANDS = ["demo", "run", "report", "rescore", "compare", "check", "tune", "plugins", "doctor"]
runner = CliRunner()


def ombud(*words: object, code: int = 0) -> str:
    result = runner.invoke(app, [str(word) for word in words])
    assert result.exit_code == code, result.output
    return result.stdout if "--json" in words else result.output


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small audit, run from a plan."""
    folder = tmp_path_factory.mktemp("cli")
    small_world(seed=2).write(folder, 10)
    (folder / "plan.toml").write_text(
        """
title = "Small"
[data]
interactions = "interactions.parquet"
labels = "labels.parquet"
users = "users.parquet"
[systems.neutral]
type = "recorded"
path = "recommendations/neutral.parquet"
[systems.amplifying]
type = "recorded"
path = "recommendations/amplifying.parquet"
[[metrics]]
name = "share-gap"
k = 10
[statistics]
replicates = 200
"""
    )
    ombud("run", folder / "plan.toml", "--folder", folder / "result")
    return folder


def test_help_lists_every_command_and_each_has_an_example() -> None:
    text = ombud("-h")
    for command in COMMANDS:
        assert re.search(rf"\b{command}\b", text)
        help_text = ombud(command, "-h")
        assert f"ombud {command}" in help_text and "Example" in help_text
    for command in ("list", "describe", "check"):
        assert f"ombud data {command}" in ombud("data", command, "-h")
    assert ombud("--version").startswith("ombud ")


def test_a_run_prints_a_table_and_where_the_report_is(folder: Path) -> None:
    text = ombud("run", folder / "plan.toml", "--folder", folder / "result")
    assert "How sure:" in text and "report.html" in text and len(text.splitlines()) <= 27
    assert (folder / "result" / "report.html").read_text().startswith("<!DOCTYPE html>")
    content = json.loads(
        ombud("run", folder / "plan.toml", "--folder", folder / "result", "--json")
    )
    assert content["estimates"] and content["report"].endswith("report.html")


@pytest.mark.parametrize("ending", ["html", "md", "tex", "json"])
def test_a_report_in_every_form(folder: Path, tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"out.{ending}"
    assert path.name in ombud("report", folder / "result", "--to", path).replace("\n", "")
    assert path.stat().st_size > 100
    ombud("report", folder / "result", "--to", tmp_path / "out.docx", code=2)


def test_rescore_gives_the_same_numbers(folder: Path, tmp_path: Path) -> None:
    ombud("rescore", folder / "result", "--folder", tmp_path / "again")
    first = json.loads((folder / "result" / "estimates.json").read_text())
    second = json.loads((tmp_path / "again" / "estimates.json").read_text())
    assert first["estimates"] == second["estimates"]


def test_rescore_with_other_metrics_and_without_the_systems(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.toml"
    other.write_text('[[metrics]]\nname = "label-share"\nk = 3\n')
    lists = folder / "recommendations"
    hidden = folder / "hidden"
    shutil.move(lists, hidden)
    try:
        text = ombud(
            "rescore", folder / "result", "--plan", other, "--folder", tmp_path / "r", "--json"
        )
    finally:
        shutil.move(hidden, lists)
    names = {e["key"].partition("/")[0] for e in json.loads(text)["estimates"]}
    assert names == {"label-share(k=3)"}


def test_compare(folder: Path, tmp_path: Path) -> None:
    ombud("rescore", folder / "result", "--folder", tmp_path / "again")
    found = json.loads(ombud("compare", folder / "result", tmp_path / "again", "--json"))
    changes = [e for e in found["changes"] if e["value"] is not None]
    assert found["standing"] == 0
    assert changes and all(abs(e["value"]) < 1e-12 for e in changes)
    assert "\nnothing changed: " in ombud("compare", folder / "result", tmp_path / "again")


def test_watch_is_a_gate(folder: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        ombud("rescore", folder / "result", "--folder", tmp_path / "series" / name)
    text = ombud("watch", tmp_path / "series", code=0)
    assert "b: no change found" in text
    assert (tmp_path / "series" / "watch.html").read_text().startswith("<!DOCTYPE html>")
    found = json.loads(ombud("watch", tmp_path / "series", "--json", code=0))
    assert found["failed"] is False
    assert found["results"] == ["a", "b"]
    ombud("watch", folder / "result", code=2)


def test_the_gate_closes_and_opens(folder: Path) -> None:
    result = folder / "result"
    planted = 'system == "amplifying" and label == "violence" and kind == "level" and low > 0.01'
    text = ombud("check", result, "--fail-if", planted, code=1)
    assert "estimates meet" in text
    ombud("check", result, "--fail-if", planted.replace("0.01", "0.9"), code=0)
    found = json.loads(ombud("check", result, "--fail-if", planted, "--json", code=1))
    assert found["failed"] is True
    ombud("check", result, "--fail-if", 'system == "amplifing" and low > 0', code=2)
    ombud("check", result, "--fail-if", "import os", code=2)


def test_data_commands(folder: Path, tmp_path: Path) -> None:
    assert "small" in ombud("data", "list")
    assert "world" in json.loads(ombud("data", "list", "--json"))
    assert ombud("data", "describe", "small").strip()
    ombud("data", "describe", "no-such-thing", code=2)
    for form in ("interactions", "labels", "users", "texts"):
        ombud("data", "check", folder / f"{form}.parquet", "--as", form)
    bad = tmp_path / "bad.csv"
    bad.write_text("user,itm\n1,2\n")
    text = runner.invoke(app, ["data", "check", str(bad), "--as", "interactions"])
    assert text.exit_code == 2 and "'item' is missing" in text.output


def test_tuning_from_a_plan(folder: Path, tmp_path: Path) -> None:
    plan = tmp_path / "tune.toml"
    plan.write_text(
        f"""
[data]
interactions = "{folder / "interactions.parquet"}"
[systems.near]
type = "item-knn"
"""
    )
    words = ["tune", plan, "--system", "near", "--metric", "recall@10", "--trials", "2"]
    found = json.loads(ombud(*words, "--folder", tmp_path / "t", "--json"))
    assert found["best"] and 0 <= found["value"] <= 1
    said = ombud(*words, "--folder", tmp_path / "t")
    assert "stopped:" in said and "plan.toml" in said
    written = Plan.load(tmp_path / "t" / "plan.toml")
    assert written.systems == {"near": {"type": "item-knn", **found["best"]}}
    assert written.data.interactions == str(folder / "interactions.parquet")
    ombud("tune", plan, "--system", "far", "--folder", tmp_path / "t", code=2)
    published = ["--space", "published", "--holdout", "leave-one-out", "--users", "20"]
    found = json.loads(ombud(*words, *published, "--folder", tmp_path / "p", "--json"))
    assert set(found["best"]) == {"neighbours", "min_similarity"}
    said = ombud(*words, "--space", "other", "--folder", tmp_path / "o", code=2)
    assert "default or published" in said


def test_plugins_and_doctor() -> None:
    things = json.loads(ombud("plugins", "--json"))
    assert "share-gap" in things["registered"]["metric"]
    assert "share-gap" in ombud("plugins")
    assert json.loads(ombud("doctor", "--json"))["versions"]["numpy"]
    assert "extra models" in ombud("doctor")


def test_doctor_knows_every_extra() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    named = project["project"]["optional-dependencies"]
    result = json.loads(ombud("doctor", "--json"))["extras"]
    assert set(result) == set(named)
    peers = ("lenskit", "implicit", "surprise")
    assert result["models"] and result["peers"] == all(map(find_spec, peers))


def test_errors_are_sentences_not_tracebacks(tmp_path: Path) -> None:
    for words in (
        ["run", tmp_path / "absent.toml"],
        ["report", tmp_path / "absent"],
        ["compare", tmp_path / "a", tmp_path / "b"],
    ):
        text = ombud(*words, code=2)
        assert text.startswith("error: ") and "Traceback" not in text


def test_piped_output_has_no_progress_and_no_colour(folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "ombud", "run", folder / "plan.toml", "-o", folder / "result"],
        capture_output=True,
        text=True,
        check=True,
    )
    # Long work says a line now and then, and what is long depends on the machine.
    assert "\x1b" not in done.stderr + done.stdout
    assert "\r" not in done.stderr


def test_equal_results_did_not_change(folder: Path) -> None:
    printed = ombud("compare", folder / "result", folder / "result")
    verdict, numbers = printed.splitlines()
    assert verdict.startswith("Verdict: No clear change in ")
    assert numbers.startswith("nothing changed: ")
