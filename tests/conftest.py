"""What every test may ask for."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

os.environ["OMBUD_PLUGINS"] = "none"


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20261115)


@pytest.fixture(scope="session")
def realdata() -> Path:
    """The folder of real data sets, or a skip that says where it was looked for."""
    named = os.environ.get("OMBUD_REALDATA")
    folder = Path(named) if named else Path(__file__).parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"no real data at {folder}; set OMBUD_REALDATA to the folder that holds it")
    return folder


WHOLE = os.environ.get("OMBUD_SLOW", "") not in {"", "0"}

# A shared machine may be slow at any moment; no test is about time.
# The same examples every time in CI, others each time in `make test-all`.
settings.register_profile(
    "ombud", deadline=None, max_examples=200 if WHOLE else 50, derandomize=not WHOLE
)
settings.load_profile("ombud")

# Files whose tests are few and long: begun first, so that both workers end at the same time.
LONG = ("docs/", "_browser", "_simulation", "_kills", "_realdata", "propagation/", "test_load")
LONG += ("_cluster.py",)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave out what takes minutes, unless ``OMBUD_SLOW=1`` (`make test-all`) asks for it."""
    items.sort(key=lambda item: not any(part in item.nodeid for part in LONG))
    if WHOLE:
        return
    for item in items:
        if item.get_closest_marker("slow"):
            item.add_marker(pytest.mark.skip(reason="slow; OMBUD_SLOW=1 runs it"))


def pytest_collection_finish() -> None:
    """Leave modules and thousands of tests out of every later collection of garbage."""
    gc.collect()
    gc.freeze()
