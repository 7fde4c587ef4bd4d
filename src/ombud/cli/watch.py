"""What changed: between two results, and over a series of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ombud.cli.console import (
    FAILED_GATE,
    JsonOption,
    console,
    print_json,
    reports_errors,
    say,
    say_aside,
)
from ombud.errors import PlanError
from ombud.report.display import count, shorten, visible

if TYPE_CHECKING:
    from rich.table import Table

    from ombud.audits import Result
    from ombud.audits.compare import Comparison
    from ombud.audits.monitor import Watch
    from ombud.report.names import Names
    from ombud.report.watching import ChangeVerdict
    from ombud.stats.estimate import Estimate


_SameUnits = typer.Option(
    "--same-units",
    help="Pair equal ids although the data differs: they are the same users or texts.",
)
_FalseAlarms = typer.Option(
    "--false-alarms", help="The chance of any false alarm over the whole series, all numbers."
)


@reports_errors
def compare(
    results: Annotated[
        list[Path],
        typer.Argument(help="Result folders, the earliest first: two or more.", metavar="A B ..."),
    ],
    show_all: Annotated[
        bool, typer.Option("--all", help="List every change, not only those that stand.")
    ] = False,
    same_units: Annotated[bool, _SameUnits] = False,
    as_json: Annotated[bool, JsonOption] = False,
) -> None:
    """Show what changed from result A to result B, on the users or texts that both measured.

    Every metric, system, label, data set and group is compared in pairs, and the changes that stand
    after correction are listed, the largest first. Results on different data are refused. More
    than two results are shown as a series, as ``ombud watch`` does.

    \b
    Examples:
      ombud compare monday.result tuesday.result
      ombud compare monday.result tuesday.result --all
    """
    from ombud.audits import Result
    from ombud.audits.compare import compare as compare_results
    from ombud.audits.monitor import watch as watch_results
    from ombud.report.watching import change_verdict, watch_verdict

    if len(results) < 2:
        raise PlanError("name two result folders, the earlier one first")
    loaded = [Result.load(path) for path in results]
    _say_edits(loaded)
    if len(loaded) > 2:
        series = watch_results(loaded, same_units=same_units)
        _show_series(series, loaded[-1], watch_verdict(series, loaded[-1]), as_json)
        return
    found = compare_results(loaded[0], loaded[1], same_units=same_units)
    if as_json:
        changes = [e.to_dict() for e in found.changes]
        standing = len(found.standing)
        verdict = change_verdict(found, loaded[1]).to_dict()
        remarks = list(found.remarks)
        print_json(
            {"verdict": verdict, "standing": standing, "remarks": remarks, "changes": changes}
        )
    else:
        _show_verdict(change_verdict(found, loaded[1]))
        _show_changes(found, loaded[1], results[0], results[1], show_all=show_all)


def _say_edits(results: Sequence[Result]) -> None:
    """Say first which results are not as they were written."""
    for result in results:
        if result.integrity is not None and result.integrity.said:
            say_aside(f"{result.folder}: {result.integrity.said}")


def _show_verdict(verdict: ChangeVerdict) -> None:
    say(visible(f"Verdict: {verdict.headline}"))
    for text in verdict.changes:
        say(f"  {visible(text)}")


def _show_changes(
    found: Comparison, last: Result, before: Path, after: Path, *, show_all: bool
) -> None:
    from ombud.report.names import Names
    from ombud.report.numbers import estimate_text
    from ombud.report.watching import name_of

    names = Names.of(last)

    for remark in found.remarks:
        say(f"note: {remark}.")
    known = [e for e in found.changes if e.value is not None]
    undefined = len(found.changes) - len(known)
    left = f"; {count(undefined, 'change')} not defined (too little data)" if undefined else ""
    if found.nothing_changed:
        say(f"nothing changed: {count(len(known), 'number')} equal in {before} and {after}{left}")
    elif not found.standing:
        say(f"nothing changed beyond chance in {count(len(known), 'number')}{left}")
        say(f"  the largest: {visible(name_of(known[0], names))}: {estimate_text(known[0])}")
    else:
        are = "is" if len(found.standing) == 1 else "are"
        text = f"{len(found.standing):,} of {count(len(known), 'change')} {are} statistically "
        say(f"{text}significant after correction, the largest of each measure first{left}")
    shown = found.changes if show_all else found.standing
    if shown:
        console.print(change_table(shown, names, title=f"Change from {before} to {after}"))
    if not show_all and len(shown) < len(found.changes) and not found.nothing_changed:
        say("--all lists every change.")


@reports_errors
def watch(
    folder: Annotated[Path, typer.Argument(help="A folder of result folders.", metavar="FOLDER")],
    false_alarms: Annotated[float, _FalseAlarms] = 0.05,
    reference: Annotated[
        str, typer.Option("--reference", help="The result to compare with; default, the first.")
    ] = "",
    to: Annotated[
        Path | None,
        typer.Option("--to", help="Where to write the page; default, FOLDER/watch.html."),
    ] = None,
    same_units: Annotated[bool, _SameUnits] = False,
    per_result: Annotated[
        bool,
        typer.Option(
            "--per-result",
            help="Compare each result with the reference alone; false alarms are per result.",
        ),
    ] = False,
    acknowledge: Annotated[
        bool, typer.Option("--acknowledge", help="Settle all alarms: follow their numbers anew.")
    ] = False,
    as_json: Annotated[bool, JsonOption] = False,
) -> None:
    """Follow a series of results, and exit with 1 while an alarm stands.

    While nothing changes, the chance of any false alarm over the whole series, however long it
    gets and all numbers together, is at most the stated rate. Texts or users that are measured
    again are compared with themselves; new ones are independent samples. An alarm names the result
    since which the number most likely differs, and by how much, and stays until it is acknowledged:
    then the number is followed anew from the last result on, and the promise begins anew too.

    With --per-result, each result is compared with the reference alone, and the rate is that of
    one result: with 0.01 and nothing changed, about one result in a hundred alarms.

    Exit codes: 0 open, 1 closed, 2 an error in use or data, 3 an unexpected error.

    \b
    Examples:
      ombud watch results
      ombud watch results --false-alarms 0.01 --reference 2026-01-05
      ombud watch results --acknowledge
    """
    from ombud.audits.monitor import acknowledge as acknowledge_alarms
    from ombud.audits.monitor import acknowledged_in, results_in
    from ombud.audits.monitor import watch as watch_results
    from ombud.files import write_text
    from ombud.report.watching import watch_page, watch_verdict

    loaded = results_in(folder)
    _say_edits(loaded)
    if acknowledge and per_result:
        raise PlanError("an alarm of --per-result is that of the last result alone: nothing stays")

    def look() -> Watch:
        return watch_results(
            loaded,
            false_alarms=false_alarms,
            reference=reference,
            same_units=same_units,
            per_result=per_result,
            acknowledged=acknowledged_in(folder),
        )

    series = look()
    if acknowledge and (settled := acknowledge_alarms(folder, series)):
        say_aside(f"acknowledged: {count(settled, 'number')}, followed anew from the last result")
        series = look()
    page = to or folder / "watch.html"
    verdict = watch_verdict(series, loaded[-1])
    write_text(page, watch_page(series, loaded[-1]))
    _show_series(series, loaded[-1], verdict, as_json)
    if not as_json:
        say(f"page: {page}")
    raise typer.Exit(FAILED_GATE if series.alarms or series.together else 0)


def _show_series(series: Watch, last: Result, verdict: ChangeVerdict, as_json: bool) -> None:
    from ombud.report.watching import watch_lines

    if not as_json:
        _show_verdict(verdict)
        for line in watch_lines(series, last):
            say(line)
        return
    print_json(
        {
            "failed": bool(series.alarms or series.together),
            "verdict": verdict.to_dict(),
            "results": list(series.names),
            "false_alarms": series.false_alarms,
            "numbers": series.numbers,
            "paired": series.paired,
            "per_result": series.per_result,
            "together": series.together,
            "remarks": list(series.remarks),
            "charts": [
                {**{k: v for k, v in vars(chart).items() if k not in {"points", "alarm"}}}
                | {"points": [point._asdict() for point in chart.points]}
                | {"alarm": None if chart.alarm is None else chart.alarm._asdict()}
                for chart in series.charts
            ],
        }
    )


# Estimates as a terminal table.


def estimate_table(estimates: Sequence[Estimate], title: str) -> Table:
    """Return one row per estimate; names are shown as plain text, never as markup."""
    from rich.table import Table
    from rich.text import Text

    from ombud.report.numbers import estimate_text, p_text

    table = Table(title=Text(shorten(title, 100)), title_justify="left")
    for heading in ("Measure", "System", "Label", "Group"):
        table.add_column(heading, overflow="fold")
    for heading in ("Value and interval", "p, corrected", "n"):
        table.add_column(heading, justify="right")
    for e in estimates:
        corrected = e.p_adjusted if e.p_adjusted is not None else e.p_value
        cells = (
            *(shorten(name, 40) for name in (e.metric, e.system, e.label, e.group)),
            estimate_text(e),
            "" if corrected is None else p_text(corrected),
            f"{e.n:,}",
        )
        table.add_row(*(Text(cell) for cell in cells))
    return table


def change_table(changes: Sequence[Estimate], names: Names, title: str) -> Table:
    """Return one row per change, with the number before and after it."""
    from rich.table import Table
    from rich.text import Text

    from ombud.report.numbers import estimate_text, p_text
    from ombud.report.watching import name_of

    table = Table(title=Text(shorten(title, 100)), title_justify="left")
    table.add_column("What", overflow="fold")
    for heading in ("Before", "After", "Change", "p"):
        table.add_column(heading, justify="right")
    for e in changes:
        corrected = e.p_adjusted if e.p_adjusted is not None else e.p_value
        sides = (e.details.get("before"), e.details.get("after"))
        cells = (
            shorten(name_of(e, names), 120),
            *("" if side is None else f"{float(side):.4g}" for side in sides),
            estimate_text(e),
            "" if corrected is None else p_text(corrected),
        )
        table.add_row(*(Text(cell) for cell in cells))
    return table
