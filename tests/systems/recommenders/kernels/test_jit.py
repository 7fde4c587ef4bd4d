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
    # To Python too, if it stored bytecode.
    environment = os.environ | {"NUMBA_CACHE_DIR": str(folder / "cache")}
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
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


LOOPS = """
import numpy as np
from ombud.systems.recommenders.kernels._jit import kernel, prange

@kernel(parallel=True, fastmath=True)
def sums(x, out):
    for row in prange(x.shape[0]):
        for column in range(x.shape[1]):
            out[row] += x[row, column] * x[0, column]
"""
USE = """
import numba
import numpy as np
from loops import sums
from ombud.systems.recommenders.kernels.compiling import telling

@numba.njit
def twice(x):
    return 2 * x

x = np.random.default_rng(0).normal(size=(50, 37)).astype(np.float32)
out = np.zeros(50, np.float32)
with telling(lambda done, total, note: print(note)):
    sums(x, out)
    twice(1)
twice(1.0)
print(out.tobytes().hex(), sum(sums.stats.cache_hits.values()))
"""
MODELS = """
import numpy as np
from ombud import registry
from ombud.data.interactions import Interactions

rng = np.random.default_rng(0)
users, items = np.nonzero(rng.random((200, 120)) < 0.3)
data = Interactions.from_arrays(users, items, rng.integers(1, 6, len(users)))
for name in ("explicit-als", "implicit-als", "svd", "bpr"):
    model = registry.create("recommender", name, {"factors": 16}).fit(data)
    print(model.item_factors.tobytes().hex())
"""


def use(script: str, folder: Path) -> str:
    # To Python too, if it stored bytecode.
    environment = os.environ | {"NUMBA_CACHE_DIR": str(folder / "cache")}
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
    environment["PYTHONPATH"] = str(Path(kernels.__file__).parents[4])
    command = [sys.executable, "-c", script]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout


def test_the_first_use_is_loaded_from_the_cache_and_whoever_waits_is_told(tmp_path: Path) -> None:
    (tmp_path / "loops.py").write_text(LOOPS)
    *told, first = use(USE, tmp_path).splitlines()
    *told_again, again = use(USE, tmp_path).splitlines()
    assert first == again
    assert first.split()[1] == "1"
    waits = ["compiling sums: once on this machine", "compiling twice: once on this machine"]
    assert told == waits
    assert told_again == waits[1:]  # which is in no file, so not cached


@pytest.mark.slow
def test_the_first_training_on_a_machine_gives_what_later_ones_give(tmp_path: Path) -> None:
    first, again = use(MODELS, tmp_path), use(MODELS, tmp_path)
    assert len(first) > 1000
    assert first == again
