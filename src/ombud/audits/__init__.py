"""Audits: ask once, measure many times."""

from ombud.audits.audit import Audit
from ombud.audits.plan import Plan
from ombud.audits.result import MetricInfo, Result
from ombud.audits.verify import Verification, verify

__all__ = ["Audit", "MetricInfo", "Plan", "Result", "Verification", "verify"]
