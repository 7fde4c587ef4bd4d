"""Points with intervals, as Vega-Lite without colours: the theme brings them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ombud.report.display import shorten, unique_names
from ombud.report.format import estimate_text, p_text
from ombud.report.themes import SHAPES
from ombud.stats.estimate import Estimate

__all__ = ["LEAST_RATIO", "NAME_LENGTH", "ROOM", "interval_chart", "row_height"]

NAME_LENGTH = 36
"""Longer names are cut in the middle; tables have them whole."""

LEAST_RATIO = 0.1
"""On a logarithmic axis, smaller ratios stand at this edge."""

ROOM = 400
"""How high a figure may be, in pixels; it has as many rows as fit."""

_SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
_WIDTH = 560
_X_AXIS = {"tickCount": 6, "grid": True}
_LEGEND_CHARACTERS = 50


def interval_chart(
    rows: Sequence[tuple[Estimate, str, str]],
    order: Sequence[str],
    *,
    x_title: str,
    pick: tuple[Sequence[str], str] | None = None,
    break_at: str = "",
    ratio: float | None = None,
) -> dict[str, Any]:
    """Return points with intervals, as Vega-Lite.

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
    """
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
    coloured = len(kinds) > 1
    axis: dict[str, Any] = {"title": None, "grid": True, "ticks": False}
    if break_at:
        axis |= {"labelExpr": f"split(datum.label, '{break_at}')", "labelLineHeight": 13}
    sort = [names[name or "all"] for name in order]
    encoding: dict[str, Any] = {
        "y": {"field": "row", "type": "nominal", "sort": sort, "axis": axis}
    }
    if len(kinds) > 1:
        encoding["yOffset"] = {"field": "series", "type": "nominal", "sort": kinds}
    step = row_height(len(kinds), two_lines=bool(break_at))
    null = next((e.null for e, _, _ in rows if e.null is not None), None)
    look = _x_axis(ratio)
    marks = {"encoding": encoding, "layer": _layers(kinds if coloured else [], x_title, look, data)}
    spec: dict[str, Any] = {
        "$schema": _SCHEMA,
        "width": _WIDTH,
        "height": step * len(order),
        "autosize": {"type": "fit-x", "contains": "padding"},
        "data": {"values": data},
        "layer": [marks] if null is None else [_null_line(null + (ratio or 0.0), look), marks],
    }
    if pick is not None:
        options, first = pick
        choice = {
            "input": "select",
            "options": [labels[o or "all"] for o in options],
            "name": "Label ",
        }
        spec["params"] = [{"name": "label_shown", "value": labels[first or "all"], "bind": choice}]
        spec["transform"] = [{"filter": "datum.label === label_shown"}]
    return spec


def row_height(series: int, *, two_lines: bool = False) -> int:
    """Return the height of a row that holds so many series, in pixels."""
    if series > 1:
        return max(7, min(13, 30 // series)) * series + 8
    return 30 if two_lines else 22


def _x_axis(ratio: float | None) -> dict[str, Any]:
    if ratio is None:
        return {"scale": {"zero": False}, "axis": _X_AXIS}
    axis: dict[str, Any] = {**_X_AXIS, "format": "~g"}
    if ratio:
        axis |= {"labelExpr": f"format(datum.value - {ratio:g}, '+~p')"}
    return {"scale": {"type": "log", "nice": False}, "axis": axis}


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
    coloured: Sequence[str], x_title: str, look: dict[str, Any], data: Sequence[dict[str, Any]]
) -> list[dict[str, Any]]:
    colour: dict[str, Any] = {}
    shape: dict[str, Any] = {}
    if coloured:
        columns = max(1, _LEGEND_CHARACTERS // (max(map(len, coloured)) + 4))
        legend = {"title": None, "orient": "top", "direction": "horizontal", "columns": columns}
        names = list(coloured)
        by = {"field": "series", "type": "nominal", "legend": legend}
        colour = {"color": {**by, "scale": {"domain": names}}}
        shapes = {"domain": names, "range": list(SHAPES[: len(names)])}
        shape = {"shape": {**by, "scale": shapes}}
    x = {"type": "quantitative", "title": x_title, **look}
    tooltip = [
        {"field": "row", "type": "nominal", "title": "About"},
        {"field": "series", "type": "nominal", "title": "System"},
        {"field": "text", "type": "nominal", "title": "Estimate"},
        {"field": "n", "type": "nominal", "title": "n"},
    ]
    for field, title in (("p", "p, not corrected"), ("corrected", "p, corrected")):
        if any(field in datum for datum in data):
            tooltip.append({"field": field, "type": "nominal", "title": title})
    defined = [{"filter": "isValid(datum.value)"}]
    return [
        {
            "transform": [{"filter": "isValid(datum.low)"}],
            "mark": {"type": "rule", "strokeWidth": 2, "opacity": 0.75},
            "encoding": {"x": {"field": "low", **x}, "x2": {"field": "high"}, **colour},
        },
        {
            "transform": defined,
            "mark": {"type": "point", "filled": True, "size": 55, "opacity": 1},
            "encoding": {"x": {"field": "value", **x}, **colour, **shape, "tooltip": tooltip},
        },
        {
            "transform": [{"filter": "isValid(datum.why)"}],
            "mark": {"type": "text", "align": "left", "dx": 4, "fontStyle": "italic"},
            "encoding": {
                "x": {"value": 0},
                "text": {"field": "why", "type": "nominal"},
                "tooltip": [tooltip[0], tooltip[1], tooltip[2]],
            },
        },
    ]


def _null_line(null: float, look: dict[str, Any]) -> dict[str, Any]:
    return {
        "data": {"values": [{}]},
        "mark": {"type": "rule", "style": "null-line"},
        "encoding": {"x": {"datum": null, "type": "quantitative", **look}},
    }
