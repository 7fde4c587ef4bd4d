"""Numbers that meet: in every sentence of every preset, levels and difference agree as printed."""

from __future__ import annotations

import importlib.util
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ombud.audits import Audit, Plan, Result
from ombud.report import Report
from ombud.report.model import Finding, Verdict, plain

_RENAMING = Path(__file__).with_name("test_renaming.py")


def _made(name: str) -> Callable[[Path], Result]:
    spec = importlib.util.spec_from_file_location("renaming", _RENAMING)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    made: Callable[[Path], Result] = getattr(module, name)
    return made


def quiet(folder: Path) -> Result:
    """Recommenders that recommend at random: nothing is planted."""
    plan: dict[str, Any] = {
        "preset": "warnings",
        "seed": 5,
        "data": {"source": "small", "options": {"seed": 3}},
        "by": ["gender"],
        "options": {"k": 10, "accuracy_at": [10], "trained": ["Random"], "bounds": False},
        "statistics": {"replicates": 100},
    }
    return Audit.from_plan(Plan.from_dict(plan)).run()


WORLDS: dict[str, Callable[[Path], Result]] = {
    "warnings": _made("warnings"),
    "suppression": _made("suppression"),
    "share gap": _made("plain"),
    "without effects": quiet,
}


@pytest.fixture(scope="module", params=WORLDS)
def result(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Result:
    return WORLDS[request.param](tmp_path_factory.mktemp("world"))


def findings(verdict: Verdict) -> list[Finding]:
    leading = [*verdict.findings, *verdict.early]
    return [*leading, *(one for finding in leading for one in finding.related)]


def number(text: str) -> float:
    found = re.search(r"[+\u2212-]?[\d,]+(?:\.\d+)?", text)
    assert found is not None, text
    return float(found[0].replace("\u2212", "-").replace(",", ""))


def test_levels_and_differences_agree_as_printed(result: Result) -> None:
    for verdict in Report(result).verdicts:
        for finding in findings(verdict):
            if not finding.levels:
                assert not re.search(r"\d%", plain(finding.sentence)), plain(finding.sentence)
                continue
            level, other = (number(one.text) for one in finding.levels)
            size = number(finding.size)
            assert plain(finding.sentence).count(finding.levels[0].text) >= 1
            places = len(finding.size.partition(".")[2].split(" ")[0].rstrip("%"))
            if "points" in finding.size:
                assert level - other == pytest.approx(size, abs=1e-9)
            elif "times" in finding.size:
                assert round(level / other, places) == pytest.approx(size)
            else:
                implied = 100 * (level / other - 1)  # from 200% on, two digits are printed
                implied = float(f"{implied:.2g}") if size >= 200 else round(implied, places)
                assert implied == pytest.approx(size)


def test_every_count_is_of_the_family(result: Result) -> None:
    for verdict in Report(result).verdicts:
        told = verdict.to_dict()["comparisons"]
        assert told["harmful"] <= told["tested"] <= len(verdict.family.estimates)
        members = {id(e) for e in verdict.family.estimates}
        assert all(id(f.estimate) in members for f in findings(verdict))
        corrections = {e.correction for e in verdict.family.estimates if e.correction}
        if verdict.name != "general" and result.plan.statistics.correction != "none":
            assert len(corrections) <= 1, corrections


def test_the_verdict_is_plain_data_and_fits_a_terminal(result: Result) -> None:
    report = Report(result)
    assert json.loads(json.dumps(list(result.verdicts), allow_nan=False))
    assert len(report.lines()) <= 24
    for verdict in report.verdicts:
        for word in ("places", "of every 100", "interval", "clear after correction"):
            assert word not in plain(verdict.headline)


def test_the_report_reads_well(result: Result, reads_well: Callable[[Result], None]) -> None:
    reads_well(result)
