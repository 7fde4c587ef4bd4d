"""The section on propagation: slopes, and how far each fit can be trusted."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from ombud.audits.result import Result
from ombud.questions.authors.figures import curves_figure
from ombud.questions.authors.propagation import MIX, PLACEBO
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
from ombud.report.display import joined, shorten
from ombud.report.findings import estimates_of
from ombud.report.format import estimate_text, number_text
from ombud.report.tables import Notes, number_cells
from ombud.stats.estimate import Estimate

# Seven systems are the most that the study had in one fit.
_TOLD = 7


@section("authors-propagation")
def authors_propagation(result: Result) -> Section | None:
    """Give slopes and intercepts with what the fit says about itself."""
    slopes = estimates_of(result, "propagation/slope")
    if not slopes:
        return None
    blocks: list[Block] = [Bullets(tuple(_slope_said(e) for e in slopes[:_TOLD]))]
    if len(slopes) > _TOLD:
        blocks.append(paragraph(f"The table below has all {len(slopes)} slopes."))
    fixed = estimates_of(result, "propagation-mix/slope")
    blocks += [_beyond_genre(fixed[:_TOLD])] if fixed else []
    figure = curves_figure(result, name="authors-curves", table="authors-slopes")
    blocks += [] if figure is None else [figure]
    blocks.append(_slopes(result, "propagation", "authors-slopes", "Propagation by system"))
    fits = _fits(result, main=True)
    blocks += [] if fits is None else [fits]
    blocks += _refused(result)
    for prefix, title in (
        ("propagation-placebo", "Placebo: the same for an attribute made of a hash of item ids"),
        ("propagation-mix", "Propagation beyond genre: each user's genre mix held fixed"),
        ("propagation-genre", "Propagation among the items of one genre"),
    ):
        if estimates_of(result, f"{prefix}/slope"):
            blocks.append(_slopes(result, prefix, f"authors-{prefix}", title))
    further = _fits(result, main=False)
    blocks += [] if further is None else [further]
    blocks.append(
        paragraph(
            "Slope 1 and intercept 0: lists vary as profiles do. Below 1, lists vary less than "
            "profiles; above, they are more extreme. The model does not say why, and a slope is "
            "given only where users differ measurably."
        )
    )
    return Section("How profiles show in lists", tuple(blocks), order=170)


def _slope_said(e: Estimate) -> Paragraph:
    parts: list[Part] = [Name(e.system) if e.system else Strong("All systems")]
    parts += [", ", Name(e.label), ": "]
    if e.value is None or e.interval is None:
        return paragraph(*parts, f"no slope: {e.reason}.")
    low, high = e.interval
    word = "vary less than profiles"
    if low > 1:
        word = "are more extreme than profiles"
    elif high >= 1:
        word = "vary about as profiles do"
    if low <= 0 <= high:
        word = "do not clearly vary with profiles"
    elif high < 0:
        word = "vary against profiles"
    parts += ["lists ", Strong(word), f" (slope {estimate_text(e)})"]
    misfit = e.details.get("misfit") or {}
    if misfit.get("describes") is False:
        parts.append("; but a line does not describe these lists")
    return paragraph(*parts, ".")


def _beyond_genre(slopes: Sequence[Estimate]) -> Paragraph:
    """Return the slopes that remain when each user's genre mix is held fixed."""
    parts: list[Part] = ["With each user's genre mix held fixed, slopes are: "]
    for index, e in enumerate(slopes):
        parts += ["; " if index else "", Name(e.system) if e.system else "all systems", ", "]
        said = f"no slope ({e.reason})" if e.value is None else estimate_text(e)
        parts += [Name(e.label), f" {said}"]
    return paragraph(*parts, ".")


def _slopes(result: Result, prefix: str, name: str, caption: str) -> Table:
    notes = Notes()
    kinds = ("slope", "intercept", "balance-for-an-even-profile", "residual-sd")
    found = {kind: estimates_of(result, f"{prefix}/{kind}") for kind in kinds}
    genre = prefix.endswith("genre")
    columns = [Column("System", header=True), Column("Genre" if genre else "Identity")]
    columns += [Column(t, "right") for t in ("Slope", "P(slope > 1)", "Intercept")]
    columns += [Column(t, "right") for t in ("Even profile gives", "Residual SD", "n")]
    at = {(kind, e.system, e.label, e.group): e for kind in kinds for e in found[kind]}
    rows = []
    for e in found["slope"]:
        cells = []
        for kind in kinds:
            own = at.get((kind, e.system, e.label, e.group))
            cells.append(Cell("") if own is None else number_cells([own], notes)[0])
        above = e.details.get("above_one")
        chance = Cell("") if above is None else Cell.number(above, number_text(above, 2))
        rows.append(
            (Cell(shorten(e.system or "all", 60)), Cell(shorten(e.group if genre else e.label, 60)))
            + (cells[0], chance, *cells[1:], Cell.number(e.n))
        )
    text = f"{caption} (95% posterior intervals in brackets)."
    folded = prefix != "propagation"
    return Table(name, tuple(columns), tuple(rows), text, notes.lines(), folded)


def _refused(result: Result) -> list[Block]:
    """Say which of the further fits gave no numbers; the main ones say it in their table."""
    table = result.tables.get("creator-propagation-fits")
    if table is None:
        return []
    without = table.filter((pl.col("refused") != "") & (pl.col("within") != ""))
    if not without.height:
        return []
    where = [shorten(name, 60) for name in without["within"].unique(maintain_order=True)]
    return [paragraph(f"No numbers, for reasons that the appendix gives: {joined(where)}.")]


def _fits(result: Result, *, main: bool) -> Table | None:
    """Return diagnostics of the two main fits, or of the others, with mu and sigma."""
    table = result.tables.get("creator-propagation-fits")
    if table is None:
        return None
    table = table.filter((pl.col("within") == "") == main)
    if not table.height:
        return None
    notes = Notes()
    columns = (
        Column("Fit", header=True),
        Column("Identity"),
        Column("mu", "right"),
        Column("sigma", "right"),
        Column("Users", "right"),
        Column("largest R-hat", "right"),
        Column("smallest ESS, bulk", "right"),
        Column("tail", "right"),
        Column("k-hat", "right"),
        Column("error, nats", "right"),
    )
    rows = []
    for row in table.to_dicts():
        prefix = {
            "": "propagation", PLACEBO: "propagation-placebo", MIX: "propagation-mix",
        }.get(row["within"])  # fmt: skip
        label = PLACEBO if row["within"] == PLACEBO else row["identity"]
        cells = []
        for kind in ("mean-log-odds", "spread"):
            own = [
                e
                for e in estimates_of(result, f"{prefix}/{kind}")
                if e.label == label and e.group == row["fit"]
            ]
            cells.append(number_cells(own[:1], notes)[0] if own else Cell(""))
        numbers = [
            Cell("none")
            if (number := row.get(c)) is None  # a result stored before has no such column
            else Cell.number(number, number_text(number, places))
            for c, places in (
                ("largest_rhat", 4), ("smallest_ess", 0), ("smallest_tail_ess", 0), ("khat", 2),
                ("error_nats", 3),
            )
        ]  # fmt: skip
        name = f"{row['fit']}, {row['within']}" if row["within"] else row["fit"]
        rows.append(
            (Cell(shorten(name, 60)), Cell(shorten(row["identity"], 60)), *cells)
            + (Cell.number(row["users"]), *numbers)
        )
    which = "each fit" if main else "each further fit"
    caption = (
        f"How far {which} can be trusted; one that did not converge gives no numbers. Draws are "
        "weighted and no chain, so that k-hat stands in place of divergences."
    )
    name = "authors-fits" if main else "authors-further-fits"
    return Table(name, columns, tuple(rows), caption, notes.lines(), folded=not main)
