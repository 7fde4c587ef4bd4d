"""Declared limits and whether they are met: as a section, as lines, and as JUnit XML."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree

from ombud.audits.gate import Expectation, State
from ombud.report.display import count, joined, visible
from ombud.report.model import Cell, Column, Prose, Section, Status, Table
from ombud.report.names import Names
from ombud.report.numbers import estimate_text
from ombud.stats.estimate import Estimate

STATES: tuple[State, ...] = ("not met", "undecided", "met")
"""In the order in which they are told."""

_STATUS: dict[State, Status] = {
    "not met": "increase",
    "undecided": "no clear difference",
    "met": "no clear difference",
}


def _ordered(expected: Sequence[Expectation]) -> list[Expectation]:
    return sorted(expected, key=lambda one: STATES.index(one.state))


def expected_section(expected: Sequence[Expectation], names: Names) -> Section | None:
    """Return every limit with its reason, and the number that decides it."""
    if not expected:
        return None
    rows = tuple(
        (
            Cell(one.said),
            Cell(one.state, status=_STATUS[one.state]),
            Cell("; for ".join(filter(None, (one.limit, one.where)))),
            Cell(_deciding(one, names)),
            Cell(one.reason),
        )
        for one in _ordered(expected)
    )
    titles = ("Limit", "State", "Condition", "What decides", "Reason")
    files = sorted({one.source for one in expected if one.source})
    if files:
        when = f"These limits were read from {joined(files)} after the run."
    else:
        when = "The plan declared these limits before anything was measured."
    text = (
        f"{when} A limit is met when the whole confidence interval of every estimate that it is "
        "about lies within it, not met when that of one lies beyond it, and otherwise undecided."
    )
    caption = f"{count(len(rows), 'limit')}, broken ones first."
    table = Table("limits-table", caption, tuple(Column(title) for title in titles), rows)
    return Section("limits", "Declared limits", (Prose(((text,),)), table))


def _deciding(one: Expectation, names: Names) -> str:
    """Return how many numbers decide, and the first of those that matter most."""
    some = one.broken or one.undecided or one.kept
    if not some or one.fault:
        return one.why
    if one.state == "met" and len(some) > 1:
        return one.why
    return f"{one.why}: {_named(some[0], names)}{', ...' if len(some) > 1 else ''}"


def _named(estimate: Estimate, names: Names) -> str:
    about = ((names.system, estimate.system), (names.label, estimate.label),
             (names.members, estimate.group))  # fmt: skip
    name = ", ".join(str(shown(key)) for shown, key in about if key) or estimate.metric
    against = f" against {estimate.against}" if estimate.against else ""
    if estimate.value is None:
        return f"{name}{against} is not defined ({estimate.reason})"
    return f"{name}{against} {estimate_text(estimate)}"


_MOST_LISTED = 20


def to_junit(
    expected: Sequence[Expectation], *, name: str = "ombud check", fail_undecided: bool = False
) -> str:
    """Return judged limits as JUnit XML.

    A broken limit is a failure; an undecided one is a skipped case with its reason, or a failure.

    Parameters
    ----------
    expected
        The limits, judged: `ombud.audits.Gate.judge`.
    name
        The name of the suite.
    fail_undecided
        Whether an undecided limit is a failure too.

    Examples
    --------
    >>> print(to_junit([Expectation("met", "small gap", limit="value < 0.1")], name="ours").strip())
    <?xml version="1.0" encoding="UTF-8"?>
    <testsuites>
      <testsuite name="ours" tests="1" failures="0" errors="0" skipped="0">
        <testcase classname="ours" name="small gap">
          <system-out>limit: value &lt; 0.1
    nothing was judged</system-out>
        </testcase>
      </testsuite>
    </testsuites>
    """
    failing = {"not met", "undecided"} if fail_undecided else {"not met"}
    failures = sum(one.state in failing for one in expected)
    skipped = sum(one.state == "undecided" for one in expected) if not fail_undecided else 0
    suites = ElementTree.Element("testsuites")
    counts = {"tests": len(expected), "failures": failures, "errors": 0, "skipped": skipped}
    about = {"name": visible(name)} | {key: str(number) for key, number in counts.items()}
    suite = ElementTree.SubElement(suites, "testsuite", about)
    for one in expected:
        case = ElementTree.SubElement(
            suite, "testcase", classname=visible(name), name=visible(one.said)
        )
        told = visible(f"{one.state}: {one.why}")
        if one.state in failing:
            fault = ElementTree.SubElement(case, "failure", type=one.state, message=told)
            fault.text = "\n".join(_listed(one.broken or one.undecided))
        elif one.state == "undecided":
            ElementTree.SubElement(case, "skipped", message=told)
        lines = [f"{part}: {getattr(one, part)}" for part in _PARTS if getattr(one, part)]
        output = ElementTree.SubElement(case, "system-out")
        output.text = "\n".join(visible(line) for line in (*lines, one.why))
    ElementTree.indent(suites)
    text = ElementTree.tostring(suites, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


_PARTS = ("limit", "where", "reason")


def _listed(some: Sequence[Estimate]) -> list[str]:
    lines = [visible(str(estimate)) for estimate in some[:_MOST_LISTED]]
    return (
        lines if len(some) <= _MOST_LISTED else [*lines, f"and {len(some) - _MOST_LISTED:,} more"]
    )
