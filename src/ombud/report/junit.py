"""Limits as JUnit XML, which build servers read: one test case for each."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree

from ombud.audits.expectations import Expectation
from ombud.report.display import visible
from ombud.stats.estimate import Estimate

_MOST = 20


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
    lines = [visible(str(estimate)) for estimate in some[:_MOST]]
    return lines if len(some) <= _MOST else [*lines, f"and {len(some) - _MOST:,} more"]
