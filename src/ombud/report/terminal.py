"""The short table that a terminal shows after a run."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from ombud.audits.result import Result
from ombud.report.blocks import Tone
from ombud.report.findings import Family, effect, families, reading
from ombud.report.tables import number_cells
from ombud.report.text import shorten

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

__all__ = ["summary_table"]

_STYLES: dict[Tone, str] = {
    "above": "bold yellow",
    "below": "bold cyan",
    "undefined": "dim italic",
}


def summary_table(result: Result, *, rows: int = 12) -> Table:
    """Return the values over all units: labels down, systems across, the largest effects first.

    Names from the data are shown as plain text: no markup, no control character reaches the
    terminal.

    Parameters
    ----------
    result
        What was found.
    rows
        At most this many labels of each metric; the caption says how many more there are.
    """
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    overall = [family for family in families(result) if family.kind == "overall"]
    systems = tuple(dict.fromkeys(s for family in overall for s in family.systems))
    table = Table(title=Text(shorten(result.plan.title, 80)), title_justify="left", box=SIMPLE_HEAD)
    table.add_column("", overflow="fold")
    for system in systems:
        table.add_column(Text(shorten(system, 30) or "value"), justify="right")
    hidden = 0
    for family in overall:
        labels = _largest(family, rows)
        hidden += len(family.labels) - len(labels)
        cells = _cells(family)
        title = Text(shorten(family.metric.title, 30), style="bold")
        if labels == [""]:
            table.add_row(title, *(cells["", system] for system in systems), end_section=True)
            continue
        table.add_row(title)
        for place, label in enumerate(labels):
            numbers = (cells[label, system] for system in systems)
            name = Text("  " + shorten(label, 40))
            table.add_row(name, *numbers, end_section=place == len(labels) - 1)
    level = f"{result.plan.statistics.level:.0%}"
    caption = f"In brackets: {level} intervals. ▲ above, ▼ below 'no difference'"
    corrected = result.plan.statistics.correction != "none"
    caption += " after correction; △ ▽ only before." if corrected else "."
    if hidden:
        caption += f" {hidden:,} labels with smaller values are in the report."
    table.caption = Text(caption)
    table.caption_justify = "left"
    return table


def _largest(family: Family, most: int) -> list[str]:
    largest = dict.fromkeys(family.labels, -1.0)
    for e in family.estimates:
        stands = 1e9 if reading(e) in {"above", "below"} else 0.0
        largest[e.label] = max(largest[e.label], effect(e) + stands)
    return sorted(largest, key=lambda label: -largest[label])[:most]


def _cells(family: Family) -> dict[tuple[str, str], Text]:
    """Return the text of each label and system, each column with its own decimals."""
    from rich.text import Text

    missing = Text("not measured", style="dim italic")
    found: dict[tuple[str, str], Text] = defaultdict(lambda: missing)
    for system in family.systems:
        some = [e for e in family.estimates if e.system == system]
        for e, cell in zip(some, number_cells(some), strict=True):
            style = _STYLES.get(cell.tone, "")
            found[e.label, system] = Text(shorten(cell.text, 80), style=style)
    return found
