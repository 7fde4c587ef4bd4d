"""How much code a plain audit runs through: few modules, and no question but its own."""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType
from typing import Any

from typer.testing import CliRunner

from ombud.cli import app
from ombud.data.tables import write_table
from ombud.worlds import small_world

MOST_MODULES = 80
MOST_OF_QUESTIONS = 5


def entered(*words: str) -> set[str]:
    """Return the modules of ombud whose functions a command calls."""
    found = set()

    def look(frame: FrameType, event: str, arg: Any) -> None:
        if event == "call":
            found.add(frame.f_globals.get("__name__", ""))

    before = sys.getprofile()
    sys.setprofile(look)
    try:
        done = CliRunner().invoke(app, words)
    finally:
        sys.setprofile(before)
    assert done.exit_code == 0, done.output
    return {name for name in found if name.startswith("ombud.")}


def test_a_plain_run_enters_few_modules(tmp_path: Path) -> None:
    world = small_world(seed=4)
    for name in ("interactions", "labels", "users"):
        write_table(name, world.dataset, tmp_path / f"{name}.parquet")
    lists = world.recommenders()[0].recommend(world.interactions.users.ids, 10).to_frame()
    lists.write_parquet(tmp_path / "mine.parquet")
    (tmp_path / "plan.toml").write_text(
        '[data]\ninteractions = "interactions.parquet"\nlabels = "labels.parquet"\n'
        'users = "users.parquet"\n[systems.mine]\ntype = "recorded"\npath = "mine.parquet"\n'
        '[[metrics]]\nname = "share-gap"\nk = 10\n[statistics]\nreplicates = 100\n'
    )
    plan = str(tmp_path / "plan.toml")
    # The first run imports modules and reads taxonomies, whose code is not that of the audit.
    entered("run", plan, "--folder", str(tmp_path / "first"))
    found = entered("run", plan, "--folder", str(tmp_path / "second"))
    assert len(found) <= MOST_MODULES, sorted(found)
    questions = {name for name in found if name.startswith("ombud.questions.")}
    assert "ombud.questions.exposure" in questions
    assert len(questions) <= MOST_OF_QUESTIONS, questions
