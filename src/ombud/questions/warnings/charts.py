"""Charts of the warnings experiment, as Vega-Lite without colours: the theme brings them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ombud.report.themes import SHAPES

__all__ = [
    "Pick",
    "histogram_chart",
    "ridge_chart",
    "scatter_chart",
    "share_chart",
    "tradeoff_chart",
]

Pick = tuple[Sequence[str], str]
"""What the reader can choose from, and what stands before the choice."""

Row = dict[str, Any]

_SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
_WIDTH = 560
_DASHES = ([1, 0], [6, 3], [2, 2])
_LEGEND = {"title": None, "orient": "top", "direction": "horizontal"}
_QUANTITY = "quantitative"
_FILL = {"type": "rect", "opacity": 0.75}


def _spec(height: int, values: Sequence[Row], layers: list[Row], pick: Pick | None) -> Row:
    spec: Row = {
        "$schema": _SCHEMA,
        "width": _WIDTH,
        "height": height,
        "autosize": {"type": "fit-x", "contains": "padding"},
        "data": {"values": list(values)},
        "layer": layers,
    }
    if pick is not None:
        options, name = pick
        choice = {"input": "select", "options": list(options), "name": f"{name} "}
        spec["params"] = [{"name": "shown", "value": options[0], "bind": choice}]
    return spec


def _shown(pick: Pick | None, *more: str) -> Row:
    """Return the transform that keeps what the reader chose."""
    rules = [{"filter": rule} for rule in more]
    if pick is not None:
        rules.insert(0, {"filter": "datum.pick === shown"})
    return {"transform": rules} if rules else {}


def _tooltip(**titles: str) -> list[Row]:
    return [{"field": f, "type": "nominal", "title": title} for f, title in titles.items()]


def _line_at(axis: str, value: float) -> Row:
    return {
        "data": {"values": [{}]},
        "mark": {"type": "rule", "style": "null-line"},
        "encoding": {axis: {"datum": value, "type": _QUANTITY}},
    }


def histogram_chart(
    values: Sequence[Row],
    sides: Sequence[str],
    *,
    x_title: str,
    pick: Pick | None,
    ticks: Sequence[float] = (),
    y_title: str = "share of items",
) -> Row:
    """Return outlines of histograms laid over each other, with a line at each mean.

    Parameters
    ----------
    values
        Each with `pick`, `side`, and `x` and `share` (an edge of a bin, and the share of items
        from there on) or `mean`.
    sides
        Their names, in order.
    x_title
        What is counted.
    pick
        The labels; None where there is nothing to choose.
    ticks
        Where the axis has ticks, for counts: it then grows like a logarithm.
    y_title
        What the shares are of.
    """
    names = list(sides)
    by = {"field": "side", "type": "nominal"}
    legend = {**_LEGEND, "symbolType": "stroke", "symbolStrokeWidth": 2, "symbolSize": 300}
    look = {
        "color": {**by, "scale": {"domain": names}, "legend": legend},
        "strokeDash": {
            **by,
            "scale": {"domain": names, "range": list(_DASHES[: len(names)])},
            "legend": legend,
        },
    }
    scale: Row = {"zero": False, "nice": False}
    axis: Row = {"grid": False, "tickCount": 8}
    if ticks:
        scale, axis = {"type": "symlog", "nice": False}, {"grid": False, "values": list(ticks)}
    x: Row = {"type": _QUANTITY, "title": x_title, "scale": scale, "axis": axis}
    y: Row = {"field": "share", "type": _QUANTITY, "title": y_title}
    y |= {"axis": {"format": ".0%", "tickCount": 5, "grid": True}}
    outline = {"type": "line", "interpolate": "step-after", "strokeWidth": 2}
    mean = {"type": "rule", "strokeWidth": 1.5, "opacity": 0.8}
    layers: list[Row] = [
        {
            **_shown(pick, "isValid(datum.share)"),
            "mark": outline,
            "encoding": {"x": {"field": "x", **x}, "y": y, **look},
        },
        {
            **_shown(pick, "isValid(datum.mean)"),
            "mark": mean,
            "encoding": {
                "x": {"field": "mean", **x},
                **look,
                "tooltip": _tooltip(side="Items", text="Mean"),
            },
        },
    ]
    return _spec(260, values, layers, pick)


def scatter_chart(
    values: Sequence[Row],
    span: tuple[float, float],
    *,
    titles: tuple[str, str],
    corners: tuple[str, str],
    pick: Pick,
) -> Row:
    """Return one point for each user, and the diagonal where both sides are equal.

    Parameters
    ----------
    values
        Each with `pick`, `x` and `y`.
    span
        Least and greatest value of both axes.
    titles
        Of the axes.
    corners
        What it means to lie above and below the diagonal.
    pick
        The labels.
    """
    low, high = span
    scale = {"domain": [low, high], "nice": False, "zero": False}
    axis = {"tickCount": 6, "grid": True}
    x = {"type": _QUANTITY, "title": titles[0], "scale": scale, "axis": axis}
    y = {"type": _QUANTITY, "title": titles[1], "scale": scale, "axis": axis}
    points = {"type": "point", "filled": True, "size": 28, "opacity": 0.45}
    text = {"type": "text", "fontStyle": "italic", "fontSize": 12}
    layers: list[Row] = [
        {
            "data": {"values": [{"x": low, "y": low}, {"x": high, "y": high}]},
            "mark": {"type": "line", "style": "null-line"},
            "encoding": {"x": {"field": "x", **x}, "y": {"field": "y", **y}},
        },
        {
            **_shown(pick),
            "mark": points,
            "encoding": {"x": {"field": "x", **x}, "y": {"field": "y", **y}},
        },
    ]
    edge = (high - low) * 0.02
    places = ((low + edge, high - edge, "left"), (high - edge, low + edge, "right"))
    for words, (at_x, at_y, align) in zip(corners, places, strict=True):
        layers.append(
            {
                "data": {"values": [{"x": at_x, "y": at_y, "words": words}]},
                "mark": {**text, "align": align},
                "encoding": {
                    "x": {"field": "x", **x},
                    "y": {"field": "y", **y},
                    "text": {"field": "words", "type": "nominal"},
                },
            }
        )
    return _spec(400, values, layers, pick)


def share_chart(values: Sequence[Row], *, x_title: str, pick: Pick) -> Row:
    """Return how many users have which share of their interactions with a label.

    Parameters
    ----------
    values
        Each with `pick`, `low`, `high`, `users` and `text`.
    x_title
        What the share is.
    pick
        The labels.
    """
    axis = {"format": ".0%", "tickCount": 6, "grid": False}
    x = {"type": _QUANTITY, "title": x_title, "scale": {"domain": [0, 1]}, "axis": axis}
    y = {"field": "users", "type": _QUANTITY, "title": "users", "axis": {"tickCount": 5}}
    bars = {
        **_shown(pick),
        "mark": {"type": "bar", "opacity": 0.75, "binSpacing": 1},
        "encoding": {
            "x": {"field": "low", "bin": {"binned": True}, **x},
            "x2": {"field": "high"},
            "y": y,
            "tooltip": _tooltip(text="Share", users="Users"),
        },
    }
    return _spec(240, values, [bars, _line_at("x", 0.5)], pick)


def ridge_chart(
    values: Sequence[Row],
    systems: Sequence[str],
    *,
    x_title: str,
    pick: Pick | None = None,
) -> Row:
    """Return one histogram for each system, below each other, with a line at zero.

    Parameters
    ----------
    values
        Each with `system` and either a bin (`low`, `high`, `bottom`, `top`, `range`, `users`) or a
        mark (`kind`, `at`, `height`, `text`); with `pick` where there is something to choose.
    systems
        From top to bottom; row i of n has its ground at n - 1 - i.
    x_title
        What is measured.
    pick
        The labels.
    """
    upwards = list(reversed(systems))
    names = "[" + ",".join(json.dumps(name) for name in upwards) + "]"
    rows = len(upwards)
    axis = {
        "title": None,
        "grid": False,
        "ticks": False,
        "domain": False,
        "values": [row + 0.4 for row in range(rows)],
        "labelExpr": f"{names}[floor(datum.value)]",
    }
    y: Row = {"type": _QUANTITY, "scale": {"domain": [-0.05, rows], "nice": False}, "axis": axis}
    x_axis = {"tickCount": 8, "grid": True}
    x: Row = {"type": _QUANTITY, "title": x_title, "scale": {"zero": False, "nice": False}}
    x |= {"axis": x_axis}
    colour = {
        "color": {
            "field": "system",
            "type": "nominal",
            "scale": {"domain": list(systems)},
            "legend": None,
        }
    }
    shape = {
        "field": "kind",
        "type": "nominal",
        "scale": {"domain": ["mean", "median"], "range": ["diamond", "triangle-up"]},
        "legend": _LEGEND,
    }
    layers: list[Row] = [
        {
            **_shown(pick, "isValid(datum.low)"),
            "mark": _FILL,
            "encoding": {
                "x": {"field": "low", **x},
                "x2": {"field": "high"},
                "y": {"field": "bottom", **y},
                "y2": {"field": "top"},
                **colour,
                "tooltip": _tooltip(system="System", range="Amplification", users="Users"),
            },
        },
        _line_at("x", 0.0),
        {
            **_shown(pick, "isValid(datum.at)"),
            "mark": {
                "type": "point",
                "filled": True,
                "size": 90,
                "opacity": 1,
                "style": "null-line",
            },
            "encoding": {
                "x": {"field": "at", **x},
                "y": {"field": "height", **y},
                "shape": shape,
                "tooltip": _tooltip(system="System", kind="What", text="Estimate"),
            },
        },
    ]
    return _spec(60 * rows, values, layers, pick)


def tradeoff_chart(
    values: Sequence[Row],
    systems: Sequence[str],
    *,
    titles: tuple[str, str],
    pick: Pick | None,
) -> Row:
    """Return one point for each system with an interval in both directions.

    Parameters
    ----------
    values
        Each with `system`, `x`, `y`, `text_x`, `text_y`, and `x_low`, `x_high`, `y_low`, `y_high`
        where there are intervals.
    systems
        In order.
    titles
        Of the axes.
    pick
        The forms of the second number.
    """
    names = list(systems)
    columns = max(1, 50 // (max(map(len, names)) + 4))
    legend = {**_LEGEND, "columns": columns}
    by: Mapping[str, Any] = {"field": "system", "type": "nominal", "legend": legend}
    colour = {"color": {**by, "scale": {"domain": names}}}
    shape = {"shape": {**by, "scale": {"domain": names, "range": list(SHAPES[: len(names)])}}}
    axis = {"tickCount": 6, "grid": True}
    x = {"type": _QUANTITY, "title": titles[0], "scale": {"zero": False}, "axis": axis}
    y = {"type": _QUANTITY, "title": titles[1], "scale": {"zero": False}, "axis": axis}
    line = {"type": "rule", "strokeWidth": 2, "opacity": 0.75}
    tooltip = _tooltip(system="System", text_x=titles[0], text_y=titles[1])
    at_x, at_y = {"field": "x", **x}, {"field": "y", **y}
    layers: list[Row] = [
        _line_at("y", 0.0),
        {
            **_shown(pick, "isValid(datum.x_low)"),
            "mark": line,
            "encoding": {
                "x": {"field": "x_low", **x},
                "x2": {"field": "x_high"},
                "y": at_y,
                **colour,
            },
        },
        {
            **_shown(pick, "isValid(datum.y_low)"),
            "mark": line,
            "encoding": {
                "y": {"field": "y_low", **y},
                "y2": {"field": "y_high"},
                "x": at_x,
                **colour,
            },
        },
        {
            **_shown(pick),
            "mark": {"type": "point", "filled": True, "size": 90, "opacity": 1},
            "encoding": {"x": at_x, "y": at_y, **colour, **shape, "tooltip": tooltip},
        },
    ]
    return _spec(300, values, layers, pick)
