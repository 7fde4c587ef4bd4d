"""Groups of few people are one line in report, appendix and pack, unless the plan lists them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pytest

from ombud.audits import Audit, Result
from ombud.audits.plan import StatisticsPlan
from ombud.data.groups import Grouping
from ombud.metrics import ShareGap
from ombud.report import Report, pack
from ombud.report.redaction import merged_groups
from ombud.worlds import small_world

NAMES = ("town=Alpha", "town=Beta", "town=Gamma", "town=Delta")
SIZES = (60, 50, 4, 7)


def run(folder: Path | None, *, listed: bool = False, sizes: tuple[int, ...] = SIZES) -> Result:
    world = small_world(seed=4, users=sum(sizes))
    members = np.repeat(np.eye(len(sizes), dtype=bool), sizes, axis=0)
    units = world.interactions.users
    users = Grouping(units, NAMES[: len(sizes)], members, ("town",) * len(sizes))
    data = replace(world.dataset, users=users)
    few = StatisticsPlan(replicates=100, small_groups="listed" if listed else "merged")
    systems = world.recommenders()[:2]
    return Audit(data, systems, [ShareGap(k=10)], statistics=few).run(folder)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Result:
    return run(tmp_path_factory.mktemp("small") / "result")


def test_small_groups_are_one_line_everywhere(made: Result, tmp_path: Path) -> None:
    line = "2 groups with fewer than 10 people, 11 users"
    shown = merged_groups(made)
    merged = [e for e in shown.estimates if e.group == line]
    small = [e for e in made.estimates if e.group in NAMES[2:] and e.value is None]
    # One line for each system, label and kind of number, in place of two.
    assert len(merged) == len(small) // 2 and all(e.n == 11 for e in merged)
    assert len(shown.estimates) == len(made.estimates) - len(merged)
    report = Report(made)
    for text in (report.html(), report.markdown(), report.latex(), report.json()):
        assert "Gamma" not in text and "Delta" not in text
        assert "Alpha" in text and "groups with fewer than 10 people" in text
    paths = report.save(tmp_path / "report.html")
    appendix = tmp_path / "appendix.html"
    for path in {*paths, *([appendix] if appendix.exists() else [])}:
        assert "Gamma" not in path.read_text()
    archive = pack(made, tmp_path / "audit.zip")
    with ZipFile(archive) as files:
        for name in files.namelist():
            content = files.read(name)
            assert b"Gamma" not in content and b"Delta" not in content, name
        packed = json.loads(files.read("estimates.json"))["estimates"]
    assert any(e["group"] == line for e in packed)
    # The stored result has every number.
    assert any(e.group == NAMES[2] for e in made.estimates)


def test_the_plan_may_list_them() -> None:
    result = run(None, listed=True)
    assert merged_groups(result) is result
    assert "Gamma" in Report(result).html()


def test_a_large_group_beside_few_people_keeps_its_name() -> None:
    """Of 60 and 4 people, the comparison of the 60 does not name the number of the others."""
    result = run(None, sizes=(60, 4))
    shown = merged_groups(result)
    line = "1 group with fewer than 10 people, 4 users"
    assert {e.group for e in shown.estimates} == {"", "town=Alpha", line}
    (contrast, *_) = [e for e in shown.estimates if e.group == NAMES[0] and e.kind == "gap"]
    assert contrast.n == 60 and "would be compared with fewer than 10 people" in contrast.reason


def test_texts_and_large_groups_stay_as_they_are(made: Result) -> None:
    texts = tuple(e.replace(unit="text") for e in made.estimates)
    of_texts = replace(made, estimates=texts)
    assert merged_groups(of_texts).estimates == texts
    kept = [e for e in made.estimates if e.value is not None]
    assert [e for e in merged_groups(made).estimates if e.value is not None] == kept
