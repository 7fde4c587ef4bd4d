"""Run an audit, and everything that can be done with its result."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ombud.cli.console import (
    FAILED_GATE,
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
from ombud.report.display import count, shorten, visible

if TYPE_CHECKING:
    from ombud.audits import Audit, Plan, Result
    from ombud.audits.gate import Verdict
    from ombud.stats.estimate import Estimate

__all__ = [
    "check",
    "compare",
    "load_plan",
    "report",
    "rescore",
    "run",
    "save_report",
    "show_result",
    "told",
]

_FolderOption = typer.Option("--folder", "-o", help="Where to store the result.")
_ResultArgument = typer.Argument(help="A result folder.", metavar="RESULT")


def load_plan(path: Path) -> Plan:
    """Read a plan from a file, with an error that helps who names the folder instead."""
    if path.is_dir():
        raise PlanError(f"{path} is a folder; a plan is a TOML file, such as {path / 'plan.toml'}")
    from ombud.audits import Plan

    return Plan.load(path)


def show_result(
    result: Result,
    as_json: bool,
    *,
    quiet: bool = False,
    verbose: bool = False,
) -> None:
    """Write the report, and print what was found and where it is; or all estimates as JSON."""
    path = save_report(result)
    if as_json:
        print_json(told(result, path))
    else:
        _print_result(result, path, quiet, verbose)


def save_report(result: Result) -> Path:
    """Write the report and the appendix into the folder of a result."""
    from ombud.report import Report

    assert result.folder is not None  # every command stores its result
    path, *_ = Report(result).save(result.folder / "report.html")
    return path


def told(result: Result, report: Path) -> dict[str, Any]:
    """Return a result as JSON-ready values, with where it and its report are."""
    return result.to_dict() | {"folder": str(result.folder), "report": str(report)}


def _print_result(result: Result, path: Path, quiet: bool, verbose: bool) -> None:
    from ombud.report import summary_lines, summary_table

    if verbose:
        console.print(summary_table(result))
        for exclusion in result.exclusions:
            say(f"  {visible(str(exclusion))}")
    elif not quiet:
        for line in summary_lines(result, width=console.width):
            say(line)
    say(f"report: {path}")


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
    result: Annotated[Path, _ResultArgument],
    to: Annotated[
        Path | None, typer.Option("--to", help="The file to write; its ending is the format.")
    ] = None,
) -> None:
    """Write the report of a result again: .html, .pdf, .md, .tex or .json.

    \b
    Examples:
      ombud report plan.result
      ombud report plan.result --to tables.tex
    """
    from ombud.audits import Result
    from ombud.report import Report

    path = to or result / "report.html"
    made = Report(Result.load(result))
    if made.warning:
        say_aside(made.warning)
    for written in made.save(path):
        say(str(written))


@reports_errors
def rescore(
    result: Annotated[Path, _ResultArgument],
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
    from ombud.audits.rescore import rescore as rescore_result

    asked = None if plan is None else load_plan(plan)
    with progress_bar(quiet=quiet) as progress:
        again = rescore_result(result, plan=asked, into=folder, progress=progress)
    show_result(again, as_json, quiet=quiet, verbose=verbose)


@reports_errors
def compare(
    before: Annotated[Path, typer.Argument(help="A result folder.", metavar="A")],
    after: Annotated[Path, typer.Argument(help="A later result folder.", metavar="B")],
    as_json: Annotated[bool, JsonOption] = False,
) -> None:
    """Show what changed from result A to result B, on the users or texts that both measured.

    \b
    Example:
      ombud compare monday.result tuesday.result
    """
    from ombud.audits import Result
    from ombud.audits.compare import compare as compare_results
    from ombud.cli.tables import estimate_table

    results = [Result.load(folder) for folder in (before, after)]
    for folder, loaded in zip((before, after), results, strict=True):
        if loaded.integrity is not None and loaded.integrity.said:
            say_aside(f"{folder}: {loaded.integrity.said}")
    changes = compare_results(*results)
    if as_json:
        print_json([e.to_dict() for e in changes])
    elif all(e.value == 0 and e.interval in {None, (0.0, 0.0)} for e in changes):
        say(f"nothing changed: {count(len(changes), 'estimate')} equal in {before} and {after}")
    else:
        console.print(estimate_table(changes, title=f"Change from {before} to {after}"))


@reports_errors
def check(
    result: Annotated[Path, _ResultArgument],
    fail_if: Annotated[
        list[str], typer.Option("--fail-if", help="A condition; may be given several times.")
    ],
    fail_if_undefined: Annotated[
        bool,
        typer.Option(
            "--fail-if-undefined", help="Exit with 1 too if an estimate could not be judged."
        ),
    ] = False,
    as_json: Annotated[bool, JsonOption] = False,
) -> None:
    """Exit with 1 if any estimate meets a condition: a gate for continuous integration.

    A condition may name metric, system, label, group, against, kind, value, low, high, n,
    p_value and p_adjusted; low and high are the ends of the interval. A name that no estimate
    has is an error, so that a gate cannot stay open by a spelling mistake.

    An estimate without a number that the condition asks for is not judged: it neither meets the
    condition nor meets its opposite. How many there are is printed.

    Estimates that were edited since the audit are judged as they stand, and it is said first.

    Exit codes: 0 open, 1 closed, 2 an error in use or data, 3 an unexpected error.

    \b
    Examples:
      ombud check plan.result --fail-if 'metric == "share gap@10" and low > 0.02'
      ombud check plan.result --fail-if 'kind == "gap" and p_adjusted < 0.01 and value > 0'
      ombud check plan.result --fail-if 'label in ("blood", "gore") and low > 0'
    """
    from ombud.audits import Result
    from ombud.audits.gate import Condition

    if not fail_if:
        raise PlanError("no condition was given; use --fail-if EXPR")
    loaded = Result.load(result)
    verdicts = {text: Condition(text).check(loaded.estimates) for text in fail_if}
    failed = any(v.met or (fail_if_undefined and v.undefined) for v in verdicts.values())
    if as_json:
        content = {
            part: {text: [e.to_dict() for e in getattr(v, part)] for text, v in verdicts.items()}
            for part in ("met", "undefined")
        }
        judged = {text: verdict.judged for text, verdict in verdicts.items()}
        edits = {} if loaded.integrity is None else {"integrity": loaded.integrity.to_dict()}
        print_json({"failed": failed, **content, "judged": judged, **edits})
    else:
        if loaded.integrity is not None and loaded.integrity.said:
            say(loaded.integrity.said)
        for text, verdict in verdicts.items():
            _show_verdict(text, verdict, len(loaded.estimates))
    raise typer.Exit(FAILED_GATE if failed else 0)


def _show_verdict(text: str, verdict: Verdict, total: int) -> None:
    say(f"{len(verdict.met)} of {total} estimates meet: {visible(text)}")
    for estimate in verdict.met:
        say(f"  {_on_one_line(estimate)}")
    if not verdict.undefined:
        return
    verb = "is" if len(verdict.undefined) == 1 else "are"
    judged = f"{verb} undefined and {'was' if verb == 'is' else 'were'} not judged"
    say(f"  {count(len(verdict.undefined), 'estimate')} {judged}; the first:")
    say(f"  {_on_one_line(verdict.undefined[0])}")
    if not verdict.judged:
        say("  NOTHING WAS JUDGED: this gate is open only because there is no number to judge.")


def _on_one_line(estimate: Estimate) -> str:
    about = ("metric", "system", "label", "group", "against")
    return visible(str(estimate.replace(**{f: shorten(getattr(estimate, f), 80) for f in about})))
