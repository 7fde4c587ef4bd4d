"""Sections of the authors study: the five questions, and what cannot be said."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ombud.audits.result import Result
from ombud.questions.authors.all_creators import ALL_CREATORS
from ombud.questions.authors.figures import (
    bins_figure,
    coverage_figure,
    loss_figure,
    pipeline_figure,
    stage_name,
)
from ombud.questions.authors.lookup import attribute, inferred, own_keys, pipeline, told
from ombud.questions.authors.reranking import LOSS
from ombud.registry import section
from ombud.report.blocks import (
    Block,
    Bullets,
    Cell,
    Column,
    Name,
    Note,
    Paragraph,
    Part,
    Section,
    Strong,
    Table,
    paragraph,
)
from ombud.report.display import count, shorten
from ombud.report.findings import estimates_of, infos_of, key_of_metric
from ombud.report.format import number_text
from ombud.report.natural import in_hundred, out_of
from ombud.report.tables import Notes, number_cells
from ombud.stats.estimate import Estimate

_OUTCOMES = {
    "no_book": "no book record",
    "no_author": "no author named",
    "no_authority": "no authority record",
    "unknown": "record without an identity",
    "ambiguous": "contradicting assertions",
}
_COUNTED = {
    "catalogue": "catalogued items",
    "platform": "items on the platform",
    "interactions": "interactions",
}
_UNMET = 5
_PER_ITEM = "creator-catalogue/interactions-per-item"


@section("authors")
def authors(result: Result) -> Section | None:
    """Say whose work is catalogued and read, how much of it is known, and draw the pipeline."""
    shares = pipeline(result)
    if not shares:
        return None
    blocks: list[Block] = [Bullets(tuple(_catalogue_said(result)))]
    figure = pipeline_figure(result, name="authors-pipeline-figure", table="authors-pipeline")
    blocks += [] if figure is None else [figure]
    blocks += [_limits(result)]
    resolution = result.tables.get("creator-resolution")
    if resolution is not None:
        blocks.append(_resolution(resolution.to_dicts()))
    coverage = coverage_figure(result, name="authors-coverage", table="authors-resolution")
    blocks += [] if coverage is None else [coverage]
    caption = (
        f"Shares among items of known identity ({shares[0].level:.0%} interval in brackets; bounds "
        "if all items without an identity were of others, or of this one)."
    )
    blocks.append(_pipeline_table(shares, "authors-pipeline", caption))
    if every := estimates_of(result, ALL_CREATORS):
        said = "Shares with all creators of an item counted, not the first alone."
        blocks.append(_pipeline_table(every, "authors-all-creators", said))
    blocks += _per_item(result)
    metrics = (*infos_of(result, "list-balance"), *infos_of(result, "balance-gap"))
    keys = own_keys(result) | {key_of_metric(info) for info in metrics}
    title = "Whose work is catalogued, read and recommended"
    return Section(title, tuple(blocks), order=150, withholds=frozenset(keys))


def _catalogue_said(result: Result) -> Iterable[Paragraph]:
    about = attribute(result)
    known = {e.group: e for e in estimates_of(result, "creator-catalogue/known-share")}
    if {"items", "interactions"} <= set(known):
        items, pairs = (known[g].value or 0.0 for g in ("items", "interactions"))
        yield paragraph(
            f"The {about} is known for ",
            Strong(f"{out_of(items)} items"),
            f" and {out_of(pairs)} interactions.",
        )
    yield from _flagged_said(result)
    for name in told(result):
        found = {e.details["stage"]: e for e in pipeline(result) if e.label == name}
        parts: list[Part] = [Name(name), ": "]
        stages = [s for s in _COUNTED if s in found]
        for index, stage in enumerate(stages):
            e = found[stage]
            text = "an unknown number" if e.value is None else in_hundred(e.value)
            parts.append(f"{', ' if index else ''}{text} of every 100 {_COUNTED[stage]}")
        average = found.get("profiles")
        if average is not None and average.value is not None:
            parts.append(f"; an average profile has {in_hundred(average.value)} of every 100")
        platform = found.get("platform")
        low, high = (platform.details.get(b) if platform else None for b in ("lowest", "highest"))
        if isinstance(low, float) and isinstance(high, float):
            parts.append(
                f". If items without a known {about} all were of others, or all of this one: "
                f"{in_hundred(low)} to {in_hundred(high)} of every 100 items"
            )
        yield paragraph(*parts, ".")
    yield from _unmet_said(result)


def _unmet_said(result: Result) -> Iterable[Paragraph]:
    """Say which identities are catalogued and have no item on the platform."""
    met = {e.label for e in pipeline(result, "platform")}
    unmet = [e for e in pipeline(result, "catalogue") if e.label not in met]
    if not unmet:
        return
    parts: list[Part] = ["Catalogued, and with no item on the platform: "]
    for index, e in enumerate(unmet[:_UNMET]):
        parts += [", " if index else "", Name(e.label), f" ({out_of(e.value or 0.0)} known items)"]
    if len(unmet) > _UNMET:
        parts.append(f", and {len(unmet) - _UNMET:,} more in the table of shares")
    yield paragraph(*parts, ".")


def _flagged_said(result: Result) -> Iterable[Paragraph]:
    """Say how much rests on items that may hold several works; nothing where none is flagged."""
    table = result.tables.get("creator-resolution")
    if table is None or "flagged_items" not in table.columns or not table["flagged_items"].sum():
        return
    sums = table.sum()
    count, every = int(sums["flagged_items"][0]), int(sums["items"][0])
    pairs = sums["flagged_interactions"][0] / sums["interactions"][0]
    yield paragraph(
        Strong(f"{count:,} of {every:,} items are flagged"),
        f" ({out_of(float(pairs))} interactions): each joins editions of many first authors, so "
        f"its {attribute(result)} may be that of another book.",
    )


def _limits(result: Result) -> Note:
    lines = [
        paragraph(
            "These are descriptions: they do not say what the shares should be, nor why they are "
            "as they are. Genre, which goes with identity, may explain part."
        ),
        paragraph(
            "Identities were asserted by cataloguers and list makers, not always by the person; "
            "popular items are better covered, so long-tail lists are less covered."
        ),
    ]
    if inferred(result):
        lines.insert(
            0,
            paragraph(
                Strong("Identities were inferred"),
                ", such as from first names: they are guesses about people, and some are wrong.",
            ),
        )
    return Note((Bullets(tuple(lines)),), "What this cannot say")


def _resolution(rows: Sequence[dict[str, Any]]) -> Table:
    flagged = any(row.get("flagged_items") for row in rows)
    columns = (
        Column("Outcome", header=True),
        Column("Items", "right"),
        Column("of all items", "right"),
        Column("Interactions", "right"),
        Column("of all interactions", "right"),
        *([Column("Flagged items", "right")] if flagged else []),
    )
    body = tuple(
        (
            Cell(
                shorten(
                    row["outcome"]
                    if row["known"]
                    else _OUTCOMES.get(row["outcome"], row["outcome"])
                )
            ),
            Cell.number(row["items"]),
            Cell.number(row["items_share"], f"{row['items_share']:.1%}"),
            Cell.number(row["interactions"]),
            Cell.number(row["interactions_share"], f"{row['interactions_share']:.1%}"),
            *([Cell.number(row["flagged_items"])] if flagged else []),
        )
        for row in rows
    )
    caption = "What is known of items, and of the interactions with them."
    if flagged:
        caption += " Flagged: editions of more first authors than one book has are joined in them."
    return Table("authors-resolution", columns, body, caption)


def _pipeline_table(shares: Sequence[Estimate], name: str, caption: str) -> Table:
    notes = Notes()
    columns = (
        Column("Stage", header=True),
        Column("Strategy"),
        Column("Identity"),
        Column("Share", "right"),
        Column("SD over users", "right"),
        Column("By exposure", "right"),
        Column("Bounds", "right"),
        Column("n", "right"),
    )
    rows = []
    for e, cell in zip(shares, number_cells(shares, notes), strict=True):
        low, high = e.details.get("lowest"), e.details.get("highest")
        bounds = f"{low:.3f} to {high:.3f}" if low is not None and high is not None else ""
        counted = e.details.get("count")
        if counted is not None:
            bounds = f"{counted} of {e.details['of']} known"
        rows.append(
            (
                Cell(shorten(stage_name(e), 60)),
                Cell(str(e.details.get("strategy") or "")),
                Cell(shorten(e.label, 60)),
                cell,
                _plain(e.details.get("sd")),
                _plain(e.details.get("exposure_mean")),
                Cell(bounds),
                Cell.number(e.n),
            )
        )
    return Table(name, columns, tuple(rows), caption, notes.lines(), folded=True)


def _plain(value: object) -> Cell:
    return Cell.number(value, number_text(value, 3)) if isinstance(value, float) else Cell("")


def _per_item(result: Result) -> list[Block]:
    found = [
        e
        for key in (_PER_ITEM, f"{_PER_ITEM}-ratio", f"{_PER_ITEM}-delta")
        for e in estimates_of(result, key)
    ]
    if not found:
        return []
    notes = Notes()
    labels = tuple(dict.fromkeys(e.label for e in found))
    columns = (
        Column("Identity", header=True),
        Column("Items", "right"),
        Column("Mean", "right"),
        Column("Median", "right"),
        Column("Ratio to other known items", "right"),
        Column("Cliff's delta", "right"),
    )
    at = {(e.key, e.label): e for e in found}
    rows = []
    for label in labels:
        mean, ratio, delta = (at[key, label] for key in dict.fromkeys(e.key for e in found))
        cells = [number_cells([e], notes)[0] for e in (mean, ratio, delta)]
        median = mean.details.get("median")
        rows.append(
            (Cell(shorten(label, 60)), Cell.number(mean.n), cells[0])
            + (Cell("") if median is None else Cell.number(median, number_text(median, 1)),)
            + (cells[1], cells[2])
        )
    caption = f"Interactions per item by identity ({found[0].level:.0%} interval in brackets)."
    return [Table("authors-per-item", columns, tuple(rows), caption, notes.lines())]


@section("authors-lists")
def authors_lists(result: Result) -> Section | None:
    """Show how profiles and lists are spread, and how much lists reach."""
    table = result.tables.get("creator-list-coverage")
    if table is None:
        return None
    blocks: list[Block] = []
    figure = bins_figure(result, name="authors-bins", table="authors-lists-table")
    blocks += [] if figure is None else [figure]
    blocks.append(_balance_table(result))
    columns = (
        Column("System", header=True),
        Column("Users", "right"),
        Column("without a list", "right"),
        Column("short lists", "right"),
        Column("Recommendations", "right"),
        Column("distinct items", "right"),
        Column("% distinct", "right"),
        Column("known places", "right"),
    )
    rows = tuple(
        (
            Cell(shorten(row["system"], 60)),
            *(Cell.number(row[c]) for c in ("users", "without", "short", "recommendations")),
            Cell.number(row["distinct"]),
            *(
                Cell("") if row[c] is None else Cell.number(row[c], f"{row[c]:.1%}")
                for c in ("distinct_share", "known_share")
            ),
        )
        for row in table.to_dicts()
    )
    caption = "How much lists reach, over the sample of profiles."
    blocks.append(Table("authors-coverage-table", columns, rows, caption))
    return Section("Profiles and lists", tuple(blocks), order=160)


def _balance_table(result: Result) -> Table:
    """Return mean and spread of profiles and lists, of the identities that are told."""
    names = told(result)
    shares = [e for e in pipeline(result, "profiles", "baseline", "lists") if e.label in names]
    notes = Notes()
    columns = (
        Column("Of", header=True),
        Column("Identity"),
        Column("Mean share", "right"),
        Column("SD over users", "right"),
        Column("By exposure", "right"),
        Column("without a known item", "right"),
    )
    rows = []
    for e, cell in zip(shares, number_cells(shares, notes), strict=True):
        counted = e.details.get("count")
        spread = _plain(e.details.get("sd"))
        if counted is not None:
            spread = Cell(f"{counted} of {e.details['of']} known")
        without = e.details.get("without")
        rows.append(
            (Cell(shorten(stage_name(e), 60)), Cell(shorten(e.label, 60)), cell, spread)
            + (_plain(e.details.get("exposure_mean")),)
            + (Cell("") if without is None else Cell.number(without),)
        )
    caption = "Balance of profiles and lists, among items of known identity."
    return Table("authors-lists-table", columns, tuple(rows), caption, notes.lines())


@section("authors-reranking")
def authors_reranking(result: Result) -> Section | None:
    """Show what each strategy costs, and what it does to the lists."""
    losses = estimates_of(result, LOSS)
    if not losses:
        return None
    blocks: list[Block] = []
    figure = loss_figure(result, name="authors-loss", table="authors-reranking-table")
    blocks += [] if figure is None else [figure]
    notes = Notes()
    names = told(result)[:1]
    after = {(e.system, e.group): e for e in pipeline(result, "reranked") if e.label in names}
    reached = {(r["system"], r["strategy"]): r for r in _rows(result, "creator-reranking")}
    columns = (
        Column("System", header=True),
        Column("Strategy"),
        Column("Relative loss of MRR", "right"),
        Column("Hits before", "right"),
        Column("Hits after", "right"),
        Column(f"Share of {shorten(names[0], 40)}" if names else "Share", "right"),
        Column("Known places", "right"),
        Column("Short lists", "right"),
    )
    rows = []
    for e, cell in zip(losses, number_cells(losses, notes), strict=True):
        share = after.get((e.system, e.group))
        row = reached.get((e.system, e.group), {})
        hits = [e.details.get(h) for h in ("hits_before", "hits_after")]
        rows.append(
            (Cell(shorten(e.system, 60)), Cell(e.group), cell)
            + tuple(Cell("") if h is None else Cell.number(h) for h in hits)
            + (Cell("") if share is None else number_cells([share], notes)[0],)
            + (_known_places(share),)
            + (Cell.number(row["short"]) if row else Cell(""),)
        )
    deep = {r["candidates"] for r in reached.values()}
    note = (
        f" Candidates: the first {max(deep):,} places, or as many as a system gave." if deep else ""
    )
    users = max((e.n for e in losses), default=0)
    caption = (
        f"Loss of MRR after reranking, paired over {count(users, 'user')} (95% interval in "
        f"brackets; below 0 is a gain).{note}"
    )
    blocks.append(Table("authors-reranking-table", columns, tuple(rows), caption, notes.lines()))
    return Section("What control costs", tuple(blocks), order=180)


def _known_places(e: Estimate | None) -> Cell:
    """Return how many places hold a known identity: unknown items move up in reranked lists."""
    places = 0 if e is None else e.details.get("places")
    if e is None or not places:
        return Cell("")
    share = e.details["known_places"] / places
    return Cell.number(share, f"{share:.1%}")


def _rows(result: Result, name: str) -> list[dict[str, Any]]:
    table = result.tables.get(name)
    return [] if table is None else table.to_dicts()
