"""The list of results reads little, and nothing in a folder can stall it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conftest import Running
from ombud.app.web import result_pages
from ombud.app.web.result_pages import find_results
from ombud.audits import Audit, Plan
from ombud.worlds import small_world

Serving = Callable[..., Running]

MOST = 10 * 1024


def plan(folder: Path, system: str, shown: str = "ours") -> Plan:
    return Plan.from_dict(
        {
            "title": "Is more <b>violence</b> shown?",
            "data": {n: str(folder / f"{n}.parquet") for n in ("interactions", "labels")},
            "systems": {
                "ours": {
                    "type": "recorded",
                    "path": str(folder / "recommendations" / f"{system}.parquet"),
                }
            },
            "metrics": [{"name": "share-gap", "k": 10}],
            "display": {"systems": {"ours": shown}},
        }
    )


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    small_world(seed=2).write(folder / "data", 10)
    Audit.from_plan(plan(folder / "data", "neutral")).run(folder / "monday")
    Audit.from_plan(plan(folder / "data", "amplifying")).run(folder / "tuesday")
    # The times have seconds: the order of two quick runs is set here.
    provenance = folder / "monday" / "provenance.json"
    text = re.sub(r'"started": "\d{4}', '"started": "2020', provenance.read_text())
    provenance.write_text(text)
    return folder


def stored(folder: Path, name: str, **files: Any) -> Path:
    path = folder / name
    path.mkdir()
    (path / "provenance.json").write_text("{}")
    for key, content in files.items():
        text = content if isinstance(content, str) else json.dumps(content)
        (path / f"{key}.json").write_text(text)
    return path


def test_the_list_has_verdict_finding_systems_and_date(results: Path, serving: Serving) -> None:
    tuesday, monday = find_results(results)
    assert (tuesday.answer, monday.answer) == ("yes", "cannot tell")
    assert tuesday.place == "tuesday" and re.fullmatch(
        r"\d{4}-\d\d-\d\d \d\d:\d\d", tuesday.started
    )
    assert "violence" in tuesday.finding and tuesday.systems == ("ours",)
    verdict = json.loads((results / "tuesday" / "verdict.json").read_text())["verdicts"][0]
    assert tuesday.headline == verdict["headline"] and not monday.finding
    page = serving(results).enter("Lea", "lead").get("/results").text
    assert tuesday.finding in page and tuesday.started in page and "<b>violence" not in page


def test_two_results_are_compared_the_earlier_first(results: Path, serving: Serving) -> None:
    from ombud.audits import Result
    from ombud.audits.compare import compare
    from ombud.report.watching import change_verdict

    lead = serving(results).enter("Lea", "lead")
    tuesday, monday = find_results(results)
    after = Result.load(tuesday.folder)
    expected = change_verdict(compare(Result.load(monday.folder), after), after)
    assert expected.answer == "worse"
    for pair in ((tuesday.key, monday.key), (monday.key, tuesday.key)):
        page = lead.get("/results/compare?of={}&of={}".format(*pair))
        assert page.status_code == 200 and expected.headline in page.text
        assert page.text.index("monday") < page.text.index("tuesday")
    for wrong in ([], [monday.key], [monday.key, monday.key], [monday.key, "0123"]):
        query = "&".join(f"of={key}" for key in wrong)
        assert lead.get(f"/results/compare?{query}").status_code == 400


def test_little_is_read_of_a_large_result(
    results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    verdict = json.loads((results / "tuesday" / "verdict.json").read_text())
    verdict["verdicts"] *= 200
    provenance = json.loads((results / "tuesday" / "provenance.json").read_text())
    provenance["files"] = {f"rows/{i}.parquet": "0" * 64 for i in range(5000)}
    for number in range(3):
        path = stored(tmp_path, f"r{number}", verdict=verdict, estimates=["x" * 10**6])
        form: dict[str, Any] = {"indent": 1, "sort_keys": True}
        (path / "verdict.json").write_text(json.dumps(verdict, **form))
        (path / "provenance.json").write_text(json.dumps(provenance, **form))
    read: list[int] = []

    def counted(handle: int, size: int) -> bytes:
        found = real(handle, size)
        read.append(len(found))
        return found

    def refuse(*args: Any, **options: Any) -> Any:
        raise AssertionError("only the counted way may read files")

    real = os.read
    monkeypatch.setattr(result_pages.os, "read", counted)
    for name in ("open", "read_text", "read_bytes"):
        monkeypatch.setattr(Path, name, refuse)
    monkeypatch.setattr("builtins.open", refuse)
    found = find_results(tmp_path)
    monkeypatch.undo()
    assert [e.answer for e in found] == ["yes"] * 3 and all(e.started for e in found)
    assert 0 < sum(read) <= 3 * MOST


def test_nothing_in_a_folder_stalls_or_breaks_the_list(tmp_path: Path) -> None:
    os.mkfifo(stored(tmp_path, "pipe") / "verdict.json")
    os.mkfifo(tmp_path / "provenance.json")
    stored(tmp_path, "bad", verdict="{nothing")
    stored(tmp_path, "deep", verdict='{"brief": ' + "[" * 10**6)
    stored(tmp_path, "types", verdict={"brief": {"answer": ["yes"], "systems": 3, "finding": {}}})
    stored(tmp_path, "list", verdict={"brief": [1]})
    stored(tmp_path, "older", verdict={"verdicts": [{"answer": "yes"}]})
    stored(tmp_path, "empty", verdict={"brief": {}, "verdicts": []})
    with (stored(tmp_path, "huge") / "verdict.json").open("wb") as file:
        file.truncate(50 * 2**30)
    (stored(tmp_path, "folder") / "verdict.json").mkdir()
    found = {e.place: e for e in find_results(tmp_path)}
    assert set(found) == {
        "pipe", "bad", "deep", "types", "list", "older", "empty", "huge", "folder"
    }  # fmt: skip
    assert found["pipe"].fault == found["folder"].fault == "verdict.json is not a regular file."
    for name in ("deep", "list"):
        assert found[name].fault == "verdict.json cannot be read.", name
    for name in ("bad", "huge", "older"):
        assert "does not begin with a brief verdict" in found[name].fault, name
    assert not found["types"].fault and found["types"].answer == ""
    assert not found["empty"].fault and found["empty"].headline == ""


def test_a_brief_verdict_fits_into_what_is_read(tmp_path: Path) -> None:
    small_world(seed=2).write(tmp_path / "data", 10)
    long = plan(tmp_path / "data", "amplifying", "\u5b57" * 90).model_copy(
        update={"title": "Is \u5b57" * 300}
    )
    Audit.from_plan(long).run(tmp_path / "result")
    (found,) = find_results(tmp_path)
    assert found.answer == "yes" and found.systems and not found.fault
