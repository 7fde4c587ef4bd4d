"""The sections of a suppression audit, from a small stored-like result and from real estimates."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import polars as pl
import pytest

from ombud.audits.plan import Plan
from ombud.audits.result import MetricInfo, Result
from ombud.report import Report
from ombud.report.model import Chart, Section, Table, plain
from ombud.report.page import build_page
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
    return {section.title: section for section in Report(result).sections}


def tables(section: Section) -> dict[str, Table]:
    return {block.name: block for block in section.blocks if isinstance(block, Table)}


def test_the_verdict_names_systems_and_groups() -> None:
    (verdict,) = Report(made()).verdicts
    assert verdict.answer == "yes"
    assert {(f.estimate.system, f.estimate.group) for f in verdict.findings} == {
        ("one", "women"),
        ("two", "women"),
    }
    assert "women" in plain(verdict.headline)
    assert (verdict.family.tested, verdict.family.number("not tested")) == (6, 2)


@pytest.mark.parametrize("families", [False, True])
def test_every_ratio_is_in_one_matrix(families: bool) -> None:
    found = tables(sections(made(families=families))["All groups"])
    (matrix,) = [t for name, t in found.items() if name == "suppression-flags-all-contrast"]
    assert len(matrix.rows) == len(GROUPS) * (3 if families else 1)
    assert "men, trans" in str(found["worst-suppression-flags-overall"].rows)  # a comma is no end


def test_scores_are_drawn_for_each_system() -> None:
    (chart,) = [b for b in sections(made())["Scores"].blocks if isinstance(b, Chart)]
    assert len(chart.panels) == 1 and chart.panels[0].startswith("<svg")


def test_uneven_missing_decisions_are_a_warning() -> None:
    title = "Texts without a decision"
    assert "Missing decisions are uneven" not in str(sections(made())[title])
    uneven = str(sections(made(lost=0.05))[title])
    assert "Missing decisions are uneven" in uneven and "+5.0 percentage points" in uneven


def test_tags_regressions_and_drift_have_tables() -> None:
    found = sections(made())
    assert "1,234" in str(found["How texts are assigned to groups"])
    (regression,) = tables(found["Regressions"]).values()
    assert len(regression.rows) == 2
    assert "not enough data" in " ".join(regression.notes).lower()
    (drift,) = tables(found["Change between versions"]).values()
    assert drift.caption == "From one to two, on the same texts."
    assert "Odds ratio" in Report(made()).latex()


def test_a_page_for_each_group_on_request() -> None:
    assert "Group by group" not in sections(made())
    pages = tables(sections(made(pages=True))["Group by group"]).values()
    assert {page.caption for page in pages} >= {
        "All estimates for texts mentioning women.",
        "All estimates for texts mentioning men.",
    }


def test_names_from_data_cannot_break_the_page() -> None:
    html = Report(made(pages=True, families=True)).html()
    assert "<b>&\u202eevil" not in html


def test_other_audits_have_none_of_it() -> None:
    other = Result(Plan(title="x"), (ratio(1.0, group="g").replace(metric="other", key="other"),))
    assert not {"All groups", "False-positive rates", "The texts"} & set(sections(other))


def test_sizes_name_groups_as_the_page_does() -> None:
    sizes = {"kind": "all", "name": "all texts", "texts": 1200, "mean_words": 18.04,
             "acceptable": 900, "to_be_flagged": 250, "label_unknown": 50, "no_group": 700,
             "group: lgbt": 97}  # fmt: skip
    found = replace(made(), tables={"set-sizes": pl.DataFrame([sizes])})
    (table,) = [b for s in build_page(found).sections for b in s.blocks
                if isinstance(b, Table) and b.name == "set-sizes-table"]  # fmt: skip
    rows = {row[0].text: row[1].text for row in table.rows}
    assert rows["Texts"] == "1,200" and rows["Mean words"] == "18.0"
    assert rows["Mentioning LGBT people"] == "97"
