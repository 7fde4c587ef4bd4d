"""Sections of the old form, as sections of the page: those of plugins, and those not yet ported.

An old section is a function of a result, registered with ``@ombud.registry.section("name")``, that
returns an `ombud.report.blocks.Section`, or None when it has nothing to say.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape

from ombud import registry
from ombud.report import blocks as old
from ombud.report.context import ROLES, Context
from ombud.report.display import shorten
from ombud.report.images import to_svg
from ombud.report.model import Block, Cell, Chart, Column, Heading, Prose, Section, Status, Table
from ombud.report.titles import in_words

_STATUS: dict[str, Status] = {
    "above": "increase",
    "below": "decrease",
    "maybe": "no clear difference",
    "none": "no clear difference",
    "undefined": "not tested",
}
_MOST_ROWS = 400
# Outlines of countries have tens of thousands of points; a tenth of a pixel is enough for them.
_LONG_PATH = re.compile(r'\bd="[^"]{500,}"')
_DIGITS = re.compile(r"(\.\d)\d+")


@dataclass(frozen=True)
class Legacy:
    """Registered sections of the old form, in their own order."""

    names: tuple[str, ...]

    def _found(self, context: Context) -> list[tuple[str, old.Section]]:
        shown = in_words(context.result)
        made = [(name, registry.get("section", name)(shown)) for name in self.names]
        found = [(name, section) for name, section in made if section is not None]
        return sorted(found, key=lambda pair: (pair[1].order, pair[0]))

    def made(self, context: Context) -> Iterable[Section]:
        """Return the sections that have something to say."""
        for name, section in self._found(context):
            yield converted(section, name.replace("/", "-"))

    def claims(self, context: Context) -> set[tuple[str, str]]:
        """Return which estimates they show, by key and role."""
        keys: set[str] = set()
        for _, section in self._found(context):
            keys |= section.withholds
        return {(key, role) for key in keys for role in ROLES}


def converted(section: old.Section, name: str = "") -> Section:
    """Return a section of the old form as one of the page."""
    parts = tuple(block for one in section.blocks for block in _blocks(one))
    return Section(name or section.name, section.title, parts, section.place == "appendix")


def _blocks(block: old.Block) -> Iterable[Block]:
    match block:
        case old.Paragraph():
            yield Prose((block.parts,))
        case old.Bullets():
            yield Prose(tuple(item.parts for item in block.items), bullets=True)
        case old.Note():
            paragraphs = [
                item.parts
                for part in block.blocks
                for item in (part.items if isinstance(part, old.Bullets) else (part,))
            ]
            yield Prose(tuple(paragraphs), block.title or "Note")
        case old.Definitions():
            rows = tuple((Cell(term), Cell(text.plain)) for term, text in block.items)
            name = "terms-" + re.sub(r"[^a-z0-9]+", "-", block.items[0][0].lower())[:30]
            yield Table(name, "Terms.", (Column("Term"), Column("Meaning")), rows)
        case old.Table():
            yield _table(block)
        case old.Figure():
            yield _chart(block)
        case old.Section():
            yield Heading(block.title)
            for inner in block.blocks:
                yield from _blocks(inner)


def _table(table: old.Table) -> Table:
    columns = tuple(Column(c.title, c.align == "right") for c in table.columns)
    rows = tuple(tuple(_cell(cell) for cell in row) for row in table.rows[:_MOST_ROWS])
    notes = table.notes
    if len(table.rows) > _MOST_ROWS:
        rest = len(table.rows) - _MOST_ROWS
        notes = (*notes, f"{rest:,} more rows are in the files of the result.")
    return Table(table.name, table.caption, columns, rows, "", notes, table.folded)


def _cell(cell: old.Cell) -> Cell:
    text = cell.text
    if _STATUS.get(cell.tone) in {"increase", "decrease"}:
        text = text.lstrip("\u25b2\u25bc ")  # writers mark what is significant
    value, bracket, rest = text.partition(" [")
    if not bracket or not rest.count(","):
        return Cell(text, status=_STATUS.get(cell.tone, ""), value=cell.value)
    ends = rest.rstrip("]").replace(", ", " to ", 1)
    return Cell(value, ends, _STATUS.get(cell.tone, ""), cell.value)


def _chart(figure: old.Figure) -> Chart:
    drawn = _LONG_PATH.sub(lambda path: _DIGITS.sub(r"\1", path[0]), to_svg(figure.spec))
    data = base64.b64encode(drawn.encode()).decode()
    image = f'<img alt="{escape(shorten(figure.alt, 300))}" src="data:image/svg+xml;base64,{data}">'
    return Chart(figure.name, figure.title, figure.caption, figure.alt, (image,))
