"""The demo finds what was planted and nothing in a neutral system; it writes over nothing else."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from ombud.audits import Audit, Plan
from ombud.cli import app
from ombud.cli.demo import write_demo
from ombud.data.tables import TABLES
from ombud.errors import PlanError
from ombud.report.verdict import verdicts_of

ROOT = Path(__file__).parents[2]
WHOLE = os.environ.get("OMBUD_SLOW", "") not in {"", "0"}
PLANTED = {
    "warnings": {"more-violence", "more-animal-death-for-18-24"},
    "suppression": {"suppressing"},
    "authors": {"fewer-women"},
    "delicate": {"missing"},
}
FAMILY: dict[str, dict[str, Any]] = {
    "suppression": {"name": "suppression"},
    "authors": {"name": "balance-gap", "k": 10},
    "delicate": {"name": "detection-recall"},
}


def answers(verdict: Any) -> dict[str, str]:
    return {one["system"]: one["answer"] for one in verdict["systems"]}


def stored(folder: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    for name in PLANTED:
        (verdict,) = json.loads((folder / name / "verdict.json").read_text())["verdicts"]
        yield name, verdict


def test_what_was_planted_is_found_and_nothing_else(demo: tuple[Path, str]) -> None:
    for name, verdict in stored(demo[0]):
        assert verdict["answer"] == "yes"
        found = answers(verdict)
        assert {system for system, answer in found.items() if answer == "yes"} == PLANTED[name]
        assert found["neutral"] == "no clear evidence"


def test_the_terminal_has_a_verdict_for_each_question_and_ends_with_the_card(
    demo: tuple[Path, str],
) -> None:
    folder, printed = demo
    for name, verdict in stored(folder):
        assert verdict["question"] in printed
        assert f"report: ombud-demo/{name}/report.html" in printed
    assert printed.rstrip().endswith("card: ombud-demo/index.html")
    assert len(printed.splitlines()) <= 44
    for words in ("animal death", "violence", "islanders", "works by women", "night workers"):
        assert words in printed


def test_the_fifth_verdict_states_a_probability_under_retraining(demo: tuple[Path, str]) -> None:
    folder, printed = demo
    (verdict,) = json.loads((folder / "counterfactual" / "verdict.json").read_text())["verdicts"]
    assert verdict["headline"].startswith("After one changed rating and retraining, EASE")
    assert "After one changed rating and retraining, EASE recommends an item outside" in printed


def test_the_readme_shows_what_the_demo_prints(demo: tuple[Path, str]) -> None:
    lines = "\n".join(line.rstrip() for line in demo[1].strip().splitlines())
    block = f"<!-- demo -->\n```text\n{lines}\n```\n<!-- /demo -->"
    assert block in (ROOT / "README.md").read_text()


def test_every_page_says_simulated_and_the_card_links_the_reports(demo: tuple[Path, str]) -> None:
    folder, _ = demo
    pages = {path: path.read_text() for path in folder.rglob("*.html")}
    assert len(pages) >= 5
    for path, text in pages.items():
        assert "simulated data" in text, path
    card = pages[folder / "index.html"]
    assert [f'href="{name}/report.html"' in card for name in PLANTED] == [True] * 4
    assert "2,059 acceptable texts" in card and "2,852 labeled texts" in card
    assert card.count("Not part of this audit.") == 1 and len(card.encode()) < 200_000


def brief(path: Path) -> dict[str, str]:
    """Return the answer for each system, by the comparisons alone that the verdict is made of."""
    plan = Plan.load(path)
    if path.stem in FAMILY:
        analysis = "creator-catalogue" if path.stem == "authors" else "set-sizes"
        some = {"metrics": (FAMILY[path.stem],), "analyses": ({"name": analysis},)}
        plan = plan.model_copy(update=some)
    return answers(verdicts_of(Audit.from_plan(plan).run())[0].to_dict())


@pytest.mark.skipif(not WHOLE, reason="takes three minutes; OMBUD_SLOW=1")
def test_neutral_systems_show_nothing_with_other_seeds(
    demo: tuple[Path, str], tmp_path: Path
) -> None:
    for name, verdict in stored(demo[0]):
        assert brief(demo[0] / f"{name}.toml") == answers(verdict)
    quiet = dict.fromkeys(PLANTED, 0)
    found = dict.fromkeys(PLANTED, 0)
    for seed in range(20, 40):
        for path in write_demo(tmp_path / str(seed), seed):
            answer = brief(path)
            quiet[path.stem] += answer["neutral"] == "no clear evidence"
            found[path.stem] += all(answer[system] == "yes" for system in PLANTED[path.stem])
    assert min(quiet.values()) >= 18, quiet
    assert min(found.values()) >= 18, found


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
    *_, plan = write_demo(tmp_path / "demo", 7)
    plan.write_text(plan.read_text() + "# mine\n")
    with pytest.raises(PlanError, match="a plan that was changed"):
        write_demo(tmp_path / "demo", 7)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "labels.csv").write_text("mine")
    with pytest.raises(PlanError, match="not the demo's"):
        write_demo(tmp_path / "mine", 7)
    with pytest.raises(PlanError, match="it is a file"):
        write_demo(tmp_path / "mine" / "labels.csv", 7)
    assert state(tmp_path / "mine") == {"labels.csv": sha256(b"mine").hexdigest()}


def test_the_files_that_the_plans_name_are_written(tmp_path: Path) -> None:
    named = []
    for path in write_demo(tmp_path, 7):
        plan = Plan.load(path)
        named += [getattr(plan.data, name) for name in TABLES if getattr(plan.data, name)]
        named += [system["path"] for system in plan.systems.values()]
    assert len(named) == 23 and all(Path(path).is_file() for path in named)
