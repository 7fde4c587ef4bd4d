"""What a report shows of its plan."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from ombud.audits import Audit, Plan
from ombud.report import Report
from ombud.report.redaction import shown_plan

TERMS = ["quixotry", "zyzzyva"]


def plan_of(terms: list[str]) -> Plan:
    return Plan.from_dict(
        {
            "data": {"texts": "/home/me/texts.csv", "test": "/home/me/held-out.csv"},
            "systems": {
                "list": {"type": "keyword", "terms": terms},
                "service": {"type": "openai-moderation", "cache": "/home/me/answers.sqlite"},
            },
            "metrics": [{"name": "flag-rate"}],
        },
        "plan",
    )


def test_terms_are_counted_and_hashed_wherever_they_stand() -> None:
    shown = shown_plan(plan_of(TERMS))
    words = shown["systems"]["list"]["terms"]
    assert words.startswith("2 terms, SHA-256 ")
    assert not any(term in str(shown) for term in TERMS)
    again = shown_plan(plan_of(TERMS[::-1]))["systems"]["list"]["terms"]
    other = shown_plan(plan_of([*TERMS, "x"]))["systems"]["list"]["terms"]
    assert again == words and other != words
    nested = Plan(systems={"s": {"type": "t", "of": [{"terms": TERMS}]}})
    assert "zyzzyva" not in str(shown_plan(nested))


def test_no_folder_of_the_machine_is_shown() -> None:
    shown = shown_plan(plan_of(TERMS))
    assert "/home" not in str(shown)
    assert shown["data"]["test"] == "held-out.csv"
    assert shown["systems"]["service"]["cache"] == "answers.sqlite"


def test_a_report_does_not_print_terms_but_its_run_keeps_them(tmp_path: Path) -> None:
    texts = pl.DataFrame({"text": ["a zyzzyv", "b", "c"], "label": [0, 0, 1]})
    texts.write_csv(tmp_path / "texts.csv")
    (tmp_path / "plan.toml").write_text(
        f"""
[data]
texts = "texts.csv"
[systems.list]
type = "keyword"
terms = {TERMS}
[[metrics]]
name = "false-positive-rate"
[statistics]
replicates = 100
"""
    )
    result = Audit.from_plan(Plan.load(tmp_path / "plan.toml")).run(tmp_path / "result")
    for ending in ("html", "md", "json"):
        for path in Report(result).save(tmp_path / f"report.{ending}"):
            text = path.read_text(encoding="utf-8")
            assert not any(term in text for term in TERMS), path.name
    assert all(term in (tmp_path / "result" / "plan.toml").read_text() for term in TERMS)
