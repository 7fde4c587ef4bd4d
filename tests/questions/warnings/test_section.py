"""The figures and words of the warnings experiment hold what the result holds."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import polars as pl
import pytest

from ombud.audits import Audit, Plan, Result
from ombud.data.exclusions import Exclusion
from ombud.metrics import ShareGap
from ombud.questions.warnings.figures import MOST_LABELS, MOST_USERS
from ombud.questions.warnings.lookup import base_of, chief_accuracy, contrast, disagreeing, level
from ombud.questions.warnings.section import (
    warnings_accuracy,
    warnings_amplification,
    warnings_labels,
    warnings_remedies,
)
from ombud.report import Report
from ombud.report.blocks import Figure, Section, Table, figures_in, tables_in
from ombud.report.format import estimate_text, shared_decimals
from ombud.report.html import to_html
from ombud.report.images import to_svg
from ombud.report.legacy import converted
from ombud.report.markdown import section_lines
from ombud.report.model import Page, plain
from ombud.report.titles import in_words
from ombud.stats.estimate import Estimate
from ombud.worlds import small_world

MADE = (
    warnings_amplification,
    warnings_accuracy,
    warnings_remedies,
    warnings_labels,
)


def run(ratings: bool, **options: Any) -> Result:
    plan = {
        "preset": "warnings",
        "seed": 1,
        "data": {"source": "small", "options": {"seed": 3, "ratings": ratings}},
        "by": ["gender"],
        "options": {"k": 20, "accuracy_at": [10, 20], **options},
        "statistics": {"replicates": 100},
    }
    return Audit.from_plan(Plan.from_dict(plan)).run()


@pytest.fixture(scope="module")
def explicit() -> Result:
    remedies = [
        {"type": "avoid-list", "of": "SVD", "labels": ["violence"]},
        {"type": "calibrated", "of": "SVD"},
    ]
    return run(True, remedies=remedies)


@pytest.fixture(scope="module")
def implicit() -> Result:
    return run(False)


@pytest.fixture(scope="module")
def ordinary() -> Result:
    world = small_world(seed=1)
    return Audit(world.dataset, world.recommenders(), [ShareGap(k=10)]).run()


def figures(result: Result) -> dict[str, Figure]:
    made = [section for make in MADE if (section := make(in_words(result))) is not None]
    return {f.name: f for f in figures_in(made) if f.name[:8] == "warnings"}


def text_of(section: Section | None) -> str:
    assert section is not None
    return "\n".join(section_lines([converted(section)])).replace("\\", "")


def test_every_figure_of_the_spec_is_there(explicit: Result, implicit: Result) -> None:
    wanted = {
        "warnings-popularity",
        "warnings-users",
        "warnings-spread",
        "warnings-spread-labels",
        "warnings-forest-ratio-of-means",
        "warnings-tradeoff",
    }
    assert set(figures(explicit)) == wanted
    assert set(figures(implicit)) == wanted


def test_figures_are_drawn_small_and_described(explicit: Result, implicit: Result) -> None:
    for result in (explicit, implicit):
        for figure in figures(result).values():
            assert len(json.dumps(figure.spec)) < 250_000
            assert to_svg(figure.spec).startswith("<svg")
            assert len(figure.alt) > 40
            assert figure.spec["description"] == figure.alt
            assert figure.caption.endswith(".")
            assert "color" not in json.dumps(figure.spec["layer"]).replace('"color": {"field"', "")


def test_histograms_hold_each_share_once(explicit: Result) -> None:
    spec = figures(explicit)["warnings-popularity"].spec
    rows = [v for v in spec["data"]["values"] if "share" in v]
    table = explicit.tables["popularity-histogram"]
    for label in spec["params"][0]["bind"]["options"]:
        for side, status in (("with the label", "with"), ("without it", "without")):
            drawn = [v["share"] for v in rows if v["pick"] == label and v["side"] == side]
            held = table.filter((pl.col("label") == label) & (pl.col("status") == status))
            # The outline ends with its last bin once more, at the right edge.
            assert drawn[:-1] == pytest.approx(held["share"].to_list(), rel=1e-3)
            assert drawn[-1] == drawn[-2]


def test_scatter_lies_on_the_side_that_the_words_say(explicit: Result) -> None:
    figure = figures(explicit)["warnings-users"]
    label = figure.spec["params"][0]["value"]
    points = [v for v in figure.spec["data"]["values"] if v["pick"] == label]
    row = explicit.tables["user-preference"].filter(pl.col("label") == label).row(0, named=True)
    assert len(points) == row["users"] <= MOST_USERS
    higher = sum(v["y"] > v["x"] for v in points)
    assert abs(higher - row["higher"]) <= 3  # points are rounded to two decimals
    assert f"{row['higher']:,} of {row['users']:,} users lie higher with it" in figure.alt
    assert f"{row['lower']:,} lower" in figure.alt


def test_a_scatter_is_cut_and_says_so(explicit: Result) -> None:
    users = explicit.tables["user-preference-users"]
    many = replace(
        explicit, tables={**explicit.tables, "user-preference-users": pl.concat([users] * 9)}
    )
    figure = figures(many)["warnings-users"]
    for label in figure.spec["params"][0]["bind"]["options"]:
        points = [v for v in figure.spec["data"]["values"] if v["pick"] == label]
        assert 250 <= len(points) <= MOST_USERS
    assert f"At most {MOST_USERS} users are drawn" in figure.caption


def test_spread_has_a_line_at_zero_and_marks_at_mean_and_median(explicit: Result) -> None:
    spec = figures(explicit)["warnings-spread"].spec
    assert any(layer.get("encoding", {}).get("x", {}).get("datum") == 0 for layer in spec["layer"])
    values = spec["data"]["values"]
    for system in explicit.systems:
        mean = value(explicit, "user amplification@20", system)
        median = value(explicit, "user amplification@20 (median)", system)
        assert mean is not None and median is not None
        at = {v["kind"]: v for v in values if v["system"] == system and "at" in v}
        assert at["mean"]["at"] == pytest.approx(mean.value, rel=1e-3, abs=1e-9)
        assert at["median"]["text"] == estimate_text(median)
        users = [v["users"] for v in values if v["system"] == system and "low" in v]
        assert sum(int(text.split(" ")[0].replace(",", "")) for text in users) == mean.n


def test_tradeoff_has_one_point_for_each_system_and_form(explicit: Result) -> None:
    figure = figures(explicit)["warnings-tradeoff"]
    values = figure.spec["data"]["values"]
    assert len(values) == 5 * 4
    accuracy = chief_accuracy(explicit)
    assert accuracy is not None and accuracy.title == "recall@20, top quartile"
    (svd,) = (v for v in values if v["system"] == "SVD" and v["pick"] == "ratio of means")
    x = level(explicit, accuracy, "SVD")
    y = value(explicit, "user amplification@20 (ratio-of-means)", "SVD")
    assert x is not None and y is not None and x.interval is not None
    assert (svd["text_x"], svd["text_y"]) == (estimate_text(x), estimate_text(y))
    assert svd["x_low"] == pytest.approx(x.interval[0], rel=1e-3)


def test_tables_print_estimates_and_nothing_else(explicit: Result) -> None:
    sections = [section for make in MADE if (section := make(explicit)) is not None]
    made = {t.name: t for t in tables_in(sections)}
    table: Table = made["warnings-accuracy-table"]
    # Five systems are more than fit side by side, so they go down.
    assert [row[0].text for row in table.rows] == list(explicit.systems)
    titles = [c.title for c in table.columns]
    assert not any("@10" in title for title in titles)  # shorter lists are in the appendix
    column = [row[titles.index("recall@20, top quartile")] for row in table.rows]
    some = [value(explicit, "recall@20, top quartile", s) for s in explicit.systems]
    places = shared_decimals(e for e in some if e is not None)
    for cell, e in zip(column, some, strict=True):
        assert e is not None and e.interval is not None
        assert cell.text.startswith(estimate_text(e, places))
        assert cell.value == e.value
    rmse = [row[titles.index("RMSE")] for row in table.rows]
    given = dict(zip(explicit.systems, rmse, strict=True))
    assert given["Random"].text == "not given"
    assert given["SVD"].text[0].isdigit()
    bounds = [c.title for c in made["warnings-amplification-table"].columns]
    assert bounds[-2:] == ["at least, whatever is unknown", "at most, whatever is unknown"]


def test_words_name_direction_smoothing_and_bounds(explicit: Result) -> None:
    words = text_of(warnings_amplification(explicit))
    for system in explicit.systems:
        assert f"{system}: lists hold **" in words
    assert "the history holds nothing with the label" in words
    assert "If they could be anything" in words


def value(result: Result, title: str, system: str) -> Estimate | None:
    info = next(info for info in result.metrics if info.title == title)
    return level(result, info, system)


CHIEF = "user amplification@20 (ratio-of-means)"


def bounded(result: Result, low: float, high: float) -> Result:
    def moved(e: Estimate) -> Estimate:
        if ", unknown" not in e.metric or e.group or e.kind != "level":
            return e
        end = low if "lowest" in e.metric else high
        return e.replace(value=end, interval=(end - 0.1, end + 0.1))

    return replace(result, estimates=tuple(map(moved, result.estimates)))


def test_the_spread_between_systems_is_not_shown_as_uncertainty(explicit: Result) -> None:
    """Without unknown labels there is no range; with them it is that of one system."""
    known = bounded(explicit, 0.5, 0.5)
    words = text_of(warnings_amplification(known))
    assert "could be anything" not in words and "whatever is unknown" not in words
    assert "over the systems" not in text_of(warnings_amplification(explicit))
    widest = text_of(warnings_amplification(bounded(explicit, -0.2, 0.4)))
    assert "could lie anywhere from −20% to +40%" in widest


def test_bounds_are_printed_without_marks(explicit: Result) -> None:
    tested = tuple(
        e.replace(null=0.0) if ", unknown" in e.metric and e.kind == "level" else e
        for e in explicit.estimates
    )
    for result in (explicit, replace(explicit, estimates=tested)):
        section = warnings_amplification(result)
        assert section is not None
        rows = tables_in((section,))[0].rows
        for row in rows:
            assert {cell.tone for cell in row[-2:]} == {""}
            assert not any(mark in cell.text for cell in row[-2:] for mark in "▲▼△▽")
        assert any(cell.tone for row in rows for cell in row[1:-2])


def test_counts_agree_with_their_verbs(explicit: Result) -> None:
    words = text_of(warnings_amplification(explicit))
    assert "labels, 0 are shown more" in words
    assert " 1 are" not in words and " 4 are shown more" in words


def test_lists_that_a_remedy_took_are_told(explicit: Result) -> None:
    assert "no list was shortened or emptied" in text_of(warnings_remedies(explicit))
    where = "SVD + avoid list: avoid list"
    about = {"of": 300, "system": "SVD + avoid list", "reason": "in other words"}
    lost = (
        Exclusion(where, "full lists", 12, key="avoid-list/shortened", **about),  # type: ignore[arg-type]
        Exclusion(where, "full lists", 3, key="avoid-list/emptied", **about),  # type: ignore[arg-type]
    )
    words = text_of(warnings_remedies(replace(explicit, exclusions=lost)))
    assert "12 lists were shortened, 3 emptied (an empty list counts as zero accuracy)" in words
    assert words.count("emptied") == 1  # reranking takes nothing away


def test_an_avoid_list_that_empties_lists_says_so_in_the_report() -> None:
    # Nothing can be asked for beyond the list itself, and all five labels are avoided.
    labels = ["violence", "blood", "flashing lights", "loud noise", "spiders"]
    remedy = {"type": "avoid-list", "of": "SVD", "labels": labels, "most": 1, "unknown": "remove"}
    options = {"k": 3, "accuracy_at": [3], "trained": ["SVD"], "forms": ["mean"]}
    result = run(True, **options, bounds=False, remedies=[remedy])
    lists = [e for e in result.exclusions if e.where == "SVD + avoid list: avoid list"]
    emptied = sum(e.count for e in lists if e.reason.startswith("emptied"))
    assert emptied > 0
    assert f"{emptied} emptied (an empty list" in text_of(warnings_remedies(result))
    base, left = (value(result, "recall@3, top quartile", s) for s in result.systems)
    assert base is not None and left is not None and base.n == left.n  # nobody dropped out


def test_remedies_are_compared_with_their_own_system(explicit: Result, implicit: Result) -> None:
    assert base_of(explicit, "SVD + avoid list") == "SVD"
    assert base_of(explicit, "SVD") is None
    words = text_of(warnings_remedies(explicit))
    accuracy = chief_accuracy(explicit)
    assert accuracy is not None
    cost = contrast(explicit, accuracy, "SVD", "SVD + avoid list")
    assert cost is not None and cost.value is not None
    assert f"recall@20, top quartile {'lost' if cost.value > 0 else 'gained'}" in words
    assert "paired over the same users" in words
    assert "0 of 6,000 places carry what is avoided" in words
    assert warnings_remedies(implicit) is None


def test_a_contrast_can_be_turned(explicit: Result) -> None:
    accuracy = chief_accuracy(explicit)
    assert accuracy is not None
    one = contrast(explicit, accuracy, "SVD", "TopPop")
    other = contrast(explicit, accuracy, "TopPop", "SVD")
    assert one is not None and other is not None
    assert one.value is not None and one.value == -(other.value or 0)
    assert one.interval is not None and other.interval is not None
    assert one.interval == (-other.interval[1], -other.interval[0])
    assert contrast(explicit, accuracy, "SVD", "nobody") is None


def test_both_directions_of_preference_are_in_the_table(explicit: Result) -> None:
    section = warnings_labels(explicit)
    assert section is not None
    made = {t.name: t for t in tables_in((section,))}
    titles = [c.title for c in made["warnings-users-table"].columns]
    assert titles[1:4] == ["users who rate it higher", "users who rate it lower",
                           "users who rate both alike"]  # fmt: skip
    words = text_of(section)
    assert "less popular for" in words and "more popular for the others" in words


def test_unknown_only_labels_are_set_against_what_is_not_known(explicit: Result) -> None:
    shift = explicit.tables["popularity-shift"].with_columns(
        without=pl.lit(0), mean_without=pl.lit(None, dtype=pl.Float64)
    )
    bins = explicit.tables["popularity-histogram"]
    bins = bins.filter(pl.col("status") != "without")
    gone = tuple(
        e.undefined(metric=e.metric, reason="none is without it", n=0, label=e.label, key=e.key)
        if e.metric.startswith("popularity shift")
        else e
        for e in explicit.estimates
    )
    tables = {**explicit.tables, "popularity-shift": shift, "popularity-histogram": bins}
    result = replace(explicit, estimates=gone, tables=tables)
    figure = figures(result)["warnings-popularity"]
    assert {v["side"] for v in figure.spec["data"]["values"]} == {"with the label", "not known"}
    words = text_of(warnings_labels(result))
    assert "a description without an interval" in words
    assert "warnings-labels-table" not in words


def test_many_labels_are_offered_up_to_a_bound(explicit: Result) -> None:
    for figure in figures(explicit).values():
        for param in figure.spec.get("params", ()):
            assert 1 < len(param["bind"]["options"]) <= MOST_LABELS


def test_results_without_the_experiment_have_none_of_it(ordinary: Result) -> None:
    assert [made(ordinary) for made in MADE] == [None] * 4
    assert "warnings" not in [verdict.name for verdict in Report(ordinary).verdicts]


def test_hostile_names_stay_text(explicit: Result) -> None:
    bad = "</script><script>alert(1)</script>"
    names = {"SVD": bad, "violence": "\"];alert(1)//'"}

    def renamed(e: Any) -> Any:
        return e.replace(system=names.get(e.system, e.system), label=names.get(e.label, e.label))

    tables = {
        name: table.with_columns(
            pl.col(c).replace(names) for c in table.columns if c in {"label", "system"}
        )
        for name, table in explicit.tables.items()
    }
    result = replace(explicit, estimates=tuple(map(renamed, explicit.estimates)), tables=tables)
    sections = [section for make in MADE if (section := make(result)) is not None]
    page = Page("x", (), (), [converted(section) for section in sections])
    assert "<script>alert" not in to_html(page)
    for figure in figures(result).values():
        assert to_svg(figure.spec).startswith("<svg")


def test_a_finding_says_warnings_per_100_and_meets_its_estimate(explicit: Result) -> None:
    verdict = Report(explicit).verdicts[0]
    assert verdict.name == "warnings"
    for finding in verdict.findings:
        e = finding.estimate
        if not e.label and finding.levels:
            level, other = (one.value for one in finding.levels)
            assert level / other - 1 == pytest.approx(e.value)
            assert "warnings per 100" in plain(finding.sentence)


def test_the_papers_number_is_beside_the_finding_when_they_disagree(explicit: Result) -> None:
    def turned(e: Estimate) -> Estimate:
        if e.system != "SVD" or e.group or e.kind != "level":
            return e
        if e.metric == CHIEF:
            return e.replace(
                value=0.21, interval=(0.17, 0.25), p_value=0.001, p_adjusted=0.002, details={},
                tipping=None,
            )  # fmt: skip
        if e.metric == "user amplification@20 (unlabeled as no)":
            return e.replace(value=-0.31, interval=(-0.4, -0.2), p_value=0.001, p_adjusted=0.002)
        return e

    changed = replace(explicit, estimates=tuple(map(turned, explicit.estimates)))
    other = disagreeing(changed, "SVD")
    assert other is not None and other.value == -0.31
    verdict = Report(changed).verdicts[0]
    (found,) = [f for f in verdict.findings if f.estimate.system == "SVD" and not f.estimate.label]
    assert found.estimate.value == 0.21
