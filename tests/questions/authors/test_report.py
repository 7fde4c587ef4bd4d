"""What a reader sees: the answer, the sections, and the words for inferred identities."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest

from ombud.audits import Result
from ombud.questions.authors import (
    authors,
    authors_further,
    authors_lists,
    authors_propagation,
    authors_reranking,
)
from ombud.questions.authors.appendix import accuracy_figure
from ombud.report import Report
from ombud.report.blocks import Figure, Section, figures_in, tables_in
from ombud.report.model import plain
from ombud.stats.estimate import Estimate

SECTIONS = (authors, authors_lists, authors_propagation, authors_reranking, authors_further)


def parts(result: Result) -> list[Section]:
    made = [section(result) for section in SECTIONS]
    return [one for one in made if one is not None]


@pytest.mark.parametrize("which", ["authors_result", "three_result"])
def test_every_section_is_there_and_its_tables_are_named_once(
    which: str, request: pytest.FixtureRequest
) -> None:
    result = request.getfixturevalue(which)
    made = parts(result)
    assert len(made) == len(SECTIONS)
    tables = [t.name for one in made for t in tables_in(one.blocks)]
    assert len(tables) == len(set(tables))
    for figure in (f for one in made for f in figures_in(one.blocks)):
        assert figure.table in tables and figure.alt
        assert "inferred" not in figure.caption
    pipeline = next(f for f in figures_in(made[0].blocks) if f.name == "authors-pipeline-figure")
    drawn = {row["row"] for row in pipeline.spec["data"]["values"]}
    assert {"platform", "interactions", "profiles", "lists: item-kNN"} <= drawn
    reranked = {row for row in drawn if "EQ: item-kNN" in row}
    assert bool(reranked) == (which == "three_result")


def test_identities_without_an_item_on_the_platform_are_told(authors_result: Result) -> None:
    one = next(e for e in authors_result.estimates if e.details.get("stage") == "platform")
    unmet = one.replace(label="agender", value=0.2, details={**one.details, "stage": "catalogue"})
    changed = replace(authors_result, estimates=(*authors_result.estimates, unmet))
    section = authors(changed)
    assert section is not None and "with no item on the platform" in str(section.blocks[0])
    assert "no item on the platform" not in str(authors(authors_result))


def test_flagged_items_are_told(authors_result: Result) -> None:
    table = authors_result.tables["creator-resolution"]
    assert "flagged" not in str(authors(authors_result))
    marked = table.with_columns(flagged_items=table["items"] // 2, flagged_interactions=pl.lit(1))
    tables = {**authors_result.tables, "creator-resolution": marked}
    section = authors(replace(authors_result, tables=tables))
    assert section is not None and "items are flagged" in str(section.blocks[0])
    shown = next(t for t in tables_in(section.blocks) if t.name == "authors-resolution")
    assert shown.columns[-1].title == "Flagged items" and "first authors" in shown.caption


def test_the_verdict_compares_with_what_users_read(authors_result: Result) -> None:
    report = Report(authors_result)
    (verdict,) = report.verdicts
    assert verdict.name == "authors" and verdict.family.tested == 1
    for finding in verdict.findings:
        level, other = (one.value for one in finding.levels)
        assert level - other == pytest.approx(finding.estimate.value)
    assert any("unknown identity" in plain(text) for text in verdict.changes)
    assert len(report.lines()) <= 24


def test_inferred_identities_are_named_on_every_figure(authors_result: Result) -> None:
    options = {**authors_result.plan.options, "inferred": True}
    plan = authors_result.plan.model_copy(update={"options": options})
    result = replace(authors_result, plan=plan)
    drawn: list[Figure] = [f for one in parts(result) for f in figures_in(one.blocks)]
    assert any("inferred" in plain(t) for v in Report(result).verdicts for t in v.changes)
    for figure in drawn:
        assert "inferred" in figure.caption


def test_further_figures_stand_in_the_appendix_with_the_numbers(authors_result: Result) -> None:
    made = authors_further(authors_result)
    assert made is not None and made.place == "appendix"
    drawn = {figure.name: figure for figure in figures_in(made.blocks)}
    assert set(drawn) == {
        "authors-profile-density", "authors-list-density", "authors-slope-intercept",
        "authors-accuracy-figure", "authors-strategies",
    }  # fmt: skip
    for name in ("authors-profile-density", "authors-list-density"):
        (panel,) = drawn[name].spec["concat"]
        values = [v for layer in panel["layer"] for v in layer["data"]["values"]]
        bars = [v for v in values if "high" in v]
        assert sum(v["high"] * 0.05 for v in bars) == pytest.approx(1, abs=0.01)
        for kind in ("observed", "predicted", "smoothed"):
            line = [v["y"] for v in values if v.get("kind") == kind and "y" in v]
            # Steps of 0.02, the two at the ends by half.
            assert 0.02 * (sum(line) - (line[0] + line[-1]) / 2) == pytest.approx(1, abs=0.03)
    tuned = Estimate(
        metric="mrr@20 at tuning", key="creator-tuning/value", value=0.3, interval=None,
        method="none", n=0, system="item-kNN", unit="user", details={"metric": "mrr@20"},
    )  # fmt: skip
    both = replace(authors_result, estimates=(*authors_result.estimates, tuned))
    figure = accuracy_figure(both, name="f")
    assert figure is not None and "flatters" in figure.caption
    assert {v["series"] for v in figure.spec["data"]["values"]} == {"evaluation", "tuning"}


def test_other_results_have_no_such_section(authors_result: Result) -> None:
    empty = Result(authors_result.plan, (), ())
    assert parts(empty) == []


def test_the_fit_is_told_also_where_the_model_is_not_contradicted(authors_result: Result) -> None:
    made = authors_further(authors_result)
    assert made is not None
    table = next(t for t in tables_in(made.blocks) if t.name == "authors-misfits")
    rows = {row[0].text: row for row in table.rows}
    assert set(rows) == {"profiles", "item-kNN"}
    slope = next(e for e in authors_result.estimates if e.key == "propagation/slope")
    misfit = slope.details["misfit"]
    shown = [float(cell.text.replace(",", "")) for cell in rows["item-kNN"][2:]]
    told = ("distance", "p_value", "at_zero", "predicted_at_zero", "at_one", "predicted_at_one")
    assert shown == pytest.approx([*(misfit[name] for name in told), misfit["n"]], abs=6e-4)
    fits = next(
        t
        for t in tables_in(authors_propagation(authors_result).blocks)  # type: ignore[union-attr]
        if t.name == "authors-fits"
    )
    assert [c.title for c in fits.columns][6:8] == ["smallest ESS, bulk", "tail"]
    stored = authors_result.tables["creator-propagation-fits"].drop("smallest_tail_ess")
    before = replace(
        authors_result, tables={**authors_result.tables, "creator-propagation-fits": stored}
    )
    again = authors_propagation(before)
    assert again is not None
    fits = next(t for t in tables_in(again.blocks) if t.name == "authors-fits")
    assert {row[7].text for row in fits.rows} == {"none"}
