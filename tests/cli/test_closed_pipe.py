"""A gate says the same to a pipe that nobody reads: exit code 1 is that of a closed gate alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ombud.audits.plan import Plan
from ombud.audits.result import Result
from ombud.audits.run_folder import RunFolder
from ombud.stats.estimate import Estimate


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pipe") / "result"
    found = Estimate(metric="gap", value=0.2, interval=(0.1, 0.3), method="x", n=9)
    result = Result(Plan(), (found,) * 50, provenance={"schema_version": 1})
    RunFolder(folder, {}, "").finish(result)
    return folder


def check(folder: Path, condition: str, *more: str, out: int) -> int:
    words = [sys.executable, "-m", "ombud", "check", str(folder), "--fail-if", condition, *more]
    return subprocess.run(words, stdout=out, stderr=subprocess.DEVNULL).returncode


@pytest.mark.parametrize(
    ("condition", "more", "code"),
    # Few words, that are written at the end, and many.
    [("value > 9", (), 0), ("value > 0", (), 1)],
)
def test_an_open_gate_behind_a_closed_pipe_is_open(
    folder: Path, condition: str, more: tuple[str, ...], code: int
) -> None:
    unread, out = os.pipe()
    os.close(unread)
    try:
        assert check(folder, condition, *more, out=out) == code
    finally:
        os.close(out)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full on this machine")
def test_words_that_could_not_be_written_are_an_error_and_no_verdict(folder: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        assert check(folder, "value > 9", out=full.fileno()) == 2
