"""Sections on disagreement: disputed labels, and text audits where raters agree."""

from __future__ import annotations

from collections.abc import Sequence

from ombud.audits.result import Result
from ombud.questions.disagreement.labels import ANY, DISPUTED, PAIRWISE, RECOMMENDED
from ombud.questions.disagreement.texts import AGREE, DISPUTE, KEY, RATES
from ombud.registry import section
from ombud.report.blocks import (
    Block,
    Bullets,
    Cell,
    Column,
    Name,
    Part,
    Section,
    Table,
    paragraph,
)
from ombud.report.display import shorten
from ombud.report.findings import estimates_of, reading, weight
from ombud.report.format import estimate_text
from ombud.report.natural import in_hundred
from ombud.report.tables import Notes, number_cells
from ombud.stats.estimate import Estimate

_TOP = 10


@section("label-disagreement")
def label_disagreement_section(result: Result) -> Section | None:
    """Say which labels people dispute, and whether disputed items are recommended more."""
    apart = [e for e in estimates_of(result, PAIRWISE) if e.value is not None]
    share = {e.label: e for e in estimates_of(result, DISPUTED)}
    if not share:
        return None
    blocks: list[Block] = []
    ordered = sorted(apart, key=lambda e: -(e.value or 0.0))
    if ordered:
        most, least = ordered[0], ordered[-1]
        parts: list[Part] = [
            "Most disputed: ",
            Name(most.label),
            f" (two voters disagree {_often(most)})",
        ]
        if len(ordered) > 1:
            parts += ["; least: ", Name(least.label), f" ({_often(least)})"]
        blocks.append(paragraph(*parts, "."))
    blocks += _recommended(result)
    shown = ordered[:_TOP]
    if shown:
        notes = Notes()
        rows = [[Cell(shorten(e.label, 60))] for e in shown]
        for some in (shown, [share[e.label] for e in shown]):
            for row, cell in zip(rows, number_cells(some, notes), strict=True):
                row.append(cell)
        for row, e in zip(rows, shown, strict=True):
            row.append(Cell(f"{e.details['votes_per_item']:.1f}"))
        heads = ("two voters disagree", "share of items disputed", "votes per item")
        columns = (Column("Label", header=True), *(Column(head, "right") for head in heads))
        caption = "Items with at least two votes; the most disputed labels first."
        if len(ordered) > len(shown):
            caption += f" {len(ordered) - len(shown):,} more are in the appendix."
        table = Table(
            "disagreement-table", columns, tuple(map(tuple, rows)), caption, notes.lines()
        )
        blocks.append(table)
    keys = frozenset((DISPUTED, PAIRWISE, RECOMMENDED))
    return Section("Which labels people dispute", tuple(blocks), order=185, shows=keys)


def _often(e: Estimate) -> str:
    return f"in {in_hundred(e.value or 0.0)} of 100 pairs"


def _recommended(result: Result) -> list[Block]:
    levels = [e for e in estimates_of(result, RECOMMENDED) if e.kind == "level" and not e.group]
    whole = [e for e in levels if e.label == ANY]
    items = []
    for e in whole:
        word = {"above": "more", "below": "fewer"}.get(reading(e), "")
        text = f" lists hold {word} disputed items than histories" if word else ""
        text = text or " lists hold about as many disputed items as histories"
        of_labels = [x for x in levels if x.system == e.system and x.label != ANY]
        clear = sorted((x for x in of_labels if reading(x) == "above"), key=weight, reverse=True)
        more = f"; more of {len(clear)} of {len(of_labels)} labels" if of_labels else ""
        parts: list[Part] = [Name(e.system), f":{text} ({estimate_text(e, signed=True)}){more}"]
        parts += [", most ", Name(clear[0].label), "."] if clear else ["."]
        items.append(paragraph(*parts))
    return [Bullets(tuple(items))] if items else []


@section("rater-agreement")
def rater_agreement_section(result: Result) -> Section | None:
    """Set rates on texts whose raters agree beside those on all texts and on soft labels."""
    whole = next(iter(estimates_of(result, f"{KEY}/disputed-share")), None)
    if whole is None:
        return None
    blocks: list[Block] = []
    if whole.value is not None:
        text = f"Raters disagree about {in_hundred(whole.value)} of every 100 texts with two votes."
        blocks.append(paragraph(text))
    for name, title in RATES.items():
        table = _table(result, name, title)
        blocks += [table] if table is not None else []
    keys = [f"{KEY}/disputed-share"]
    keys += [f"{KEY}/{name}{part}" for name in RATES for part in ("", "/soft")]
    return Section("Where raters agree", tuple(blocks), order=240, shows=frozenset(keys))


def _table(result: Result, name: str, title: str) -> Table | None:
    some = estimates_of(result, f"{KEY}/{name}")
    soft = {e.system: e for e in estimates_of(result, f"{KEY}/{name}/soft") if e.kind == "level"}
    at: dict[tuple[str, str], Estimate] = {}
    for e in some:
        if e.kind == "level" or e.group == AGREE:
            at[e.system, e.group if e.kind == "level" else "gap"] = e
    systems: Sequence[str] = list(dict.fromkeys(e.system for e in some))
    if not systems:
        return None
    heads = {
        "": "all texts",
        AGREE: "raters agree",
        DISPUTE: "raters disagree",
        "gap": "difference",
    }
    notes = Notes()
    body: list[list[Cell]] = [[Cell(shorten(s, 60))] for s in systems]
    for group in (*heads, "soft"):
        found = [soft.get(s) if group == "soft" else at.get((s, group)) for s in systems]
        there = [e.replace(note="") for e in found if e is not None]
        cells = iter(number_cells(there, notes))
        for row, one in zip(body, found, strict=True):
            row.append(next(cells) if one is not None else Cell("not measured", "undefined"))
    columns = [Column("System", header=True)]
    columns += [Column(head, "right") for head in (*heads.values(), "soft labels")]
    caption = f"{title[0].upper()}{title[1:]}: on all texts, by whether raters agree, soft labels."
    return Table(f"rater-agreement-{name}", tuple(columns), tuple(map(tuple, body)), caption,
                 notes.lines())  # fmt: skip
