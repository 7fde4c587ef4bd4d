"""The demo writes into its own folder, and over nothing else."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ombud.audits import Plan
from ombud.cli import app
from ombud.cli.demo import write_demo
from ombud.data.tables import TABLES
from ombud.errors import PlanError


def state(folder: Path) -> dict[str, str]:
    return {
        str(p.relative_to(folder)): sha256(p.read_bytes()).hexdigest()
        for p in sorted(folder.rglob("*"))
        if p.is_file()
    }


def test_another_seed_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    write_demo(folder, 7)
    before = state(folder)
    result = CliRunner().invoke(app, ["demo", "-o", str(folder), "--seed", "8"])
    assert result.exit_code == 2
    assert "another seed" in result.output and "nothing was written" in result.output
    assert state(folder) == before
    write_demo(folder, 7)
    assert state(folder) == before


def test_a_changed_plan_and_other_files_are_kept(tmp_path: Path) -> None:
    _, plan = write_demo(tmp_path / "demo", 7)
    plan.write_text(plan.read_text() + "# mine\n")
    with pytest.raises(PlanError, match="a plan that was changed"):
        write_demo(tmp_path / "demo", 7)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "labels.parquet").write_text("mine")
    with pytest.raises(PlanError, match="not the demo's"):
        write_demo(tmp_path / "mine", 7)
    with pytest.raises(PlanError, match="it is a file"):
        write_demo(tmp_path / "mine" / "labels.parquet", 7)
    assert state(tmp_path / "mine") == {"labels.parquet": sha256(b"mine").hexdigest()}


def test_the_files_that_the_plans_name_are_written(tmp_path: Path) -> None:
    named = []
    for path in write_demo(tmp_path, 7):
        plan = Plan.load(path)
        named += [getattr(plan.data, name) for name in TABLES if getattr(plan.data, name)]
        named += [system["path"] for system in plan.systems.values()]
    assert len(named) == 10 and all(Path(path).is_file() for path in named)
