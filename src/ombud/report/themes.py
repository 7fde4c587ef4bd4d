"""How figures look: two themes over the same specification, readable with colour blindness."""

from __future__ import annotations

from typing import Any

SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right")
"""Systems differ by shape as well as by colour."""

MOST_COLOURS = len(SHAPES)
"""More systems than this are told apart by words only."""

_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Liberation Sans', Arial, sans-serif"


def _theme(text: str, quiet: str, grid: str, accent: str, colours: list[str]) -> dict[str, Any]:
    return {
        "background": "transparent",
        "font": _FONT,
        "aria": False,
        "padding": 4,
        "view": {"stroke": None},
        "range": {"category": colours},
        "point": {"color": colours[0]},
        "rule": {"color": colours[0]},
        "axis": {
            "labelColor": text,
            "titleColor": text,
            "labelFontSize": 12,
            "titleFontSize": 12,
            "titleFontWeight": "normal",
            "labelOverlap": "greedy",
            "labelSeparation": 6,
            "gridColor": grid,
            "domainColor": quiet,
            "tickColor": quiet,
        },
        "axisY": {"labelLimit": 260, "labelPadding": 8},
        "legend": {
            "labelColor": text,
            "titleColor": text,
            "labelFontSize": 12,
            "titleFontSize": 12,
            "labelLimit": 240,
            "symbolSize": 90,
            "symbolStrokeWidth": 0,
        },
        "text": {"color": quiet, "fontSize": 11, "font": _FONT},
        "style": {"null-line": {"color": accent, "strokeDash": [5, 3], "strokeWidth": 1.5}},
    }


# Okabe and Ito's palette, darkened or lightened until each colour has a contrast of at least 3:1
# against the page.
LIGHT: dict[str, Any] = _theme(
    "#1f2430",
    "#596070",
    "#e4e7ec",
    "#1f2430",
    ["#0072b2", "#c04a00", "#007a5a", "#a3407a", "#7a6a00", "#2a8fc4", "#333333"],
)
"""For white paper."""

DARK: dict[str, Any] = _theme(
    "#e6e9ef",
    "#a4acba",
    "#333a46",
    "#e6e9ef",
    ["#56b4e9", "#f08a4b", "#2fc39b", "#e08fc0", "#e2d34a", "#9ec9f5", "#cccccc"],
)
"""For a dark screen."""

# A reader's font may be wider than the one a picture was measured with: hence the wide margin.
PAPER: dict[str, Any] = LIGHT | {
    "background": "white",
    "padding": {"left": 40, "right": 20, "top": 6, "bottom": 6},
    "legend": LIGHT["legend"] | {"columnPadding": 30},
}
"""For pictures that stand alone."""
