"""Figures as files: SVG and PNG from the same specification as the screen's."""

from __future__ import annotations

from typing import Any

from ombud.report.themes import PAPER

VEGALITE = "6.1"
"""The version of Vega-Lite that figures are written for."""


def to_svg(spec: dict[str, Any]) -> str:
    """Return a figure as SVG, on white."""
    import vl_convert

    return str(
        vl_convert.vegalite_to_svg(spec, vl_version=VEGALITE, config=PAPER, allowed_base_urls=[])
    )


def to_png(spec: dict[str, Any], *, scale: float = 2.0) -> bytes:
    """Return a figure as PNG, on white."""
    import vl_convert

    return bytes(
        vl_convert.vegalite_to_png(
            spec,
            vl_version=VEGALITE,
            config=PAPER,
            scale=scale,
            allowed_base_urls=[],
        )
    )
