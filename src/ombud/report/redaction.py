"""The plan as a report shows it: without the folders of the machine that ran it, or term lists."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from pathlib import PurePath, PureWindowsPath
from typing import Any

from ombud.audits.plan import Plan, change_paths


def shown_plan(plan: Plan) -> dict[str, Any]:
    """Return the plan's values with file names in place of paths, and counts in place of terms.

    A report is sent to others; where files lay says nothing to them, and can say too much. The
    hashes in the provenance tell which files they were. A list of terms may be one of slurs: the
    report gives its length, and the SHA-256 of the sorted terms joined by line feeds. The run's
    own ``plan.toml`` and ``run.json`` hold the terms, for without them it could not be repeated.

    Examples
    --------
    >>> from ombud.audits.plan import DataPlan
    >>> shown_plan(Plan(data=DataPlan(labels="/home/me/secret/labels.csv")))["data"]["labels"]
    'labels.csv'
    >>> shown_plan(Plan(systems={"k": {"terms": ["a", "b"]}}))["systems"]["k"]["terms"]
    '2 terms, SHA-256 7e18f737311b2dc3\u2026'
    """
    return _shown(change_paths(plan, file_name).model_dump(mode="json", exclude_none=True))


def _shown(part: Mapping[str, Any]) -> dict[str, Any]:
    return {key: _value(key, value) for key, value in part.items()}


def _value(key: str, value: Any) -> Any:
    if isinstance(value, Mapping):
        return _shown(value)
    if not isinstance(value, list | tuple):
        return value
    if key == "terms":
        joined = "\n".join(sorted(str(term) for term in value))
        digest = sha256(joined.encode("utf-8", "surrogatepass")).hexdigest()
        return f"{len(value):,} terms, SHA-256 {digest[:16]}\u2026"
    return [_shown(one) if isinstance(one, Mapping) else one for one in value]


def file_name(path: str) -> str:
    """Return the name of a file without its folders, as either kind of system writes them."""
    return PureWindowsPath(path).name if "\\" in path else PurePath(path).name
