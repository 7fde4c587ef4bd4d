"""Run an audit, and everything that can be done with its result."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ombud.audits import Audit, Plan, Result
from ombud.audits.compare import compare as compare_results
from ombud.audits.gate import Condition
from ombud.audits.rescore import rescore as rescore_result
from ombud.cli.console import (
    FAILED_GATE,
    JsonOption,
    console,
    print_json,
    progress_bar,
    speaks_plainly,
)
from ombud.cli.tables import estimate_table
from ombud.errors import PlanError
from ombud.report import Report
from ombud.report.terminal import summary_table

__all__ = ["check", "compare", "report", "rescore", "run", "show_result"]

FolderOption = typer.Option("--folder", "-o", help="Where to store the result.")
ResultArgument = typer.Argument(help="A result folder.", metavar="RESULT")


def show_result(result: Result, as_json: bool) -> None:
    """Write the report, and print the short table and where it is; or all estimates as JSON."""
    assert result.folder is not None  # every command stores its result
    (path,) = Report(result).save(result.folder / "report.html")
    if as_json:
        print_json(result.to_dict() | {"folder": str(result.folder), "report": str(path)})
        return
    console.print(summary_table(result))
    for exclusion in result.exclusions:
        console.print(f"  {exclusion}", markup=False, highlight=False)
    console.print(f"report: {path}", markup=False, highlight=False, soft_wrap=True)


@speaks_plainly
def run(
    plan: Annotated[Path, typer.Argument(help="The plan, a TOML file.", metavar="PLAN")],
    folder: Annotated[Path | None, FolderOption] = None,
    as_json: Annotated[bool, JsonOption] = False,
) -> None:
    """Run the audit that a plan describes; a stopped run goes on where it was.

    \b
    Examples:
      ombud run plan.toml
      ombud run plan.toml --folder results/monday --json
    """
    target = folder or plan.with_suffix(".result")
    audit = Audit.from_plan(Plan.load(plan))
    with progress_bar() as progress:
        result = audit.run(target, progress)
    show_result(result, as_json)


@speaks_plainly
def report(
    result: Annotated[Path, ResultArgument],
    to: Annotated[
        Path | None, typer.Option("--to", help="The file to write; its ending is the format.")
    ] = None,
) -> None:
    """Write the report of a result again: .html, .md, .tex or .json.

    \b
    Examples:
      ombud report plan.result
      ombud report plan.result --to tables.tex
    """
    path = to or result / "report.html"
    for written in Report(Result.load(result)).save(path):
        console.print(str(written), markup=False, highlight=False, soft_wrap=True)


@speaks_plainly
def rescore(
    result: Annotated[Path, ResultArgument],
    folder: Annotated[Path, FolderOption],
    plan: Annotated[
        Path | None,
        typer.Option("--plan", help="Take metrics and statistics from this plan instead."),
    ] = None,
    as_json: Annotated[bool, JsonOption] = False,
) -> None:
    """Compute metrics again from stored outputs, without asking the systems again.

    \b
    Examples:
      ombud rescore plan.result --folder again.result
      ombud rescore plan.result --plan other-metrics.toml --folder other.result
    """
    asked = None if plan is None else Plan.load(plan)
    with progress_bar() as progress:
        again = rescore_result(result, plan=asked, into=folder, progress=progress)
    show_result(again, as_json)


@speaks_plainly
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
    changes = compare_results(Result.load(before), Result.load(after))
    if as_json:
        print_json([e.to_dict() for e in changes])
    else:
        console.print(estimate_table(changes, title=f"Change from {before} to {after}"))


@speaks_plainly
def check(
    result: Annotated[Path, ResultArgument],
    fail_if: Annotated[
        list[str], typer.Option("--fail-if", help="A condition; may be given several times.")
    ],
    as_json: Annotated[bool, JsonOption] = False,
) -> None:
    """Exit with 1 if any estimate meets a condition: a gate for continuous integration.

    A condition may name metric, system, label, group, against, kind, value, low, high, n,
    p_value and p_adjusted; low and high are the ends of the interval. A name that no estimate
    has is an error (exit code 2), so that a gate cannot stay open by a spelling mistake.

    \b
    Examples:
      ombud check plan.result --fail-if 'metric == "share gap@10" and low > 0.02'
      ombud check plan.result --fail-if 'kind == "gap" and p_adjusted < 0.01 and value > 0'
    """
    if not fail_if:
        raise PlanError("no condition was given; use --fail-if EXPR")
    loaded = Result.load(result)
    found = {text: Condition(text).find(loaded.estimates) for text in fail_if}
    failed = any(found.values())
    if as_json:
        print_json(
            {"failed": failed, "met": {t: [e.to_dict() for e in es] for t, es in found.items()}}
        )
    else:
        for text, estimates in found.items():
            verdict = f"{len(estimates)} of {len(loaded.estimates)} estimates meet"
            console.print(f"{verdict}: {text}", markup=False, highlight=False)
            for estimate in estimates:
                console.print(f"  {estimate}", markup=False, highlight=False, soft_wrap=True)
    raise typer.Exit(FAILED_GATE if failed else 0)
