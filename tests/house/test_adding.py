"""Adding stays cheap: a new file in the right folder is enough, and no list must be told."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "ombud"

DATA_SOURCE = '''
"""A data set."""
from ombud.data import Dataset, Interactions
from ombud.registry import source

@source("brand-new")
def brand_new() -> Dataset:
    """A data set that nobody else knows of."""
    return Dataset(Interactions.from_frame({"user": [1, 2], "item": [1, 2]}))
'''
METRIC = '''
"""A metric."""
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from ombud.metrics.base import Metric, Rows
from ombud.registry import metric
from ombud.stats.statistics import Mean

@metric("brand-new")
@dataclass(frozen=True)
class BrandNew(Metric):
    """How long lists are."""

    of: ClassVar[Literal["recommender"]] = "recommender"
    statistic: ClassVar[Mean] = Mean()
    title: ClassVar[str] = "list length"

    def measure(self, outputs, data):
        values = outputs.lengths.astype(np.float64)[:, None]
        return Rows("user", outputs.users, {"value": values})
'''
MODEL = '''
"""A model."""
from dataclasses import dataclass
from ombud.data.recommendations import Recommendations
from ombud.registry import recommender

@recommender("brand-new")
@dataclass
class BrandNew:
    """The first items there are."""

    name: str = "brand new"

    def recommend(self, users, n, exclude_seen=True):
        rows = [(user, place, place) for user in users for place in range(1, n + 1)]
        return Recommendations.from_frame(dict(zip(("user", "item", "rank"), zip(*rows))))
'''
QUESTION = '''
"""A question."""
from typing import ClassVar
from pydantic import BaseModel
from ombud.audits.presets import Preset
from ombud.registry import preset, section
from ombud.report import part
from ombud.report.show import Say

class Options(BaseModel):
    """No options."""

@preset("brand-new")
class BrandNew(Preset):
    """Ask something new."""

    options: ClassVar[type[BaseModel]] = Options

    def complete(self, plan):
        return plan.model_copy(update={"metrics": ({"name": "label-share"},)})

@section("brand-new")
def brand_new():
    """Say something new."""
    return part("Brand new", Say((lambda context: ("A new question.",),)))
'''
PLAN = {"preset": "brand-new", "data": {"source": "small"}, "systems": {"p": {"type": "popular"}}}
ADDED = {
    "source": ("data/sources/brand_new.py", DATA_SOURCE, "registry.create('source', 'brand-new')"),
    "metric": ("metrics/brand_new.py", METRIC, "registry.create('metric', 'brand-new')"),
    "recommender": (
        "systems/recommenders/brand_new.py",
        MODEL,
        "registry.create('recommender', 'brand-new').recommend([1, 2], 3)",
    ),
    "preset": (
        "questions/brand_new/__init__.py",
        QUESTION,
        "[s.title for s in Report(Audit.from_plan(Plan.from_dict(PLAN)).run()).sections]",
    ),
}


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What using each new thing gave, in a copy of the package that has all of them."""
    folder = tmp_path_factory.mktemp("adding")
    shutil.copytree(
        SOURCE, folder / "ombud", ignore=shutil.ignore_patterns("__pycache__", "*.nbi", "*.nbc")
    )
    for file, content, _ in ADDED.values():
        path = folder / "ombud" / file
        path.parent.mkdir(exist_ok=True)
        path.write_text(content)
    program = (
        "import json\n"
        "from ombud import registry\n"
        "from ombud.audits import Audit, Plan\n"
        "from ombud.report import Report\n"
        f"PLAN = {PLAN}\n"
        "used = {}\n"
    )
    for kind, (_, _, use) in ADDED.items():
        program += (
            f"try:\n"
            f"    assert 'brand-new' in registry.names({kind!r}), 'not found'\n"
            f"    used[{kind!r}] = str({use})\n"
            f"except Exception as error:\n"
            f"    used[{kind!r}] = f'failed: {{error!r}}'\n"
        )
    done = subprocess.run(
        [sys.executable, "-c", program + "print(json.dumps(used))"],
        env=os.environ | {"PYTHONPATH": str(folder), "OMBUD_PLUGINS": "none"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, str] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("kind", ADDED)
def test_one_new_file_is_enough(kind: str, used: dict[str, str]) -> None:
    assert used[kind] and not used[kind].startswith("failed"), used[kind]
    if kind == "preset":
        assert "Brand new" in used[kind]
