"""A report as Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ombud.report.blocks import (
    Block,
    Bullets,
    Definitions,
    Figure,
    Name,
    Note,
    Paragraph,
    Section,
    Strong,
    Table,
)
from ombud.report.display import visible

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~&!$])")
_INTERVAL = re.compile(r"\\\[(?P<ends>[-\u2212+∞\d.,]+, [-\u2212+∞\d.,]+)\\\](?![(\[:])")
_LINK = re.compile(r"(?i)(:)(?=//)|(?<=www)(\.)|(?<=\w)(@)(?=\w)")
_OPENING = re.compile(r"^(\s*)([-+=]|\d+(?=[.)]))")


def escape_markdown(text: str) -> str:
    r"""Return text that Markdown shows as it is: no markup, no link, no HTML.

    Examples
    --------
    >>> escape_markdown("<b>*x*</b> https://example.org")
    '\\<b\\>\\*x\\*\\</b\\> https\\://example.org'
    """
    text = _SPECIAL.sub(r"\\\1", visible(text))
    text = _INTERVAL.sub(r"[\g<ends>]", text)  # by itself no link, and easier to read
    return _LINK.sub(lambda match: f"\\{match.group(0)}", text)


def to_markdown(
    title: str,
    sections: Sequence[Section],
    about: Sequence[str] = (),
    *,
    pictures: str = "figures",
) -> str:
    """Return a whole Markdown document (GitHub's kind, for the tables).

    Parameters
    ----------
    title, sections, about
        As for HTML.
    pictures
        The folder in which the figures lie as SVG, relative to the document; empty for none.
    """
    lines = [f"# {escape_markdown(title)}", ""]
    lines += [f"{_opening(escape_markdown(fact))}  " for fact in about] + [""] * bool(about)
    for section in sections:
        lines += _block(section, 2, pictures)
    return "\n".join(lines).rstrip() + "\n"


def _opening(text: str) -> str:
    """Keep a line from being read as a list or a heading because of its first sign."""
    if re.match(r"\s*\d+[.)]", text):
        return re.sub(r"([.)])", r"\\\1", text, count=1)
    return _OPENING.sub(r"\1\\\2", text) if re.match(r"\s*[-+=]", text) else text


def _inline(paragraph: Paragraph) -> str:
    parts = []
    for part in paragraph.parts:
        if isinstance(part, Strong | Name):
            text = escape_markdown(part.shown if isinstance(part, Name) else part.text).strip()
            parts.append(f"**{text}**" if text else "")
        else:
            parts.append(escape_markdown(part))
    return _opening("".join(parts).strip())


def _block(block: Block, level: int, pictures: str) -> list[str]:
    if isinstance(block, Paragraph):
        return [_inline(block), ""]
    if isinstance(block, Bullets):
        return [*(f"- {_inline(item)}" for item in block.items), ""]
    if isinstance(block, Definitions):
        return [
            *(f"- **{escape_markdown(term)}**: {_inline(said)}" for term, said in block.items),
            "",
        ]
    if isinstance(block, Note):
        inner = [f"**{escape_markdown(block.title)}**", ""] if block.title else []
        for said in block.blocks:
            inner += _block(said, level, pictures)
        return [*(f"> {line}".rstrip() for line in inner[:-1]), ""]
    if isinstance(block, Table):
        return _table(block)
    if isinstance(block, Figure):
        alt = escape_markdown(block.alt)
        picture = [f"![{alt}]({pictures}/{block.name}.svg)", ""] if pictures else []
        title = f"{'#' * level} {escape_markdown(block.title)}"
        return [title, "", *picture, _opening(escape_markdown(block.caption)), ""]
    lines = [f"{'#' * min(level, 6)} {escape_markdown(block.title)}", ""]
    for one in block.blocks:
        lines += _block(one, level + 1, pictures)
    return lines


def _table(table: Table) -> list[str]:
    lines = [f"**{escape_markdown(table.caption)}**", ""]
    lines.append(_row(column.title for column in table.columns))
    rules = ("---:" if column.align == "right" else ":---" for column in table.columns)
    lines.append(f"| {' | '.join(rules)} |")
    lines += [_row(cell.text for cell in row) for row in table.rows]
    lines.append("")
    for note in table.notes:
        lines += [f"{_opening(escape_markdown(note))}  "]
    return [*lines, ""] if table.notes else lines


def _row(texts: Iterable[str]) -> str:
    return f"| {' | '.join(escape_markdown(text) for text in texts)} |"
