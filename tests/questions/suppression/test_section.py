"""The sections of a suppression audit, from a small stored-like result and from real estimates."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import polars as pl
import pytest

from ombud.audits.plan import Plan
from ombud.audits.result import MetricInfo, Result
from ombud.report import Report
from ombud.report.blocks import Section, figures_in, tables_in
from ombud.report.images import to_svg
from ombud.stats.estimate import Estimate

GROUPS = ("women", "men", "lgbt", "<b>&\u202eevil</b>")


SPECS: dict[str, dict[str, Any]] = {
    "suppression": {"name": "suppression", "by": "flags", "against": "all"},
    "suppression by median score": {"name": "suppression", "by": "scores", "against": "all"},
    "pooled suppression": {"name": "pooled-suppression", "by": "flags"},
    "largest suppression": {"name": "worst-suppression", "by": "flags"},
    "share without a decision": {"name": "undecided-share"},
}
KEYS = {
    "suppression": "suppression",
    "suppression by median score": "suppression(by=scores)",
    "pooled suppression": "pooled-suppression",
    "largest suppression": "worst-suppression",
    "share without a decision": "undecided-share",
    "odds of a right flag": "flag-regression",
    "drift of the false-positive rate": "drift/false-positive-rate",
}


def ratio(value: float | None, **about: Any) -> Estimate:
    fixed = {"metric": "suppression", "kind": "ratio", "against": "all texts", "null": 1.0}
    fields: dict[str, Any] = fixed | {"unit": "text"} | about
    fields["key"] = KEYS[fields["metric"]]
    if value is None:
        return Estimate.undefined(reason="not enough data: 3 texts", n=3, **fields)
    p = {"p_value": 0.001, "p_adjusted": 0.002} if value > 1.5 else {"p_value": 0.5}
    ends = (value * 0.8, value * 1.25)
    return Estimate(value=value, interval=ends, method="BCa bootstrap", n=200, **p, **fields)


def made(*, families: bool = False, pages: bool = False, lost: float = 0.0) -> Result:
    labels = ("", "generative-ai", "traditional") if families else ("",)
    values = (2.5, 1.1, None, 0.0)
    estimates = [
        ratio(value, system=system, group=group, label=label, metric=metric)
        for metric in ("suppression", "pooled suppression", "suppression by median score")
        for system in ("one", "two")
        for label in labels
        for group, value in zip(GROUPS, values, strict=True)
    ]
    about: dict[str, Any] = {"method": "x", "n": 200, "unit": "text"}
    estimates.append(
        Estimate(
            metric="largest suppression",
            value=2.5,
            interval=(1.5, 3.5),
            system="one",
            null=1.0,
            note="in other words",
            key=KEYS["largest suppression"],
            details={"group": "men, trans", "ranked": 3},
            **about,
        )
    )
    for group, gap in (("women", lost), ("men", 0.0)):
        share = {"metric": "share without a decision", "key": "undecided-share"}
        level = Estimate(
            value=lost, interval=(0.0, 0.1), system="one", group=group, **share, **about
        )
        estimates += [
            level,
            level.replace(
                kind="gap",
                value=gap,
                interval=(gap - 0.01, gap + 0.01),
                null=0.0,
                p_value=0.001 if gap else 0.9,
                p_adjusted=0.002 if gap else 0.9,
                against="texts outside the group",
            ),
        ]
    estimates += [
        ratio(0.5, metric="odds of a right flag", system="one", group="women"),
        ratio(None, metric="odds of a right flag", system="two", group="women"),
        ratio(
            0.02, metric="drift of the false-positive rate", system="two", against="one", kind="gap"
        ).replace(null=0.0),
    ]
    tables = {
        "identity-tag-counts": pl.DataFrame(
            {
                "group": ["women"],
                "whole_word": [1234],
                "published": [1200],
                "both": [1190],
                "whole_word_only": [44],
                "published_only": [10],
            }
        ),
        "score-spread": pl.DataFrame(
            {"system": ["one", "one"], "group": ["", "women"], "texts": [100, 50]}
            | {f"q{q}": [0.1, 0.2] for q in ("05", "25", "50", "75", "95")}
        ),
    }
    plan = Plan(title="Ours", preset="suppression", options={"pages": True} if pages else {})
    infos = [MetricInfo(spec, title, null=1.0, key=KEYS[title]) for title, spec in SPECS.items()]
    return Result(plan, tuple(estimates), tuple(infos), tables=tables)


def sections(result: Result) -> dict[str, Section]:
    report = Report(result)
    return {section.name: section for section in (*report.sections, *report.appendix)}


def test_the_answer_is_said_in_words() -> None:
    text = Report(made()).markdown()
    assert "flagged more than all acceptable texts" in text
    assert re.search(r"Women\W+ 2\.5 \[2\.0, 3\.1\] times", text)
    assert "Not enough data for a ratio: **LGBT**" in text
    assert "Largest: 2.5 [1.5, 3.5] (**men, trans**)" in text  # a comma in a name is no end


@pytest.mark.parametrize("families", [False, True])
def test_every_figure_can_be_drawn(families: bool) -> None:
    found = sections(made(families=families))
    figures = figures_in((found["suppression"], found["suppression-score-spread"]))
    assert [figure.name for figure in figures] == [
        "suppression-dots",
        "suppression-scores-dots",
        "score-spread",
    ]
    names = {table.name for section in found.values() for table in tables_in((section,))}
    for figure in figures:
        assert figure.table in names
        assert to_svg(figure.spec).startswith("<svg")
    assert ("hconcat" in figures[0].spec) is families
    panel = figures[0].spec["hconcat"][0] if families else figures[0].spec
    assert json.dumps(panel).count('"type": "log"') == 3


def test_more_systems_have_an_overview_as_well() -> None:
    result = made()
    more = tuple(
        e.replace(system=name)
        for name in ("three", "four")
        for e in result.estimates
        if e.system == "one"
    )
    found = sections(replace(result, estimates=(*result.estimates, *more)))
    names = [figure.name for figure in figures_in((found["suppression"],))]
    assert "suppression-heat" in names


def test_uneven_missing_decisions_are_a_warning() -> None:
    assert "Every text that was asked about has a decision." in Report(made()).markdown()
    uneven = Report(made(lost=0.05)).markdown()
    assert "Missing decisions are uneven" in uneven
    assert "+0.05" in uneven


def test_tags_regressions_and_drift_have_tables() -> None:
    found = sections(made())
    assert "1,234" in str(found["suppression-tags"])
    (regression,) = tables_in((found["suppression-regression"],))
    assert len(regression.rows) == 2
    assert "not enough data" in " ".join(regression.notes)
    (drift,) = tables_in((found["suppression-drift"],))
    assert drift.caption == "From one to two, on the same texts."
    latex = Report(made()).latex()
    assert "Odds ratio" in latex


def test_columns_of_a_regression_are_not_groups_that_were_compared() -> None:
    result = made()
    slur = ratio(0.5, metric="odds of a right flag", system="one", group="has slur")
    said = Report(replace(result, estimates=(*result.estimates, slur))).markdown()
    (compared,) = [line for line in said.splitlines() if "Groups compared" in line]
    assert "Women" in compared
    assert "has slur" not in compared


def test_a_page_for_each_group_on_request() -> None:
    assert "suppression-groups" not in sections(made())
    pages = sections(made(pages=True))["suppression-groups"]
    titles = [page.title for page in pages.blocks if isinstance(page, Section)]
    assert titles == ["Women", "Men", "LGBT", GROUPS[3]]


def test_names_from_data_cannot_break_the_page() -> None:
    html = Report(made(pages=True, families=True)).html()
    assert "<b>&\u202eevil" not in html


def test_other_audits_have_none_of_it() -> None:
    plain = Result(Plan(title="x"), (ratio(1.0, group="g").replace(metric="other", key="other"),))
    assert not [name for name in sections(plain) if name.startswith("suppression")]
