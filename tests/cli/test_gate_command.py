"""The gate on the command line: what it prints, and its exit codes."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from ombud.audits.plan import Plan
from ombud.audits.result import MetricInfo, Result
from ombud.audits.run_folder import RunFolder
from ombud.cli import app
from ombud.data.exclusions import Exclusion
from ombud.stats.estimate import Estimate

HOSTILE = "\x1b[31mred\u202egnp\x9b31m"


def ombud(*words: object, code: int = 0) -> str:
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == code, result.output
    return result.stdout if "--json" in words else result.output


def one(label: str, value: float | None = 0.2) -> Estimate:
    if value is None:
        return Estimate.undefined(metric="gap", reason=f"none for {label}", n=0, label=label)
    return Estimate(metric="gap", value=value, interval=(0.1, 0.3), method="x", n=9, label=label)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return finished(tmp_path, "")


def finished(tmp_path: Path, plan: str) -> Path:
    result = Result(
        plan=Plan.from_dict(tomllib.loads(plan)),
        estimates=(one("a"), one("b", None), one(HOSTILE), one("c", None)),
        metrics=(MetricInfo({"name": "gap"}, "gap"),),
        exclusions=(Exclusion("labels", "rows", 1, f"odd: {HOSTILE}"),),
        provenance={"schema_version": 1},
    )
    RunFolder(tmp_path / "result", {}, plan).finish(result)
    return tmp_path / "result"


def test_estimates_that_were_not_judged_are_counted(folder: Path) -> None:
    text = ombud("check", folder, "--fail-if", "value > 9")
    assert "0 of 4 estimates meet: value > 9" in text
    assert "2 estimates are undefined and were not judged" in text
    assert "none for b" in text and "NOTHING WAS JUDGED" not in text


@pytest.mark.parametrize("condition", ["value > 0", "not value > 0"])
def test_a_gate_on_undefined_numbers_says_that_it_judged_nothing(
    folder: Path, condition: str
) -> None:
    words = ("check", folder, "--fail-if", f'label == "b" and {condition}')
    text = ombud(*words)
    assert "1 estimate is undefined and was not judged" in text
    assert "NOTHING WAS JUDGED" in text
    assert "closed because" in ombud(*words, "--fail-if-nothing-judged", code=1)
    ombud(*words, "--fail-if-undefined", code=1)


def test_undefined_estimates_that_are_out_of_question_are_not_counted(folder: Path) -> None:
    words = ("check", folder, "--fail-if", 'label == "a" and value > 9', "--fail-if-undefined")
    assert "undefined" not in ombud(*words)


def test_undefined_in_json(folder: Path) -> None:
    condition = 'label in ("a", "b") and value > 0'
    found = json.loads(ombud("check", folder, "--fail-if", condition, "--json", code=1))
    assert [e["label"] for e in found["met"][condition]] == ["a"]
    assert [e["label"] for e in found["undefined"][condition]] == ["b"]
    assert found["judged"] == {condition: 1}


@pytest.mark.parametrize(
    "condition", ["-metric == 3", '"gpa" == metric', "label > 3", "not value", "value"]
)
def test_a_condition_that_is_none_exits_with_two(folder: Path, condition: str) -> None:
    text = ombud("check", folder, "--fail-if", condition, code=2)
    assert text.startswith("error: ")


def test_a_negative_of_an_undefined_number_is_undefined(folder: Path) -> None:
    assert "not judged" in ombud("check", folder, "--fail-if", "value < -low")


def is_inert(text: str) -> bool:
    return not {"\x1b", "\x9b", "\u202e"} & set(text)


def test_nothing_from_data_acts_on_the_terminal(folder: Path) -> None:
    met = ombud("check", folder, "--fail-if", '"red" in label', code=1)
    assert is_inert(met) and "␛[31mred⟨U+202E⟩gnp⟨U+009B⟩31m" in met
    assert is_inert(ombud("check", folder, "--fail-if", 'label == "absent"', code=2))
    assert is_inert(ombud("check", folder, "--fail-if", f'label != "{HOSTILE}"', code=1))
    everything = ombud("check", folder, "--fail-if", "n >= 0", "--json", code=1)
    assert is_inert(everything)
    (found,) = json.loads(everything)["met"].values()
    assert HOSTILE in {e["label"] for e in found}


def test_nothing_from_files_acts_on_the_terminal(tmp_path: Path) -> None:
    path = tmp_path / "\u202e.csv"
    path.write_text(f"user,{HOSTILE}\n1,2\n", encoding="utf-8")
    text = ombud("data", "check", path, "--as", "interactions", code=2)
    assert is_inert(text) and "found: user, ␛[31mred" in text
    path.write_text("user,item\n1,2\n", encoding="utf-8")
    text = ombud("data", "check", path, "--as", "interactions")
    assert is_inert(text) and text.startswith("⟨U+202E⟩.csv: ")


EXPECT = """
[expect."a is small"]
limit = "value <= 0.5"
where = 'label == "a"'
reason = "agreed with <the> board"

[expect."a is large"]
limit = "value > 0.5"
where = 'label == "a"'
reason = "it was"

[expect."b is small"]
limit = "value <= 0.5"
where = 'label == "b"'
reason = "hoped for"
"""


@pytest.fixture
def expecting(tmp_path: Path) -> Path:
    return finished(tmp_path, EXPECT)


def test_without_a_condition_the_plan_is_judged(expecting: Path, tmp_path: Path) -> None:
    text = ombud("check", expecting, code=1)
    assert "met: a is small (the one number is within the limit)" in text
    assert "not met: a is large (the one number is beyond it)" in text
    assert "undecided: b is small" in text and "none for b" in text
    found = json.loads(ombud("check", expecting, "--json", code=1))
    assert [one["state"] for one in found["expected"]] == ["met", "not met", "undecided"]
    gate = tmp_path / "gate.toml"
    gate.write_text(EXPECT.partition('[expect."a is large"]')[0])
    assert "a is large" not in ombud("check", expecting, "--gate", gate)
    assert "a is large" not in ombud("check", expecting, "--fail-if", "value > 9")


def test_an_undecided_limit_closes_the_gate_on_request(folder: Path, tmp_path: Path) -> None:
    gate = tmp_path / "gate.toml"
    gate.write_text('[expect."b"]\nlimit = "value < 9"\nwhere = \'label == "b"\'\nreason = "r"\n')
    ombud("check", folder, "--gate", gate)
    ombud("check", folder, "--gate", gate, "--fail-if-undecided", code=1)
    ombud("check", folder, "--gate", gate, "--fail-if-undefined", code=1)


def test_a_gate_about_nothing_and_no_gate_are_errors(folder: Path, tmp_path: Path) -> None:
    assert "expects nothing" in ombud("check", folder, code=2)
    gate = tmp_path / "gate.toml"
    gate.write_text('[expect."x"]\nlimit = "value < 9"\nwhere = \'label == "q"\'\nreason = "r"\n')
    assert "no estimate has label == 'q'" in ombud("check", folder, "--gate", gate, code=2)


def test_junit_is_xml_with_a_case_for_each_limit(expecting: Path, tmp_path: Path) -> None:
    path = tmp_path / "gate.xml"
    ombud("check", expecting, "--gate", expecting / "plan.toml", "--junit", path, code=1)
    suite = ElementTree.parse(path).getroot()[0]
    counts = {key: suite.get(key) for key in ("tests", "failures", "skipped", "errors")}
    assert counts == {"tests": "3", "failures": "1", "skipped": "1", "errors": "0"}
    kinds = [[part.tag for part in case] for case in suite]
    assert kinds == [["system-out"], ["failure", "system-out"], ["skipped", "system-out"]]
    assert "agreed with <the> board" in (suite[0].find("system-out").text or "")  # type: ignore[union-attr]
    assert "0.2 [0.1, 0.3]" in (suite[1].find("failure").text or "")  # type: ignore[union-attr]
    ombud("check", expecting, "--junit", path, "--fail-if-undecided", code=1)
    assert ElementTree.parse(path).getroot()[0].get("failures") == "2"


def test_junit_of_hostile_names_is_still_xml(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "gate.xml"
    ombud("check", folder, "--fail-if", '"red" in label', "--junit", path, code=1)
    text = path.read_text(encoding="utf-8")
    assert is_inert(text) and len(ElementTree.fromstring(text.encode())) == 1


def test_the_report_shows_what_was_judged(expecting: Path, tmp_path: Path) -> None:
    ombud("report", expecting)
    own = (expecting / "report.html").read_text()
    assert "<b>not met</b>: a is large" in own
    assert "declared these limits before anything was measured" in own
    gate = tmp_path / "gate.toml"
    gate.write_text(EXPECT.partition('[expect."a is large"]')[0])
    path = tmp_path / "judged.json"
    ombud("report", expecting, "--gate", gate, "--to", path)
    (other,) = json.loads(path.read_text())["expected"]
    assert (other["state"], other["said"], other["source"]) == ("met", "a is small", "gate.toml")
    ombud("check", expecting, "--fail-if", 'label == "a" and value > 0.1', "--report", path, code=1)
    (given,) = json.loads(path.read_text())["expected"]
    assert (given["state"], given["numbers"]["broken"]) == ("not met", 1)


def test_a_condition_on_the_verdict(expecting: Path, tmp_path: Path) -> None:
    """A verdict closes the gate by its answer; *cannot tell* is undecided."""
    path = expecting / "verdict.json"
    check = ("check", expecting, "--allow-edited")
    stored = json.loads(path.read_text())
    try:
        for answer, code in (("yes", 1), ("no clear evidence", 0), ("cannot tell", 0)):
            stored["verdicts"] = [{"answer": answer, "headline": ""}]
            path.write_text(json.dumps(stored))
            text = ombud(
                "check", expecting, "--allow-edited", "--fail-if", 'verdict == "yes"', code=code
            )
            assert f"Verdict: {answer}" in text
        ombud(
            "check",
            expecting,
            "--allow-edited",
            "--fail-if",
            'verdict == "yes"',
            "--fail-if-undecided",
            code=1,
        )
        ombud(*check, "--fail-if", 'verdict == "cannot tell"', code=1)
        ombud(*check, "--fail-if", 'verdict == "maybe"', code=2)
        ombud(
            "check",
            expecting,
            "--allow-edited",
            "--fail-if",
            'verdict == "yes" and low > 0',
            code=2,
        )
        gate = tmp_path / "gate.toml"
        gate.write_text('[expect."no harm"]\nlimit = \'verdict != "yes"\'\nreason = "agreed"\n')
        text = ombud(*check, "--gate", gate, code=0)
        assert "undecided: no harm (the verdict is cannot tell)" in text
    finally:
        path.write_text(json.dumps(stored))
