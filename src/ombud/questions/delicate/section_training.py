"""Sections on detectors of one's own: heads and rules, long texts, texts seen before."""

from __future__ import annotations

from ombud.audits.result import Result
from ombud.questions.delicate.section_tables import by_system, grid, plain_table
from ombud.registry import section
from ombud.report.blocks import Block, Cell, Column, Name, Part, Section, Strong, Table, paragraph
from ombud.report.display import count, shorten
from ombud.report.findings import estimates_of
from ombud.report.format import estimate_text
from ombud.report.tables import Notes, number_cells, p_cell


def seen_systems(result: Result, name: str = "") -> frozenset[str]:
    """Return the systems that have seen some of the audited texts, or some of one set."""
    table = result.tables.get("seen-by-set" if name else "seen-texts")
    if table is None:
        return frozenset()
    return frozenset(
        row["system"]
        for row in table.to_dicts()
        if row.get("set", "") == name and (row["trained on"] or row["calibrated on"])
    )


def seen_before(result: Result) -> list[Block]:
    """Say which detectors have seen audited texts, and give the table of how each decides."""
    table = result.tables.get("seen-texts")
    if table is None:
        return []
    blocks: list[Block] = []
    for row in table.to_dicts():
        said = [
            f"was {how} {row[how]:,} of the {row['texts']:,} audited texts"
            for how in ("trained on", "calibrated on")
            if row[how]
        ]
        if said:
            parts: list[Part] = ["# ", Name(row["system"]), f" {' and '.join(said)}: "]
            blocks.append(paragraph(*parts, Strong("its figures are too good"), "."))
    caption = "How detectors decide, and how many of the audited texts they have seen before"
    return [*blocks, plain_table("seen-texts-table", table, caption, folded=True)]


@section("delicate-long-texts")
def detection_long_texts(result: Result) -> Section | None:
    """Set texts that were cut beside texts that were read in windows."""
    table = result.tables.get("long-texts")
    if table is None or not table["longer than the window"].sum():
        return None
    rows = {row["system"]: row for row in table.to_dicts()}
    blocks: list[Block] = []
    keys = {f"long-texts/{name}" for name in ("f1", "precision", "recall", "flag-share")}
    for number, (system, row) in enumerate(rows.items()):
        if not row["longer than the window"]:
            continue
        parts: list[Part] = [Name(system), f" reads {row['window']} tokens at once; "]
        parts.append(Strong(count(row["longer than the window"], "labelled text")))
        turn = {way: row[f"{way} differs from cut"] for way in ("max", "mean")}
        parts.append(
            f" {'is' if row['longer than the window'] == 1 else 'are'} longer. Read to the end, "
            f"{turn['max']:,} of them are decided otherwise by their highest window and "
            f"{turn['mean']:,} by the mean of windows. It uses: {row['used']}."
        )
        blocks.append(paragraph(*parts))
        blocks.append(_long_table(result, system, f"long-texts-{number + 1}"))
    return Section("Long texts: cut, and in windows", tuple(blocks), order=232,
                   shows=frozenset(keys), withholds=frozenset(keys))  # fmt: skip


_WAYS = {
    "cut": "first window alone (cut)", "max": "highest window", "mean": "mean of windows"
}  # fmt: skip


def _long_table(result: Result, system: str, name: str) -> Table:
    columns = []
    for key, title in (
        ("f1", "F1"), ("precision", "Precision"), ("recall", "Recall"),
        ("flag-share", "Share flagged"),
    ):  # fmt: skip
        found = [e for e in estimates_of(result, f"long-texts/{key}") if e.system == system]
        at = {_WAYS[e.label]: e for e in found if e.kind == "level"}
        columns.append((title, at.get))
        if key == "f1":
            gaps = {_WAYS[e.label]: e for e in found if e.kind == "gap"}
            columns.append(("F1 minus that of cut", gaps.get))
    caption = f"{shorten(system, 40)} on texts longer than its window"
    return grid(name, caption, list(_WAYS.values()), columns, "Read", lacking="")


@section("delicate-heads")
def detection_heads(result: Result) -> Section | None:
    """Compare heads and rules of detectors that were trained alike."""
    f1 = estimates_of(result, "heads/f1")
    if not f1:
        return None
    # The engine wants what others are compared with last; a reader wants it first.
    systems = [e.system for e in f1 if e.kind == "level"][::-1]
    heads = list(dict.fromkeys(name.partition(",")[0] for name in systems))
    columns = [
        (title, by_system([e for e in estimates_of(result, f"heads/{key}") if e.kind == "level"]))
        for key, title in (("precision", "Precision"), ("recall", "Recall"), ("f1", "F1"))
    ]
    blocks: list[Block] = [
        paragraph(
            "Detectors that differ in the head alone, trained on the same texts, with thresholds "
            "set on the same held-out part. Rule ", Strong("threshold"), ": the probability of "
            "risk 3 and more is above it; ", Strong("argmax"), ": the most probable class is 3 "
            "or more. A binary head has no classes; its argmax is one half.",
        ),
        grid("heads-table", "Heads and rules", systems, columns, "Head, rule"),
        _pairs(result),
    ]  # fmt: skip
    classes = {
        "Risk within one class": estimates_of(result, "heads/within-one"),
        "Weighted kappa": estimates_of(result, "heads/weighted-kappa"),
    }
    if any(classes.values()):
        columns = [(title, by_system(found)) for title, found in classes.items()]
        named = [head for head in heads if by_system(classes["Weighted kappa"])(head) is not None]
        blocks.append(grid("head-classes", "Predicted risk class", named, columns, "Head"))
    for name, caption in (
        ("head-confusion", "Risk by raters (rows) and by each head"),
        ("heads", "Thresholds and sizes"),
    ):
        table = result.tables.get(name)
        if table is not None:
            blocks.append(plain_table(f"{name}-more", table, caption, folded=True))
    blocks += _against_bias(result)
    keys = frozenset(e.key for e in result.estimates if e.key.startswith(("heads/", "training/")))
    return Section("Heads and rules", tuple(blocks), order=248, shows=keys, withholds=keys)


def _pairs(result: Result) -> Table:
    """Return F1 and right decisions of pairs, with their tests."""
    right = estimates_of(result, "heads/accuracy-difference")
    f1 = {(e.system, e.against): e for e in estimates_of(result, "heads/f1") if e.kind == "gap"}
    notes = Notes()
    gaps = [f1[e.system, e.against] for e in right]
    rows = tuple(
        (Cell(e.system), Cell(e.against), gap_cell, p_cell(gap.p_adjusted), cell,
         p_cell(e.p_adjusted))
        for e, gap, cell, gap_cell in zip(
            right, gaps, number_cells(right, notes), number_cells(gaps, notes), strict=True
        )
    )  # fmt: skip
    columns = (
        Column("Head, rule", header=True), Column("Against"), Column("F1", "right"),
        Column("p", "right"), Column("Right decisions", "right"),
        Column("p", "right"),
    )  # fmt: skip
    caption = "Differences on the same texts: bootstrap for F1, McNemar for right decisions"
    caption += " (p corrected)."
    return Table("head-pairs", columns, rows, caption, notes.lines())


def _against_bias(result: Result) -> list[Block]:
    """Return what changed training texts do to F1 and to what sways decisions."""
    f1 = estimates_of(result, "training/f1")
    blocks: list[Block] = []
    for number, label in enumerate(dict.fromkeys(e.label for e in f1)):
        ways = ["as given", label]
        sway = [e for e in estimates_of(result, "training/flips", "training/country-sd")
                if e.label == label]  # fmt: skip
        title = "Flips by gender swap" if sway[0].key == "training/flips" else "Spread by country"
        level = [e for e in f1 if e.label == label and e.kind == "level"]
        gap = next(e for e in f1 if e.label == label and e.kind == "gap")
        columns = [("F1", by_system(level)), (title, by_system(sway))]
        caption = f"Trained as given, and with {label}"
        blocks.append(grid(f"training-{number + 1}", caption, ways, columns, "Training texts"))
        blocks.append(
            paragraph(f"F1 with {label} minus F1 as given: {estimate_text(gap, signed=True)}.")
        )
    if any(e.label == "countries replaced" for e in f1):
        blocks.append(
            paragraph("Sentences that tell facts become false when a country is replaced.")
        )
    return blocks
