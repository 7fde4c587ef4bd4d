"""One run of the preset on the world of two tastes, for all tests of the question."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ombud.audits import Result

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def stored(preset_result: Callable[[str], Result]) -> Path:
    folder = preset_result("counterfactual").folder
    assert folder is not None
    return folder


@pytest.fixture(scope="session")
def world(stored: Path) -> Path:
    return stored.parent


@pytest.fixture(scope="session")
def result(stored: Path) -> Result:
    return Result.load(stored)
