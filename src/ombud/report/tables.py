"""Tables made of estimates; the only way a number comes into a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from ombud.report.blocks import Cell, Column, Table, Tone
from ombud.report.display import count, joined, plural, shorten
from ombud.report.findings import EstimateSet, Sign, reading, weight
from ombud.report.format import estimate_text, p_text, shared_decimals
from ombud.stats.estimate import Estimate

MARKS: dict[Sign, str] = {
    "above": "▲",
    "below": "▼",
    "above uncorrected": "△",
    "below uncorrected": "▽",
    "small": "≈",
}
"""The sign before a number: filled when it stands after correction, hollow when only before."""

MOST_ROWS = 300
"""Longer tables are cut, and say so."""

_TONES: dict[Sign, Tone] = {
    "above": "above",
    "below": "below",
    "above uncorrected": "maybe",
    "below uncorrected": "maybe",
    "undefined": "undefined",
}
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


@dataclass
class Notes:
    """Reasons and remarks below a table, each with a letter that cells refer to."""

    keys: dict[str, str] = field(default_factory=dict)

    def key(self, text: str) -> str:
        """Return the letter of a remark, a new one if it is new."""
        if text not in self.keys:
            number = len(self.keys)
            letter = _LETTERS[number % 26] + (str(number // 26) if number >= 26 else "")
            self.keys[text] = letter
        return self.keys[text]

    def lines(self) -> tuple[str, ...]:
        """Return all remarks with their letters."""
        return tuple(f"({key}) {text}" for text, key in self.keys.items())


def number_cells(estimates: Iterable[Estimate], notes: Notes | None = None) -> list[Cell]:
    """Return one cell for each estimate, all with the same decimals.

    Parameters
    ----------
    estimates
        What to print.
    notes
        Where reasons go, so that cells stay short; default, reasons stand in the cells.
    """
    some = list(estimates)
    places = shared_decimals(some)
    return [_cell(e, places, notes) for e in some]


def _cell(estimate: Estimate, places: int | None, notes: Notes | None) -> Cell:
    sign = reading(estimate)
    text = estimate_text(estimate, places, signed=estimate.null == 0)
    if notes is not None and estimate.value is None:
        text = f"not defined ({notes.key('Not defined: ' + estimate.reason + '.')})"
    elif notes is not None and estimate.interval is None:
        value, _, reason = text.partition(" (")
        text = f"{value} ({notes.key(reason.removesuffix(')').capitalize() + '.')})"
    if notes is not None and estimate.note:
        text += f" ({notes.key(estimate.note)})"
    if notes is not None and estimate.undefined_replicates:
        words = "In some bootstrap replicates the number did not exist; they were left out."
        text += f" ({notes.key(words)})"
    mark = MARKS.get(sign, "")
    return Cell(f"{mark} {text}" if mark else text, _TONES.get(sign, ""), estimate.value)


def p_cell(p: float | None) -> Cell:
    """Return the cell of a p-value."""
    return Cell(p_text(p), value=p)


def _name(text: str) -> Cell:
    return Cell(shorten(text or "all together"))


def _cut(rows: Sequence[Estimate], most: int) -> tuple[list[Estimate], str]:
    """Return at most `most` rows, in order: first those that stand, then the largest."""
    if len(rows) <= most:
        return list(rows), ""
    ranks = {"above": 0, "below": 0, "small": 1, "above uncorrected": 2, "below uncorrected": 2}
    by_weight = sorted(rows, key=lambda e: (ranks.get(reading(e), 3), [-w for w in weight(e)]))
    kept = {id(e) for e in by_weight[:most]}
    text = (
        f" Shown: {most:,} of {len(rows):,} rows, those that remain after correction first, then "
        "the largest; all are in the JSON form of this report."
    )
    return [e for e in rows if id(e) in kept], text


def wide_table(family: EstimateSet, *, name: str, caption: str) -> Table:
    """Return a table of labels by systems."""
    systems, labels = family.systems, family.labels
    notes = Notes()
    at = {(e.label, e.system): e for e in family.estimates}
    columns = [Column("Label", header=True)] if any(labels) else [Column("About", header=True)]
    body: list[list[Cell]] = [[_name(label)] for label in labels]
    for system in systems:
        some = [at[label, system] for label in labels if (label, system) in at]
        cells = iter(number_cells(some, notes))
        columns.append(Column(shorten(system, 60) or "value", "right"))
        for row, label in zip(body, labels, strict=True):
            row.append(next(cells) if (label, system) in at else Cell("not measured", "undefined"))
    first = family.estimates[0]
    ends = "; ".join(
        filter(None, (f"{first.level:.0%} interval in brackets", support(family.estimates)))
    )
    rows = tuple(tuple(row) for row in body)
    return Table(name, tuple(columns), rows, f"{caption} ({ends}).", notes.lines())


def detail_table(
    family: EstimateSet, *, name: str, caption: str, folded: bool = True, most: int = MOST_ROWS
) -> Table:
    """Return one row for each estimate, with n and p-values."""
    shown, text = _cut(family.estimates, most)
    notes = Notes()
    fixed: list[tuple[str, Callable[[Estimate], str]]] = [
        ("Label", lambda e: e.label),
        ("System", lambda e: e.system),
        ("Against", lambda e: e.against),
    ]
    used = [(title, get) for title, get in fixed if any(get(e) for e in family.estimates)]
    has_p = any(e.p_value is not None for e in shown)
    columns = [Column(title, header=index == 0) for index, (title, _) in enumerate(used)]
    columns += [Column(_value_title(family), "right"), Column("n", "right")]
    columns += [Column("p", "right"), Column("p corrected", "right")] if has_p else []
    rows = []
    for estimate, cell in zip(shown, number_cells(shown, notes), strict=True):
        row = [*(_name(get(estimate)) for _, get in used), cell, Cell.number(estimate.n)]
        if has_p:
            row += [p_cell(estimate.p_value), p_cell(estimate.p_adjusted)]
        rows.append(tuple(row))
    ends = f"{family.estimates[0].level:.0%} interval in brackets"
    return Table(
        name, tuple(columns), tuple(rows), f"{caption} ({ends}).{text}", notes.lines(), folded
    )


def _value_title(family: EstimateSet) -> str:
    if family.kind in {"overall", "group"}:
        return family.metric.title
    return "ratio" if any(e.kind == "ratio" for e in family.estimates) else "difference"


def group_table(
    levels: EstimateSet | None,
    contrasts: EstimateSet | None,
    *,
    name: str,
    caption: str,
    folded: bool,
) -> Table:
    """Return one row for each label and group of one system: its level and its contrast."""
    base = levels or contrasts
    if base is None:
        raise ValueError("a table of groups needs levels or contrasts")
    level_at = {(e.label, e.group): e for e in levels.estimates} if levels else {}
    gap_at = {(e.label, e.group): e for e in contrasts.estimates} if contrasts else {}
    keys = list(dict.fromkeys([*level_at, *gap_at]))
    weights = [gap_at.get(key) or level_at[key] for key in keys]
    kept, text = _cut(weights, MOST_ROWS)
    chosen = {(e.label, e.group) for e in kept}
    keys = [key for key in keys if key in chosen]
    notes = Notes()
    columns = [Column("Label", header=True)] if any(label for label, _ in keys) else []
    columns.append(Column("Group", header=True))
    body: list[list[Cell]] = [
        [_name(part) for part in key] if len(columns) == 2 else [_name(key[1])] for key in keys
    ]
    for at, title in ((level_at, base.metric.title), (gap_at, "against the rest")):
        if not at:
            continue
        columns += [Column(title, "right")]
        cells = iter(number_cells([at[key] for key in keys if key in at], notes))
        for row, key in zip(body, keys, strict=True):
            row.append(next(cells) if key in at else Cell("not measured", "undefined"))
    columns.append(Column("n", "right"))
    for row, key in zip(body, keys, strict=True):
        row.append(Cell.number((level_at.get(key) or gap_at[key]).n))
    rest = dict.fromkeys(e.against for e in gap_at.values() if e.against)
    ends = f"{base.estimates[0].level:.0%} interval in brackets"
    if rest:
        ends += f"; the rest is {' or '.join(rest)}"
    unit = base.estimates[0].unit
    return Table(
        name,
        tuple(columns),
        tuple(tuple(row) for row in body),
        f"{caption} ({ends}; n counts {count(2, unit).removeprefix('2 ')}).{text}",
        notes.lines(),
        folded,
    )


def support(estimates: Iterable[Estimate]) -> str:
    """Return how many independent units stand behind some estimates.

    Examples
    --------
    >>> e = Estimate(metric="m", value=1.0, interval=(0, 2), method="x", n=1200, unit="user")
    >>> support([e, e.replace(n=900)])
    '900 to 1,200 users'
    """
    some = [e for e in estimates if e.value is not None]
    kinds = []
    for unit in dict.fromkeys(e.unit for e in some):
        sizes = [e.n for e in some if e.unit == unit]
        low, high = min(sizes), max(sizes)
        kinds.append(count(high, unit) if low == high else f"{low:,} to {high:,} {plural(unit)}")
    return joined(kinds)
