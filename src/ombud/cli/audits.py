"""Run an audit, and everything that can be done with its result."""

from __future__ import annotations

import textwrap
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ombud.cli.console import (
    JsonOption,
    QuietOption,
    VerboseOption,
    console,
    print_json,
    progress_bar,
    reports_errors,
    say,
    say_aside,
)
from ombud.errors import PlanError
from ombud.report.display import visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ombud.audits import Audit, Plan, Result
    from ombud.data.exclusions import Exclusion
    from ombud.report import Report


_REASONS = 3
"""Exclusions, and assumptions about files, that the terminal shows; the report has all."""

_FolderOption = typer.Option("--folder", "-o", help="Where to store the result.")
ResultArgument = typer.Argument(help="A result folder.", metavar="RESULT")
GateOption = typer.Option(
    "--gate", help="A file with [expect], as in a plan; default, what the result's plan expects."
)


def load_plan(path: Path) -> Plan:
    """Read a plan from a file, with an error that helps who names the folder instead."""
    if path.is_dir():
        raise PlanError(f"{path} is a folder; a plan is a TOML file, such as {path / 'plan.toml'}")
    from ombud.audits import Plan

    return Plan.load(path)


def show_result(
    result: Result, as_json: bool, *, quiet: bool = False, verbose: bool = False
) -> None:
    """Write the report, and print what was found and where it is; or all estimates as JSON."""
    from ombud.report import Report

    report = Report(result)  # its page is built once, for the file and for the terminal
    path = save_report(report)
    if as_json:
        print_json(told(result, path))
    else:
        _print_result(report, path, quiet, verbose)


def save_report(report: Report) -> Path:
    """Write a report into the folder of its result."""
    assert report.result.folder is not None  # every command stores its result
    (path,) = report.save(report.result.folder / "report.html")
    return path


def told(result: Result, report: Path) -> dict[str, Any]:
    """Return a result as JSON-ready values, with where it and its report are."""
    verdicts = {"verdicts": [dict(verdict) for verdict in result.verdicts]}
    return result.to_dict() | verdicts | {"folder": str(result.folder), "report": str(report)}


def _print_result(report: Report, path: Path, quiet: bool, verbose: bool) -> None:
    from ombud.report.names import Names
    from ombud.report.terminal import MOST_LINES

    exclusions = [*map(Names.of(report.result).exclusion, report.result.exclusions)]
    if not quiet:
        told = [] if verbose else _what_was_dropped(exclusions, console.width)
        for line in report.lines(width=console.width, most=MOST_LINES - len(told)):
            say(line)
        for line in told:
            say(line)
    if verbose:
        for exclusion in exclusions:
            say(f"  {visible(str(exclusion))}")
    say(f"report: {path}")


def _what_was_dropped(exclusions: Sequence[Exclusion], width: int) -> list[str]:
    """Return what was excluded and what was assumed about files, the largest first."""
    assumed = [e for e in exclusions if e.is_assumption]
    excluded = [e for e in exclusions if not (e.is_warning or e.is_assumption)]
    lines = []
    for title, some in (("Excluded:", excluded), ("How the files were read:", assumed)):
        # A line that says "1 more" has room for it.
        most = _REASONS + (len(some) == _REASONS + 1)
        shown = sorted(some, key=lambda e: -e.count)[:most]
        lines += [title] if shown else []
        for one in shown:
            lines += textwrap.wrap(
                visible(str(one)),
                max(width, 60),
                initial_indent="  ",
                subsequent_indent="    ",
                max_lines=2,
                placeholder=" \u2026",
            )
        if len(some) > most:
            lines.append(f"  {len(some) - most} more in the report")
    return lines


@reports_errors
def run(
    plan: Annotated[Path, typer.Argument(help="The plan, a TOML file.", metavar="PLAN")],
    folder: Annotated[Path | None, _FolderOption] = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run/ ",
            "--estimate/ ",
            help="Say what asking services would take and cost, and stop.",
        ),
    ] = False,
    quiet: Annotated[bool, QuietOption] = False,
    verbose: Annotated[bool, VerboseOption] = False,
    as_json: Annotated[bool, JsonOption] = False,
) -> None:
    """Run the audit that a plan describes; a stopped run goes on where it was.

    A finished result that was edited since is not run over: the exit code is 4. Choose another
    folder, or delete the edited one.

    Before a service is asked, how many requests go where, and what they would cost, is printed
    on standard error.

    \b
    Examples:
      ombud run plan.toml
      ombud run plan.toml --dry-run
      ombud run plan.toml --folder results/monday --json
    """
    from ombud.audits import Audit

    target = folder or plan.with_suffix(".result")
    audit = Audit.from_plan(load_plan(plan))
    if dry_run:
        _show_quotes(audit, as_json)
        return
    with progress_bar(quiet=quiet) as progress:
        result = audit.run(target, progress, notice=say_aside)
    show_result(result, as_json, quiet=quiet, verbose=verbose)


def _show_quotes(audit: Audit, as_json: bool) -> None:
    quotes = audit.quote()
    if as_json:
        print_json({name: asdict(one) for name, one in quotes.items()})
        return
    for one in quotes.values():
        say(str(one))
    if not quotes:
        say("no system of this plan is a service: nothing is sent and nothing costs")


@reports_errors
def report(
    result: Annotated[Path, ResultArgument],
    to: Annotated[
        Path | None, typer.Option("--to", help="The file to write; its ending is the format.")
    ] = None,
    gate: Annotated[Path | None, GateOption] = None,
    public: Annotated[
        bool, typer.Option("--public", help="Show no single users and texts.")
    ] = False,
) -> None:
    """Write the report of a result again: .html, .pdf, .md, .tex or .json.

    \b
    Examples:
      ombud report plan.result
      ombud report plan.result --to tables.tex
      ombud report plan.result --gate gate.toml
      ombud report plan.result --public
    """
    from ombud.audits import Gate, Result
    from ombud.report import Report

    path = to or result / "report.html"
    limits = None if gate is None else Gate.load(gate)
    made = Report(Result.load(result), limits, public)
    if made.warning:
        say_aside(made.warning)
    for written in made.save(path):
        say(str(written))


@reports_errors
def rescore(
    result: Annotated[Path, ResultArgument],
    folder: Annotated[Path, _FolderOption],
    plan: Annotated[
        Path | None,
        typer.Option("--plan", help="Take metrics and statistics from this plan instead."),
    ] = None,
    quiet: Annotated[bool, QuietOption] = False,
    verbose: Annotated[bool, VerboseOption] = False,
    as_json: Annotated[bool, JsonOption] = False,
) -> None:
    """Compute metrics again from stored outputs, without asking the systems again.

    \b
    Examples:
      ombud rescore plan.result --folder again.result
      ombud rescore plan.result --plan other-metrics.toml --folder other.result
    """
    from ombud.audits.audit import rescore as rescore_result

    asked = None if plan is None else load_plan(plan)
    with progress_bar(quiet=quiet) as progress:
        again = rescore_result(result, plan=asked, into=folder, progress=progress)
    show_result(again, as_json, quiet=quiet, verbose=verbose)
