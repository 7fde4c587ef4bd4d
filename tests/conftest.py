"""What every test may ask for."""

from __future__ import annotations

import gc
import multiprocessing
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import settings

os.environ["OMBUD_PLUGINS"] = "none"

# Runs that are killed are forked from a process that has their imports behind it.
PRELOADED = ["audits", "metrics", "worlds", "tuning.tuning", "link", "probes", "text.sourcing",
             "systems.detectors", "systems.moderators", "systems.recommenders.adapters",
             "http.download", "report.report"]  # fmt: skip
multiprocessing.get_context("forkserver").set_forkserver_preload(
    ["pytest", *(f"ombud.{name}" for name in PRELOADED)]
)


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
    "ombud", deadline=None, max_examples=300 if WHOLE else 50, derandomize=not WHOLE
)
settings.load_profile("ombud")

# Files whose tests are few and long, the longest first: begun first, so that both workers end at
# the same time.
LONG = (
    "docs/test_docs",
    "docs/test_site",
    "_browser",
    "_kills",
    "_cluster.py",
    "propagation/",
    "questions/authors/",
    "questions/counterfactual/",
    "_realdata",
    "_simulation",
    "test_load",
    "docs/",
)

# Folders whose files share the result of a long run: one worker takes all of them.
TOGETHER = ("tests/questions/authors/", "tests/questions/counterfactual/")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Distribute files as ``--dist loadfile`` does, and some folders as if they were one file."""
    if config.getoption("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class Together(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            folder = next((name for name in TOGETHER if nodeid.startswith(name)), None)
            return folder or super()._split_scope(nodeid)

    return Together(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave out what takes minutes, unless ``OMBUD_SLOW=1`` (`make test-all`) asks for it."""
    items.sort(
        key=lambda item: next((n for n, part in enumerate(LONG) if part in item.nodeid), len(LONG))
    )
    if WHOLE:
        return
    for item in items:
        if item.get_closest_marker("slow"):
            item.add_marker(pytest.mark.skip(reason="slow; OMBUD_SLOW=1 runs it"))


def pytest_collection_finish() -> None:
    """Leave modules and thousands of tests out of every later collection of garbage."""
    gc.collect()
    gc.freeze()
