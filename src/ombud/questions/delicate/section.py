"""Sections of a delicate-text audit: detection, errors, base rates, bias, ratings."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from ombud.audits.result import Result
from ombud.questions.delicate.figures import curve_figure, group_figure, map_figure, swap_figure
from ombud.questions.delicate.section_tables import by_system, grid, plain_table
from ombud.questions.delicate.section_training import seen_before, seen_systems
from ombud.registry import section
from ombud.report.blocks import (
    Block,
    Bullets,
    Cell,
    Column,
    Name,
    Paragraph,
    Part,
    Section,
    Strong,
    Table,
    paragraph,
)
from ombud.report.display import count, shorten
from ombud.report.findings import estimates_of, infos_of, key_of_metric
from ombud.report.format import estimate_text, p_text
from ombud.report.natural import counted, out_of
from ombud.report.tables import Notes, number_cells, p_cell
from ombud.stats.estimate import Estimate

_CHIEF = ("detection-precision", "detection-recall", "detection-f1", "detection-accuracy")
FLIPS = {"swap/flips-changed": "", "winogender/fails": "Winogender triplets"}
"""Keys of flips, and what they are called where the label does not say it."""


def levels(result: Result, name: str) -> list[Estimate]:
    """Return the level of every system by a metric, over all texts."""
    found = estimates_of(result, *infos_of(result, name))
    return [e for e in found if e.kind == "level" and not e.group]


@section("delicate")
def detection_comparison(result: Result) -> Section | None:
    """Compare detectors: the paper's Table 5 for the data given, tuned thresholds and tests."""
    f1 = levels(result, "detection-f1")
    if not f1:
        return None
    systems = [e.system for e in f1]
    compared = estimates_of(result, "detection/auc")
    columns = [
        (title, by_system(levels(result, name)))
        for name, title in zip(_CHIEF, ("Precision", "Recall", "F1", "Accuracy"), strict=True)
    ]
    columns.append(("ROC area", by_system([e for e in compared if e.kind == "level"])))
    columns.append(
        ("F1, tuned on the test #", by_system(estimates_of(result, "detection/tuned-f1")))
    )
    lines = [_said(result, system) for system in systems]
    blocks: list[Block] = [Bullets(tuple(lines)), *seen_before(result)]
    caption = "How well each system finds the texts"
    seen = seen_systems(result)
    blocks.append(grid("detection-table", caption, systems, columns, marked=seen))
    blocks.append(
        paragraph(
            "# The threshold is the one that does best on these very texts, as in the paper: too "
            "high for new texts. Its interval tunes again in each replicate."
        )
    )
    curves = result.tables.get("precision-recall")
    if curves is not None and curves.height:
        figure = curve_figure(
            curves, systems, name="precision-recall", shown_in="precision-recall-table"
        )
        blocks += [figure] if figure is not None else []
        blocks.append(plain_table("precision-recall-table", curves, "Precision and recall", True))
    blocks += [t for t in (_tests(result),) if t is not None]
    counts = result.tables.get("detection-counts")
    if counts is not None:
        caption = "Counts: flagged rightly and wrongly, let through wrongly and rightly"
        blocks.append(plain_table("detection-counts-table", counts, caption, True))
    shows = frozenset(key_of_metric(i) for name in (*_CHIEF, "flag-share")
                      for i in infos_of(result, name))  # fmt: skip
    keys = {"detection/auc", "detection/tuned-f1", "detection/accuracy-difference"}
    # By group, recall and false flags say what these mix; the appendix has them.
    less = frozenset(key_of_metric(i) for name in ("detection-accuracy", "flag-share")
                     for i in infos_of(result, name))  # fmt: skip
    return Section("How well delicate texts are found", tuple(blocks), order=200,
                   shows=shows | keys, withholds=frozenset(keys) | less)  # fmt: skip


def _said(result: Result, system: str) -> Paragraph:
    """Return what one system finds and flags wrongly, in counts."""
    parts: list[Part] = [Name(system), ": "]
    at = {name: by_system(levels(result, name))(system) for name in _CHIEF}
    counts = next(
        (e.details for e in at.values() if e is not None and "count of tp" in e.details), {}
    )
    f1 = at["detection-f1"]
    cells = [counts.get(f"count of {name}") for name in ("tp", "fp", "fn", "tn")]
    if None not in cells:
        tp, fp, fn, tn = (int(n or 0) for n in cells)
        if tp + fn:
            parts += ["finds ", Strong(counted(tp, tp + fn)), " texts that should be flagged"]
        if fp + tn:
            parts += [" and flags " if tp + fn else "flags ", Strong(counted(fp, fp + tn))]
            parts.append(" others")
        parts.append(". ")
    parts.append(f"F1 {estimate_text(f1)}." if f1 is not None else "F1 was not measured.")
    return Paragraph(tuple(parts))


def _tests(result: Result) -> Table | None:
    """Return the paired tests of systems: right decisions, F1, ROC area."""
    right = estimates_of(result, "detection/accuracy-difference")
    if not right:
        return None
    infos = infos_of(result, "detection-f1")
    pairs = [(e.system, e.against) for e in right]
    some = {
        "Right decisions": right,
        "F1": [e for e in estimates_of(result, *infos) if e.kind == "gap" and not e.group],
        "ROC area": [e for e in estimates_of(result, "detection/auc") if e.kind == "gap"],
    }
    notes = Notes()
    columns = [Column("System", header=True), Column("Against")]
    body = [[Cell(shorten(a, 60)), Cell(shorten(b, 60))] for a, b in pairs]
    for title, estimates in some.items():
        at = {(e.system, e.against): e for e in estimates}
        columns += [Column(title, "right"), Column("p", "right")]
        cells = iter(number_cells([at[p].replace(note="") for p in pairs if p in at], notes))
        for row, pair in zip(body, pairs, strict=True):
            e = at.get(pair)
            row.append(Cell("not measured", "undefined") if e is None else next(cells))
            row.append(p_cell(None if e is None else e.p_adjusted))
    caption = "Differences on the same texts: McNemar for right decisions, bootstrap for F1, DeLong"
    return Table("detection-tests", tuple(columns), tuple(map(tuple, body)),
                 f"{caption} for the ROC area (p corrected).", notes.lines())  # fmt: skip


@section("delicate-groups")
def detection_groups(result: Result) -> Section | None:
    """Show recall and false flags by topic, length, source and risk."""
    recall = estimates_of(result, *infos_of(result, "detection-recall"))
    groups = [e for e in recall if e.kind == "level" and e.group]
    if not groups:
        return None
    whole = [e for e in recall if e.kind == "level" and not e.group]
    titles = ("Recall", "Precision", "F1", "False-positive rate", "Share flagged")
    names = ("detection-recall", "detection-precision", "detection-f1", "false-positive-rate",
             "flag-share")  # fmt: skip
    systems = tuple(dict.fromkeys(e.system for e in groups))
    blocks: list[Block] = []
    figure = group_figure(groups, whole, name="recall-by-group", title="Recall",
                          table=_group_name(0))  # fmt: skip
    if figure is not None:
        blocks.append(figure)
    order = list(dict.fromkeys(e.group for e in groups))
    for number, system in enumerate(systems):
        columns = []
        for name, title in zip(names, titles, strict=True):
            found = estimates_of(result, *infos_of(result, name))
            at = {e.group: e for e in found if e.kind == "level" and e.system == system}
            columns.append((title, at.get))
        caption = f"{shorten(system, 40)} by topic, length, source and risk"
        blocks.append(grid(_group_name(number), caption, order, columns, "Group", folded=True))
    blocks.append(
        paragraph(
            "A text counts in each of its topics, which dictionary terms tell; a topic without "
            "such terms in the text is not seen."
        )
    )
    return Section("Which delicate texts are missed", tuple(blocks), order=210)


def _group_name(number: int) -> str:
    return f"detection-groups-{number + 1}"


@section("delicate-errors")
def detection_errors(result: Result) -> Section | None:
    """Name the words that stand out among wrongly flagged and among missed texts."""
    table = result.tables.get("error-terms")
    if table is None or not table.height:
        return None
    certain = table.filter(pl.col("p_adjusted").is_null() | (pl.col("p_adjusted") < 0.05))
    blocks: list[Block] = []
    lines = []
    for (system, error), part in certain.group_by(["system", "error"], maintain_order=True):
        wrong = "wrongly flagged texts" if error == "false positive" else "missed texts"
        words = ", ".join(part["term"].head(6).to_list())
        lines.append(paragraph(Name(str(system)), f", {wrong}: {words}."))
    if lines:
        blocks.append(Bullets(tuple(lines)))
    else:
        blocks.append(paragraph("No word clearly stands out among errors."))
    notes = "Words are set against texts of the same label that were decided rightly; offensive "
    blocks.append(paragraph(f"{notes}ones are masked."))
    shown = table.select("system", "error", "term", "topics", "errors_with", "errors",
                         "right_with", "right", "log_odds", "z", "p_adjusted")  # fmt: skip
    caption = "Words that stand out among errors (log odds ratio; p corrected)"
    blocks.append(plain_table("error-terms-table", shown, caption, True))
    examples = result.tables.get("error-examples")
    if examples is not None:
        caption = "The surest errors; offensive words are masked unless the plan says otherwise"
        blocks.append(plain_table("error-examples-table", examples, caption, True, longest=400))
    return Section("What goes with errors", tuple(blocks), order=220)


@section("delicate-base-rates")
def detection_base_rates(result: Result) -> Section | None:
    """Give the precision at lower base rates."""
    found = estimates_of(result, "base-rates/precision")
    if not found:
        return None
    systems = list(dict.fromkeys(e.system for e in found))
    columns = [(f"{float(rate):.3g}", by_system([e for e in found if e.label == rate]))
               for rate in dict.fromkeys(e.label for e in found)]  # fmt: skip
    here = next((e.details.get("base rate of the test") for e in found), None)
    said = f"In this test {out_of(float(here))} texts should be flagged. " if here else ""
    text = paragraph(
        f"{said}Where fewer should be, more of the flags are wrong: precision by the share of "
        "texts that should be flagged."
    )
    table = grid("base-rates-table", "Precision by base rate", systems, columns)
    return Section("Flags where delicate texts are rare", (text, table), order=230,
                   shows=frozenset({"base-rates/precision"}),
                   withholds=frozenset({"base-rates/precision"}))  # fmt: skip


@section("delicate-bias")
def bias_tests(result: Result) -> Section | None:
    """Show what flips decisions: gender, Winogender, countries, swaps and templates."""
    flips = flips_of(result)
    templates = list(estimates_of(result, "template/fails"))
    countries = result.tables.get("bias-country")
    if not flips and countries is None:
        return None
    blocks: list[Block] = []
    told = [_flip_line(e) for e in (*flips, *templates) if e.value is not None]
    if told:
        blocks.append(Bullets(tuple(told)))
    figure = swap_figure(flips, name="swap-flips", table="bias-table")
    blocks += [figure] if figure is not None else []
    spread = [e for e in estimates_of(result, "country/score-range") if e.value is not None]
    if countries is not None:
        widest = max(spread, key=lambda e: e.value or 0.0, default=None)
        if widest is not None:
            drawn = map_figure(countries, widest.system, name="country-map",
                               shown_in="country-table")  # fmt: skip
            blocks += [drawn] if drawn is not None else []
            if len(spread) > 1:
                blocks.append(paragraph("The map is of the system whose scores differ most."))
        kept = countries.select("system", "iso3", "name", "continent", "region", "flagged", "score")
        blocks.append(plain_table("country-table", kept, "Every country and territory", True))
    prefixes = ("swap/", "winogender/", "country/", "template/")
    some = [e for e in result.estimates if e.key.startswith(prefixes)]
    blocks.append(_bias_table(some))
    keys = frozenset(e.key for e in some)
    return Section("What sways decisions", tuple(blocks), order=240, shows=keys, withholds=keys)


def flips_of(result: Result) -> list[Estimate]:
    """Return the shares of flipped decisions, of texts changed and of triplets."""
    found = [e for e in estimates_of(result, *FLIPS) if not e.group]
    return [e.replace(label=FLIPS[e.key] or f"{e.label} swap") for e in found]


def _flip_line(e: Estimate) -> Paragraph:
    if e.key == "template/fails":
        return paragraph(Name(e.system), f": templates not decided alike, {estimate_text(e)}.")
    flips = e.details.get("flips", e.details.get("fails"))
    what = "triplets" if e.unit == "triplet" else "texts that the swap changed"
    parts: list[Part] = [Name(e.system), f", {e.label}: "]
    if flips is not None and e.n:
        parts += [Strong(counted(int(flips), e.n)), f" {what} ", "are decided otherwise"]
    ways = e.details.get("to flagged"), e.details.get("to allowed")
    if flips and None not in ways:
        parts.append(f" ({ways[0]} to flagged, {ways[1]} to allowed")
        p = e.details.get("mcnemar mid-p")
        parts.append(f"; one way more than the other: p {p_text(p)})" if p is not None else ")")
    return paragraph(*parts, ".")


def _bias_table(some: Sequence[Estimate]) -> Table:
    notes = Notes()
    cells = number_cells([e.replace(note="") for e in some], notes)
    rows = tuple(
        (Cell(shorten(e.system, 60)), Cell(shorten(e.label, 40)), Cell(e.metric),
         Cell(_about(e)), cell, Cell.number(e.n))
        for e, cell in zip(some, cells, strict=True)
    )  # fmt: skip
    columns = (Column("System", header=True), Column("Test"), Column("Measure"), Column("About"),
               Column("Estimate", "right"), Column("n", "right"))  # fmt: skip
    caption = "Every number of the bias tests."
    return Table("bias-table", columns, rows, caption, notes.lines(), folded=True)


def _about(e: Estimate) -> str:
    return f"{e.group} against {e.against}" if e.against else e.group


@section("delicate-ratings")
def detection_ratings(result: Result) -> Section | None:
    """Give agreement of raters, and detection against each label their ratings make."""
    alphas = estimates_of(result, "ratings/alpha")
    if not alphas:
        return None
    notes = Notes()
    rows = tuple(
        (Cell(e.metric), cell, Cell.number(e.n))
        for e, cell in zip(alphas, number_cells(alphas, notes), strict=True)
    )
    columns = (Column("Agreement", header=True), Column("Alpha", "right"), Column("n", "right"))
    blocks: list[Block] = [
        Table("agreement-table", columns, rows, "Krippendorff's alpha of the raters (the paper's "
              "0.65 does not say which it is).", notes.lines())
    ]  # fmt: skip
    f1 = estimates_of(result, "ratings/f1")
    labels = list(dict.fromkeys(e.label for e in f1))
    systems = list(dict.fromkeys(e.system for e in f1))
    blocks.append(
        grid("labels-table", "F1 against each label that ratings make", systems,
              [(label, by_system([e for e in f1 if e.label == label])) for label in labels])
    )  # fmt: skip
    keys = frozenset(e.key for e in result.estimates if e.key.startswith("ratings/"))
    for name, caption in (
        ("risk-confusion", "Risk by raters (rows) and the most probable class of the system"),
        ("rating-counts", "How many texts each label has"),
    ):
        table = result.tables.get(name)
        if table is not None:
            blocks.append(plain_table(f"{name}-table", table, caption, True))
    others = [e for e in result.estimates if e.key in keys - {"ratings/alpha", "ratings/f1"}]
    if others:
        cells = number_cells(others, found := Notes())
        body = tuple((Cell(shorten(e.system, 60)), Cell(e.label), Cell(e.metric), cell,
                      Cell.number(e.n)) for e, cell in zip(others, cells, strict=True))  # fmt: skip
        heads = (Column("System", header=True), Column("Label"), Column("Measure"),
                 Column("Estimate", "right"), Column("n", "right"))  # fmt: skip
        caption = "Precision, recall, calibration and risk classes against ratings."
        blocks.append(Table("ratings-table", heads, body, caption, found.lines(), folded=True))
    return Section("What raters say", tuple(blocks), order=245, shows=keys, withholds=keys)


@section("delicate-stability")
def detection_stability(result: Result) -> Section | None:
    """Say how many decisions change when a system is asked again."""
    changed = estimates_of(result, "repeats/changed")
    if not changed:
        return None
    lines = []
    for e in changed:
        details = e.details
        parts: list[Part] = [Name(e.system), " changed its decision about "]
        parts += [Strong(counted(details.get("changed", 0), details.get("texts", e.n)))]
        asked = count(int(details.get("repeats", 2)), "time")
        parts.append(f" texts, each asked up to {asked}: {estimate_text(e)}")
        lines.append(paragraph(*parts, "."))
    once = estimates_of(result, "repeats/f1-one-answer")
    systems = [e.system for e in changed]
    columns = [("Texts that change", by_system(changed)), ("F1 of one answer", by_system(once))]
    table = grid("stability-table", "Stability under repeats", systems, columns)
    keys = frozenset({"repeats/changed", "repeats/f1-one-answer"})
    return Section("Asked again", (Bullets(tuple(lines)), table), order=235, shows=keys,
                   withholds=keys)  # fmt: skip


def clear_gaps(result: Result, name: str) -> list[Estimate]:
    """Return the gaps of groups to other texts, by a metric."""
    found = estimates_of(result, *infos_of(result, name))
    return [e for e in found if e.kind == "gap" and e.group]
