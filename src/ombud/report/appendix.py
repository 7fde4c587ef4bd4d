"""The appendix: every table of a report, and every number, as data that a script makes tables of.

Rows are not markup: they stand in the file as JSON and are drawn when a reader opens a table, so
that a hundred thousand cells load at once. They can be sorted, filtered and saved as CSV.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ombud.audits.result import Result
from ombud.report.blocks import Block, Cell, Column, Section, Table, paragraph, tables_in
from ombud.report.display import visible
from ombud.report.findings import Kind, families, key_of_estimate, reading
from ombud.stats.power import smallest_effect

EVERY_NUMBER = "every-number"
"""The name of the table that holds every estimate."""

_KINDS: dict[Kind, str] = {
    "overall": "everyone",
    "group": "a group",
    "group contrast": "groups compared",
    "system contrast": "systems compared",
}
_MOST_STORED = 5000
# Of these the table of every number is another form.
_VIEWS = frozenset({"by-group", "systems"})


def appendix_sections(result: Result, sections: Sequence[Section]) -> tuple[Section, ...]:
    """Return the sections of the appendix: every number, all tables, and what was looked up.

    Parameters
    ----------
    result
        What was found.
    sections
        All sections, of the report and of the appendix.
    """
    caption = "Every number of this audit"
    made: list[Section] = [
        Section(
            "Every number",
            (
                paragraph(
                    "Each row is one estimate: choose a measure, a system, a label or a group "
                    "above the table, or sort by a column."
                ),
                Table(EVERY_NUMBER, (Column("Measure", header=True),), (), caption),
            ),
            name="numbers-all",
        )
    ]
    for section in sections:
        if section.name in _VIEWS:
            continue
        if section.place == "appendix":
            made.append(section)
        elif tables := tables_in((section,)):
            made.append(Section(section.title, tables, section.order, section.name))
    stored = [_stored(name, result) for name in sorted(result.tables)]
    if stored:
        made.append(Section("Tables of the analyses", tuple(stored), name="analyses"))
    return tuple(made)


def _stored(name: str, result: Result) -> Block:
    frame = result.tables[name]
    if frame.height > _MOST_STORED:
        where = f"tables/{name}.parquet of the result"
        return paragraph(
            f"{name}: {frame.height:,} rows, too many for a page; they are in {where}."
        )
    columns = tuple(
        Column(title.replace("_", " "), "right" if dtype.is_numeric() else "left", i == 0)
        for i, (title, dtype) in enumerate(frame.schema.items())
    )
    rows = tuple(tuple(_plain(value) for value in row) for row in frame.iter_rows())
    return Table(f"stored-{name}", columns, rows, f"{name.replace('-', ' ')}, as stored")


def _plain(value: Any) -> Cell:
    if value is None:
        return Cell("\u2013")
    if isinstance(value, bool) or not isinstance(value, int | float):
        return Cell(str(value))
    return Cell(f"{value:,}" if isinstance(value, int) else f"{value:.6g}", value=float(value))


def table_data(result: Result, sections: Iterable[Section]) -> dict[str, Any]:
    """Return the rows of all tables of the appendix, by name, ready for JSON."""
    tables = {t.name: table_rows(t) for t in tables_in(sections) if t.name != EVERY_NUMBER}
    return {EVERY_NUMBER: _every_number(result), **tables}


def table_rows(table: Table) -> dict[str, Any]:
    """Return the rows of a table, ready for JSON."""
    columns: list[dict[str, Any]] = []
    for index, column in enumerate(table.columns):
        cells = [row[index] for row in table.rows]
        made: dict[str, Any] = {
            "title": visible(column.title),
            "right": column.align == "right",
            "text": _listed([visible(cell.text) for cell in cells]),
        }
        if any(cell.value is not None for cell in cells):
            made["value"] = [_rounded(cell.value) for cell in cells]
        if any(cell.tone for cell in cells):
            made["tone"] = _listed([cell.tone for cell in cells])
        columns.append(made)
    notes = [visible(note) for note in table.notes]
    return {"caption": visible(table.caption), "columns": columns, "notes": notes}


def _listed(texts: Sequence[str]) -> dict[str, Any]:
    """Return texts as the different ones and which of them each row has: many are the same."""
    different = {text: place for place, text in enumerate(dict.fromkeys(texts))}
    return {"of": list(different), "at": [different[text] for text in texts]}


def _rounded(value: float | None) -> float | None:
    if value is None or value != value or value in (float("inf"), float("-inf")):
        return None
    return float(f"{value:.6g}")


def _at_least(p: float | None, least: float) -> float | None:
    return None if p is None else _rounded(max(p, least))


def _p(p: float | None, least: float) -> str:
    if p is None:
        return "\u2013"
    return f"<{least:.1g}" if p <= _rounded(least) else f"{p:.4f}"  # type: ignore[operator]


def _every_number(result: Result) -> dict[str, Any]:
    kinds = {}
    for family in families(result):
        for e in family.estimates:
            kinds[id(e)] = _KINDS[family.kind]
    some = result.estimates
    words: Mapping[str, list[str]] = {
        "Measure": [e.metric for e in some],
        "About": [kinds[id(e)] for e in some],
        "System": [e.system for e in some],
        "Label": [e.label for e in some],
        "Group": [e.group for e in some],
        "Against": [e.against for e in some],
    }
    ends = [e.interval or (None, None) for e in some]
    numbers: Mapping[str, list[float | None]] = {
        "Value": [e.value for e in some],
        "Low": [low for low, _ in ends],
        "High": [high for _, high in ends],
        "n": [e.n for e in some],
        "Would have been found": [smallest_effect(e) for e in some],
    }
    # A p-value that rests on replicates says nothing below one in their number.
    least = 1 / (result.plan.statistics.replicates + 1)
    tested: Mapping[str, list[float | None]] = {
        "p, not corrected": [_at_least(e.p_value, least) for e in some],
        "p, corrected": [_at_least(e.p_adjusted, least) for e in some],
    }
    last: Mapping[str, list[str]] = {
        "Reads as": [reading(e) for e in some],
        "Unit": [e.unit for e in some],
        "Level": [f"{e.level:.0%}" for e in some],
        "Interval": [e.method for e in some],
        "Correction": [e.correction for e in some],
        "Remark": [e.reason or e.note for e in some],
        "Key": [key_of_estimate(e) for e in some],
    }
    columns: list[dict[str, Any]] = []
    for title, texts in words.items():
        listed = _listed([visible(text) for text in texts])
        if len(listed["of"]) > 1 or title == "Measure":
            columns.append({"title": title, "text": listed, "choose": True})
    for title, values in numbers.items():
        if any(value is not None for value in values):
            columns.append({"title": title, "right": True, "value": [_rounded(v) for v in values]})
    for title, values in tested.items():
        if any(value is not None for value in values):
            shown = _listed([_p(value, least) for value in values])
            columns.append({"title": title, "right": True, "value": values, "text": shown})
    for title, texts in last.items():
        told: dict[str, Any] = {"title": title, "text": _listed([visible(t) for t in texts])}
        columns.append(told | ({"choose": True} if title == "Reads as" else {}))
    return {"caption": "Every number of this audit.", "columns": columns, "notes": []}
