"""Sections of a suppression audit: whose acceptable speech is flagged, and what to mind."""

from __future__ import annotations

from collections.abc import Sequence

from ombud.audits.result import Result
from ombud.questions.suppression.figures import dots_figure, heat_figure, scores_figure
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
from ombud.report.findings import reading
from ombud.report.format import estimate_text, number_text, p_text
from ombud.report.sections.coverage import draws
from ombud.report.tables import Notes, number_cells
from ombud.stats.estimate import Estimate

__all__ = [
    "suppression",
    "suppression_drift",
    "suppression_groups",
    "suppression_missing",
    "suppression_regression",
    "suppression_scores",
    "suppression_tags",
]

RATIO = "suppression"
_BY_SCORE = "suppression by median score"
_OTHERS = (
    "suppression against other texts",
    "pooled suppression",
    "false-positive rate",
    _BY_SCORE,
    "median score",
    "share without a decision",
)
_REGRESSIONS = {"odds of a right flag": "Odds ratio", "change of score": "Change of score"}
_DRIFT = "drift of the false-positive rate"


@draws
def _drawn(result: Result) -> frozenset[str]:
    """Return the metrics that these sections show; the general ones need not draw them again."""
    if not result.select(metric=RATIO):
        return frozenset()
    return frozenset({RATIO, _BY_SCORE, "pooled suppression", _DRIFT, *_REGRESSIONS})


@section("suppression")
def suppression(result: Result) -> Section | None:
    """Say which groups' acceptable texts are flagged more than all, and show it."""
    ratios = result.select(metric=RATIO)
    if not ratios:
        return None
    systems = tuple(dict.fromkeys(e.system for e in ratios))
    blocks: list[Block] = [Bullets(tuple(_said(result, system) for system in systems))]
    for metric, name in ((RATIO, "suppression"), (_BY_SCORE, "suppression-scores")):
        some = result.select(metric=metric)
        if not some:
            continue
        table = f"{name}-table"
        figures = (
            dots_figure(some, name=f"{name}-dots", table=table),
            heat_figure(some, name=f"{name}-heat", table=table),
        )
        blocks += [figure for figure in figures if figure is not None]
        blocks.append(_grid(some, table, f"{metric.capitalize()} by group and system"))
    pooled = result.select(metric="pooled suppression")
    if pooled:
        caption = "Pooled suppression: noisy ratios drawn towards the others"
        blocks.append(_grid(pooled, "suppression-pooled-table", caption, folded=True))
    return Section("Whose acceptable speech is flagged more", tuple(blocks), order=250)


def _said(result: Result, system: str) -> Paragraph:
    """Return what was found about one system, in words."""
    some = [e for e in result.select(metric=RATIO, system=system) if not e.label]
    above = sorted((e for e in some if reading(e) == "above"), key=lambda e: -(e.value or 0.0))
    below = [e for e in some if reading(e) == "below"]
    few = [e for e in some if e.value is None]
    parts: list[Part] = [Name(system), ": "]
    if above:
        parts += [Strong("flagged more than all acceptable texts"), ": "]
        for index, e in enumerate(above):
            parts += ["; " if index else "", Name(e.group), f" {estimate_text(e)} times"]
        parts.append(".")
    else:
        parts.append("no group is clearly flagged more than all acceptable texts.")
    if below:
        parts += [" Flagged less: ", *_listed(below), "."]
    if few:
        parts += [" Not enough data: ", *_listed(few), "."]
    for e in result.select(metric="largest suppression", system=system, label=""):
        if e.value is not None:
            group, _, _ = e.note.partition(",")
            parts += [f" Largest: {estimate_text(e)} (", Name(group), ")."]
    return Paragraph(tuple(parts))


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
    body = [[Cell(label or "all"), Cell(shorten(group))] for label, group in keys]
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
            Cell(f"{row['texts']:,}"),
            *(Cell(number_text(row[q], 3)) for q in quantiles),
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
    shares = [e for e in result.select(metric="share without a decision") if e.kind == "level"]
    gaps = [e for e in result.select(metric="share without a decision") if e.kind == "gap"]
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


@section("suppression-tags")
def suppression_tags(result: Result) -> Section | None:
    """Give the number of texts that name each group, by both ways of matching."""
    table = result.tables.get("identity-tag-counts")
    if table is None:
        return None
    titles = {
        "whole_word": "Whole words",
        "published": "As published",
        "both": "By both",
        "whole_word_only": "Whole words only",
        "published_only": "As published only",
    }
    columns = (Column("Group", header=True), *(Column(t, "right") for t in titles.values()))
    rows = tuple(
        (Cell(shorten(row["group"])), *(Cell(f"{row[c]:,}") for c in titles))
        for row in table.to_dicts()
    )
    used = "as published" if result.plan.options.get("mode") == "published" else "by whole words"
    text = paragraph(
        f"Groups are tagged {used}, by lists of terms: they find explicit mentions, not who speaks "
        "or who is meant. The published code misses terms at the ends of texts, beside most "
        "punctuation and with hyphens."
    )
    caption = "Texts that name each group, by two ways of matching the same terms."
    made = Table("identity-tags-table", columns, rows, caption)
    return Section("How texts were tagged", (text, made), order=280)


@section("suppression-regression")
def suppression_regression(result: Result) -> Section | None:
    """Give the regressions as tables for print."""
    blocks: list[Block] = []
    for metric, title in _REGRESSIONS.items():
        found = [e for e in result.select(metric=metric) if e.group]
        if found:
            name = metric.replace(" ", "-")
            blocks.append(_regression(found, f"regression-{name}", title))
    if not blocks:
        return None
    text = paragraph(
        "Each number is conditional on the other columns. An odds ratio below 1 means that flags "
        "on such texts are less often right; a change above 0, that acceptable texts of the kind "
        "score higher."
    )
    return Section("Regressions", (text, *blocks), order=285)


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
        + (Cell(p_text(e.p_adjusted)), Cell(f"{e.n:,}"))
        for e, cell in zip(found, number_cells(found, notes), strict=True)
    )
    methods = ", ".join(sorted({e.method for e in found if e.interval is not None}))
    how = methods or "no model could be fitted"
    caption = f"{title} with {found[0].level:.0%} intervals ({how})."
    return Table(name, columns, rows, caption, notes.lines())


@section("suppression-drift")
def suppression_drift(result: Result) -> Section | None:
    """Say what changed between two versions or dates."""
    found = result.select(metric=_DRIFT)
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
        + (Cell(p_text(e.p_value)), Cell(p_text(e.p_adjusted)), Cell(f"{e.n:,}"))
        for e, cell in zip(found, number_cells(found, notes), strict=True)
    )
    first = found[0]
    caption = f"From {first.against} to {first.system}, on the same texts."
    made = Table("drift-table", columns, rows, caption, notes.lines())
    return Section(f"What changed from {shorten(first.against, 40)}", (made,), order=290)


@section("suppression-groups")
def suppression_groups(result: Result) -> Section | None:
    """Give each group a page of its own, when the plan asks for it."""
    ratios = result.select(metric=RATIO)
    if not ratios or not result.plan.options.get("pages"):
        return None
    pages = tuple(
        _page(result, group, index)
        for index, group in enumerate(dict.fromkeys(e.group for e in ratios), start=1)
    )
    return Section("Group by group", pages, order=520)


def _page(result: Result, group: str, place: int) -> Section:
    titles = (RATIO, *_OTHERS)
    rows: list[tuple[Cell, ...]] = []
    notes = Notes()
    found = [e for e in result.estimates if e.group == group and e.metric in titles]
    for e, cell in zip(found, number_cells(found, notes), strict=True):
        what = e.metric if e.kind == "level" or e.null == 1 else f"{e.metric}, against {e.against}"
        rows.append(
            (Cell(shorten(e.system, 60)), Cell(what), Cell(e.label or "all"))
            + (cell, Cell(f"{e.n:,}"))
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
