"""The answer in pictures."""

from __future__ import annotations

from ombud.audits.result import Result
from ombud.registry import section
from ombud.report.blocks import Figure, Section
from ombud.report.figures import forest, group_contrasts, group_levels
from ombud.report.sections.coverage import left_to_general
from ombud.report.sections.names import slug

__all__ = ["figures"]


@section("figures")
def figures(result: Result) -> Section | None:
    """Draw every family of estimates that has one to draw."""
    drawn: list[Figure] = []
    for family in left_to_general(result):
        base = slug(result, family.metric.title)
        figure = None
        if family.kind == "overall":
            figure = forest(family, name=f"{base}-overall", table=f"{base}-overall-table")
        elif family.kind == "system contrast":
            figure = forest(family, name=f"{base}-systems", table=f"{base}-systems-table")
        elif family.kind == "group contrast":
            figure = group_contrasts(family, name=f"{base}-gaps", table="by-group")
        else:
            figure = group_levels(family, name=f"{base}-groups", table="by-group")
        if figure is not None:
            drawn.append(figure)
    return Section("In pictures", tuple(drawn), order=300) if drawn else None
