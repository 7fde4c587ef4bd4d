"""Sections of the warnings experiment: amplification, accuracy, remedies, and the labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from ombud.audits.result import MetricInfo, Result
from ombud.questions.warnings.again import EVERYONE, SECOND
from ombud.questions.warnings.figures import (
    activity_figures,
    popularity_figure,
    preference_figure,
    spread_figure,
    tradeoff_figure,
)
from ombud.questions.warnings.lookup import (
    FORMS,
    accuracy_infos,
    again_infos,
    amplification_infos,
    at_systems,
    base_of,
    common_labels,
    leak_infos,
    level,
    overall,
    paper_infos,
    unknown_ranges,
)
from ombud.questions.warnings.wording import care, remedy_words, system_words
from ombud.registry import section
from ombud.report.blocks import Block, Bullets, Cell, Column, Figure, Section, Table, paragraph
from ombud.report.display import count, shorten
from ombud.report.figures import forest
from ombud.report.findings import estimates_of, key_of_estimate, key_of_metric
from ombud.report.format import number_text
from ombud.report.slug import slug
from ombud.report.tables import Notes, detail_table, number_cells
from ombud.stats.estimate import Estimate

_SHIFT = "popularity-shift/difference"
_PREFERENCE = tuple(f"user-preference/{side}" for side in ("higher", "lower", "same", "difference"))
_TOP = 10
_DRAWN = 25
_FORESTS = ("ratio-of-means", "mean")
_ACROSS = 3
_BOUNDS = {"lowest": "at least, whatever is unknown", "highest": "at most, whatever is unknown"}


@section("warnings-amplification")
def warnings_amplification(result: Result) -> Section | None:
    """Say whether lists hold more of the labels than users' own histories."""
    infos = amplification_infos(result, "amplification-user")
    by_label = amplification_infos(result, "amplification")
    paper = paper_infos(result, "amplification-user")
    if not infos and not by_label:
        return None
    again = again_infos(result, SECOND)
    blocks: list[Block] = []
    for block in (system_words(result), care(result)):
        if block is not None:
            blocks.append(block)
    if infos:
        # Where nothing is unknown the bounds are the ratio of means once more.
        names = {**FORMS, **(_BOUNDS if unknown_ranges(result) else {})}
        rows = [(names[form], info) for form, info in infos.items() if form in FORMS]
        rows += [("the paper's reading: unlabeled items as no", info) for info in paper]
        rows += [(names[form], infos[form]) for form in _BOUNDS if form in infos and form in names]
        rows += [(info.title, info) for info in again]
        caption = (
            "Amplification, users' average over labels, by system and by how one number is made "
            "of many users"
        )
        blocks.append(_by_system(result, rows, "warnings-amplification-table", caption))
    figures = [spread_figure(result, by_label=False)]
    figures += [_forest(result, f, by_label[f]) for f in _FORESTS if f in by_label][:1]
    figures += [spread_figure(result, by_label=True), tradeoff_figure(result)]
    blocks += [figure for figure in figures if figure is not None]
    title = "Do lists hold more of the labels than people's own histories?"
    paper += paper_infos(result, "amplification")
    told = (*infos.values(), *by_label.values(), *paper, *again)
    return Section(
        title,
        tuple(blocks),
        order=150,
        shows=frozenset(map(key_of_metric, told)),
        # How far something could move is not a finding.
        withholds=frozenset(key_of_metric(infos[name]) for name in _BOUNDS if name in infos),
    )


@section("warnings-accuracy")
def warnings_accuracy(result: Result) -> Section | None:
    """Set accuracy beside amplification."""
    infos = accuracy_infos(result)
    if not infos or not amplification_infos(result, "amplification-user"):
        return None
    longest = max(int(info.spec.get("k") or 0) for info in infos)
    some = [info for info in infos if int(info.spec.get("k") or longest) == longest]
    everyone = again_infos(result, EVERYONE)
    others = [info for info in everyone if info.spec.get("k") == longest] or everyone
    rows = [(info.title, info) for info in (*some, *others)]
    rows += [(info.title, info) for info in again_infos(result, SECOND, rmse=True)]
    caption = "Accuracy on what was held out"
    blocks: list[Block] = [_by_system(result, rows, "warnings-accuracy-table", caption)]
    rest = len(infos) - len(some)
    if rest:
        what = f"{count(rest, 'measure')} of shorter lists {'is' if rest == 1 else 'are'}"
        blocks.append(paragraph(f"{what} in the appendix."))
    told = (*infos, *everyone, *again_infos(result, SECOND, rmse=True))
    shows = frozenset(map(key_of_metric, told))
    return Section("How accurate the lists are", tuple(blocks), order=160, shows=shows)


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
    title = "What the remedies change, and what they cost"
    leaks = frozenset(map(key_of_metric, leak_infos(result)))  # told above, in counts
    return Section(title, tuple(blocks), order=170, withholds=leaks)


@section("warnings-labels")
def warnings_labels(result: Result) -> Section | None:
    """Describe the labels: popularity, users' preference, how many are unknown."""
    blocks: list[Block] = [
        *_facts(result),
        *_popularity(result, common_labels(result, _TOP)),
        *_preference(result, common_labels(result, _TOP)),
    ]
    if not blocks:
        return None
    analysed = frozenset(key_of_estimate(e) for e in result.estimates if not e.system)
    return Section("The labels themselves", tuple(blocks), order=180, shows=analysed)


@section("warnings-label-counts")
def warnings_label_counts(result: Result) -> Section | None:
    """Count every label by status, and draw how active users and how popular items are."""
    status = result.tables.get("label-status")
    if status is None or "label" not in status.columns:
        return None
    names = [name for name in status.columns if name != "label"]
    rows = tuple(
        (Cell(shorten(row["label"], 80)), *(Cell.number(row[name]) for name in names))
        for row in status.sort("yes", descending=True, maintain_order=True).iter_rows(named=True)
    )
    columns = (Column("Label", header=True), *(Column(name, "right") for name in names))
    caption = "Items of each label by status, the most common first; counted in full."
    table = Table("warnings-label-counts-table", columns, rows, caption)
    blocks: tuple[Block, ...] = (table, *activity_figures(result))
    return Section("Every label, counted", blocks, order=190, place="appendix")


def _forest(result: Result, form: str, info: MetricInfo) -> Figure | None:
    """Return the amplification of the most common labels with intervals."""
    labels = common_labels(result, _DRAWN)
    family = overall(result, info, labels)
    if family is None:
        return None
    table = f"{slug(result, info)}-overall-table"
    ratio = 1.0 if form == "ratio-of-means" else None
    figure = forest(family, name=f"warnings-forest-{form}", table=table, ratio=ratio)
    if figure is None:
        return None
    every = {e.label for e in estimates_of(result, info)}
    text = figure.caption
    if len(every) > len(labels):
        text += f" They are of the {len(labels)} most common of {len(every)} labels."
    return replace(figure, title=f"Amplification of each label: {FORMS[form]}", caption=text)


def _by_system(
    result: Result, rows: Sequence[tuple[str, MetricInfo]], name: str, caption: str
) -> Table:
    """Return systems by measures: whichever are more go down the side."""
    measured = {s for _, info in rows for s in at_systems(result, info)}
    systems = [s for s in result.systems if s in measured]
    notes = Notes()
    body: list[list[Cell]] = []
    first: Estimate | None = None
    for _, info in rows:
        at = {s: e for s in systems if (e := level(result, info, s)) is not None}
        first = first or next(iter(at.values()), None)
        said = [e.replace(note="") for e in at.values()]
        if info.spec.get("unknown") in _BOUNDS:
            # How far something could move is not a finding, whichever side of 0 it lies on.
            said = [e.replace(null=None, p_value=None, p_adjusted=None) for e in said]
        cells = iter(number_cells(said, notes))
        body.append([next(cells) if s in at else Cell("not given", "undefined") for s in systems])
    measures, names = [title for title, _ in rows], [shorten(s, 60) for s in systems]
    down, across, head = measures, names, "Measure"
    if len(systems) > _ACROSS:
        down, across, head = names, measures, "System"
        body = [list(column) for column in zip(*body, strict=True)]
    columns = (Column(head, header=True), *(Column(title, "right") for title in across))
    table = tuple((Cell(title), *row) for title, row in zip(down, body, strict=True))
    ends = f" ({first.level:.0%} interval in brackets)." if first is not None else "."
    return Table(name, columns, table, caption + ends, notes.lines())


def _facts(result: Result) -> list[Block]:
    wanted = tuple(
        f"distribution/{name}"
        for name in ("interaction-density", "label-density", "label-density-if-unknown-yes")
    )
    found = {e.key: e for e in estimates_of(result, *wanted) if e.value is not None}
    per = result.tables.get("interactions-per")
    if len(found) < len(wanted) or per is None:
        return []
    density, labels, at_most = (100 * (found[name].value or 0.0) for name in wanted)
    rows = tuple(
        (
            Cell(f"interactions per {row['per']}"),
            Cell.number(row["n"]),
            *(
                Cell(number_text(row[c], 1), value=row[c])
                for c in ("mean", "median", "sd", "min", "max")
            ),
        )
        for row in per.iter_rows(named=True)
    )
    titles = ("n", "mean", "median", "sd", "least", "most")
    columns = (Column("Counted", header=True), *(Column(title, "right") for title in titles))
    table = Table(
        "warnings-facts-table", columns, rows, "The data, counted in full: no interval applies."
    )
    text = (
        f"Interaction density is {density:.3g}%. Of all pairs of item and label, {labels:.3g}% are "
        f"known to apply; {at_most - labels:.3g}% are unknown or disputed."
    )
    return [paragraph(text), table]


def _popularity(result: Result, labels: Sequence[str]) -> list[Block]:
    every = overall(result, _SHIFT)
    family = overall(result, _SHIFT, labels)
    table = result.tables.get("popularity-shift")
    if every is None or family is None or table is None:
        return []
    popularity = str(every.estimates[0].details.get("popularity", ""))
    lower = sum(e.value is not None and e.value < 0 for e in every.estimates)
    defined = [e for e in every.estimates if e.value is not None]
    clear = [e for e in defined if e.p_adjusted is not None and e.p_adjusted < 1 - e.level]
    blocks: list[Block] = []
    if defined:
        less = sum((e.value or 0.0) < 0 for e in clear)
        text = (
            f"Items with a label are less popular for {lower} of {len(defined)} labels and more "
            f"popular for the others; after correction the difference stands for {len(clear)} "
            f"({less} less, {len(clear) - less} more). Popularity: {popularity}."
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
    caption = f"Items with a label minus items without it, by {popularity}: the most common labels"
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
    at = {(e.key, e.label): e for e in estimates_of(result, *_PREFERENCE)}
    keys = list(dict.fromkeys(key for key, _ in at))
    shown = [w for w in labels if any((key, w) in at for key in keys)]
    if not any(e.value is not None for e in at.values()):
        return []
    titles = [next(e.metric for (k, _), e in at.items() if k == key) for key in keys]
    notes = Notes()
    body: list[list[Cell]] = [[Cell(shorten(w))] for w in shown]
    for key in keys:
        some = [at[key, w].replace(note="") for w in shown]
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
