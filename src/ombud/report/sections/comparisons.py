"""What was compared: how many comparisons of which kind, and what each says, in words."""

from __future__ import annotations

from collections.abc import Sequence

from ombud.metrics.engine.comparisons import MATTERS
from ombud.report.blocks import Block, Cell, Column, Section, Table, paragraph
from ombud.report.display import count, joined
from ombud.report.findings import EstimateSet, Kind, Sign, by_sign, key_of_metric
from ombud.report.wording import answer_of, headline

_MOST = 2
_KINDS: dict[Kind, str] = {
    "overall": "everyone",
    "group": "each group",
    "group contrast": "groups compared",
    "system contrast": "systems compared",
}
_SMALLER = "Too small to matter"
_COLUMNS: dict[str, tuple[Sign, ...]] = {
    "Above": ("above",),
    "Below": ("below",),
    _SMALLER: ("small",),
    "Before correction only": ("above uncorrected", "below uncorrected"),
    "No clear sign": ("no sign",),
    "Not tested": ("untested",),
    "Not defined": ("undefined",),
}
_ROWS = 6
_FEW = 3
"""So many systems are described one by one; of more, the report tells how they differ."""


def comparisons(found: Sequence[EstimateSet], *, whole: bool) -> Section | None:
    """Say what was found in both directions, what was not, and what is undefined.

    Parameters
    ----------
    found
        What the sections of a question leave to this one.
    whole
        Whether every measure is told in words (the appendix), or those with the most findings.
    """
    if not found:
        return None
    left = set() if whole else _left(found)
    told = {id(f): () if id(f) in left else answer_of(f) for f in found}
    by_metric: dict[str, list[EstimateSet]] = {}
    for family in found:
        if told[id(family)]:
            by_metric.setdefault(key_of_metric(family.metric), []).append(family)
    keys = sorted(by_metric, key=lambda key: -_standing(by_metric[key]))
    chosen = set(keys if whole else keys[:_MOST])
    blocks: list[Block] = [headline(found)]
    if not whole and any(e.null is not None for f in found for e in f.estimates):
        blocks.append(_counts(found))
    for key, parts in by_metric.items():
        if key not in chosen:
            continue
        info = parts[0].metric
        inner: list[Block] = []
        about = (info.summary, _whole_sentences(info.reading))
        if any(about) and whole:
            inner.append(paragraph(" ".join(filter(None, about))))
        said = [block for part in parts for block in told[id(part)]]
        blocks.append(Section(info.title, (*inner, *said)))
    rest = len(by_metric) - len(chosen)
    elsewhere = [count(rest, "more measure")] if rest > 0 else []
    elsewhere += ["each system by itself"] if left else []
    if elsewhere:
        blocks.append(paragraph(f"In the appendix: {joined(elsewhere)}."))
    order, place = (460, "appendix") if whole else (300, "report")
    name = "comparisons-whole" if whole else "comparisons"
    title = "Every comparison in words" if whole else "Further comparisons"
    return Section(title, tuple(blocks), order=order, name=name, place=place)  # type: ignore[arg-type]


def _left(found: Sequence[EstimateSet]) -> set[int]:
    """Return the descriptions of many systems that the differences between them stand for."""
    compared = {key_of_metric(f.metric) for f in found if f.kind == "system contrast"}
    return {
        id(f)
        for f in found
        if f.kind == "overall"
        and len(f.systems) > _FEW
        and key_of_metric(f.metric) in compared
        and all(e.null is None for e in f.estimates)
    }


def _standing(parts: Sequence[EstimateSet]) -> int:
    signs = [by_sign(part.estimates) for part in parts]
    return sum(len(some.get("above", ())) + len(some.get("below", ())) for some in signs)


def _counts(found: Sequence[EstimateSet]) -> Table:
    """Return how many comparisons there are of each kind; the last row adds them up."""
    counted = []
    declared = any(MATTERS in e.details for family in found for e in family.estimates)
    shown = {title: signs for title, signs in _COLUMNS.items() if declared or title != _SMALLER}
    for family in found:
        signs = {sign: len(some) for sign, some in by_sign(family.estimates).items()}
        numbers = [sum(signs.get(sign, 0) for sign in column) for column in shown.values()]
        if any(numbers[:-2]):  # otherwise a description: there is nothing to compare it with
            counted.append((family, [sum(numbers), *numbers]))
    counted.sort(key=lambda one: -(one[1][1] + one[1][2]))
    rows = [
        (Cell(family.metric.title), Cell(_KINDS[family.kind]), *map(Cell.number, numbers))
        for family, numbers in counted[:_ROWS]
    ]
    rest = [numbers for _, numbers in counted[_ROWS:]]
    if rest:
        added = [sum(column) for column in zip(*rest, strict=True)]
        rows.append((Cell(f"{len(rest):,} others"), Cell(""), *map(Cell.number, added)))
    total = [sum(column) for column in zip(*(numbers for _, numbers in counted), strict=True)]
    if len(rows) > 1:
        rows.append((Cell("all of them"), Cell(""), *map(Cell.number, total)))
    heads = (Column("Measure", header=True), Column("About"), Column("Numbers", "right"))
    columns = (*heads, *(Column(title, "right") for title in shown))
    caption = "How many numbers say what; each row adds up, and so do the columns."
    return Table("comparisons-table", columns, tuple(rows), caption)


def _whole_sentences(text: str) -> str:
    """Return a text without a first sentence that goes on after a formula, which is not shown."""
    return text.partition(". ")[2] if text[:1].islower() else text
