"""What was compared: how many comparisons of which kind, and what each says, in words."""

from __future__ import annotations

from collections.abc import Sequence

from ombud.report.blocks import Block, Cell, Column, Section, Table, paragraph
from ombud.report.findings import EstimateSet, Kind, by_sign
from ombud.report.wording import answer_of, headline

__all__ = ["comparisons"]

_MOST = 6
_KINDS: dict[Kind, str] = {
    "overall": "everyone",
    "group": "each group",
    "group contrast": "groups compared",
    "system contrast": "systems compared",
}
_COLUMNS = ("Above", "Below", "Before correction only", "No clear sign", "Not tested", "Undefined")


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
    told = {id(f): answer_of(f) for f in found}
    by_metric: dict[str, list[EstimateSet]] = {}
    for family in found:
        if told[id(family)]:
            by_metric.setdefault(family.metric.key or family.metric.title, []).append(family)
    keys = sorted(by_metric, key=lambda key: -_standing(by_metric[key]))
    chosen = set(keys if whole else keys[:_MOST])
    blocks: list[Block] = [headline(found)]
    if not whole:
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
    if rest > 0:
        verb = "is" if rest == 1 else "are"
        text = f"{rest:,} more {'measure' if rest == 1 else 'measures'} {verb} told in the appendix."
        blocks.append(paragraph(text))
    order, place = (460, "appendix") if whole else (300, "report")
    name = "comparisons-whole" if whole else "comparisons"
    return Section("Comparisons in words", tuple(blocks), order=order, name=name, place=place)  # type: ignore[arg-type]


def _standing(parts: Sequence[EstimateSet]) -> int:
    signs = [by_sign(part.estimates) for part in parts]
    return sum(len(some.get("above", ())) + len(some.get("below", ())) for some in signs)


def _counts(found: Sequence[EstimateSet]) -> Table:
    """Return how many comparisons there are of each kind; the last row adds them up."""
    rows: list[tuple[Cell, ...]] = []
    total = [0] * (len(_COLUMNS) + 1)
    for family in found:
        signs = {sign: len(some) for sign, some in by_sign(family.estimates).items()}
        before = signs.get("above uncorrected", 0) + signs.get("below uncorrected", 0)
        numbers = [
            signs.get("above", 0),
            signs.get("below", 0),
            before,
            signs.get("no sign", 0),
            signs.get("untested", 0),
            signs.get("undefined", 0),
        ]
        if not any(numbers[:4]):  # a description: there is nothing to compare it with
            continue
        numbers.insert(0, sum(numbers))
        total = [a + b for a, b in zip(total, numbers, strict=True)]
        about = (Cell(family.metric.title), Cell(_KINDS[family.kind]))
        rows.append((*about, *(Cell.number(n) for n in numbers)))
    rows.sort(key=lambda row: -sum(cell.value or 0 for cell in row[3:5]))
    rows.append((Cell("all of them"), Cell(""), *(Cell.number(n) for n in total)))
    heads = (Column("Measure", header=True), Column("About"), Column("Numbers", "right"))
    columns = (*heads, *(Column(title, "right") for title in _COLUMNS))
    caption = "How many numbers say what; each row adds up, and so do the columns."
    return Table("comparisons-table", columns, tuple(rows), caption, last=True)


def _whole_sentences(text: str) -> str:
    """Return a text without a first sentence that goes on after a formula, which is not shown."""
    return text.partition(". ")[2] if text[:1].islower() else text
