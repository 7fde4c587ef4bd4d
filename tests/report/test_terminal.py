"""What a run prints stays short, and says where the rest is."""

from __future__ import annotations

import io
from typing import Any

from ombud.audits.plan import Plan
from ombud.audits.result import MetricInfo, Result
from ombud.report import summary_table
from ombud.stats.estimate import Estimate


def level(metric: str, value: float, null: float | None, **about: Any) -> Estimate:
    ends = (value - 0.1, value + 0.1)
    return Estimate(
        metric=metric, value=value, interval=ends, method="x", n=9, unit="user", null=null, **about
    )


def many(metrics: int, labels: int = 80) -> Result:
    """Return accuracy first, then label metrics of two systems, and facts about the data."""
    found = [level("recall", 0.5, None, system=s) for s in ("a", "b")]
    for m in range(metrics):
        found += [
            level(f"amplification {m}", n / labels, 0.0, system=s, label=f"label {n}")
            for s in ("a", "b")
            for n in range(labels)
        ]
    found += [level(f"density {n}", n, None) for n in range(9)]
    infos = tuple(MetricInfo({}, title) for title in dict.fromkeys(e.metric for e in found))
    plan = Plan.from_dict({"data": {"source": "small"}, "systems": {"a": {"type": "popular"}}})
    return Result(plan=plan, estimates=tuple(found), metrics=infos)


def printed(result: Result) -> str:
    from rich.console import Console

    out = io.StringIO()
    Console(file=out, width=200, color_system=None).print(summary_table(result))
    return out.getvalue()


def test_many_labels_and_facts_take_about_thirty_rows() -> None:
    for metrics in (1, 2, 4, 40):
        result = many(metrics)
        assert summary_table(result).row_count <= 30
        text = printed(result)
        assert "density" not in text and "not measured" not in text
        assert "amplification 0" in text and "label 79" in text
        assert text.count("label 79") >= min(metrics, 7)


def test_what_can_be_tested_comes_first_and_the_rest_is_counted() -> None:
    text = printed(many(2))
    assert text.index("amplification 1") < text.index("recall")
    words = " ".join(text.split())
    shown = words.count(" label ")
    assert f"{2 * 80 - shown:,} labels with smaller values are in the report." in words
    assert "9 more measures are in the report." in words


def test_facts_about_the_data_are_shown_where_there_is_no_system() -> None:
    facts = many(0)
    alone = Result(
        plan=facts.plan, estimates=tuple(e for e in facts.estimates if not e.system), metrics=()
    )
    text = printed(alone)
    assert "density 8" in text
    assert "in the report" not in text
