"""Every chart: valid Vega-Lite, drawn with hostile names, the same whatever was drawn before."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import altair as alt
import polars as pl
import pytest
from altair.typing import ChartType

from ombud.questions.counterfactual import figures as counterfactual
from ombud.report.blocks import Figure
from ombud.report.charts import interval_chart
from ombud.report.display import drawable
from ombud.report.drawing import null_line, page, specification
from ombud.report.images import to_svg
from ombud.stats.estimate import Estimate

NAMES = ('a"b\\c', "constructor", "</script>", "a.b[0]:Q", "it's \\'x\\'", "__proto__")
Spec = dict[str, Any]


def number(value: float, **about: Any) -> Estimate:
    interval = (value - 0.1, value + 0.2)
    return Estimate(
        metric="m", unit="user", n=40, value=value, interval=interval, method="x", **about
    )


def intervals(**options: Any) -> Spec:
    some = [
        (number(0.1 * i + 0.5, label=name, null=0.0), name, system)
        for i, name in enumerate(NAMES)
        for system in NAMES[:2]
    ]
    undefined = Estimate.undefined(metric="m", unit="user", reason="no user", n=0, label=NAMES[0])
    some.append((undefined, NAMES[0], NAMES[2]))
    return done(interval_chart(some, NAMES, x_title=NAMES[1], **options))


def grid() -> list[Estimate]:
    return [
        number(0.3 * i + 0.4, group=group, system=system, label="", null=1.0)
        for i, group in enumerate(NAMES)
        for system in NAMES[:2]
    ]


def families() -> list[Estimate]:
    return [e.replace(label=family) for e in grid() for family in NAMES[:2]]


def quantiles() -> pl.DataFrame:
    spread = {"texts": 9, "q05": 0.1, "q25": 0.2, "q50": 0.5, "q75": 0.6, "q95": 0.9}
    return pl.DataFrame([{"system": s, "group": g, **spread} for s in NAMES[:2] for g in NAMES])


def escapes() -> list[Estimate]:
    return [
        number(0.1 * edits, label=label, system=system, details={"edits": edits})
        for label in NAMES[:2]
        for system in NAMES[:2]
        for edits in (1, 2)
    ]


def thresholds() -> pl.DataFrame:
    return pl.DataFrame(
        {"system": s, "threshold": i / 5, "precision": 0.5 + i / 10, "recall": 1 - i / 5}
        for s in NAMES
        for i in range(5)
    )


def scores() -> pl.DataFrame:
    where = {"longitude": 2.0, "latitude": 47.0}
    return pl.DataFrame(
        {"system": "s", "numeric": n, "name": name, "score": 0.2, "flagged": flagged, **where}
        for n, name, flagged in (("250", NAMES[1], True), ("674", NAMES[0], None))
    )


def done(chart: ChartType) -> Spec:
    return Figure("x", specification(chart, "d"), "t", "c", "a").spec


def spec_of(figure: Figure | None) -> Spec:
    assert figure is not None
    return figure.spec


CHARTS: dict[str, Callable[[], Spec]] = {
    "intervals": intervals,
    "intervals, label chosen": lambda: intervals(pick=(NAMES, NAMES[1])),
    "intervals, two lines": lambda: intervals(break_at=" · "),
    "ratios": lambda: intervals(ratio=0.0),
    "ratios less 1": lambda: intervals(ratio=1.0),
    "dependency": lambda: counterfactual.dependency_figure(["reach"], name="x", noise=True).spec,
    "escapes": lambda: spec_of(
        counterfactual.curves_figure(escapes(), name="x", table="t", title=NAMES[1])
    ),
}


@pytest.mark.parametrize("name", CHARTS)
def test_a_chart_is_valid_and_can_be_drawn(name: str) -> None:
    spec = CHARTS[name]()
    alt.Root.validate(spec)
    json.dumps(spec, allow_nan=False)
    assert re.fullmatch(r"https://vega.github.io/schema/vega-lite/v6\S*\.json", alt.SCHEMA_URL)
    assert spec["description"]
    # The theme brings the looks; data stay where they are used, under no name.
    assert not {"config", "datasets", "name"} & set(spec)
    # Where Vega fails inside a panel, it leaves the panel out and says nothing.
    width = re.match(r'<svg [^>]*width="(\d+)"', to_svg(spec))
    assert width is not None and int(width[1]) > 250


@pytest.mark.parametrize("name", ["intervals, label chosen", "escapes"])
def test_a_chart_does_not_depend_on_others_or_on_altairs_settings(name: str) -> None:
    first = CHARTS[name]()
    with alt.theme.enable("dark"), alt.data_transformers.enable("csv", consolidate_datasets=True):
        alt.Chart().mark_point().interactive().to_dict()
        assert CHARTS[name]() == first
    assert "csv" not in str(alt.data_transformers.active)


@pytest.mark.parametrize("name", ["constructor", "toString", "__proto__"])
def test_names_that_every_object_has_are_drawn(name: str) -> None:
    assert drawable(name) == f"{name} " and drawable("plain") == "plain"
    chart = interval_chart([(number(0.2), name, "")], [name], x_title=name)
    assert to_svg(done(chart)).count(name) == 2


def test_rows_are_neither_copied_nor_checked() -> None:
    values = [{"x": float(i)} for i in range(3)]
    chart = page([null_line("x", 0.5), alt.Chart().mark_point()], 20, values)
    assert chart.copy().to_dict(validate=False)["data"]["values"] is values
