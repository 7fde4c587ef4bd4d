"""Faults that ended or spoiled a run: each once, as a person would meet it."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from ombud import Audit, Plan
from ombud.data.groups import Grouping
from ombud.errors import PlanError
from ombud.metrics import ShareGap
from ombud.report import Report
from ombud.worlds import small_world


def test_texts_that_name_no_group_are_stored(tmp_path: Path) -> None:
    """A suppression audit whose texts name no listed group, with string ids."""
    texts = [(f"t{n}", f"plain words {n}", n % 2) for n in range(40)]
    pl.DataFrame(texts, schema=["id", "text", "label"], orient="row").write_csv(
        tmp_path / "texts.csv"
    )
    flags = pl.DataFrame({"id": [t[0] for t in texts], "flagged": [n % 3 == 0 for n in range(40)]})
    flags.write_csv(tmp_path / "flags.csv")
    plan = {
        "preset": "suppression",
        "data": {"texts": str(tmp_path / "texts.csv")},
        "systems": {"s": {"type": "recorded", "path": str(tmp_path / "flags.csv")}},
        "options": {"scores": False},
    }
    result = Audit.from_plan(Plan.from_dict(plan)).run(tmp_path / "result")
    assert result.select(key="false-positive-rate(families=True)", kind="level")


def test_no_member_is_an_empty_table_of_ids() -> None:
    groups = Grouping.from_members({"user": ["a"], "group": ["g"]})
    none = Grouping(groups.units, groups.names, groups.members & False, groups.attributes)
    assert none.to_members().schema == groups.to_members().schema
    assert none.to_members().height == 0


def test_two_markdown_reports_in_one_folder_are_two_files(tmp_path: Path) -> None:
    world = small_world(seed=1)
    for k, name in ((5, "first"), (10, "second")):
        audit = Audit(world.dataset, world.recommenders()[:2], [ShareGap(k=k)])
        Report(audit.run()).save(tmp_path / f"{name}.md")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["first.md", "second.md"]
    texts = [(tmp_path / f"{name}.md").read_text() for name in ("first", "second")]
    assert texts[0] != texts[1] and "](" not in texts[0]


@pytest.mark.parametrize("engine", ["memory", "stream"])
def test_the_same_metric_twice_is_refused(tmp_path: Path, engine: str) -> None:
    plan = {
        "data": {"interactions": "history.parquet", "labels": "labels.parquet", "unlabeled": "no"},
        "systems": {"s": {"type": "recorded", "path": "lists.parquet"}},
        "metrics": [{"name": "share-gap", "k": 2}, {"name": "share-gap", "k": 2}],
        "engine": {"type": engine},
    }
    rows = {"user": ["u", "v"], "item": ["a", "b"]}
    pl.DataFrame(rows).write_parquet(tmp_path / "history.parquet")
    pl.DataFrame(rows).write_parquet(tmp_path / "lists.parquet")
    pl.DataFrame({"item": ["a"], "label": ["x"]}).write_parquet(tmp_path / "labels.parquet")
    with pytest.raises(PlanError, match="two metrics are called"):
        Audit.from_plan(Plan.from_dict(plan).relative_to(tmp_path))
