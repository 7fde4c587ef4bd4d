"""Figures made of estimates: one specification for the screen, the printer and the paper."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ombud.report.blocks import Figure
from ombud.report.charts import (
    LEAST_RATIO,
    NAME_LENGTH,
    ROOM,
    interval_chart,
    row_height,
)
from ombud.report.display import count, joined, shorten
from ombud.report.drawing import specification
from ombud.report.findings import EstimateSet, labels_of, weight
from ombud.report.format import estimate_text
from ombud.report.themes import MOST_COLOURS
from ombud.stats.estimate import Estimate

if TYPE_CHECKING:
    from altair.typing import ChartType


MOST_ROWS = 12
"""A figure shows at most this many rows, and says so."""

MOST_LABELS = 8
"""A figure that lets the reader choose a label offers at most this many."""

_BREAK = " · "


def forest(
    family: EstimateSet,
    *,
    name: str,
    table: str,
    ratio: float | None = None,
    room: int = ROOM,
    x_title: str = "",
) -> Figure | None:
    """Return values with intervals, labels down the side, one mark for each system.

    Parameters
    ----------
    family
        Levels of everyone, or systems compared.
    name
        Of the figure.
    table
        Of the table with the same numbers.
    ratio
        What makes a ratio of a value, see `interval_chart`; ratios of two systems need not say.
    room
        How high it may be, in pixels.
    x_title
        What is measured, in place of the metric's title.
    """
    pairs = family.kind == "system contrast"
    series = _pair if pairs else _system
    labelled = any(family.labels)
    row = _label if labelled else series
    estimates, notes = (family.estimates, []) if not labelled else _few_series(family, series)
    many = len({series(e) for e in estimates}) if labelled else 1
    shown, chosen, more = _largest(estimates, row, "label" if labelled else "row", many, room)
    if not any(e.value is not None for e in chosen):
        return None
    rows = [(e, row(e), series(e) if labelled else "") for e in chosen]
    ratio = ratio if ratio is not None else _ratio(family)
    chart = interval_chart(rows, shown, x_title=x_title or _x_title(family), ratio=ratio)
    more += _edge(chosen, ratio)
    title = f"{family.metric.title}: systems compared" if pairs else family.metric.title
    return _figure(name, table, title, chart, chosen, [*more, *notes])


def group_contrasts(
    family: EstimateSet, *, name: str, table: str, room: int = ROOM
) -> Figure | None:
    """Return how far groups lie from the rest: the largest contrasts, over all labels."""
    estimates, notes = _few_series(family, _system)
    many = len({e.system for e in estimates})
    shown, chosen, more = _largest(estimates, _label_group, "comparison", many, room)
    if not any(e.value is not None for e in chosen):
        return None
    rows = [(e, _label_group(e), _system(e)) for e in chosen]
    break_at = _BREAK if any(family.labels) else ""
    ratio = _ratio(family)
    chart = interval_chart(rows, shown, x_title=_x_title(family), break_at=break_at, ratio=ratio)
    more += _edge(chosen, ratio)
    title = f"{family.metric.title}: groups against the rest"
    return _figure(name, table, title, chart, chosen, [*more, *notes])


def group_levels(family: EstimateSet, *, name: str, table: str) -> Figure | None:
    """Return the value of each group, for one label at a time, chosen by the reader."""
    estimates, notes = _few_series(family, _system)
    if not any(e.value is not None for e in estimates):
        return None
    labels = sorted(labels_of(estimates), key=lambda label: -_spread(estimates, label))
    offered, first = labels[:MOST_LABELS], labels[0]
    groups = family.groups[:MOST_ROWS]
    if len(family.groups) > len(groups):
        rest = len(family.groups) - len(groups)
        total = count(len(family.groups), "group")
        notes.append(f"Shown: the first {len(groups)} of {total}; {rest:,} are not shown.")
    chosen = [e for e in estimates if e.label in set(offered)]
    many = len(labels) > 1
    chart = interval_chart(
        [(e, e.group, _system(e)) for e in chosen],
        groups,
        x_title=_x_title(family),
        pick=(offered, first) if many else None,
    )
    if many:
        notes.append(
            f"Shown first: {shorten(first, NAME_LENGTH)}, where groups lie furthest apart. "
            "On screen, another label can be chosen below the picture"
            + (f" (the {len(offered)} where groups differ most)." if labels != offered else ".")
        )
    now = [e for e in chosen if e.label == first and e.group in set(groups)]
    return _figure(name, table, f"{family.metric.title} by group", chart, now, notes)


def few_systems(estimates: Sequence[Estimate]) -> tuple[list[Estimate], str]:
    """Return the estimates of as many systems as can be told apart, and what is not shown."""
    systems = list(dict.fromkeys(e.system for e in estimates))
    kept = set(systems[:MOST_COLOURS])
    rest = len(systems) - len(kept)
    said = f" {count(rest, 'system')} {'is' if rest == 1 else 'are'} not shown." if rest else ""
    return [e for e in estimates if e.system in kept], said


def _label(estimate: Estimate) -> str:
    return estimate.label


def _system(estimate: Estimate) -> str:
    return estimate.system


def _pair(estimate: Estimate) -> str:
    return f"{estimate.system} against {estimate.against}"


def _label_group(estimate: Estimate) -> str:
    if not estimate.label:
        return estimate.group
    return f"{shorten(estimate.label, NAME_LENGTH)}{_BREAK}{shorten(estimate.group, NAME_LENGTH)}"


def _few_series(
    family: EstimateSet, series_of: Callable[[Estimate], str]
) -> tuple[Sequence[Estimate], list[str]]:
    """Return the estimates of as many series as there are colours, and what was left out."""
    series = list(dict.fromkeys(map(series_of, family.estimates)))
    if len(series) <= MOST_COLOURS:
        return family.estimates, []
    kept = set(series[:MOST_COLOURS])
    what = "pair" if series_of is _pair else "system"
    rest = len(series) - MOST_COLOURS
    text = f"Shown: the first {MOST_COLOURS} of {count(len(series), what)}; {rest:,} are not shown."
    return [e for e in family.estimates if series_of(e) in kept], [text]


def _largest(
    estimates: Sequence[Estimate],
    row_of: Callable[[Estimate], str],
    what: str,
    series: int,
    room: int,
) -> tuple[list[str], list[Estimate], list[str]]:
    """Return the rows that are certain to lie furthest from the null value, and what is left out.

    They stand from high to low, as many as fit.
    """
    extreme: dict[str, Estimate] = {}
    for e in estimates:
        key = row_of(e)
        if key not in extreme or weight(e) > weight(extreme[key]):
            extreme[key] = e
    by_effect = sorted(extreme, key=lambda key: weight(extreme[key]), reverse=True)
    most = min(MOST_ROWS, max(4, room // row_height(series)))
    shown = sorted(by_effect[:most], key=lambda key: -_value(extreme[key]))
    chosen = [e for e in estimates if row_of(e) in set(shown)]
    rest = len(by_effect) - len(shown)
    if not rest:
        return shown, chosen, []
    tested = any(e.null is not None for e in chosen)
    far = "clearest" if tested else "largest"
    text = (
        f"Shown: the {len(shown)} {far} of {count(len(by_effect), what)}; {rest:,} are not shown."
    )
    return shown, chosen, [text]


def _ratio(family: EstimateSet) -> float | None:
    """Return 0 where the numbers of a family are ratios, and None elsewhere."""
    defined = [e for e in family.estimates if e.value is not None]
    return 0.0 if defined and all(e.kind == "ratio" for e in defined) else None


def _edge(shown: Sequence[Estimate], ratio: float | None) -> list[str]:
    """Say so where ratios stand at the edge of a logarithmic axis."""
    if ratio is None:
        return []
    ends = [v + ratio for e in shown if e.interval is not None for v in (*e.interval, e.value or 0)]
    text = "The axis is logarithmic"
    if any(end < LEAST_RATIO for end in ends):
        text += f"; ratios below {LEAST_RATIO:g} stand at its edge"
    return [f"{text}."]


def _value(estimate: Estimate) -> float:
    return -math.inf if estimate.value is None else estimate.value


def _spread(estimates: Sequence[Estimate], label: str) -> float:
    """Return how far groups lie apart within one system, at most."""
    apart = -1.0
    for system in dict.fromkeys(e.system for e in estimates):
        values = [
            e.value
            for e in estimates
            if e.label == label and e.system == system and e.value is not None
        ]
        if values:
            apart = max(apart, max(values) - min(values))
    return apart


def _x_title(family: EstimateSet) -> str:
    if family.kind in {"overall", "group"}:
        return family.metric.title
    sort = "Ratio" if any(e.kind == "ratio" for e in family.estimates) else "Difference"
    return f"{sort} in {family.metric.title}"


def _figure(
    name: str,
    table: str,
    title: str,
    chart: ChartType,
    shown: Sequence[Estimate],
    notes: Sequence[str],
) -> Figure:
    defined = sorted((e for e in shown if e.value is not None), key=_value)
    first = defined[0] if defined else shown[0]
    text = [f"Lines are {first.level:.0%} intervals."]
    if first.null is not None:
        text.append(f"Dashed: {first.null:g}, no difference.")
    undefined = len(shown) - len(defined)
    if undefined:
        verb = "is" if undefined == 1 else "are"
        text.append(f"{count(undefined, 'number')} {verb} not defined and {verb} named in words.")
    about = joined([shorten(v, NAME_LENGTH) for v in labels_of(shown) if v][:3])
    many = len(labels_of(shown))
    alt = f"{title}: {count(len(defined), 'estimate')} with intervals"
    alt += f", for {about if many <= 3 else count(many, 'label')}." if about else "."
    if defined:
        low, high = defined[0], defined[-1]
        alt += f" Highest: {_who(high)}, {estimate_text(high)}."
        alt += f" Lowest: {_who(low)}, {estimate_text(low)}."
    spec = specification(chart, alt)
    return Figure(name, spec, title, " ".join([*text, *notes]), alt, table)


def _who(estimate: Estimate) -> str:
    parts = (estimate.system, estimate.label, estimate.group)
    return ", ".join(shorten(part, NAME_LENGTH) for part in parts if part)
