"""The preset, the answer page, the sections, and the page for one person."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from ombud.audits import Plan, Result
from ombud.audits.presets import complete
from ombud.errors import PlanError
from ombud.questions.counterfactual.lookup import keys_of
from ombud.questions.counterfactual.person import counterfactual_people, counterfactual_person
from ombud.questions.counterfactual.section import (
    counterfactual,
    counterfactual_reach,
    counterfactual_stability,
    counterfactual_ways,
)
from ombud.report import Report
from ombud.report.blocks import figures_in, tables_in
from ombud.report.images import to_svg
from ombud.report.model import plain

sys.path.insert(0, str(Path(__file__).parent))
from two_tastes import SYSTEMS, plan_of


def test_the_preset_fills_in_what_is_open(world: Path) -> None:
    plan = complete(plan_of(world, SYSTEMS, k=7))
    assert [m["name"] for m in plan.metrics] == ["coverage", "label-share"]
    assert plan.analyses[0]["name"] == "counterfactual"
    assert plan.analyses[0]["k"] == 7
    own = plan_of(world, SYSTEMS).model_copy(update={"metrics": ({"name": "gini", "k": 3},)})
    assert complete(own).metrics == ({"name": "gini", "k": 3},)


EXAMPLES = Path(__file__).parents[3] / "examples" / "counterfactual"


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.toml")), ids=lambda path: path.stem)
def test_examples_are_plans_that_the_preset_completes(path: Path) -> None:
    plan = complete(Plan.load(path))
    (analysis,) = plan.analyses
    assert analysis["name"] == "counterfactual" and len(plan.systems) == 6


def test_faults_of_a_plan_are_said(world: Path) -> None:
    with pytest.raises(PlanError, match=r"options\.k"):
        complete(plan_of(world, SYSTEMS, k=0))
    with pytest.raises(PlanError, match="name the recommenders"):
        complete(Plan.from_dict({"preset": "counterfactual"}))


def test_the_first_screen_is_short_and_has_a_finding(result: Result) -> None:
    (verdict,) = Report(result).verdicts
    assert verdict.name == "counterfactual" and verdict.findings
    assert len(plain(verdict.headline).split()) < 60
    assert all(len(plain(f.sentence).split()) <= 30 for f in verdict.findings)


def test_a_result_of_another_question_has_no_answer() -> None:
    empty = Result(Plan(), ())
    for make in (counterfactual, counterfactual_person):
        assert make(empty) is None


def test_every_figure_is_drawn_and_has_its_table(result: Result) -> None:
    makers = (counterfactual, counterfactual_reach, counterfactual_ways, counterfactual_stability)
    made = [make(result) for make in makers]
    assert all(section is not None for section in made)
    figures = figures_in([s for s in made if s is not None])
    tables = {table.name for table in tables_in([s for s in made if s is not None])}
    assert len(figures) == 3
    for figure in figures:
        assert to_svg(figure.spec).startswith("<svg")
        assert not figure.table or figure.table in tables
    first = made[0]
    assert first is not None
    assert first.withholds == keys_of(result)


def test_the_changed_part_is_marked_in_words(result: Result) -> None:
    section = counterfactual(result)
    assert section is not None
    (picture,) = figures_in(section.blocks)
    words = [row["words"] for row in picture.spec["layer"][1]["data"]["values"]]
    assert "The person's own history (changed)" in words
    assert "Other people's data (changed)" in words
    assert "The algorithm" in words


def test_edits_that_were_not_permitted_are_told(result: Result) -> None:
    (asked,) = result.plan.analyses
    fewer = {**asked, "realistic": 50, "kinds": ["add"]}
    changed = replace(result, plan=result.plan.model_copy(update={"analyses": (fewer,)}))
    told = [str(block) for block in counterfactual(changed).blocks]
    assert any("first 50 places" in words and "only to add" in words for words in told)
    assert not any("Edits of the own" in str(b) for b in counterfactual(result).blocks)


def test_a_page_for_one_person_names_titles_and_no_ids(result: Result) -> None:
    section = counterfactual_person(result)
    others = counterfactual_people(result)
    assert section is not None and others is not None
    assert others.place == "appendix"
    text = Report(result).markdown()
    assert "secretperson" not in text
    assert "Film no." in text
    assert "person 1" in text


def test_an_item_without_a_score_has_no_place_now(result: Result) -> None:
    known = result.tables["counterfactual-reach"]
    unscored = known.with_columns(
        rank_today=pl.lit(None, pl.Int64), reachable=pl.lit("yes"), edits=pl.lit("add it")
    )
    changed = replace(result, tables={**result.tables, "counterfactual-reach": unscored})
    (page,) = tables_in([counterfactual_person(changed)])
    assert any("now without a score" in row[0].text for row in page.rows)


def test_the_report_is_written_in_every_format(result: Result, tmp_path: Path) -> None:
    report = Report(result)
    assert "What a recommendation depends on" in report.html()
    assert report.latex()
