"""Figures of the warnings experiment, from the small tables of a result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from ombud.audits.result import MetricInfo, Result
from ombud.questions.warnings.charts import (
    histogram_chart,
    ridge_chart,
    scatter_chart,
    share_chart,
    tradeoff_chart,
)
from ombud.questions.warnings.lookup import (
    FORMS,
    amplification_infos,
    at_systems,
    chief_accuracy,
    common_labels,
    level,
)
from ombud.report.blocks import Figure
from ombud.report.charts import NAME_LENGTH
from ombud.report.display import count, joined, shorten, unique_names
from ombud.report.drawing import specification
from ombud.report.findings import key_of_metric
from ombud.report.format import estimate_text, number_text
from ombud.report.themes import MOST_COLOURS

if TYPE_CHECKING:
    from altair.typing import ChartType


MOST_LABELS = 5
"""A figure that shows one label at a time offers so many: the most common."""

MOST_USERS = 500
"""A scatter shows at most so many users of a label."""

_HINT = "On screen, another label can be chosen below the picture."
_SIDES = {"with": "with the label", "without": "without it", "unknown": "not known"}
_BINS = 20


def _figure(name: str, chart: ChartType, title: str, caption: str, alt: str) -> Figure:
    return Figure(name, specification(chart, alt), title, caption, alt)


def popularity_figure(result: Result) -> Figure | None:
    """Return how popularity is spread over items with and without a label."""
    table, means = result.tables.get("popularity-histogram"), result.tables.get("popularity-shift")
    if table is None or means is None or table.is_empty():
        return None
    labels = [w for w in common_labels(result, MOST_LABELS) if w in set(means["label"])]
    names = unique_names(labels, NAME_LENGTH)
    counted = bool((table["from"] == 0).any()) and table["to"].max() > 10  # type: ignore[operator]
    table = table.filter(pl.col("label").is_in(labels))
    totals = table.group_by("label", "status").agg(pl.col("items").sum())
    items = {(w, s): n for w, s, n in totals.iter_rows()}
    # What is unknown is drawn only for labels that have nothing else to be compared with.
    compared = {w: ("with", "without" if items.get((w, "without")) else "unknown") for w in labels}
    values: list[dict[str, Any]] = []
    ends: dict[tuple[str, str], dict[str, Any]] = {}
    for row in table.iter_rows(named=True):
        w, side = row["label"], row["status"]
        if side not in compared[w] or not items.get((w, side)):
            continue
        point: dict[str, Any] = {"pick": names[w], "side": _SIDES[side]}
        point |= {"x": float(f"{row['from']:.4g}"), "share": float(f"{row['share']:.4g}")}
        values.append(point)
        ends[w, side] = point | {"x": float(f"{row['to']:.4g}")}
    values += ends.values()
    for row in means.filter(pl.col("label").is_in(labels)).iter_rows(named=True):
        for side in ("with", "without"):
            if row[f"mean_{side}"] is not None:
                mean = float(f"{row[f'mean_{side}']:.4g}")
                about = {"pick": names[row["label"]], "side": _SIDES[side]}
                values.append(about | {"mean": mean, "text": number_text(mean, 2)})
    if not values:
        return None
    sides = [s for s in _SIDES.values() if any(v["side"] == s for v in values)]
    what = "interactions" if counted else "mean rating"
    ticks = [0, *(m * 10**e for e in range(7) for m in (1, 3))] if counted else []
    chart = histogram_chart(
        values,
        sides,
        x_title=f"{what} of an item",
        pick=([names[w] for w in labels], "Label"),
        ticks=[t for t in ticks if t <= float(table["to"].max() or 0)],  # type: ignore[arg-type]
    )
    first = means.filter(pl.col("label") == labels[0]).row(0, named=True)
    other = compared[labels[0]][1]
    alt = (
        f"Outlines of two histograms of the {what} of items: {items.get((labels[0], 'with'), 0):,} "
        f"with {shorten(labels[0], NAME_LENGTH)}, {items.get((labels[0], other), 0):,} "
        f"{'without it' if other == 'without' else 'of which it is not known'}."
    )
    if first["mean_with"] is not None and first["mean_without"] is not None:
        alt += f" The means are {first['mean_with']:.2f} and {first['mean_without']:.2f}."
    caption = (
        f"Shown first: {shorten(labels[0], NAME_LENGTH)}, the most common label. Each outline is "
        f"100% of its items; upright lines are means. {_HINT}"
    )
    if any(side[1] == "unknown" for side in compared.values()):
        caption += " Where no item is known to be without a label, the others are those not known."
    title = "Popularity of items with and without a label"
    return _figure("warnings-popularity", chart, title, caption, alt)


def activity_figures(result: Result) -> list[Figure]:
    """Return how active users and how popular items are, and how items are rated."""
    table = result.tables.get("activity-histogram")
    if table is None or table.is_empty():
        return []
    kinds = list(dict.fromkeys(table["what"]))
    rated = [kind for kind in kinds if kind == "mean rating of an item"]
    counted = [kind for kind in kinds if kind not in rated]
    return [
        _outlines(table, some, name, title, x_title, bool(some is counted))
        for some, name, title, x_title in (
            (counted, "warnings-activity", "Activity of users, popularity of items", "number"),
            (rated, "warnings-ratings", "Mean rating of an item", "mean rating"),
        )
        if some
    ]


def _outlines(
    table: pl.DataFrame, kinds: Sequence[str], name: str, title: str, x_title: str, counted: bool
) -> Figure:
    values: list[dict[str, Any]] = []
    for kind in kinds:
        rows = table.filter(pl.col("what") == kind).to_dicts()
        for row in rows:
            at = {"x": float(f"{row['from']:.4g}"), "share": float(f"{row['share']:.4g}")}
            values.append({"side": kind, **at})
        values.append({**values[-1], "x": float(f"{rows[-1]['to']:.4g}")})
    top = max(v["x"] for v in values)
    ticks = [0, *(m * 10**e for e in range(8) for m in (1, 3))] if counted else []
    spec = histogram_chart(
        values,
        kinds,
        x_title=x_title,
        pick=None,
        ticks=[t for t in ticks if t <= top],
        y_title="share",
    )
    totals = {k: int(table.filter(pl.col("what") == k)["count"].sum()) for k in kinds}
    told = "; ".join(f"{kind}: {n:,} counted" for kind, n in totals.items())
    caption = f"Each outline is 100%. {told[0].upper()}{told[1:]}."
    if counted:
        caption += " The axis grows like a logarithm."
    return _figure(name, spec, title, caption, f"Outlines of histograms. {told}.")


def preference_figure(result: Result) -> Figure | None:
    """Return what each user gives items with and without a label, one point for each user."""
    table = result.tables.get("user-preference-users")
    summary = result.tables.get("user-preference")
    if table is None or summary is None or table.is_empty():
        return None
    there = set(table["label"].unique())
    labels = [w for w in common_labels(result, 40) if w in there][:MOST_LABELS]
    if not labels:
        return None
    names = unique_names(labels, NAME_LENGTH)
    text = _preferred(summary.filter(pl.col("label") == labels[0]).row(0, named=True))
    pick = ([names[w] for w in labels], "Label")
    alt = f"{shorten(labels[0], NAME_LENGTH)}: {text}."
    shown = f"Shown first: {shorten(labels[0], NAME_LENGTH)}. {alt} {_HINT}"
    implicit = bool(((table["with"] + table["without"] - 1).abs() < 1e-4).all())
    if implicit:
        values = [
            row for w in labels for row in _share_bins(table.filter(pl.col("label") == w), names[w])
        ]
        chart = share_chart(values, x_title="share of a user's interactions", pick=pick)
        title = "How much of each user's history has the label"
        caption = f"The dashed line marks as much with the label as without it. {shown}"
        return _figure("warnings-users", chart, title, caption, alt)
    values = []
    cut = False
    for w in labels:
        some = table.filter(pl.col("label") == w)
        cut |= some.height > MOST_USERS
        some = some.gather_every(max(1, -(-some.height // MOST_USERS)))
        values += [
            {"pick": names[w], "x": round(x, 2), "y": round(y, 2)}
            for x, y in some.select("without", "with").iter_rows()
        ]
    span = (
        float(np.floor(min(min(v["x"], v["y"]) for v in values) * 2) / 2),
        float(np.ceil(max(max(v["x"], v["y"]) for v in values) * 2) / 2),
    )
    chart = scatter_chart(
        values,
        span,
        titles=("mean rating of items without the label", "mean rating of items with it"),
        corners=("rates it higher", "rates it lower"),
        pick=pick,
    )
    caption = f"Each point is a user; on the dashed line both means are equal. {shown}"
    if cut:
        caption += f" At most {MOST_USERS} users are drawn; the numbers are of all sampled users."
    title = "Each user's mean rating with and without a label"
    return _figure("warnings-users", chart, title, caption, alt)


def _preferred(row: dict[str, Any]) -> str:
    return (
        f"{row['higher']:,} of {row['users']:,} users lie higher with it than without, "
        f"{row['lower']:,} lower, {row['same']:,} the same"
    )


def _share_bins(table: pl.DataFrame, name: str) -> list[dict[str, Any]]:
    users, edges = np.histogram(table["with"].to_numpy(), bins=_BINS, range=(0, 1))
    return [
        {
            "pick": name,
            "low": round(float(low), 4),
            "high": round(float(high), 4),
            "users": int(n),
            "text": f"{low:.0%} to {high:.0%}",
        }
        for n, low, high in zip(users, edges[:-1], edges[1:], strict=True)
        if n
    ]


def spread_figure(result: Result, *, by_label: bool) -> Figure | None:
    """Return how amplification is spread over users, for each system.

    Parameters
    ----------
    result
        What an audit found.
    by_label
        One label at a time, chosen by the reader; otherwise, users' averages over labels.
    """
    infos = amplification_infos(result, "amplification" if by_label else "amplification-user")
    info = infos.get("mean")
    table = None if info is None else _spread(result, info)
    if info is None or table is None:
        return None
    systems = at_systems(result, info)[:MOST_COLOURS]
    there = set(table["label"])
    labels = [w for w in common_labels(result, 40) if w in there][:MOST_LABELS]
    labels = labels if by_label else [""]
    if not labels:
        return None
    shown, names = unique_names(systems, NAME_LENGTH), unique_names(labels, NAME_LENGTH)
    values: list[dict[str, Any]] = []
    for w in labels:
        part = table.filter((pl.col("label") == w) & pl.col("system").is_in(systems))
        about = {"pick": names[w]} if by_label else {}
        values += [about | row for row in _ridges(part, systems, shown)]
        right = float(part["from"].max() or 0.0)  # type: ignore[arg-type]
        values += [about | row for row in _marks(result, infos, systems, shown, w, right)]
    pick = ([names[w] for w in labels], "Label") if by_label else None
    x_title = info.title + (" of a user" if by_label else ", a user's mean over labels")
    chart = ridge_chart(values, [shown[s] for s in systems], x_title=x_title, pick=pick)
    first = [e for s in systems if (e := level(result, info, s, labels[0])) is not None]
    alt = f"A histogram of users for each of {count(len(systems), 'system')}. Means: "
    alt += joined([f"{shorten(e.system, NAME_LENGTH)} {estimate_text(e)}" for e in first]) + "."
    caption = (
        "The dashed line marks 0: lists hold as much as the history. Heights are shares of users, "
        "each system to its own scale. The last bar also holds everything beyond it."
    )
    if by_label:
        caption += f" Shown first: {shorten(labels[0], NAME_LENGTH)}. {_HINT}"
    name = "warnings-spread-labels" if by_label else "warnings-spread"
    what = "one label at a time" if by_label else "users' averages over labels"
    return _figure(name, chart, f"Amplification over users: {what}", caption, alt)


def _spread(result: Result, info: MetricInfo) -> pl.DataFrame | None:
    for table in result.tables.values():
        there = {"key", "units", "share"} <= set(table.columns) and table.height
        if there and table["key"][0] == key_of_metric(info):
            return table
    return None


def _ridges(
    table: pl.DataFrame, systems: Sequence[str], shown: dict[str, str]
) -> list[dict[str, Any]]:
    ground = {s: len(systems) - 1 - i for i, s in enumerate(systems)}
    width = float((table["to"] - table["from"]).drop_nulls().median() or 0.1)  # type: ignore[arg-type]
    peaks = dict(table.group_by("system").agg(pl.col("share").max()).iter_rows())
    rows = []
    for row in table.filter(pl.col("units") > 0).iter_rows(named=True):
        low, high, system = row["from"], row["to"], row["system"]
        text = f"{number_text(low, 2)} and more"
        if high is not None:
            text = f"{number_text(low, 2)} to {number_text(high, 2)}"
        top = ground[system] + 0.9 * row["share"] / peaks[system]
        rows.append(
            {
                "system": shown[system],
                "low": float(f"{low:.5g}"),
                "high": float(f"{low + width if high is None else high:.5g}"),
                "bottom": ground[system],
                "top": round(top, 3),
                "range": text,
                "users": f"{row['units']:,} ({row['share']:.1%})",
            }
        )
    return rows


def _marks(
    result: Result,
    infos: dict[str, Any],
    systems: Sequence[str],
    shown: dict[str, str],
    label: str,
    right: float,
) -> list[dict[str, Any]]:
    """Return a mark at the mean and at the median of each system."""
    rows = []
    for i, system in enumerate(systems):
        for kind, up in (("mean", 0.18), ("median", 0.06)):
            e = level(result, infos[kind], system, label) if kind in infos else None
            if e is not None and e.value is not None:
                at = float(f"{min(e.value, right):.5g}")
                about = {"system": shown[system], "kind": kind, "text": estimate_text(e)}
                rows.append(about | {"at": at, "height": round(len(systems) - 1 - i + up, 2)})
    return rows


def tradeoff_figure(result: Result) -> Figure | None:
    """Return amplification against accuracy, one point for each system."""
    accuracy = chief_accuracy(result)
    infos = amplification_infos(result, "amplification-user")
    forms = [form for form in FORMS if form in infos]
    if accuracy is None or not forms:
        return None
    systems = at_systems(result, infos[forms[0]])[:MOST_COLOURS]
    names = unique_names(systems, NAME_LENGTH)
    values, drawn = [], []
    for form in forms:
        for system in systems:
            x = level(result, accuracy, system)
            y = level(result, infos[form], system)
            if x is None or y is None or x.value is None or y.value is None:
                continue
            row: dict[str, Any] = {"pick": FORMS[form], "system": names[system]}
            for axis, e in (("x", x), ("y", y)):
                assert e.value is not None  # looked at above
                row |= {axis: float(f"{e.value:.5g}"), f"text_{axis}": estimate_text(e)}
                if e.interval is not None:
                    low, high = (float(f"{end:.5g}") for end in e.interval)
                    row |= {f"{axis}_low": low, f"{axis}_high": high}
            values.append(row)
            if form == forms[0]:
                drawn.append(f"{names[system]}: {row['text_x']} and {row['text_y']}")
    if len(drawn) < 2:
        return None
    pick = ([FORMS[form] for form in forms], "Form") if len(forms) > 1 else None
    y_title = "amplification, users' average"
    chart = tradeoff_chart(
        values, [names[s] for s in systems], titles=(accuracy.title, y_title), pick=pick
    )
    alt = f"{accuracy.title} and amplification of each system. {joined(drawn)}."
    caption = (
        "Further right: more of what users went on to like is in the list. Above the dashed line: "
        "more of the labels than in their history. Lines are intervals."
    )
    if pick is not None:
        caption += f" Shown first: the {FORMS[forms[0]]}; another form can be chosen below."
    title = "Amplification against accuracy"
    return _figure("warnings-tradeoff", chart, title, caption, alt)
