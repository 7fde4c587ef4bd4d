"""A result as one table for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ombud.cli.audits import ResultArgument
from ombud.cli.console import reports_errors, say


@reports_errors
def export(
    result: Annotated[Path, ResultArgument],
    to: Annotated[
        Path | None,
        typer.Option("--to", help="A .parquet, .csv or .jsonl file; default, in the result."),
    ] = None,
) -> None:
    """Write every estimate as one row of a plain table: Parquet, CSV or JSON lines.

    The columns are described in docs/pipelines.md.

    \b
    Examples:
      ombud export plan.result
      ombud export plan.result --to estimates.csv
    """
    from ombud.audits import Result

    path = to or result / "estimates.parquet"
    say(str(Result.load(result).to_table(path)))
