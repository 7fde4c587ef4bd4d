"""The card of a system: one page over all questions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ombud.cli.console import reports_errors, say


@reports_errors
def card(
    results: Annotated[list[Path], typer.Argument(help="Result folders.", metavar="RESULT...")],
    system: Annotated[
        str, typer.Option(help="One system, as the plans name it; default, all together.")
    ] = "",
    title: Annotated[str, typer.Option(help="The heading of the card.")] = "",
    to: Annotated[Path, typer.Option("--to", help="The file to write: .html or .md.")] = Path(
        "card.html"
    ),
) -> None:
    """Write one page for one system over all questions asked about it.

    Each question has its verdict, one finding with its chart, how much data and when; questions
    that no result answers are "not asked". The card links the reports.

    \b
    Examples:
      ombud card books.result films.result --system SVD
      ombud card ombud-demo/* --title "The demo's platform" --to card.md
    """
    from ombud.audits import Result
    from ombud.errors import PlanError
    from ombud.files import write_text
    from ombud.report.card import SystemCard

    if to.suffix not in {".html", ".md"}:
        raise PlanError(f"{to} ends in {to.suffix!r}; a card is written as .html or .md")
    made = SystemCard.of([Result.load(path) for path in results], system, title)
    made = made.linked(to.parent)
    write_text(to, made.html() if to.suffix == ".html" else made.markdown())
    for entry in made.entries:
        say(f"{entry.answer}: {entry.question}")
    say(f"card: {to}")
