"""The sections of a report, one file each.

A section is a function of a result, registered with ``@ombud.registry.section("name")``, that
returns a `Section` or None when it has nothing to say. Its ``order`` says where it stands.
"""

from __future__ import annotations

from ombud.report.sections.answer import answer
from ombud.report.sections.by_group import by_group
from ombud.report.sections.exclusions import exclusions
from ombud.report.sections.figures import figures
from ombud.report.sections.how_to_read import how_to_read
from ombud.report.sections.limits import limits
from ombud.report.sections.numbers import numbers
from ombud.report.sections.provenance import provenance
from ombud.report.sections.scope import scope
from ombud.report.sections.systems import systems

__all__ = [
    "answer",
    "by_group",
    "exclusions",
    "figures",
    "how_to_read",
    "limits",
    "numbers",
    "provenance",
    "scope",
    "systems",
]
