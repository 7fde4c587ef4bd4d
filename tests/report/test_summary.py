"""What a terminal shows after a run: findings first, 25 lines, nothing cut."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from ombud.audits.plan import ExpectPlan, Plan
from ombud.audits.result import MetricInfo, Result
from ombud.data.exclusions import Exclusion
from ombud.report.format import estimate_text
from ombud.report.summary import MOST_LINES, summary_lines
from ombud.stats.estimate import Estimate

SYSTEMS = (
    "als", "bpr", "popular", "a system with a rather long name", "item-knn", "user-knn", "svd",
)  # fmt: skip
LABELS = tuple(f"label of which there are many {n}" for n in range(70))
WIDTHS = (60, 80, 100)


def gap(value: float, *, p: float, **about: Any) -> Estimate:
    return Estimate(
        metric="share gap@10", key="share-gap", value=value, interval=(value - 0.04, value + 0.04),
        method="bca", n=1234, unit="user", null=0.0, p_value=p, p_adjusted=p,
        correction="benjamini-hochberg", **about,
    )  # fmt: skip


def result(systems: tuple[str, ...], labels: tuple[str, ...], reasons: int = 0) -> Result:
    found = []
    for s, system in enumerate(systems):
        for n, label in enumerate(labels):
            value = 0.1234 + 0.01 * s if n == s else 0.001 * n / 70
            found.append(gap(value, p=0.001 if n == s else 0.5, system=system, label=label))
        found.append(
            gap(0.2, p=0.001, system=system, label=labels[0], group="age=18-24", against="others")
        )
    found[-1] = found[-1].replace(kind="gap")
    for n in range(reasons):
        found.append(
            Estimate.undefined(
                metric=f"undefined {n}",
                key=f"u{n}",
                reason=f"no user has a list {n}",
                n=0,
                system=systems[n % len(systems)],
                label=labels[0],
            )  # fmt: skip
        )
    info = MetricInfo({"name": "share-gap", "k": 10}, "share gap@10", unit="user", key="share-gap")
    plan = Plan.from_dict(
        {"title": "What do seven systems show?", "systems": {s: {"type": "als"} for s in systems}}
    )
    left_out = tuple(
        Exclusion("labels", "rows", 10 * n + 1, f"a reason of its own, number {n}", 9999)
        for n in range(reasons)
    )
    return Result(plan, tuple(found), (info,), exclusions=left_out)


def test_metrics_of_the_plan_come_before_what_analyses_found() -> None:
    plan = Plan.from_dict({"title": "F1 was asked for", "systems": {"als": {"type": "als"}}})
    found = (
        gap(0.3, p=0.5, system="als").replace(metric="a correlation", key="probe/correlation"),
        gap(0.7, p=0.5, system="als").replace(metric="F1", key="f1", null=None, p_value=None,
                                              p_adjusted=None),
    )  # fmt: skip
    what = Result(plan, found, (MetricInfo({"name": "f1"}, "F1", key="f1"),))
    text = "\n".join(summary_lines(what, width=80))
    assert 0 < text.index("F1  ") < text.index("a correlation")


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("systems", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("reasons", [0, 5])
def test_it_fits_and_nothing_is_cut(width: int, systems: int, reasons: int) -> None:
    what = result(SYSTEMS[:systems], LABELS, reasons)
    lines = summary_lines(what, width=width)
    assert len(lines) <= MOST_LINES
    assert all(len(line) <= width for line in lines), max(lines, key=len)
    text = " ".join(" ".join(lines).split())
    assert "\u2026" not in text
    # Every label that is named is named whole, and every number in brackets is closed.
    for start in re.finditer(r"label of which", text):
        assert re.match(r"label of which there are many \d+\b", text[start.start() :])
    assert text.count("[") == text.count("]")


@pytest.mark.parametrize("width", WIDTHS)
def test_many_systems_are_rows_with_whole_numbers(width: int) -> None:
    what = result(SYSTEMS, LABELS)
    lines = summary_lines(what, width=width, most=60)
    shown = " ".join(" ".join(lines).split())
    for number, system in enumerate(SYSTEMS):
        assert f"{system}, {LABELS[number]}" in shown
        one = next(e for e in what.select(system=system, label=LABELS[number]) if not e.group)
        assert estimate_text(one, 3, signed=True) in shown


def test_findings_come_first_with_the_names_of_groups() -> None:
    lines = summary_lines(result(SYSTEMS, LABELS), width=80)
    first = next(n for n, line in enumerate(lines) if "\u25b2" in line)
    assert first <= 2
    assert "age=18-24" in " ".join(lines[first : first + 3])


def test_reasons_are_footnotes() -> None:
    one = Estimate.undefined(
        metric="share gap@10", key="share-gap", reason="no user has a list", n=0, system="als"
    )
    plan = Plan.from_dict({"systems": {"als": {"type": "als"}}})
    lines = summary_lines(Result(plan, (one,), ()), width=60)
    text = "\n".join(lines)
    assert "not defined (a)" in text
    assert "(a) Not defined: no user has a list." in text


def test_hidden_characters_stay_inert() -> None:
    what = result(("als",), ("red\x1b[31m\u202e",))
    text = "\n".join(summary_lines(what, width=80))
    assert "\x1b" not in text and "\u202e" not in text


@pytest.mark.parametrize("width", WIDTHS)
def test_numbers_of_some_systems_are_always_there(width: int) -> None:
    text = "\n".join(summary_lines(result(SYSTEMS, LABELS, 5), width=width))
    assert "share gap@10" in text
    assert "[" in text
    assert re.search(r"Left out for 5 reasons|more reasons in the report", text)


@pytest.mark.parametrize("width", [60, 80, 100])
def test_limits_stand_after_the_findings_within_the_lines(width: int) -> None:
    limits = {
        f"limit {i} that was agreed": ExpectPlan(limit=f"value <= {0.1 * i - 0.5}", reason="agreed")
        for i in range(12)
    }
    ordinary = result(SYSTEMS[:2], LABELS[:4])
    lines = summary_lines(
        replace(ordinary, plan=ordinary.plan.model_copy(update={"expect": limits})), width=width
    )
    assert len(lines) <= MOST_LINES
    place = lines.index("Expected:")
    assert lines[place + 1].startswith("  not met: limit 0 that was agreed (of ")
    assert any("more met" in line or "more not met" in line for line in lines)
    assert any(line.startswith("  ▲") for line in lines[:place])


@pytest.mark.parametrize("width", WIDTHS)
def test_the_row_over_all_labels_has_a_name(width: int) -> None:
    found = (gap(0.2, p=0.001, system="glin"), gap(0.1, p=0.5, system="glin", label="traditional"))
    info = MetricInfo({"name": "share-gap"}, "share gap@10", key="share-gap")
    lines = summary_lines(Result(Plan(title="Ours"), found, (info,)), width=width)
    assert any("all together" in line for line in lines)
