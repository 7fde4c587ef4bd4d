"""Audits: ask once, measure many times."""

from ombud.audits.analysis import Analysis, AnalysisResult, Context
from ombud.audits.audit import Audit
from ombud.audits.condition import Condition
from ombud.audits.gate import Expectation, Gate
from ombud.audits.plan import AboutPlan, ExpectPlan, Plan
from ombud.audits.result import TIDY_COLUMNS, MetricInfo, Result, tidy_frame
from ombud.audits.verify import Verification, verify

__all__ = [
    "TIDY_COLUMNS",
    "AboutPlan",
    "Analysis",
    "AnalysisResult",
    "Audit",
    "Condition",
    "Context",
    "ExpectPlan",
    "Expectation",
    "Gate",
    "MetricInfo",
    "Plan",
    "Result",
    "Verification",
    "tidy_frame",
    "verify",
]
