"""Charts on two axes, as SVG: lines, steps, bands, dots with intervals, stacked shares, a map.

Colors are classes of the page (``s0`` to ``s7``), so charts follow its light and dark look. Each
kind of mark has its own dash or a title, so no reader needs the colors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import TypeAlias

from ombud.report.display import shorten, visible
from ombud.text.geography import countries, world_outlines

Place: TypeAlias = Callable[[float, float], tuple[float, float]]
"""Where a pair of values is on a chart."""

MOST = 8
"""So many series have a color of their own."""

_WIDTH, _HEIGHT = 380.0, 250.0
_LEFT, _RIGHT, _BOTTOM = 46.0, 14.0, 40.0
_LONGEST = 22
_PER_LINE = 2


@dataclass(frozen=True)
class Line:
    """A line of one series: points, and a band around it as (x, low, high)."""

    name: str
    points: Sequence[tuple[float, float]]
    band: Sequence[tuple[float, float, float]] = ()
    steps: bool = False


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
) -> str:
    """Return lines and dots on two axes, with a legend where there are several series.

    Parameters
    ----------
    title
        Stands above; empty where the figure has one.
    marks
        What is drawn; series of one name share a color.
    x, y
        Title and range of each axis; what lies beyond stands at the edge.
    said
        What a screen reader says; default, the title.
    equal
        Whether the diagonal is drawn, on which both are the same.
    nulls
        Where dashed lines cross the plane, for no difference.
    """
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
    for value, across in zip(nulls, (True, False), strict=True):
        if value is not None:
            ends = (
                (at(value, y[1]), at(value, y[2])) if across else (at(x[1], value), at(x[2], value))
            )
            parts.append(_rule(*ends[0], *ends[1], "null"))
    for mark in shown:
        place = names.index(mark.name)
        parts += _line(mark, place, at) if isinstance(mark, Line) else _dot(mark, place, at)
    return _svg(parts, _WIDTH, bottom + _BOTTOM, said or title)


def lanes(title: str, rows: Mapping[str, Sequence[Dot]], x: tuple[str, float, float]) -> str:
    """Return dots with intervals in a lane for each row, those of a row below each other.

    Parameters
    ----------
    title
        What a screen reader says.
    rows
        The dots by the name of their row; only their places on the horizontal axis count.
    x
        Title and range of the axis.
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
) -> str:
    """Return shares on top of each other, one column for each place on the axis.

    Parameters
    ----------
    title
        Stands above.
    columns
        Place of each column in percent, and shares by name; they add up to 1.
    x, y
        Titles of the axes.
    """
    names = list(dict.fromkeys(name for _, shares in columns for name in shares))[:MOST]
    top = 24.0 + 17 * math.ceil(len(names) / _PER_LINE)
    bottom = top + _HEIGHT - 64
    width = (_WIDTH - _LEFT - _RIGHT) / max(len(columns), 1)

    def at(px: float, py: float) -> tuple[float, float]:
        return _LEFT + px / 100 * (_WIDTH - _LEFT - _RIGHT), bottom - py * (bottom - top)

    parts = [_text(0, 14, shorten(title, 52), "panel"), *_legend(names, 32, filled=True)]
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

    Parameters
    ----------
    title
        What a screen reader says.
    values
        Name and value by the numeric code of a country; those too small to draw are dots.
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
    for place, value in enumerate((low, low + span)):
        opacity = 0.12 + 0.88 * place
        box = f'x="{200 * place}" y="{high - 18}" width="14" height="12" rx="2"'
        parts.append(f'<rect {box} class="a0" style="opacity:{opacity:g}"/>')
        parts.append(
            _text(200 * place + 20, high - 8, f"{('lowest', 'highest')[place]}: {value:.3g}")
        )
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
    if line.steps:
        points = [p for a, b in zip(points, points[1:], strict=False) for p in (a, (b[0], a[1]))]
    if points:
        yield f'<path d="{_path(points)}" class="s{place}"/>'


def _dot(dot: Dot, place: int, at: Place) -> Iterable[str]:
    px, py = at(dot.x, dot.y)
    marks = []
    if dot.x_span is not None:
        ends = [at(end, dot.y) for end in dot.x_span]
        marks.append(_rule(*ends[0], *ends[1], f"s{place}"))
    if dot.y_span is not None:
        ends = [at(dot.x, end) for end in dot.y_span]
        marks.append(_rule(*ends[0], *ends[1], f"s{place}"))
    marks.append(f'<circle cx="{px:.1f}" cy="{py:.1f}" r="{dot.radius:.1f}" class="a{place}"/>')
    yield f"<g><title>{escape(visible(dot.said or dot.name))}</title>{''.join(marks)}</g>"


def _path(points: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{px:.1f} {py:.1f}" for px, py in points)


def _text(x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" class="{kind}" text-anchor="{anchor}"'
    return f"<text {place}>{escape(visible(text))}</text>"


def _rule(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{kind}"/>'


def _svg(parts: Sequence[str], width: float, height: float, label: str) -> str:
    size = f'viewBox="0 0 {width:g} {height:g}" style="max-width:{1.25 * width:g}px"'
    return f'<svg {size} role="img" aria-label="{escape(visible(label))}">{"".join(parts)}</svg>'


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
