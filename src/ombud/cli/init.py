"""A first plan and gate from files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ombud.cli.audit import FileOptions, print_start, takes_files
from ombud.cli.console import JsonOption, print_json, reports_errors, say


@reports_errors
@takes_files
def init(
    options: FileOptions,
    folder: Annotated[
        Path, typer.Option("--folder", "-o", help="Where to write plan.toml and gate.toml.")
    ] = Path("."),
    as_json: Annotated[bool, JsonOption] = False,
) -> None:
    """Write a first plan and gate for your files, from their headers; nothing is overwritten.

    ombud recognizes what each file holds from its columns and values, and prints what it assumed.
    Correct it with --as and --map: a file holds interactions, test, labels, users, items, texts,
    text-groups, recommendations or decisions. ombud audit also runs the plan.

    \b
    Examples:
      ombud init ratings.csv labels.csv recommendations.csv
      ombud init interactions=clicks.csv tags.csv --folder audit
    """
    start = options.start(folder, accept=True)
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
    print_start(start)
    say(f"wrote {plan} and {gate}; next: ombud run {plan}")
