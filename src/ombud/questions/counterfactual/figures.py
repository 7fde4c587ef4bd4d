"""Pictures of a counterfactual audit."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from ombud.report.blocks import Figure
from ombud.report.charts import NAME_LENGTH, interval_chart
from ombud.report.display import count, shorten
from ombud.report.drawing import (
    NOMINAL,
    QUANTITY,
    by_series,
    inline,
    layered,
    legend,
    page,
    panel_title,
    side_by_side,
    specification,
    tooltips,
)
from ombud.report.figures import few_systems
from ombud.report.format import estimate_text
from ombud.stats.estimate import Estimate

if TYPE_CHECKING:
    import altair as alt


_MOST_PANELS = 3
_PANELS_WIDTH = 430
_DECILES_SHOWN = (1, 3, 5, 7, 9, 10)

_BOXES = (
    ("own", "The person's own history", 0.0, 3.0),
    ("others", "Other people's data", 0.0, 2.0),
    ("algorithm", "The algorithm", 0.0, 1.0),
    ("chance", "Chance", 0.0, 0.0),
    ("list", "What is shown", 2.8, 1.5),
)
_MARKS = ("changed in this audit", "left as it is", "what is looked at")
_CHANGED_BY = {
    "reach": "own",
    "escape": "own",
    "drift-in": "own",
    "attainable": "own",
    "stability": "others",
}


def dependency_figure(parts: Collection[str], *, name: str, noise: bool) -> Figure:
    """Return what a recommendation depends on, with what the audit changed marked.

    Parameters
    ----------
    parts
        What was asked: ``reach``, ``escape``, ``drift-in``, ``stability``.
    name
        Of the figure.
    noise
        Whether models were trained again on unchanged data.
    """
    changed = {_CHANGED_BY[part] for part in parts if part in _CHANGED_BY}
    if noise:
        changed.add("chance")
    boxes = []
    for key, words, x, y in _BOXES:
        mark = _MARKS[0 if key in changed else 2 if key == "list" else 1]
        text = f"{words} (changed)" if key in changed else words
        wide = 1.1 if key == "list" else 2.1
        boxes.append(
            {"x": x, "x2": x + wide, "y": y, "y2": y + 0.7, "mid": x + wide / 2, "line": y + 0.35}
            | {"words": text, "mark": mark, "width": 3 if key in changed else 1}
        )
    edges = [
        {"x": 2.1, "y": box["line"], "x2": 2.8, "y2": 1.85, "width": box["width"]}
        for box in boxes[:-1]
    ]
    said = [words for key, words, _, _ in _BOXES if key in changed]
    alt = (
        "Four boxes lead to what is shown: the person's own history, other people's data, the "
        f"algorithm and chance. Changed in this audit: {', '.join(said).lower() or 'none'}."
    )
    spec = specification(_dependency_chart(boxes, edges), alt)
    caption = "Every number of this audit says what is shown after the thick parts were changed."
    return Figure(name, spec, "What a recommendation depends on", caption, alt)


def _dependency_chart(
    boxes: Sequence[dict[str, Any]], edges: Sequence[dict[str, Any]]
) -> alt.LayerChart:
    import altair as alt

    across = {"axis": None, "scale": alt.Scale(domain=[-0.02, 3.92]), **QUANTITY}
    upright = {"axis": None, "scale": alt.Scale(domain=[-0.15, 3.85]), **QUANTITY}
    area = {
        "x": alt.X(field="x", **across),
        "x2": alt.X2(field="x2"),
        "y": alt.Y(field="y", **upright),
        "y2": alt.Y2(field="y2"),
        "strokeWidth": alt.StrokeWidth(field="width", legend=None, scale=None, **QUANTITY),
    }
    marks = {"field": "mark", "scale": alt.Scale(domain=list(_MARKS)), **NOMINAL}
    words = {
        "x": alt.X(field="mid", **across),
        "y": alt.Y(field="line", **upright),
        "text": alt.Text(field="words", **NOMINAL),
    }
    layers = [
        alt.Chart(inline(edges)).mark_rule(opacity=0.6).encode(**area),
        alt.Chart(inline(boxes))
        .mark_rect(fillOpacity=0.18, cornerRadius=4)
        .encode(
            color=alt.Color(legend=legend(), **marks),
            stroke=alt.Stroke(legend=None, **marks),
            **area,
        ),
        alt.Chart(inline(boxes)).mark_text(fontSize=11).encode(**words),
    ]
    return page(layers, 140)


def decile_figure(estimates: Sequence[Estimate], *, name: str, table: str) -> Figure | None:
    """Return how available items of each popularity are, one mark for each system."""
    known, said = few_systems([e for e in estimates if e.details.get("decile") in _DECILES_SHOWN])
    if not any(e.value is not None for e in known):
        return None
    order = [_decile(d) for d in sorted({int(e.details["decile"]) for e in known})]
    rows = [(e, _decile(int(e.details["decile"])), e.system) for e in known]
    first = known[0].details
    edits = count(int(first["budget"]), "edit")
    title = f"Share of items that {edits} can bring into the first {first['k']}"
    chart = interval_chart(rows, order, x_title="share of pairs of a person and an item")
    caption = (
        f"Items by popularity, tenths of the catalogue; {known[0].level:.0%} intervals over people "
        f"and items. Proved by running the model again, model {first['policy']}.{said}"
    )
    alt = f"{title}, by popularity of the items and by system."
    return Figure(name, specification(chart, alt), title, caption, alt, table)


def _decile(number: int) -> str:
    ends = {1: " (least popular)", 10: " (most popular)"}
    return f"tenth {number}{ends.get(number, '')}"


def curves_figure(
    estimates: Sequence[Estimate], *, name: str, table: str, title: str
) -> Figure | None:
    """Return the share of people who are through by so many edits, labels side by side."""
    through = [e for e in estimates if e.value is not None and "edits" in e.details]
    known, said = few_systems(through)
    if not known:
        return None
    labels = list(dict.fromkeys(e.label for e in known))
    shown = labels[:_MOST_PANELS]
    systems = [shorten(s, NAME_LENGTH) for s in dict.fromkeys(e.system for e in known)]
    panels = [
        _panel([e for e in known if e.label == label], label, systems, len(shown))
        for label in shown
    ]
    alt = f"{title}, for {', '.join(shown)}, by number of edits and system."
    spec = specification(side_by_side(panels), alt)
    rest = len(labels) - len(shown)
    more = f" {count(rest, 'label')} {'is' if rest == 1 else 'are'} not shown." if rest else ""
    caption = (
        f"Share of those at risk, model frozen; {known[0].level:.0%} intervals. People who need "
        f"more edits than were permitted stay in the denominator.{said}{more}"
    )
    return Figure(name, spec, title, caption, alt, table)


def _panel(
    estimates: Sequence[Estimate], label: str, systems: Sequence[str], panels: int
) -> alt.LayerChart:
    import altair as alt

    values = []
    for e in estimates:
        low, high = e.interval or (e.value, e.value)
        values.append(
            {
                "edits": int(e.details["edits"]),
                "system": shorten(e.system, NAME_LENGTH),
                "share": e.value,
                "low": low,
                "high": high,
                "text": estimate_text(e),
            }  # fmt: skip
        )
    colour, shape = by_series("system", systems)
    sideways = {
        "x": alt.X(field="edits", type="ordinal", title="edits", axis=alt.Axis(labelAngle=0)),
        "xOffset": alt.XOffset(field="system", sort=list(systems), **NOMINAL),
    }
    upright = {"title": "share", "axis": alt.Axis(format="%", tickCount=5), **QUANTITY}
    upright["scale"] = alt.Scale(domain=[0, 1])
    return layered(
        alt.Chart()
        .mark_rule(strokeWidth=1.5, opacity=0.7)
        .encode(y=alt.Y(field="low", **upright), y2=alt.Y2(field="high"), **sideways, **colour),
        alt.Chart()
        .mark_point(filled=True, size=45, opacity=1)
        .encode(
            y=alt.Y(field="share", **upright),
            tooltip=tooltips(system="System", text="Share"),
            **sideways,
            **shape,
        ),
        data=inline(values),
        width=_PANELS_WIDTH // panels - 45,
        height=170,
        title=panel_title(shorten(label, 30)),
    )


def stability_figure(
    largest: Sequence[Estimate],
    typical: Sequence[Estimate],
    noise: Sequence[Estimate],
    *,
    name: str,
    table: str,
) -> Figure | None:
    """Return how far other people's data move lists, beside what training again does."""
    if not any(e.value is not None for e in largest):
        return None
    words = {"seed": "noise: another seed", "pass": "noise: more passes", "repeat": "noise"}
    rows = [(e, e.system, "the most that was found") for e in largest]
    rows += [(e, e.system, "a random one") for e in typical]
    rows += [(e, e.system, words[str(e.details["noise"])]) for e in noise]
    order = list(dict.fromkeys(e.system for e in largest))
    about = largest[0].details
    title = f"How much of the first {about['n']} changes with other people's data"
    chart = interval_chart(rows, order, x_title="1 - Jaccard: 0 same list, 1 no item in common")
    caption = (
        f"{count(int(about['budget']), 'other user')} {about['treatment']}, model retrained; "
        f"{largest[0].level:.0%} intervals over users. A system without noise marks trains to the "
        "same model every time."
    )
    alt = f"{title}, by system: the most found, random treatments, and the noise floor."
    return Figure(name, specification(chart, alt), title, caption, alt, table)
