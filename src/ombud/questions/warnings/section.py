"""Sections of the warnings experiment: amplification, accuracy, remedies, and the labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from ombud.audits.result import MetricInfo, Result
from ombud.questions.warnings.figures import (
    popularity_figure,
    preference_figure,
    spread_figure,
    tradeoff_figure,
)
from ombud.questions.warnings.lookup import (
    FORMS,
    accuracy_infos,
    amplification_infos,
    at_systems,
    base_of,
    common_labels,
    leak_infos,
    level,
    overall,
)
from ombud.questions.warnings.wording import care, remedy_words, system_words
from ombud.registry import section
from ombud.report.blocks import Block, Bullets, Cell, Column, Figure, Section, Table, paragraph
from ombud.report.display import shorten
from ombud.report.figures import forest
from ombud.report.format import number_text
from ombud.report.sections.coverage import draws, withholds
from ombud.report.sections.names import slug
from ombud.report.tables import Notes, detail_table, number_cells
from ombud.stats.estimate import Estimate

__all__ = [
    "warnings_accuracy",
    "warnings_amplification",
    "warnings_labels",
    "warnings_remedies",
]

_TOP = 10
_DRAWN = 25
_FORESTS = ("mean", "ratio-of-means")
_BOUNDS = {"lowest": "at least, whatever is unknown", "highest": "at most, whatever is unknown"}


@draws
def _drawn(result: Result) -> frozenset[str]:
    """Return the metrics that these sections show; the general ones need not draw them again."""
    averages = amplification_infos(result, "amplification-user")
    if not averages:
        return frozenset()
    infos = [*averages.values(), *amplification_infos(result, "amplification").values()]
    titles = {info.title for info in [*infos, *accuracy_infos(result)]}
    analysed = {e.metric for e in result.estimates if not e.system}
    return frozenset(titles | analysed)


@withholds
def _withheld(result: Result) -> frozenset[str]:
    """Return bounds, which are no findings, and leaks, which the remedies tell."""
    bounds = amplification_infos(result, "amplification-user")
    titles = {bounds[name].title for name in _BOUNDS if name in bounds}
    if any(base_of(result, system) for system in result.systems):
        titles |= {info.title for info in leak_infos(result)}
    return frozenset(titles)


@section("warnings-amplification")
def warnings_amplification(result: Result) -> Section | None:
    """Say whether lists hold more of the labels than users' own histories."""
    infos = amplification_infos(result, "amplification-user")
    by_label = amplification_infos(result, "amplification")
    if not infos and not by_label:
        return None
    blocks: list[Block] = []
    for block in (system_words(result), care(result)):
        if block is not None:
            blocks.append(block)
    if infos:
        names = {**FORMS, **_BOUNDS}
        rows = [(names[form], info) for form, info in infos.items()]
        caption = (
            "Amplification, users' average over labels, by system and by how one number is made "
            "of many users"
        )
        blocks.append(_by_system(result, rows, "warnings-amplification-table", caption))
    figures = [spread_figure(result, by_label=False)]
    figures += [_forest(result, form, by_label[form]) for form in _FORESTS if form in by_label]
    figures.append(spread_figure(result, by_label=True))
    blocks += [figure for figure in figures if figure is not None]
    title = "Do lists hold more of the labels than people's own histories?"
    return Section(title, tuple(blocks), order=150)


@section("warnings-accuracy")
def warnings_accuracy(result: Result) -> Section | None:
    """Set accuracy beside amplification."""
    infos = accuracy_infos(result)
    if not infos or not amplification_infos(result, "amplification-user"):
        return None
    rows = [(info.title, info) for info in infos]
    blocks: list[Block] = [
        _by_system(result, rows, "warnings-accuracy-table", "Accuracy on what was held out")
    ]
    figure = tradeoff_figure(result)
    if figure is not None:
        blocks.append(figure)
    return Section("How accurate the lists are", tuple(blocks), order=160)


@section("warnings-remedies")
def warnings_remedies(result: Result) -> Section | None:
    """Say what each remedy changed, and what it cost."""
    pairs = [(s, base) for s in result.systems if (base := base_of(result, s)) is not None]
    if not pairs:
        return None
    blocks: list[Block] = [
        paragraph(
            "Each remedy is compared with the system it was put around, on the same users; the "
            "interval is that of the difference itself."
        ),
        Bullets(tuple(remedy_words(result, system, base) for system, base in pairs)),
    ]
    return Section("What the remedies change, and what they cost", tuple(blocks), order=170)


@section("warnings-labels")
def warnings_labels(result: Result) -> Section | None:
    """Describe the labels: popularity, users' preference, how many are unknown."""
    blocks: list[Block] = [
        *_facts(result),
        *_popularity(result, common_labels(result, _TOP)),
        *_preference(result, common_labels(result, _TOP)),
    ]
    return Section("The labels themselves", tuple(blocks), order=180) if blocks else None


def _forest(result: Result, form: str, info: MetricInfo) -> Figure | None:
    """Return the amplification of the most common labels with intervals."""
    labels = common_labels(result, _DRAWN)
    family = overall(result, info.title, labels)
    if family is None:
        return None
    base = slug(result, info.title)
    figure = forest(family, name=f"warnings-forest-{form}", table=f"{base}-overall-table")
    if figure is None:
        return None
    every = {e.label for e in result.estimates if e.metric == info.title}
    text = figure.caption.replace("no difference", "as much as in the history")
    if len(every) > len(labels):
        text += f" Drawn: the {len(labels)} most common of {len(every)} labels."
    return replace(figure, title=f"Amplification of each label: {FORMS[form]}", caption=text)


def _by_system(
    result: Result, rows: Sequence[tuple[str, MetricInfo]], name: str, caption: str
) -> Table:
    """Return one row for each metric and one column for each system."""
    measured = {s for _, info in rows for s in at_systems(result, info)}
    systems = [s for s in result.systems if s in measured]
    notes = Notes()
    body = []
    first: Estimate | None = None
    for title, info in rows:
        at = {s: e for s in systems if (e := level(result, info.title, s)) is not None}
        first = first or next(iter(at.values()), None)
        said = [e.replace(note="") for e in at.values()]
        if info.spec.get("unknown") in _BOUNDS:
            # How far something could move is not a finding, whichever side of 0 it lies on.
            said = [e.replace(null=None, p_value=None, p_adjusted=None) for e in said]
        cells = iter(number_cells(said, notes))
        row = [next(cells) if s in at else Cell("not given", "undefined") for s in systems]
        body.append((Cell(title), *row))
    columns = (Column("", header=True), *(Column(shorten(s, 60), "right") for s in systems))
    ends = f" ({first.level:.0%} interval in brackets)." if first is not None else "."
    return Table(name, columns, tuple(body), caption + ends, notes.lines())


def _facts(result: Result) -> list[Block]:
    wanted = ("interaction density", "warning density", "warning density if every unknown were yes")
    found = {e.metric: e for e in result.estimates if e.metric in wanted and e.value is not None}
    per = result.tables.get("interactions-per")
    if len(found) < len(wanted) or per is None:
        return []
    density, labels, at_most = (100 * (found[name].value or 0.0) for name in wanted)
    rows = tuple(
        (
            Cell(f"interactions per {row['per']}"),
            Cell(f"{row['n']:,}"),
            *(Cell(number_text(row[c], 1)) for c in ("mean", "median", "sd", "min", "max")),
        )
        for row in per.iter_rows(named=True)
    )
    titles = ("n", "mean", "median", "sd", "least", "most")
    columns = (Column("", header=True), *(Column(title, "right") for title in titles))
    table = Table(
        "warnings-facts-table", columns, rows, "The data, counted in full: no interval applies."
    )
    text = (
        f"Interaction density is {density:.3g}%. Of all pairs of item and label, {labels:.3g}% are "
        f"known to apply; {at_most - labels:.3g}% are unknown or disputed."
    )
    return [paragraph(text), table]


def _popularity(result: Result, labels: Sequence[str]) -> list[Block]:
    titles = dict.fromkeys(
        e.metric for e in result.estimates if e.metric.startswith("popularity shift (")
    )
    title = next((t for t in titles if "Cliff" not in t), None)
    table = result.tables.get("popularity-shift")
    if title is None or table is None:
        return []
    every, family = overall(result, title), overall(result, title, labels)
    if every is None or family is None:
        return []
    lower = sum(e.value is not None and e.value < 0 for e in every.estimates)
    defined = [e for e in every.estimates if e.value is not None]
    clear = [e for e in defined if e.p_adjusted is not None and e.p_adjusted < 1 - e.level]
    blocks: list[Block] = []
    if defined:
        less = sum((e.value or 0.0) < 0 for e in clear)
        text = (
            f"Items with a label are less popular for {lower} of {len(defined)} labels and more "
            f"popular for the others; after correction the difference stands for {len(clear)} "
            f"({less} less, {len(clear) - less} more). Popularity: {title[18:-1]}."
        )
        blocks.append(paragraph(text))
    gone = len(every.estimates) - len(defined)
    if gone:
        text = (
            f"For {gone} of {len(every.estimates)} labels there is no such difference: no item is "
            "known to have the label, or none to be without it."
        )
        lacking = {e.label for e in family.estimates if e.value is None}
        said = _if_no(table, [w for w in labels if w in lacking])
        if said:
            text += (
                " For the most common of them, the difference if every unknown label were "
                f"\u201cno\u201d, a description without an interval: {'; '.join(said)}."
            )
        blocks.append(paragraph(text))
    caption = f"Items with a label minus items without it: {title}, the most common labels"
    if defined:
        # The caption says what is compared with what, and the most common label comes first.
        index = {w: i for i, w in enumerate(labels)}
        some = sorted(family.estimates, key=lambda e: index[e.label])
        family = replace(family, estimates=tuple(e.replace(against="") for e in some))
        made = detail_table(family, name="warnings-labels-table", caption=caption, folded=False)
        blocks.append(made)
    figure = popularity_figure(result)
    return [*blocks, figure] if figure is not None else blocks


def _if_no(table: pl.DataFrame, labels: Sequence[str]) -> list[str]:
    """Return the difference in words, for each label that has one."""
    rows = {row["label"]: row for row in table.iter_rows(named=True)}
    result = []
    for label in labels:
        value = rows[label]["difference_if_unknown_no"] if label in rows else None
        if value is not None:
            result.append(f"{shorten(label, 60)} {number_text(value, 2, signed=True)}")
    return result


def _preference(result: Result, labels: Sequence[str]) -> list[Block]:
    titles = list(
        dict.fromkeys(
            e.metric
            for e in result.estimates
            if e.metric.startswith(("users who ", "mean difference in "))
        )
    )
    at = {(e.metric, e.label): e for e in result.estimates if e.metric in titles}
    shown = [w for w in labels if any((t, w) in at for t in titles)]
    if not titles or not any(e.value is not None for e in at.values()):
        return []
    notes = Notes()
    body: list[list[Cell]] = [[Cell(shorten(w))] for w in shown]
    for title in titles:
        some = [at[title, w].replace(note="") for w in shown]
        for row, cell in zip(body, number_cells(some, notes), strict=True):
            row.append(cell)
    columns = (Column("Label", header=True), *(Column(title, "right") for title in titles))
    table = Table(
        "warnings-users-table",
        columns,
        tuple(map(tuple, body)),
        "Items with a label against items without it, within each user: both directions.",
        notes.lines(),
    )
    figure = preference_figure(result)
    return [table] if figure is None else [table, figure]
