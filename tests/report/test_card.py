"""The card: one page for one system over all questions."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from ombud.audits import Result
from ombud.errors import PlanError
from ombud.report.card import QUESTIONS, SystemCard
from ombud.report.verdict import verdicts_of


@pytest.fixture(scope="module")
def results(demo: tuple[Path, str], tmp_path_factory: pytest.TempPathFactory) -> list[Result]:
    folder = tmp_path_factory.mktemp("demo") / "demo"
    for name in ("warnings", "suppression"):
        shutil.copytree(demo[0] / name, folder / name)
    return [Result.load(folder / name) for name in ("warnings", "suppression")]


def test_every_question_has_an_entry_and_those_without_a_result_are_not_asked(
    results: list[Result],
) -> None:
    card = SystemCard.of(results)
    answers = {entry.name: entry.answer for entry in card.entries}
    assert answers["suppression"] == "yes" and answers["exposure"] == "yes"
    assert {name for name, answer in answers.items() if answer == "not asked"} == {
        "authors",
        "counterfactual",
        "delicate",
    }
    assert len(card.entries) == len(QUESTIONS)


def test_an_entry_is_what_the_verdict_of_the_result_says(results: list[Result]) -> None:
    (verdict,) = verdicts_of(results[1])
    entry = next(e for e in SystemCard.of(results).entries if e.name == verdict.name)
    assert entry.headline == verdict.headline
    assert entry.finding is not None and entry.finding.sentence == verdict.findings[0].sentence
    assert any("acceptable texts" in fact for fact in entry.facts)


def test_the_card_of_one_system_has_its_own_answer(results: list[Result]) -> None:
    entries = {e.name: e for e in SystemCard.of(results, "suppressing").entries}
    assert entries["suppression"].answer == "yes"
    assert "exposure" not in entries and entries["warnings"].answer == "not asked"
    neutral = {e.name: e.answer for e in SystemCard.of(results, "neutral").entries}
    assert neutral["suppression"] == neutral["exposure"] == "no clear evidence"
    with pytest.raises(PlanError, match="did you mean 'suppressing'"):
        SystemCard.of(results, "supressing")


def test_the_title_names_the_system_or_what_the_first_plan_says_is_audited(
    results: list[Result],
) -> None:
    assert SystemCard.of(results, "neutral").title == "Recommender A"
    assert SystemCard.of(results, title="Ours").title == "Ours"
    said = [result.plan.about.audited for result in results]
    assert SystemCard.of(results).title == (next(filter(None, said), "") or "What the audits found")
    about = results[0].plan.about.model_copy(update={"audited": "the library's lists"})
    plan = results[0].plan.model_copy(update={"about": about})
    named = replace(results[0], plan=plan)
    assert SystemCard.of([named, results[1]]).title == "the library's lists"


def test_the_page_is_small_links_reports_and_loads_nothing(
    results: list[Result], tmp_path: Path
) -> None:
    from ombud.report import Report

    assert results[0].folder is not None
    Report(results[0]).save(results[0].folder / "report.html")
    card = SystemCard.of(results, title="<b>&").linked(results[0].folder.parent)
    page = card.html()
    assert len(page.encode()) < 200_000
    assert 'href="warnings/report.html"' in page
    assert "<script" not in page and "http:" not in page and "https:" not in page
    assert "<b>&" not in page and "&lt;b&gt;&amp;" in page
    text = card.markdown()
    assert text.startswith("# \\<b\\>\\&") and text.count("## ") == len(QUESTIONS)
    assert "Not part of this audit." in text and "[report](<warnings/report.html>)" in text
