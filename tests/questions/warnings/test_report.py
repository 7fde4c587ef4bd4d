"""What a reader of the warnings preset sees, with every option on."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import polars as pl
import pytest

from ombud.audits import Audit, Plan, Result
from ombud.data.exclusions import Exclusion
from ombud.metrics import ShareGap
from ombud.questions.warnings.report import AVERAGES, USERS, published
from ombud.report import Report
from ombud.report.context import Context
from ombud.report.model import Block, Chart, Prose, Section, Table, plain
from ombud.stats.estimate import Estimate
from ombud.worlds import small_world

BODY = ("All content", "By group", "Warnings and accuracy", "Rerankers")
APPENDIX = (
    "Other averages and readings", "Accuracy and systems compared", "Tables of the published study",
    "Popularity of labeled items",
    "Users\u2019 preference", "Labels and activity",
)  # fmt: skip
CHARTS = (
    "warnings-tradeoff", "warnings-spread", "warnings-popularity", "warnings-preference",
    "warnings-users", "warnings-activity",
)  # fmt: skip
MOST_BYTES = 400_000


def run(ratings: bool, **options: Any) -> Result:
    around = "SVD" if ratings else "ALS"
    rerankers = [
        {"type": "avoid-list", "of": around, "labels": ["violence"]},
        {"type": "calibrated", "of": around},
    ]
    every = {"accuracy_users": "all", "second_training": True, "rerankers": rerankers}
    plan = {
        "preset": "warnings",
        "seed": 1,
        "data": {"source": "small", "options": {"seed": 3, "ratings": ratings}},
        "by": ["gender"],
        "options": {"k": 20, "accuracy_at": [10, 20], **every, **options},
        "statistics": {"replicates": 100},
    }
    return Audit.from_plan(Plan.from_dict(plan)).run()


@pytest.fixture(scope="module")
def explicit() -> Result:
    return run(True)


@pytest.fixture(scope="module")
def implicit() -> Result:
    return run(False)


def sections(result: Result) -> dict[str, Section]:
    return {s.title: s for s in Report(result).sections if s.title in BODY + APPENDIX}


def blocks(result: Result) -> list[Block]:
    return [b for s in sections(result).values() for b in s.blocks]


def table(result: Result, name: str) -> Table:
    (found,) = (b for b in blocks(result) if isinstance(b, Table) and b.name == name)
    return found


def prose(result: Result) -> str:
    found = (b for b in blocks(result) if isinstance(b, Prose))
    return " ".join(plain(text) for block in found for text in block.paragraphs)


@pytest.mark.parametrize("which", ["explicit", "implicit"])
def test_the_page_is_small_and_holds_every_estimate(
    which: str, request: pytest.FixtureRequest
) -> None:
    result: Result = request.getfixturevalue(which)
    report = Report(result)
    made = sections(result)
    assert tuple(made) == BODY + APPENDIX
    assert [title for title, s in made.items() if s.appendix] == list(APPENDIX)
    assert len(report.html().encode()) <= MOST_BYTES
    numbers = report.page.numbers
    assert numbers is not None and len(numbers.rows) == len(result.estimates)
    # What is measured over all users is in a table of its own too, except what labels people
    # dispute, which is another question.
    cells = {c.value for b in blocks(result) if isinstance(b, Table) for r in b.rows for c in r}
    levels = [e for e in result.estimates if not e.group and (e.kind == "level" or not e.system)]
    missing = {e.key for e in levels if e.value is not None and e.value not in cells}
    assert {key for key in missing if not key.startswith("label-disagreement/")} == set()


@pytest.mark.parametrize("which", ["explicit", "implicit"])
def test_charts_are_drawn_once_and_take_their_colors_from_the_page(
    which: str, request: pytest.FixtureRequest
) -> None:
    charts = [b for b in blocks(request.getfixturevalue(which)) if isinstance(b, Chart)]
    assert tuple(chart.name for chart in charts) == CHARTS
    for chart in charts:
        assert chart.panels and chart.caption.endswith(".")
        assert all(panel.startswith("<svg ") and "aria-label" in panel for panel in chart.panels)
        assert not re.search(r"(fill|stroke)=|#[0-9a-f]{3}", "".join(chart.panels))


def test_the_body_speaks_plainly(explicit: Result) -> None:
    report = Report(explicit)
    captions = [b.caption for b in blocks(explicit) if isinstance(b, Table | Chart)]
    said = " ".join([prose(explicit), *captions, *report.lines()])
    for word in ("places", "of every 100", "95% interval", "left out", "remed"):
        assert word not in said, word


def test_levels_of_a_finding_are_those_of_its_estimate(explicit: Result) -> None:
    verdict = Report(explicit).verdicts[0]
    assert verdict.name == "warnings" and verdict.findings
    for finding in verdict.findings:
        level, other = (one.value for one in finding.levels)
        assert level / other - 1 == pytest.approx(finding.estimate.value)
        assert ("per 100 items" in plain(finding.sentence)) == (not finding.estimate.label)


def test_audited_systems_stand_before_baselines(explicit: Result) -> None:
    heads = [column.title for column in table(explicit, "warnings-content").columns]
    assert heads[2:] == ["SVD", "SVD + avoid list", "SVD + calibrated", "Random", "TopPop"]


def test_averages_are_told_apart_and_bounds_are_not_tested(explicit: Result) -> None:
    made = table(explicit, "warnings-averages")
    heads = [column.title for column in made.columns]
    assert heads[1:7] == list(AVERAGES)
    assert heads[7:] == ["Ratio of means, retrained", "Mean ratio, retrained"]
    for row in made.rows:
        assert {cell.status for cell in row[5:7]} == {""}
    said = prose(explicit)
    assert "smoothing alone gives" in said and "could carry anything" in said


def test_rerankers_are_compared_with_their_own_system(explicit: Result) -> None:
    rows = {row[0].text: row for row in table(explicit, "warnings-rerankers").rows}
    assert list(rows) == ["SVD + avoid list", "SVD + calibrated"]
    key = Context.of(explicit).key(USERS)
    (paired,) = explicit.select(key=key, system="SVD", against="SVD + avoid list")
    shown = rows["SVD + avoid list"]
    assert shown[1].value == pytest.approx(-paired.value)  # the reranker minus the system
    assert shown[3].text != "0.0%" and shown[4].text == "0.0%"
    assert [cell.text for cell in rows["SVD + calibrated"][3:]] == [""] * 4


def test_lists_that_an_avoid_list_took_are_counted(explicit: Result) -> None:
    about: dict[str, Any] = {"of": 300, "system": "SVD + avoid list", "reason": "in other words"}
    lost = tuple(
        Exclusion("x", "full lists", n, key=f"avoid-list/{how}", **about)
        for how, n in (("shortened", 12), ("emptied", 3))
    )
    made = table(replace(explicit, exclusions=lost), "warnings-rerankers")
    assert [cell.text for cell in made.rows[0][5:]] == ["12", "3"]


def test_the_papers_number_is_beside_the_finding_when_they_disagree(explicit: Result) -> None:
    def turned(e: Estimate) -> Estimate:
        if e.system != "SVD" or e.group or e.kind != "level":
            return e
        if e.metric == "user amplification@20 (ratio-of-means)":
            return e.replace(
                value=0.21, interval=(0.17, 0.25), p_value=0.001, p_adjusted=0.002, details={},
                tipping=None,
            )  # fmt: skip
        if e.metric == "user amplification@20 (unlabeled as no)":
            return e.replace(value=-0.31, interval=(-0.4, -0.2), p_value=0.001, p_adjusted=0.002)
        return e

    changed = replace(explicit, estimates=tuple(map(turned, explicit.estimates)))
    other = published(Context.of(changed), "SVD")
    assert other is not None and other.value == -0.31
    alike = tuple(
        replace(e, value=0.21) if e.metric == "user amplification@20 (unlabeled as no)" else e
        for e in changed.estimates
    )
    assert published(Context.of(replace(changed, estimates=alike)), "SVD") is None
    verdict = Report(changed).verdicts[0]
    (found,) = [f for f in verdict.findings if f.estimate.system == "SVD" and not f.estimate.label]
    assert found.estimate.value == 0.21
    note = "+21% by the ratio of means, \u221231% by the published mean of users\u2019 ratios."
    assert note in plain(found.sentence)
    # Without a finding over all warnings, both averages stand in one place.
    quiet = replace(changed, estimates=tuple(
        e.replace(value=0.01, interval=(-0.03, 0.05), p_value=0.6, p_adjusted=0.7)
        if e.value == 0.21 else e for e in changed.estimates
    ))  # fmt: skip
    said = " ".join(plain(text) for text in Report(quiet).verdicts[0].changes)
    assert re.search(
        r"the difference from histories is .*\+1% by the ratio of means, "
        r"and \u221231%.* by the mean of users\u2019 own ratios, as published \(SVD",
        said,
    )


def test_results_without_the_experiment_have_none_of_it() -> None:
    world = small_world(seed=1)
    ordinary = Audit(world.dataset, world.recommenders(), [ShareGap(k=10)]).run()
    assert not set(sections(ordinary)) & set(APPENDIX)
    assert [verdict.name for verdict in Report(ordinary).verdicts] == ["exposure"]


def test_hostile_names_stay_text(explicit: Result) -> None:
    names = {"SVD": "</script><script>alert(1)</script>", "violence": "\"];alert(1)//<b>'"}

    def renamed(e: Estimate) -> Estimate:
        return e.replace(system=names.get(e.system, e.system), label=names.get(e.label, e.label))

    tables = {
        name: frame.with_columns(
            pl.col(c).replace(names) for c in frame.columns if c in {"label", "system"}
        )
        for name, frame in explicit.tables.items()
    }
    result = replace(explicit, estimates=tuple(map(renamed, explicit.estimates)), tables=tables)
    html = Report(result).html()
    assert "<script>alert" not in html and "//<b>" not in html


def test_the_matrix_shows_the_levels_of_histories(explicit: Result) -> None:
    tables = [b for s in Report(explicit).page.sections for b in s.blocks if isinstance(b, Table)]
    found = [
        row[place]
        for table in tables
        for place, column in enumerate(table.columns)
        if column.title == "In histories"
        for row in table.rows
    ]
    stored = {e.details.get("history") for e in explicit.estimates if e.label}
    assert any(cell.text for cell in found)
    for cell in found:
        assert bool(cell.text) == (cell.value is not None)
        assert cell.value is None or cell.value in stored


def test_a_system_without_any_value_has_no_row_in_the_chart_of_users(explicit: Result) -> None:
    nobody = pl.when(pl.col("system") == "Random").then(0).otherwise(pl.col("units"))
    tables = {
        name: t.with_columns(units=nobody) if name.startswith("spread-") else t
        for name, t in explicit.tables.items()
    }
    assert any(name.startswith("spread-") for name in tables)
    (chart,) = (
        b
        for b in blocks(replace(explicit, tables=tables))
        if isinstance(b, Chart) and b.name == "warnings-spread"
    )
    assert "SVD: median" in "".join(chart.panels)
    assert "Random: median" not in "".join(chart.panels)


def test_every_sampled_user_is_a_dot_and_none_in_public(explicit: Result, implicit: Result) -> None:
    """Figure 3: mean ratings, or numbers of interactions where there are no ratings."""
    for result, columns in (
        (explicit, ("without", "with")),
        (implicit, ("interactions_without", "interactions_with")),
    ):
        points = result.tables["user-preference-users"]
        (chart,) = (
            b for b in blocks(result) if isinstance(b, Chart) and b.name == "warnings-users"
        )
        label = points.group_by("label").len().sort("len", descending=True)["label"][0]
        drawn = [panel.count("h0") for panel in chart.panels]
        assert points.filter(pl.col("label") == label).height in drawn
        assert points.select(columns).null_count().sum_horizontal()[0] == 0
        public = Report(result, public=True).html()
        assert 'id="warnings-users"' not in public
        assert 'id="warnings-users"' in Report(result).html()
    assert implicit.tables["user-preference-users"]["interactions_with"].dtype == pl.Int64
