"""Audits of services: what is said before, what is asked again, what the result keeps."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from ombud.audits import Audit, Plan, Result
from ombud.audits.load import load_system
from ombud.cli import app
from ombud.data.dataset import Dataset
from ombud.data.decisions import Decisions
from ombud.data.texts import Texts
from ombud.errors import AuditedSystemError, ResultError
from ombud.metrics import FalsePositiveRate
from ombud.report import Report

STUB = Path(__file__).parents[1] / "systems" / "moderators" / "stub_service.py"
OMNI = "omni-moderation-2024-09-26"
ROWS = ("fine", "zz", "peace", "hello", "good day", "welcome", *(f"text {n}" for n in range(6)))


@pytest.fixture
def stub() -> Iterator[Any]:
    """A running stub service, as the tests of the moderators use it."""
    name = "ombud_stub_service"
    if name not in sys.modules:
        spec = spec_from_file_location(name, STUB)
        assert spec is not None and spec.loader is not None
        sys.modules[name] = module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    with sys.modules[name].StubService() as service:
        yield service


def write_plan(folder: Path, stub: Any, run: str = "concurrency = 8", kind: str = "http") -> Path:
    rows = "".join(f"{row},0\n" for row in ROWS)
    (folder / "texts.csv").write_text(f"text,label\n{rows}")
    about = {
        "http": f'base_url = "{stub.url}/plain"\nmoderates = true\n'
        'score_path = "score"\nthreshold = 0.5',
        "openai-moderation": f'base_url = "{stub.url}/v1"\nkey_env = ""\nmodel = "{OMNI}"',
    }[kind]
    path = folder / "plan.toml"
    path.write_text(
        f"""
[data]
texts = "texts.csv"
[systems."our guard"]
type = "{kind}"
{about}
cache = "answers.sqlite"
run = {{ retries = 0, backoff = 0.01, {run} }}
[[metrics]]
name = "false-positive-rate"
[statistics]
replicates = 100
"""
    )
    return path


def run_plan(path: Path, **options: Any) -> Result:
    return Audit.from_plan(Plan.load(path)).run(path.parent / "result", **options)


def invoke(*words: object) -> Any:
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == 0, result.output
    return result


def test_a_run_says_on_standard_error_what_it_will_ask(stub: Any, tmp_path: Path) -> None:
    plan = write_plan(tmp_path, stub)
    result = invoke("run", plan, "--json")
    assert (
        f"our guard at 127.0.0.1:{stub.port}: 12 of 12 texts to ask in 12 requests" in result.stderr
    )
    assert "cost unknown" in result.stderr
    json.loads(result.stdout)
    again = invoke("run", plan)
    assert "our guard at" not in again.stderr  # nobody is asked
    assert sum(stub.asked.values()) == 12


def test_an_estimate_asks_nothing_and_makes_no_result(stub: Any, tmp_path: Path) -> None:
    plan = write_plan(tmp_path, stub)
    said = invoke("run", plan, "--estimate")
    assert "12 of 12 texts to ask in 12 requests" in said.stdout
    told = json.loads(invoke("run", plan, "--estimate", "--json").stdout)
    assert told["our guard"]["questions"] == 12
    assert not stub.asked and not (tmp_path / "plan.result").exists()


def test_an_estimate_without_services_says_so(tmp_path: Path) -> None:
    (tmp_path / "texts.csv").write_text("text,label\na,0\nb,0\n")
    plan = tmp_path / "plan.toml"
    plan.write_text(
        '[data]\ntexts = "texts.csv"\n[systems.k]\ntype = "keyword"\nterms = ["a"]\n'
        '[[metrics]]\nname = "false-positive-rate"\n'
    )
    assert "nothing is sent" in invoke("run", plan, "--estimate").stdout


def test_an_estimate_counts_recommenders_behind_http(tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text(
        'sample = 250\n[data]\nsource = "small"\n[systems.shop]\ntype = "http"\n'
        'url = "http://127.0.0.1:9/lists"\nbatch = 100\ncache = "answers.sqlite"\n'
        '[systems.kept]\ntype = "avoid-list"\nlabels = ["violence"]\n'
        '[systems.kept.inner]\ntype = "http"\nurl = "http://127.0.0.1:9/lists"\n'
        'batch = 100\ncache = "answers.sqlite"\n'
        '[[metrics]]\nname = "label-share"\n'
    )
    said = " ".join(invoke("run", plan, "--dry-run").stdout.split())
    assert "shop at 127.0.0.1:9: 250 of 250 users to ask in 3 requests" in said
    assert "kept at 127.0.0.1:9: 250 of 250 users to ask in 3 requests" in said
    told = json.loads(invoke("run", plan, "--dry-run", "--json").stdout)
    assert told["shop"]["what"] == "users" and told["shop"]["seconds"] == 0.375


def test_every_service_is_announced_before_the_first_is_asked(stub: Any, tmp_path: Path) -> None:
    asked_by_then: list[int] = []
    run_plan(
        write_plan(tmp_path, stub), notice=lambda _: asked_by_then.append(sum(stub.asked.values()))
    )
    assert asked_by_then == [0]


def test_progress_reaches_a_service_and_names_the_system(stub: Any, tmp_path: Path) -> None:
    shown: list[tuple[int, int, str]] = []
    run_plan(write_plan(tmp_path, stub), progress=lambda *step: shown.append(step))
    assert (12, 12, "Querying our guard") in shown
    assert any("12 of 12 texts to ask" in note for _, _, note in shown)


def test_a_moderator_without_progress_is_asked_all_the_same() -> None:
    class Plain:
        name = "plain"

        def moderate(self, texts: Texts) -> Decisions:
            n = len(texts)
            return Decisions(texts.ids, np.zeros(n, np.int8), np.zeros(n, np.float32))

    texts = Texts(np.arange(len(ROWS)), np.array(ROWS, dtype=object), np.zeros(len(ROWS), np.int8))
    result = Audit(Dataset(texts=texts), [Plain()], [FalsePositiveRate()]).run()
    assert result.estimates[0].value == 0


def test_reasons_and_notes_stand_in_result_terminal_and_report(stub: Any, tmp_path: Path) -> None:
    stub.faults["zz"].append("400")
    stub.faults["peace"].append("shape")
    stub.faults["hello"].append("category")
    plan = write_plan(tmp_path, stub, kind="openai-moderation")
    printed = invoke("run", plan, "--folder", tmp_path / "result").stdout
    result = Result.load(tmp_path / "result")
    why = [(e.count, e.of, e.reason) for e in result.exclusions if e.where == "our guard: answers"]
    assert [(count, of) for count, of, _ in why] == [(1, 12), (1, 12), (0, 12)]
    for (_, _, reason), words in zip(why, ("error: ", "unparseable: ", "note: "), strict=True):
        assert reason.startswith(words)
        assert reason[:40] in " ".join(printed.split())
    assert "400" in why[0][2] and "brand/new (1) of 10 replies" in why[2][2]
    (page,) = Report(result).save(tmp_path / "report.md")
    assert "brand/new" in page.read_text(encoding="utf-8")


def test_errors_of_a_service_are_asked_again_and_nothing_else(stub: Any, tmp_path: Path) -> None:
    stub.faults["fine"].append("500")
    plan = write_plan(tmp_path, stub)
    first = run_plan(plan)
    assert any("error" in e.reason for e in first.exclusions)
    said: list[str] = []
    second = run_plan(plan, notice=said.append)
    assert first.estimates[0].value == 1 / 11 and second.estimates[0].value == 1 / 12
    assert len(said) == 1 and "1 of 12 texts to ask" in said[0]
    assert stub.asked == {**dict.fromkeys(ROWS, 1), "fine": 2}
    assert not any(e.where == "our guard: answers" for e in second.exclusions)
    assert Result.load(tmp_path / "result").estimates == second.estimates
    run_plan(plan)
    assert sum(stub.asked.values()) == 13


def test_without_its_cache_a_stored_answer_is_not_paid_for_again(stub: Any, tmp_path: Path) -> None:
    stub.faults["fine"].append("500")
    plan = write_plan(tmp_path, stub)
    first = run_plan(plan)
    for file in tmp_path.glob("answers.sqlite*"):
        file.unlink()
    said: list[str] = []
    again = run_plan(plan, notice=said.append)
    assert len(said) == 1 and "12 questions would be asked again" in said[0]
    assert sum(stub.asked.values()) == 12 and again.estimates == first.estimates


def test_another_pace_is_the_same_run_and_more_repeats_are_not(stub: Any, tmp_path: Path) -> None:
    run_plan(write_plan(tmp_path, stub))
    run_plan(write_plan(tmp_path, stub, run="per_second = 50.0, concurrency = 2"))
    assert sum(stub.asked.values()) == 12
    with pytest.raises(ResultError, match="another run"):
        run_plan(write_plan(tmp_path, stub, run="repeats = 2"))


def test_a_message_uses_the_name_of_the_plan(stub: Any, tmp_path: Path) -> None:
    stub.faults["fine"].append("401")
    with pytest.raises(AuditedSystemError, match="^our guard stopped"):
        run_plan(write_plan(tmp_path, stub))


def test_a_name_that_the_plan_gives_itself_stands() -> None:
    config = {"type": "keyword", "terms": ["a"]}
    assert load_system("mine", config).name == "mine"
    assert load_system("mine", {**config, "name": "other"}).name == "other"
