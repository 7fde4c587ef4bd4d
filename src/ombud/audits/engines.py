"""Which engine runs a plan."""

from __future__ import annotations

from ombud.audits.audit import Audit
from ombud.audits.on_spark import SparkAudit
from ombud.audits.plan import Plan
from ombud.audits.streamed import StreamedAudit

__all__ = ["AnyAudit", "audit_of"]

AnyAudit = Audit | StreamedAudit


def audit_of(plan: Plan) -> AnyAudit:
    """Return the audit that a plan describes, by the engine that it names."""
    if plan.engine.type == "stream":
        return StreamedAudit.from_plan(plan)
    if plan.engine.type == "spark":
        return SparkAudit.from_plan(plan)
    return Audit.from_plan(plan)
