"""Sections that set results beside published ones, and labels beside each other."""

from __future__ import annotations

from ombud.audits.result import Result
from ombud.questions.delicate.published import published_transfer
from ombud.questions.delicate.section_tables import by_system, grid, plain_table
from ombud.questions.delicate.section_training import seen_systems
from ombud.registry import section
from ombud.report.blocks import Block, Bullets, Cell, Column, Section, Table, paragraph
from ombud.report.display import shorten
from ombud.report.findings import estimates_of, infos_of
from ombud.report.tables import Notes, number_cells
from ombud.stats.estimate import Estimate

_PUBLISHED_AS = {"tweeteval-hate": "HatEval A"}
_RATES = (
    ("detection-precision", "Precision"), ("detection-recall", "Recall"), ("detection-f1", "F1"),
)  # fmt: skip


@section("delicate-published")
def detection_published(result: Result) -> Section | None:
    """Give published figures with the intervals that their counts allow."""
    f1 = estimates_of(result, "published/f1")
    table = result.tables.get("published-figures")
    if not f1 or table is None:
        return None
    systems = [e.system for e in f1]
    columns = [
        (title, by_system(estimates_of(result, f"published/{key}")))
        for key, title in (("precision", "Precision"), ("recall", "Recall"), ("f1", "F1"))
    ]
    text = paragraph(
        "Counts were recovered from rounded figures and class sizes, and have intervals where just "
        "one confusion matrix fits. These are other texts than those of this audit, unless you "
        "audit the published benchmark itself. # marks thresholds chosen on the test."
    )
    blocks: tuple[Block, ...] = (
        text,
        grid("published-table", "Published figures", systems, columns),
        plain_table("published-counts-table", table, "Counts behind published figures", True),
    )
    keys = frozenset({"published/f1", "published/precision", "published/recall"})
    return Section("Published figures", blocks, order=250, shows=keys, withholds=keys)


@section("delicate-transfer")
def detection_transfer(result: Result) -> Section | None:
    """Give detection on each data set, beside what was published on it."""
    found = {name: [e for e in estimates_of(result, *infos_of(result, name))
                    if e.kind == "level" and e.group.startswith("set=")]
             for name, _ in _RATES}  # fmt: skip
    sets = list(dict.fromkeys(e.group for e in found["detection-f1"]))
    if len(sets) < 2:
        return None
    blocks: list[Block] = [
        paragraph(
            "Each system on each data set. # marks a detector that was trained or calibrated on "
            "texts of the set: such a row is no transfer. Published rows have no intervals."
        )
    ]
    notes = []
    for number, group in enumerate(sets):
        name = group.removeprefix("set=")
        at = {metric: [e for e in some if e.group == group] for metric, some in found.items()}
        blocks.append(_set_table(name, at, f"transfer-{number + 1}", seen_systems(result, name)))
        notes += [
            paragraph(f"{row.dataset}, {row.method}: {row.note}.")
            for row in published_transfer() if row.dataset == _PUBLISHED_AS.get(name, name)
        ]  # fmt: skip
    if notes:
        blocks += [paragraph("Before comparing with published rows:"), Bullets(tuple(notes))]
    return Section("Detection by data set", tuple(blocks), order=215)


def _set_table(name: str, at: dict[str, list[Estimate]], table: str, seen: frozenset[str]) -> Table:
    """Return the rates of all systems on one set, then the published ones."""
    notes = Notes()
    systems = [e.system for e in at["detection-f1"]]
    body: list[list[Cell]] = [
        [Cell(shorten(system, 60) + " #" * (system in seen))] for system in systems
    ]
    for metric, _ in _RATES:
        of = {e.system: e for e in at[metric]}
        for row, cell in zip(body, number_cells([of[s] for s in systems], notes), strict=True):
            row.append(cell)
    for row, e in zip(body, at["detection-f1"], strict=True):
        row.append(Cell.number(e.n))
    for published in (
        row for row in published_transfer() if row.dataset == _PUBLISHED_AS.get(name, name)
    ):
        rates = (published.precision, published.recall, published.f1)
        body.append(
            [Cell(f"{published.method} (published)"),
             *(Cell(f"{rate / 100:.3f}", value=rate / 100) for rate in rates),
             Cell("not given", "undefined")]
        )  # fmt: skip
    columns = (
        Column("System", header=True), *(Column(title, "right") for _, title in _RATES),
        Column("n", "right"),
    )  # fmt: skip
    level = at["detection-f1"][0].level
    caption = f"{shorten(name, 60)} ({level:.0%} interval in brackets)."
    return Table(table, columns, tuple(map(tuple, body)), caption, notes.lines())


@section("delicate-labels")
def label_agreement(result: Result) -> Section | None:
    """Say how often two labels of the same texts agree."""
    table = result.tables.get("label-cross-table")
    if table is None or not table.height:
        return None
    agree = {e.label: e for e in estimates_of(result, "notions/agreement")}
    kappa = {e.label: e for e in estimates_of(result, "notions/kappa")}
    given = {(e.label, e.group): e for e in estimates_of(result, "notions/given")}
    notes = Notes()
    rows = [(row, f"{row['first']} and {row['second']}") for row in table.to_dicts()]
    cells = [
        number_cells([at[label] for _, label in rows], notes) for at in (agree, kappa)
    ] + [
        number_cells([given[label, row[side]] for row, label in rows], notes)
        for side in ("first", "second")
    ]  # fmt: skip
    body = tuple(
        (Cell(shorten(row["first"], 40)), Cell(shorten(row["second"], 40)),
         *(column[k] for column in cells),
         *(Cell.number(row[c]) for c in ("both", "first alone", "second alone", "neither")))
        for k, (row, _) in enumerate(rows)
    )  # fmt: skip
    columns = (
        Column("First", header=True), Column("Second"), Column("Agree", "right"),
        Column("Kappa", "right"), Column("Second, of the first", "right"),
        Column("First, of the second", "right"), Column("Both", "right"),
        Column("First alone", "right"), Column("Second alone", "right"),
        Column("Neither", "right"),
    )  # fmt: skip
    caption = "Labels of the same texts, two by two."
    keys = frozenset({"notions/agreement", "notions/kappa", "notions/given"})
    return Section(
        "What several labels say",
        (Table("label-cross-table-table", columns, body, caption, notes.lines()),),
        order=247,
        shows=keys,
        withholds=keys,
    )
