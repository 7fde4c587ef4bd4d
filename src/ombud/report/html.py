"""A report and its appendix as HTML files: no network, no evaluation of text, hostile names inert.

A policy inside the file (CSP) forbids every load and every script but the two that are embedded,
which it names by hash. Figures are drawn by Vega's expression *interpreter*, so that the policy
need not permit ``eval``; a static picture of each stands in the file for paper and for browsers
without scripts.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from importlib.resources import files
from typing import Any

from ombud.audits.expectations import Expectation
from ombud.report.answer import MOST_WORDS, Answer
from ombud.report.blocks import (
    Block,
    Figure,
    Name,
    Part,
    Section,
    Strong,
    Table,
    figures_in,
    tables_in,
)
from ombud.report.bundle import drawing_script
from ombud.report.display import visible
from ombud.report.expected import first_expected
from ombud.report.images import to_svg
from ombud.report.themes import DARK, LIGHT

MOST_ROWS = 10
"""A table of the report shows so many rows; the appendix has all."""


@dataclass(frozen=True, eq=False)
class Page:
    """What the report and its appendix have in common.

    Parameters
    ----------
    title
        The title of the report.
    sections
        The content.
    about
        Short facts under the title.
    warning
        What must be read before all else, such as that the numbers were edited; or empty.
    """

    title: str
    sections: Sequence[Section]
    about: Sequence[str] = ()
    warning: str = ""


def to_html(
    page: Page,
    answers: Sequence[Answer] = (),
    gate: Sequence[Expectation] = (),
    *,
    appendix: str = "",
    interactive: bool = True,
) -> str:
    """Return a whole HTML page, the answer first.

    Parameters
    ----------
    page
        Title and sections.
    answers
        What the first screen says; that of further questions follows.
    gate
        What was declared beforehand, for the first screen.
    appendix
        Where the appendix lies, relative to this file; empty for none.
    interactive
        Whether figures answer to the pointer; without it the file is smaller and has no script.
    """
    own = [answer.figure for answer in answers if answer.figure is not None]
    figures = (*own, *figures_in(page.sections))
    scripts: list[str] = []
    if figures and interactive:
        scripts = [drawing_script(), _resource("report.js")]
    specs = {figure.name: figure.spec for figure in figures} if scripts else {}
    tables = {table.name for table in tables_in(page.sections) if not table.folded}
    head = len(page.title.split()) + (len(page.about[0].split()) if page.about else 0)
    room = MOST_WORDS - min(head, 30)
    least = answers[0].least_words if answers else 0
    expected, more = first_expected(gate, room - least - 1)
    said = [f"{one.state} {one.said}" for one in expected] + [more]
    room -= sum(len(text.split()) for text in said) + bool(gate)
    return str(
        _environment()
        .get_template("report.html")
        .render(
            title=page.title,
            warning=page.warning,
            about=page.about,
            sections=page.sections,
            answers=answers,
            gate=expected,
            gate_rest=more,
            room=room,
            appendix=appendix,
            tables=tables,
            style=_resource("style.css"),
            scripts=scripts,
            policy=_policy(scripts),
            specs=script_json({"figures": specs, "light": LIGHT, "dark": DARK}),
            pictures={figure.name: _picture(figure) for figure in figures},
        )
    )


def to_appendix(page: Page, data: Mapping[str, Any], *, report: str = "report.html") -> str:
    """Return the appendix: a page whose tables are data.

    Parameters
    ----------
    page
        Title and sections.
    data
        The rows of its tables, by name.
    report
        Where the report lies, relative to this file.
    """
    scripts = [_resource("appendix.js")]
    return str(
        _environment()
        .get_template("appendix.html")
        .render(
            title=f"{page.title}: appendix",
            warning=page.warning,
            about=page.about,
            sections=page.sections,
            report=report,
            opened=[next(iter(data), "")],
            lengths={name: _length(table) for name, table in data.items()},
            pictures={figure.name: _picture(figure) for figure in figures_in(page.sections)},
            data=script_json(data),
            style=_resource("style.css"),
            scripts=scripts,
            policy=_policy(scripts),
        )
    )


def _length(table: Mapping[str, Any]) -> int:
    first = table["columns"][0]
    return len(first["text"]["at"] if "text" in first else first["value"])


def script_json(content: Any) -> str:
    r"""Return JSON that cannot end the script element it stands in.

    Examples
    --------
    >>> script_json({"a": "</script>&\u2028"})
    '{"a":"\\u003c/script\\u003e\\u0026\\u2028"}'
    """
    text = json.dumps(content, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", r"\u003c").replace(">", r"\u003e").replace("&", r"\u0026")


def _policy(scripts: Sequence[str]) -> str:
    hashes = [base64.b64encode(sha256(s.encode("utf-8")).digest()).decode() for s in scripts]
    allowed = " ".join(f"'sha256-{digest}'" for digest in hashes) or "'none'"
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _resource(name: str) -> str:
    return (files("ombud.report") / "templates" / name).read_text(encoding="utf-8")


# Outlines of countries have tens of thousands of places; a tenth of a pixel is enough for them.
_LONG_PATH = re.compile(r'\bd="[^"]{500,}"')
_DIGITS = re.compile(r"(\.\d)\d+")


def _picture(figure: Figure) -> str:
    """Return the static picture as a data address; inside an image, nothing in it can act."""
    drawn = _LONG_PATH.sub(lambda path: _DIGITS.sub(r"\1", path[0]), to_svg(figure.spec))
    return "data:image/svg+xml;base64," + base64.b64encode(drawn.encode()).decode()


@lru_cache(maxsize=1)
def _environment() -> Any:
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    def shown(value: Any) -> Any:
        return value if isinstance(value, Markup) else visible(str(value))

    def trusted(text: str) -> Markup:
        return Markup(text)

    environment = Environment(
        loader=PackageLoader("ombud.report", "templates"),
        autoescape=True,
        finalize=shown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"trusted": trusted, "kind": _kind, "part_kind": _part_kind}
    environment.filters |= {"split_number": _split_number, "cut": _cut}
    return environment


def _cut(table: Table) -> Table:
    return table.cut(MOST_ROWS)


def _kind(block: Block) -> str:
    return type(block).__name__.lower()


def _part_kind(part: Part) -> str:
    return {Strong: "strong", Name: "name"}.get(type(part), "text")


def _split_number(text: str) -> tuple[str, str]:
    """Return the value and its interval apart, so that a line may break between them only."""
    value, bracket, rest = text.partition(" [")
    return (value, bracket.strip() + rest) if bracket and rest.count(",") else (text, "")
