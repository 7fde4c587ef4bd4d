"""Tables that the sections of a delicate-text audit share."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import polars as pl

from ombud.report.blocks import Cell, Column, Table
from ombud.report.display import shorten
from ombud.report.format import number_text
from ombud.report.tables import Notes, number_cells
from ombud.stats.estimate import Estimate


def grid(
    name: str,
    caption: str,
    rows: Sequence[str],
    columns: Sequence[tuple[str, Callable[[str], Estimate | None]]],
    head: str = "System",
    folded: bool = False,
    lacking: str = "not measured",
    marked: Collection[str] = (),
) -> Table:
    """Return named rows by columns of estimates; marked rows have a # after their name."""
    notes = Notes()
    body: list[list[Cell]] = [[Cell(shorten(row, 60) + " #" * (row in marked))] for row in rows]
    level = 0.95
    for _, get in columns:
        found = [get(row) for row in rows]
        given = [e.replace(note="") for e in found if e is not None]
        cells = iter(number_cells(given, notes))
        level = given[0].level if given else level
        for line, e in zip(body, found, strict=True):
            line.append(Cell(lacking, "undefined") if e is None else next(cells))
    titles = (Column(head, header=True), *(Column(title, "right") for title, _ in columns))
    text = f"{caption} ({level:.0%} interval in brackets)."
    return Table(name, titles, tuple(map(tuple, body)), text, notes.lines(), folded)


def by_system(estimates: Sequence[Estimate]) -> Callable[[str], Estimate | None]:
    """Return what finds the estimate of a system among some."""
    at = {e.system: e for e in estimates}
    return at.get


def plain_table(
    name: str, frame: pl.DataFrame, caption: str, folded: bool = False, longest: int = 60
) -> Table:
    """Return a stored table as it is."""
    words = [frame.schema[c] == pl.String for c in frame.columns]
    columns = tuple(
        Column(c.replace("_", " ").capitalize() if c not in {"tp", "fp", "fn", "tn"} else c.upper(),
               "left" if word else "right", header=k == 0)
        for k, (c, word) in enumerate(zip(frame.columns, words, strict=True))
    )  # fmt: skip
    rows = []
    for row in frame.iter_rows():
        rows.append(tuple(_cell(value, longest) for value in row))
    return Table(name, columns, tuple(rows), f"{caption}.", (), folded)


def _cell(value: object, longest: int) -> Cell:
    if value is None:
        return Cell("none", "undefined")
    if isinstance(value, float):
        return Cell(number_text(value, 3), value=value)
    return Cell.number(value) if isinstance(value, int) else Cell(shorten(str(value), longest))
