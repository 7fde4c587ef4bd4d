"""Pictures of a counterfactual audit, as Vega-Lite without colours: the theme brings them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from ombud.report.blocks import Figure
from ombud.report.charts import NAME_LENGTH, interval_chart
from ombud.report.display import count, shorten
from ombud.report.format import estimate_text
from ombud.report.themes import MOST_COLOURS, SHAPES
from ombud.stats.estimate import Estimate

__all__ = ["curves_figure", "decile_figure", "dependency_figure", "stability_figure"]

_SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
_WIDTH = 560
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
        mark = "changed in this audit" if key in changed else "left as it is"
        if key == "list":
            mark = "what is looked at"
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
    plain = {"axis": None, "scale": {"domain": [-0.02, 3.92]}, "type": "quantitative"}
    upright = {"axis": None, "scale": {"domain": [-0.15, 3.85]}, "type": "quantitative"}
    widths = {"field": "width", "type": "quantitative", "legend": None, "scale": None}
    marks = ["changed in this audit", "left as it is", "what is looked at"]
    legend = {"title": None, "orient": "top", "direction": "horizontal"}
    said = [words for key, words, _, _ in _BOXES if key in changed]
    alt = (
        "Four boxes lead to what is shown: the person's own history, other people's data, the "
        f"algorithm and chance. Changed in this audit: {', '.join(said).lower() or 'none'}."
    )
    spec: dict[str, Any] = {
        "$schema": _SCHEMA,
        "width": _WIDTH,
        "height": 190,
        "autosize": {"type": "fit-x", "contains": "padding"},
        "description": alt,
        "layer": [
            {
                "data": {"values": edges},
                "mark": {"type": "rule", "opacity": 0.6},
                "encoding": {
                    "x": {"field": "x", **plain},
                    "x2": {"field": "x2"},
                    "y": {"field": "y", **upright},
                    "y2": {"field": "y2"},
                    "strokeWidth": widths,
                },
            },
            {
                "data": {"values": boxes},
                "mark": {"type": "rect", "fillOpacity": 0.18, "cornerRadius": 4},
                "encoding": {
                    "x": {"field": "x", **plain},
                    "x2": {"field": "x2"},
                    "y": {"field": "y", **upright},
                    "y2": {"field": "y2"},
                    "color": {
                        "field": "mark", "type": "nominal", "legend": legend,
                        "scale": {"domain": marks},
                    },
                    "stroke": {
                        "field": "mark", "type": "nominal", "legend": None,
                        "scale": {"domain": marks},
                    },
                    "strokeWidth": widths,
                },
            },
            {
                "data": {"values": boxes},
                "mark": {"type": "text", "fontSize": 11},
                "encoding": {
                    "x": {"field": "mid", **plain},
                    "y": {"field": "line", **upright},
                    "text": {"field": "words", "type": "nominal"},
                },
            },
        ],
    }  # fmt: skip
    caption = "Every number of this audit says what is shown after the thick parts were changed."
    return Figure(name, spec, "What a recommendation depends on", caption, alt)


def _few(estimates: Sequence[Estimate]) -> tuple[list[Estimate], str]:
    """Return the estimates of as many systems as can be told apart, and what is not shown."""
    systems = list(dict.fromkeys(e.system for e in estimates))
    kept = set(systems[:MOST_COLOURS])
    rest = len(systems) - len(kept)
    said = f" {count(rest, 'system')} {'is' if rest == 1 else 'are'} not shown." if rest else ""
    return [e for e in estimates if e.system in kept], said


def decile_figure(estimates: Sequence[Estimate], *, name: str, table: str) -> Figure | None:
    """Return how available items of each popularity are, one mark for each system."""
    known, said = _few([e for e in estimates if e.details.get("decile") in _DECILES_SHOWN])
    if not any(e.value is not None for e in known):
        return None
    order = [_decile(d) for d in sorted({int(e.details["decile"]) for e in known})]
    rows = [(e, _decile(int(e.details["decile"])), e.system) for e in known]
    first = known[0].details
    edits = count(int(first["budget"]), "edit")
    title = f"Share of items that {edits} can bring into the first {first['k']}"
    spec = interval_chart(rows, order, x_title="share of pairs of a person and an item")
    caption = (
        f"Items by popularity, tenths of the catalogue; {known[0].level:.0%} intervals over people "
        f"and items. Proved by running the model again, model {first['policy']}.{said}"
    )
    alt = f"{title}, by popularity of the items and by system."
    return Figure(name, spec | {"description": alt}, title, caption, alt, table)


def _decile(number: int) -> str:
    ends = {1: " (least popular)", 10: " (most popular)"}
    return f"tenth {number}{ends.get(number, '')}"


def curves_figure(
    estimates: Sequence[Estimate], *, name: str, table: str, title: str
) -> Figure | None:
    """Return the share of people who are through by so many edits, labels side by side."""
    known, said = _few([e for e in estimates if e.value is not None and "edits" in e.details])
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
    spec = {
        "$schema": _SCHEMA,
        "hconcat": panels,
        "description": alt,
        "resolve": {"scale": {"color": "shared", "shape": "shared"}},
    }
    rest = len(labels) - len(shown)
    more = f" {count(rest, 'label')} {'is' if rest == 1 else 'are'} not shown." if rest else ""
    caption = (
        f"Share of those at risk, model frozen; {known[0].level:.0%} intervals. People who need "
        f"more edits than were permitted stay in the denominator.{said}{more}"
    )
    return Figure(name, spec, title, caption, alt, table)


def _panel(
    estimates: Sequence[Estimate], label: str, systems: Sequence[str], panels: int
) -> dict[str, Any]:
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
    columns = max(1, 50 // (max(map(len, systems)) + 4))
    legend = {"title": None, "orient": "top", "direction": "horizontal", "columns": columns}
    by = {"field": "system", "type": "nominal", "legend": legend}
    colour = {**by, "scale": {"domain": list(systems)}}
    shape = {**by, "scale": {"domain": list(systems), "range": list(SHAPES[: len(systems)])}}
    upright = {
        "type": "quantitative", "scale": {"domain": [0, 1]}, "title": "share",
        "axis": {"format": "%", "tickCount": 5},
    }  # fmt: skip
    return {
        "width": _PANELS_WIDTH // panels - 45,
        "height": 200,
        "title": {"text": shorten(label, 30), "fontSize": 12},
        "data": {"values": values},
        "encoding": {
            "x": {
                "field": "edits", "type": "ordinal", "title": "edits", "axis": {"labelAngle": 0},
            },
            "xOffset": {"field": "system", "type": "nominal", "sort": list(systems)},
        },
        "layer": [
            {
                "mark": {"type": "rule", "strokeWidth": 1.5, "opacity": 0.7},
                "encoding": {
                    "y": {"field": "low", **upright}, "y2": {"field": "high"}, "color": colour,
                },
            },
            {
                "mark": {"type": "point", "filled": True, "size": 45, "opacity": 1},
                "encoding": {
                    "y": {"field": "share", **upright}, "color": colour, "shape": shape,
                    "tooltip": [
                        {"field": "system", "type": "nominal", "title": "System"},
                        {"field": "text", "type": "nominal", "title": "Share"},
                    ],
                },
            },
        ],
    }  # fmt: skip


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
    spec = interval_chart(rows, order, x_title="1 - Jaccard: 0 same list, 1 no item in common")
    caption = (
        f"{count(int(about['budget']), 'other user')} {about['treatment']}, model retrained; "
        f"{largest[0].level:.0%} intervals over users. A system without noise marks trains to the "
        "same model every time."
    )
    alt = f"{title}, by system: the most found, random treatments, and the noise floor."
    return Figure(name, spec | {"description": alt}, title, caption, alt, table)
