"""Numbers are bound to what they were measured on: every file of a result is hashed again."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from typer.testing import CliRunner

import ombud
from ombud.audits import Audit, Result
from ombud.audits.audit import recompute, rescore
from ombud.audits.plan import DataPlan, Plan, StatisticsPlan
from ombud.cli import app
from ombud.data.tables import write_table
from ombud.errors import ResultError
from ombud.report import Report
from ombud.worlds import small_world

QUICK = StatisticsPlan(replicates=100)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished result of files, with its report."""
    home = tmp_path_factory.mktemp("made")
    world = small_world(seed=4)
    for name in ("interactions", "labels", "users"):
        write_table(name, world.dataset, home / f"{name}.parquet")
    lists = world.recommenders()[0].recommend(world.interactions.users.ids, 10).to_frame()
    lists.write_parquet(home / "mine.parquet")
    tables = {n: str(home / f"{n}.parquet") for n in ("interactions", "labels", "users")}
    plan = Plan(
        data=DataPlan(**tables, absent="no"),  # type: ignore[arg-type]
        systems={"mine": {"type": "recorded", "path": str(home / "mine.parquet")}},
        metrics=({"name": "share-gap", "k": 10},),
        statistics=QUICK,
    )
    result = Audit.from_plan(plan).run(home / "result")
    Report(result).save(home / "result" / "report.html")
    return home


@pytest.fixture
def home(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "home"))


def command(*words: object, code: int = 0) -> str:
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exit_code == code, done.output
    return done.stdout if "--json" in words else done.output


def edit_estimates(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    file = folder / "estimates.json"
    content = json.loads(file.read_text())
    change(content)
    file.write_text(json.dumps(content))


def halve(content: dict[str, Any]) -> None:
    first = next(e for e in content["estimates"] if e["value"])
    first["value"] /= 2


def test_a_result_that_nobody_touched_is_intact(home: Path) -> None:
    found = ombud.verify(home / "result")
    assert found.is_intact and {check.state for check in found.checks} == {"intact"}
    kinds = {check.kind for check in found.checks}
    stored = {"plan", "run", "estimates", "verdict", "outputs", "rows", "groups"}
    assert kinds == stored | {"inputs", "reports"}
    assert Result.load(home / "result").verify() == found
    # A second route to the hashes: the library's own, file by file.
    for name, digest in Result.load(home / "result").provenance["files"].items():
        assert sha256((home / "result" / name).read_bytes()).hexdigest() == digest
    text = command("verify", home / "result")
    assert "as it was written" in text and found.fingerprint in text


def test_moved_away_from_its_data_the_inputs_are_out_of_reach(home: Path, tmp_path: Path) -> None:
    alone = tmp_path / "elsewhere" / "alone"
    shutil.copytree(home / "result", alone)
    found = ombud.verify(alone)
    assert found.is_intact
    assert {check.kind for check in found.select("not reachable")} == {"inputs"}
    assert "4 inputs could not be reached" in command("verify", alone)


@pytest.mark.parametrize(
    "name",
    [
        "plan.toml",
        "run.json",
        "estimates.json",
        "outputs/mine.parquet",
        "outputs/mine.json",
        "rows/00/mine.parquet",
        "report.html",
    ],
)
def test_each_file_that_changes_or_goes_is_named(home: Path, name: str) -> None:
    file = home / "result" / name
    before = file.stat()
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))  # and the time set back
    found = ombud.verify(home / "result")
    assert [(c.name, c.state) for c in found.select("changed")] == [(name, "changed")]
    assert f"CHANGED: {name}" in command("verify", home / "result", code=1)
    file.unlink()
    assert [c.name for c in ombud.verify(home / "result").select("missing")] == [name]
    assert f"MISSING: {name}" in command("verify", home / "result", code=1)


def test_a_changed_input_is_named(home: Path) -> None:
    labels = pl.read_parquet(home / "labels.parquet")
    labels.head(len(labels) - 1).write_parquet(home / "labels.parquet")
    text = command("verify", home / "result", code=1)
    assert "inputs       1 CHANGED: data.labels" in text


def test_what_was_added_is_not_recorded(home: Path) -> None:
    (home / "result" / "outputs" / "more.parquet").write_bytes(b"x")
    text = command("verify", home / "result")
    assert "not recorded: outputs/more.parquet" in text


def test_edited_estimates_are_told_wherever_they_are_shown(home: Path) -> None:
    folder = home / "result"
    clean = Report(Result.load(folder))
    assert not clean.warning and "EDITED" not in clean.html()
    edit_estimates(folder, halve)
    loaded = Result.load(folder)
    assert loaded.integrity is not None and loaded.integrity.changed == ("estimates.json",)
    made = Report(loaded)
    told = "EDITED: estimates.json changed after the audit was finished"
    html = made.html()
    assert html.index(told) < html.index('class="answer')
    assert told in made.latex()
    assert told in made.markdown().replace("\\", "")
    assert json.loads(made.json())["integrity"] == {"changed": ["estimates.json"], "recorded": True}
    edited = ("check", folder, "--allow-edited", "--fail-if", "value > 999")
    gate = command(*edited)
    assert gate.index(told) < gate.index("estimates meet")
    as_json = json.loads(command(*edited, "--json"))
    assert as_json["integrity"]["changed"] == ["estimates.json"]
    assert told in command("report", folder)
    assert command("verify", folder, code=1)
    assert "answered" not in command("rescore", folder, "-o", home / "again")  # outputs are whole


def _rewrite(file: Path) -> None:
    """Change one value of a file, and leave the file valid."""
    if file.suffix == ".parquet":
        frame = pl.read_parquet(file)
        frame.reverse().write_parquet(file)
    elif file.suffix == ".json":
        file.write_text(json.dumps(json.loads(file.read_text()) | {"surplus": 1}))
    else:
        file.write_text(f"{file.read_text()}\n")


def test_the_gate_judges_no_edited_file(home: Path) -> None:
    """Every file that a result consists of, edited alone, keeps the gate from judging."""
    folder, gate = home / "result", ("check", home / "result", "--fail-if", "value > 999")
    assert "estimates meet" in command(*gate)
    bound = [*Result.load(folder).provenance["files"], "report.html"]
    assert {"plan.toml", "estimates.json", "verdict.json", "groups/user.parquet"} <= set(bound)
    for name in bound:
        whole = (folder / name).read_bytes()
        _rewrite(folder / name)
        assert f"{name} (changed)" in command(*gate, code=4)
        assert json.loads(command(*gate, "--json", code=4).split("\nerror")[0])["failed"] is True
        (folder / name).unlink()
        assert f"{name} (missing)" in command(*gate, code=4)
        (folder / name).write_bytes(whole)
    assert "estimates meet" in command(*gate)


def test_a_damaged_file_is_an_edited_file(home: Path) -> None:
    (home / "result" / "estimates.json").write_text("{")
    gate = ("check", home / "result", "--fail-if", "value > 999")
    assert "estimates.json (changed)" in command(*gate, code=4)
    assert "estimates.json" in command(*gate, "--allow-edited", code=2)


def test_a_fingerprint_binds_the_gate_to_one_result(home: Path) -> None:
    folder = home / "result"
    gate = ("check", folder, "--fail-if", "value > 999", "--fingerprint")
    noted = ombud.verify(folder).fingerprint
    assert "estimates meet" in command(*gate, noted.upper())
    # Someone who can write the whole folder makes it agree with itself.
    edit_estimates(folder, halve)
    file = folder / "provenance.json"
    content = json.loads(file.read_text())
    digest = sha256((folder / "estimates.json").read_bytes()).hexdigest()
    content["files"]["estimates.json"] = digest
    file.write_text(json.dumps(content))
    assert "estimates meet" in command(*gate[:-1])
    refused = command(*gate, noted, code=4)
    assert "provenance.json (changed)" in refused and noted in refused
    assert "64 hexadecimal digits" in command(*gate, noted[:12], code=2)
    assert "remove it, or --allow-edited" in command(*gate, noted, "--allow-edited", code=2)


def test_a_run_does_not_launder_an_edited_result(home: Path) -> None:
    plan = Plan.load(home / "result" / "plan.toml")
    (home / "plan.toml").write_text(plan.to_toml())
    again = ("run", home / "plan.toml", "--folder", home / "result")
    command(*again)
    (home / "result" / "report.html").write_text("all is well")
    assert "EDITED: report.html changed since ombud wrote it" in command(*again)
    outputs = home / "result" / "outputs" / "mine.parquet"
    _rewrite(outputs)
    before = {p: p.read_bytes() for p in (home / "result").rglob("*") if p.is_file()}
    assert "outputs/mine.parquet (changed)" in command(*again, code=4)
    assert before == {p: p.read_bytes() for p in before}


def test_hashes_that_were_taken_out_are_missed(home: Path) -> None:
    folder = home / "result"
    file = folder / "provenance.json"
    content = json.loads(file.read_text())
    del content["files"]
    file.write_text(json.dumps(content))
    edit_estimates(folder, halve)
    gate = ("check", folder, "--fail-if", "n < 0")
    assert "Not bound: this result has no hashes" in command(*gate, code=4)
    assert "Not bound: this result has no hashes" in command(*gate, "--allow-edited")
    assert "Not bound" in command("report", folder)
    assert "holds no hashes of its files" in command("verify", folder, code=2)


def test_a_folder_made_to_agree_with_itself_is_found_by_fingerprint_and_by_computing(
    home: Path,
) -> None:
    folder = home / "result"
    noted = ombud.verify(folder).fingerprint
    assert recompute(folder) == ()
    assert ombud.verify(folder, expect=noted.upper()).is_intact
    edit_estimates(folder, halve)
    file = folder / "provenance.json"
    content = json.loads(file.read_text())
    content["files"]["estimates.json"] = sha256(
        (folder / "estimates.json").read_bytes()
    ).hexdigest()
    file.write_text(json.dumps(content))
    assert ombud.verify(folder).is_intact, "by its own hashes nothing can be seen"
    text = command("verify", folder, "--expect", noted, code=1)
    assert "provenance   1 CHANGED" in text
    text = command("verify", folder, "--again", code=1)
    assert "COMPUTED AGAIN: 1 estimate came out otherwise" in text


def test_edited_answers_are_not_measured_again(home: Path) -> None:
    file = home / "result" / "outputs" / "mine.parquet"
    lists = pl.read_parquet(file)
    lists.with_columns(pl.col("items").list.reverse()).write_parquet(file)
    with pytest.raises(ResultError, match=r"were edited after the audit: outputs/mine.parquet"):
        rescore(home / "result")


@pytest.mark.parametrize("name", ["../outside", "/etc/passwd", "", "a\0b", "outputs/../../outside"])
def test_a_name_that_leads_out_is_not_followed(home: Path, name: str) -> None:
    (home / "outside").write_text("secret")
    file = home / "result" / "provenance.json"
    content = json.loads(file.read_text())
    content["files"][name] = sha256(b"secret").hexdigest()
    file.write_text(json.dumps(content))
    assert [c.name for c in ombud.verify(home / "result").select("changed")] == [name]


@pytest.mark.parametrize("part", ["files", "inputs"])
def test_hashes_of_another_form_are_refused(home: Path, part: str) -> None:
    file = home / "result" / "provenance.json"
    for hashes in ([], {"a": 1}, "x"):
        content = json.loads(file.read_text())
        content[part] = hashes
        file.write_text(json.dumps(content))
        assert f"{part} must name files" in command("verify", home / "result", code=2)


def test_pipes_and_links_in_a_folder_are_not_read(home: Path) -> None:
    rows = home / "result" / "rows" / "00" / "mine.parquet"
    rows.unlink()
    os.mkfifo(rows)
    assert "CHANGED: rows/00/mine.parquet" in command("verify", home / "result", code=1)
    rows.unlink()
    rows.symlink_to(home / "labels.parquet")
    assert "CHANGED: rows/00/mine.parquet" in command("verify", home / "result", code=1)
    estimates = home / "result" / "estimates.json"
    estimates.unlink()
    os.mkfifo(estimates)
    assert "no ordinary file" in command("report", home / "result", code=2)


def test_only_stored_results_can_be_verified(home: Path) -> None:
    with pytest.raises(ResultError, match="give run"):
        Result(Plan(), ()).verify()
    with pytest.raises(ResultError, match="no result folder"):
        ombud.verify(home / "nowhere")
    with pytest.raises(ResultError, match="missing"):
        ombud.verify(home)
