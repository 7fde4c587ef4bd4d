"""What charts share: their data, channels and legends, and the specification they become.

Charts are written with altair, which is imported where one is drawn and nowhere else, so that
nothing but a report loads it. Fields have fixed names and are given as ``field=``: what users call
things is data and never reaches altair's shorthand. Charts have no colours: the theme brings them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from ombud.report.themes import SHAPES

if TYPE_CHECKING:
    import altair as alt
    from altair.typing import ChartType


WIDTH = 560
"""How wide a chart is that has the page for itself, in pixels."""

NOMINAL: dict[str, Any] = {"type": "nominal"}
QUANTITY: dict[str, Any] = {"type": "quantitative"}

_SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
_LEGEND_CHARACTERS = 50

# altair's marks of a chart inside another: no theme, no named copies of the data, no compilation,
# whatever the program around has set for its own charts.
_AS_WRITTEN = {"top_level": False, "pre_transform": False}


def specification(chart: ChartType, description: str) -> dict[str, Any]:
    """Return a chart as Vega-Lite, with its data inside and without colours.

    It is not checked against the schema, which would take longer than all the rest (26 of 50 ms of
    a forest): the tests do it for every chart.

    Parameters
    ----------
    chart
        Of altair.
    description
        What it shows, for those who do not see it.
    """
    spec = chart.to_dict(validate=False, context=dict(_AS_WRITTEN))
    return {"$schema": _SCHEMA, "description": description, **spec}


@cache
def _rows() -> Any:
    import altair as alt

    class Rows(alt.Data):
        """Inline data that altair neither checks nor copies, value by value."""

        _class_is_valid_at_instantiation = False

        def to_dict(self, *args: Any, **options: Any) -> dict[str, Any]:
            return dict(self._kwds)

        def __deepcopy__(self, memo: Any) -> Rows:
            return self

    return Rows


def inline(values: Sequence[dict[str, Any]] | dict[str, Any], **about: Any) -> alt.Data:
    """Return the data of a chart or of one of its layers.

    Parameters
    ----------
    values
        One dictionary a row, or what the format asks for.
    **about
        Such as its format.
    """
    data: alt.Data = _rows()(values=values, **about)
    return data


def page(
    layers: Sequence[alt.Chart],
    height: int,
    values: Sequence[dict[str, Any]] | None = None,
    **more: Any,
) -> alt.LayerChart:
    """Return layers over each other, together with their labels as wide as the page."""
    import altair as alt

    data = {} if values is None else {"data": inline(values)}
    size = alt.AutoSizeParams(type="fit-x", contains="padding")
    return layered(*layers, width=WIDTH, height=height, autosize=size, **data, **more)


def layered(*layers: alt.Chart, **about: Any) -> alt.LayerChart:
    """Return layers over each other, drawn in this order.

    All that is to be said of the chart is said at once: each of altair's methods copies every
    layer of such a chart.
    """
    import altair as alt

    return alt.LayerChart(layer=layers, **about)


def side_by_side(panels: Sequence[ChartType]) -> alt.HConcatChart:
    """Return panels in a row, with one legend."""
    import altair as alt

    shared = alt.Resolve(scale=alt.ScaleResolveMap(color="shared", shape="shared"))
    return alt.hconcat(*panels, resolve=shared)


def panel_title(text: str, **more: Any) -> alt.TitleParams:
    """Return the heading of a panel."""
    import altair as alt

    return alt.TitleParams(text=text, fontSize=12, **more)


def null_line(across: str, value: float, **look: Any) -> alt.Chart:
    """Return a dashed line across the chart.

    Parameters
    ----------
    across
        ``x`` for an upright line, ``y`` for a level one.
    value
        Where on that axis.
    **look
        Scale and axis, where the other layers have them.
    """
    import altair as alt

    kind = {"x": alt.XDatum, "y": alt.YDatum}[across]
    at: dict[str, Any] = {across: kind(value, **QUANTITY, **look)}
    line: alt.Chart = alt.Chart(inline([{}])).mark_rule(style="null-line")
    return line.encode(**at)


def tooltips(**titles: str) -> list[alt.Tooltip]:
    """Return what the pointer shows: fields and their titles."""
    import altair as alt

    return [alt.Tooltip(field=f, title=title, **NOMINAL) for f, title in titles.items()]


def legend(names: Sequence[str] = (), **more: Any) -> alt.Legend:
    """Return a legend above the chart, in as many columns as its names leave room for."""
    import altair as alt

    if names:
        more["columns"] = max(1, _LEGEND_CHARACTERS // (max(map(len, names)) + 4))
    return alt.Legend(title=None, orient="top", direction="horizontal", **more)


def by_series(field: str, names: Sequence[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the channels that tell series apart: colour alone, and colour with shape."""
    import altair as alt

    by = {"field": field, "legend": legend(names), **NOMINAL}
    colour = {"color": alt.Color(scale=alt.Scale(domain=list(names)), **by)}
    shapes = alt.Scale(domain=list(names), range=list(SHAPES[: len(names)]))
    return colour, {**colour, "shape": alt.Shape(scale=shapes, **by)}


def choice(name: str, options: Sequence[str], first: str, title: str) -> dict[str, Any]:
    """Return what lets the reader choose: the parameter of a chart.

    Parameters
    ----------
    name
        Of the parameter, for filters.
    options
        What there is to choose from.
    first
        What is chosen before the reader does.
    title
        What stands before the choice.
    """
    import altair as alt

    select = alt.binding_select(options=list(options), name=f"{title} ")
    return {"params": [alt.param(name=name, value=first, bind=select).param]}
