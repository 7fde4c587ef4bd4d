"""A stored result comes back whole; a damaged one is refused with a sentence."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from ombud.audits import Audit, Result
from ombud.audits.plan import Plan
from ombud.audits.result import MetricInfo
from ombud.audits.run_folder import RunFolder
from ombud.data.exclusions import Exclusion
from ombud.errors import ResultError
from ombud.metrics import ShareGap
from ombud.report import Report
from ombud.stats.estimate import Estimate
from ombud.worlds import small_world


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    """A small finished result, made by hand."""
    estimate = Estimate(
        metric="gap", value=0.2, interval=(0.1, math.inf), method="x", n=9, null=0.0, p_value=0.01
    )
    result = Result(
        plan=Plan(title="By hand"),
        estimates=(estimate, Estimate.undefined(metric="gap", reason="none", n=0)),
        metrics=(MetricInfo({"name": "gap"}, "gap", null=0.0),),
        exclusions=(Exclusion("labels", "rows", 3, "no item", 10),),
        provenance={"schema_version": 1, "versions": {"ombud": "1"}},
        tables={"spread": pl.DataFrame({"a": [1, 2]})},
    )
    folder = tmp_path / "result"
    RunFolder(folder, {}, result.plan.to_toml()).finish(result)
    return folder


def test_a_stored_result_comes_back(stored: Path) -> None:
    loaded = Result.load(stored)
    assert loaded.estimates[0].interval == (0.1, math.inf)
    assert loaded.exclusions[0].of == 10
    assert loaded.tables["spread"]["a"].to_list() == [1, 2]
    assert Report(loaded).markdown()


def test_what_an_audit_stores_is_of_its_type(tmp_path: Path) -> None:
    world = small_world(seed=1)
    result = Audit(world.dataset, world.recommenders(), [ShareGap(k=10)]).run(tmp_path)
    assert Result.load(tmp_path).estimates == result.estimates


def deep(depth: int) -> Any:
    found: Any = 1
    for _ in range(depth):
        found = {"a": found}
    return found


@pytest.mark.parametrize(
    ("file", "change"),
    [
        ("estimates", lambda c: c["estimates"][0].update(null="0")),
        ("estimates", lambda c: c["estimates"][0].update(value="0.2")),
        ("estimates", lambda c: c["estimates"][0].update(value=True)),
        ("estimates", lambda c: c["estimates"][0].update(n=9.5)),
        ("estimates", lambda c: c["estimates"][0].update(label=None)),
        ("estimates", lambda c: c["estimates"][0].update(kind="other")),
        ("estimates", lambda c: c["estimates"][0].update(p_value=[])),
        ("estimates", lambda c: c["estimates"][0].update(interval=5)),
        ("estimates", lambda c: c["estimates"][0].update(interval=["a", "b"])),
        ("estimates", lambda c: c["estimates"][0].update(colour="red")),
        ("estimates", lambda c: c.update(estimates={"a": 1})),
        ("estimates", lambda c: c.update(estimates=5)),
        ("estimates", lambda c: c.update(estimates=[None])),
        ("estimates", lambda c: c["metrics"][0].update(title=None)),
        ("estimates", lambda c: c["metrics"][0].update(spec=[])),
        ("estimates", lambda c: c["metrics"][0].update(spec=deep(600))),
        ("estimates", lambda c: c["metrics"][0].update(null="x")),
        ("estimates", lambda c: c.update(metrics=["gap"])),
        ("estimates", lambda c: c["exclusions"][0].update(count="3")),
        ("estimates", lambda c: c["exclusions"][0].pop("where")),
        ("estimates", lambda c: c.update(card="none")),
        ("estimates", lambda c: c.update(tables=["../../spread"])),
        ("estimates", lambda c: c.update(tables=["absent"])),
        ("estimates", lambda c: c.update(tables=7)),
        ("estimates", lambda c: c.pop("tables")),
        ("estimates", lambda c: c.update(schema_version="1")),
        ("provenance", lambda c: c.update(versions="1.0")),
        ("provenance", lambda c: c.update(versions={"ombud": {}})),
        ("provenance", lambda c: c.update(more=deep(600))),
    ],
)
def test_a_damaged_result_is_refused(
    stored: Path, file: str, change: Callable[[dict[str, Any]], object]
) -> None:
    path = stored / f"{file}.json"
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))
    with pytest.raises(ResultError):
        Result.load(stored)


def test_the_fields_at_fault_are_named_all_at_once(stored: Path) -> None:
    path = stored / "estimates.json"
    content = json.loads(path.read_text())
    content["estimates"][0] |= {"null": "0", "group": 3}
    path.write_text(json.dumps(content))
    with pytest.raises(ResultError, match=r"estimates\.json is damaged: .*group: .*; null: "):
        Result.load(stored)


@pytest.mark.parametrize("file", ["estimates.json", "provenance.json"])
def test_a_result_nested_too_deeply_is_refused(stored: Path, file: str) -> None:
    (stored / file).write_text('{"a":' * 200_000)
    with pytest.raises(ResultError, match="too deeply"):
        Result.load(stored)


def test_a_table_that_is_no_parquet_is_refused(stored: Path) -> None:
    (stored / "tables" / "spread.parquet").write_text("a,b\n1,2\n")
    with pytest.raises(ResultError, match=r"spread\.parquet is not Parquet"):
        Result.load(stored)


def test_a_table_behind_a_link_is_refused(stored: Path, tmp_path: Path) -> None:
    (stored / "tables").rename(tmp_path / "elsewhere")
    (stored / "tables").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ResultError, match="by a link"):
        Result.load(stored)
