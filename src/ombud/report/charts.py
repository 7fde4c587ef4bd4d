"""Points with intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ombud.report.display import shorten, unique_names
from ombud.report.drawing import (
    NOMINAL,
    QUANTITY,
    by_series,
    choice,
    inline,
    layered,
    null_line,
    page,
    panel_title,
    tooltips,
)
from ombud.report.format import estimate_text, p_text
from ombud.stats.estimate import Estimate

if TYPE_CHECKING:
    import altair as alt


NAME_LENGTH = 36
"""Longer names are cut in the middle; tables have them whole."""

LEAST_RATIO = 0.1
"""On a logarithmic axis, smaller ratios stand at this edge."""

ROOM = 400
"""How high a figure may be, in pixels; it has as many rows as fit."""

_PANEL_WIDTH = 250


def interval_chart(
    rows: Sequence[tuple[Estimate, str, str]],
    order: Sequence[str],
    *,
    x_title: str,
    pick: tuple[Sequence[str], str] | None = None,
    break_at: str = "",
    ratio: float | None = None,
    panel: str = "",
) -> alt.LayerChart:
    """Return points with intervals.

    Parameters
    ----------
    rows
        Estimates, each with the name of its row and of its series (such as its system).
    order
        The rows, from top to bottom; estimates of other rows are not drawn.
    x_title
        What is measured.
    pick
        Labels that the reader can choose from, and the one shown first.
    break_at
        Where row names go on in a second line.
    ratio
        For ratios, what must be added to a value to get the ratio: 0, or 1 where 1 was
        subtracted. Their axis is logarithmic. None for what is no ratio.
    panel
        The heading, where the chart stands beside others and is narrower for it.
    """
    import altair as alt

    wanted = set(order)
    rows = [row for row in rows if row[1] in wanted]
    names = unique_names((name or "all" for name in order), NAME_LENGTH * (2 if break_at else 1))
    series = unique_names((s or "all" for _, _, s in rows), NAME_LENGTH)
    labels = unique_names((e.label or "all" for e, _, _ in rows), NAME_LENGTH)
    ends = _finite_ends([e for e, _, _ in rows])
    data = [
        _datum(e, names[name or "all"], series[s or "all"], labels[e.label or "all"], ends)
        for e, name, s in rows
    ]
    if ratio is not None:
        for datum in data:
            for end in {"value", "low", "high"} & set(datum):
                datum[end] = _rounded(max(datum[end] + ratio, LEAST_RATIO))
    kinds = list(series.values())
    axis: dict[str, Any] = {"title": None, "grid": True, "ticks": False}
    if break_at:
        axis |= {"labelExpr": f"split(datum.label, '{break_at}')", "labelLineHeight": 13}
    sort = [names[name or "all"] for name in order]
    about: dict[str, Any] = {"y": alt.Y(field="row", sort=sort, axis=alt.Axis(**axis), **NOMINAL)}
    if len(kinds) > 1:
        about["yOffset"] = alt.YOffset(field="series", sort=kinds, **NOMINAL)
    look = _x_axis(ratio)
    layers = _layers(kinds if len(kinds) > 1 else [], x_title, look, data, about)
    null = next((e.null for e, _, _ in rows if e.null is not None), None)
    if null is not None:
        layers.insert(0, null_line("x", null + (ratio or 0.0), **look))
    more: dict[str, Any] = {}
    if pick is not None:
        options, first = pick
        offered = [labels[o or "all"] for o in options]
        more = choice("label_shown", offered, labels[first or "all"], "Label")
        more["transform"] = [alt.FilterTransform("datum.label === label_shown")]
    height = row_height(len(kinds), two_lines=bool(break_at)) * len(order)
    if panel:
        more |= {"width": _PANEL_WIDTH, "title": panel_title(panel)}
        return layered(*layers, data=inline(data), height=height, **more)
    return page(layers, height, data, **more)


def row_height(series: int, *, two_lines: bool = False) -> int:
    """Return the height of a row that holds so many series, in pixels."""
    if series > 1:
        return max(7, min(13, 30 // series)) * series + 8
    return 30 if two_lines else 22


def _x_axis(ratio: float | None) -> dict[str, Any]:
    import altair as alt

    if ratio is None:
        return {"scale": alt.Scale(zero=False), "axis": alt.Axis(tickCount=6, grid=True)}
    more: dict[str, Any] = {}
    if ratio:
        more = {"labelExpr": f"format(datum.value - {ratio:g}, '+~p')"}
    axis = alt.Axis(tickCount=6, grid=True, format="~g", **more)
    return {"scale": alt.Scale(type="log", nice=False, padding=8), "axis": axis}


def _finite_ends(estimates: Sequence[Estimate]) -> tuple[float, float]:
    ends = [v for e in estimates if e.interval for v in e.interval if math.isfinite(v)]
    ends += [e.value for e in estimates if e.value is not None]
    return (min(ends), max(ends)) if ends else (0.0, 0.0)


def _datum(
    e: Estimate, row: str, series: str, label: str, ends: tuple[float, float]
) -> dict[str, Any]:
    datum: dict[str, Any] = {"row": row, "series": series, "label": label}
    if e.value is None:
        return datum | {"why": "not defined", "text": f"not defined: {shorten(e.reason, 120)}"}
    datum |= {
        "value": _rounded(e.value),
        "text": estimate_text(e),
        "n": f"{e.n:,}",
    }
    datum |= {} if e.p_value is None else {"p": p_text(e.p_value)}
    datum |= {} if e.p_adjusted is None else {"corrected": p_text(e.p_adjusted)}
    if e.interval is not None:
        # An open end is drawn to the edge of the picture; the text says that it is open.
        low, high = (min(max(end, ends[0]), ends[1]) for end in e.interval)
        datum |= {"low": _rounded(low), "high": _rounded(high)}
    return datum


def _rounded(value: float) -> float:
    return float(f"{value:.5g}")


def _layers(
    coloured: Sequence[str],
    x_title: str,
    look: dict[str, Any],
    data: Sequence[dict[str, Any]],
    about: dict[str, Any],
) -> list[alt.Chart]:
    import altair as alt

    colour, shape = by_series("series", coloured) if coloured else ({}, {})
    x = {"title": x_title, **QUANTITY, **look}
    tips = tooltips(row="About", series="System", text="Estimate", n="n")
    corrected = {"p": "p, not corrected", "corrected": "p, corrected"}
    there = {field for datum in data for field in datum}
    more = tooltips(**{field: title for field, title in corrected.items() if field in there})
    return [
        alt.Chart()
        .transform_filter("isValid(datum.low)")
        .mark_rule(strokeWidth=2, opacity=0.75)
        .encode(x=alt.X(field="low", **x), x2=alt.X2(field="high"), **colour, **about),
        alt.Chart()
        .transform_filter("isValid(datum.value)")
        .mark_point(filled=True, size=55, opacity=1)
        .encode(x=alt.X(field="value", **x), tooltip=[*tips, *more], **shape, **about),
        alt.Chart()
        .transform_filter("isValid(datum.why)")
        .mark_text(align="left", dx=4, fontStyle="italic")
        .encode(
            x=alt.PositionValueDef(value=0),
            text=alt.Text(field="why", **NOMINAL),
            tooltip=tips[:3],
            **about,
        ),
    ]
