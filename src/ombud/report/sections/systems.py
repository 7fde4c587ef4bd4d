"""Systems compared with each other, on the same units."""

from __future__ import annotations

from ombud.audits.result import Result
from ombud.registry import section
from ombud.report.blocks import Block, Section, paragraph
from ombud.report.findings import families
from ombud.report.names import slug
from ombud.report.tables import detail_table

_UNFOLDED = 24


@section("systems")
def systems(result: Result) -> Section | None:
    """Give every difference between two systems, with interval and p-values."""
    blocks: list[Block] = [
        paragraph(
            "Each row compares two systems on the same units, so the interval is that of the "
            "difference itself. Above: the first system has more; below: the second has."
        )
    ]
    for family in families(result):
        if family.kind == "system contrast":
            title = family.metric.title
            table = detail_table(
                family,
                name=f"{slug(result, family.metric)}-systems-table",
                caption=f"{title}: differences between systems",
                folded=len(family.estimates) > _UNFOLDED,
            )
            blocks.append(table)
    if len(blocks) == 1:
        return None
    return Section("Systems compared", tuple(blocks), order=600, place="appendix")
