"""What every test may ask for."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

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
