"""The table of values that a terminal shows after a run when asked for more (``-v``)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ombud.audits.result import Result
from ombud.report.blocks import Tone
from ombud.report.display import count, shorten
from ombud.report.findings import EstimateSet, effect, families, reading
from ombud.report.tables import number_cells

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text


_STYLES: dict[Tone, str] = {
    "above": "bold yellow",
    "below": "bold cyan",
    "undefined": "dim italic",
}


_FEWEST = 3
"""So many labels of a metric are shown however many metrics there are."""


def summary_table(result: Result, *, rows: int = 12, most: int = 30) -> Table:
    """Return the values over all units: labels down, systems across, the largest effects first.

    The plan's metrics come before what analyses found, and of each those with a value that means
    "no difference". What an analysis says about the data, and not about a system, is left to the
    report when there are systems. Names from the data are shown as plain text: no markup, no
    control character reaches the terminal.

    Parameters
    ----------
    result
        What was found.
    rows
        At most this many labels of each metric, and fewer where there are many metrics; the
        caption says how many more there are.
    most
        At most about this many rows in all.
    """
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    overall = overall_families(result)
    systems = tuple(dict.fromkeys(s for family in overall for s in family.systems))
    table = Table(title=Text(shorten(result.plan.title, 80)), title_justify="left", box=SIMPLE_HEAD)
    table.add_column("", overflow="fold")
    for system in systems:
        table.add_column(Text(shorten(system, 30) or "value"), justify="right")
    each = min(rows, _room(overall, most))
    hidden, left, shown = 0, most, 0
    for family in overall:
        labels = largest_labels(family, each)
        alone = labels == [""]
        needed = 1 if alone else 1 + len(labels)
        if shown and needed > left:
            break
        left, shown = left - needed, shown + 1
        hidden += len(family.labels) - len(labels)
        cells = _cells(family)
        title = Text(shorten(family.metric.title, 60), style="bold")
        if alone:
            table.add_row(title, *(cells["", system] for system in systems))
            continue
        table.add_section()
        table.add_row(title)
        for label in labels:
            numbers = (cells[label, system] for system in systems)
            table.add_row(Text("  " + shorten(label, 40)), *numbers)
        table.add_section()
    level = f"{result.plan.statistics.level:.0%}"
    caption = f"In brackets: {level} intervals. ▲ above, ▼ below 'no difference'"
    corrected = result.plan.statistics.correction != "none"
    caption += " after correction; △ ▽ only before." if corrected else "."
    if hidden:
        caption += f" {hidden:,} labels with smaller values are in the report."
    rest = len({e.metric for e in result.estimates}) - shown
    if rest:
        verb = "is" if rest == 1 else "are"
        caption += f" {count(rest, 'more measure')} {verb} in the report."
    table.caption = Text(caption)
    table.caption_justify = "left"
    return table


def overall_families(result: Result) -> list[EstimateSet]:
    """Return the values of everyone, of systems if there are.

    The plan's metrics come first, and then what analyses found; of each those that can be tested.
    """
    overall = [family for family in families(result) if family.kind == "overall"]
    if any(e.system for family in overall for e in family.estimates):
        overall = [
            replace(family, estimates=some)
            for family in overall
            if (some := tuple(e for e in family.estimates if e.system))
        ]
    asked = {info.key for info in result.metrics}
    return sorted(
        overall,
        key=lambda family: (
            family.metric.key not in asked,
            all(e.null is None for e in family.estimates),
        ),
    )


def _room(overall: Sequence[EstimateSet], most: int) -> int:
    """Return how many labels of each metric fit, so that no metric takes all the rows."""
    labelled = sum(family.labels != ("",) for family in overall)
    if not labelled:
        return most
    free = most - (len(overall) - labelled) - labelled
    return max(_FEWEST, free // labelled)


def largest_labels(family: EstimateSet, most: int) -> list[str]:
    """Return the labels with the largest effects, those that stand first."""
    largest = dict.fromkeys(family.labels, -1.0)
    for e in family.estimates:
        stands = 1e9 if reading(e) in {"above", "below"} else 0.0
        largest[e.label] = max(largest[e.label], effect(e) + stands)
    return sorted(largest, key=lambda label: -largest[label])[:most]


def _cells(family: EstimateSet) -> dict[tuple[str, str], Text]:
    """Return the text of each label and system, each column with its own decimals."""
    from rich.text import Text

    missing = Text("not measured", style="dim italic")
    result: dict[tuple[str, str], Text] = defaultdict(lambda: missing)
    for system in family.systems:
        some = [e for e in family.estimates if e.system == system]
        for e, cell in zip(some, number_cells(some), strict=True):
            style = _STYLES.get(cell.tone, "")
            result[e.label, system] = Text(shorten(cell.text, 160), style=style)
    return result
