"""Sections of a counterfactual audit: what depends on what, reach, escape, stability."""

from __future__ import annotations

from collections.abc import Sequence

from ombud.audits.result import Result
from ombud.questions.counterfactual.figures import (
    curves_figure,
    dependency_figure,
    stability_figure,
)
from ombud.questions.counterfactual.lookup import OVERLAP, find, keys_of, parts_of
from ombud.registry import section
from ombud.report.blocks import Block, Cell, Column, Section, Table, paragraph
from ombud.report.display import count, joined, shorten
from ombud.report.tables import Notes, number_cells
from ombud.stats.estimate import Estimate

_CONCERNS = (
    (
        "reach",
        "Reach: availability of items, agency of people",
        "autonomy; little reach is a sign that people are sorted into boxes",
        "whether anybody wants these items, or would make these edits",
    ),
    (
        "escape",
        "Escape: edits until a label leaves the list",
        "inappropriate content; autonomy",
        "harm done by an item; whether people know which edits to make",
    ),
    (
        "drift-in",
        "Drift-in: edits until a label enters the list",
        "inappropriate content",
        "how often people make these edits",
    ),
    (
        "attainable",
        "Attainable diversity of a list",
        "autonomy: a narrow list that stays narrow points to the system",
        "whether somebody wants a broader list; likeness of content",
    ),
    (
        "stability",
        "Stability: change of lists by other people's data",
        "autonomy; non-comparative fairness (arbitrariness)",
        "whether a changed list is worse; attacks by many people at once",
    ),
)


@section("counterfactual")
def counterfactual(result: Result) -> Section | None:
    """Draw what a recommendation depends on, and say which concern each number speaks to."""
    parts = parts_of(result)
    if not parts:
        return None
    noise = bool(find(result, "stability/noise/largest"))
    rows = [
        (Cell(what), Cell(to), Cell(silent))
        for part, what, to, silent in _CONCERNS
        if part in parts
    ]
    rows.append(
        (
            Cell("No number"),
            Cell("privacy, opacity and wider social effects are not measured"),
            Cell("all of them"),
        )
    )
    columns = (
        Column("Number", header=True),
        Column("Speaks to"),
        Column("Says nothing of"),
    )
    caption = "Which concern each number speaks to, of six that are named for recommenders."
    said = paragraph(
        "Two policies, never mixed: frozen, the deployed model takes the new history in; "
        "retrained, the model is trained again on the changed data. A share is a range "
        "where not everything could be proved: from what was seen to happen to what was not "
        "ruled out." + _permitted(result)
    )
    blocks: tuple[Block, ...] = (
        dependency_figure(parts, name="counterfactual-dependency", noise=noise),
        said,
        Table("counterfactual-concerns", columns, tuple(rows), caption),
    )
    return Section(
        "What was changed, and what it speaks to", blocks, 200, withholds=keys_of(result)
    )


def _permitted(result: Result) -> str:
    """Return which edits of the own history were permitted, where not all were."""
    asked = next((a for a in result.plan.analyses if a.get("name") == "counterfactual"), {})
    said = []
    if asked.get("realistic"):
        places = count(int(asked["realistic"]), "place")
        said.append(f"only items that a person has rated, or is shown in the first {places}")
    if asked.get("kinds"):
        said.append(f"only to {joined([str(kind) for kind in asked['kinds']])}")
    if asked.get("editable"):
        said.append(f"only {count(len(asked['editable']), 'item')} that the plan names")
    return f" Edits of the own history: {joined(said)}." if said else ""


def _grid(
    name: str, caption: str, columns: Sequence[tuple[str, Sequence[Estimate]]], by: str = "system"
) -> Table | None:
    """Return systems (or systems and labels) down the side, one column for each number asked."""
    pairs = by == "pair"
    columns = [(title, some) for title, some in columns if some]
    keys = list(
        dict.fromkeys((e.system, e.label if pairs else "") for _, some in columns for e in some)
    )
    if not keys:
        return None
    notes = Notes()
    body = [
        [Cell(shorten(system, 60)), *([Cell(shorten(label))] if pairs else [])]
        for system, label in keys
    ]
    for _, some in columns:
        at = {(e.system, e.label if pairs else ""): e.replace(note="") for e in some}
        here = [key for key in keys if key in at]
        cells = dict(zip(here, number_cells([at[key] for key in here], notes), strict=True))
        for row, key in zip(body, keys, strict=True):
            row.append(cells.get(key, Cell("not asked", "undefined")))
    head = [Column("System", header=True), *([Column("Label", header=True)] if pairs else [])]
    head += [Column(title, "right") for title, _ in columns]
    return Table(name, tuple(head), tuple(map(tuple, body)), caption, notes.lines())


@section("counterfactual-reach")
def counterfactual_reach(result: Result) -> Section | None:
    """Say which share of items a person's own edits can bring into the list."""
    proved = find(result, "reach/availability/proved")
    if not proved:
        return None
    every = [e for e in proved if not e.group]
    about = every[0].details

    def overall(key: str) -> list[Estimate]:
        return [e for e in find(result, key) if not e.group]

    table = _grid(
        "counterfactual-reach-table",
        f"What {count(int(about['budget']), 'edit')} of a person's own history can bring into the "
        f"first {about['k']} ({every[0].level:.0%} interval in brackets).",
        (
            ("Share of items, proved", every),
            ("Share, not ruled out", overall("reach/availability/possible")),
            ("Items a person can reach", overall("reach/agency/proved")),
            ("Less popular half minus the rest", find(result, "reach/popularity-gap")),
            ("Proved by asking alone", overall("asked-reach/availability/proved")),
            ("Hold when retrained", find(result, "reach/holds-retrained")),
            ("Overlap with recorded lists", find(result, "consistency/overlap")),
        ),
    )
    # The tenths of popularity are drawn in the answer.
    blocks: list[Block] = [] if table is None else [table]
    for more in (_sets(result), _retrained(result), _deciles(proved), _labels(result)):
        blocks += [] if more is None else [more]
    groups = _agency(find(result, "reach/agency/proved"))
    blocks += [] if groups is None else [groups]
    diversity = _grid(
        "counterfactual-diversity",
        "Diversity of lists now, after edits of the own history, and with the history of somebody "
        "of broad taste and the same activity (model frozen).",
        (
            ("Observed", find(result, "attainable/observed")),
            ("Attainable", find(result, "attainable/attainable")),
            ("With a broad history", find(result, "attainable/broad-history")),
            ("Narrow lists that can be left", find(result, "attainable/narrow-left")),
        ),
    )
    blocks += [] if diversity is None else [_folded(diversity, diversity.name)]
    boxes = _boxes(result)
    blocks += [] if boxes is None else [boxes]
    return Section("What people could be shown", tuple(blocks), 210)


def _sets(result: Result) -> Table | None:
    """Return who can bring in any item of a set: systems down, sets across."""
    proved = find(result, "reach/set/proved")
    names = list(dict.fromkeys(e.label for e in proved))
    columns = [
        (
            f"{shorten(name, 30)} ({max(int(e.details['items']) for e in some):,} items)",
            [e.replace(label="") for e in some],
        )
        for name in names
        if (some := [e for e in proved if e.label == name])
    ]
    caption = "Share of people who can bring any item of a set into their list (proved)."
    return _grid("counterfactual-sets", caption, columns)


def _retrained(result: Result) -> Table | None:
    """Return reach with the model trained again, where a closed form tells it."""
    proved = find(result, "retrained-reach/availability/proved")
    if not proved:
        return None
    users = int(proved[0].details["users"])
    caption = (
        f"The same with the model trained again on every edited history (policy retrained, "
        f"{count(users, 'user')}), where its training has a closed form; elsewhere it is undecided."
    )
    columns = (
        ("Share of items, proved", proved),
        ("Share, not ruled out", find(result, "retrained-reach/availability/possible")),
        ("Items a person can reach", find(result, "retrained-reach/agency/proved")),
    )
    return _grid("counterfactual-retrained", caption, columns)


def _labels(result: Result) -> Table | None:
    """Return how available items that carry a label are."""
    proved = find(result, "reach/label/availability/proved")
    names = list(dict.fromkeys(e.label for e in proved if e.value is not None))
    columns = [
        (shorten(n, 30), [e.replace(label="") for e in proved if e.label == n]) for n in names
    ]
    caption = "Share of items proved reachable, by label that the item carries."
    table = _grid("counterfactual-labels", caption, columns)
    return None if table is None else _folded(table, table.name)


def _deciles(proved: Sequence[Estimate]) -> Table | None:
    known = [e for e in proved if "decile" in e.details]
    numbers = sorted({int(e.details["decile"]) for e in known})
    columns = [(f"Tenth {d}", [e for e in known if e.details["decile"] == d]) for d in numbers]
    caption = "Share of items proved reachable, by tenth of popularity; 10 is the most popular."
    table = _grid("counterfactual-deciles-table", caption, columns)
    return None if table is None else _folded(table, "counterfactual-deciles")


def _folded(table: Table, name: str) -> Table:
    return Table(name, table.columns, table.rows, table.caption, table.notes, folded=True)


def _agency(agency: Sequence[Estimate]) -> Table | None:
    known = [e for e in agency if e.group and "decile" not in e.details]
    groups = list(dict.fromkeys(e.group for e in known))
    columns = [(shorten(g, 30), [e for e in known if e.group == g]) for g in groups]
    caption = "How many items a person can reach, by group of people."
    table = _grid("counterfactual-agency", caption, columns)
    return None if table is None else _folded(table, table.name)


def _boxes(result: Result) -> Table | None:
    told = find(result, "over-categorisation/told")
    names = list(dict.fromkeys(e.group for e in told))
    columns = [(shorten(n, 30), [e for e in told if e.group == n]) for n in names]
    caption = (
        "People grouped by what they can reach: how well attributes tell the group (Cramer's V, 0 "
        "nothing, 1 all; tested by permutation)."
    )
    table = _grid("counterfactual-boxes", caption, columns)
    return None if table is None else _folded(table, table.name)


@section("counterfactual-escape")
def counterfactual_ways(result: Result) -> Section | None:
    """Say how many edits take a label out of lists, or into them."""
    blocks: list[Block] = []
    for key, title in (
        ("escape", "People who got a label out of their list"),
        ("drift-in", "People into whose list a label came"),
    ):
        shares = [e for e in find(result, f"{key}/share") if not e.group]
        if not shares:
            continue
        name = f"counterfactual-{key}"
        figure = curves_figure(shares, name=f"{name}-curves", table=name, title=title)
        if key == "escape" and figure is not None:
            blocks.append(figure)
        budget = max(int(e.details["budget"]) for e in shares)
        columns = [
            (f"By {n} edit{'s' if n > 1 else ''}",
             [e for e in shares if e.details.get("edits") == n])
            for n in sorted({1, budget})  # the figure has those between
        ]  # fmt: skip
        columns += [
            ("Old list kept", list(find(result, f"{key}/kept"))),
            ("Random edits do it", list(find(result, f"{key}/random"))),
            ("Hold when retrained", list(find(result, f"{key}/holds-retrained"))),
        ]
        # Without anybody at risk there is one estimate, and no number of edits.
        nobody = [e for e in shares if "edits" not in e.details]
        columns[0] = (columns[0][0], [*columns[0][1], *nobody])
        caption = f"{title}, of those at risk, by number of edits (model frozen)."
        table = _grid(name, caption, columns, by="pair")
        if table is not None:
            blocks.append(table if key == "escape" else _folded(table, table.name))
        groups = _by_group(result, key, budget, title)
        blocks += [] if groups is None else [groups]
    if not blocks:
        return None
    return Section("How hard a label is to get away from", tuple(blocks), 220)


def _by_group(result: Result, key: str, budget: int, title: str) -> Table | None:
    shares = [e for e in find(result, f"{key}/share", edits=budget) if e.group]
    names = list(dict.fromkeys(e.group for e in shares))
    columns = [(shorten(n, 30), [e for e in shares if e.group == n]) for n in names]
    caption = f"{title} by {budget} edits, by group of people."
    table = _grid(f"counterfactual-{key}-groups", caption, columns, by="pair")
    return None if table is None else _folded(table, table.name)


@section("counterfactual-stability")
def counterfactual_stability(result: Result) -> Section | None:
    """Say how far other people's data move lists, beside the noise floor."""
    largest = find(result, "stability/largest", distance=OVERLAP)
    if not largest:
        return None
    blocks: list[Block] = []
    for kind in dict.fromkeys(str(e.details["treatment"]) for e in largest):
        most = [e for e in largest if e.details["treatment"] == kind]
        usual = find(result, "stability/typical/mean", distance=OVERLAP, treatment=kind)
        noise = find(result, "stability/noise/largest", distance=OVERLAP, treatment=kind)
        above = find(result, "stability/above-noise", distance=OVERLAP, treatment=kind)
        name = f"counterfactual-stability-{kind}"
        figure = stability_figure(most, usual, noise, name=f"{name}-figure", table=name)
        blocks += [] if figure is None else [figure]
        table = _grid(
            name,
            f"Change of lists (1 - Jaccard) with "
            f"{count(int(most[0].details['budget']), 'other user')} {kind}, model retrained; "
            "the noise is the largest of as many trainings on unchanged data.",
            (
                ("Most found", most),
                ("Random, mean", usual),
                ("Noise: seed", [e for e in noise if e.details["noise"] == "seed"]),
                ("Above it", [e for e in above if e.details["noise"] == "seed"]),
                ("Noise: more passes", [e for e in noise if e.details["noise"] == "pass"]),
                ("Above it ", [e for e in above if e.details["noise"] == "pass"]),
                (
                    "First item changed by one removal",
                    [e for e in find(result, "stability/unfairness", treatment=kind)
                     if "noise" not in e.details],
                ),
            ),
        )  # fmt: skip
        further = [_other_distances(result, kind), _who_moves_whom(result, kind)]
        blocks += [one for one in (table, *further) if one is not None]
    return Section("What other people's data change", tuple(blocks), 230)


def _other_distances(result: Result, kind: str) -> Table | None:
    """Return the largest change by every distance, and that of a random treatment."""
    most = find(result, "stability/largest", treatment=kind)
    usual = find(result, "stability/typical/mean", treatment=kind)
    names = list(dict.fromkeys(str(e.details["distance"]) for e in most))
    columns = [
        (f"{shorten(name, 50)}, {words}", [e for e in some if e.details["distance"] == name])
        for name in names
        if name != OVERLAP
        for words, some in (("most found", most), ("random, mean", usual))
    ]
    caption = f"The same by other distances ({kind}, retrained)."
    table = _grid(f"counterfactual-distances-{kind}", caption, columns)
    return None if table is None else _folded(table, table.name)


def _who_moves_whom(result: Result, kind: str) -> Table | None:
    """Return how far data of each group of users moves lists of each, by 1 - Jaccard."""
    found = find(result, "stability/who-moves-whom", distance=OVERLAP, treatment=kind)
    pairs = list(dict.fromkeys((e.details["movers"], e.details["moved"]) for e in found))
    columns = [
        (
            f"{shorten(str(movers), 20)} move {shorten(str(moved), 20)}",
            [e for e in found if (e.details["movers"], e.details["moved"]) == (movers, moved)],
        )
        for movers, moved in pairs
    ]
    caption = f"Whose data move whose lists: mean change by a random user {kind} (1 - Jaccard)."
    table = _grid(f"counterfactual-whom-{kind}", caption, columns)
    return None if table is None else _folded(table, table.name)


@section("counterfactual-cost")
def counterfactual_cost(result: Result) -> Section | None:
    """Say what was spent: users, questions and trainings."""
    spent = result.tables.get("counterfactual-cost")
    if spent is None or spent.height == 0:
        return None
    columns = (
        Column("System", header=True), Column("Part"), Column("Users", "right"),
        Column("Lists asked for", "right"), Column("Trainings", "right"),
    )  # fmt: skip
    rows = tuple(
        (
            Cell(shorten(row["system"], 60)),
            Cell(row["part"]),
            *(Cell.number(row[name]) for name in ("users", "questions", "trainings")),
        )
        for row in spent.to_dicts()
    )
    table = Table("counterfactual-cost", columns, rows, "What the audit asked of each system.")
    return Section("What was spent on asking", (table,), 245, place="appendix")
