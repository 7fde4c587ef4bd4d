"""The faults of a plan, all at once, each with what was probably meant."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ombud import registry
from ombud.audits.plan import DataPlan, EnginePlan, Plan
from ombud.data.dataset import Dataset
from ombud.errors import OmbudError, PlanError

if TYPE_CHECKING:
    from ombud.audits.analysis import Analysis
    from ombud.metrics.base import Metric


def check_names(plan: Any, systems: bool = True) -> tuple[tuple[Metric, ...], tuple[Analysis, ...]]:
    """Look up everything that a plan names, and raise one error for all that is not there.

    Returns its metrics and analyses, which had to be built to be checked.

    Parameters
    ----------
    plan
        A plan, completed by its preset.
    systems
        Whether its systems are built from the plan; those that are given have no name there.
    """
    faults: list[str] = []
    if plan.data.source is not None:
        _look_up(faults, ("source", "world"), plan.data.source, "[data] source")
    kinds = _kinds_of_systems(plan)
    for name, config in plan.systems.items() if systems else ():
        if "type" in config:
            _look_up(faults, kinds, config["type"], f"system {name!r}")
    metrics = build_all("metric", plan.metrics, faults)
    analyses = build_all("analysis", plan.analyses, faults)
    if len(faults) == 1:
        raise PlanError(faults[0])
    if faults:
        lines = "".join(f"\n  - {fault}" for fault in faults)
        raise PlanError(f"the plan: {len(faults)} faults{lines}")
    return metrics, analyses


def build_all(kind: str, specs: Iterable[Mapping[str, Any]], faults: list[str]) -> tuple[Any, ...]:
    """Return all that some specs name, of one kind; those that cannot be built go to the faults."""
    made = []
    for spec in specs:
        options = dict(spec)
        name = options.pop("name", None)
        if name is None:
            faults.append(f"{'an' if kind == 'analysis' else 'a'} {kind} has no name: {spec}")
            continue
        try:
            made.append(registry.create(kind, name, options))
        except OmbudError as error:
            faults.append(str(error))
    return tuple(made)


def _kinds_of_systems(plan: Any) -> tuple[str, ...]:
    """Return what the systems of a plan can be, by what its metrics measure."""
    both = ("recommender", "moderator")
    known = registry.names("metric")
    metrics: list[Any] = [
        registry.get("metric", spec["name"]) for spec in plan.metrics if spec.get("name") in known
    ]
    wanted = {metric.of for metric in metrics}
    return tuple(kind for kind in both if kind in wanted) or both


def _look_up(faults: list[str], kinds: tuple[str, ...], name: object, where: str) -> None:
    known = sorted({one for kind in kinds for one in registry.names(kind)})
    every = {"recommender", "moderator"} if set(kinds) <= {"recommender", "moderator"} else kinds
    if not any(name in registry.names(kind) for kind in every):
        what = " or ".join(kinds)
        faults.append(f"{where}: no {what} is called {name!r}; {registry.hint(name, known)}")


# What was given and would not be used: refused, or said at the top.


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
