"""Result folders that are written by one run at a time, and left unlocked by a kill."""

from __future__ import annotations

import multiprocessing
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from ombud.audits import Audit, Result
from ombud.audits.plan import StatisticsPlan
from ombud.errors import ResultError
from ombud.files import locked_folder
from ombud.metrics import ShareGap
from ombud.worlds import small_world

pytest.importorskip("fcntl", reason="locks of folders are a thing of Unix")


def audit() -> Audit:
    world = small_world(seed=3)
    quick = StatisticsPlan(replicates=100)
    return Audit(world.dataset, world.recommenders()[:1], [ShareGap(k=10)], statistics=quick)


def hold(folder: Path, ready: Any) -> None:
    with locked_folder(folder):
        ready.send(True)
        signal.pause()


def test_a_second_run_is_refused_until_the_first_is_killed(tmp_path: Path) -> None:
    here, there = multiprocessing.get_context("fork").Pipe()
    first = multiprocessing.get_context("fork").Process(target=hold, args=(tmp_path / "r", there))
    first.start()
    assert here.recv()
    with pytest.raises(ResultError, match="another run is writing to"):
        audit().run(tmp_path / "r")
    audit().run(tmp_path / "other")
    assert first.pid is not None
    os.kill(first.pid, signal.SIGKILL)
    first.join()
    result = audit().run(tmp_path / "r")
    assert Result.load(tmp_path / "r").verify().is_intact
    assert result.estimates == audit().run(tmp_path / "r").estimates, "and nothing holds it now"
    assert not [p for p in (tmp_path / "r").rglob("*") if "lock" in p.name]


def test_a_lock_ends_with_an_error_inside(tmp_path: Path) -> None:
    for _ in range(2):
        with pytest.raises(ValueError, match="mine"), locked_folder(tmp_path / "r"):
            raise ValueError("mine")
