"""Asking for help, for the version or for a completion loads next to nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from inspect import getdoc

import pytest
import typer
from typer.testing import CliRunner

from ombud.cli import app
from ombud.cli.commands import COMMANDS, CommandGroup

HEAVY = {"polars", "scipy", "numpy", "pyarrow", "numba", "rich"}
"""pydantic is looked for apart: typer itself imports it when it reads the words of a command."""
MOST_MODULES = 250
"""All modules after ``ombud --help``, 148 here, 1,117 before the table."""
MOST_OF_A_COMMAND = 600

RUN = """
import sys
sys.argv = ["ombud", *sys.argv[1:]]
try:
    from ombud.cli import main
    main()
except SystemExit:
    pass
print("\\n=====", *sys.modules, sep="\\n")
"""
runner = CliRunner()


def loaded(*words: str, typed: str | None = None) -> tuple[str, set[str]]:
    """Return what a command prints, and the modules that it loaded."""
    env = dict(os.environ)
    if typed is not None:
        place = str(len(typed.split(" ")) - 1)
        env |= {"_OMBUD_COMPLETE": "complete_bash", "COMP_WORDS": typed, "COMP_CWORD": place}
    done = subprocess.run(
        [sys.executable, "-c", RUN, *words], capture_output=True, text=True, check=True, env=env
    )
    printed, _, modules = done.stdout.partition("\n=====\n")
    return printed, set(modules.split())


@pytest.mark.parametrize("word", ["--help", "--version"])
def test_help_and_version_load_next_to_nothing(word: str) -> None:
    printed, modules = loaded(word)
    assert "ombud" in printed
    assert not modules & (HEAVY | {"pydantic"})
    assert len(modules) <= MOST_MODULES


@pytest.mark.parametrize(
    ("typed", "expected"),
    [("ombud d", "demo"), ("ombud run --", "--folder"), ("ombud data ", "describe")],
)
def test_completion_loads_no_library_of_data(typed: str, expected: str) -> None:
    printed, modules = loaded(typed=typed)
    assert expected in printed.split()
    assert not modules & HEAVY
    assert len(modules) <= MOST_OF_A_COMMAND


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_every_command_loads_no_library_of_data(name: str) -> None:
    printed, modules = loaded(name, "--help")
    assert "Usage" in printed
    assert not modules & HEAVY


def test_importing_ombud_loads_no_other_package() -> None:
    code = "import ombud, sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    modules = set(done.stdout.split())
    assert not modules & (HEAVY | {"pydantic", "typer"})
    assert {m for m in modules if m.startswith("ombud")} == {"ombud"}


def test_an_audit_and_its_report_load_nothing_that_draws() -> None:
    code = """
import sys
import ombud._builtins
from ombud.audits import Audit
from ombud.metrics import LabelShare
from ombud.worlds import small_world

world = small_world(seed=1)
result = Audit(world.dataset, world.recommenders(), [LabelShare(k=10)]).run()
# scipy.stats takes as long to import as everything else together.
assert not {"scipy.stats", "numba"} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)


@pytest.mark.parametrize("name", COMMANDS)
def test_table_says_what_the_docstring_says(name: str) -> None:
    group = typer.main.get_command(app)
    assert isinstance(group, CommandGroup)
    command = group.load(name)
    assert command.name == name
    text = command.help if hasattr(command, "commands") else getdoc(command.callback)
    assert text is not None
    assert COMMANDS[name].help == text.splitlines()[0]


@pytest.mark.parametrize(
    ("words", "suggested"),
    [
        (["doctr"], "doctor"),
        (["raport"], "report"),
        (["data", "lst"], "list"),
        (["run", "plan.toml", "--fodler", "x"], "--folder"),
    ],
)
def test_mistyped_words_get_a_suggestion(words: list[str], suggested: str) -> None:
    result = runner.invoke(app, words)
    assert result.exit_code == 2
    assert suggested in result.output
