"""What was left out, counted."""

from __future__ import annotations

from ombud.audits.result import Result
from ombud.data.exclusions import Exclusion
from ombud.registry import section
from ombud.report.blocks import Block, Bullets, Cell, Column, Section, Table, paragraph


@section("left-out")
def exclusions(result: Result) -> Section:
    """Show every exclusion with its count and reason."""
    blocks: list[Block] = []
    excluded = [e for e in result.exclusions if not e.is_assumption]
    assumed = [e for e in result.exclusions if e.is_assumption]
    if excluded:
        rows = tuple(
            (
                Cell(e.where),
                Cell(e.what),
                Cell.number(e.count),
                Cell("\u2013") if e.of is None else Cell.number(e.of),
                Cell(e.reason),
            )
            for e in sorted(excluded, key=lambda e: -_share(e))
        )
        columns = (
            Column("Where", header=True),
            Column("What"),
            Column("Left out", "right"),
            Column("Of", "right"),
            Column("Why"),
        )
        text = "What was left out, and why; the largest shares first."
        blocks.append(Table("left-out-table", columns, rows, text))
    else:
        blocks.append(paragraph("Nothing was left out of this audit while it ran."))
    if assumed:
        blocks.append(paragraph("How the files were read:"))
        blocks.append(Bullets(tuple(paragraph(str(e)) for e in assumed)))
    if result.card.dropped:
        blocks.append(paragraph("Left out when the data set was made:"))
        blocks.append(Bullets(tuple(paragraph(line) for line in result.card.dropped)))
    return Section("What was left out", tuple(blocks), order=800)


def _share(exclusion: Exclusion) -> float:
    return exclusion.count / exclusion.of if exclusion.of else 1.0
