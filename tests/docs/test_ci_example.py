"""The example of a gate in continuous integration says what the command line understands."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from ombud.audits import Plan
from ombud.audits.condition import Condition
from ombud.audits.presets import complete

FOLDER = Path(__file__).parents[2] / "examples" / "ci"


def test_the_commands_of_the_example_are_understood() -> None:
    text = (FOLDER / "moderation-gate.yml").read_text()
    check = re.search(r"ombud check.*?(?=\n      - )", text, re.DOTALL)
    assert check is not None
    words = shlex.split(check.group())
    conditions = [words[i + 1] for i, word in enumerate(words) if word == "--fail-if"]
    assert len(conditions) == 2
    assert "--fail-if-nothing-judged" in words
    for condition in conditions:
        Condition(condition)
        assert "p_adjusted < 0.05" in condition  # the interval alone is of one group among many
    assert re.search(r"ombud run audit/plan\.toml --folder audit/result", text)


def test_the_plan_of_the_example_measures_what_the_gate_names() -> None:
    plan = complete(Plan.load(FOLDER / "plan.toml"))
    assert {"suppression", "undecided-share"} <= {spec["name"] for spec in plan.metrics}
