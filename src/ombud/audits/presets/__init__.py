"""Presets: a plan that names one is completed by it, and what the plan says itself stands.

A preset is a function from a plan to a plan, registered with ``@ombud.registry.preset("name")``;
``@ombud.audits.preparing.prepares(function)`` lets it prepare the data as well.
"""

from __future__ import annotations

from ombud import registry
from ombud.audits.plan import Plan
from ombud.audits.presets.suppression import suppression
from ombud.audits.presets.warnings import warnings

__all__ = ["complete", "suppression", "warnings"]


def complete(plan: Plan) -> Plan:
    """Return the plan with what its preset fills in; the plan itself when it names none."""
    if plan.preset is None:
        return plan
    completed: Plan = registry.get("preset", plan.preset)(plan)
    return completed
