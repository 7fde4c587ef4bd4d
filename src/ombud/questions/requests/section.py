"""The section on requests: what still gets through, by label and delay."""

from __future__ import annotations

from collections.abc import Sequence

from ombud.audits.result import Result
from ombud.questions.requests.analysis import AFTER, BEFORE, CHANGE, DELAY, HIGHEST, USERS
from ombud.registry import section
from ombud.report.blocks import Block, Cell, Column, Note, Section, Table, paragraph
from ombud.report.display import shorten
from ombud.report.findings import estimates_of
from ombud.report.tables import Notes, number_cells
from ombud.stats.estimate import Estimate

_KEYS = (AFTER, BEFORE, CHANGE, HIGHEST, USERS)
_HEADS = ("after", "before", "change", "after, if unknown were yes", "users shown any")


@section("requests")
def requests_section(result: Result) -> Section | None:
    """Say how much of what people asked not to see they are shown afterwards."""
    after = [e for e in estimates_of(result, AFTER) if not e.group]
    if not after:
        return None
    at = {(e.key, e.label): e for key in _KEYS for e in estimates_of(result, key) if not e.group}
    labels = [e.label for e in after]
    notes = Notes()
    body: list[list[Cell]] = [[Cell(shorten(w, 60) or "all requests")] for w in labels]
    for key in _KEYS:
        there = [w for w in labels if (key, w) in at]
        cells = dict(
            zip(there, number_cells([at[key, w].replace(note="") for w in there], notes),
                strict=True)
        )  # fmt: skip
        for row, label in zip(body, labels, strict=True):
            row.append(cells.get(label, Cell("not measured", "undefined")))
    columns = (Column("Asked not to see", header=True), *(Column(h, "right") for h in _HEADS))
    caption = (
        "Share of places that are known to carry what their user had asked not to see, after and "
        "before the request (interval in brackets); and users who were shown at least one."
    )
    table = Table("requests-table", columns, tuple(map(tuple, body)), caption, notes.lines())
    blocks: list[Block] = [*_words(after), table, *_delays(result)]
    care = (
        "Who asks has often just seen something, so the share before a request tends to be high; "
        "part of a fall would have come without the request."
    )
    blocks.append(Note((paragraph(care),), "Before reading the change"))
    title = "Is it still shown after people asked not to see it?"
    return Section(title, tuple(blocks), order=175, shows=frozenset((*_KEYS, DELAY)))


def _words(after: Sequence[Estimate]) -> list[Block]:
    e = after[0]
    told = e.details
    if "places" not in told:
        return [paragraph(f"Leak rate after the request: not defined ({e.reason}).")]
    text = (
        f"{told['leaks']:,} of {told['places']:,} places shown after a request are known to carry "
        f"what was asked not to be shown; of {told['unknown']:,} it is not known. "
        f"{told['users_with_leak']:,} of {told['users']:,} users were shown at least one."
    )
    return [paragraph(text)]


def _delays(result: Result) -> list[Block]:
    some = [e for e in estimates_of(result, DELAY) if not e.group]
    if not some:
        return []
    notes = Notes()
    cells = number_cells([e.replace(note="") for e in some], notes)
    rows = tuple(
        (
            Cell(e.label),
            cell,
            Cell.number(int(e.details.get("leaks", 0))),
            Cell.number(int(e.details.get("places", 0))),
            Cell.number(int(e.details.get("unknown", 0))),
        )
        for e, cell in zip(some, cells, strict=True)
    )
    heads = ("leak rate", "places that leak", "places", "not known")
    columns = (Column("Shown", header=True), *(Column(head, "right") for head in heads))
    caption = "How long after the request places were shown (all requests together)."
    return [Table("requests-delay-table", columns, rows, caption, notes.lines())]
