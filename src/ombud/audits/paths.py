"""Which values of a plan are paths: those whose argument is typed as one."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin

from ombud import registry
from ombud.data.lake import is_remote
from ombud.data.tables import TABLES
from ombud.errors import OmbudError, PlanError

if TYPE_CHECKING:
    from ombud.audits.plan import Plan


Change = Callable[[str], str]


def _is_path(hint: Any) -> bool:
    if get_origin(hint) in (Union, UnionType):
        return any(_is_path(part) for part in get_args(hint) if part is not NoneType)
    return isinstance(hint, type) and issubclass(hint, Path)


def _is_file(value: object) -> bool:
    # A mapping or a list of terms may also be named: "tmdb-to-ao3@1" is no file.
    return isinstance(value, str) and value != "" and not ("@" in value and not Path(value).suffix)


def _changed(kinds: tuple[str, ...], name: object, part: Mapping[str, Any], change: Change) -> Any:
    """Return the arguments of a registered thing with its paths changed, however deep."""
    hints: dict[str, Any] = {}
    for kind in kinds:
        try:
            hints = registry.argument_types(kind, str(name))
            break
        except OmbudError:  # the fault is told when the thing is built
            continue
    return {key: _value(hints.get(key), value, change) for key, value in part.items()}


def _value(hint: Any, value: Any, change: Change) -> Any:
    if isinstance(value, Mapping):
        if "source" in value and "type" not in value:  # a part of several sources
            return _changed(("source",), value["source"], value, change)
        named = value.get("type", value.get("name"))
        return _changed(("recommender", "moderator"), named, value, change)
    if isinstance(value, list | tuple):
        return [_value(None, one, change) if isinstance(one, Mapping) else one for one in value]
    return change(value) if _is_path(hint) and _is_file(value) else value


def change_paths(plan: Plan, change: Change) -> Plan:
    """Return the plan with every path in it changed.

    Parameters
    ----------
    plan
        The plan.
    change
        From a path to what stands in its place.
    """
    given = {name: getattr(plan.data, name) for name in TABLES}
    tables = {name: change(path) for name, path in given.items() if path is not None}
    options = _changed(("source", "world"), plan.data.source, plan.data.options, change)
    data = plan.data.model_copy(update={**tables, "options": options})
    systems = {
        name: _changed(("recommender", "moderator"), config.get("type"), config, change)
        for name, config in plan.systems.items()
    }
    return plan.model_copy(
        update={
            "data": data,
            "systems": systems,
            "metrics": _specs("metric", plan.metrics, change),
            "analyses": _specs("analysis", plan.analyses, change),
            "options": _changed(("preset",), plan.preset, plan.options, change),
        }
    )


def _specs(
    kind: str, specs: tuple[dict[str, Any], ...], change: Change
) -> tuple[dict[str, Any], ...]:
    return tuple(_changed((kind,), spec.get("name"), spec, change) for spec in specs)


def absolute_paths(plan: Plan, folder: Path) -> Plan:
    """Return the plan with its paths made absolute from a folder; ``~`` is the reader's home."""

    def absolute(path: str) -> str:
        if is_remote(path):
            return path
        try:
            return str((folder / Path(path).expanduser()).resolve())
        except (OSError, RuntimeError, ValueError) as error:  # no such home; a NUL in the name
            raise PlanError(f"{path[:80]!r} cannot be a path: {error}") from None

    return change_paths(plan, absolute)


def portable_paths(plan: Plan, folder: Path) -> Plan:
    """Return the plan with paths relative to a folder, without the home folder of its writer.

    What lies beside the folder is named from there, so both can be moved together; what lies
    elsewhere under the home folder begins with ``~``.
    """
    here, home = folder.resolve(), Path.home().resolve()

    def portable(path: str) -> str:
        file = Path(path)
        if not file.is_absolute():
            return path
        shared = Path(os.path.commonpath([here, file]))
        if shared != Path(shared.anchor) and shared not in (home, *home.parents):
            return Path(os.path.relpath(file, here)).as_posix()
        return f"~/{file.relative_to(home).as_posix()}" if file.is_relative_to(home) else path

    return change_paths(plan, portable)
