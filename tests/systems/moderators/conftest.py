"""The stub service, and short ways to ask it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

STUB_FILE = Path(__file__).with_name("stub_service.py")


def load_stub() -> ModuleType:
    name = "ombud_stub_service"
    if name not in sys.modules:
        spec = spec_from_file_location(name, STUB_FILE)
        assert spec is not None and spec.loader is not None
        sys.modules[name] = module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


@pytest.fixture
def stub() -> Iterator[Any]:
    """A running stub service that answers at once."""
    with load_stub().StubService() as service:
        yield service


@pytest.fixture
def stub_with() -> Iterator[Any]:
    """Starts stub services with other settings."""
    running = []

    def start(**options: Any) -> Any:
        service = load_stub().StubService(**options)
        running.append(service)
        return service.__enter__()

    yield start
    for service in running:
        service.__exit__()
