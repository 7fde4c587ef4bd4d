"""Cached kernels follow every file that they may call."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("numba")

import ombud.systems.recommenders.kernels as kernels

CALLER = """
from helper import helper
from ombud.systems.recommenders.kernels._jit import kernel

@kernel()
def caller(x):
    return helper(x) + 1

print(caller(1), sum(caller.stats.cache_hits.values()))
"""
HELPER = """
from ombud.systems.recommenders.kernels._jit import kernel

@kernel()
def helper(x):
    return FACTOR * x
"""


def run(folder: Path, factor: int) -> list[str]:
    (folder / "helper.py").write_text(HELPER.replace("FACTOR", str(factor)))
    # A file of the same size and time looks unchanged to numba itself.
    os.utime(folder / "helper.py", (1_700_000_000, 1_700_000_000))
    os.utime(folder / "caller.py", (1_700_000_000, 1_700_000_000))
    environment = os.environ | {"NUMBA_CACHE_DIR": str(folder / "cache")}
    environment["PYTHONPATH"] = os.pathsep.join([str(Path(kernels.__file__).parents[4])])
    done = subprocess.run(
        [sys.executable, "caller.py"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split()


def test_a_changed_helper_changes_what_calls_it(tmp_path: Path) -> None:
    (tmp_path / "caller.py").write_text(CALLER)
    assert run(tmp_path, 10) == ["11", "0"]
    assert run(tmp_path, 10) == ["11", "1"]  # from the cache
    assert run(tmp_path, 20) == ["21", "0"]
    shutil.rmtree(tmp_path / "cache")
