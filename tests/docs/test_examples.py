"""Example plans are what a user starts from: each is a whole plan, and says how it is run."""

from __future__ import annotations

from pathlib import Path

import pytest

from ombud import registry
from ombud.audits.plan import Plan
from ombud.audits.presets import complete

EXAMPLES = Path(__file__).parents[2] / "examples"
PLANS = sorted(path for path in EXAMPLES.rglob("*.toml"))


@pytest.mark.parametrize("path", PLANS, ids=lambda p: p.relative_to(EXAMPLES).as_posix())
def test_an_example_is_a_whole_plan(path: Path) -> None:
    plan = complete(Plan.load(path))
    assert plan.metrics or plan.analyses
    kinds = {*registry.names("recommender"), *registry.names("moderator")}
    assert {settings["type"] for settings in plan.systems.values()} <= kinds
    for metric in plan.metrics:
        registry.create("metric", metric["name"], {k: v for k, v in metric.items() if k != "name"})


@pytest.mark.parametrize("path", PLANS, ids=lambda p: p.relative_to(EXAMPLES).as_posix())
def test_an_example_names_the_command_that_runs_it(path: Path) -> None:
    if path.parent.name != "ci":
        assert f"ombud run examples/{path.relative_to(EXAMPLES).as_posix()}" in path.read_text()
