"""Charts as SVG, drawn when the report is built: no script, no runtime, colors from the page's CSS.

Kinds: changes in the summary, bars beside a finding, strips inside the cells of a matrix, and
panels with quantiles. Panels stand side by side where there is room and below each other on a
phone, so text is never scaled down much.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from ombud.report.display import shorten, visible
from ombud.report.model import Level
from ombud.report.numbers import Scale

_WIDTH = 380
"""Of a panel: two fill a page, one a phone."""

_ROW = 23
_TOP = 26
_BOTTOM = 40
_CHARACTER = 6.2
_LONGEST = 20
_LEAST_RATIO = 0.1
_RATIOS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100)
_FINE_RATIOS = (0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.4, 2, 3, 5)


def _text(x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" class="{kind}" text-anchor="{anchor}"'
    return f"<text {place}>{escape(visible(text))}</text>"


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{kind}"/>'


def _svg(parts: Sequence[str], width: float, height: float, label: str) -> str:
    size = f'viewBox="0 0 {width:g} {height:g}" style="max-width:{1.25 * width:g}px"'
    return f'<svg {size} role="img" aria-label="{escape(visible(label))}">{"".join(parts)}</svg>'


@dataclass(frozen=True)
class Axis:
    """A horizontal axis: values to places, linear or logarithmic."""

    low: float
    high: float
    left: float
    right: float
    scale: Scale

    @classmethod
    def over(
        cls, values: Sequence[float], null: float | None, left: float, width: float, scale: Scale
    ) -> Axis:
        """Return an axis that holds all values and the value of no difference."""
        finite = [v for v in (*values, *(() if null is None else (null,))) if math.isfinite(v)]
        if scale.log:
            finite = [max(v, _LEAST_RATIO) for v in finite]
            low, high = min(finite) / 1.1, max(finite) * 1.1
        else:
            room = 0.05 * (max(finite) - min(finite) or 1.0)
            low, high = min(finite) - room, max(finite) + room
        return cls(low, high, left, width, scale)

    def at(self, value: float) -> float:
        """Return the place of a value; what lies beyond stands at the edge."""
        value = min(max(value, self.low), self.high)
        f = math.log if self.scale.log else float
        return self.left + (f(value) - f(self.low)) / (f(self.high) - f(self.low)) * (
            self.right - self.left
        )

    @property
    def ticks(self) -> list[float]:
        """Round values, about three of them."""
        if self.scale.log:
            coarse = [t for t in _RATIOS if self.low <= t <= self.high]
            fine = [t for t in _FINE_RATIOS if self.low <= t <= self.high]
            return coarse if len(coarse) > 2 else fine
        size = (self.high - self.low) / 2.5
        power = 10 ** math.floor(math.log10(size))
        step = min((m * power for m in (1, 2, 2.5, 5, 10)), key=lambda s: abs(s - size))
        first = math.ceil(self.low / step)
        return [i * step for i in range(first, math.floor(self.high / step) + 1)]

    @property
    def labels(self) -> tuple[tuple[float, str], ...]:
        """Places and texts of the ticks."""
        return tuple((self.at(t), self._label(t)) for t in self.ticks)

    def _label(self, tick: float) -> str:
        return f"{tick:g}×" if self.scale.log else _tick(tick * self.scale.factor, self.scale)

    def draw(self, bottom: float, title: str, null: float | None) -> list[str]:
        """Return grid lines, ticks, the title, and the dashed line of no difference."""
        parts = []
        for x, label in self.labels:
            parts.append(_line(x, _TOP, x, bottom, "grid"))
            parts.append(_text(x, bottom + 15, label, "tick", "middle"))
        if null is not None:
            parts.append(_line(self.at(null), _TOP - 2, self.at(null), bottom, "null"))
        parts.append(_text((self.left + self.right) / 2, bottom + 32, title, "tick", "middle"))
        return parts


def _tick(value: float, scale: Scale) -> str:
    text = f"{value:+g}" if scale.signed and value else f"{value:g}"
    return text.replace("-", "\u2212") + scale.suffix


def _gutter(names: Sequence[str]) -> float:
    return 12 + _CHARACTER * min(_LONGEST, max(map(len, names), default=0))


def spread(
    systems: Mapping[str, Mapping[str, tuple[float, ...]]],
    scale: Scale,
    axis: str,
    null: float | None = None,
) -> tuple[str, ...]:
    """Return one panel for each system: median, middle half and middle 90% of each row.

    Parameters
    ----------
    systems
        By system and row, five quantiles: 5, 25, 50, 75 and 95%.
    scale, axis
        As in `forest`; scores of different systems have different axes.
    null
        Where a dashed line marks no difference.
    """
    panels = []
    for system, found in systems.items():
        every = [v for quantiles in found.values() for v in quantiles]
        x = Axis.over(every, null, _gutter(list(found)), _WIDTH - 20, scale)
        bottom = _TOP + _ROW * len(found)
        parts = [_text(0, 14, shorten(system, 44), "panel"), *x.draw(bottom, axis, null)]
        for index, (row, (low, q1, middle, q3, high)) in enumerate(found.items()):
            y = _TOP + _ROW * (index + 0.5)
            half = f"{scale.number(q1)} to {scale.number(q3)}"
            said = f"{row}: median {scale.number(middle)}, middle half {half}"
            parts.append(_text(0, y + 4, shorten(row, _LONGEST), "row"))
            marks = _line(x.at(low), y, x.at(high), y, "ci") + _line(
                x.at(q1), y, x.at(q3), y, "half"
            )
            dot = f'<circle cx="{x.at(middle):.1f}" cy="{y:.1f}" r="4.5" class="dot"/>'
            parts.append(f"<g><title>{escape(visible(said))}</title>{marks}{dot}</g>")
        panels.append(_svg(parts, _WIDTH, bottom + _BOTTOM, f"{axis}: {system}"))
    return tuple(panels)


def strip(
    low: float, value: float, high: float, null: float | None, axis: Axis, *, hint: bool = False
) -> str:
    """Return a dot with its confidence interval, to stretch over the cell of a matrix.

    A `hint` is an interval that excludes no difference before correction only: its dot is ringed
    unless the cell is shaded.

    It has no size of its own: the page gives it the width of its column, the same in each row, so
    that strips read as one chart. The dot is a line without length, which stays round.
    """
    at = [f"{axis.at(v):.1f}" for v in (low, value, high)]
    parts = [] if null is None else [_line(axis.at(null), 0, axis.at(null), 40, "null")]
    parts.append(f'<path class="ci" d="M{at[0]} 20H{at[2]}"/><path class="dot" d="M{at[1]} 20h0"/>')
    ring = f'<path class="hole" d="M{at[1]} 20h0"/>' if hint else ""
    parts.append(ring)
    look = 'class="strip" viewBox="0 0 100 40" preserveAspectRatio="none" aria-hidden="true"'
    return f"<svg {look}>{''.join(parts)}</svg>"


def change(level: float, other: float, span: tuple[float, float] | None, most: float) -> str:
    """Return a change from one level to another with its confidence interval, for the summary.

    A ring is the level that was compared with, a dot the level of the system; `most` is the
    largest value of all lines, so that they share an axis that starts at 0.
    """
    width = 220.0

    def at(value: float) -> float:
        return 8 + (width - 16) * min(max(value / most, 0.0), 1.0)

    parts = [_line(at(0), 4, at(0), 24, "null"), _line(at(0), 14, at(most), 14, "grid")]
    if span is not None:
        low, high = (at(end) for end in span)
        size = max(high - low, 1)
        box = f'x="{low:.1f}" y="8" width="{size:.1f}" height="12" rx="3"'
        parts.append(f'<rect {box} class="range"/>')
    parts.append(_line(at(other), 14, at(level), 14, "move"))
    parts.append(f'<circle cx="{at(other):.1f}" cy="14" r="4.5" class="from"/>')
    parts.append(f'<circle cx="{at(level):.1f}" cy="14" r="5" class="to"/>')
    return (
        f'<svg class="change" viewBox="0 0 {width:g} 28" aria-hidden="true">{"".join(parts)}</svg>'
    )


def bars(levels: Sequence[Level], most: float, span: tuple[float, float] | None = None) -> str:
    """Return two bars with their names and values, for a finding; `most` is the longest bar.

    `span` is the confidence interval of the difference, drawn as a whisker on the first bar.
    """
    parts = []
    width, bar = 250.0, 165.0
    for index, level in enumerate(levels):
        y = 44 * index
        parts.append(_text(0, y + 12, shorten(level.name, 36), "row"))
        size = max(2.0, bar * level.value / most)
        kind = "level" if index == 0 else "other"
        parts.append(
            f'<rect x="0" y="{y + 18}" width="{size:.1f}" height="15" rx="2.5" class="{kind}"/>'
        )
        end = size
        if index == 0 and span is not None:
            low, high = (min(max(bar * v / most, 0.0), bar) for v in span)
            parts.append(_line(low, y + 25.5, high, y + 25.5, "whisker"))
            end = max(size, high)
        parts.append(_text(end + 7, y + 30, level.text, f"{kind}-text"))
    label = "; ".join(f"{level.name}: {level.text}" for level in levels)
    return _svg(parts, width, 80, label)


def timeline(
    title: str, points: Sequence[tuple[str, float, float | None, float | None, bool]]
) -> str:
    """Return one number over several results: dots, limits as bars, alarms filled.

    Parameters
    ----------
    title
        What the number is.
    points
        Name of the result, value, lower and upper limit, and whether it alarms.
    """
    height, left, right, top = 170.0, 58.0, _WIDTH - 14.0, 34.0
    bottom = height - 34
    every = [v for _, value, low, high, _ in points for v in (value, low, high) if v is not None]
    room = 0.08 * (max(every) - min(every) or abs(max(every)) or 1.0)
    lowest, highest = min(every) - room, max(every) + room

    def y(value: float) -> float:
        return bottom - (value - lowest) / (highest - lowest) * (bottom - top)

    step = (right - left) / max(len(points) - 1, 1)
    parts = [_text(0, 14, shorten(title, 52), "panel")]
    for value in (min(every), max(every)):
        parts.append(_line(left, y(value), right, y(value), "grid"))
        parts.append(_text(left - 6, y(value) + 4, f"{value:.3g}", "tick", "end"))
    for place, (name, value, low, high, alarm) in enumerate(points):
        x = left + step * place
        if low is not None and high is not None:
            parts.append(_line(x, y(low), x, y(high), "ci"))
        if place:
            parts.append(_line(x - step, y(points[place - 1][1]), x, y(value), "null"))
        said = f"{name}: {value:.4g}{', beyond its limits' if alarm else ''}"
        dot = f'<circle cx="{x:.1f}" cy="{y(value):.1f}" r="4.5" class="dot"/>'
        kind = "increase" if alarm else "within"
        parts.append(f'<g class="{kind}"><title>{escape(visible(said))}</title>{dot}</g>')
    parts.append(_text(left, height - 12, points[0][0], "tick", "start"))
    parts.append(_text(right, height - 12, points[-1][0], "tick", "end"))
    return _svg(parts, _WIDTH, height, title)
