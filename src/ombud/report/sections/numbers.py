"""The numbers, measure by measure."""

from __future__ import annotations

from ombud.audits.result import Result
from ombud.registry import section
from ombud.report.blocks import Block, Section
from ombud.report.findings import families
from ombud.report.names import slug
from ombud.report.tables import detail_table, wide_table


@section("numbers")
def numbers(result: Result) -> Section | None:
    """Give every value over all units, with its interval, n and p-values."""
    blocks: list[Block] = []
    for family in families(result):
        if family.kind != "overall":
            continue
        title = family.metric.title
        base = slug(result, family.metric)
        tables: list[Block] = [
            wide_table(family, name=f"{base}-overall-table", caption=f"{title}, by system")
        ]
        tables.append(
            detail_table(family, name=f"{base}-overall-details", caption=f"{title}, in detail")
        )
        blocks.append(Section(title, tuple(tables)))
    return Section("The numbers", tuple(blocks), order=400, place="appendix") if blocks else None
