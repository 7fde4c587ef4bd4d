"""What was expected, in the forms of a report: on its first screen, as a section, as lines."""

from __future__ import annotations

from collections.abc import Sequence

from ombud.audits.expectations import Expectation, State
from ombud.report.blocks import Block, Cell, Column, Section, Table, Tone, paragraph
from ombud.report.display import count, joined
from ombud.report.format import estimate_text
from ombud.stats.estimate import Estimate

STATES: tuple[State, ...] = ("not met", "undecided", "met")
"""In the order in which they are told."""

_TONES: dict[State, Tone] = {"not met": "above", "undecided": "maybe", "met": "below"}
_MOST = 3


def _ordered(expected: Sequence[Expectation]) -> list[Expectation]:
    return sorted(expected, key=lambda one: STATES.index(one.state))


def first_expected(
    expected: Sequence[Expectation], room: int = 30
) -> tuple[tuple[Expectation, ...], str]:
    """Return the limits that the first screen has room for, and the others counted, in words.

    Broken limits come first. Where there is no room for any, all are counted, or the worst.

    Parameters
    ----------
    expected
        The limits, judged.
    room
        How many words there may be.

    Examples
    --------
    >>> some = [Expectation("met", "few refusals"), Expectation("not met", "no group above 2")]
    >>> [one.said for one in first_expected(some)[0]], first_expected(some, room=4)
    (['no group above 2', 'few refusals'], ((), '1 not met, of 2'))
    """
    ordered = _ordered(expected)
    for most in range(min(_MOST, len(ordered)), 0, -1):
        rest = _counted(ordered[most:], " more")
        words = len(rest.split()) + sum(len(f"{o.state} {o.said}".split()) for o in ordered[:most])
        if words <= room:
            return tuple(ordered[:most]), rest
    if len(ordered) > 1 and len(f"{ordered[0].state} {ordered[0].said}".split()) + 2 <= room:
        return (ordered[0],), f"{len(ordered) - 1:,} more"
    counts = _counted(ordered, "")
    if len(counts.split()) <= room or not ordered:
        return (), counts
    worst = ordered[0].state
    return (), f"{sum(o.state == worst for o in ordered):,} {worst}, of {len(ordered):,}"


def _counted(some: Sequence[Expectation], more: str) -> str:
    counts = {state: sum(one.state == state for one in some) for state in STATES}
    return joined([f"{n:,}{more} {state}" for state, n in counts.items() if n])


def expected_section(expected: Sequence[Expectation]) -> Section | None:
    """Return every limit with its reason, and the number that decides it."""
    if not expected:
        return None
    rows = tuple(
        (
            Cell(one.said),
            Cell(one.state, _TONES[one.state]),
            Cell("; for ".join(filter(None, (one.limit, one.where)))),
            Cell(_deciding(one)),
            Cell(one.reason),
        )
        for one in _ordered(expected)
    )
    titles = ("State", "Limit", "What decides", "Reason")
    columns = (Column("Expected", header=True), *(Column(title) for title in titles))
    files = sorted({one.source for one in expected if one.source})
    if files:
        when = f"These limits were read from {joined(files)} after the run."
    else:
        when = "These limits stand in the plan: they were declared before anything was measured."
    blocks: list[Block] = [
        paragraph(
            f"{when} A limit is met when the whole interval of every number that it is about "
            "lies within it, not met when that of one lies beyond it, and else undecided. "
            "Keeping to a limit shows no more than that."
        ),
        Table("expected-table", columns, rows, f"{count(len(rows), 'limit')}, broken ones first."),
    ]
    return Section("What was expected", tuple(blocks), order=110, name="expected")


def _deciding(one: Expectation) -> str:
    """Return how many numbers decide, and the first of those that matter most."""
    some = one.broken or one.undecided or one.kept
    if not some or one.fault:
        return one.why
    if one.state == "met" and len(some) > 1:
        return one.why
    return f"{one.why}: {_named(some[0])}{', ...' if len(some) > 1 else ''}"


def _named(estimate: Estimate) -> str:
    about = (estimate.system, estimate.label, estimate.group)
    name = ", ".join(part for part in about if part) or estimate.metric
    against = f" against {estimate.against}" if estimate.against else ""
    if estimate.value is None:
        return f"{name}{against} is not defined ({estimate.reason})"
    return f"{name}{against} {estimate_text(estimate)}"
