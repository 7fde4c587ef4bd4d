"""Sections of a suppression audit: whose acceptable speech is flagged, and what to mind."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from ombud.audits.result import Result
from ombud.questions.suppression.figures import dots_figure, heat_figure, scores_figure
from ombud.questions.suppression.lookup import (
    DRIFT,
    MIGRATION,
    REGRESSIONS,
    about_groups,
    chief,
    happened,
    largest,
    undecided,
)
from ombud.registry import section
from ombud.report.blocks import (
    Block,
    Bullets,
    Cell,
    Column,
    Name,
    Note,
    Paragraph,
    Part,
    Section,
    Strong,
    Table,
    paragraph,
)
from ombud.report.display import shorten
from ombud.report.findings import (
    by_sign,
    estimates_of,
    infos_of,
    key_of_estimate,
    key_of_metric,
    reading,
)
from ombud.report.format import estimate_text, number_text
from ombud.report.tables import Notes, number_cells, p_cell
from ombud.stats.estimate import Estimate

_MANY_SYSTEMS = 3


@section("suppression")
def suppression(result: Result) -> Section | None:
    """Say which groups' acceptable texts are flagged more than all, and show it."""
    info = chief(result)
    if info is None:
        return None
    ratios = estimates_of(result, info)
    systems = tuple(dict.fromkeys(e.system for e in ratios))
    blocks: list[Block] = [Bullets(tuple(_said(result, ratios, system) for system in systems))]
    tables: list[Table] = []
    for shown, name in ((info, "suppression"), (chief(result, "scores"), "suppression-scores")):
        some = estimates_of(result, shown) if shown is not None else ()
        if not some or shown is None:
            continue
        table = f"{name}-table"
        blocks += [f for f in (dots_figure(some, name=f"{name}-dots", table=table),) if f]
        if len(systems) > _MANY_SYSTEMS:
            heat = heat_figure(some, name=f"{name}-heat", table=table)
            blocks += [heat] if heat is not None else []
        caption = f"{shown.title.capitalize()} by group and system"
        tables.append(_grid(some, table, caption, folded=shown is not info))
    pooled = infos_of(result, "pooled-suppression")
    if pooled and estimates_of(result, *pooled):
        caption = "Pooled suppression: noisy ratios drawn towards the others"
        some = estimates_of(result, *pooled)
        tables.append(_grid(some, "suppression-pooled-table", caption, folded=True))
    worst = infos_of(result, "worst-suppression", by="flags")
    found = estimates_of(result, *worst)
    if any(e.label for e in found):
        tables.append(_worst(found))
    blocks += tables
    others = (*infos_of(result, "worst-suppression"), *infos_of(result, "suppression"))
    told = frozenset(key_of_metric(one) for one in (*pooled, *others))
    title = f"Whose acceptable speech is {happened(info)} more"
    return Section(title, tuple(blocks), order=250, withholds=told)


def _worst(found: Sequence[Estimate]) -> Table:
    """Return the group that is flagged most in each data set and family, by each system."""
    systems = tuple(dict.fromkeys(e.system for e in found))
    labels = tuple(dict.fromkeys(e.label for e in found))
    at = {(e.label, e.system): e for e in found}
    columns = (Column("Texts", header=True), *(Column(shorten(s, 60)) for s in systems))
    rows = []
    for label in labels:
        cells = [Cell(label.removeprefix("set=") or "all texts")]
        for system in systems:
            e = at.get((label, system))
            if e is None or e.value is None:
                cells.append(Cell("not enough data", "undefined"))
                continue
            group = shorten(str(e.details.get("group", "")), 40)
            cells.append(Cell(f"{group}: {estimate_text(e)}", value=e.value))
        rows.append(tuple(cells))
    caption = (
        "The group flagged most, over all texts, in each data set and family (its interval allows "
        "for being the largest of several)."
    )
    return Table("suppression-worst-table", columns, tuple(rows), caption, folded=False)


def _said(result: Result, ratios: Sequence[Estimate], system: str) -> Paragraph:
    """Return what was found about one system, in words."""
    some = [e for e in ratios if e.system == system and not e.label]
    signs = by_sign(some)
    above, below = signs.get("above", ()), signs.get("below", ())
    few = signs.get("undefined", ())
    event = happened(chief(result))
    parts: list[Part] = [Name(system), ": "]
    if above:
        parts += [Strong(f"{event} more than all acceptable texts"), ": "]
        for index, e in enumerate(above):
            parts += ["; " if index else "", Name(e.group), f" {estimate_text(e)} times"]
        parts.append(".")
    else:
        parts.append(f"no group is clearly {event} more than all acceptable texts.")
    if below:
        parts += [f" {event.capitalize()} less: ", *_listed(below), "."]
    if few:
        parts += [" Not enough data for a ratio: ", *_listed(few), "."]
        parts += _although_clear(result, few)
    most = largest(result, system)
    if most is not None:
        group = str(most.details.get("group", ""))
        parts.append(f" Largest: {estimate_text(most)}")
        parts += [" (", Name(group), ")."] if group else ["."]
    return Paragraph(tuple(parts))


def _although_clear(result: Result, few: Sequence[Estimate]) -> list[Part]:
    """Say which groups without a ratio do differ by another measure, and why that is no riddle."""
    names = {(e.system, e.group) for e in few}
    rates = estimates_of(result, *infos_of(result, "false-positive-rate"))
    gaps = [
        e
        for e in rates
        if e.kind == "gap"
        and not e.label
        and (e.system, e.group) in names
        and reading(e) in {"above", "below"}
    ]
    if not gaps:
        return []
    words = " A ratio needs more flags than a difference does; by the difference of rates, "
    parts: list[Part] = [words]
    for index, e in enumerate(gaps):
        more = "more" if reading(e) == "above" else "less"
        parts += ["; " if index else "", Name(e.group), f" is clearly flagged {more}"]
        parts.append(f" ({estimate_text(e, signed=True)})")
    return [*parts, "."]


def _listed(some: Sequence[Estimate]) -> list[Part]:
    parts: list[Part] = []
    for index, e in enumerate(some):
        parts += [", " if index else "", Name(e.group)]
    return parts


def _grid(estimates: Sequence[Estimate], name: str, caption: str, *, folded: bool = False) -> Table:
    """Return groups (and families) by systems."""
    systems = tuple(dict.fromkeys(e.system for e in estimates))
    keys = list(dict.fromkeys((e.label, e.group) for e in estimates))
    at = {(e.label, e.group, e.system): e for e in estimates}
    labelled = any(label for label, _ in keys)
    notes = Notes()
    columns = [Column("Family", header=True)] if labelled else []
    columns += [Column("Group", header=True)]
    columns += [Column(shorten(system, 60), "right") for system in systems]
    body = [[Cell(label or "all texts"), Cell(shorten(group))] for label, group in keys]
    for system in systems:
        here = [at[(*key, system)] for key in keys if (*key, system) in at]
        cells = iter(number_cells([e.replace(note="") for e in here], notes))
        for row, key in zip(body, keys, strict=True):
            result = (*key, system) in at
            row.append(next(cells) if result else Cell("not measured", "undefined"))
    rows = tuple(tuple(row if labelled else row[1:]) for row in body)
    level = f"{estimates[0].level:.0%} interval in brackets"
    against = estimates[0].against
    text = f"{caption}, over {against} ({level})." if against else f"{caption} ({level})."
    return Table(name, tuple(columns), rows, text, notes.lines(), folded)


@section("suppression-score-spread")
def suppression_scores(result: Result) -> Section | None:
    """Draw how scores of acceptable texts are spread, by system and group."""
    table = result.tables.get("score-spread")
    if table is None:
        return None
    figure = scores_figure(table, name="score-spread", shown_in="score-spread-table")
    quantiles = [c for c in table.columns if c.startswith("q")]
    columns = [Column("System", header=True), Column("Group"), Column("Texts", "right")]
    columns += [Column(f"{int(q[1:])}%", "right") for q in quantiles]
    rows = tuple(
        (
            Cell(shorten(row["system"], 60)),
            Cell(shorten(row["group"]) or "all texts"),
            Cell.number(row["texts"]),
            *(Cell(number_text(row[q], 3), value=row[q]) for q in quantiles),
        )
        for row in table.to_dicts()
    )
    caption = "Quantiles of the scores of texts that should not be flagged."
    blocks: list[Block] = [] if figure is None else [figure]
    blocks.append(Table("score-spread-table", tuple(columns), rows, caption, folded=True))
    return Section("How scores are spread", tuple(blocks), order=260)


@section("suppression-missing")
def suppression_missing(result: Result) -> Section | None:
    """Show how many texts have no decision, and warn when that differs between groups."""
    shares = [e for e in undecided(result) if e.kind == "level"]
    gaps = [e for e in undecided(result) if e.kind == "gap"]
    if not shares:
        return None
    uneven = [e for e in gaps if e.group and reading(e) in {"above", "below"}]
    blocks: list[Block] = []
    if all(not e.value for e in shares):
        blocks.append(paragraph("Every text that was asked about has a decision."))
        return Section("Texts without a decision", tuple(blocks), order=270)
    if uneven:
        lines = tuple(
            paragraph(Name(e.system), ", ", Name(e.group), f": {estimate_text(e, signed=True)}")
            for e in uneven
        )
        text = paragraph(
            "Refusals and errors do not strike all groups alike, so the rates compare unlike "
            "texts. Difference to the texts outside the group, in shares of texts:"
        )
        blocks.append(Note((text, Bullets(lines)), "Missing decisions are uneven"))
    caption = "Share of texts that should not be flagged and have no decision"
    blocks.append(_grid(shares, "suppression-missing-table", caption, folded=not uneven))
    return Section("Texts without a decision", tuple(blocks), order=270)


@section("suppression-regression")
def suppression_regression(result: Result) -> Section | None:
    """Give the regressions as tables for print."""
    blocks: list[Block] = []
    for key, title in REGRESSIONS.items():
        found = [e for e in estimates_of(result, key) if e.group]
        if found:
            blocks.append(_regression(found, key, title))
            if (fit := result.tables.get(f"{key}-fit")) is not None:
                blocks.append(_fit(fit, f"{key}-fit", title))
    if not blocks:
        return None
    text = paragraph(
        "Each number is conditional on the other columns. An odds ratio below 1 means that flags "
        "on such texts are less often right; a change above 0, that acceptable texts of the kind "
        "score higher."
    )
    shows = frozenset(REGRESSIONS)
    return Section("Regressions", (text, *blocks), order=285, shows=shows)


def _fit(table: pl.DataFrame, name: str, title: str) -> Table:
    """Return the intercept of each model and how well it fits."""
    logistic = "adjusted_r2" not in table.columns
    columns = [Column("System", header=True), Column("Observations", "right")]
    columns += [Column("Intercept", "right"), Column("Log-likelihood", "right")]
    columns += [Column("McFadden's R²" if logistic else "R² (adjusted)", "right")]
    columns += [Column("Likelihood ratio" if logistic else "F", "right"), Column("p", "right")]
    rows = []
    for row in table.to_dicts():
        r2 = f"{row['r2']:.3f}" + ("" if logistic else f" ({row['adjusted_r2']:.3f})")
        about = (
            f"{row['columns']}" if logistic else f"{row['columns']}; {row['degrees_of_freedom']}"
        )
        statistic = "" if row["statistic"] is None else f"{row['statistic']:,.1f} (df = {about})"
        ends = f"[{row['intercept_low']:.3f}, {row['intercept_high']:.3f}]"
        rows.append(
            (
                Cell(shorten(row["system"], 60)),
                Cell.number(row["observations"]),
                Cell(f"{row['intercept']:.3f} {ends}", value=row["intercept"]),
                Cell(f"{row['log_likelihood']:,.1f}", value=row["log_likelihood"]),
                Cell(r2, value=row["r2"]),
                Cell(statistic, value=row["statistic"]),
                p_cell(row["p"]),
            )
        )
    scale = "log odds" if logistic else "score"
    caption = (
        f"{title}: intercept ({scale}) and fit of the whole model; tests are the classical ones."
    )
    return Table(name, tuple(columns), tuple(rows), caption)


def _regression(found: Sequence[Estimate], name: str, title: str) -> Table:
    notes = Notes()
    columns = (
        Column("System", header=True),
        Column("Column"),
        Column(title, "right"),
        Column("p corrected", "right"),
        Column("n", "right"),
    )
    rows = tuple(
        (Cell(shorten(e.system, 60)), Cell(shorten(e.group)), cell)
        + (p_cell(e.p_adjusted), Cell.number(e.n))
        for e, cell in zip(found, number_cells(found, notes), strict=True)
    )
    methods = ", ".join(sorted({e.method for e in found if e.interval is not None}))
    how = methods or "no model could be fitted"
    caption = f"{title} with {found[0].level:.0%} intervals ({how})."
    return Table(name, columns, rows, caption, notes.lines())


@section("suppression-drift")
def suppression_drift(result: Result) -> Section | None:
    """Say what changed between two versions or dates."""
    found = estimates_of(result, DRIFT)
    if not found:
        return None
    notes = Notes()
    columns = (
        Column("Group", header=True),
        Column("Change of the false-positive rate", "right"),
        Column("p", "right"),
        Column("p corrected", "right"),
        Column("n", "right"),
    )
    rows = tuple(
        (Cell(shorten(e.group) or "all texts"), cell)
        + (p_cell(e.p_value), p_cell(e.p_adjusted), Cell.number(e.n))
        for e, cell in zip(found, number_cells(found, notes), strict=True)
    )
    first = found[0]
    caption = f"From {first.against} to {first.system}, on the same texts."
    made = Table("drift-table", columns, rows, caption, notes.lines())
    title = f"What changed from {shorten(first.against, 40)}"
    return Section(title, (made,), order=290, shows=frozenset({DRIFT}))


@section("suppression-migration")
def suppression_migration(result: Result) -> Section | None:
    """Say whose decisions change when a new moderator replaces an old one."""
    table = result.tables.get("migration")
    found = estimates_of(result, *MIGRATION)
    if table is None or not found:
        return None
    fact = table.row(0, named=True)
    old, new = Name(fact["old"]), Name(fact["new"])
    score = "" if fact["threshold"] is None else f"{fact['threshold']:.4g}"
    flags = f"{shorten(fact['new'], 40)} flags at a score of {score}, so that both flag as many"
    matched = {
        "none": "Both decide at their own settings",
        "flag-rate": f"{flags} texts",
        "false-positive-rate": f"{flags} acceptable texts",
    }[fact["match"]]
    text = paragraph(
        f"{matched}: ", old, f" {fact['old_flag_rate']:.2%} of all and "
        f"{fact['old_false_positive_rate']:.2%} of the acceptable texts, ", new,
        f" {fact['new_flag_rate']:.2%} and {fact['new_false_positive_rate']:.2%}. Of "
        f"{fact['acceptable']:,} acceptable texts, ",
        Strong(f"{fact['newly_flagged']:,} would be flagged that were not"),
        f", and {fact['no_longer_flagged']:,} no longer.",
    )  # fmt: skip
    blocks: list[Block] = [text]
    wrong = [e for e in found if e.key == MIGRATION[0]]
    signs = by_sign([e for e in wrong if e.group and not e.label])
    for sign, words in (("above", "Flagged more by the new one"), ("below", "Flagged less")):
        if some := signs.get(sign, ()):  # type: ignore[call-overload]
            blocks.append(paragraph(Strong(words), ": ", *_listed(some), "."))
    if not signs.get("above") and not signs.get("below"):
        blocks.append(paragraph("No group's acceptable texts clearly fare otherwise."))
    for key, name in zip(MIGRATION, ("migration-table", "migration-harmful-table"), strict=True):
        some = tuple(e for e in found if e.key == key)
        if some:
            blocks.append(_moved(some, name, folded=key != MIGRATION[0]))
    title = f"What changes with {shorten(fact['new'], 40)}"
    return Section(title, tuple(blocks), order=255, shows=frozenset(MIGRATION))


def _moved(found: Sequence[Estimate], name: str, *, folded: bool) -> Table:
    """Return whose texts change sides, a row for each group and part."""
    notes = Notes()
    labelled = any(e.label for e in found)
    titles = ("Old", "New", "Newly flagged", "No longer", "Change", "p corrected", "n")
    columns = [Column("Part", header=True)] if labelled else []
    columns += [Column("Group", header=True), *(Column(title, "right") for title in titles)]
    rows = []
    for e, cell in zip(found, number_cells(found, notes), strict=True):
        sides = [e.details.get(side) for side in ("before", "after")]
        counts = [e.details.get(side) for side in ("up", "down")]
        row = (
            *((Cell(e.label or "all texts"),) if labelled else ()),
            Cell(shorten(e.group) or "all texts"),
            *(Cell("") if s is None else Cell(f"{s:.2%}", value=float(s)) for s in sides),
            *(Cell("") if c is None else Cell.number(c) for c in counts),
            cell,
            p_cell(e.p_adjusted if e.p_adjusted is not None else e.p_value),
            Cell.number(e.n),
        )
        rows.append(row)
    acceptable = found[0].key == MIGRATION[0]
    which = "should not be flagged" if acceptable else "should be flagged"
    caption = f"Share of texts that {which} and are, by both moderators, on the same texts."
    return Table(name, tuple(columns), tuple(rows), caption, notes.lines(), folded)


@section("suppression-groups")
def suppression_groups(result: Result) -> Section | None:
    """Give each group a page of its own, when the plan asks for it."""
    info = chief(result)
    ratios = estimates_of(result, info) if info is not None else ()
    if not ratios or not result.plan.options.get("pages"):
        return None
    pages = tuple(
        _page(result, group, index)
        for index, group in enumerate(dict.fromkeys(e.group for e in ratios), start=1)
    )
    return Section("Group by group", pages, order=520, place="appendix")


def _page(result: Result, group: str, place: int) -> Section:
    keys = {key_of_metric(info) for info in about_groups(result)}
    rows: list[tuple[Cell, ...]] = []
    notes = Notes()
    found = [e for e in result.estimates if e.group == group and key_of_estimate(e) in keys]
    for e, cell in zip(found, number_cells(found, notes), strict=True):
        what = e.metric if e.kind == "level" or e.null == 1 else f"{e.metric}, against {e.against}"
        rows.append(
            (Cell(shorten(e.system, 60)), Cell(what), Cell(e.label or "all texts"))
            + (cell, Cell.number(e.n))
        )
    columns = (
        Column("System", header=True),
        Column("Measure"),
        Column("Family"),
        Column("Estimate", "right"),
        Column("n", "right"),
    )
    caption = f"Every number about texts that name the group {shorten(group, 60)}."
    made = Table(f"group-page-{place}", columns, tuple(rows), caption, notes.lines())
    return Section(group, (made,))
