"""Docstrings as Markdown that reads well on a site and in a repository's own view."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from inspect import cleandoc

from bibliography import cited_years

__all__ = ["as_markdown"]

_HEADED = re.compile(r"^(?P<title>[A-Z][\w ]+)\n-{3,}\n", re.MULTILINE)
_LISTED = {"Parameters", "Options", "Attributes", "Raises", "Returns", "Yields"}
_ROLE = re.compile(r":[a-z:]+:`~?([^`]+)`")


def as_markdown(docstring: str, references: str = "references.md") -> str:
    """Return a numpy-style docstring as Markdown.

    Formulas become ``$...$``, sections bold titles, parameters a list, doctests blocks of code, and
    the years of references links to the page of references.
    """
    text = cited_years(cleandoc(docstring), lambda key, year: f"[{year}]({references}#{key})")
    start, parts = 0, []
    title = ""
    for found in [*_HEADED.finditer(text), None]:
        body = text[start : found.start() if found else len(text)].strip("\n")
        if title:
            parts.append(f"**{title}**\n")
        if body:
            parts.append(_listed(body) if title in _LISTED else _body(body))
        if found:
            title, start = found["title"], found.end()
    return "\n\n".join(part.strip("\n") for part in parts)


def _listed(body: str) -> str:
    """Return names with indented explanations as a list."""
    lines: list[str] = []
    for name, told in _entries(body):
        names = name if name.startswith(("`", "*")) else f"`{name}`"
        said = _body(told).replace("\n", "\n  ").replace("\n  \n", "\n\n")
        lines.append(f"- {names}: {said}" if told else f"- {_inline(name)}")
    return "\n".join(lines)


def _entries(body: str) -> Iterator[tuple[str, str]]:
    name, told = "", []
    for line in body.split("\n"):
        if line and not line.startswith(" "):
            if name:
                yield name, textwrap.dedent("\n".join(told)).strip("\n")
            name, told = line, []
        else:
            told.append(line)
    if name:
        yield name, textwrap.dedent("\n".join(told)).strip("\n")


def _body(text: str) -> str:
    blocks = re.split(r"\n[ \t]*\n", text)
    written: list[str] = []
    while blocks:
        block = blocks.pop(0)
        if block.lstrip().startswith(".. math::"):
            head, _, rest = block.partition(".. math::")
            formula = rest.strip()
            if not formula and blocks:
                formula = blocks.pop(0)
            written.append(_formula(formula, head))
        elif "\n.. math::" in block:
            before, _, after = block.partition("\n.. math::")
            blocks[:0] = [before, f".. math::{after}"]
        elif block.lstrip().startswith(">>> "):
            written.append(f"```pycon\n{textwrap.dedent(block)}\n```")
        elif block.rstrip().endswith("::") and blocks:
            code = textwrap.dedent(blocks.pop(0))
            while blocks and blocks[0].startswith("    "):
                code += "\n\n" + textwrap.dedent(blocks.pop(0))
            written += [_inline(block.rstrip()[:-1]), f"```text\n{code}\n```"]
        elif block.startswith("    "):
            written.append(f"```text\n{textwrap.dedent(block)}\n```")
        else:
            written.append(_inline(block))
    return "\n\n".join(written)


def _formula(text: str, indent: str) -> str:
    """Return a formula of its own line; what follows at its margin goes on after it."""
    return f"{indent}$$\n{indent}{_plain(text)}\n{indent}$$"


def _plain(formula: str) -> str:
    """Return a formula on one line, without sizes of brackets, which MathML does not have."""
    return " ".join(re.sub(r"\\[bB]igg?[lr]?(?![A-Za-z])", "", formula).split())


def _inline(text: str) -> str:
    text = re.sub(r":math:`([^`]*)`", lambda m: f"${_plain(m[1])}$", text)
    return _ROLE.sub(r"`\1`", text).replace("``", "`")
