"""A report for the terminal: the verdict, findings and one table in at most 25 lines."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from ombud.report.display import count, joined, shorten, visible
from ombud.report.model import Cell, Page, SystemStatus, Table, plain, same_topic

MOST_LINES = 24
"""The path of the report follows."""

_FINDINGS = 3
_ROWS = 4
_LIMITS = 3


def terminal_lines(page: Page, width: int = 80, most: int = MOST_LINES) -> list[str]:
    """Return the verdict, up to three findings as sentences, and one table.

    `width` is that of the terminal, in columns; `most` is how many lines there are at most.
    """
    lines = [line for warning in page.warnings for line in _wrap(warning, width)]
    notices = [line for notice in page.notices for line in _wrap(notice, width)]
    verdict = page.verdict
    if verdict is None:
        return [*lines, *_wrap(page.title, width), *notices][:most]
    lines += _wrap(verdict.question, width)[:2]
    lines += [*_wrap(plain(verdict.headline), width), *notices, ""]
    for sentence in verdict.in_short:
        lines += _wrap(plain(sentence), width, "\u00b7 ", "  ")
    lines += [""] if verdict.in_short else []
    end = _wrap(f"How sure: {plain(verdict.sure)}", width)
    for effect in verdict.effects[:1]:
        end += _wrap(plain(effect), width)
    for state, text in page.limits[:_LIMITS]:
        end += _wrap(f"{state}: {text}", width, "", "  ")
    if len(page.limits) > _LIMITS:
        end.append(f"  {count(len(page.limits) - _LIMITS, 'more limit')} in the report.")
    if len(page.verdicts) > 1:
        end.append(f"{count(len(page.verdicts) - 1, 'more question')} in the report.")
    end += _wrap(f"Next: {plain(verdict.following)}", width)
    shown = 0
    for finding, *others in same_topic(verdict.findings)[:_FINDINGS]:
        text = f"{plain(finding.sentence)} {finding.difference}."
        if others:
            text += f" Also {joined([verdict.name_of(f) for f in others])}."
        told = _wrap(text, width, f"{finding.symbol} ", "  ")
        if shown and len(lines) + len(told) + len(end) >= most:
            break
        lines += told
        shown += 1 + len(others)
    if (rest := len(verdict.findings) - shown) > 0:
        lines.append(f"  {count(rest, 'more finding')} in the report.")
    said = {f.estimate.system for f in verdict.findings}
    for status in (s for s in verdict.systems if s.system not in said):
        told = _wrap(_line(status), width, "", "  ")
        if len(lines) + len(told) + len(end) > most:
            break
        lines += told
    lines += end
    table = next((b for s in page.sections for b in s.blocks if _is_matrix(b)), None)
    if isinstance(table, Table):
        title = _wrap(table.caption.partition(". ")[0].rstrip("."), width)
        room = most - len(lines) - len(title) - 1
        if room > 1:
            lines += ["", *title, *_grid(table, width, min(_ROWS, room - 1))]
    return lines[:most]


def _is_matrix(block: object) -> bool:
    return isinstance(block, Table) and any(column.numeric for column in block.columns)


def _line(status: SystemStatus) -> str:
    note = " (for reference)" if status.reference else ""
    return f"{status.symbol} {status.name}{note}: {plain(status.sentence)}"


def _wrap(text: str, width: int, first: str = "", rest: str = "") -> list[str]:
    return textwrap.wrap(
        visible(text), max(40, width), initial_indent=first, subsequent_indent=rest,
        break_on_hyphens=False, break_long_words=False,
    )  # fmt: skip


def _grid(table: Table, width: int, rows: int) -> list[str]:
    """Return the first rows of a table, as many columns as fit."""
    words = sum(not column.numeric for column in table.columns)
    body = [[_cell(c, i < words) for i, c in enumerate(row)] for row in table.rows[:rows]]
    heads = [shorten(column.whole, 24) for column in table.columns]
    heads[0] += f" ({table.unit})" if table.unit else ""
    widths = [max(map(len, column)) for column in zip(heads, *body, strict=True)]
    while sum(widths) + 2 * len(widths) > width and len(widths) > 2:
        widths.pop()
    return [_cells(row, widths, words) for row in (heads, *body)]


def _cells(row: Sequence[str], widths: Sequence[int], words: int) -> str:
    cells = zip(row, widths, strict=False)
    return "  ".join(
        t.ljust(w) if i < words else t.rjust(w) for i, (t, w) in enumerate(cells)
    ).rstrip()


def _cell(cell: Cell, word: bool) -> str:
    mark = {"increase": "\u25b2 ", "decrease": "\u25bc "}.get(cell.status, "")
    return shorten(cell.text, 28) if word else f"{mark}{visible(cell.text)}"
