"""Labels that a system gave, with error rates: what the warnings experiment can make of them."""

from __future__ import annotations

from typing import Any

from ombud.audits.plan import Plan
from ombud.data.frames import open_frame


def has_measured_labels(plan: Plan) -> bool:
    """Return whether the plan's file of labels holds the error rates of the system behind them."""
    if plan.data.source is not None or plan.data.labels is None:
        return False
    return "transport" in open_frame(plan.data.labels)[0].collect_schema().names()


def of_measured_labels(plan: Plan, given: frozenset[str]) -> dict[str, Any]:
    """Return the options to use with labels whose errors are known, unless the plan gives them.

    Only a ratio of means can be corrected for error rates, and every item has an answer, so there
    are no bounds for unknown labels.

    Parameters
    ----------
    plan
        The plan.
    given
        Options that the plan itself gives; they stand.
    """
    if not has_measured_labels(plan):
        return {}
    wanted: dict[str, Any] = {"forms": ("ratio-of-means",), "bounds": False}
    return {name: value for name, value in wanted.items() if name not in given}
