"""What was given and is not used is refused, or stands at the top."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from ombud import registry
from ombud.audits import Audit, Plan
from ombud.data.decisions import Decisions
from ombud.data.tables import read_table_file
from ombud.errors import DataError, OmbudError, PlanError
from ombud.report import Report
from ombud.report.card import SystemCard
from ombud.report.model import plain
from ombud.systems import RecordedDecisions


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    ids = [f"t{i}" for i in range(200)]
    about = ["women" if i % 4 == 0 else "the sea" for i in range(200)]
    texts = [f"a story about {who}, number {i}" for i, who in enumerate(about)]
    pl.DataFrame({"id": ids, "text": texts, "label": [0] * 200}).write_csv(tmp_path / "texts.csv")
    flagged = [i % 3 == 0 for i in range(200)]
    pl.DataFrame({"id": ids, "flagged": flagged}).write_csv(tmp_path / "past.csv")
    return tmp_path


def plan(folder: Path, **more: object) -> Plan:
    content: dict[str, object] = {
        "preset": "suppression",
        "options": {"scores": False},
        "data": {"texts": "texts.csv"},
        "systems": {"mine": {"type": "recorded", "path": "past.csv"}},
        "statistics": {"replicates": 100},
    }
    return Plan.from_dict(content | more).relative_to(folder)


def test_decisions_that_match_nothing_are_refused(folder: Path) -> None:
    pl.DataFrame({"id": ["x1", "x2"], "flagged": [True, False]}).write_csv(folder / "past.csv")
    with pytest.raises(DataError, match=r"(?s)past\.csv.*none of its 2 ids is that of a text"):
        Audit.from_plan(plan(folder)).run()


def test_decisions_about_few_texts_stand_below_the_answer(folder: Path) -> None:
    past = pl.read_csv(folder / "past.csv").head(60)
    strange = pl.DataFrame({"id": [f"x{i}" for i in range(90)], "flagged": [True] * 90})
    pl.concat([past, strange]).write_csv(folder / "past.csv")
    result = Audit.from_plan(plan(folder)).run()
    report = Report(result)
    lines = [*map(str.strip, report.lines())]
    (answer, warning) = (
        next(i for i, line in enumerate(lines) if line.startswith(start))
        for start in (plain(report.verdicts[0].headline)[:30], "Warning: mine: recorded: 90 of 150")
    )
    assert answer < warning < lines.index("")
    assert report.warning.count("Warning: ") == 2
    assert "140 of 200 texts" in report.warning
    page = report.html(script=False)
    below = [page.index(text) for text in ('class="answer', "Warning: mine", 'class="systems')]
    assert below == sorted(below)
    assert report.markdown().index("Warning: mine") < report.markdown().index("How sure")
    card = SystemCard.of([result])
    assert "Warning: mine: recorded: 90 of 150" in card.html()
    assert "**Warning: mine: recorded: 90 of 150" in card.markdown()


def test_groups_that_match_nothing_are_refused_and_texts_in_none_counted(folder: Path) -> None:
    groups = pl.DataFrame({"id": ["x1", "x2"], "group": ["a", "b"]})
    groups.write_csv(folder / "groups.csv")
    data = {"texts": "texts.csv", "text_groups": "groups.csv"}
    with pytest.raises(DataError, match=r"(?s)groups\.csv.*none of its 2 ids is among the texts"):
        Audit.from_plan(plan(folder, data=data))
    ids = [f"t{i}" for i in range(50)]
    pl.DataFrame({"id": ids, "group": ["a"] * 50}).write_csv(folder / "groups.csv")
    audit = Audit.from_plan(plan(folder, data=data))
    (counted,) = [e for e in audit.data.exclusions if e.where == "groups"]
    assert (counted.count, counted.of, counted.is_warning) == (150, 200, False)
    more = pl.DataFrame({"id": [f"x{i}" for i in range(80)], "group": ["a"] * 80})
    pl.concat([pl.read_csv(folder / "groups.csv"), more]).write_csv(folder / "groups.csv")
    strangers = Audit.from_plan(plan(folder, data=data)).data.exclusions[0]
    assert (strangers.count, strangers.is_warning) == (80, True)


def test_an_index_that_was_written_along_is_no_attribute(folder: Path) -> None:
    (folder / "groups.csv").write_text(
        ",id,gender\n" + "\n".join(f"{i},t{i},f" for i in range(50)) + "\n"
    )
    with pytest.raises(OmbudError, match=r"(?s)groups\.csv.*column 1 has no name"):
        read_table_file("text_groups", folder / "groups.csv")
    (folder / "two.csv").write_text(
        ",text,label\n" + "\n".join(f"{i},words {i},no" for i in range(50)) + "\n"
    )
    options = {"path": folder / "two.csv", "text": "text", "label": "label"}
    made = registry.create(
        "source", "two-column", options | {"flagged": ["yes"], "acceptable": ["no"]}
    )
    assert set(made.texts.families) == {"traditional"}


@pytest.mark.parametrize("column", ["family", "set"])
def test_an_attribute_with_as_many_values_as_rows_is_refused(folder: Path, column: str) -> None:
    table = pl.read_csv(folder / "texts.csv").with_columns(pl.col("id").alias(column))
    table.write_csv(folder / "texts.csv")
    with pytest.raises(OmbudError, match=rf"(?s)texts\.csv.*column '{column}' has 200 values"):
        Audit.from_plan(plan(folder))


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"preset": None}, "the plan names none"),
        ({"data": {"texts": "texts.csv", "threshold": 0.9}}, "data.threshold says how labels"),
        ({"data": {"texts": "texts.csv", "duplicates": "last"}}, "data.duplicates says how"),
        ({"sample": 10}, "sample takes some of the users"),
    ],
)
def test_keys_that_are_not_used_are_refused(
    folder: Path, more: dict[str, object], said: str
) -> None:
    metrics = [{"name": "false-positive-rate"}]
    with pytest.raises(PlanError, match=said):
        Audit.from_plan(plan(folder, metrics=metrics, **more))


def test_attributes_that_no_table_has_are_refused(folder: Path) -> None:
    pl.DataFrame({"id": ["t1", "t2"], "group": ["a", "b"]}).write_csv(folder / "groups.csv")
    data = {"texts": "texts.csv", "text_groups": "groups.csv"}
    more = {"data": data, "by": ["gendre"], "preset": None, "options": {}}
    with pytest.raises(PlanError, match="by names gendre; the data has the attributes"):
        Audit.from_plan(plan(folder, metrics=[{"name": "false-positive-rate"}], **more))


def test_every_recorded_answer_is_kept() -> None:
    from ombud.data.texts import Texts

    frame = pl.DataFrame(
        {"id": ["a", "b", "a"], "flagged": [True, False, False], "repeat": [0, 0, 1]}
    )
    texts = Texts.from_frame({"id": ["b", "a", "c"], "text": ["x", "y", "z"]})
    got = RecordedDecisions(frame, "mine").moderate(texts)
    assert got.ids.tolist() == ["b", "a", "a", "c"]
    assert got.repeats is not None
    assert got.repeats.tolist() == [0, 0, 1, 0]
    once = Decisions(np.array(["a", "b"]), np.array([1, 0], np.int8), np.array([1, 0], np.float32))
    assert RecordedDecisions(once, "mine").moderate(texts).ids.tolist() == ["b", "a", "c"]
