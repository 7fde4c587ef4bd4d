"""Charts of a suppression audit, as Vega-Lite without colours: the theme brings them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import polars as pl

from ombud.report.blocks import Figure
from ombud.report.charts import LEAST_RATIO, NAME_LENGTH, ROOM, interval_chart, row_height
from ombud.report.display import count, shorten
from ombud.report.findings import weight
from ombud.report.format import estimate_text, number_text
from ombud.report.themes import MOST_COLOURS
from ombud.stats.estimate import Estimate

__all__ = ["dots_figure", "heat_figure", "scores_figure"]

_SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
_FURTHEST = 3.0
_NARROW = 250


def _order(estimates: Sequence[Estimate]) -> list[str]:
    """Return groups from the largest ratio of any system to the smallest."""
    best: dict[str, float] = {}
    for e in estimates:
        best[e.group] = max(best.get(e.group, -math.inf), -math.inf if e.value is None else e.value)
    return sorted(best, key=lambda group: -best[group])


def _that_matter(estimates: Sequence[Estimate], most: int) -> list[str]:
    """Return the groups whose ratios are certain to lie furthest from 1, from high to low."""
    certain: dict[str, tuple[float, float]] = {}
    for e in estimates:
        certain[e.group] = max(certain.get(e.group, (-1.0, -1.0)), weight(e))
    kept = set(sorted(certain, key=lambda group: certain[group], reverse=True)[:most])
    return [group for group in _order(estimates) if group in kept]


def dots_figure(
    estimates: Sequence[Estimate],
    *,
    name: str,
    table: str,
    title: str = "",
    caption: str = "",
    room: int = ROOM,
) -> Figure | None:
    """Return groups down the side, one dot and interval for each system, families side by side.

    Parameters
    ----------
    estimates
        Ratios of one metric, over all texts; labels are families.
    name, table
        Of the figure, and of the table with the same numbers.
    title, caption
        In place of the metric's title and of the usual words.
    room
        How high it may be, in pixels.
    """
    systems = list(dict.fromkeys(e.system for e in estimates))[:MOST_COLOURS]
    drawn = [e for e in estimates if e.system in systems]
    families = sorted({e.label for e in drawn if e.label})
    panels = families if len(families) > 1 else [""]
    shown = [e for e in drawn if e.label in panels]
    if not any(e.value is not None for e in shown):
        return None
    every = _order(shown)
    order = _that_matter(shown, max(4, room // row_height(len(systems))))
    metric = shown[0].metric
    specs = []
    for panel in panels:
        rows = [(e, e.group, e.system) for e in shown if e.label == panel]
        spec = interval_chart(rows, order, x_title=title or metric, ratio=0.0)
        if len(panels) > 1:
            spec = {k: v for k, v in spec.items() if k not in {"$schema", "autosize"}}
            spec |= {"width": _NARROW, "title": {"text": panel, "fontSize": 12}}
        specs.append(spec)
    whole: dict[str, Any] = specs[0]
    if len(panels) > 1:
        whole = {"$schema": _SCHEMA, "hconcat": specs}
        whole["resolve"] = {"scale": {"color": "shared", "shape": "shared"}}
    alt = _alt(f"{title or metric} by group and system", shown)
    text = [
        caption
        or f"Lines are {shown[0].level:.0%} intervals. Dashed: 1, flagged as often as all "
        f"acceptable texts. The axis is logarithmic; what is below {LEAST_RATIO:g} stands at its "
        "edge."
    ]
    if len(panels) > 1:
        text.append("Left and right: " + ", ".join(panels) + ", with scales of their own.")
    rest = len({e.system for e in estimates}) - len(systems)
    if rest:
        text.append(f"{count(rest, 'system')} {'is' if rest == 1 else 'are'} not shown.")
    rest = len(every) - len(order)
    if rest:
        text.append(f"{count(rest, 'group')} {'is' if rest == 1 else 'are'} not shown.")
    spec = whole | {"description": alt}
    return Figure(name, spec, title or metric.capitalize(), " ".join(text), alt, table)


def heat_figure(estimates: Sequence[Estimate], *, name: str, table: str) -> Figure | None:
    """Return groups by systems as a grid, darker where a ratio is further from 1."""
    plain = [e for e in estimates if not e.label]
    if not any(e.value for e in plain):
        return None
    values = []
    for e in plain:
        cell: dict[str, Any] = {
            "group": shorten(e.group, NAME_LENGTH),
            "system": shorten(e.system, NAME_LENGTH),
            "text": estimate_text(e),
        }
        if e.value is None:
            cell["shown"] = "not enough"
        else:
            cell["shown"] = number_text(e.value, 2 if e.value < 10 else 0)
            if e.value > 0:
                cell["log"] = round(max(-_FURTHEST, min(_FURTHEST, math.log2(e.value))), 3)
            else:
                cell["log"] = -_FURTHEST
        values.append(cell)
    order = [shorten(group, NAME_LENGTH) for group in _order(plain)]
    axes = {
        "y": {"field": "group", "type": "nominal", "sort": order, "title": None},
        "x": {
            "field": "system",
            "type": "nominal",
            "title": None,
            "sort": None,
            "axis": {"orient": "top", "labelAngle": 0},
        },
    }
    scale = {"domain": [-_FURTHEST, 0, _FURTHEST], "range": ["#2f7fb8", "#f4f4f4", "#c4600f"]}
    legend = {
        "title": "ratio",
        "values": [-3, -2, -1, 0, 1, 2, 3],
        "labelExpr": "format(pow(2, datum.value), '~g')",
    }
    tooltip = [
        {"field": f, "type": "nominal", "title": t}
        for f, t in (("group", "Group"), ("system", "System"), ("text", "Estimate"))
    ]
    dark = "abs(datum.log) > 1.8"
    alt = _alt(f"{plain[0].metric} as a grid of groups and systems", plain)
    spec = {
        "$schema": _SCHEMA,
        "description": alt,
        "width": {"step": 104},
        "height": {"step": 24},
        "data": {"values": values},
        "encoding": axes,
        "layer": [
            {
                "transform": [{"filter": "isValid(datum.log)"}],
                "mark": {"type": "rect"},
                "encoding": {
                    "color": {"field": "log", "type": "quantitative", "scale": scale}
                    | {"legend": legend},
                    "tooltip": tooltip,
                },
            },
            {
                "mark": {"type": "text"},
                "encoding": {
                    "text": {"field": "shown", "type": "nominal"},
                    "color": {
                        "condition": [
                            {"test": f"isValid(datum.log) && {dark}", "value": "#ffffff"},
                            {"test": "isValid(datum.log)", "value": "#1f2430"},
                        ],
                        "value": "#7a8190",
                    },
                    "tooltip": tooltip,
                },
            },
        ],
    }
    text = (
        "Each cell is a ratio, coloured by its logarithm; the grid has no intervals, which the "
        "table has. Cells without colour: not enough data."
    )
    return Figure(name, spec, f"{plain[0].metric}: overview", text, alt, table)


def scores_figure(table: pl.DataFrame, *, name: str, shown_in: str) -> Figure | None:
    """Return the spread of scores by group, one panel for each system.

    Parameters
    ----------
    table
        ``system``, ``group`` (empty for all texts), ``texts`` and quantiles.
    name, shown_in
        Of the figure, and of the table with the same numbers.
    """
    if not table.height:
        return None
    rows = [
        row
        | {
            "group": shorten(row["group"], NAME_LENGTH) or "all texts",
            "system": shorten(row["system"], NAME_LENGTH),
        }
        for row in table.to_dicts()
    ]
    groups = list(dict.fromkeys(row["group"] for row in rows))
    x = {"type": "quantitative", "title": "score", "scale": {"zero": False}}
    panels = []
    for system in dict.fromkeys(row["system"] for row in rows):
        panels.append(
            {
                "title": {"text": system, "fontSize": 12, "anchor": "start"},
                "width": 420,
                "height": {"step": 18},
                "data": {"values": [row for row in rows if row["system"] == system]},
                "encoding": {
                    "y": {"field": "group", "type": "nominal", "sort": groups, "title": None}
                },
                "layer": [
                    {
                        "mark": {"type": "rule", "opacity": 0.6},
                        "encoding": {"x": {"field": "q05", **x}, "x2": {"field": "q95"}},
                    },
                    {
                        "mark": {"type": "rule", "strokeWidth": 8, "opacity": 0.6},
                        "encoding": {"x": {"field": "q25", **x}, "x2": {"field": "q75"}},
                    },
                    {
                        "mark": {"type": "point", "filled": True, "size": 60, "opacity": 1},
                        "encoding": {"x": {"field": "q50", **x}},
                    },
                ],
            }
        )
    alt = f"Scores of acceptable texts by group, for {count(len(panels), 'system')}."
    spec = {"$schema": _SCHEMA, "description": alt, "vconcat": panels}
    text = (
        "Points are medians, thick lines the middle half, thin lines the middle 90% of the texts "
        "that should not be flagged. They describe these texts; scales differ between systems."
    )
    return Figure(name, spec, "Scores of acceptable texts", text, alt, shown_in)


def _alt(title: str, shown: Sequence[Estimate]) -> str:
    defined = sorted((e for e in shown if e.value is not None), key=lambda e: e.value or 0.0)
    if not defined:
        return f"{title}: no number is defined."
    high = defined[-1]
    where = ", ".join(part for part in (high.system, high.label, high.group) if part)
    return f"{title}: {len(defined)} estimates. Highest: {where}, {estimate_text(high)}."
