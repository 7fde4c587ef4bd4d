"""The parameters that ``ombud tune`` found, for the systems of a plan."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ombud.errors import PlanError
from ombud.files import read_json


def with_tuned(
    systems: Mapping[str, dict[str, Any]], folder: Path | str, who: str
) -> dict[str, dict[str, Any]]:
    """Return systems with the parameters that ``ombud tune`` found for their models.

    Parameters
    ----------
    systems
        By name; what they state themselves stands.
    folder
        Where a search was kept, or a folder of such folders.
    who
        Who asks, in messages.

    Raises
    ------
    PlanError
        If there is no finished search, there are two for one model, or one is for no system.
    """
    root = Path(folder)
    found = {model: content["best"] for model, content in _searches(root, who).items()}
    used = {config.get("type") for config in systems.values()}
    unused = sorted(set(found) - used)
    if unused:
        raise PlanError(f"{who}: {root} has parameters of {', '.join(unused)}; no system is one")
    return {
        name: dict(found.get(str(config.get("type")), {})) | config
        for name, config in systems.items()
    }


def tuned_values(
    systems: Mapping[str, Mapping[str, Any]], folder: Path | str, who: str
) -> dict[str, tuple[str, float]]:
    """Return, for each system whose model was searched, the metric and its best value.

    Parameters
    ----------
    systems, folder, who
        As in `with_tuned`.
    """
    found = _searches(Path(folder), who)
    return {
        name: (str(own["metric"]), float(own["value"]))
        for name, config in systems.items()
        if (own := found.get(str(config.get("type")))) and {"metric", "value"} <= set(own)
    }


def _searches(root: Path, who: str) -> dict[str, Mapping[str, Any]]:
    """Return what finished searches of a folder wrote, by model."""
    files = sorted({root / "tuned.json", *root.glob("*/tuned.json")})
    found: dict[str, Mapping[str, Any]] = {}
    for file in (file for file in files if file.is_file()):
        content = read_json(file)
        model, best = content.get("model"), content.get("best")
        if not isinstance(model, str) or not isinstance(best, dict):
            raise PlanError(f"{who}: {file} is not what ombud tune writes")
        if model in found:
            raise PlanError(f"{who}: {root} holds two searches for {model}; keep one")
        found[model] = content
    if not found:
        raise PlanError(f"{who}: there is no finished search in {root} (no tuned.json)")
    return found
