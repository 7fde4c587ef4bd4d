"""The sections of a report, one file each.

A section is a function of a result, registered with ``@ombud.registry.section("name")``, that
returns a `Section` or None when it has nothing to say. Its ``order`` says where it stands.
"""

from __future__ import annotations

from ombud.report.sections.answer import answer
from ombud.report.sections.asked import asked
from ombud.report.sections.by_group import by_group
from ombud.report.sections.how_to_read import how_to_read
from ombud.report.sections.left_out import left_out
from ombud.report.sections.limits import limits
from ombud.report.sections.numbers import numbers
from ombud.report.sections.pictures import pictures
from ombud.report.sections.provenance import provenance
from ombud.report.sections.suppression import (
    suppression,
    suppression_drift,
    suppression_groups,
    suppression_missing,
    suppression_regression,
    suppression_scores,
    suppression_tags,
)
from ombud.report.sections.systems import systems
from ombud.report.sections.warnings import (
    warnings_accuracy,
    warnings_amplification,
    warnings_labels,
    warnings_remedies,
)
from ombud.report.sections.warnings_answer import warnings_answer

__all__ = [
    "answer",
    "asked",
    "by_group",
    "how_to_read",
    "left_out",
    "limits",
    "numbers",
    "pictures",
    "provenance",
    "suppression",
    "suppression_drift",
    "suppression_groups",
    "suppression_missing",
    "suppression_regression",
    "suppression_scores",
    "suppression_tags",
    "systems",
    "warnings_accuracy",
    "warnings_amplification",
    "warnings_answer",
    "warnings_labels",
    "warnings_remedies",
]
