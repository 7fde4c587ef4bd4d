"""What a terminal shows after a run: the findings first, and never more than a screen."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from ombud.audits.expectations import Gate
from ombud.audits.result import Result
from ombud.report.answer import Answer, answers_of
from ombud.report.display import count, visible
from ombud.report.expected import first_expected
from ombud.report.findings import EstimateSet, reading, weight
from ombud.report.tables import MARKS, Notes, number_cells
from ombud.report.terminal import largest_labels, overall_families
from ombud.report.titles import in_words
from ombud.stats.estimate import Estimate

MOST_LINES = 24
"""Lines of a summary; the line with the report's path makes 25."""

_ACROSS = 3
"""So many systems stand side by side; with more, each has a row."""
_FINDINGS = 3
_LABELS = 3
_NOTES = 3
_MOST_LEFT_OUT = 6
_ROOM_FOR_NUMBERS = 11
"""With less room than this, what was left out is told in one sentence."""


def summary_lines(
    result: Result, *, width: int = 80, most: int = MOST_LINES, gate: Gate | None = None
) -> tuple[str, ...]:
    """Return what was found, in at most so many lines.

    Findings come first, as sentences with the names of labels and groups; then how sure they are,
    whether declared limits are met, the numbers of each system, reasons as footnotes, and what was
    left out. A number stands on one line and a name is never cut: where both do not fit beside
    each other, the number comes below. A single word that is longer than a line is left whole.

    Parameters
    ----------
    result
        What was found.
    width
        Columns of the terminal.
    most
        Lines at most; what does not fit is counted, and is in the report.
    gate
        Limits to judge by; default, those of the plan.
    """
    shown = in_words(result)
    answers = answers_of(shown)
    warning = "" if result.integrity is None else result.integrity.said
    lines = [*_wrapped(warning, width), *_wrapped(result.plan.title, width)[:2]]
    for sentence in warnings_of(result):
        lines += _wrapped(f"warning: {sentence}", width, "  ", "")
    expected = _expected(gate or Gate.of(result.plan), result, width)
    for answer in answers[:1]:
        lines += _answer(answer, width, most - len(lines) - len(expected) - _ROOM_FOR_NUMBERS)
    lines += expected
    if len(answers) > 1:
        lines += _wrapped(f"{count(len(answers) - 1, 'more answer')} in the report.", width)
    room = most - len(lines)
    needed = len(_left_out(result, width, _MOST_LEFT_OUT))
    if room - needed < _ROOM_FOR_NUMBERS:
        needed = len(_left_out(result, width, 0))
    lines += _numbers(shown, width, room - needed)
    lines += _left_out(result, width, most - len(lines))
    return tuple(lines[:most])


def warnings_of(result: Result) -> tuple[str, ...]:
    """Return what a reader must know before anything else: what was given and does not fit."""
    return tuple(str(e) for e in result.exclusions if e.is_warning)


def _wrapped(text: str, width: int, indent: str = "", first: str | None = None) -> list[str]:
    """Return text as lines; words are never cut, so that a long one may stand out."""
    return textwrap.wrap(
        visible(text),
        max(20, width),
        initial_indent=indent if first is None else first,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _answer(answer: Answer, width: int, room: int) -> list[str]:
    lines = _wrapped(answer.question, width)
    sure = _wrapped(answer.how_sure.plain, width)
    unknown = []
    if answer.unknown is not None:
        unknown = _wrapped(f"Not known: {answer.unknown.plain}", width)
    if not answer.findings:
        small = any(reading(e) == "small" for e in answer.tested)
        told = _wrapped(answer.said.plain, width, "  ")
        return [*lines, *told, *(sure if small else []), *unknown]
    ordered = answer.ordered
    said = 0
    for finding in ordered[:_FINDINGS]:
        mark = MARKS.get(reading(finding.estimate), "-")
        more = _wrapped(finding.said.plain, width, "    ", f"  {mark} ")
        if said and len(lines) + len(more) + len(sure) + len(unknown) + 1 > room:
            break
        lines += more
        said += 1
    if said < len(ordered):
        lines.append(f"    {count(len(ordered) - said, 'more finding')} in the report.")
    return [*lines, *sure, *unknown]


def _expected(gate: Gate, result: Result, width: int) -> list[str]:
    """Return whether limits are met: broken ones first, and those without room counted."""
    shown, rest = first_expected(gate.judge(result.estimates))
    lines = []
    for one in shown:
        why = "" if one.state == "met" else f" ({one.why})"
        lines += _wrapped(f"{one.state}: {one.said}{why}", width, "    ", "  ")
    if rest:
        lines += _wrapped(f"{rest}.", width, "    ", "  ")
    return ["Expected:", *lines] if lines else []


def _numbers(result: Result, width: int, room: int) -> list[str]:
    """Return the numbers of the measures that fit, with their footnotes."""
    lines: list[str] = []
    done = 0
    for family in overall_families(result):
        many = len(family.systems) > _ACROSS
        for rows in range(len(family.systems), _ACROSS - 1, -1) if many else range(_LABELS, 0, -1):
            more = _with_notes(family, rows, width)
            if len(lines) + len(more) + 1 <= room:
                break
        else:
            break
        lines += more
        done += 1
    rest = len({e.key or e.metric for e in result.estimates}) - done
    if rest > 0:
        told = f"{count(rest, 'more measure')} in the report."
        lines += _wrapped(told if done else "The numbers are in the report.", width)
    return lines[: max(0, room)]


def _with_notes(family: EstimateSet, rows: int, width: int) -> list[str]:
    notes = Notes()
    lines = ["", *_family(family, rows, notes, width)]
    lines += [line for text in notes.lines()[:_NOTES] for line in _wrapped(text, width, "  ")]
    if len(notes.keys) > _NOTES:
        lines.append(f"  {count(len(notes.keys) - _NOTES, 'more reason')} in the report.")
    return lines


def _family(family: EstimateSet, most: int, notes: Notes, width: int) -> list[str]:
    systems = family.systems
    if len(systems) <= _ACROSS:
        labels = largest_labels(family, most)
        across = _across(family, labels, Notes(), width)
        if across is not None:
            return _across(family, labels, notes, width) or []
        wanted = [e for e in family.estimates if e.label in labels]
        chosen = sorted(wanted, key=lambda e: (labels.index(e.label), systems.index(e.system)))
        told = _hidden(len(family.labels) - len(labels))
    else:
        clearest = [max(family.of(system=s).estimates, key=weight) for s in systems]
        kept = sorted(clearest, key=weight, reverse=True)[:most]
        chosen = [e for e in clearest if e in kept]
        told = "the clearest label of each system" if len(family.labels) > 1 else ""
        if len(chosen) < len(systems):
            rest = f"{count(len(systems) - len(chosen), 'more system')} in the report"
            told = f"{told}; {rest}" if told else rest
    heading = f"{family.metric.title} ({told})" if told else family.metric.title
    texts = [cell.text for cell in number_cells(chosen, notes)]
    whole = "all together" if len(family.labels) > 1 else ""
    names = [", ".join(filter(None, (e.system, e.label or whole))) or "value" for e in chosen]
    return [*_wrapped(heading, width), *_listed(names, texts, width)]


def _hidden(labels: int) -> str:
    return f"{count(labels, 'more label')} in the report" if labels else ""


def _listed(names: Sequence[str], texts: Sequence[str], width: int) -> list[str]:
    """Return a name and a number a line; the number below its name where both do not fit."""
    longest = max((len(visible(name)) for name in names), default=0)
    digits = max((len(text) for text in texts), default=0)
    if 2 + longest + 2 + digits <= width:
        return [f"  {visible(n):<{longest}}  {t}" for n, t in zip(names, texts, strict=True)]
    lines: list[str] = []
    for name, text in zip(names, texts, strict=True):
        beside = f"  {visible(name)}  {text}"
        if len(beside) <= width:
            lines.append(beside)
        else:
            lines += [*_wrapped(name, width, "    ", "  "), f"    {text}"]
    return lines


def _across(
    family: EstimateSet, labels: Sequence[str], notes: Notes, width: int
) -> list[str] | None:
    """Return labels down and systems across, or None where that is wider than the terminal."""
    systems = family.systems
    columns: list[dict[str, str]] = []
    for system in systems:
        some: list[Estimate] = [
            e for e in family.estimates if e.system == system and e.label in labels
        ]
        cells = number_cells(some, notes)
        columns.append({e.label: cell.text for e, cell in zip(some, cells, strict=True)})
    title = visible(family.metric.title)
    names = {label: f"  {visible(label)}" if label else "  all together" for label in labels}
    first = max(len(title), *(len(name) for name in names.values()))
    heads = [visible(system) or "value" for system in systems]
    widths = [
        max(len(head), *(len(column.get(label, "not measured")) for label in labels))
        for head, column in zip(heads, columns, strict=True)
    ]
    if first + sum(2 + w for w in widths) > width:
        return None
    lines = [
        title.ljust(first) + "".join(f"  {h:>{w}}" for h, w in zip(heads, widths, strict=True))
    ]
    for label in labels:
        cells_ = (
            f"  {c.get(label, 'not measured'):>{w}}" for c, w in zip(columns, widths, strict=True)
        )
        lines.append(names[label].ljust(first) + "".join(cells_))
    hidden = _hidden(len(family.labels) - len(labels))
    return [*lines, f"  {hidden}"] if hidden else lines


def _left_out(result: Result, width: int, room: int) -> list[str]:
    """Return what was left out, as many reasons as fit into so many lines, and the rest counted."""
    left = (e for e in result.exclusions if not (e.is_warning or e.is_assumption))
    some = sorted(left, key=lambda e: -e.count)
    told = [_wrapped(str(e), width, "  ") for e in some]
    for shown in range(len(told), 0, -1):
        lines = ["", "Left out:", *(line for one in told[:shown] for line in one)]
        if shown < len(told):
            lines.append(
                f"  {count(len(told) - shown, 'more reason')} in the report; -v shows all."
            )
        if len(lines) <= room:
            return lines
    if not some:
        return []
    text = f"Left out for {count(len(some), 'reason')}: see the report, or use -v."
    return _wrapped(text, width)
