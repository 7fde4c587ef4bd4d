"""What was given and would not be used: refused, or said at the top."""

from __future__ import annotations

from ombud.audits.plan import DataPlan, EnginePlan, Plan
from ombud.data.dataset import Dataset
from ombud.errors import PlanError

_NEEDS = {
    "rating_scale": "interactions",
    "duplicates": "interactions",
    "missing": "interactions",
    "unlabeled": "labels",
    "threshold": "labels",
    "strict": "labels",
}
"""Which table each reading option is about."""


def refuse_unused(plan: Plan, data: Dataset) -> None:
    """Refuse keys of a plan that nothing would look at; all of them in one error.

    Values that are the default say nothing, so they are no fault.
    """
    faults = []
    for key, table in _NEEDS.items():
        default = DataPlan.model_fields[key].default
        unread = plan.data.source is None and getattr(plan.data, table) is None
        if unread and getattr(plan.data, key) != default:
            faults.append(f"data.{key} says how {table} are read; the plan names no {table}")
    if plan.sample is not None and data.interactions is None:
        faults.append("sample takes some of the users; the data has no interactions")
    known = [g for groups in (data.users, data.text_groups) if groups for g in groups.attributes]
    if plan.intersections and not known:
        faults.append("intersections pairs groups; the data has none")
    if plan.preset is None:
        missing = [name for name in plan.by or () if name not in known]
        if missing:
            attributes = ", ".join(dict.fromkeys(known)) or "none"
            faults.append(
                f"by names {', '.join(missing)}; the data has the attributes {attributes}"
            )
    faults += engine_faults(plan)
    if faults:
        raise PlanError("\n".join(faults))


def old_names(plan: Plan) -> list[str]:
    """Return a notice for each key of a plan that has a new name."""
    new = 'unlabeled = "no" or "unknown" under [data]'
    found = [f"[data] {name}" for name in plan.data.old_names]
    if plan.preset is not None and "unknown" in plan.options:
        found.append("[options] unknown")
    if plan.data.source is not None and "absent" in plan.data.options:
        found.append("[data.options] absent")
        new = 'unlabeled = "no" or "unknown" in the same place'
    return [f"{name} is an older name; write {new}" for name in found]


_ENGINES = {
    "blocks": ("stream", "spark"),
    "scratch": ("stream",),
    "rows": ("stream",),
    "master": ("spark",),
    "options": ("spark",),
}
"""Which engines read each key of ``[engine]``."""


def engine_faults(plan: Plan) -> list[str]:
    """Return the keys of ``[engine]`` that its type does not read."""
    plain = EnginePlan()
    return [
        f'engine.{key} is read by type = "{engines[0]}"; the type is "{plan.engine.type}"'
        for key, engines in _ENGINES.items()
        if plan.engine.type not in engines and getattr(plan.engine, key) != getattr(plain, key)
    ]
