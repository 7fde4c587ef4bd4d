"""Charts of the warnings experiment."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ombud.report.display import drawable
from ombud.report.drawing import (
    NOMINAL,
    QUANTITY,
    by_series,
    choice,
    inline,
    legend,
    null_line,
    page,
    tooltips,
)

if TYPE_CHECKING:
    import altair as alt


Pick = tuple[Sequence[str], str]
"""What the reader can choose from, and what stands before the choice."""

Row = dict[str, Any]

_DASHES = ([1, 0], [6, 3], [2, 2])


def _page(
    height: int, values: Sequence[Row], layers: Sequence[alt.Chart], pick: Pick | None
) -> alt.LayerChart:
    if pick is None:
        return page(layers, height, values)
    options, title = pick
    return page(layers, height, values, **choice("shown", options, options[0], title))


def _kept(pick: Pick | None, *rules: str) -> alt.Chart:
    """Return an empty layer that keeps what the reader chose."""
    import altair as alt

    chart = alt.Chart()
    for rule in rules if pick is None else ("datum.pick === shown", *rules):
        chart = chart.transform_filter(rule)
    return chart


def histogram_chart(
    values: Sequence[Row],
    sides: Sequence[str],
    *,
    x_title: str,
    pick: Pick | None,
    ticks: Sequence[float] = (),
    y_title: str = "share of items",
) -> alt.LayerChart:
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
    import altair as alt

    names = list(sides)
    by = {"field": "side", **NOMINAL}
    by["legend"] = legend(symbolType="stroke", symbolStrokeWidth=2, symbolSize=300)
    dashes = alt.Scale(domain=names, range=list(_DASHES[: len(names)]))
    look = {
        "color": alt.Color(scale=alt.Scale(domain=names), **by),
        "strokeDash": alt.StrokeDash(scale=dashes, **by),
    }
    x = {"title": x_title, **QUANTITY}
    if ticks:
        x["scale"] = alt.Scale(type="symlog", nice=False)
        x["axis"] = alt.Axis(grid=False, values=list(ticks))
    else:
        x["scale"] = alt.Scale(zero=False, nice=False)
        x["axis"] = alt.Axis(grid=False, tickCount=8)
    shares = alt.Axis(format=".0%", tickCount=5, grid=True)
    y = alt.Y(field="share", title=y_title, axis=shares, **QUANTITY)
    outline = _kept(pick, "isValid(datum.share)").mark_line(interpolate="step-after", strokeWidth=2)
    mean = _kept(pick, "isValid(datum.mean)").mark_rule(strokeWidth=1.5, opacity=0.8)
    layers = [
        outline.encode(x=alt.X(field="x", **x), y=y, **look),
        mean.encode(
            x=alt.X(field="mean", **x), tooltip=tooltips(side="Items", text="Mean"), **look
        ),
    ]
    return _page(260, values, layers, pick)


def scatter_chart(
    values: Sequence[Row],
    span: tuple[float, float],
    *,
    titles: tuple[str, str],
    corners: tuple[str, str],
    pick: Pick,
) -> alt.LayerChart:
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
    import altair as alt

    low, high = span
    both = {
        "scale": alt.Scale(domain=[low, high], nice=False, zero=False),
        "axis": alt.Axis(tickCount=6, grid=True),
        **QUANTITY,
    }
    at = {
        "x": alt.X(field="x", title=titles[0], **both),
        "y": alt.Y(field="y", title=titles[1], **both),
    }
    diagonal = alt.Chart(inline([{"x": low, "y": low}, {"x": high, "y": high}]))
    layers = [
        diagonal.mark_line(style="null-line").encode(**at),
        _kept(pick).mark_point(filled=True, size=28, opacity=0.45).encode(**at),
    ]
    edge = (high - low) * 0.02
    above = alt.Chart(inline([{"x": low + edge, "y": high - edge, "words": corners[0]}]))
    below = alt.Chart(inline([{"x": high - edge, "y": low + edge, "words": corners[1]}]))
    words = {"text": alt.Text(field="words", **NOMINAL), **at}
    italic: dict[str, Any] = {"fontStyle": "italic", "fontSize": 12}
    layers += [
        above.mark_text(align="left", **italic).encode(**words),
        below.mark_text(align="right", **italic).encode(**words),
    ]
    return _page(400, values, layers, pick)


def share_chart(values: Sequence[Row], *, x_title: str, pick: Pick) -> alt.LayerChart:
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
    import altair as alt

    axis = alt.Axis(format=".0%", tickCount=6, grid=False)
    x = {"title": x_title, "scale": alt.Scale(domain=[0, 1]), "axis": axis, **QUANTITY}
    bars = _kept(pick).mark_bar(opacity=0.75, binSpacing=1)
    shares = bars.encode(
        x=alt.X(field="low", bin=alt.BinParams(binned=True), **x),
        x2=alt.X2(field="high"),
        y=alt.Y(field="users", title="users", axis=alt.Axis(tickCount=5), **QUANTITY),
        tooltip=tooltips(text="Share", users="Users"),
    )
    return _page(240, values, [shares, null_line("x", 0.5)], pick)


def ridge_chart(
    values: Sequence[Row],
    systems: Sequence[str],
    *,
    x_title: str,
    pick: Pick | None = None,
) -> alt.LayerChart:
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
    import altair as alt

    upwards = list(reversed(systems))
    names = "[" + ",".join(json.dumps(drawable(name)) for name in upwards) + "]"
    count = len(upwards)
    axis = alt.Axis(
        title=None,
        grid=False,
        ticks=False,
        domain=False,
        values=[row + 0.4 for row in range(count)],
        labelExpr=f"{names}[floor(datum.value)]",
    )
    y = {"scale": alt.Scale(domain=[-0.05, count], nice=False), "axis": axis, **QUANTITY}
    x = {"title": x_title, "scale": alt.Scale(zero=False, nice=False), **QUANTITY}
    x["axis"] = alt.Axis(tickCount=8, grid=True)
    kinds = alt.Scale(domain=["mean", "median"], range=["diamond", "triangle-up"])
    bars = _kept(pick, "isValid(datum.low)").mark_rect(opacity=0.75)
    marks = _kept(pick, "isValid(datum.at)").mark_point(
        filled=True, size=90, opacity=1, style="null-line"
    )
    own = alt.Scale(domain=list(systems))
    layers = [
        bars.encode(
            x=alt.X(field="low", **x),
            x2=alt.X2(field="high"),
            y=alt.Y(field="bottom", **y),
            y2=alt.Y2(field="top"),
            color=alt.Color(field="system", scale=own, legend=None, **NOMINAL),
            tooltip=tooltips(system="System", range="Amplification", users="Users"),
        ),
        null_line("x", 0.0),
        marks.encode(
            x=alt.X(field="at", **x),
            y=alt.Y(field="height", **y),
            shape=alt.Shape(field="kind", scale=kinds, legend=legend(), **NOMINAL),
            tooltip=tooltips(system="System", kind="What", text="Estimate"),
        ),
    ]
    return _page(60 * count, values, layers, pick)


def tradeoff_chart(
    values: Sequence[Row],
    systems: Sequence[str],
    *,
    titles: tuple[str, str],
    pick: Pick | None,
) -> alt.LayerChart:
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
    import altair as alt

    colour, shape = by_series("system", systems)
    both = {"scale": alt.Scale(zero=False), "axis": alt.Axis(tickCount=6, grid=True), **QUANTITY}
    x, y = {"title": titles[0], **both}, {"title": titles[1], **both}
    at_x, at_y = alt.X(field="x", **x), alt.Y(field="y", **y)
    line: dict[str, Any] = {"strokeWidth": 2, "opacity": 0.75}
    layers = [
        null_line("y", 0.0),
        _kept(pick, "isValid(datum.x_low)")
        .mark_rule(**line)
        .encode(x=alt.X(field="x_low", **x), x2=alt.X2(field="x_high"), y=at_y, **colour),
        _kept(pick, "isValid(datum.y_low)")
        .mark_rule(**line)
        .encode(x=at_x, y=alt.Y(field="y_low", **y), y2=alt.Y2(field="y_high"), **colour),
        _kept(pick)
        .mark_point(filled=True, size=90, opacity=1)
        .encode(
            x=at_x,
            y=at_y,
            tooltip=tooltips(system="System", text_x=titles[0], text_y=titles[1]),
            **shape,
        ),
    ]
    return _page(300, values, layers, pick)
