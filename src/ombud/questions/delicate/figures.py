"""Charts of a delicate-text audit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from ombud.report.blocks import Figure
from ombud.report.charts import NAME_LENGTH, interval_chart
from ombud.report.display import count, drawable, shorten
from ombud.report.drawing import NOMINAL, QUANTITY, inline, layered, legend, specification, tooltips
from ombud.report.figures import few_systems
from ombud.report.format import estimate_text
from ombud.report.themes import MOST_COLOURS
from ombud.report.titles import value_title
from ombud.stats.estimate import Estimate
from ombud.text.geography import countries, world_outlines

if TYPE_CHECKING:
    import altair as alt


def group_words(group: str) -> str:
    """Return a group as a reader would name it.

    Examples
    --------
    >>> group_words("topic=age"), group_words("length=up to 50 words"), group_words("risk=3")
    ('age', 'up to 50 words', 'risk 3')
    """
    attribute, _, value = group.partition("=")
    if attribute in {"topic", "coarse-topic"}:
        return value_title(attribute, value).lower()
    if attribute == "explicit":
        return f"with {value}" if value == "a term" else "without a term"
    return value if attribute == "length" else f"{attribute} {value}" if value else group


def swap_figure(estimates: Sequence[Estimate], *, name: str, table: str) -> Figure | None:
    """Return the share of decisions that flip, for each test and system."""
    shown, rest = few_systems(estimates)
    if not any(e.value is not None for e in shown):
        return None
    order = list(dict.fromkeys(e.label for e in shown))
    rows = [(e, e.label, e.system) for e in shown]
    chart = interval_chart(rows, order, x_title="share of decisions that flip")
    defined = [e for e in shown if e.value is not None]
    most = max(defined, key=lambda e: e.value or 0.0)
    alt = f"Flipped decisions by test and system. Most: {most.system}, {most.label}, "
    alt += f"{estimate_text(most)}."
    text = f"Of the texts or triplets that a swap changed. Lines are exact {most.level:.0%} "
    spec = specification(chart, alt)
    return Figure(name, spec, "Decisions that flip", f"{text}intervals.{rest}", alt, table)


def group_figure(
    estimates: Sequence[Estimate],
    whole: Sequence[Estimate],
    *,
    name: str,
    table: str,
    title: str,
    most: int = 10,
) -> Figure | None:
    """Return a rate by group and system, groups from low to high, beside that of all texts."""
    shown, rest = few_systems([*whole, *estimates])
    defined = [e for e in shown if e.value is not None and e.group]
    if not defined:
        return None
    low: dict[str, float] = {}
    for e in defined:
        low[e.group] = min(low.get(e.group, 1.0), e.value or 0.0)
    order = sorted(low, key=lambda group: low[group])
    cut = order[:most]
    rows = [(e, group_words(e.group) if e.group else "all texts", e.system) for e in shown]
    order_shown = ["all texts", *dict.fromkeys(map(group_words, cut))]
    chart = interval_chart(rows, order_shown, x_title=title)
    text = f"Lines are {defined[0].level:.0%} intervals; groups with the lowest value first.{rest}"
    if len(order) > len(cut):
        text += f" {count(len(order) - len(cut), 'group')} more in the table."
    worst = min(defined, key=lambda e: e.value or 0.0)
    lowest = f"{group_words(worst.group)} ({worst.system}), {estimate_text(worst)}"
    alt = f"{title} by group. Lowest: {lowest}."
    return Figure(name, specification(chart, alt), f"{title} by group", text, alt, table)


def curve_figure(
    table: pl.DataFrame, systems: Sequence[str], *, name: str, shown_in: str
) -> Figure | None:
    """Return precision over recall at all thresholds, one line for each system.

    Parameters
    ----------
    table
        `system`, `threshold`, `precision`, `recall`.
    systems
        All systems of the audit, in the order of the other figures: so each keeps its colour.
    name, shown_in
        Of the figure, and of the table with the same numbers.
    """
    systems = list(systems)[:MOST_COLOURS]
    # Two points are a line that nothing stands behind: the system has no scores but 0 and 1.
    curved = [s for s in systems if table.filter(pl.col("system") == s).height > 4]
    if not curved:
        return None
    rows = [
        {**row, "system": drawable(shorten(row["system"], NAME_LENGTH))}
        for row in table.filter(pl.col("system").is_in(curved)).to_dicts()
    ]
    for row in rows:
        for key in ("precision", "recall", "threshold"):
            row[key] = round(row[key], 4)
    alt = f"Precision and recall at all thresholds of {count(len(curved), 'system')}."
    named = [drawable(shorten(s, NAME_LENGTH)) for s in systems]
    spec = specification(_curve_chart(rows, named), alt)
    text = "Each point is a threshold. The curve describes these texts; the tables have intervals."
    return Figure(name, spec, "Precision and recall at every threshold", text, alt, shown_in)


def _curve_chart(rows: Sequence[dict[str, Any]], systems: Sequence[str]) -> alt.Chart:
    import altair as alt

    shown = list(dict.fromkeys(str(row["system"]) for row in rows))
    shares = {"scale": alt.Scale(domain=[0, 1]), **QUANTITY}
    fields = ("system", "threshold", "precision", "recall")
    chart = alt.Chart(inline(rows), width=360, height=240)
    dots = alt.OverlayMarkDef(size=16)
    line: alt.Chart = chart.mark_line(point=dots, interpolate="step-before")
    return line.encode(
        x=alt.X(field="recall", title="recall", **shares),
        y=alt.Y(field="precision", title="precision", **shares),
        color=alt.Color(
            field="system",
            legend=legend(shown, values=shown),
            scale=alt.Scale(domain=list(systems)),
            **NOMINAL,
        ),
        strokeDash=alt.StrokeDash(field="system", legend=None, **NOMINAL),
        tooltip=[alt.Tooltip(field=field, **NOMINAL) for field in fields],
    )


def map_figure(table: pl.DataFrame, system: str, *, name: str, shown_in: str) -> Figure | None:
    """Return a world map of the scores of one sentence with every country in it.

    Parameters
    ----------
    table
        Rows of `ombud.probes.swaps.country_probe` with a column ``system``.
    system
        Whose scores.
    name, shown_in
        Of the figure, and of the table with the same numbers.
    """
    rows = table.filter((pl.col("system") == system) & pl.col("score").is_not_null())
    if not rows.height:
        return None
    outlined = {c.numeric for c in countries() if c.outline}
    values = [
        {
            "id": row["numeric"], "name": row["name"], "score": round(row["score"], 4),
            "decision": "no decision" if row["flagged"] is None
            else "flagged" if row["flagged"] else "allowed",
            "longitude": row["longitude"], "latitude": row["latitude"],
        }
        for row in rows.to_dicts()
    ]  # fmt: skip
    small = [value for value in values if value["id"] not in outlined]
    low, high = min(values, key=lambda v: v["score"]), max(values, key=lambda v: v["score"])
    alt = (
        f"World map of the scores that {system} gives to one sentence with each country in it. "
        f"Highest: {high['name']}, {high['score']:.3g}. Lowest: {low['name']}, {low['score']:.3g}."
    )
    spec = specification(_map_chart(values, small), alt)
    text = (
        f"{count(rows.height, 'country')} and territories; those too small to draw are dots. "
        "The scale spans these scores only. Outlines: Natural Earth."
    )
    title = f"One sentence, every country: scores of {shorten(system, 40)}"
    return Figure(name, spec, title, text, alt, shown_in)


def _map_chart(values: Sequence[dict[str, Any]], small: Sequence[dict[str, Any]]) -> alt.LayerChart:
    import altair as alt

    shapes = inline(world_outlines(), format={"type": "topojson", "feature": "countries"})
    scores = alt.LookupData(inline(values), key="id", fields=["name", "score", "decision"])
    below = alt.Legend(title="score", orient="bottom", gradientLength=200)
    viridis = alt.Scale(scheme="viridis", zero=False)
    colour = alt.Color(field="score", legend=below, scale=viridis, **QUANTITY)
    tips = tooltips(name="Country", score="Score", decision="Decision")
    known = alt.condition("isValid(datum.score)", colour, alt.value("#d9dce3"))
    edge: dict[str, Any] = {"stroke": "#ffffff", "strokeWidth": 0.4}
    # Every outline is drawn once: they are most of what a report with this map weighs.
    return layered(
        alt.Chart(shapes)
        .transform_lookup(lookup="id", from_=scores)
        .mark_geoshape(**edge)
        .encode(color=known, tooltip=tips),
        alt.Chart(inline(small))
        .mark_circle(size=26, opacity=1, **edge)
        .encode(
            longitude=alt.Longitude(field="longitude", **QUANTITY),
            latitude=alt.Latitude(field="latitude", **QUANTITY),
            color=colour,
            tooltip=tips,
        ),
        width=620,
        height=270,
        projection=alt.Projection(type="equalEarth"),
    )
