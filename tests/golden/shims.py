"""Where the code has what the comparison needs, before and after modules move."""

from __future__ import annotations

import importlib
from typing import Any


def _first(*places: str) -> Any:
    """Return the first of some ``module:name`` that is there."""
    for place in places:
        module, _, name = place.partition(":")
        try:
            found = importlib.import_module(module)
        except ModuleNotFoundError:
            continue
        for part in name.split("."):
            found = getattr(found, part, None)
        if found is not None:
            return found
    raise ImportError(f"none of {', '.join(places)} is there; say in {__file__} where it went")


Audit = _first("ombud.audits:Audit", "ombud:Audit")
Plan = _first("ombud.audits:Plan", "ombud:Plan")
Result = _first("ombud.audits:Result", "ombud:Result")
app = _first("ombud.cli:app")
audit_of = _first("ombud.audits.engines:audit_of", "ombud.audits:Audit.from_plan")
rescore = _first(
    "ombud.audits.audit:rescore", "ombud.audits.rescore:rescore", "ombud.audits:rescore"
)
write_tables = _first("ombud.data.tables:write_tables", "ombud.data:write_tables")
small_world = _first("ombud.worlds:small_world")
ShareGap = _first("ombud.metrics:ShareGap", "ombud.metrics.shares:ShareGap")
LabelShare = _first("ombud.metrics:LabelShare", "ombud.metrics.shares:LabelShare")
NgramDetector = _first("ombud.systems.detectors:NgramDetector")


def metric(name: str) -> Any:
    """Return a class of metric by its name."""
    return _first(f"ombud.metrics:{name}")
