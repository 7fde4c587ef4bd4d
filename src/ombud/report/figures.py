"""Figures made of estimates: one specification for the screen, the printer and the paper."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ombud.report.blocks import Figure
from ombud.report.charts import NAME_LENGTH, interval_chart
from ombud.report.display import count, joined, shorten
from ombud.report.findings import EstimateSet, effect, labels_of
from ombud.report.format import estimate_text
from ombud.report.themes import MOST_COLOURS
from ombud.stats.estimate import Estimate

__all__ = ["MOST_LABELS", "MOST_ROWS", "forest", "group_contrasts", "group_levels"]

MOST_ROWS = 30
"""A figure shows at most this many rows, and says so."""

MOST_LABELS = 30
"""A figure that lets the reader choose a label offers at most this many."""

_BREAK = " · "


def forest(family: EstimateSet, *, name: str, table: str) -> Figure | None:
    """Return values with intervals, labels down the side, one mark for each system.

    Parameters
    ----------
    family
        Levels of everyone, or systems compared.
    name
        Of the figure.
    table
        Of the table with the same numbers.
    """
    pairs = family.kind == "system contrast"
    series = _pair if pairs else _system
    labelled = any(family.labels)
    row = _label if labelled else series
    estimates, notes = (family.estimates, []) if not labelled else _few_series(family, series)
    shown, chosen, more = _largest(estimates, row, "label" if labelled else "row")
    if not any(e.value is not None for e in chosen):
        return None
    rows = [(e, row(e), series(e) if labelled else "") for e in chosen]
    spec = interval_chart(rows, shown, x_title=_x_title(family))
    title = f"{family.metric.title}: systems compared" if pairs else family.metric.title
    return _figure(name, table, title, spec, chosen, [*more, *notes])


def group_contrasts(family: EstimateSet, *, name: str, table: str) -> Figure | None:
    """Return how far groups lie from the rest: the largest contrasts, over all labels."""
    estimates, notes = _few_series(family, _system)
    shown, chosen, more = _largest(estimates, _label_group, "comparison")
    if not any(e.value is not None for e in chosen):
        return None
    rows = [(e, _label_group(e), _system(e)) for e in chosen]
    break_at = _BREAK if any(family.labels) else ""
    spec = interval_chart(rows, shown, x_title=_x_title(family), break_at=break_at)
    title = f"{family.metric.title}: groups against the rest"
    return _figure(name, table, title, spec, chosen, [*more, *notes])


def group_levels(family: EstimateSet, *, name: str, table: str) -> Figure | None:
    """Return the value of each group, for one label at a time, chosen by the reader."""
    estimates, notes = _few_series(family, _system)
    if not any(e.value is not None for e in estimates):
        return None
    labels = sorted(labels_of(estimates), key=lambda label: -_spread(estimates, label))
    offered, first = labels[:MOST_LABELS], labels[0]
    groups = family.groups[:MOST_ROWS]
    if len(family.groups) > len(groups):
        notes.append(f"Drawn: the first {len(groups)} of {count(len(family.groups), 'group')}.")
    chosen = [e for e in estimates if e.label in set(offered)]
    many = len(labels) > 1
    spec = interval_chart(
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
    return _figure(name, table, f"{family.metric.title} by group", spec, now, notes)


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
    text = f"Drawn: the first {MOST_COLOURS} of {count(len(series), what)}; the table has all."
    return [e for e in family.estimates if series_of(e) in kept], [text]


def _largest(
    estimates: Sequence[Estimate], row_of: Callable[[Estimate], str], what: str
) -> tuple[list[str], list[Estimate], list[str]]:
    """Return the rows furthest from the null value, from high to low, and what was left out."""
    extreme: dict[str, Estimate] = {}
    for e in estimates:
        key = row_of(e)
        if key not in extreme or effect(e) > effect(extreme[key]):
            extreme[key] = e
    by_effect = sorted(extreme, key=lambda key: -effect(extreme[key]))
    shown = sorted(by_effect[:MOST_ROWS], key=lambda key: -_value(extreme[key]))
    chosen = [e for e in estimates if row_of(e) in set(shown)]
    rest = len(by_effect) - len(shown)
    if not rest:
        return shown, chosen, []
    far = "furthest from the line" if any(e.null is not None for e in chosen) else "larger"
    text = f"Drawn: the {len(shown)} of {count(len(by_effect), what)} that lie {far}."
    return shown, chosen, [text.replace("lie larger", "are largest")]


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
    spec: dict[str, Any],
    shown: Sequence[Estimate],
    notes: Sequence[str],
) -> Figure:
    defined = sorted((e for e in shown if e.value is not None), key=_value)
    first = defined[0] if defined else shown[0]
    text = [f"Points are estimates; lines are {first.level:.0%} intervals."]
    if first.null is not None:
        text.append(f"The dashed line marks {first.null:g}: no difference.")
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
    return Figure(name, {**spec, "description": alt}, title, " ".join([*text, *notes]), alt, table)


def _who(estimate: Estimate) -> str:
    parts = (estimate.system, estimate.label, estimate.group)
    return ", ".join(shorten(part, NAME_LENGTH) for part in parts if part)
