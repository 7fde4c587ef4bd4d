"""Charts of the authors study."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ombud.audits.result import Result
from ombud.questions.authors.lookup import attribute, pipeline, told, with_source
from ombud.questions.authors.reranking import LOSS
from ombud.questions.authors.stages import STAGE
from ombud.report.blocks import Figure
from ombud.report.charts import NAME_LENGTH, interval_chart
from ombud.report.display import count, shorten
from ombud.report.drawing import (
    NOMINAL,
    QUANTITY,
    WIDTH,
    inline,
    layered,
    legend,
    specification,
)
from ombud.report.findings import estimates_of
from ombud.report.format import estimate_text
from ombud.report.themes import MOST_COLOURS
from ombud.stats.estimate import Estimate

if TYPE_CHECKING:
    import altair as alt


_BASE = "as it is"
_STAGES = {
    "catalogue": "catalogue",
    "platform": "platform",
    "interactions": "interactions",
    "profiles": "profiles",
}

# Rows of reranked lists that a figure of more than two identities may have.
_MOST_RERANKED = 12


def stage_name(e: Estimate) -> str:
    """Return the stage of a share, in words."""
    stage = str(e.details.get(STAGE))
    if stage == "baseline":
        return e.group
    return _STAGES.get(stage) or f"lists: {e.system}"


def pipeline_figure(result: Result, *, name: str, table: str, small: bool = False) -> Figure | None:
    """Return the share of an identity at every stage, a dot and an interval each.

    Of two identities one is drawn, with reranked lists beside the lists; of more, all, with rows of
    their own for reranked lists, by the first strategy alone where that would be many.

    Parameters
    ----------
    result
        What an audit found.
    name, table
        Of the figure, and of the table with the same numbers.
    small
        Whether it is the one of the answer page: without reranked lists.
    """
    names = told(result)[:MOST_COLOURS]
    single = len(names) == 1
    stages = ["catalogue", "platform", "interactions", "profiles", "lists"]
    if not small:
        stages += ["baseline", "reranked"]
    some = [e for e in pipeline(result, *stages) if e.label in names]
    if not single:
        some = _few_reranked(some)
    if not any(e.value is not None for e in some):
        return None
    rows = []
    for e in some:
        series = str(e.details.get("strategy") or _BASE) if single else e.label
        own = not single and e.details.get(STAGE) == "reranked"
        row = f"{e.details['strategy']}: {e.system}" if own else stage_name(e)
        rows.append((e, row, series))
    order = list(dict.fromkeys(row for _, row, _ in rows))
    about = attribute(result)
    x = f"share among items of known {about}"
    chart = interval_chart(rows, order, x_title=f"{names[0]}: {x}" if single else x)
    base = [e for e in some if e.value is not None and e.details.get(STAGE) != "reranked"]
    alt = "Share at every stage: " + "; ".join(
        f"{stage_name(e)}{'' if single else ', ' + e.label} {estimate_text(e)}" for e in base[:12]
    )
    level = f"{some[0].level:.0%} intervals"
    more = "" if small else " Most popular and best rated: one list for everyone, no interval."
    title = f"From the catalogue to the lists: {shorten(names[0], 40) if single else about}"
    caption = with_source(result, f"{level}, among items of known {about}.{more}")
    return Figure(name, specification(chart, alt), title, caption, alt, table)


def _few_reranked(some: list[Estimate]) -> list[Estimate]:
    """Leave out reranked lists by all strategies but the first, where they would fill a screen."""
    strategies = [str(e.details["strategy"]) for e in some if e.details.get(STAGE) == "reranked"]
    systems = {e.system for e in some if e.details.get(STAGE) == "reranked"}
    if len(set(strategies)) * len(systems) <= _MOST_RERANKED:
        return some
    return [e for e in some if e.details.get("strategy", strategies[0]) == strategies[0]]


def coverage_figure(result: Result, *, name: str, table: str) -> Figure | None:
    """Return what is known of items by their popularity, as stacked shares."""
    frame = result.tables.get("creator-coverage")
    if frame is None or not frame.height:
        return None
    outcomes = frame["outcome"].unique(maintain_order=True).to_list()
    rest = [o for o in ("ambiguous", "unknown", "unlinked") if o in outcomes]
    order = [o for o in outcomes if o not in rest] + rest
    values = [
        {"percentile": p, "outcome": shorten(o, NAME_LENGTH), "items": n, "share": round(s, 4)}
        for p, o, n, s in frame.select("percentile", "outcome", "items", "share").iter_rows()
    ]
    chart = _coverage_chart(values, [shorten(o, NAME_LENGTH) for o in order])
    alt = f"Stacked shares of {count(len(order), 'outcome')} by popularity of the item."
    text = (
        "Items by number of interactions, least popular left. Unlinked: no book, author or record."
    )
    title = "What is known, by popularity"
    spec = specification(chart, alt)
    return Figure(name, spec, title, with_source(result, text), alt, table)


def _coverage_chart(values: Sequence[dict[str, Any]], order: Sequence[str]) -> alt.Chart:
    import altair as alt

    chart = alt.Chart(inline(values), width=WIDTH, height=170)
    bars: alt.Chart = chart.mark_bar(binSpacing=0)
    x = {"title": "popularity of the item, percentile", **QUANTITY}
    y = {"title": "share of items", **QUANTITY}
    domain = alt.Scale(domain=list(order))
    return bars.encode(
        x=alt.X(field="percentile", bin=alt.BinParams(step=4), **x),
        y=alt.Y(field="items", aggregate="sum", stack="normalize", **y),
        color=alt.Color(field="outcome", scale=domain, legend=legend(columns=4), **NOMINAL),
        order=alt.Order(field="outcome", **NOMINAL),
    )


def bins_figure(result: Result, *, name: str, table: str) -> Figure | None:
    """Return how profiles and lists are spread over shares of one identity."""
    frame = result.tables.get("creator-balance-bins")
    names = told(result)
    if frame is None or not names:
        return None
    values = []
    for system, identity, low, users in frame.iter_rows():
        if identity == names[0]:
            values.append({"of": system or "profiles", "share": round(low + 0.025, 3), "n": users})
    total: dict[str, int] = {}
    for v in values:
        total[v["of"]] = total.get(v["of"], 0) + v["n"]
    kinds = [kind for kind, n in total.items() if n][:MOST_COLOURS]
    if not kinds:
        return None
    for v in values:
        v["part"] = round(v["n"] / max(total[v["of"]], 1), 4)
    shown = [v for v in values if v["of"] in kinds]
    chart = _bins_chart(shown, kinds, f"share of {shorten(names[0], 40)} among known items")
    alt = f"How many users have each share of {names[0]}, in profiles and in lists."
    text = "Users in steps of 0.05. A narrow line means that users get much the same mix."
    title = f"How users are spread: {shorten(names[0], 40)}"
    spec = specification(chart, alt)
    return Figure(name, spec, title, with_source(result, text), alt, table)


def _bins_chart(values: Sequence[dict[str, Any]], kinds: Sequence[str], x_title: str) -> alt.Chart:
    import altair as alt

    chart = alt.Chart(inline(values), width=WIDTH, height=170)
    by = {"field": "of", "scale": alt.Scale(domain=list(kinds)), **NOMINAL}
    by["legend"] = legend(columns=4, symbolStrokeWidth=2)
    x = alt.X(field="share", scale=alt.Scale(domain=[0, 1]), title=x_title, **QUANTITY)
    line: alt.Chart = chart.mark_line(interpolate="step", strokeWidth=2)
    return line.encode(
        x=x,
        y=alt.Y(field="part", title="share of users", **QUANTITY),
        color=alt.Color(**by),
        strokeDash=alt.StrokeDash(**by),
    )


def curves_figure(result: Result, *, name: str, table: str) -> Figure | None:
    """Return lists against profiles: the fitted curve with its band, and users by tenths."""
    curves = result.tables.get("creator-propagation-curves")
    points = result.tables.get("creator-propagation-points")
    if curves is None or points is None:
        return None
    names = told(result)
    rows = [r for r in curves.to_dicts() if not r["within"] and r["identity"] in names]
    if not rows:
        return None
    identity = rows[0]["identity"]
    rows = [r for r in rows if r["identity"] == identity]
    dots = [r for r in points.to_dicts() if not r["within"] and r["identity"] == identity]
    systems = list(dict.fromkeys(r["system"] for r in rows))
    shown = systems[:MOST_COLOURS]
    curve = [_short(r, "system", "profile", "mean", "low", "high") for r in rows]
    curve = [r for r in curve if r["system"] in shown]
    own = [_short(r, "system", "profile", "list", "users") for r in dots if r["system"] in shown]
    chart = _curves_chart(curve, own, shown)
    alt = f"Share of {identity} in lists against profiles, for {count(len(shown), 'system')}."
    spec = specification(chart, alt)
    left = len(systems) - len(shown)
    more = f" {count(left, 'more system')} in the table." if left else ""
    text = (
        "Line and band: the fitted mean with its 95% interval; dots: means of users by tenths of "
        "their profile, nearer to the middle where profiles are short; dashed: lists like "
        f"profiles.{more}"
    )
    title = f"How profiles show in lists: {shorten(identity, 40)}"
    return Figure(name, spec, title, with_source(result, text), alt, table)


def _short(row: dict[str, Any], *fields: str) -> dict[str, Any]:
    return {f: round(row[f], 4) if isinstance(row[f], float) else row[f] for f in fields}


def _curves_chart(
    curve: Sequence[dict[str, Any]], dots: Sequence[dict[str, Any]], systems: Sequence[str]
) -> alt.LayerChart:
    import altair as alt

    share = {"scale": alt.Scale(domain=[0, 1]), **QUANTITY}
    x = alt.X(field="profile", title="share in the profile", **share)
    y = {"title": "share in the list", **share}
    by = {"field": "system", "scale": alt.Scale(domain=list(systems)), **NOMINAL}
    by["legend"] = legend(columns=4)
    colour = alt.Color(**by)
    fitted, equal = inline(curve), inline([{"profile": 0, "y": 0}, {"profile": 1, "y": 1}])
    return layered(
        alt.Chart(equal).mark_line(style="null-line").encode(x=x, y=alt.Y(field="y", **y)),
        alt.Chart(fitted)
        .mark_area(opacity=0.2)
        .encode(x=x, y=alt.Y(field="low", **y), y2=alt.Y2(field="high"), color=colour),
        alt.Chart(fitted).mark_line().encode(x=x, y=alt.Y(field="mean", **y), color=colour),
        alt.Chart(inline(dots))
        .mark_point(filled=True, opacity=0.8)
        .encode(
            x=x,
            y=alt.Y(field="list", **y),
            size=alt.Size(field="users", legend=None, **QUANTITY),
            color=colour,
            shape=alt.Shape(**by),
        ),
        width=WIDTH,
        height=260,
    )


def loss_figure(result: Result, *, name: str, table: str) -> Figure | None:
    """Return what each strategy costs, by system."""
    some: Sequence[Estimate] = estimates_of(result, LOSS)
    if not any(e.value is not None for e in some):
        return None
    rows = [(e, e.system, e.group) for e in some]
    order = list(dict.fromkeys(e.system for e in some))
    chart = interval_chart(rows, order, x_title="relative loss of MRR")
    defined = [e for e in some if e.value is not None]
    alt = "Relative loss: " + "; ".join(
        f"{e.system} with {e.group} {estimate_text(e)}" for e in defined[:12]
    )
    text = "95% intervals, paired over users; above 0 is a loss; dashed: no change."
    spec = specification(chart, alt)
    title = "What reranking costs"
    return Figure(name, spec, title, with_source(result, text), alt, table)
