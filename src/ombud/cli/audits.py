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
    from collections.abc import Mapping, Sequence

    from ombud.audits import Plan, Result
    from ombud.data.exclusions import Exclusion
    from ombud.report import Report
    from ombud.report.study import Study


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
    on standard error. A plan with [sets.NAME] is a study: each of its data sets is audited in a
    folder of its own, and one report shows them together.

    \b
    Examples:
      ombud run plan.toml
      ombud run plan.toml --dry-run
      ombud run plan.toml --folder results/monday --json
    """
    from ombud.audits import Audit
    from ombud.audits.plan import load_study

    target = folder or plan.with_suffix(".result")
    if plan.is_dir():
        load_plan(plan)  # which says what a plan is
    plans = load_study(plan)
    if "" not in plans:
        _run_study(plans, target, dry_run, quiet, as_json)
        return
    audit = Audit.from_plan(plans[""])
    if dry_run:
        _show_quotes(audit.quote(), as_json)
        return
    with progress_bar(quiet=quiet) as progress:
        result = audit.run(target, progress, notice=say_aside)
    show_result(result, as_json, quiet=quiet, verbose=verbose)


def _run_study(
    plans: dict[str, Plan], target: Path, dry_run: bool, quiet: bool, as_json: bool
) -> None:
    """Audit each data set of a study, those that are finished not again, and report them."""
    from ombud.audits import Audit, Result
    from ombud.audits.provenance import versions
    from ombud.report import Report
    from ombud.report.study import Study

    quotes: dict[str, Any] = {}
    results = []
    for place, (name, plan) in enumerate(plans.items(), 1):
        if not quiet:
            say_aside(f"{name} ({place} of {len(plans)})")
        audit = Audit.from_plan(plan)
        if dry_run:
            quotes |= {f"{name}: {system}": one for system, one in audit.quote().items()}
            continue
        folder = target / name
        audit.open(folder)  # which refuses the folder of another plan, or of other data
        done = Result.load(folder) if (folder / "provenance.json").is_file() else None
        edited = done is not None and done.integrity is not None and done.integrity.said
        # What another version computed, or what was edited, is computed again.
        if done is None or edited or done.provenance.get("versions") != versions():
            with progress_bar(quiet=quiet) as progress:
                done = audit.run(folder, progress, notice=say_aside)
        results.append(done)
        save_report(Report(done))
    if dry_run:
        _show_quotes(quotes, as_json)
    else:
        _show_study(Study.of(results, tuple(plans)), target / "report.html", quiet, as_json)


def _show_study(study: Study, path: Path, quiet: bool, as_json: bool) -> None:
    study.save(path)
    if as_json:
        say(study.json())
        return
    for line in [] if quiet else study.lines(width=console.width):
        say(line)
    say(f"report: {path}")


def _show_quotes(quotes: Mapping[str, Any], as_json: bool) -> None:
    if as_json:
        print_json({name: asdict(one) for name, one in quotes.items()})
        return
    for one in quotes.values():
        say(str(one))
    if not quotes:
        say("no system of this plan is a service: nothing is sent and nothing costs")


def _sets_of(results: list[Path]) -> list[Path]:
    """Return the results, or those inside of one folder that is the result of a study."""
    if len(results) > 1 or (results[0] / "provenance.json").is_file() or not results[0].is_dir():
        return results
    sets = sorted(one for one in results[0].iterdir() if (one / "run.json").is_file())
    return sets if len(sets) > 1 else results


@reports_errors
def report(
    results: Annotated[
        list[Path], typer.Argument(help="Result folders, or that of a study.", metavar="RESULT")
    ],
    to: Annotated[
        Path | None, typer.Option("--to", help="The file to write; its ending is the format.")
    ] = None,
    gate: Annotated[Path | None, GateOption] = None,
    public: Annotated[
        bool, typer.Option("--public", help="Show no single users and texts.")
    ] = False,
    names: Annotated[
        str, typer.Option("--names", help="Of several results, the names of their data sets: A,B.")
    ] = "",
    title: Annotated[
        str, typer.Option("--title", help="Of several results, the title of their report.")
    ] = "",
) -> None:
    """Write the report of a result again: .html, .pdf, .md, .tex or .json.

    Several results make one report: tables with a block for each data set, charts on shared axes,
    and one verdict across data sets, with links to the report of each.

    \b
    Examples:
      ombud report plan.result
      ombud report plan.result --to tables.tex
      ombud report plan.result --gate gate.toml
      ombud report plan.result --public
      ombud report study.result --to tables.tex
      ombud report explicit.result implicit.result --names BX-E,BX-I --to study.html
    """
    from ombud.audits import Gate, Result
    from ombud.report import Report
    from ombud.report.study import Study

    loaded = [Result.load(one) for one in _sets_of(results)]
    if len(results) == 1:
        # The sets of a study were audited in the order of its plan.
        loaded.sort(key=lambda one: str(one.provenance.get("started", "")))
    made: Report
    if len(loaded) > 1:
        if gate is not None:
            raise PlanError("--gate is for one result; a study shows the limits of its plans")
        named = tuple(names.split(",")) if names else ()
        made = Study.of(loaded, named, title, public=public)
    else:
        if names or title:
            raise PlanError("--names and --title are for several results; a plan has its own title")
        made = Report(loaded[0], None if gate is None else Gate.load(gate), public)
    path = to or (results[0] / "report.html" if len(results) == 1 else Path("study.html"))
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
