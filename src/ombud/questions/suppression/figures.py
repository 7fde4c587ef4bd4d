"""Charts of a suppression audit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from ombud.report.blocks import Figure
from ombud.report.charts import LEAST_RATIO, NAME_LENGTH, ROOM, interval_chart, row_height
from ombud.report.display import count, shorten
from ombud.report.drawing import (
    NOMINAL,
    QUANTITY,
    inline,
    layered,
    panel_title,
    side_by_side,
    specification,
    tooltips,
)
from ombud.report.findings import weight
from ombud.report.format import estimate_text, number_text
from ombud.report.themes import MOST_COLOURS
from ombud.stats.estimate import Estimate

if TYPE_CHECKING:
    import altair as alt


_FURTHEST = 3.0


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
    charts = []
    for panel in panels:
        rows = [(e, e.group, e.system) for e in shown if e.label == panel]
        x_title = title or metric
        charts.append(interval_chart(rows, order, x_title=x_title, ratio=0.0, panel=panel))
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
    spec = specification(charts[0] if len(charts) == 1 else side_by_side(charts), alt)
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
    alt = _alt(f"{plain[0].metric} as a grid of groups and systems", plain)
    spec = specification(_heat_chart(values, order), alt)
    text = (
        "Each cell is a ratio, coloured by its logarithm; the grid has no intervals, which the "
        "table has. Cells without colour: not enough data."
    )
    return Figure(name, spec, f"{plain[0].metric}: overview", text, alt, table)


def _heat_chart(values: Sequence[dict[str, Any]], order: Sequence[str]) -> alt.LayerChart:
    import altair as alt

    colours = ["#2f7fb8", "#f4f4f4", "#c4600f"]
    ratio = alt.Color(
        field="log",
        scale=alt.Scale(domain=[-_FURTHEST, 0, _FURTHEST], range=colours),
        legend=alt.Legend(
            title="ratio",
            values=[-3, -2, -1, 0, 1, 2, 3],
            labelExpr="format(pow(2, datum.value), '~g')",
        ),
        **QUANTITY,
    )
    on_dark = alt.when("isValid(datum.log) && abs(datum.log) > 1.8").then(alt.value("#ffffff"))
    on_light = on_dark.when("isValid(datum.log)").then(alt.value("#1f2430"))
    system = alt.Axis(orient="top", labelAngle=0)
    cell = {
        "y": alt.Y(field="group", sort=list(order), title=None, **NOMINAL),
        "x": alt.X(field="system", title=None, sort=None, axis=system, **NOMINAL),
        "tooltip": tooltips(group="Group", system="System", text="Estimate"),
    }
    return layered(
        alt.Chart().transform_filter("isValid(datum.log)").mark_rect().encode(color=ratio, **cell),
        alt.Chart()
        .mark_text()
        .encode(
            text=alt.Text(field="shown", **NOMINAL),
            color=on_light.otherwise(alt.value("#7a8190")),
            **cell,
        ),
        data=inline(values),
        width=alt.Step(104),
        height=alt.Step(24),
    )


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
    systems = list(dict.fromkeys(row["system"] for row in rows))
    alt = f"Scores of acceptable texts by group, for {count(len(systems), 'system')}."
    spec = specification(_scores_chart(rows, systems, groups), alt)
    text = (
        "Points are medians, thick lines the middle half, thin lines the middle 90% of the texts "
        "that should not be flagged. They describe these texts; scales differ between systems."
    )
    return Figure(name, spec, "Scores of acceptable texts", text, alt, shown_in)


def _scores_chart(
    rows: Sequence[dict[str, Any]], systems: Sequence[str], groups: Sequence[str]
) -> alt.VConcatChart:
    import altair as alt

    x = {"title": "score", "scale": alt.Scale(zero=False), **QUANTITY}
    y = alt.Y(field="group", sort=list(groups), title=None, **NOMINAL)
    layers = [
        alt.Chart()
        .mark_rule(opacity=0.6)
        .encode(x=alt.X(field="q05", **x), x2=alt.X2(field="q95"), y=y),
        alt.Chart()
        .mark_rule(strokeWidth=8, opacity=0.6)
        .encode(x=alt.X(field="q25", **x), x2=alt.X2(field="q75"), y=y),
        alt.Chart()
        .mark_point(filled=True, size=60, opacity=1)
        .encode(x=alt.X(field="q50", **x), y=y),
    ]
    panels = [
        layered(
            *layers,
            data=inline([row for row in rows if row["system"] == system]),
            title=panel_title(system, anchor="start"),
            width=420,
            height=alt.Step(18),
        )
        for system in systems
    ]
    return alt.vconcat(*panels)


def _alt(title: str, shown: Sequence[Estimate]) -> str:
    defined = sorted((e for e in shown if e.value is not None), key=lambda e: e.value or 0.0)
    if not defined:
        return f"{title}: no number is defined."
    high = defined[-1]
    where = ", ".join(part for part in (high.system, high.label, high.group) if part)
    return f"{title}: {len(defined)} estimates. Highest: {where}, {estimate_text(high)}."
