"""The plan as a report shows it: without the folders of the machine that ran it."""

from __future__ import annotations

from pathlib import PurePath, PureWindowsPath
from typing import Any

from ombud.audits.plan import Plan

__all__ = ["shown_plan"]

_FILES = ("interactions", "labels", "users", "texts", "text_groups")


def shown_plan(plan: Plan) -> dict[str, Any]:
    """Return the plan's values with file names in place of paths.

    A report is sent to others; where files lay says nothing to them, and can say too much. The
    hashes in the provenance tell which files they were.

    Examples
    --------
    >>> from ombud.audits.plan import DataPlan
    >>> shown_plan(Plan(data=DataPlan(labels="/home/me/secret/labels.csv")))["data"]["labels"]
    'labels.csv'
    """
    shown = plan.model_dump(mode="json", exclude_none=True)
    for name in _FILES:
        if name in shown["data"]:
            shown["data"][name] = _name(shown["data"][name])
    for config in shown["systems"].values():
        if isinstance(config.get("path"), str):
            config["path"] = _name(config["path"])
    return shown


def _name(path: str) -> str:
    return PureWindowsPath(path).name if "\\" in path else PurePath(path).name
