"""Audits: ask once, measure many times."""

from ombud.audits.audit import Audit
from ombud.audits.expectations import Expectation, Gate
from ombud.audits.gate import Condition
from ombud.audits.plan import AboutPlan, ExpectPlan, Plan
from ombud.audits.result import MetricInfo, Result

__all__ = [
    "AboutPlan",
    "Audit",
    "Condition",
    "ExpectPlan",
    "Expectation",
    "Gate",
    "MetricInfo",
    "Plan",
    "Result",
]
