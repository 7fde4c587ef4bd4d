"""What every command shares: output, progress, errors as sentences."""

from __future__ import annotations

import json
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from time import monotonic
from typing import TYPE_CHECKING, Any, NoReturn, ParamSpec, TypeVar, cast

import typer

from ombud.errors import EditedResultError, OmbudError
from ombud.report.display import visible

if TYPE_CHECKING:
    from rich.console import Console


FAILED_GATE = 1
"""Exit code when a gate is closed or a result is not as it was written, and of nothing else."""

UNUSABLE = 2
"""Exit code of errors of use, of data and of files."""

EDITED = 4
"""Exit code when a gate or a run refuses a result that was edited after the audit."""

UNEXPECTED = 3
"""Exit code of errors that ombud did not foresee."""

_P = ParamSpec("_P")
_R = TypeVar("_R")
_STRANGE = re.compile(r"[^\n\x20-\x7e]")

JsonOption = typer.Option("--json", help="Print JSON for a program to read.")
QuietOption = typer.Option("--quiet", "-q", help="Print the report's path alone; no progress.")
VerboseOption = typer.Option("--verbose", "-v", help="Print the table of values and exclusions.")

_WIDEST = 700
"""Characters of a line of an error: parts of it may come from a file."""

_SECONDS_BETWEEN_LINES = 10.0
"""Where no person watches, progress is a line now and then."""


class _Screen:
    """A console that is made when it is first written to: help and completion need none."""

    def __init__(self, *, stderr: bool = False) -> None:
        self._stderr = stderr

    def __getattr__(self, name: str) -> Any:
        from rich.console import Console

        class Lasting(Console):
            def on_broken_pipe(self) -> None:
                let_go()

        if "_console" not in self.__dict__:
            self._console = Lasting(stderr=self._stderr)
        return getattr(self._console, name)

    def __enter__(self) -> Console:
        # A progress bar enters its console; Python looks that up in the class alone.
        return cast("Console", self.__getattr__("__enter__")())

    def __exit__(self, *raised: Any) -> None:
        self.__getattr__("__exit__")(*raised)


console = cast("Console", _Screen())
_errors = cast("Console", _Screen(stderr=True))


def let_go() -> bool:
    """Flush; where who read the output has left, write to nowhere from here on.

    The work goes on: whether a gate is open does not hang on whether anyone reads what it prints.

    Returns
    -------
    Whether nothing was lost that someone waits for: False on a full disk, say.
    """
    kept = True
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except OSError as error:
            kept &= isinstance(error, BrokenPipeError)
            os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
    return kept


def print_json(content: Any) -> None:
    """Print JSON on standard output, and nothing else; hidden characters are escaped."""
    text = json.dumps(content, indent=1, ensure_ascii=False)
    try:
        sys.stdout.write(_STRANGE.sub(_escaped, text) + "\n")
    except BrokenPipeError:
        let_go()


def _escaped(found: re.Match[str]) -> str:
    character = found.group()
    return character if visible(character) == character else json.dumps(character)[1:-1]


def say(text: str) -> None:
    """Print lines of which parts may come from data: plainly, and with nothing hidden in them."""
    _say(console, text)


def say_aside(text: str) -> None:
    """Print lines on standard error: for a person, and not for the program that reads on."""
    _say(_errors, text)


def _say(where: Console, text: str) -> None:
    for line in text.split("\n"):
        where.print(visible(line), markup=False, highlight=False, soft_wrap=True)


@contextmanager
def progress_bar(*, quiet: bool = False) -> Iterator[Callable[[int, int, str], None]]:
    """Show progress on standard error: a bar for a person, else a line now and then."""
    if quiet:
        yield lambda done, total, note: None
        return
    if not _errors.is_terminal:
        yield _lines_now_and_then(_SECONDS_BETWEEN_LINES)
        return
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeRemainingColumn,
    )

    bar = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
        console=_errors,
        transient=True,
    )
    with bar:
        task = bar.add_task("starting", total=None)

        def show(done: int, total: int, note: str) -> None:
            bar.update(task, completed=done, total=total, description=visible(note))

        yield show


def _lines_now_and_then(seconds: float) -> Callable[[int, int, str], None]:
    """Return progress that prints a line when so many seconds went by since the last."""
    last = monotonic()
    task, began = "", last

    def show(done: int, total: int, note: str) -> None:
        nonlocal last, task, began
        if note != task:
            task, began = note, monotonic()
        if monotonic() - last < seconds:
            return
        last = monotonic()
        say_aside(progress_line(note, done, total, last - began))

    return show


def progress_line(task: str, done: int, total: int, seconds: float) -> str:
    """Return how far a task is, and how long it will take where that is over a minute.

    Examples
    --------
    >>> progress_line("Training ALS", 3, 10, 90.0), progress_line("Measuring recall", 1, 2, 5.0)
    ('Training ALS: 30%, about 4 minutes left', 'Measuring recall: 50%')
    """
    if total <= 1 or not 0 < done <= total:
        return task
    left = seconds * (total - done) / done / 60
    remaining = f", about {left:.0f} minutes left" if left > 1 else ""
    return f"{task}: {done / total:.0%}{remaining}"


def reports_errors(command: Callable[_P, _R]) -> Callable[_P, _R]:
    """Turn errors into a sentence and an exit code that is not the gate's; Ctrl-C into a word.

    With ``OMBUD_TRACEBACK=1`` in the environment, the traceback is printed too.
    """

    @wraps(command)
    def run(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            return command(*args, **kwargs)
        except (typer.Exit, typer.Abort, typer.BadParameter, BrokenPipeError):
            raise
        except EditedResultError as error:
            _fail(str(error), EDITED)
        except OmbudError as error:
            _fail(str(error), UNUSABLE)
        except KeyboardInterrupt:
            _errors.print("Stopped. Finished steps are kept: run the same command to resume.")
            raise typer.Exit(130) from None
        except MemoryError:
            _fail("there is not enough memory for this on this machine", UNUSABLE)
        except OSError as error:
            about = f"{error.filename}: " if error.filename is not None else ""
            _fail(f"{about}{error.strerror or error}", UNUSABLE)
        except Exception as error:
            _fail(
                f"ombud met something it did not expect ({type(error).__name__}: {error}). Please "
                "report it, with the traceback that the same command prints when the environment "
                "has OMBUD_TRACEBACK=1.",
                UNEXPECTED,
            )

    return run


def _fail(message: str, code: int) -> NoReturn:
    if os.environ.get("OMBUD_TRACEBACK", "") not in {"", "0"}:
        _say(_errors, traceback.format_exc())
    _errors.print("error:", style="bold red", end=" ")
    lines = [
        line if len(line) <= _WIDEST else f"{line[:_WIDEST]} ..." for line in message.split("\n")
    ]
    _say(_errors, "\n".join(lines))
    raise typer.Exit(code) from None
