"""Questions on a terminal: a real one, whose other end answers as soon as it is asked."""

from __future__ import annotations

import os
import pty
import random
import sys
from pathlib import Path

import pytest


def talk(folder: Path, words: list[str], answers: list[tuple[str, str]]) -> tuple[int, str]:
    """Run ombud on a terminal; return its exit code, and all that it printed."""
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(folder)
        os.environ["COLUMNS"] = "200"
        os.execv(sys.executable, [sys.executable, "-m", "ombud", *words])
    told, waiting, asked = "", list(answers), 0
    while True:
        try:
            block = os.read(terminal, 65536)
        except OSError:  # the other end is closed
            break
        if not block:
            break
        told += block.decode("utf-8", "replace")
        while waiting and waiting[0][0] in told[asked:]:
            asked += told[asked:].index(waiting[0][0]) + len(waiting[0][0])
            os.write(terminal, f"{waiting.pop(0)[1]}\n".encode())
    os.close(terminal)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert not waiting, f"never asked: {waiting}\n{told}"
    return code, told


@pytest.mark.skipif(sys.platform == "win32", reason="there is no pty")
def test_questions_are_asked_one_by_one_and_the_result_follows(tmp_path: Path) -> None:
    rng = random.Random(1)
    texts = [(n, f"words of text {n}", n % 2, rng.random() < 0.4) for n in range(80)]
    rows = "\n".join(f"{n},{text},{safe}" for n, text, safe, _ in texts)
    (tmp_path / "a.csv").write_text(f"id,text,is_safe\n{rows}\n")
    rows = "\n".join(f"{n};{'yes' if flagged else 'no'}" for n, *_, flagged in texts)
    (tmp_path / "b.csv").write_text(f"q;w\n{rows}\n")
    code, told = talk(
        tmp_path,
        ["audit", "a.csv", "b.csv"],
        [
            ("--read texts.yes [0]:", ""),  # the proposal is right
            ("--as:", "decisions"),
            ("--map id:", "q"),
            ("--map decisions.flagged:", "w"),
        ],
    )
    assert code == 0, told
    flags = [flagged for *_, safe, flagged in texts if safe]
    assert f"{100 * sum(flags) / len(flags):.1f}%" in told
    assert (tmp_path / "audit" / "plan.toml").is_file()
