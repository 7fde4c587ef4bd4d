"""One run of the preset on the world of two tastes, for all tests of the question."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ombud.audits import Audit, Result

sys.path.insert(0, str(Path(__file__).parent))
from two_tastes import SYSTEMS, plan_of, write_world


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("counterfactual")
    write_world(folder)
    return folder


@pytest.fixture(scope="session")
def stored(world: Path) -> Path:
    plan = plan_of(
        world, SYSTEMS, black_box=["Our EASE"], queries=150, sets=["dark", "kind"],
        retrained_users=5, distances=["rank-biased", "label-share"],
    )  # fmt: skip
    Audit.from_plan(plan).run(world / "result")
    return world / "result"


@pytest.fixture(scope="session")
def result(stored: Path) -> Result:
    return Result.load(stored)
