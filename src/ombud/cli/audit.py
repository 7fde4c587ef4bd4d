"""From files to a result in one command."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast, get_type_hints

import typer

from ombud.cli.audits import show_result
from ombud.cli.console import (
    JsonOption,
    QuietOption,
    VerboseOption,
    progress_bar,
    reports_errors,
    say,
    say_aside,
)
from ombud.errors import DataError, PlanError

if TYPE_CHECKING:
    from ombud.audits.headers import Answers, Question
    from ombud.audits.scaffold import Start


@dataclass(frozen=True)
class FileOptions:
    """The files, and the options that say what they hold, as they were typed."""

    files: Annotated[
        list[str] | None,
        typer.Argument(
            help="Tables (Parquet, CSV, TSV, JSONL), or ROLE=FILE; default, those of the folder.",
            metavar="FILES",
        ),
    ] = None
    roles: Annotated[
        list[str] | None,
        typer.Option(
            "--as", help="What a file holds, as in labels=advisories.csv.", metavar="ROLE=FILE"
        ),
    ] = None
    maps: Annotated[
        list[str] | None,
        typer.Option(
            "--map",
            help="Which column is meant, as in user=member_no, or labels.item=title_no for one "
            "file.",
            metavar="NAME=COLUMN",
        ),
    ] = None
    yes_values: Annotated[
        str | None,
        typer.Option(help="Words that mean flagged, or that a label applies: removed,hidden."),
    ] = None
    unlabeled: Annotated[
        str | None,
        typer.Option(help="What an item without a row in the labels means: no, or unknown."),
    ] = None
    threshold: Annotated[
        float | None, typer.Option(help="The score from which on a text is flagged.")
    ] = None
    reads: Annotated[
        list[str] | None,
        typer.Option(
            "--read",
            help="How a file is written, as in interactions.dates=day-first or labels.decimal=,",
            metavar="ROLE.SETTING=VALUE",
        ),
    ] = None

    def start(self, folder: Path, *, accept: bool) -> Start:
        """Return what the files hold, as far as they and the options tell."""
        from ombud.audits.scaffold import Start

        return Start.from_files(_with_roles(self.files, self.roles), folder, _answers(self, accept))

    def with_answer(self, question: Question) -> FileOptions:
        """Return the options with what a person types."""
        if not question.flag:
            raise PlanError(question.text)
        flag, _, rest = question.flag.partition(" ")
        name, _, given = rest.partition(" ")[0].partition("=")
        proposal = question.proposal.removeprefix(f"{flag} ").split(":")[0]
        proposal = proposal.removeprefix(f"{name}=")
        shown = f"{flag} {name}" if flag in {"--map", "--read"} else flag
        typed = str(typer.prompt(shown, default=proposal or None)).strip()
        if flag == "--as" and name == "ROLE":
            role = typed.partition("=")[0]
            return replace(self, roles=[*(self.roles or ()), f"{role}={given}"])
        if flag == "--as":
            file = typed.rpartition("=")[2]
            return replace(self, roles=[*(self.roles or ()), f"{name}={file}"])
        if flag == "--yes-values":
            return replace(self, yes_values=typed)
        if flag == "--unlabeled":
            return replace(self, unlabeled=typed)
        if flag == "--threshold":
            try:
                return replace(self, threshold=float(typed))
            except ValueError:
                raise PlanError(f"{typed!r} is not a number") from None
        if flag == "--map":
            return replace(self, maps=[*(self.maps or ()), f"{name}={typed}"])
        return replace(self, reads=[*(self.reads or ()), f"{name}={typed}"])


def _answers(options: FileOptions, accept: bool) -> Answers:
    from ombud.audits.headers import ROLES, Answers

    if options.unlabeled not in {None, "no", "unknown"}:
        raise PlanError(f"--unlabeled {options.unlabeled}: expected no or unknown")
    columns = dict(_pair(one, "--map NAME=COLUMN") for one in options.maps or ())
    reading: dict[str, dict[str, Any]] = {}
    for one in options.reads or ():
        place, value = _pair(one, "--read ROLE.SETTING=VALUE")
        role, dot, setting = place.partition(".")
        role = role.replace("-", "_")
        if not dot or role not in ROLES:
            known = ", ".join(name.replace("_", "-") for name in ROLES)
            raise PlanError(f"--read {one}: expected ROLE.SETTING=VALUE, ROLE one of {known}")
        made: Any = value
        if setting in {"yes", "no", "missing", "names", "labels", "items"}:
            made = value.split(",")
        elif setting == "where":
            made = dict([_pair(value, "--read ROLE.where=COLUMN=VALUE")])
        elif setting in {"first_rank", "yes_from"} and re.fullmatch(r"-?\d*\.?\d+", value):
            made = float(value) if "." in value else int(value)
        elif setting in {"votes", "fold", "numbered", "fill_down"}:
            made = {"true": True, "false": False}.get(value, value)  # the plan refuses other words
        reading.setdefault(role, {})[setting] = made
    words = tuple(word.strip() for word in (options.yes_values or "").split(",") if word.strip())
    unlabeled: Any = options.unlabeled
    return Answers(columns, words, reading, unlabeled, options.threshold, accept)


def _pair(text: str, form: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name or not value:
        raise PlanError(f"{text!r}: expected {form}")
    return name.strip(), value


def _with_roles(files: list[str] | None, roles: list[str] | None) -> list[str]:
    """Return the files with what ``--as`` says of them."""
    pairs = [_pair(one, "--as ROLE=FILE") for one in roles or ()]
    made = []
    for file in files or ():
        said = [role for role, path in pairs if Path(path) == Path(file)]
        said = said or [role for role, path in pairs if Path(path).name == Path(file).name]
        made += [f"{role}={file}" for role in said] or [file]
    known = {Path(one.partition("=")[2] or one).name for one in made}
    return [*made, *(f"{role}={path}" for role, path in pairs if Path(path).name not in known)]


def takes_files(command: Callable[..., None]) -> Callable[..., None]:
    """Replace the first parameter of a command, its `FileOptions`, by one parameter per field."""
    hints = get_type_hints(FileOptions, include_extras=True)
    taken = {
        one.name: Parameter(
            one.name, Parameter.KEYWORD_ONLY, default=one.default, annotation=hints[one.name]
        )
        for one in fields(FileOptions)
    }
    _, *others = signature(command, eval_str=True).parameters.values()

    @wraps(command)
    def run(**given: Any) -> None:
        options = FileOptions(**{name: given.pop(name) for name in taken})
        command(options, **given)

    # Typer reads the signature, and then each annotation by its name.
    every = [*taken.values(), *(one.replace(kind=Parameter.KEYWORD_ONLY) for one in others)]
    cast(Any, run).__signature__ = Signature(every)
    run.__annotations__ = {one.name: one.annotation for one in every}
    return run


def print_start(start: Start) -> None:
    """Print what each file holds, and what was assumed."""
    for role in start.roles:
        columns = ", ".join(
            ours if ours == theirs else f"{ours} from {theirs}"
            for ours, theirs in role.columns.items()
        )
        say(f"{role.path}: {role.role.replace('_', ' ')} ({columns})")
    for word, texts in (("assumed", start.assumed), ("not used", start.unused)):
        for text in texts:
            say(f"{word}: {text}")


@reports_errors
@takes_files
def audit(
    options: FileOptions,
    accept: Annotated[
        bool, typer.Option("--yes", "-y", help="Accept all proposals, and print them.")
    ] = False,
    output: Annotated[
        Path, typer.Option("--output", "--folder", "-o", help="Where to write plan and result.")
    ] = Path("audit"),
    quiet: Annotated[bool, QuietOption] = False,
    verbose: Annotated[bool, VerboseOption] = False,
    as_json: Annotated[bool, JsonOption] = False,
) -> None:
    """Audit your files: recognize them, write a plan, run it, and print the result.

    ombud recognizes what each file holds from its columns and values. On a terminal it asks what
    the files do not tell. Elsewhere it never asks: it prints all open questions, each with the
    option that answers it, and exits with 2. The plan runs unchanged on new files of the same form.

    \b
    Examples:
      ombud audit ratings.csv advisories.csv recommendations.csv --unlabeled no
      ombud audit clicks.csv tags.csv --as interactions=clicks.csv --map user=member_no
      ombud audit comments.csv decisions.csv --yes-values removed,hidden
    """
    from ombud.audits import Audit, Plan

    named = bool(options.files or options.roles)
    start = options.start(output if not named and output.is_dir() else Path(), accept=accept)
    while questions := start.questions():
        if not (sys.stdin.isatty() and sys.stdout.isatty()) or not _ask(questions[0]):
            count = "1 open question" if len(questions) == 1 else f"{len(questions)} open questions"
            listed = "\n".join(f"  - {question}" for question in questions)
            raise PlanError(f"{count}; nothing was written\n{listed}")
        options = options.with_answer(questions[0])
        start = options.start(Path(), accept=accept)
    start.folder, fresh = output, not output.exists()
    plan, _ = start.write()
    if not (quiet or as_json):
        print_start(start)
        say(f"plan: {plan}\n")
    try:
        with progress_bar(quiet=quiet) as progress:
            made = Audit.from_plan(Plan.load(plan))
            result = made.run(plan.with_suffix(".result"), progress, notice=say_aside)
    except DataError:
        if fresh:  # a plan that cannot be run would stand in the way of the next attempt
            shutil.rmtree(output)
        raise
    show_result(result, as_json, quiet=quiet, verbose=verbose)


def _ask(question: Question) -> bool:
    """Print a question; whether its answer can be typed."""
    say(question.text)
    return question.flag.startswith("--")
