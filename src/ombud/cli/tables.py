"""Estimates as a terminal table."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from ombud.report.display import shorten
from ombud.report.format import estimate_text, p_text
from ombud.stats.estimate import Estimate


def estimate_table(estimates: Sequence[Estimate], title: str) -> Table:
    """Return one row per estimate; names are shown as plain text, never as markup."""
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


def change_table(changes: Sequence[Estimate], title: str) -> Table:
    """Return one row per change, with the number before and after it."""
    table = Table(title=Text(shorten(title, 100)), title_justify="left")
    for heading in ("Measure", "System", "Label", "Group"):
        table.add_column(heading, overflow="fold")
    for heading in ("Before", "After", "Change", "p, corrected", "n"):
        table.add_column(heading, justify="right")
    for e in changes:
        corrected = e.p_adjusted if e.p_adjusted is not None else e.p_value
        sides = (e.details.get("before"), e.details.get("after"))
        cells = (
            *(shorten(name, 40) for name in (e.metric, e.system, e.label, e.group)),
            *("" if side is None else f"{float(side):.4g}" for side in sides),
            estimate_text(e),
            "" if corrected is None else p_text(corrected),
            f"{e.n:,}",
        )
        table.add_row(*(Text(cell) for cell in cells))
    return table
