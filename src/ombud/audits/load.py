"""From a plan to the data, systems and metrics it names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np

from ombud import registry
from ombud.audits.analyses import Analysis
from ombud.audits.plan import Plan
from ombud.audits.presets import prepared
from ombud.data.card import Card
from ombud.data.dataset import Dataset
from ombud.data.frames import open_frame
from ombud.data.groups import Grouping
from ombud.data.ids import Vocabulary
from ombud.data.interactions import Interactions
from ombud.data.labels import Labels
from ombud.data.splits import split
from ombud.data.texts import Texts
from ombud.errors import OmbudError, PlanError
from ombud.files import hash_file
from ombud.metrics.base import Metric
from ombud.systems.base import Moderator, Recommender

__all__ = ["load_analyses", "load_data", "load_metrics", "load_system"]


def load_data(plan: Plan) -> Dataset:
    """Read the data that a plan names, let its preset prepare it, and split it if it says so.

    The faults of all files come in one error.
    """
    data = prepared(plan, _load(plan))
    return _split(data, plan) if plan.split else data


def _split(data: Dataset, plan: Plan) -> Dataset:
    if data.interactions is None:
        raise PlanError("the plan has a [split], but the data has no interactions")
    if data.test is not None:
        raise PlanError("the data is split already; remove [split] from the plan")
    cut = split(data.interactions, **({"seed": plan.seed} | plan.split))
    train = replace(cut.train, exclusions=(*cut.train.exclusions, *cut.exclusions))
    return replace(data, interactions=train, test=cut.test)


def _load(plan: Plan) -> Dataset:
    if plan.data.source is not None:
        kind = "source" if plan.data.source in registry.names("source") else "world"
        made = registry.create(kind, plan.data.source, plan.data.options)
        data = made if isinstance(made, Dataset) else made.dataset
        if not isinstance(data, Dataset):
            raise PlanError(f"{kind} {plan.data.source!r} did not give a data set")
        return _grouped(data, plan)
    return _load_files(plan)


def _grouped(data: Dataset, plan: Plan) -> Dataset:
    """Return the data of a source with the groups of the plan; all of them if it names none."""
    result = {"users": data.users, "text_groups": data.text_groups}
    known = [w for groups in result.values() if groups is not None for w in groups.attributes]
    missing = sorted(set(plan.by) - set(known))
    if missing:
        raise PlanError(
            f"by names {', '.join(missing)}; the source has the attributes "
            f"{', '.join(dict.fromkeys(known)) or 'none'}"
        )
    for name, groups in result.items():
        if groups is None:
            continue
        by = [w for w in plan.by or groups.attributes if w in groups.attributes]
        chosen = groups.select(by) if by else None
        if chosen is not None and plan.intersections:
            chosen = chosen.with_intersections()
        result[name] = chosen
    return replace(data, users=result["users"], text_groups=result["text_groups"])


def _load_files(plan: Plan) -> Dataset:
    asked = plan.data
    tables: dict[str, Any] = {}
    faults: list[str] = []
    hashes: dict[str, str] = {}
    loaders: dict[str, Callable[[str], Any]] = {
        "interactions": lambda path: Interactions.from_frame(
            path,
            rating_scale=asked.rating_scale,
            duplicates=asked.duplicates,
            missing=asked.missing,
        ),
        "test": lambda path: Interactions.from_frame(path, rating_scale=asked.rating_scale),
        "labels": lambda path: _labels(path, plan),
        "texts": Texts.from_frame,
        "users": lambda path: _groups(path, "user", plan),
        "text_groups": lambda path: _groups(path, "id", plan),
    }
    for name, load in loaders.items():
        path = getattr(asked, name)
        if path is None:
            continue
        try:
            tables[name] = load(path)
            hashes[Path(path).name] = hash_file(Path(path))
        except OmbudError as error:
            faults.append(str(error))
    if faults:
        raise PlanError("\n".join(faults))
    if "test" in tables and "interactions" not in tables:
        raise PlanError("the plan names held-out interactions, but none to train on")
    if not tables:
        raise PlanError("the plan names no data; give [data] a source, or interactions or texts")
    if "test" in tables:
        tables |= _over_all(tables["interactions"], tables["test"])
    unknowns = tables["labels"].rule if "labels" in tables else ""
    card = Card(name="files", title=", ".join(hashes), hashes=hashes, unknowns=unknowns)
    return Dataset(**tables, card=card)


def _over_all(train: Interactions, test: Interactions) -> dict[str, Interactions]:
    """Put both parts over the users and items of either."""
    users, _ = Vocabulary.encode(np.concatenate([train.users.ids, test.users.ids]))
    items, _ = Vocabulary.encode(np.concatenate([train.items.ids, test.items.ids]))
    return {"interactions": train.over(users, items), "test": test.over(users, items)}


def _labels(path: str, plan: Plan) -> Labels:
    columns = open_frame(path)[0].collect_schema().names()
    if "state" in columns:
        return Labels.from_states(path)
    if "yes" in columns or "no" in columns:
        return Labels.from_votes(path, threshold=plan.data.threshold, strict=plan.data.strict)
    return Labels.from_applied(path, absent=plan.data.absent)


def _groups(path: str, unit: str, plan: Plan) -> Grouping:
    columns = open_frame(path)[0].collect_schema().names()
    if "group" in columns and "group" not in plan.by:
        grouping = Grouping.from_members(path, unit=unit)
        return grouping.with_intersections() if plan.intersections else grouping
    by = plan.by or tuple(c for c in columns if c != unit)
    return Grouping.from_frame(path, unit=unit, by=by, intersections=plan.intersections)


def load_system(name: str, config: dict[str, Any]) -> Recommender | Moderator:
    """Build a system from its part of a plan."""
    options = dict(config)
    kind = options.pop("type", None)
    if kind is None:
        known = registry.names("recommender") + registry.names("moderator")
        raise PlanError(f"system {name!r} has no type; one of {', '.join(sorted(set(known)))}")
    moderates = options.pop("moderates", kind not in registry.names("recommender"))
    part = "moderator" if moderates else "recommender"
    if part == "moderator" and "name" in signature(registry.get(part, kind)).parameters:
        options.setdefault("name", name)  # messages then use the name that the plan uses
    made: Recommender | Moderator = registry.create(part, kind, options)
    return made


def load_metrics(specs: tuple[dict[str, Any], ...]) -> tuple[Metric, ...]:
    """Build metrics from their part of a plan; all faults in one error."""
    return _load_all("metric", specs)


def load_analyses(specs: tuple[dict[str, Any], ...]) -> tuple[Analysis, ...]:
    """Build analyses from their part of a plan; all faults in one error."""
    return _load_all("analysis", specs)


def _load_all(kind: str, specs: tuple[dict[str, Any], ...]) -> tuple[Any, ...]:
    made: list[Any] = []
    faults: list[str] = []
    for spec in specs:
        options = dict(spec)
        name = options.pop("name", None)
        if name is None:
            faults.append(f"{'an' if kind[0] in 'aeiou' else 'a'} {kind} has no name: {spec}")
            continue
        try:
            made.append(registry.create(kind, name, options))
        except OmbudError as error:
            faults.append(str(error))
    if faults:
        raise PlanError("\n".join(faults))
    return tuple(made)
