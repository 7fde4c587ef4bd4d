"""A page for one person: what would change their list. People are numbers of the audit's own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import polars as pl

from ombud.audits.result import Result
from ombud.registry import section
from ombud.report.blocks import Block, Cell, Column, Section, Table, paragraph
from ombud.report.display import count, joined, shorten

_LISTS = "counterfactual-lists"
_MOST = 3
_COLUMNS = (
    Column("What would change", header=True),
    Column("By which edits"),
    Column("Known how"),
)


def _rows(result: Result, table: str, **about: Any) -> list[dict[str, Any]]:
    found = result.tables.get(table)
    if found is None:
        return []
    return found.filter(*(pl.col(name) == value for name, value in about.items())).to_dicts()


def _ways(result: Result, system: str, person: int) -> Iterable[tuple[Cell, ...]]:
    for row in _rows(result, "counterfactual-ways", system=system, person=person):
        out = row["direction"] == "escape"
        if row["cost"] == 0:
            continue  # the list is as wanted without any edit
        here = f" ({count(row['before'], 'item')} now)" if out else ""
        what = f"{row['label']} {'leaves' if out else 'enters'} the list{here}"
        edits = row["edits"]
        if row["outcome"] == "beyond the budget":
            edits = f"none found within {count(row['budget'], 'edit')}"
        elif row["outcome"] == "none exists":
            edits = f"proved: none within {count(row['budget'], 'edit')}"
        known = row["policy"]
        if row["kept"] is not None and out:
            known += f"; {row['kept']:.0%} of the other items stay"
        yield Cell(shorten(what, 80)), Cell(edits), Cell(known)


def _reached(result: Result, system: str, person: int) -> Iterable[tuple[Cell, ...]]:
    rows = _rows(result, "counterfactual-reach", system=system, person=person)
    reached = [row for row in rows if row["reachable"] == "yes" and row["edits"]]
    for row in reached[:_MOST]:
        rank = row["rank_today"]
        now = "now without a score" if rank is None else f"now at place {rank:,}"
        what = f"{shorten(row['item'], 50)} comes in ({now})"
        yield Cell(what), Cell(row["edits"]), Cell(row["policy"])
    if rows:
        asked = count(len(rows), "item")
        never = sum(row["reachable"] == "no" for row in rows)
        open_ = sum(row["reachable"] == "undecided" for row in rows)
        said = f"of {asked} asked about, {never:,} cannot come in"
        said += f", {open_:,} undecided" if open_ else ""
        budget = count(rows[0]["budget"], "edit")
        yield Cell(said), Cell(f"any {budget}"), Cell(f"{rows[0]['policy']}, all tried or bounded")


def _others(result: Result, system: str, person: int) -> Iterable[tuple[Cell, ...]]:
    for row in _rows(result, "counterfactual-others", system=system, person=person):
        what = f"somebody else {row['treatment']}: {row['distance']:.2f} of the list (1 - Jaccard)"
        noise = "" if row["noise"] is None else f"; training alone up to {row['noise']:.2f}"
        known = f"{row['policy']}, {'exact' if row['exact'] else 'at least'}{noise}"
        yield Cell(what), Cell("none of their own"), Cell(known)


def _table(result: Result, system: str, person: int) -> Table | None:
    rows = (
        *_ways(result, system, person),
        *_reached(result, system, person),
        *_others(result, system, person),
    )
    if not rows:
        return None
    place = _systems(result).index(system) + 1
    name = f"counterfactual-person-{person}-{place}"
    caption = f"What would change the list of person {person}, {shorten(system, 60)}."
    return Table(name, _COLUMNS, rows, caption)


def _systems(result: Result) -> list[str]:
    lists = result.tables.get(_LISTS)
    return [] if lists is None else lists["system"].unique(maintain_order=True).to_list()


def _people(result: Result) -> list[int]:
    lists = result.tables.get(_LISTS)
    return [] if lists is None else sorted(lists["person"].unique().to_list())


def _page(result: Result, person: int, systems: Iterable[str]) -> list[Block]:
    blocks: list[Block] = []
    for system in systems:
        shown = _rows(result, _LISTS, system=system, person=person)
        titles = joined([shorten(row["item"], 40) for row in shown[:5]])
        more = len(shown) - 5
        rest = f", and {count(more, 'more item')}" if more > 0 else ""
        table = _table(result, system, person)
        if table is not None:
            blocks += [paragraph(f"{shorten(system, 60)} shows now: {titles}{rest}."), table]
    return blocks


@section("counterfactual-person")
def counterfactual_person(result: Result) -> Section | None:
    """Say what would change one person's list, by the first system."""
    people, systems = _people(result), _systems(result)
    if not people:
        return None
    blocks = _page(result, people[0], systems[:1])
    if not blocks:
        return None
    rest = [f"{count(len(systems) - 1, 'more system')}"] if len(systems) > 1 else []
    rest += [f"{count(len(people) - 1, 'more person')}"] if len(people) > 1 else []
    said = "A number of the audit's own stands for the person; the first drawn at random is shown."
    if rest:
        said += f" The appendix has {joined(rest)}."
    return Section(
        f"What would change this person's list: person {people[0]}",
        (paragraph(said), *blocks),
        240,
    )


@section("counterfactual-people")
def counterfactual_people(result: Result) -> Section | None:
    """Say what would change the lists of all people of the report, by every system."""
    people, systems = _people(result), _systems(result)
    blocks: list[Block] = []
    for person in people:
        shown = systems[1:] if person == people[0] else systems
        inner = _page(result, person, shown)
        if inner:
            blocks.append(Section(f"Person {person}", tuple(inner)))
    if not blocks:
        return None
    return Section("What would change other lists", tuple(blocks), 241, place="appendix")
