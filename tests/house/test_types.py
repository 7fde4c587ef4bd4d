"""Types are checked strictly; a test, so that it runs beside the others on two cores."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_mypy_is_content() -> None:
    pytest.importorskip("mypy", reason="mypy is not installed (requirements-test.txt)")
    done = subprocess.run([sys.executable, "-m", "mypy"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
