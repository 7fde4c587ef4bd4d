"""Charts as SVG, drawn when the report is built: no script, no runtime, colors from the page's CSS.

Kinds: changes in the summary, bars beside a finding, strips inside the cells of a matrix, panels
with quantiles, lines and dots on two axes, stacked shares, a map. Series are classes of the page
(``s0`` to ``s7``), so charts follow its light and dark look; each kind of mark has its own dash or
a title, so no reader needs the colors. Panels stand side by side where there is room and below each
other on a phone, so text is never scaled down much.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from html import escape
from textwrap import wrap
from typing import TypeAlias

from ombud.report.display import shorten, visible
from ombud.report.model import Level
from ombud.report.numbers import Scale
from ombud.text.geography import countries, world_outlines

_WIDTH = 380.0
"""Of a panel: two fill a page, one a phone."""

_ROW = 23
_TOP = 26
_BOTTOM = 40
_CHARACTER = 6.2
_LONGEST = 22
_LEAST_RATIO = 0.1
_RATIOS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100)
_FINE_RATIOS = (0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.4, 2, 3, 5)


def _text(x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" class="{kind}" text-anchor="{anchor}"'
    return f"<text {place}>{escape(visible(text))}</text>"


def _rule(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{kind}"/>'


def _svg(parts: Sequence[str], width: float, height: float, label: str) -> str:
    size = f'viewBox="0 0 {width:g} {height:g}" style="max-width:{1.25 * width:g}px"'
    return f'<svg {size} role="img" aria-label="{escape(visible(label))}">{"".join(parts)}</svg>'


Ends: TypeAlias = tuple[float, float]
"""The lowest and the highest value of an axis."""


class Panel(str):
    """An SVG that can be drawn again: under another title, and on the axes of other panels.

    A study shows the panels of several data sets beside each other, on shared axes.
    """

    heading: str
    ends: tuple[Ends, ...]
    draw: Callable[[str, tuple[Ends, ...]], str]

    @classmethod
    def of(
        cls, title: str, ends: tuple[Ends, ...], draw: Callable[[str, tuple[Ends, ...]], str]
    ) -> Panel:
        """Return a panel, drawn on axes with these ends."""
        panel = cls(draw(title, ends))
        panel.heading, panel.ends, panel.draw = title, ends, draw
        return panel


def side_by_side(panels: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Return the panels of several data sets, in turn, each pair of the same title on shared axes.

    What cannot be drawn again, such as a map, stays as it is.
    """
    shared: dict[str, list[Panel]] = {}
    for one in (p for some in panels.values() for p in some if isinstance(p, Panel)):
        shared.setdefault(one.heading, []).append(one)
    longest = max(map(len, panels.values()), default=0)
    drawn: list[str] = []
    for place in range(longest):
        for name, some in panels.items():
            panel = some[place] if place < len(some) else None
            if not isinstance(panel, Panel):
                drawn += [] if panel is None else [panel]
                continue
            pairs = zip(*(one.ends for one in shared[panel.heading]), strict=True)
            ends = tuple(
                (min(low), max(high)) for low, high in (zip(*p, strict=True) for p in pairs)
            )
            drawn.append(panel.draw(": ".join(filter(None, (name, panel.heading))), ends))
    return tuple(drawn)


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
            parts.append(_rule(x, _TOP, x, bottom, "grid"))
            parts.append(_text(x, bottom + 15, label, "tick", "middle"))
        if null is not None:
            parts.append(_rule(self.at(null), _TOP - 2, self.at(null), bottom, "null"))
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

    `systems` has, by system and row, five quantiles: 5, 25, 50, 75 and 95%. `scale` and `axis` are
    as in `forest`; scores of different systems have different axes. At `null` a dashed line marks
    no difference.
    """
    panels = []
    for system, found in systems.items():
        every = [v for quantiles in found.values() for v in quantiles]
        x = Axis.over(every, null, _gutter(list(found)), _WIDTH - 20, scale)
        draw = partial(_quantiles, found=found, x=x, axis=axis, null=null)
        panels.append(Panel.of(system, ((x.low, x.high),), draw))
    return tuple(panels)


def _quantiles(
    title: str,
    ends: tuple[Ends, ...],
    *,
    found: Mapping[str, tuple[float, ...]],
    x: Axis,
    axis: str,
    null: float | None,
) -> str:
    x = replace(x, low=ends[0][0], high=ends[0][1])
    scale, bottom = x.scale, _TOP + _ROW * len(found)
    parts = [_text(0, 14, shorten(title, 44), "panel"), *x.draw(bottom, axis, null)]
    for index, (row, (low, q1, middle, q3, high)) in enumerate(found.items()):
        y = _TOP + _ROW * (index + 0.5)
        half = f"{scale.number(q1)} to {scale.number(q3)}"
        said = f"{row}: median {scale.number(middle)}, middle half {half}"
        parts.append(_text(0, y + 4, shorten(row, _LONGEST), "row"))
        marks = _rule(x.at(low), y, x.at(high), y, "ci") + _rule(x.at(q1), y, x.at(q3), y, "half")
        dot = f'<circle cx="{x.at(middle):.1f}" cy="{y:.1f}" r="4.5" class="dot"/>'
        parts.append(f"<g><title>{escape(visible(said))}</title>{marks}{dot}</g>")
    return _svg(parts, _WIDTH, bottom + _BOTTOM, f"{axis}: {title}")


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
    parts = [] if null is None else [_rule(axis.at(null), 0, axis.at(null), 40, "null")]
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

    parts = [_rule(at(0), 4, at(0), 24, "null"), _rule(at(0), 14, at(most), 14, "grid")]
    if span is not None:
        low, high = (at(end) for end in span)
        size = max(high - low, 1)
        box = f'x="{low:.1f}" y="8" width="{size:.1f}" height="12" rx="3"'
        parts.append(f'<rect {box} class="range"/>')
    parts.append(_rule(at(other), 14, at(level), 14, "move"))
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
    width, bar, y = 250.0, 165.0, -44
    for index, level in enumerate(levels):
        y += 30
        for line in wrap(shorten(level.name, 68), 36) or [""]:
            y += 14
            parts.append(_text(0, y + 12, line, "row"))
        size = max(2.0, bar * level.value / most)
        kind = "level" if index == 0 else "other"
        parts.append(
            f'<rect x="0" y="{y + 18}" width="{size:.1f}" height="15" rx="2.5" class="{kind}"/>'
        )
        end = size
        if index == 0 and span is not None:
            low, high = (min(max(bar * v / most, 0.0), bar) for v in span)
            parts.append(_rule(low, y + 25.5, high, y + 25.5, "whisker"))
            end = max(size, high)
        parts.append(_text(end + 7, y + 30, level.text, f"{kind}-text"))
    label = "; ".join(f"{level.name}: {level.text}" for level in levels)
    return _svg(parts, width, y + 36, label)


def timeline(
    title: str, points: Sequence[tuple[str, float, float | None, float | None, bool]]
) -> str:
    """Return one number over several results: dots, limits as bars, alarms filled.

    A point has the name of the result, value, lower and upper limit, and whether it alarms.
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
        parts.append(_rule(left, y(value), right, y(value), "grid"))
        parts.append(_text(left - 6, y(value) + 4, f"{value:.3g}", "tick", "end"))
    for place, (name, value, low, high, alarm) in enumerate(points):
        x = left + step * place
        if low is not None and high is not None:
            parts.append(_rule(x, y(low), x, y(high), "ci"))
        if place:
            parts.append(_rule(x - step, y(points[place - 1][1]), x, y(value), "null"))
        said = f"{name}: {value:.4g}{', beyond its limits' if alarm else ''}"
        dot = f'<circle cx="{x:.1f}" cy="{y(value):.1f}" r="4.5" class="dot"/>'
        kind = "increase" if alarm else "within"
        parts.append(f'<g class="{kind}"><title>{escape(visible(said))}</title>{dot}</g>')
    parts.append(_text(left, height - 12, points[0][0], "tick", "start"))
    parts.append(_text(right, height - 12, points[-1][0], "tick", "end"))
    return _svg(parts, _WIDTH, height, title)


# -- Series on two axes.

Place: TypeAlias = Callable[[float, float], tuple[float, float]]
"""Where a pair of values is on a chart."""

MOST = 8
"""So many series have a color of their own."""

_HEIGHT = 250.0
_LEFT, _RIGHT = 46.0, 14.0
_PER_LINE = 2


@dataclass(frozen=True)
class Line:
    """A line of one series: points, and a band around it as (x, low, high).

    With `cloud` the points are dots without a line, many in little space.
    """

    name: str
    points: Sequence[tuple[float, float]]
    band: Sequence[tuple[float, float, float]] = ()
    steps: bool = False
    cloud: bool = False


@dataclass(frozen=True)
class Dot:
    """A point of one series, with its intervals and what is said of it."""

    name: str
    x: float
    y: float
    x_span: tuple[float, float] | None = None
    y_span: tuple[float, float] | None = None
    said: str = ""
    radius: float = 4.0


def plane(
    title: str,
    marks: Sequence[Line | Dot],
    *,
    x: tuple[str, float, float],
    y: tuple[str, float, float],
    said: str = "",
    equal: bool = False,
    nulls: tuple[float | None, float | None] = (None, None),
) -> Panel:
    """Return lines and dots on two axes, with a legend where there are several series.

    The title stands above; it is empty where the figure has one. Series of one name share a color.
    `x` and `y` are title and range of each axis; what lies beyond stands at the edge. `said` is
    what a screen reader says; default, the title. With `equal` the diagonal is drawn, on which both
    are the same; at `nulls` dashed lines cross the plane, for no difference.
    """

    def draw(named: str, ends: tuple[Ends, ...]) -> str:
        read = named if named != title else said
        return _plane(named, marks, (x[0], *ends[0]), (y[0], *ends[1]), read, equal, nulls)

    return Panel.of(title, ((x[1], x[2]), (y[1], y[2])), draw)


def _plane(
    title: str,
    marks: Sequence[Line | Dot],
    x: tuple[str, float, float],
    y: tuple[str, float, float],
    said: str,
    equal: bool,
    nulls: tuple[float | None, float | None],
) -> str:
    names = list(dict.fromkeys(mark.name for mark in marks))[:MOST]
    shown = [mark for mark in marks if mark.name in names]
    legend = names if len(names) > 1 else []
    top = (24.0 if title else 8.0) + 17 * math.ceil(len(legend) / _PER_LINE)
    bottom = top + _HEIGHT - 64

    def at(px: float, py: float) -> tuple[float, float]:
        right = _WIDTH - _RIGHT
        u = min(max((px - x[1]) / ((x[2] - x[1]) or 1.0), 0.0), 1.0)
        v = min(max((py - y[1]) / ((y[2] - y[1]) or 1.0), 0.0), 1.0)
        return _LEFT + u * (right - _LEFT), bottom - v * (bottom - top)

    parts = [_text(0, 14, shorten(title, 52), "panel"), *_legend(legend, 32 if title else 14)]
    parts += _axes(x, y, at, top, bottom)
    if equal:
        (a, b), (c, d) = at(x[1], x[1]), at(x[2], x[2])
        parts.append(_rule(a, b, c, d, "null"))
    if nulls[0] is not None:
        parts.append(_rule(*at(nulls[0], y[1]), *at(nulls[0], y[2]), "null"))
    if nulls[1] is not None:
        parts.append(_rule(*at(x[1], nulls[1]), *at(x[2], nulls[1]), "null"))
    for mark in shown:
        place = names.index(mark.name)
        parts += _line(mark, place, at) if isinstance(mark, Line) else _dot(mark, place, at)
    return _svg(parts, _WIDTH, bottom + _BOTTOM, said or title)


def lanes(title: str, rows: Mapping[str, Sequence[Dot]], x: tuple[str, float, float]) -> str:
    """Return dots with intervals in a lane for each row, those of a row below each other.

    The title is what a screen reader says. Dots are by the name of their row; only their places on
    the horizontal axis count. `x` is title and range of the axis.
    """
    names = list(dict.fromkeys(dot.name for dots in rows.values() for dot in dots))[:MOST]
    left, step = 16 + 6.4 * min(_LONGEST, max(map(len, rows))), 11.0
    top = 10.0 + 17 * math.ceil(len(names) / _PER_LINE)
    y, parts = top, _legend(names, 12)
    lanes: list[str] = []

    def at(px: float, py: float) -> tuple[float, float]:
        share = min(max((px - x[1]) / ((x[2] - x[1]) or 1.0), 0.0), 1.0)
        return left + share * (_WIDTH - _RIGHT - left), py

    for row, dots in rows.items():
        shown = [dot for dot in dots if dot.name in names]
        high = step * (len(shown) + 1)
        lanes.append(_text(0, y + high / 2 + 4, shorten(row, _LONGEST), "row"))
        for place, dot in enumerate(shown, 1):
            lanes += _dot(replace(dot, y=y + step * place), names.index(dot.name), at)
        y += high
        lanes.append(_rule(0, y, _WIDTH - _RIGHT, y, "grid"))
    for value in _ticks(x[1], x[2]):
        px, _ = at(value, 0.0)
        parts += [_rule(px, top, px, y, "grid"), _text(px, y + 15, f"{value:g}", "tick", "middle")]
    middle = (left + _WIDTH - _RIGHT) / 2
    parts.append(_text(middle, y + 32, shorten(x[0], 60), "tick", "middle"))
    return _svg([*parts, *lanes], _WIDTH, y + _BOTTOM, title)


def stacked(
    title: str, columns: Sequence[tuple[float, Mapping[str, float]]], x: str, y: str
) -> Panel:
    """Return shares on top of each other, one column for each place on the axis.

    The title is for screen readers. A column has its place in percent, and shares by name; they
    add up to 1. `x` and `y` are titles of the axes.
    """

    def draw(named: str, ends: tuple[Ends, ...]) -> str:
        del ends  # all such panels go from 0 to 100%
        return _stacked(named, columns, x, y, shown=named != title)

    return Panel.of(title, (), draw)


def _stacked(
    title: str, columns: Sequence[tuple[float, Mapping[str, float]]], x: str, y: str, shown: bool
) -> str:
    names = list(dict.fromkeys(name for _, shares in columns for name in shares))[:MOST]
    room = 18.0 if shown else 0.0
    top = 8.0 + room + 17 * math.ceil(len(names) / _PER_LINE)
    bottom = top + _HEIGHT - 64
    width = (_WIDTH - _LEFT - _RIGHT) / max(len(columns), 1)

    def at(px: float, py: float) -> tuple[float, float]:
        return _LEFT + px / 100 * (_WIDTH - _LEFT - _RIGHT), bottom - py * (bottom - top)

    parts = [_text(0, 14, shorten(title, 52), "panel")] if shown else []
    parts += _legend(names, 14 + room, filled=True)
    for place, (_, shares) in enumerate(columns):
        below = 0.0
        for number, name in enumerate(names):
            share = shares.get(name, 0.0)
            if not share:
                continue
            left, high = _LEFT + place * width, bottom - (below + share) * (bottom - top)
            size = share * (bottom - top)
            box = f'x="{left:.1f}" y="{high:.1f}" width="{width + 0.2:.1f}" height="{size:.1f}"'
            parts.append(f'<rect {box} class="a{number}"/>')
            below += share
    parts += _axes((x, 0.0, 100.0), (y, 0.0, 1.0), at, top, bottom)
    return _svg(parts, _WIDTH, bottom + _BOTTOM, title)


def world(title: str, values: Mapping[str, tuple[str, float]]) -> str:
    """Return a map of values by country, from pale (the lowest) to full color (the highest).

    The title is what a screen reader says. `values` has name and value by the numeric code of a
    country; those too small to draw are dots.
    """
    wide, high = 640.0, 330.0
    numbers = [value for _, value in values.values()]
    low, span = min(numbers), (max(numbers) - min(numbers)) or 1.0

    def filled(code: str) -> tuple[str, str]:
        if code not in values:
            return 'class="blank"', ""
        name, value = values[code]
        told = f"<title>{escape(visible(f'{name}: {value:.3g}'))}</title>"
        return f'class="a0" style="opacity:{0.12 + 0.88 * (value - low) / span:.2f}"', told

    parts: list[str] = []
    for code, path in _outlines(wide, high - 50):
        look, told = filled(code)
        parts.append(f'<path d="{path}" {look}>{told}</path>')
    for country in countries():
        if country.outline or country.numeric not in values:
            continue
        px, py = _equal_earth(country.longitude, country.latitude, wide, high - 50)
        look, told = filled(country.numeric)
        parts.append(f'<circle cx="{px:.0f}" cy="{py:.0f}" r="3" {look}>{told}</circle>')
    for left, opacity, said in (
        (0, 0.12, f"lowest: {low:.3g}"),
        (200, 1, f"highest: {low + span:.3g}"),
    ):
        box = f'x="{left}" y="{high - 18}" width="14" height="12" rx="2"'
        parts.append(f'<rect {box} class="a0" style="opacity:{opacity:g}"/>')
        parts.append(_text(left + 20, high - 8, said))
    return _svg(parts, wide, high, title)


def _legend(names: Sequence[str], top: float, *, filled: bool = False) -> list[str]:
    parts = []
    for place, name in enumerate(names):
        x = (place % _PER_LINE) * _WIDTH / _PER_LINE
        y = top + 17 * (place // _PER_LINE)
        box = f'<rect x="{x:.1f}" y="{y - 10:.1f}" width="18" height="11" class="a{place}"/>'
        parts.append(box if filled else _rule(x, y - 4, x + 18, y - 4, f"s{place}"))
        parts.append(_text(x + 24, y, shorten(name, _LONGEST), "row"))
    return parts


def _axes(
    x: tuple[str, float, float], y: tuple[str, float, float], at: Place, top: float, bottom: float
) -> list[str]:
    parts = []
    for value in _ticks(x[1], x[2]):
        px, _ = at(value, y[1])
        parts.append(_rule(px, top, px, bottom, "grid"))
        parts.append(_text(px, bottom + 15, f"{value:g}", "tick", "middle"))
    for value in _ticks(y[1], y[2]):
        _, py = at(x[1], value)
        parts.append(_rule(_LEFT, py, _WIDTH - _RIGHT, py, "grid"))
        parts.append(_text(_LEFT - 6, py + 4, f"{value:g}", "tick", "end"))
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    parts.append(_text(middle, bottom + 32, shorten(x[0], 60), "tick", "middle"))
    turned = f'transform="rotate(-90 10 {(top + bottom) / 2:.0f})"'
    label = escape(visible(shorten(y[0], 36)))
    place = f'x="10" y="{(top + bottom) / 2:.0f}" text-anchor="middle"'
    return [*parts, f'<text {place} class="tick" {turned}>{label}</text>']


def _ticks(low: float, high: float) -> list[float]:
    """Return round values, about four of them.

    Examples
    --------
    >>> _ticks(0.0, 1.0), _ticks(-0.3, 2.1)
    ([0.0, 0.2, 0.4, 0.6, 0.8, 1.0], [0.0, 0.5, 1.0, 1.5, 2.0])
    """
    size = (high - low) / 4 or 1.0
    power = 10 ** math.floor(math.log10(size))
    step = min((m * power for m in (1, 2, 5, 10)), key=lambda s: abs(s - size))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(i * step, 10) for i in range(first, last + 1)]


def _line(line: Line, place: int, at: Place) -> Iterable[str]:
    if line.band:
        upper = [at(px, high) for px, _, high in line.band]
        lower = [at(px, low) for px, low, _ in reversed(line.band)]
        yield f'<path d="{_path([*upper, *lower])}Z" class="a{place} band"/>'
    points = [at(*point) for point in line.points]
    if line.cloud:
        path = "".join(f"M{px:.1f} {py:.1f}h0" for px, py in points)
        yield f'<path d="{path}" class="s{place} cloud"/>'
        return
    if line.steps:
        points = [p for a, b in zip(points, points[1:], strict=False) for p in (a, (b[0], a[1]))]
    if points:
        yield f'<path d="{_path(points)}" class="s{place}"/>'


def _dot(dot: Dot, place: int, at: Place) -> Iterable[str]:
    px, py = at(dot.x, dot.y)
    spans = [
        [at(end, dot.y) for end in dot.x_span or ()],
        [at(dot.x, end) for end in dot.y_span or ()],
    ]
    marks = [_rule(*ends[0], *ends[1], f"s{place}") for ends in spans if ends]
    marks.append(f'<circle cx="{px:.1f}" cy="{py:.1f}" r="{dot.radius:.1f}" class="a{place}"/>')
    yield f"<g><title>{escape(visible(dot.said or dot.name))}</title>{''.join(marks)}</g>"


def _path(points: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{px:.1f} {py:.1f}" for px, py in points)


_A = (1.340264, -0.081106, 0.000893, 0.003796)


def _equal_earth(
    longitude: float, latitude: float, width: float, height: float
) -> tuple[float, float]:
    """Return where a place is on the map (Savric, Patterson and Jenny, 2018)."""
    t = math.asin(math.sqrt(3) / 2 * math.sin(math.radians(latitude)))
    a, b, c, d = _A
    slope = a + 3 * b * t**2 + t**6 * (7 * c + 9 * d * t**2)
    east = 2 * math.sqrt(3) * math.radians(longitude) * math.cos(t) / (3 * slope)
    north = t * (a + b * t**2 + t**6 * (c + d * t**2))
    return width / 2 + east / 5.42 * width, 22 + (1.3174 - north) / 2.64 * height


def _unwrapped(
    points: Sequence[tuple[float, float]], width: float, height: float
) -> list[tuple[float, float]]:
    """Return where a ring of places is on the map; one across the date line is not torn apart."""
    placed, turn, last = [], 0.0, points[0][0]
    for longitude, latitude in points:
        if abs(longitude - last) > 180:
            turn += 360 if longitude < last else -360
        last = longitude
        placed.append(_equal_earth(longitude + turn, latitude, width, height))
    return placed


def _outlines(width: float, height: float) -> Iterable[tuple[str, str]]:
    """Return the code and the path of each country, to a tenth of a pixel."""
    content = world_outlines()
    scale, move = content["transform"]["scale"], content["transform"]["translate"]
    arcs = []
    for arc in content["arcs"]:
        px, py, points = 0, 0, []
        for dx, dy in arc:
            px, py = px + dx, py + dy
            points.append((px * scale[0] + move[0], py * scale[1] + move[1]))
        arcs.append(points)
    for shape in content["objects"]["countries"]["geometries"]:
        many = [shape["arcs"]] if shape["type"] == "Polygon" else shape.get("arcs", [])
        rings = []
        for ring in (ring for polygon in many for ring in polygon):
            points = []
            for index in ring:
                points += arcs[index] if index >= 0 else arcs[~index][::-1]
            rings.append(_path(_unwrapped(points, width, height)) + "Z")
        yield str(shape.get("id", "")), "".join(rings)
