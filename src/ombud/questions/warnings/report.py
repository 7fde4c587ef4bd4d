"""Warnings: do recommendations hold more content with warnings than users' own histories?"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import polars as pl

from ombud.questions.warnings.reruns import EVERYONE, SECOND
from ombud.questions.warnings.tables import (
    SHIFT,
    TABLE_1,
    TABLE_2,
    accuracy_keys,
    common_labels,
    small_p_values,
)
from ombud.registry import question
from ombud.report import charts
from ombud.report.context import Context, Role, Select
from ombud.report.display import joined, shorten
from ombud.report.model import Block, Cell, Chart, Column, Table, Text, status_of
from ombud.report.numbers import COUNT, DIFFERENCE, POINTS, RELATIVE, SCORE, SHARE, Scale, percent
from ombud.report.question import Phrase, Question
from ombud.report.show import (
    MARKS,
    Alert,
    Custom,
    Detail,
    Grid,
    Listing,
    Matrix,
    Notes,
    Say,
    Stored,
    estimate_table,
    part,
    under,
    value_cell,
)
from ombud.stats.estimate import Estimate

_LARGE = 0.1
_MOST_LABELS = 3
_MOST_ROWS = 30
_RERANKERS = frozenset({"avoid-list", "calibrated"})
_ACCURACY = ("recall", "ndcg", "hit-rate", "mrr", "f1", "precision", "rmse", "mae")
_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)

# -- What was measured, by name. The reading of unlabeled items that the plan declares comes first.


def _amplified(*roles: Role, by_label: bool = False, **options: str) -> Select:
    return Select("amplification" if by_label else "amplification-user", roles, options)


USERS = _amplified("overall", form="ratio-of-means")
LABELS = _amplified("overall", by_label=True, form="ratio-of-means")
GROUPS = _amplified("group", form="ratio-of-means")
CONTRASTS = _amplified("contrast", form="ratio-of-means")
SPREADS = _amplified("spread", form="ratio-of-means")
SYSTEMS = _amplified("systems", form="ratio-of-means")
LABEL_GROUPS = _amplified("group", by_label=True, form="ratio-of-means")
MEAN = _amplified("overall", form="mean")
LABEL_MEAN = _amplified("overall", by_label=True, form="mean")
PAPER = _amplified("overall", form="mean", unknown="no")
BOUNDS = tuple(_amplified("overall", unknown=bound) for bound in ("lowest", "highest"))
AVERAGES = {
    "Ratio of means": USERS,
    "Mean ratio": MEAN,
    "Median ratio": _amplified("overall", form="median"),
    "Mean ratio, unlabeled as no": PAPER,
    "Lowest possible": BOUNDS[0],
    "Highest possible": BOUNDS[1],
}
LABEL_AVERAGES = (
    ("Mean of users\u2019 ratios, for each label.", LABEL_MEAN, RELATIVE),
    ("Median of users\u2019 ratios, for each label.",
     _amplified("overall", by_label=True, form="median"), RELATIVE),
    ("Mean of users\u2019 ratios, unlabeled items as no, for each label.",
     _amplified("overall", by_label=True, form="mean", unknown="no"), RELATIVE),
    ("Mean logarithm of users\u2019 ratios.", _amplified("overall", form="log-ratio"), DIFFERENCE),
    ("Mean logarithm of users\u2019 ratios, for each label.",
     _amplified("overall", by_label=True, form="log-ratio"), DIFFERENCE),
)  # fmt: skip
DELTA = Select("popularity-shift/cliffs-delta", exact=True)
HIGHER, LOWER, SAME, PREFERENCE = (
    Select(f"user-preference/{name}", exact=True)
    for name in ("higher", "lower", "same", "difference")
)
OTHERS = (
    "amplification", f"{SECOND}/", f"{EVERYONE}/", "avoid-leak", "label-disagreement/recommended",
    *_ACCURACY,
)  # fmt: skip
"""What is compared between groups and systems in the table of all numbers alone."""


def _level(context: Context, select: Select, system: str) -> Estimate | None:
    """Return the value of a system over all users and labels."""
    return next((e for e in context.find(select) if e.system == system), None)


def _overall(context: Context, *prefixes: str) -> list[Estimate]:
    """Return the values over all users of what was measured under some keys."""
    found = context.find(*under(*prefixes)(context))
    return [e for e in found if e.kind == "level" and not e.group]


def _accuracy(context: Context) -> list[Select]:
    """Return every measure of accuracy, recall first: the summary has that of rerankers."""
    infos = [i for i in context.result.metrics if i.spec.get("name") in _ACCURACY]
    infos.sort(key=lambda i: _ACCURACY.index(i.spec["name"]))
    found = [i.key or i.title for i in infos]
    if not found:  # systems were trained again for accuracy
        measured = accuracy_keys(context)
        found = [measured[p] for p in sorted(measured, key=lambda p: (_ACCURACY.index(p[0]), p[1]))]
    return [Select(key, ("overall",), exact=True) for key in found]


def _base(context: Context, system: str) -> str | None:
    """Return the system that a reranker was put around, if it was measured too."""
    plan = context.result.plan.systems
    config = plan.get(system, {})
    if config.get("type") not in _RERANKERS:
        return None
    return next((n for n, o in plan.items() if n != system and o == config.get("inner")), None)


def _paired(context: Context, select: Select, system: str, base: str) -> Estimate | None:
    """Return the difference of two systems on the same users, the first minus the second."""
    for e in context.find(select):
        if e.label or {e.system, e.against} != {system, base}:
            continue
        if e.system == system or e.value is None:
            return e
        ends = None if e.interval is None else (-e.interval[1], -e.interval[0])
        return e.replace(system=system, against=base, value=-e.value, interval=ends)
    return None


def _audited_first(context: Context, found: Iterable[Estimate]) -> list[Estimate]:
    """Return estimates of audited systems, then those of baselines."""
    return sorted(found, key=lambda e: context.is_reference(e.system))


def _title(context: Context, select: Select) -> str:
    title = context.titles.get(select.metric, select.metric)
    return title[0].upper() + title[1:]


def _system(context: Context, key: str) -> str:
    return shorten(str(context.names.system(key)), 40)


def _label(context: Context, key: str) -> str:
    return shorten(str(context.names.label(key)), 40)


# -- Sentences.


def _per_hundred(e: Estimate) -> tuple[float | None, float | None]:
    """Return warnings per recommended item, and per item of histories."""
    shares, labels = _shares(e), e.details.get("labels")
    if labels is None or shares[0] is None or shares[1] is None:
        return None, None
    return labels * shares[0], labels * shares[1]


def _shares(e: Estimate) -> tuple[float | None, float | None]:
    return e.details.get("list"), e.details.get("history")


def published(context: Context, system: str) -> Estimate | None:
    """Return the paper's mean of ratios where it is not printed as the ratio of means is.

    None where both are alike, or when one was not measured.
    """
    chief = _level(context, USERS, system)
    paper = _level(context, PAPER, system) or _level(context, MEAN, system)
    if chief is None or paper is None or chief.value is None or paper.value is None:
        return None
    return paper if RELATIVE.number(chief.value) != RELATIVE.number(paper.value) else None


def _paper(e: Estimate, context: Context) -> str:
    """Return both statistics for one sentence, where the paper's differs from ours."""
    other = published(context, e.system)
    if other is None or other.value is None or e.value is None:
        return ""
    own, theirs = RELATIVE.number(e.value), RELATIVE.number(other.value)
    return f": {own} by the ratio of means, {theirs} by the published mean of users\u2019 ratios"


def _papers(context: Context) -> Text | None:
    """Give the paper's mean of ratios for systems that have no finding."""
    pairs = [
        (e.value, other.value, _system(context, e.system))
        for e in context.find(USERS)
        if status_of(e) != "increase" and not context.is_reference(e.system)
        and (other := published(context, e.system)) is not None
    ]  # fmt: skip
    if not pairs:
        return None
    here = _ends([own or 0.0 for own, _, _ in pairs])
    there = _ends([paper or 0.0 for _, paper, _ in pairs])
    return (
        f"With all warnings combined, the difference from histories is {here} by the ratio of "
        f"means, and {there} by the mean of users\u2019 own ratios, as published "
        f"({joined([system for *_, system in pairs])}).",
    )


def _ends(values: Sequence[float]) -> str:
    """Return the smallest and the largest value, once where they are printed alike."""
    return " to ".join(dict.fromkeys(map(RELATIVE.number, (min(values), max(values)))))


def _unknown(context: Context) -> Text | None:
    for e in context.find(Select("distribution/label-density")):
        share = e.details.get("unknown_share")
        if isinstance(share, float) and share >= _LARGE:
            return (f"{percent(share)} of item-label pairs are unlabeled.",)
    return None


def _labels(context: Context) -> Text:
    return ("Wrong labels could change it, and so could people who are not in the data.",)


def _short_lists(context: Context) -> Sequence[Text]:
    """Say which systems recommend fewer items than were to be counted."""
    cut = [e for e in context.find(USERS, MEAN) if e.details.get("shorter_lists")]
    longest = {e.system: e.details["longest_list"] for e in cut}
    if not cut:
        return ()
    said = [f"{_system(context, s)} (at most {n:,})" for s, n in longest.items()]
    return (
        (
            f"The audit counts {cut[0].details['places_looked_at']:,} recommendations per user. "
            f"These systems gave fewer, although items were left: {joined(said)}. Shares refer to "
            "what they recommended.",
        ),
    )


def _smoothed(context: Context) -> Text | None:
    """Say how much of the mean and the median comes from smoothing."""
    told = [(e.details.get("smoothed_histories"), e.details.get("pairs")) for e in
            context.find(MEAN)]  # fmt: skip
    shares = [some / of for some, of in told if some is not None and of]
    if not shares or max(shares) < _LARGE:
        return None
    return (
        f"For up to {percent(max(shares))} of all pairs of a user and a label, the history "
        "contains nothing with the label, and smoothing alone gives the share that lists are "
        "compared with. Such a pair is \u2212100% if the list contains nothing either, and very "
        "large if it contains one item. They dominate the mean and the median, but not the ratio "
        "of means.",
    )


def _bounds(context: Context) -> Text | None:
    """Say how far unlabeled items could move the answer of one system."""
    ends: dict[str, tuple[float, float]] = {}
    for low in context.find(BOUNDS[0]):
        high = _level(context, BOUNDS[1], low.system)
        if high is not None and high.value is not None and low.value is not None:
            ends[low.system] = (low.value, high.value)
    ends = {system: pair for system, pair in ends.items() if pair[1] > pair[0]}
    if not ends:
        return None
    # One system at a time: what lies between two systems is no uncertainty of either.
    widest = max(ends, key=lambda system: ends[system][1] - ends[system][0])
    lowest, highest = (RELATIVE.number(end) for end in ends[widest])
    more = ", the widest range" if len(ends) > 1 else ""
    return (
        "If unlabeled items could carry anything, the ratio of means of ",
        context.names.system(widest),
        f" could be anywhere from {lowest} to {highest}{more}.",
    )


def _elsewhere(context: Context) -> Text:
    return (
        "For every other measure, comparisons between groups and between systems are in the table "
        "of all numbers at the end of this page: choose the measure there. So are other averages "
        f"of each label, where there are more than {_MOST_ROWS} labels.",
    )


# -- Tables and charts of this question alone.


def _all_content(context: Context) -> Iterable[Block]:
    """Show all warnings combined, then each label, on one axis."""
    if found := (*context.find(USERS), *context.find(LABELS)):
        yield estimate_table(
            found, context, name="warnings-content", rows=("label",), scale=RELATIVE, ordered=True,
            caption="Warnings in recommendations relative to the same users\u2019 histories: "
            f"+50% is half as much again, \u2212100% none. {MARKS}",
            reference=("In histories", lambda e: e.details.get("history") if e.label else None),
        )  # fmt: skip


def _averages(context: Context) -> Iterable[Block]:
    """Show the same comparison by other averages, other readings and after retraining."""
    found = [
        e.replace(metric=title, null=None if select in BOUNDS else e.null)
        for title, select in AVERAGES.items()
        for e in context.find(select)
        if select is not PAPER or context.key(PAPER) != context.key(MEAN)
    ]
    names = {context.key(select): title for title, select in AVERAGES.items()}
    again = list(_overall(context, f"{SECOND}/amplification-user"))
    found += [
        e.replace(metric=f"{names.get(e.key.removeprefix(f'{SECOND}/'), e.metric)}, retrained")
        for e in again
    ]
    retrained = " Retrained: on held-out interactions too." if again else ""
    if found := _audited_first(context, found):
        yield estimate_table(
            found, context, name="warnings-averages", rows=("system",), columns="metric",
            scale=RELATIVE, ordered=True,
            caption="All warnings in recommendations relative to histories, by how many users "
            "become one number. Unlabeled as no: the definition of the paper. Lowest and highest "
            f"possible: whatever unlabeled items carry.{retrained}",
        )  # fmt: skip


def _label_averages(context: Context) -> Iterable[Block]:
    """Show other averages for each label; those of many labels are in the table of all numbers."""
    for caption, select, scale in LABEL_AVERAGES:
        if len({e.label for e in context.find(select)}) <= _MOST_ROWS:
            matrix = Matrix(select, caption, scale, rows=("label",), folded=True)
            yield from matrix.blocks(context)


def _chief_accuracy(context: Context) -> Iterable[Block]:
    """Show the accuracy that warnings are set against, by system."""
    if found := _audited_first(context, context.find(*_accuracy(context)[:1])):
        yield estimate_table(
            found, context, name="warnings-accuracy", rows=("system",), columns="metric",
            caption="Accuracy on held-out interactions, with confidence intervals.",
            scale=SCORE, ordered=True,
        )  # fmt: skip


def _every_accuracy(context: Context) -> Iterable[Block]:
    """Show every measure of accuracy, of everyone and of retrained systems too."""
    found = context.find(*_accuracy(context))
    others = _overall(context, f"{EVERYONE}/", f"{SECOND}/rmse")
    if found := (*found, *(e for e in others if e not in found)):
        yield estimate_table(
            found, context, name="warnings-accuracies", rows=("metric",), scale=SCORE,
            caption="Every measure of accuracy. Retrained systems have seen the ratings that their "
            "RMSE is measured on.", ordered=True,
        )  # fmt: skip


def _reranked(context: Context) -> Iterable[Block]:
    """Show what each reranker changed, on the same users as the system inside it."""
    result, notes = context.result, Notes()
    chief = [Select(s.metric, ("systems",), exact=True) for s in _accuracy(context)[:1]]
    leaks = {(e.key, e.system): e for e in _overall(context, "avoid-leak")}
    rows = []
    for system in result.systems:
        base = _base(context, system)
        if base is None:
            continue
        changes = [(_paired(context, SYSTEMS, system, base), POINTS)]
        changes += [(_paired(context, s, system, base), DIFFERENCE) for s in chief]
        cells = [Cell(_system(context, system)), *(value_cell(e, s, notes) for e, s in changes)]
        if result.plan.systems[system].get("type") != "avoid-list":
            rows.append((*cells, *(Cell("") for _ in range(4))))
            continue
        key = next((key for key, name in leaks if name == system and (key, base) in leaks), "")
        both = [leaks.get((key, name)) for name in (base, system)]
        cells += [value_cell(e, SHARE, notes) if e else Cell("not measured") for e in both]
        for how in ("shortened", "emptied"):
            lost = [e for e in result.exclusions if e.key == f"avoid-list/{how}"]
            number = sum(e.count for e in lost if e.system == system)
            cells.append(Cell(f"{number:,}", value=float(number)))
        rows.append(tuple(cells))
    if rows:
        heads = ["Warnings, change", *(f"{_title(context, s)}, change" for s in chief)]
        heads += ["Avoided, before", "after", "Lists cut", "emptied"]
        caption = (
            "Each reranker compared with the same system without it, on the same users. Warnings: "
            "change of the difference from histories, in percentage points. Avoided: share of "
            "recommendations that carry what users avoid. An emptied list has zero accuracy."
        )
        columns = (Column("Reranker"), *(Column(head, True) for head in heads))
        yield Table("warnings-rerankers", caption, columns, tuple(rows), notes=notes.lines)


def _tradeoff(context: Context) -> Iterable[Block]:
    """Draw accuracy against warnings, one dot for each system."""
    dots: list[charts.Dot] = []
    chief = _accuracy(context)[:1]
    for y in context.find(USERS)[: charts.MOST] if chief else ():
        x = _level(context, chief[0], y.system)
        if x is None or x.value is None or y.value is None:
            continue
        name = _system(context, y.system)
        said = f"{name}: {x.metric} {SCORE.number(x.value)}, {RELATIVE.number(y.value)} warnings"
        span = None if y.interval is None else (100 * y.interval[0], 100 * y.interval[1])
        dots.append(charts.Dot(name, x.value, 100 * y.value, x.interval, span, said))
    if len(dots) < 2:
        return
    x_axis = _range([end for d in dots for end in (d.x_span or (d.x,))])
    y_axis = _range([0.0, *(end for d in dots for end in (d.y_span or (d.y,)))])
    title = _title(context, chief[0])
    said = f"{title} and warnings of {len(dots)} systems"
    panel = charts.plane(
        "", dots, x=(title, *x_axis), y=("warnings vs histories, %", *y_axis), said=said,
        nulls=(None, 0.0),
    )  # fmt: skip
    caption = (
        "To the right: more accurate. Above the dashed line: more warnings than in histories. "
        "Lines are confidence intervals."
    )
    yield Chart("warnings-tradeoff", "Warnings and accuracy", caption, said, (panel,))


def _range(values: Sequence[float]) -> tuple[float, float]:
    room = 0.05 * ((max(values) - min(values)) or 1.0)
    return min(values) - room, max(values) + room


def _spread(context: Context) -> Iterable[Block]:
    """Draw how users are spread, for all labels combined and for the most common ones."""
    panels: dict[str, dict[str, tuple[float, ...]]] = {}
    for select, labels in ((MEAN, [""]), (LABEL_MEAN, common_labels(context, _MOST_LABELS))):
        key = context.key(select)
        for table in context.result.tables.values():
            if {"key", "units", "to"} <= set(table.columns) and table["key"][:1].to_list() == [key]:
                for label in labels:
                    some = table.filter(pl.col("label") == label)
                    panels[_label(context, label)] = {
                        _system(context, str(system)): _binned(rows)
                        for (system,), rows in some.group_by("system", maintain_order=True)
                        if rows["units"].sum()  # else no user of it has a value
                    }
    if shown := {name: rows for name, rows in panels.items() if rows}:
        caption = (
            "Dots are medians over users, thick lines the middle half, thin lines the middle 90%, "
            "to the precision of the stored histogram. Dashed: as much as in the user\u2019s own "
            "history."
        )
        title = "How users are spread"
        drawn = charts.spread(shown, RELATIVE, "relative to the user\u2019s own history", 0.0)
        yield Chart("warnings-spread", title, caption, title, drawn)


def _binned(rows: pl.DataFrame) -> tuple[float, ...]:
    """Return quantiles of a histogram: where a bin is reached, the place within it."""
    bins = rows.select("from", "to", "units").rows()
    whole, found = sum(units for _, _, units in bins), []
    for quantile in _QUANTILES:
        left = quantile * whole
        for low, high, units in bins:
            if units and left <= units:
                found.append(low if high is None else low + (high - low) * left / units)
                break
            left -= units
    return tuple(found)


def _preferred(context: Context) -> Iterable[Block]:
    """Draw how users rate items with a label compared with those without, or meet them."""
    table = context.table("user-preference-users")
    if table is None or not table.height:
        return
    rated = any(e.details.get("explicit") for e in context.find(PREFERENCE))
    value = pl.col("with") - pl.col("without") if rated else pl.col("with")
    rows: dict[str, tuple[float, ...]] = {}
    for label in common_labels(context, 3 * _MOST_LABELS):
        series = table.filter(pl.col("label") == label).select(value).to_series()
        if len(series):
            rows[_label(context, label)] = tuple(
                float(series.quantile(q, "linear") or 0.0) for q in _QUANTILES
            )
    title = (
        "Each user\u2019s mean rating of items with the label, minus items without it"
        if rated
        else "Share of each user\u2019s interactions with items that carry the label"
    )
    if rows:
        caption = (
            "Dots are medians over users, thick lines the middle half, thin lines the middle 90%."
        )
        axis, scale = ("difference in rating", DIFFERENCE) if rated else ("share", SHARE)
        drawn = charts.spread({"The most common labels": rows}, scale, axis, 0.0 if rated else 0.5)
        yield Chart("warnings-preference", title, caption, title, drawn)


def _each_user(context: Context) -> Iterable[Block]:
    """Draw every sampled user, by items with a label and items without it, with the diagonal."""
    table = context.table("user-preference-users")
    if table is None or not table.height:
        return
    counted = "interactions_with" in table.columns
    ends = ("interactions_without", "interactions_with") if counted else ("without", "with")
    what = "interactions" if counted else "mean rating"
    panels = []
    for label in common_labels(context, _MOST_LABELS):
        points = table.filter(pl.col("label") == label).select(ends).rows()
        if points:
            # One axis for both sides, so that the diagonal is where they are equal.
            low, high = _range([float(value) for point in points for value in point])
            x, y = ((f"{what}, {side} the label", low, high) for side in ("without", "with"))
            cloud = charts.Line("users", points, cloud=True)
            panels.append(charts.plane(_label(context, label), [cloud], x=x, y=y, equal=True))
    if panels:
        title = f"Each user\u2019s {what} with and without a label"
        caption = (
            "Figure 3 of Kovacs et al.: a dot for each sampled user. Above the dashed line, users "
            f"{'have more interactions with' if counted else 'rate higher'} items that carry the "
            "label; below it, the others. The table has both shares: the text and the caption of "
            "the paper name opposite directions."
        )
        yield Chart("warnings-users", title, caption, title, tuple(panels), single_users=True)


def _outline(rows: Sequence[Mapping[str, Any]], name: str, log: bool) -> charts.Line:
    """Return a histogram as a line of steps."""
    points = [(_at(row["from"], log), row["share"]) for row in rows]
    return charts.Line(name, [*points, (_at(rows[-1]["to"], log), 0.0)], steps=True)


def _at(value: float, log: bool) -> float:
    return math.log10(1 + value) if log else value


def _histogram(title: str, lines: Sequence[charts.Line], what: str, log: bool, of: str) -> str:
    ends = [x for line in lines for x, _ in line.points]
    most = max(y for line in lines for _, y in line.points)
    x = (f"{what}, log10(1 + n)" if log else what, min(ends), max(ends))
    return charts.plane(title, lines, x=x, y=(f"share of {of}", 0.0, most))


def _popularity(context: Context) -> Iterable[Block]:
    """Draw the popularity of items with and without each of the most common labels."""
    log = any(e.details.get("popularity") == "interactions" for e in context.find(SHIFT))
    panels = []
    for label in common_labels(context, _MOST_LABELS):
        sides = {
            side: context.rows("popularity-histogram", label=label, status=side)
            for side in ("with", "without", "unknown")
        }
        there = [side for side, rows in sides.items() if sum(row["items"] for row in rows)]
        # Unlabeled items are drawn only for labels that no item is known to be without.
        names = {"with": "with the label", "without": "without it", "unknown": "unlabeled"}
        drawn = [side for side in there if side != "unknown" or "without" not in there]
        if lines := [_outline(sides[side], names[side], log) for side in drawn]:
            what = "interactions of an item" if log else "mean rating of an item"
            panels.append(_histogram(_label(context, label), lines, what, log, "items"))
    if panels:
        title = "Popularity of items with and without a label"
        caption = "The most common labels. Each outline adds up to 100% of its items."
        yield Chart("warnings-popularity", title, caption, title, tuple(panels))


def _activity(context: Context) -> Iterable[Block]:
    """Draw how active users and how popular items are."""
    table = context.table("activity-histogram")
    if table is None or not table.height:
        return
    panels = []
    for (what,), rows in table.group_by("what", maintain_order=True):
        log = what != "mean rating of an item"
        of = "users" if what == "interactions of a user" else "items"
        line = _outline(rows.to_dicts(), str(what), log)
        panels.append(_histogram(f"{what}: {rows['count'].sum():,} {of}", [line], str(what), log,
                                 of))  # fmt: skip
    title = "Activity of users and popularity of items"
    yield Chart("warnings-activity", title, "Each outline adds up to 100%.", title, tuple(panels))


SHIFTS: dict[str, tuple[str, Scale | None]] = {
    "label": ("Label", None),
    "with": ("Items with it", COUNT),
    "without": ("without it", COUNT),
    "unknown": ("unlabeled", COUNT),
    "mean_with": ("Mean with it", SCORE),
    "mean_without": ("without it", SCORE),
    "difference_if_unknown_no": ("Difference if unlabeled is no", DIFFERENCE),
    "difference_if_unknown_yes": ("if unlabeled is yes", DIFFERENCE),
    "least_difference": ("Lowest possible", DIFFERENCE),
    "greatest_difference": ("Highest possible", DIFFERENCE),
}
STATES: dict[str, tuple[str, Scale | None]] = {
    "label": ("Label", None),
    "yes": ("Items that carry it", COUNT),
    "no": ("that do not", COUNT),
    "disputed": ("Disputed", COUNT),
    "unknown": ("Unlabeled", COUNT),
}
NUMBER = ("value", "p", "n")

SECTIONS = (
    part(
        "All content",
        Alert("Shorter lists than the audit counts", _short_lists),
        Custom(_all_content, (USERS, LABELS)),
    ),
    part(
        "By group",
        Matrix(
            GROUPS,
            "All warnings in each group\u2019s recommendations relative to its own histories. "
            f"{MARKS}",
            RELATIVE,
            rows=("group",),
        ),
        Matrix(LABEL_GROUPS, "The same for each label.", RELATIVE, folded=True),
        Matrix(
            CONTRASTS,
            "Difference between each group and other users, each relative to their own histories, "
            "in percentage points. One high group makes the other groups look low, so these are "
            "not counted as findings.",
            POINTS,
            rows=("group",),
            folded=True,
        ),
        Listing(
            SPREADS,
            "Largest difference between any two groups of an attribute.",
            POINTS,
            ("system", "group", Detail("By chance", "by_chance", POINTS), *NUMBER),
            "Largest minus smallest",
            folded=True,
        ),
    ),
    part("Warnings and accuracy", Custom(_chief_accuracy), Custom(_tradeoff)),
    part("Rerankers", Custom(_reranked)),
    part(
        "Other averages and readings",
        Custom(_averages),
        Say((_smoothed, _bounds)),
        Custom(_spread),
        Custom(_label_averages),
        appendix=True,
    ),
    part(
        "Accuracy and systems compared",
        Custom(_every_accuracy),
        Listing(
            under("avoid-leak"),
            "Recommended items that carry what users avoid.",
            SHARE,
            ("metric", "system", "value", Detail("Such items", "leaks"),
             Detail("of recommended", "places"), Detail("Unlabeled", "unknown"), "n"),
            "Share",
            keep=lambda e: e.kind == "level" and not e.group,
            name="warnings-leaks",
            folded=True,
        ),
        Listing(
            SYSTEMS,
            "Difference between two systems on the same users: warnings relative to histories.",
            POINTS,
            ("system", "against", *NUMBER),
            "Difference",
            folded=True,
        ),
        Say((_elsewhere,)),
        Custom(lambda _: (), under(*OTHERS)),
        appendix=True,
    ),
    part("Tables of the published study", TABLE_1, Say((small_p_values,)), TABLE_2, appendix=True),
    part(
        "Popularity of labeled items",
        Grid(
            (("Difference in popularity", SHIFT), ("Cliff\u2019s delta", DELTA)),
            "Items with a label compared with items without it: difference in mean rating, or in "
            "interactions where there are no ratings.",
            DIFFERENCE,
            rows=("label",),
        ),
        Custom(_popularity),
        Stored("popularity-shift", "The same with counts, means and bounds for unlabeled items.",
               SHIFTS, folded=True),
        appendix=True,
    ),
    part(
        "Users\u2019 preference",
        Grid(
            (("Higher", HIGHER), ("Lower", LOWER), ("The same", SAME)),
            "Share of users who rate items with the label higher than items without it, lower, or "
            "the same; where there are no ratings, who interact with more or fewer of them.",
            SHARE,
            rows=("label",),
        ),
        Custom(_preferred),
        Custom(_each_user),
        Grid((("Mean difference", PREFERENCE),), "The mean difference over users.", DIFFERENCE,
             rows=("label",), folded=True),
        appendix=True,
    ),
    part(
        "Labels and activity",
        Listing(
            under("distribution/"),
            "Densities, counted in full.",
            SHARE,
            ("metric", "value", "n"),
            "Share",
            keep=lambda e: "density" in e.key,
            name="warnings-densities",
        ),
        Listing(
            under("distribution/"),
            "Interactions per user and per item, counted in full.",
            Scale(places=1),
            ("metric", "value", "n"),
            "Number",
            keep=lambda e: "density" not in e.key,
            name="warnings-interactions",
            folded=True,
        ),
        Stored("label-status", "Items of each label.", STATES),
        Custom(_activity),
        appendix=True,
    ),
)  # fmt: skip


@question("warnings", "amplification")
def warnings() -> Question:
    """Declare whether lists hold more warnings than histories, for each system and label."""
    return Question(
        name="warnings",
        asks="Do recommendations carry more content warnings than users\u2019 own histories?",
        family={
            USERS: Phrase(
                sentence="{system} recommends warnings at a rate of {level} items; the same "
                "users\u2019 histories contain {other} items{note}.",
                fallback="{system} recommends {size} warnings, relative to histories{note}.",
                summary="{system} recommend{s} more {objects}",
                than=" than users\u2019 histories contain",
                object="warnings overall",
                what="all warnings",
                compared=("recommendations", "own history"),
                levels=_per_hundred,
                note=_paper,
                levels_in=Scale(factor=100, places=1, suffix=" per 100"),
                scale=RELATIVE,
            ),
            LABELS: Phrase(
                sentence="{system} recommends items of which {level} carry the warning {what}, "
                "compared with {other} of those in the same users\u2019 histories.",
                fallback="{system} recommends items with the warning {what} more "
                "often than histories contain them ({size}).",
                summary="{system} recommend{s} more items labeled {objects}",
                than=" than users\u2019 histories contain",
                object="{what}",
                compared=("recommendations", "own history"),
                levels=_shares,
                levels_in=SHARE,
                scale=RELATIVE,
            ),
        },
        systems="recommender",
        yes="recommend{s} more items with some warnings than users\u2019 histories contain",
        possible="Compared with histories, warnings could still be up to {bound}.",
        changes=(_unknown, _papers, _labels),
        applies=lambda context: bool(context.find(*under("amplification")(context))),
        sections=SECTIONS,
    )
