"""The command line in this process, and the rule that holds for every row of every table."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ombud.cli import app

Told = Callable[..., str]
LONGEST = 4000
"""Characters of any message: a hostile file is not printed whole."""


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Told:
    """Run a command in an empty folder; return what it printed, on one line of single spaces.

    Whatever was fed to it, there is no traceback, no "did not expect", no raw control character,
    and no message without an end.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OMBUD_CACHE", str(tmp_path / "cache"))

    def run(*words: object, code: int) -> str:
        done = CliRunner().invoke(app, [str(word) for word in words])
        text = done.output
        assert "did not expect" not in text, text
        assert "Traceback" not in text, text
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        assert done.exit_code == code, f"exit code {done.exit_code}: {text[:LONGEST]}"
        assert len(text) < LONGEST, f"{len(text)} characters were printed"
        assert not any(c < " " and c != "\n" for c in text), repr(text)
        assert not any(c in text for c in "\x7f\x9b\u202e\u2066\u200b"), repr(text)
        return " ".join(text.split())

    return run
