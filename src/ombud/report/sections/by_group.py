"""The numbers of each group, and how far it lies from the rest."""

from __future__ import annotations

from ombud.audits.result import Result
from ombud.registry import section
from ombud.report.blocks import Block, Section
from ombud.report.display import shorten
from ombud.report.findings import EstimateSet, families, key_of_metric
from ombud.report.names import slug
from ombud.report.tables import group_table

_UNFOLDED = 24


@section("by-group")
def by_group(result: Result) -> Section | None:
    """Give every group its value and its difference from the rest."""
    levels = {key_of_metric(f.metric): f for f in families(result) if f.kind == "group"}
    gaps = {key_of_metric(f.metric): f for f in families(result) if f.kind == "group contrast"}
    blocks: list[Block] = []
    for key in dict.fromkeys([*levels, *gaps]):
        level, gap = levels.get(key), gaps.get(key)
        info = (level or gaps[key]).metric
        title = info.title
        systems = dict.fromkeys((*_systems(level), *_systems(gap)))
        tables: list[Block] = []
        for index, system in enumerate(systems):
            about = f": {shorten(system, 60)}" if system else ""
            here = [f.of(system=system) if f is not None else None for f in (level, gap)]
            rows = max(len(f.estimates) for f in here if f is not None)
            if not rows:
                continue
            tables.append(
                group_table(
                    *(f if f is not None and f.estimates else None for f in here),
                    name=f"{slug(result, info)}-groups-table-{index + 1}",
                    caption=f"{title} by group{about}",
                    folded=rows > _UNFOLDED,
                )
            )
        blocks.append(Section(title, tuple(tables)))
    return Section("By group", tuple(blocks), order=500, place="appendix") if blocks else None


def _systems(family: EstimateSet | None) -> tuple[str, ...]:
    return family.systems if family is not None else ()
