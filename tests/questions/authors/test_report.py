"""What a reader sees: the verdict, the sections, and the words for inferred identities."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest

from ombud.audits import Result
from ombud.report.model import Chart, Prose, Section, Table, plain
from ombud.report.page import build_page
from ombud.report.verdict import verdicts_of
from ombud.stats.estimate import Estimate

TITLES = (
    "Lists compared with profiles",
    "From the catalog to the lists",
    "What is known about items",
    "Profiles and lists",
    "How lists follow profiles",
    "What reranking costs",
    "Predicted shares",
)


def sections(result: Result) -> dict[str, Section]:
    return {s.title: s for s in build_page(result).sections if s.title in TITLES}


def blocks(result: Result, kind: type) -> list:
    return [b for s in sections(result).values() for b in s.blocks if isinstance(b, kind)]


def prose(result: Result) -> str:
    return " ".join(plain(text) for block in blocks(result, Prose) for text in block.paragraphs)


@pytest.mark.parametrize("which", ["authors_result", "three_result"])
def test_every_section_is_there_and_its_blocks_are_named_once(
    which: str, request: pytest.FixtureRequest
) -> None:
    result = request.getfixturevalue(which)
    assert tuple(sections(result)) == TITLES
    names = [b.name for kind in (Table, Chart) for b in blocks(result, kind)]
    assert len(names) == len(set(names))
    charts = {chart.name: chart for chart in blocks(result, Chart)}
    assert set(charts) == {
        "authors-coverage", "authors-bins", "authors-curves", "authors-densities",
        "authors-slope-intercept",
    }  # fmt: skip
    assert all("inferred" not in chart.caption for chart in charts.values())
    assert len(charts["authors-densities"].panels) == 2  # profiles, and one system


def test_the_pipeline_is_in_order_from_the_catalog_to_reranked_lists(three_result: Result) -> None:
    (table,) = (t for t in blocks(three_result, Table) if t.name == "authors-pipeline")
    stages = [row[0].text for row in table.rows]
    assert stages[:3] == ["items on the platform", "interactions", "users’ profiles"]
    assert stages.index("lists of item-kNN") < stages.index("item-kNN, SingleEQ")
    assert [c.title for c in table.columns[1:]] == ["men", "women", "x authors"]


def test_both_shares_in_a_finding_subtract_to_its_difference(authors_result: Result) -> None:
    (verdict,) = verdicts_of(authors_result)
    (finding,) = verdict.findings
    level, other = (one.value for one in finding.levels)
    assert level - other == pytest.approx(finding.estimate.value)
    assert "in the same users’ profiles" in plain(finding.sentence)
    assert "recommends works by women" in plain(finding.sentence)
    assert verdict.answer == "yes"
    assert finding.estimate.family == "authors"


def test_three_identities_in_opposite_directions_are_one_answer(three_result: Result) -> None:
    (verdict,) = verdicts_of(three_result)
    assert verdict.family.tested == 3
    assert {f.status for f in verdict.findings} == {"increase", "decrease"}


def test_identities_without_an_item_on_the_platform_are_told(authors_result: Result) -> None:
    one = next(e for e in authors_result.estimates if e.details.get("stage") == "platform")
    unmet = one.replace(label="agender", value=0.2, details={**one.details, "stage": "catalogue"})
    changed = replace(authors_result, estimates=(*authors_result.estimates, unmet))
    assert "with no item on the platform: agender authors (20%)" in prose(changed)
    assert "with no item" not in prose(authors_result)


def test_flagged_items_are_told(authors_result: Result) -> None:
    table = authors_result.tables["creator-resolution"]
    assert "first authors" not in prose(authors_result)
    marked = table.with_columns(flagged_items=table["items"] // 2, flagged_interactions=pl.lit(1))
    changed = replace(
        authors_result, tables={**authors_result.tables, "creator-resolution": marked}
    )
    assert "combine editions with several first authors" in prose(changed)
    (shown,) = (t for t in blocks(changed, Table) if t.name == "creator-resolution-table")
    assert shown.columns[-1].title == "Flagged items"
    assert "no book record" in {row[0].text for row in shown.rows}


def test_inferred_identities_are_named_on_every_chart(authors_result: Result) -> None:
    options = {**authors_result.plan.options, "inferred": True}
    plan = authors_result.plan.model_copy(update={"options": options})
    result = replace(authors_result, plan=plan)
    assert all("inferred" in chart.caption for chart in blocks(result, Chart))
    (verdict,) = verdicts_of(result)
    assert any("inferred" in plain(text) for text in verdict.changes)


def test_the_appendix_tells_how_well_the_model_fits(authors_result: Result) -> None:
    made = sections(authors_result)["Predicted shares"]
    assert made.appendix
    (table,) = (b for b in made.blocks if isinstance(b, Table) and b.name == "authors-misfits")
    rows = {row[0].text: row for row in table.rows}
    assert set(rows) == {"users’ profiles", "item-kNN"}
    slope = next(e for e in authors_result.estimates if e.key == "propagation/slope")
    misfit = slope.details["misfit"]
    told = ("distance", "p_value", "at_zero", "predicted_at_zero", "at_one", "predicted_at_one")
    shown = [cell.value for cell in rows["item-kNN"][2:]]
    assert shown == pytest.approx([*(misfit[name] for name in told), misfit["n"]])


def test_a_result_stored_before_has_its_fits(authors_result: Result) -> None:
    stored = authors_result.tables["creator-propagation-fits"].drop("smallest_tail_ess")
    before = replace(
        authors_result, tables={**authors_result.tables, "creator-propagation-fits": stored}
    )
    (fits,) = (t for t in blocks(before, Table) if t.name == "creator-propagation-fits-table")
    assert "tail" not in [column.title for column in fits.columns]
    assert len(fits.rows) == stored.height


def test_other_results_have_no_such_section(authors_result: Result) -> None:
    empty = Result(authors_result.plan, (), ())
    assert sections(empty) == {}
    assert verdicts_of(empty) == ()


def test_a_system_without_a_slope_says_why(authors_result: Result) -> None:
    gone = tuple(
        e.without_value("did not converge", "not-estimable") if e.key == "propagation/slope" else e
        for e in authors_result.estimates
    )
    assert ". Did not converge." in prose(replace(authors_result, estimates=gone))


@pytest.mark.parametrize(
    ("ends", "said"),
    [
        ((-0.1, 0.2), "do not clearly vary with profiles"),
        ((-0.4, -0.2), "move in the opposite direction to profiles"),
        ((0.2, 0.8), "vary less than profiles"),
        ((0.7, 1.3), "vary about as much as profiles"),
        ((1.1, 1.4), "are more extreme than profiles"),
    ],
)
def test_slopes_are_told_in_words(
    ends: tuple[float, float], said: str, authors_result: Result
) -> None:
    def moved(e: Estimate) -> Estimate:
        if e.key != "propagation/slope":
            return e
        return e.replace(value=sum(ends) / 2, interval=ends)

    changed = replace(authors_result, estimates=tuple(map(moved, authors_result.estimates)))
    assert said in prose(changed)
