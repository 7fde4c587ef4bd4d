"""The comparisons in pictures."""

from __future__ import annotations

from collections.abc import Sequence

from ombud.audits.result import Result
from ombud.report.blocks import Block, Figure, Section, paragraph
from ombud.report.charts import ROOM
from ombud.report.display import count
from ombud.report.figures import forest, group_contrasts, group_levels
from ombud.report.findings import EstimateSet, Kind, by_sign, key_of_metric
from ombud.report.names import slug

_MOST = 4
_MOST_BESIDE = 2
_RANK: dict[Kind, int] = {"overall": 0, "group contrast": 1, "system contrast": 2, "group": 3}


def figures(result: Result, found: Sequence[EstimateSet], *, beside: bool) -> Section | None:
    """Draw the families of estimates that matter most: those with the most findings.

    Parameters
    ----------
    result
        What was found.
    found
        What the sections of a question leave to this one.
    beside
        Whether there are such sections, which have figures of their own.
    """
    most, room = (_MOST_BESIDE, ROOM // 2) if beside else (_MOST, ROOM)
    if beside:
        # Systems are compared in words above; what was not tested is in the question's sections.
        found = [
            f
            for f in found
            if f.kind != "system contrast" and any(e.null is not None for e in f.estimates)
        ]
    # Where groups are compared, their levels need no picture of their own.
    compared = {key_of_metric(f.metric) for f in found if f.kind == "group contrast"}
    found = [f for f in found if f.kind != "group" or key_of_metric(f.metric) not in compared]
    ordered = sorted(found, key=lambda f: (-_standing(f), _RANK[f.kind]))
    chosen: list[EstimateSet] = []
    drawn: dict[int, Figure] = {}
    for family in ordered:
        figure = _figure(result, family, room) if len(chosen) < most else None
        if figure is not None:
            chosen.append(family)
            drawn[id(family)] = figure
    blocks: list[Block] = [drawn[id(family)] for family in found if id(family) in drawn]
    rest = len(found) - len(blocks)
    if blocks and rest:
        text = f"{count(rest, 'set')} of numbers with fewer findings {'is' if rest == 1 else 'are'}"
        blocks.append(paragraph(f"{text} not drawn; the appendix has them all."))
    return Section("In pictures", tuple(blocks), order=310, name="figures") if blocks else None


def _standing(family: EstimateSet) -> int:
    signs = by_sign(family.estimates)
    return len(signs.get("above", ())) + len(signs.get("below", ()))


def _figure(result: Result, family: EstimateSet, room: int) -> Figure | None:
    base = slug(result, family.metric)
    if family.kind == "overall":
        return forest(family, name=f"{base}-overall", table=f"{base}-overall-table", room=room)
    if family.kind == "system contrast":
        return forest(family, name=f"{base}-systems", table="every-number", room=room)
    if family.kind == "group contrast":
        return group_contrasts(family, name=f"{base}-gaps", table="every-number", room=room)
    return group_levels(family, name=f"{base}-groups", table="every-number")
