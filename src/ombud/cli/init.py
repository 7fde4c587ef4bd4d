"""A first plan and gate from files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ombud.cli.console import JsonOption, print_json, reports_errors, say
from ombud.report.display import visible


@reports_errors
def init(
    files: Annotated[
        list[str] | None,
        typer.Argument(
            help="Tables (Parquet, CSV, TSV, JSONL), or ROLE=FILE; default, those of the folder.",
            metavar="[FILES]...",
        ),
    ] = None,
    folder: Annotated[
        Path, typer.Option("--folder", "-o", help="Where to write plan.toml and gate.toml.")
    ] = Path("."),
    as_json: Annotated[bool, JsonOption] = False,
) -> None:
    """Write a first plan and gate for your files, from their headers; nothing is overwritten.

    What each file holds, and which of its columns is the user, the item or the text, is read from
    the names of its columns, and printed with everything that was assumed. Where that is wrong,
    say what a file holds: interactions, test, labels, users, items, texts, text-groups,
    recommendations or decisions. The plan has read its data once before it is written.

    \b
    Examples:
      ombud init ratings.csv labels.csv recommendations.csv
      ombud init interactions=clicks.csv tags.csv --folder audit
    """
    from ombud.audits.scaffold import Start

    start = Start.from_files(list(files or ()), folder)
    plan, gate = start.write()
    if as_json:
        told = {
            str(role.path): {"role": role.role, "columns": dict(role.columns)}
            for role in start.roles
        }
        written = {"plan": str(plan), "gate": str(gate)}
        print_json(
            {"files": told, "assumed": start.assumed, "unused": start.unused, "written": written}
        )
        return
    for role in start.roles:
        columns = ", ".join(
            ours if ours == theirs else f"{ours} from {theirs}"
            for ours, theirs in role.columns.items()
        )
        say(visible(f"{role.path}: {role.role.replace('_', ' ')} ({columns})"))
    for word, texts in (("assumed", start.assumed), ("not used", start.unused)):
        for text in texts:
            say(visible(f"{word}: {text}"))
    say(f"wrote {plan} and {gate}; next: ombud run {plan}")
