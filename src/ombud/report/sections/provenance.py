"""Where the numbers come from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ombud.audits.result import Result
from ombud.registry import section
from ombud.report.blocks import Block, Cell, Column, Definitions, Section, Table, paragraph
from ombud.report.redaction import shown_plan

_CARD = (
    ("source", "Source"),
    ("licence", "Licence"),
    ("citation", "Citation"),
    ("known_harms", "Known harms"),
    ("unknowns", "Unknowns"),
)


@section("provenance")
def provenance(result: Result) -> Section:
    """Give the data card, versions, seeds, hashes, times and the plan."""
    card = result.card
    about = [("Data", paragraph(card.title or card.name))]
    about += [(title, paragraph(getattr(card, f))) for f, title in _CARD if getattr(card, f)]
    about += [
        (str(name), paragraph(f"{value:,}" if isinstance(value, int) else str(value)))
        for name, value in sorted(card.facts.items())
    ]
    blocks: list[Block] = [Section("The data", (Definitions(tuple(about)),))]
    told = {key: value for key, value in result.provenance.items() if key != "files"}
    rows = [*_flat("", told), *_flat("data file", card.hashes)]
    if rows:
        table = Table(
            "provenance-table",
            (Column("What", header=True), Column("Value")),
            tuple((Cell(key), Cell(value)) for key, value in rows),
            "Versions, seeds, times, and SHA-256 hashes of the inputs.",
        )
        blocks.append(Section("The run", (table,)))
    files = result.provenance.get("files", {})
    if files:
        table = Table(
            "files-table",
            (Column("File of the result", header=True), Column("SHA-256")),
            tuple((Cell(name), Cell(digest)) for name, digest in sorted(files.items())),
            "What the audit wrote: ombud verify hashes it again.",
            folded=True,
        )
        blocks.append(Section("The files", (table,)))
    rows = [row for row in _flat("", shown_plan(result.plan)) if row[1]]
    table = Table(
        "plan-table",
        (Column("Setting", header=True), Column("Value")),
        tuple((Cell(key), Cell(value)) for key, value in rows),
        "The plan of this audit: what to run again to get the same numbers.",
        folded=True,
    )
    blocks.append(Section("The plan", (table,)))
    return Section("Where the numbers come from", tuple(blocks), order=1000, place="appendix")


def _flat(prefix: str, values: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return nested values as rows of dotted names."""
    rows: list[tuple[str, str]] = []
    for key, value in sorted(values.items()):  # a stored result has its keys in this order
        name = f"{prefix}.{key}" if prefix else str(key)
        if isinstance(value, Mapping):
            rows += _flat(name, value)
        elif isinstance(value, (list, tuple)):
            for index, one in enumerate(value, 1):
                nested = isinstance(one, Mapping)
                rows += _flat(f"{name} {index}", one) if nested else [(f"{name} {index}", str(one))]
        else:
            rows.append((name, str(value)))
    return rows
