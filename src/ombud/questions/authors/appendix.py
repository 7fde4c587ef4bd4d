"""Figures of the study that are looked up rather than read: they stand in the appendix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ombud.audits.result import Result
from ombud.questions.authors.lookup import told, with_source
from ombud.questions.authors.tuning import TUNED
from ombud.registry import section
from ombud.report.blocks import Block, Cell, Column, Figure, Section, Table
from ombud.report.charts import NAME_LENGTH, interval_chart
from ombud.report.display import count, shorten
from ombud.report.drawing import (
    NOMINAL,
    QUANTITY,
    WIDTH,
    by_series,
    inline,
    layered,
    legend,
    null_line,
    panel_title,
    specification,
)
from ombud.report.findings import estimates_of
from ombud.report.format import estimate_text, number_text
from ombud.report.tables import Notes, number_cells
from ombud.report.themes import MOST_COLOURS
from ombud.stats.estimate import Estimate

if TYPE_CHECKING:
    import altair as alt


_MRR = "creator-reranking/mrr"
_PLAIN = "as recommended"
_KINDS = ("observed", "predicted", "smoothed")
_PREDICTED = "authors-predicted"
# How many times as high as all else a panel may be.
_PEAK = 2.0
_ACCURACY = "authors-accuracy"


@section("authors-further")
def authors_further(result: Result) -> Section | None:
    """Draw predicted shares, slopes against intercepts, and accuracy by strategy."""
    blocks: list[Block] = []
    predicted, accuracy = _predicted_table(result), _accuracy_table(result)
    if predicted is not None:
        profiles = densities_figure(result, name="authors-profile-density", profiles=True)
        lists = densities_figure(result, name="authors-list-density", profiles=False)
        blocks += [f for f in (profiles, lists) if f is not None]
        blocks.append(predicted)
    misfits = _misfits_table(result)
    blocks += [] if misfits is None else [misfits]
    slopes = slopes_figure(result, name="authors-slope-intercept")
    blocks += [] if slopes is None else [slopes]
    if accuracy is not None:
        figures = (
            accuracy_figure(result, name="authors-accuracy-figure"),
            strategies_figure(result, name="authors-strategies"),
        )
        blocks += [f for f in figures if f is not None]
        blocks.append(accuracy)
    if not blocks:
        return None
    return Section("Further figures of the study", tuple(blocks), order=185, place="appendix")


def _rows(result: Result, name: str) -> list[dict[str, Any]]:
    """Return the rows of a stored table about the identity that is told first."""
    table, names = result.tables.get(name), told(result)
    if table is None or not names:
        return []
    return [row for row in table.to_dicts() if row["identity"] == names[0]]


def _of(system: str) -> str:
    return shorten(system, NAME_LENGTH) or "profiles"


def densities_figure(result: Result, *, name: str, profiles: bool) -> Figure | None:
    """Return observed shares as bars, with densities of them and of new users.

    Parameters
    ----------
    result
        What an audit found.
    name
        Of the figure.
    profiles
        Whether profiles are drawn, or the lists of each system.
    """
    lines = [
        r for r in _rows(result, "creator-propagation-densities") if profiles != bool(r["system"])
    ]
    if not lines:
        return None
    systems = list(dict.fromkeys(r["system"] for r in lines))[:MOST_COLOURS]
    shown: list[dict[str, Any]] = [
        {"of": _of(r["system"]), "kind": r["kind"], "x": r["share"], "y": round(r["density"], 3)}
        for r in lines
        if r["system"] in systems
    ]
    bins = [r for r in _rows(result, "creator-balance-bins") if r["system"] in systems]
    for system in systems:
        own = [r for r in bins if r["system"] == system]
        users = sum(r["users"] for r in own)
        shown += [
            {"of": _of(system), "from": r["from"], "to": round(r["from"] + 0.05, 2),
             "high": round(r["users"] / users / 0.05, 3)}
            for r in own
            if users
        ]  # fmt: skip
    shown += [
        {"of": _of(r["system"]), "kind": r["kind"], "mean": round(r["mean"], 4)}
        for r in _rows(result, "creator-propagation-predicted")
        if r["system"] in systems
    ]
    identity = lines[0]["identity"]
    chart = _densities_chart(shown, [_of(s) for s in systems], shorten(identity, 40))
    about = "profiles" if profiles else f"the lists of {count(len(systems), 'system')}"
    alt = f"Shares of {identity} in {about}: observed, predicted for new users, and smoothed."
    text = (
        "Bars: users in steps of 0.05. Lines: densities, kept inside 0 to 1, of what was observed, "
        "of what the model predicts for new users, and of their tendency without the noise of "
        "short profiles or lists (smoothed; sharp peaks are cut off). Upright: means."
    )
    title = f"Observed and predicted {'profiles' if profiles else 'lists'}: {shorten(identity, 40)}"
    return Figure(
        name, specification(chart, alt), title, with_source(result, text), alt, _PREDICTED
    )


def _densities_chart(
    values: Sequence[dict[str, Any]], panels: Sequence[str], identity: str
) -> alt.ConcatChart:
    import altair as alt

    x = {"scale": alt.Scale(domain=[0, 1]), "title": f"share of {identity}", **QUANTITY}
    by = {"field": "kind", "scale": alt.Scale(domain=list(_KINDS)), **NOMINAL}
    by["legend"] = legend(_KINDS, symbolStrokeWidth=2)
    looks: dict[str, Any] = {"color": alt.Color(**by), "strokeDash": alt.StrokeDash(**by)}
    alone = len(panels) == 1

    def panel(of: str) -> alt.LayerChart:
        def some(field: str) -> alt.Chart:
            return alt.Chart(inline([v for v in own if field in v]))

        own = [v for v in values if v["of"] == of]
        # A tendency without any noise may be one sharp peak, beside which nothing else is seen.
        seen = [v.get("high", v.get("y", 0.0)) for v in own if v.get("kind") != "smoothed"]
        top = min(_PEAK * max(seen, default=1.0), max((v.get("y", 0.0) for v in own), default=1.0))
        scale = alt.Scale(domain=[0, max(top, *seen, 0.1)])
        y = {"title": "density", "scale": scale, **QUANTITY}
        bars = some("high").mark_bar(opacity=0.25)
        return layered(
            bars.encode(
                x=alt.X(field="from", **x),
                x2=alt.X2(field="to"),
                y=alt.Y(field="high", **y),
                y2=alt.Y2Datum(0),
            ),
            some("y")
            .mark_line(strokeWidth=2, clip=True)
            .encode(x=alt.X(field="x", **x), y=alt.Y(field="y", **y), **looks),
            some("mean").mark_rule(strokeWidth=1).encode(x=alt.X(field="mean", **x), **looks),
            width=WIDTH if alone else WIDTH // 2 - 30,
            height=170 if alone else 130,
            title=panel_title(of),
        )

    shared = alt.Resolve(scale=alt.ScaleResolveMap(color="shared", strokeDash="shared"))
    made = [panel(of) for of in panels]
    return alt.ConcatChart(concat=made, columns=1 if alone else 2, resolve=shared)


def _predicted_table(result: Result) -> Table | None:
    rows = _rows(result, "creator-propagation-predicted")
    if not rows:
        return None
    columns = (
        Column("Of", header=True),
        Column("Kind"),
        Column("Mean share", "right"),
        Column("SD", "right"),
    )
    body = tuple(
        (Cell(_of(r["system"])), Cell(r["kind"]))
        + tuple(Cell.number(r[c], number_text(r[c], 3)) for c in ("mean", "sd"))
        for r in rows
    )
    identity = shorten(rows[0]["identity"], 40)
    caption = f"Shares of {identity}: observed, predicted for 10,000 new users, and smoothed."
    return Table(_PREDICTED, columns, body, caption)


def _misfits_table(result: Result) -> Table | None:
    """Return how far observed shares are from predicted ones, for profiles and every system."""
    of_profiles = [
        e for e in estimates_of(result, "propagation/spread") if e.group == "profile fit"
    ]
    found = [
        (e, e.details["misfit"])
        for e in (*of_profiles, *estimates_of(result, "propagation/slope"))
        if e.details.get("misfit")
    ]
    if not found:
        return None
    columns = [Column("Of", header=True), Column("Identity"), Column("Distance", "right")]
    columns += [Column("p", "right")]
    columns += [
        Column(f"At {at}, {kind}", "right") for at in (0, 1) for kind in ("observed", "predicted")
    ]
    columns += [Column("n", "right")]
    shares = ("at_zero", "predicted_at_zero", "at_one", "predicted_at_one")
    rows = tuple(
        (Cell(_of(e.system or "")), Cell(shorten(e.label, 40)))
        + tuple(Cell.number(m[c], number_text(m[c], 3)) for c in ("distance", "p_value", *shares))
        + (Cell.number(m["n"]),)
        for e, m in found
    )
    caption = (
        "How well the model describes profiles and lists. Distance: Kolmogorov-Smirnov, between "
        "observed and predicted shares; p: how often data replicated from the model are as far "
        "(below 0.01 it does not describe them); then shares of profiles or lists at 0 and at 1."
    )
    return Table("authors-misfits", tuple(columns), rows, caption)


def slopes_figure(result: Result, *, name: str) -> Figure | None:
    """Return slopes against intercepts, each with its 95% interval."""
    names = told(result)[:1]
    slopes = {e.system: e for e in estimates_of(result, "propagation/slope") if e.label in names}
    both = {
        e.system: (slopes[e.system], e)
        for e in estimates_of(result, "propagation/intercept")
        if e.label in names and e.system in slopes
    }
    drawn = {s: pair for s, pair in both.items() if all(e.interval is not None for e in pair)}
    systems = list(drawn)[:MOST_COLOURS]
    if not systems:
        return None
    names_shown = [shorten(s, NAME_LENGTH) for s in systems]
    values: list[dict[str, Any]] = [
        {"system": shown, **_ends("s", drawn[s][0]), **_ends("b", drawn[s][1])}
        for s, shown in zip(systems, names_shown, strict=True)
    ]
    chart = _slopes_chart(values, names_shown)
    alt = "Slope and intercept: " + "; ".join(
        f"{s} {estimate_text(drawn[s][0])} and {estimate_text(drawn[s][1])}" for s in systems
    )
    text = "95% posterior intervals. Dashed: slope 1 and intercept 0, lists that vary as profiles."
    title = f"Slopes and intercepts: {shorten(names[0], 40)}"
    spec = specification(chart, alt)
    return Figure(name, spec, title, with_source(result, text), alt, "authors-slopes")


def _ends(name: str, e: Estimate) -> dict[str, float]:
    assert e.value is not None and e.interval is not None  # those without are not drawn
    low, high = e.interval
    ends = {name: e.value, f"{name}_low": low, f"{name}_high": high}
    return {key: round(value, 4) for key, value in ends.items()}


def _slopes_chart(values: Sequence[dict[str, Any]], systems: Sequence[str]) -> alt.LayerChart:
    import altair as alt

    scale = {"scale": alt.Scale(zero=False)}
    x = {"title": "slope", **scale, **QUANTITY}
    y = {"title": "intercept", **scale, **QUANTITY}
    colour, marks = by_series("system", systems)
    bars = alt.Chart().mark_rule(strokeWidth=2)
    return layered(
        null_line("x", 1.0, **scale),
        null_line("y", 0.0, **scale),
        bars.encode(
            x=alt.X(field="s_low", **x),
            x2=alt.X2(field="s_high"),
            y=alt.Y(field="b", **y),
            **colour,
        ),
        bars.encode(
            x=alt.X(field="s", **x),
            y=alt.Y(field="b_low", **y),
            y2=alt.Y2(field="b_high"),
            **colour,
        ),
        alt.Chart()
        .mark_point(filled=True, size=60)
        .encode(x=alt.X(field="s", **x), y=alt.Y(field="b", **y), **marks),
        data=inline(values),
        width=WIDTH,
        height=260,
    )


def accuracy_figure(result: Result, *, name: str) -> Figure | None:
    """Return the mean reciprocal rank of each system, and what tuning reached on other users."""
    own = [e for e in estimates_of(result, _MRR) if e.group == _PLAIN]
    tuned = [e for e in estimates_of(result, TUNED) if _is_mrr(e)]
    more = " Tuning: the best of many trials, on other users; it flatters." if tuned else ""
    rows = [(e, e.system, "evaluation") for e in own] + [(e, e.system, "tuning") for e in tuned]
    return _accuracy_chart(result, rows, name, "How accurate lists are", f"95% intervals.{more}")


def strategies_figure(result: Result, *, name: str) -> Figure | None:
    """Return the mean reciprocal rank of each system under every strategy."""
    rows = [(e, e.system, e.group) for e in estimates_of(result, _MRR)]
    text = "95% intervals of each; the loss, paired over users, is in the report."
    return _accuracy_chart(result, rows, name, "How accurate lists are, by strategy", text)


def _is_mrr(e: Estimate) -> bool:
    return str(e.details.get("metric", "")).startswith("mrr")


def _accuracy_chart(
    result: Result, rows: list[tuple[Estimate, str, str]], name: str, title: str, text: str
) -> Figure | None:
    defined = [row for row in rows if row[0].value is not None]
    if not defined:
        return None
    order = list(dict.fromkeys(system for _, system, _ in rows))
    chart = interval_chart(rows, order, x_title=rows[0][0].metric)
    alt = f"{title}: " + "; ".join(
        f"{system}, {series} {estimate_text(e)}" for e, system, series in defined[:12]
    )
    spec = specification(chart, alt)
    return Figure(name, spec, title, with_source(result, text), alt, _ACCURACY)


def _accuracy_table(result: Result) -> Table | None:
    found = estimates_of(result, _MRR)
    if not any(e.value is not None for e in found):
        return None
    notes = Notes()
    tuned = {e.system: e for e in estimates_of(result, TUNED)}
    columns = [Column("System", header=True), Column("Strategy"), Column(found[0].metric, "right")]
    columns += [Column("Hits", "right")] + ([Column("At tuning", "right")] if tuned else [])
    rows = []
    for e, cell in zip(found, number_cells(found, notes), strict=True):
        hits = e.details.get("hits")
        row: tuple[Cell, ...] = (Cell(shorten(e.system, 60)), Cell(e.group), cell)
        row += (Cell("") if hits is None else Cell.number(hits),)
        if tuned:
            best = tuned.get(e.system) if e.group == _PLAIN else None
            value = None if best is None else best.value
            name = "" if best is None else f" ({best.details['metric']})"
            row += (Cell("") if value is None else Cell(number_text(value, 4) + name, value=value),)
        rows.append(row)
    caption = f"Accuracy by strategy ({found[0].level:.0%} interval in brackets)."
    return Table(_ACCURACY, tuple(columns), tuple(rows), caption, notes.lines())
