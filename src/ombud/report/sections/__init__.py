"""The sections of a report, one file each.

A section is a function of a result, registered with ``@ombud.registry.section("name")``, that
returns a `Section` or None when it has nothing to say. Its ``order`` says where it stands, its
``shows`` which metrics it tells. `comparisons` and `figures` come last: they tell the rest.
"""

from __future__ import annotations

from ombud.report.sections.by_group import by_group
from ombud.report.sections.could_see import could_see
from ombud.report.sections.exclusions import exclusions
from ombud.report.sections.general_answer import general
from ombud.report.sections.how_to_read import how_to_read
from ombud.report.sections.limits import limits, limits_of_measures
from ombud.report.sections.numbers import numbers
from ombud.report.sections.provenance import provenance
from ombud.report.sections.scope import measures, scope
from ombud.report.sections.systems import systems

__all__ = [
    "by_group",
    "could_see",
    "exclusions",
    "general",
    "how_to_read",
    "limits",
    "limits_of_measures",
    "measures",
    "numbers",
    "provenance",
    "scope",
    "systems",
]
