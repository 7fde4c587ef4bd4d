"""Whether a component can be built again from what a plan or a saved result would hold."""

from __future__ import annotations

import json
from dataclasses import fields, is_dataclass
from typing import Any

from ombud import registry


def options_of(component: Any) -> dict[str, Any]:
    """Return the arguments a component was made with, those that are None left out."""
    values = {f.name: getattr(component, f.name) for f in fields(component) if f.init}
    return {name: value for name, value in values.items() if value is not None}


def check_round_trip(kind: str, component: Any) -> None:
    """Assert that name and options, through JSON, give the same component; skip if unregistered."""
    name = getattr(type(component), "registered_name", "")
    if not name:
        import pytest

        pytest.skip(f"{type(component).__name__} is not registered")
    assert is_dataclass(component), f"{kind} {name!r} must be a dataclass to be built from a plan"
    options = options_of(component)
    stored = json.loads(json.dumps(options, default=str))
    again = registry.create(kind, name, stored)
    assert type(again) is type(component), (
        f"{kind} {name!r} gives a {type(again).__name__}, not a {type(component).__name__}"
    )
    assert options_of(again) == options, f"{kind} {name!r} came back with other options"
