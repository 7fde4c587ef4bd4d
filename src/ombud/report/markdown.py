"""A page as Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ombud.report.display import visible
from ombud.report.model import (
    Block,
    CardEntry,
    Cell,
    Chart,
    Heading,
    Name,
    Page,
    Prose,
    Section,
    Strong,
    SystemStatus,
    Text,
    Verdict,
)

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|!~&$])")
# What Markdown would make a link of by itself.
_ADDRESS = re.compile(r"(?i)(\b(?:https?|ftp|javascript|mailto))(:)|(\bwww)(\.)|(\w)(@)")


def _escaped(text: str) -> str:
    """Return text that Markdown prints as it is; addresses do not become links."""
    return _ADDRESS.sub(_inert, _SPECIAL.sub(r"\\\1", visible(text)))


def _inert(found: re.Match[str]) -> str:
    word, sign = (part for part in found.groups() if part)
    return f"{word}\\{sign}"


def _text(text: Text) -> str:
    # Markdown takes no stars beside a space for emphasis.
    parts = (
        f"{' ' * p.text.startswith(' ')}**{_escaped(p.text.strip())}**{' ' * p.text.endswith(' ')}"
        if isinstance(p, Strong)
        else _escaped(p.shown if isinstance(p, Name) else p)
        for p in text
    )  # fmt: skip
    return "".join(parts)


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(cell: Cell) -> str:
    small = f" ({cell.small})" if cell.small else ""
    mark = {"increase": "\u25b2 ", "decrease": "\u25bc "}.get(cell.status, "")
    text = _escaped(f"{mark}{cell.text}{small}")
    return f"[{text}](<{cell.link}>)" if cell.link else text


def _block(block: Block) -> list[str]:
    if isinstance(block, Heading):
        return [f"### {_escaped(block.title)}", ""]
    if isinstance(block, Prose):
        title = [f"**{_escaped(block.title)}**", ""] if block.title else []
        if block.bullets:
            return [*title, *(f"- {_text(text)}" for text in block.paragraphs), ""]
        return [*title, *(line for text in block.paragraphs for line in (_text(text), ""))]
    if isinstance(block, Chart):  # its numbers are in a table
        return []
    ends = ["---:" if c.numeric else "---" for c in block.columns]
    head = [_row(_escaped(c.whole) for c in block.columns), _row(ends)]
    rows = [_row(map(_cell, r)) for r in block.rows]
    return [_escaped(block.caption), "", *head, *rows, "", *map(_escaped, block.notes), ""]


def _line(status: SystemStatus) -> str:
    lead = status.lead
    text = _text(status.sentence)
    if lead is not None and status.more and not status.reference:
        text += f" {status.more} more below."
    note = " (for reference)" if status.reference else ""
    return f"- {status.symbol} **{_escaped(status.name)}**{note}: {text}"


def _bold(texts: Sequence[str]) -> list[str]:
    return [line for text in texts for line in (f"**{_escaped(text)}**", "")]


def verdict_lines(
    verdict: Verdict, notices: Sequence[str] = (), *, whole: bool = True
) -> list[str]:
    """Return a verdict as lines of Markdown; with its findings, or its summary alone."""
    lines = [_text(verdict.headline), "", *_bold(notices), *map(_line, verdict.systems), ""]
    lines += [*(f"- {_text(text)}" for text in verdict.in_short), ""] if verdict.in_short else []
    lines += [f"**How sure:** {_text(verdict.sure)}", ""]
    if verdict.changes:
        changes = " ".join(map(_text, verdict.changes))
        lines += [f"**What could change it:** {changes}", ""]
    lines += [f"**Next:** {_text(verdict.following)}", ""]
    lines += [f"{_text(text)}\n" for text in verdict.effects]
    for title, some in (("Findings", verdict.findings), ("Early signs", verdict.early)):
        if whole and some:
            told = [f"- {_text((*f.sentence, ' ', *f.evidence))}" for f in some]
            lines += [f"## {title}", "", *told, ""]
    return lines


def section_lines(sections: Iterable[Section]) -> list[str]:
    """Return sections as lines of Markdown."""
    lines = []
    for section in sections:
        told = [line for block in section.blocks for line in _block(block)]
        lines += [f"## {_escaped(section.title)}", "", *told] if told else []
    return lines


def document(title: str, lines: Sequence[str]) -> str:
    """Return a document with a title."""
    return "\n".join([f"# {_escaped(title)}", "", *lines]).rstrip() + "\n"


def to_markdown(page: Page, *, whole: bool = True) -> str:
    """Return the report as Markdown: all of it, or the summary alone."""
    lines = _bold(page.warnings if page.verdicts else (*page.warnings, *page.notices))
    for index, verdict in enumerate(page.verdicts):
        lines += [f"## {_escaped(verdict.question)}", ""] if index else []
        lines += verdict_lines(verdict, () if index else page.notices, whole=whole)
    if page.limits and not whole:
        lines += ["## Declared limits", ""]
        lines += [f"- {_escaped(f'{state}: {text}')}" for state, text in page.limits]
        lines.append("")
    lines += [_escaped(" \u00b7 ".join(page.facts)), ""]
    if whole:
        lines += section_lines(page.sections)
    return document(page.title, lines)


def card_markdown(title: str, entries: Sequence[CardEntry]) -> str:
    """Return a card as Markdown."""
    lines = [f"# {_escaped(title)}", ""]
    for entry in entries:
        lines += [f"## {_escaped(entry.question)}", ""]
        lines += [_text(entry.headline) if entry.headline else "Not part of this audit.", ""]
        lines += _bold(entry.notices)
        if entry.finding is not None:
            lines += [f"{_text(entry.finding.sentence)} {_text(entry.finding.evidence)}", ""]
        facts = [_escaped(fact) for fact in entry.facts]
        facts += [f"[report](<{entry.link}>)"] if entry.link else []
        lines += [" \u00b7 ".join(facts), ""] if facts else []
    return "\n".join(lines)
