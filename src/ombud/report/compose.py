"""The sections of a report, in order: those of its questions, then what is left to the general."""

from __future__ import annotations

from dataclasses import replace

import ombud.report.sections  # noqa: F401 - registers the built-in sections
from ombud import registry
from ombud.audits.result import Result
from ombud.metrics.engine.estimator import ATTRIBUTE_GAP
from ombud.report.blocks import Section
from ombud.report.findings import EstimateSet, families, key_of_metric
from ombud.report.sections.comparisons import comparisons
from ombud.report.sections.figures import figures


def sections_of(result: Result) -> tuple[Section, ...]:
    """Return all sections that have something to say, of the report and of its appendix."""
    made: list[Section] = []
    for name in registry.names("section"):
        section = registry.get("section", name)(result)
        if section is not None:
            made.append(replace(section, name=name.replace("/", "-")))
    left = left_to_general(result, made)
    beside = any(section.shows or section.withholds for section in made)
    general = (
        comparisons(left, whole=False),
        figures(result, left, beside=beside),
        comparisons(left, whole=True),
    )
    made += [section for section in general if section is not None]
    return tuple(sorted(made, key=lambda section: (section.order, section.name)))


def left_to_general(result: Result, special: list[Section]) -> list[EstimateSet]:
    """Return the families of estimates that the general comparisons and figures are about.

    Each section says by key what it shows and what is no finding.
    """
    shown = frozenset().union(*(section.shows for section in special))
    withheld = frozenset().union(*(section.withholds for section in special))
    return [
        family
        for family in families(result)
        if (key := key_of_metric(family.metric)).removesuffix(ATTRIBUTE_GAP) not in withheld
        and (key not in shown or (family.kind in _OF_GROUPS and any(family.systems)))
    ]


_OF_GROUPS = frozenset({"group", "group contrast"})
