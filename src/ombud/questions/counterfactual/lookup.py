"""Where the numbers of a counterfactual audit are in a result: by key and details."""

from __future__ import annotations

from typing import Any

from ombud.audits.result import Estimates, Result
from ombud.probes import Jaccard
from ombud.probes.training import ListChange
from ombud.stats.estimate import Estimate

_ROOTS = frozenset(
    {
        "consistency",
        "reach",
        "asked-reach",
        "retrained-reach",
        "over-categorisation",
        "escape",
        "drift-in",
        "stability",
        "attainable",
    }
)
OVERLAP = ListChange(Jaccard()).name
"""The distance between lists that leads the stability search."""


def keys_of(result: Result) -> frozenset[str]:
    """Return the keys of all counterfactual numbers of a result."""
    return frozenset(key for key in result.keys if key.split("/")[0] in _ROOTS)


def parts_of(result: Result) -> frozenset[str]:
    """Return which parts a result holds: ``reach``, ``escape``, ``drift-in``, ``stability``."""
    roots = (key.split("/")[0] for key in keys_of(result))
    return frozenset(root.removeprefix("asked-").removeprefix("retrained-") for root in roots)


def find(result: Result, key: str, **details: Any) -> Estimates:
    """Return the estimates of a key whose details are as asked, in order."""
    return result.select(key, **details)


def systems_of(estimates: tuple[Estimate, ...]) -> tuple[str, ...]:
    """Return the systems of some estimates, in order."""
    return tuple(dict.fromkeys(e.system for e in estimates))
