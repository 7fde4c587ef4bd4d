"""Errors as sentences, each with its own exit code."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from ombud.cli import app
from ombud.cli.console import print_json, progress_bar, reports_errors, say
from ombud.errors import PlanError


def run(error: BaseException, **env: str) -> tuple[int, str]:
    @reports_errors
    def command() -> None:
        raise error

    alone = typer.Typer(pretty_exceptions_enable=False)
    alone.command()(command)
    result = CliRunner().invoke(alone, [], env={"OMBUD_TRACEBACK": "", **env})
    return result.exit_code, result.output


def test_an_unexpected_error_is_not_a_closed_gate() -> None:
    code, text = run(ZeroDivisionError("by nought"))
    assert code == 3
    assert text.startswith("error: ") and "ZeroDivisionError: by nought" in text
    assert "report it" in text and "OMBUD_TRACEBACK=1" in text and "Traceback" not in text


def test_the_traceback_can_be_had() -> None:
    code, text = run(ZeroDivisionError("by nought"), OMBUD_TRACEBACK="1")
    assert code == 3 and "Traceback (most recent call last)" in text


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (PlanError("no such thing"), 2),
        (PermissionError(13, "Permission denied", "some.csv"), 2),
        (OSError("no space"), 2),
        (MemoryError(), 2),
        (RecursionError(), 3),
        (KeyboardInterrupt(), 130),
        (typer.Exit(7), 7),
    ],
    ids=lambda value: type(value).__name__,
)
def test_exit_codes(error: BaseException, code: int) -> None:
    assert run(error)[0] == code


def test_an_error_of_the_system_names_the_file() -> None:
    assert run(PermissionError(13, "Permission denied", "some.csv"))[1] == (
        "error: some.csv: Permission denied\n"
    )


@pytest.mark.parametrize("words", [["run"], ["tune", "--system", "a", "-o", "t"]])
def test_a_folder_is_no_plan(tmp_path: Path, words: list[str]) -> None:
    result = CliRunner().invoke(app, [words[0], str(tmp_path), *words[1:]])
    assert result.exit_code == 2
    assert "is a folder; a plan is a TOML file" in result.output


def test_what_is_said_is_inert(capsys: pytest.CaptureFixture[str]) -> None:
    say("two\nlines, [bold]one\x1b[0m\u202e[/bold]")
    assert capsys.readouterr().out == "two\nlines, [bold]one␛[0m⟨U+202E⟩[/bold]\n"


def test_json_keeps_every_character(capsys: pytest.CaptureFixture[str]) -> None:
    content = {"ä 😀": "\u202e \x7f \x9b \ud800 \U000e0001 \u2028 \n"}
    print_json(content)
    text = capsys.readouterr().out
    assert json.loads(text) == content
    assert "ä 😀" in text and not {"\u202e", "\x7f", "\x9b", "\u2028"} & set(text)


_STOPPED = """
import sys
class Stop:
    def find_spec(self, name, path=None, target=None):
        if name == stopped:
            raise KeyboardInterrupt
stopped = sys.argv.pop(1)
sys.meta_path.insert(0, Stop())
from ombud.cli import main
main()
"""


@pytest.mark.parametrize(
    "words", [["ombud.cli.commands"], ["ombud.cli.audits", "run", "plan.toml"]]
)
def test_stopped_while_it_is_loaded_it_says_nothing(words: list[str]) -> None:
    done = subprocess.run([sys.executable, "-c", _STOPPED, *words], capture_output=True, text=True)
    assert done.returncode == 130
    assert done.stdout == done.stderr == ""


_TERMINATED = """
import os, signal
import ombud.cli.commands
def wait():
    os.kill(os.getpid(), signal.SIGTERM)
    signal.pause()
ombud.cli.commands.app = wait
from ombud.cli import main
main()
"""


def test_sigterm_is_treated_as_ctrl_c() -> None:
    done = subprocess.run([sys.executable, "-c", _TERMINATED], capture_output=True, text=True)
    assert done.returncode == 130
    assert done.stdout == done.stderr == ""


def test_piped_progress_is_a_line_now_and_then(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter([0.0, 1.0, 1.0, 11.0, 11.0, 12.0, 30.0, 30.0, 30.0])
    monkeypatch.setattr("ombud.cli.console.monotonic", lambda: next(clock))
    with progress_bar() as progress:
        progress(0, 4000, "Querying ALS")
        progress(2000, 4000, "Querying ALS")
        progress(3000, 4000, "Querying ALS")
        progress(0, 1, "Measuring recall")
    assert capsys.readouterr().err == "Querying ALS: 50%\nMeasuring recall\n"


def test_quiet_progress_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_bar(quiet=True) as progress:
        progress(0, 1, "measuring")
    assert capsys.readouterr().err == ""
