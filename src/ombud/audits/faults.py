"""The faults of a plan, all at once, each with what was probably meant."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from math import isfinite
from typing import TYPE_CHECKING, Any, get_args, get_origin

from pydantic import BaseModel, ValidationError

from ombud import registry
from ombud.errors import OmbudError, PlanError

if TYPE_CHECKING:
    from ombud.audits.analysis import Analysis
    from ombud.metrics.base import Metric


def form_faults(model: type[BaseModel], error: ValidationError) -> list[str]:
    """Return one line for each fault in the form of a plan."""
    lines = []
    for one in error.errors():
        where = [str(part) for part in one["loc"]]
        if one["type"] == "extra_forbidden":
            lines.append(_unknown_key(model, where))
        else:
            said = one["msg"].removeprefix("Value error, ")
            lines.append(f"{'.'.join(where) or 'plan'}: {said}")
    return lines


def numbers_that_are_none(content: Any) -> dict[str, float]:
    """Return every ``inf`` and ``nan`` in nested values, however deep, by its place."""
    found: dict[str, float] = {}
    waiting: list[tuple[tuple[str, ...], Any]] = [((), content)]
    while waiting:
        place, part = waiting.pop()
        if isinstance(part, float) and not isfinite(part):
            found[".".join(place)] = part
        elif isinstance(part, dict):
            waiting += [((*place, str(key)), value) for key, value in part.items()]
        elif isinstance(part, list | tuple):
            waiting += [((*place, str(at)), value) for at, value in enumerate(part)]
    return dict(reversed(found.items()))


def _unknown_key(model: type[BaseModel], where: list[str]) -> str:
    *path, key = where
    inside: Any = model
    named = False
    for part in path:
        if named:  # the part is a name that the plan gives, such as that of an expectation
            named = False
            continue
        field = getattr(inside, "model_fields", {}).get(part)
        inside = None if field is None else _model(field.annotation)
        named = field is not None and get_origin(field.annotation) is dict
    known = list(getattr(inside, "model_fields", {}))
    place = f"[{'.'.join(path)}]" if path else "the plan"
    near = get_close_matches(key, known, n=1)
    meant = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(known)}"
    return f"{place} has no key {key!r}; {meant}"


def _model(annotation: Any) -> Any:
    return next(
        (a for a in (annotation, *get_args(annotation)) if hasattr(a, "model_fields")), None
    )


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
