"""Files in the published formats, made small by the generator of the benchmark."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="session")
def formats() -> ModuleType:
    path = Path(__file__).parents[3] / "benchmarks" / "_published_formats.py"
    spec = importlib.util.spec_from_file_location("_published_formats", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
