"""Audits: ask once, measure many times."""

from ombud.audits.audit import Audit
from ombud.audits.plan import Plan
from ombud.audits.result import MetricInfo, Result

__all__ = ["Audit", "MetricInfo", "Plan", "Result"]
