"""Audits: ask once, measure many times."""

from ombud.audits.analysis import Analysis, AnalysisResult, Context
from ombud.audits.audit import Audit, rescore
from ombud.audits.compare import compare
from ombud.audits.condition import Condition
from ombud.audits.gate import Expectation, Gate
from ombud.audits.monitor import watch
from ombud.audits.plan import AboutPlan, ExpectPlan, Plan
from ombud.audits.result import MetricInfo, Result, tidy_frame
from ombud.audits.verify import verify

__all__ = [
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
    "compare",
    "rescore",
    "tidy_frame",
    "verify",
    "watch",
]
