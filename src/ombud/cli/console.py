"""What every command shares: output, progress, errors as sentences."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from ombud.errors import OmbudError

__all__ = ["FAILED_GATE", "JsonOption", "console", "print_json", "progress_bar", "speaks_plainly"]

FAILED_GATE = 1
"""Exit code when a gate is closed; errors of use and of data exit with 2."""

P = ParamSpec("P")
R = TypeVar("R")

JsonOption = typer.Option("--json", help="Print JSON for a program to read.")

console = Console()
_errors = Console(stderr=True)


def print_json(content: Any) -> None:
    """Print JSON on standard output, and nothing else."""
    sys.stdout.write(json.dumps(content, indent=1, ensure_ascii=False) + "\n")


@contextmanager
def progress_bar() -> Iterator[Callable[[int, int, str], None]]:
    """Show progress on standard error while a person is watching; stay silent otherwise."""
    bar = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
        console=_errors,
        transient=True,
        disable=not _errors.is_terminal,
    )
    with bar:
        task = bar.add_task("starting", total=None)

        def show(done: int, total: int, note: str) -> None:
            bar.update(task, completed=done, total=total, description=note)

        yield show


def speaks_plainly(command: Callable[P, R]) -> Callable[P, R]:
    """Turn ombud's errors into a sentence and exit code 2, and Ctrl-C into a word."""

    @wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return command(*args, **kwargs)
        except OmbudError as error:
            _errors.print("error:", style="bold red", end=" ")
            _errors.print(str(error), markup=False, highlight=False, soft_wrap=True)
            raise typer.Exit(2) from None
        except KeyboardInterrupt:
            _errors.print("stopped; what was finished is kept. Start it again to go on.")
            raise typer.Exit(130) from None

    return run
