"""Texts and ratings in and out: tables, Label Studio, and everything that is wrong with them."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import polars as pl
import pytest
from _filling import fill, project, rate, rater

from ombud.app.agreement import measure_agreement
from ombud.app.errors import AppError
from ombud.app.exchange import EXPORTS, add_ratings, export, export_bytes, read_ratings
from ombud.app.label_studio import labelling_config, read_export, tasks
from ombud.app.project import Project
from ombud.app.settings import ProjectSettings
from ombud.app.tables import labels_table, ratings_table, texts_table
from ombud.app.texts import explicit_of, spans_of
from ombud.errors import DataError
from ombud.taxonomy import load_dictionary


@pytest.fixture
def rated(tmp_path: Path) -> Project:
    made = project(tmp_path / "rated", 12, ask_topics=True, ask_target=True, repeat_share=0)
    fill(made, ("Anna", "Ben", "Chidi"))
    return made


def fresh(tmp_path: Path, **settings: Any) -> Project:
    return project(tmp_path / "fresh", 12, ask_topics=True, ask_target=True, **settings)


def plain(table: pl.DataFrame) -> list[tuple[Any, ...]]:
    columns = ["id", "rater", "answer", "risk", "topics", "target", "skipped"]
    return sorted(table.select(columns).rows(), key=str)


def test_every_export_can_be_written(rated: Project, tmp_path: Path) -> None:
    for name in EXPORTS:
        assert export(rated, name, tmp_path / "out" / name).stat().st_size > 0
    with pytest.raises(AppError, match="no export"):
        export_bytes(rated, "all.zip")
    ratings = pl.read_parquet(tmp_path / "out" / "ratings.parquet")
    assert ratings.height == 36 and ratings["seconds"].min() >= 0
    as_csv = pl.read_csv(tmp_path / "out" / "labels.csv")
    labels = pl.read_parquet(tmp_path / "out" / "labels.parquet")
    assert as_csv["id"].to_list() == labels["id"].to_list()
    assert as_csv["delicate"].to_list() == labels["delicate"].to_list()


@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_ratings_come_back_from_a_table(rated: Project, tmp_path: Path, form: str) -> None:
    path = export(rated, f"ratings.{form}", tmp_path / f"ratings.{form}")
    with fresh(tmp_path) as other:
        found = read_ratings(path, other.settings)
        assert add_ratings(other, found, new_raters=True) == 36
        assert plain(other.store.read(ratings_table)) == plain(rated.store.read(ratings_table))
        ours, theirs = (
            p.store.read(lambda db, p=p: labels_table(db, p.settings)).drop("place", strict=False)  # type: ignore[misc]
            for p in (other, rated)
        )
        assert ours.equals(theirs)
        one, two = (
            p.store.read(lambda db, p=p: measure_agreement(db, p.settings, replicates=50))  # type: ignore[misc]
            for p in (other, rated)
        )
        assert [e.value for e in one.overall] == [e.value for e in two.overall]


def test_ratings_come_back_from_label_studio(rated: Project, tmp_path: Path) -> None:
    path = export(rated, "label-studio-export.json", tmp_path / "export.json")
    with fresh(tmp_path) as other:
        found = read_export(path, other.settings)
        assert add_ratings(other, found, new_raters=True) == 36
        assert plain(other.store.read(ratings_table)) == plain(rated.store.read(ratings_table))


def test_what_is_written_is_what_an_export_documents(rated: Project, tmp_path: Path) -> None:
    """Every task and result has the fields of the published example, under their names."""
    path = export(rated, "label-studio-export.json", tmp_path / "export.json")
    content = json.loads(path.read_text())
    controls = {c.attrib["name"] for c in ElementTree.fromstring(
        labelling_config(rated.settings)).iter("Choices")}  # fmt: skip
    assert [task["id"] for task in content] == list(range(1, 13))
    numbers = [one["id"] for task in content for one in task["annotations"]]
    assert len(set(numbers)) == 36
    for task in content:
        assert {"id", "data", "annotations"} == set(task) and task["data"]["text"]
        for one in task["annotations"]:
            assert one["task"] == task["id"] and isinstance(one["was_cancelled"], bool)
            assert {"id", "email"} == set(one["completed_by"]) and one["lead_time"] >= 0
            for part in one["result"]:
                assert set(part) == {"id", "from_name", "to_name", "type", "value"}
                assert part["from_name"] in controls and part["to_name"] == "text"
                assert part["type"] == "choices" and isinstance(part["value"]["choices"], list)


def test_the_labelling_configuration(rated: Project) -> None:
    tree = ElementTree.fromstring(labelling_config(rated.settings))
    assert tree.tag == "View"
    text = tree.find("Text")
    assert text is not None and text.attrib == {"name": "text", "value": "$text"}
    choices = {c.attrib["name"]: c for c in tree.iter("Choices")}
    assert set(choices) == {"step", "risk", "topics", "target"}
    assert all(c.attrib["toName"] == "text" for c in choices.values())
    assert [c.attrib["value"] for c in choices["risk"]] == list("12345")
    assert len(choices["topics"]) == 17 and choices["topics"].attrib["choice"] == "multiple"
    (inner,) = [v for v in tree.iter("View") if v.attrib]
    assert inner.attrib == {
        "visibleWhen": "choice-selected", "whenTagName": "step", "whenChoiceValue": "delicate",
    }  # fmt: skip
    bare = ElementTree.fromstring(labelling_config(ProjectSettings()))
    assert {c.attrib["name"] for c in bare.iter("Choices")} == {"step", "risk"}


def test_tasks_carry_the_text_and_its_columns(tmp_path: Path) -> None:
    with Project.create(tmp_path / "p") as made:
        made.add_texts({"id": [7], "text": ["One <b>&"], "url": ["https://example.org/a"]})
        assert made.store.read(tasks) == [
            {
                "data": {
                    "id": "7",
                    "text": "One <b>&",
                    "topics": [],
                    "explicit": False,
                    "url": "https://example.org/a",
                }
            }
        ]


def annotation(**changes: Any) -> dict[str, Any]:
    result = [
        {"id": "x", "from_name": "step", "to_name": "text", "type": "choices",
         "value": {"choices": ["delicate"]}},
        {"id": "y", "from_name": "risk", "to_name": "text", "type": "choices",
         "value": {"choices": ["4"]}},
    ]  # fmt: skip
    return {"id": 1, "completed_by": 10, "was_cancelled": False, "lead_time": 4.2,
            "created_at": "2026-03-09T22:16:08.728353Z", "result": result} | changes  # fmt: skip


def write(tmp_path: Path, *annotations: dict[str, Any], text: str = "t00000") -> Path:
    path = tmp_path / "ls.json"
    path.write_text(json.dumps([{"id": 1, "data": {"id": text}, "annotations": list(annotations)}]))
    return path


def test_an_export_as_label_studio_documents_it(tmp_path: Path) -> None:
    rating = {"from_name": "risk", "to_name": "text", "type": "rating", "value": {"rating": 2}}
    step = annotation()["result"][0]
    path = write(
        tmp_path,
        annotation(),
        annotation(completed_by={"id": 11, "email": "ben@example.org"}, result=[step, rating]),
        annotation(completed_by=12, was_cancelled=True, result=[]),
    )
    # As in the documentation: predictions, results with ids and origin, dates of the task.
    task = json.loads(path.read_text())[0]
    task |= {"project": 83, "created_at": "2026-03-09T21:52:49.513742Z", "predictions": [
        {"model_version": "model 1", "result": [step | {"score": 0.5}]}]}  # fmt: skip
    task["annotations"][0] |= {"ground_truth": False, "result_count": 0, "task": 1,
                               "updated_at": "2026-03-09T22:16:08.728378Z"}  # fmt: skip
    for part in task["annotations"][0]["result"]:
        part["origin"] = "manual"
    path.write_text(json.dumps([task]))
    with fresh(tmp_path) as made:
        found = read_export(path, made.settings, raters={"10": "Anna", "ben@example.org": "Ben"})
        assert [(r.rater, r.answer, r.risk, r.skipped) for r in found] == [
            ("Anna", "delicate", 4, False), ("Ben", "delicate", 2, False), ("12", "", None, True),
        ]  # fmt: skip
        assert found[0].seconds == 4.2
        add_ratings(made, found, new_raters=True)
        rows = made.store.read(ratings_table)
        assert rows["time"][0].isoformat() == "2026-03-09T22:16:08.728353+00:00"
        assert rows["seconds"][0] == 4.2


@pytest.mark.parametrize(
    ("one", "message"),
    [
        (annotation(completed_by=None), "completed_by names nobody"),
        (annotation(result=[]), "step I has no answer"),
        (annotation(result=annotation()["result"][:1]), "delicate, but without a risk"),
        (annotation(result=annotation()["result"][1:]), "step I has no answer"),
        (annotation(result=[{"from_name": "mood", "type": "choices"}]), "unknown control 'mood'"),
        (
            annotation(result=[annotation()["result"][0] | {"value": {"choices": ["maybe"]}}]),
            "unknown label 'maybe' of step",
        ),
        (annotation(result=annotation()["result"] * 2), "more than one answer for step"),
        (annotation(result="x"), "no result"),
    ],
)
def test_faults_of_an_export(tmp_path: Path, one: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=f"task 1, annotation 1: {message}"):
        read_export(write(tmp_path, one), ProjectSettings())


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is not JSON"),
        ("{}", "a list of tasks"),
        ('[{"text": "a", "step": "delicate"}]', "no data.id"),
        ('[{"data": {"id": "a"}}]', "not as JSON-MIN"),
        ('[{"id": "a", "annotation_id": 1}]', "short form, JSON-MIN"),
        ("[" * 100_000, "is not JSON"),
    ],
)
def test_files_that_are_no_export(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(content)
    with pytest.raises(DataError, match=message):
        read_export(path, ProjectSettings())


def test_unknown_texts_and_raters_are_refused_and_nothing_is_stored(tmp_path: Path) -> None:
    with fresh(tmp_path) as made:
        found = read_export(write(tmp_path, annotation(), text="nowhere"), made.settings)
        with pytest.raises(DataError) as error:
            add_ratings(made, found)
        assert len(error.value.faults) == 2
        assert "1 texts that the project does not have; the first: 'nowhere'" in str(error.value)
        assert "1 raters that the project does not have; the first: '10'" in str(error.value)
        with pytest.raises(DataError, match="named but not in the export: 99"):
            read_export(write(tmp_path, annotation()), made.settings, raters={"99": "Zoe"})
        assert made.store.read(ratings_table).height == 0


def test_a_rating_is_not_imported_twice(tmp_path: Path) -> None:
    with fresh(tmp_path) as made:
        found = read_export(write(tmp_path, annotation()), made.settings)
        add_ratings(made, found, new_raters=True)
        with pytest.raises(DataError, match="rated it already; the first: t00000 by 10"):
            add_ratings(made, found)
        with pytest.raises(DataError, match="rated it already"):
            add_ratings(
                made, read_export(write(tmp_path, annotation(), annotation()), made.settings)
            )
        assert made.store.read(ratings_table).height == 1


def test_imported_ratings_leave_less_to_do(tmp_path: Path) -> None:
    with project(tmp_path / "p", 1, repeat_share=0) as made:
        two = [annotation(), annotation(completed_by=11)]
        add_ratings(made, read_export(write(tmp_path, *two), made.settings), new_raters=True)
        rater(made, "a")
        rater(made, "b")
        assert rate(made, "a", 4)
        assert not rate(made, "b", 4)
        assert made.store.read(texts_table)["state"].to_list() == ["complete"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"answer": ["perhaps"]}, "unknown answer 'perhaps'"),
        ({"risk": [None]}, "delicate, but without a risk"),
        ({"risk": [9.0]}, "above 5"),
        ({"topics": ["spiders"]}, "unknown topic 'spiders'"),
        ({"target": ["everybody"]}, "unknown target 'everybody'"),
        ({"repeat": [True]}, "a repeat or a pilot rating"),
        ({"rater": [""]}, "a rater without a name"),
    ],
)
def test_faults_of_a_table(change: dict[str, Any], message: str) -> None:
    row = {"id": ["a"], "rater": ["Anna"], "answer": ["delicate"], "risk": [3.0]}
    with pytest.raises(DataError, match=message):
        read_ratings(pl.DataFrame(row | change), ProjectSettings())


def test_faults_of_texts_come_together(tmp_path: Path) -> None:
    with Project.create(tmp_path / "p") as made:
        bad = {
            "id": ["a", "a", "b", "c", "d"],
            "text": ["One.", "Two.", " ", "Three.", "x" * 100_001],
            "topics": ["age", "", "", "age|spiders", ""],
        }
        with pytest.raises(DataError) as error:
            made.add_texts(bad)
        assert len(error.value.faults) == 4
        with pytest.raises(DataError, match="column 'text' is missing"):
            made.add_texts({"words": ["a"]})
        made.add_texts({"id": ["a"], "text": ["One."]})
        with pytest.raises(DataError, match="in the main round already"):
            made.add_texts({"id": ["a"], "text": ["One."]})
        made.add_texts({"id": ["a"], "text": ["One."]}, round_="pilot")
        assert made.store.read(texts_table).height == 2


def test_other_columns_are_kept(tmp_path: Path) -> None:
    lines = [
        {"id": 1, "text": "a", "domain": "x.org", "terms": ["b", "c"], "score": 0.5},
        {"id": 2, "text": "b", "domain": None, "terms": [], "score": 1.0},
    ]
    path = tmp_path / "t.jsonl"
    path.write_text("\n".join(json.dumps(line) for line in lines))
    with Project.create(tmp_path / "p") as made:
        assert made.add_texts(path) == 2
        table = pl.read_parquet(io.BytesIO(export_bytes(made, "labels.parquet")))
        assert table["domain"].to_list() == ["x.org", None]
        assert table["terms"].to_list() == [["b", "c"], []]
        assert b"b|c" in export_bytes(made, "labels.csv")


def test_explicit_is_whether_a_dictionary_term_stands_in_the_text(tmp_path: Path) -> None:
    terms = tmp_path / "mine.csv"
    terms.write_text("group,term\nillness,fever\n")
    settings = ProjectSettings(dictionary=(str(terms),), mask="nothing")
    with Project.create(tmp_path / "p", settings) as made:
        made.add_texts({"text": ["A fever again.", "Feverish days."]})
        assert made.store.read(texts_table)["explicit"].to_list() == [True, False]
    with Project.create(tmp_path / "q", ProjectSettings(dictionary=())) as made:
        made.add_texts({"text": ["A fever again."]})
        assert made.store.read(texts_table)["explicit"].to_list() == [None]


def test_the_shipped_dictionary_says_what_is_explicit_and_what_is_covered(tmp_path: Path) -> None:
    words = load_dictionary("delicate@1")
    worst = next(t.text for t in words.terms if t.severity == words.scale[0])
    with Project.create(tmp_path / "p") as made:
        made.add_texts({"text": ["My chemotherapy.", "A boat.", f"Oh {worst}!"]})
        assert made.store.read(texts_table)["explicit"].to_list() == [True, False, True]
    spans = spans_of(["My chemotherapy.", f"Oh {worst}!"], ProjectSettings())
    assert spans[0] == [] and (3, 3 + len(worst)) in spans[1]


def test_a_dictionary_of_ones_own_may_be_a_file(tmp_path: Path) -> None:
    own = tmp_path / "own.csv"
    own.write_text("topic,severity,term\nmedicine,potentially-offensive,zoster\n")
    found = explicit_of(["Zoster again.", "A boat."], ProjectSettings(dictionary=(str(own),)))
    assert found == [1, 0]
