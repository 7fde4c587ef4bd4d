"""A page as one HTML file: no network, no script needed to read it, hostile names inert."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Sequence
from functools import lru_cache
from hashlib import sha256
from importlib.resources import files
from itertools import groupby
from typing import Any

from ombud.report import charts
from ombud.report.display import templates_of, visible
from ombud.report.model import CardEntry, Finding, Name, Page, Strong, Table, Verdict, same_topic

_SHOWN = 3
"""Findings that are open."""

_MOST_FINDINGS = 30
"""Findings in sentences; the tables have all of them."""

_ROWS = 14
"""Rows of a table before the others are folded."""

_MOST_ROWS = 60
"""Rows of a table on the page; longer ones are read in the table of all numbers."""

_MARKS = {
    "finding": "clear difference",
    "early sign": "early sign",
    "none": "no clear difference",
    "below limit": "below the declared limit",
    "unknown": "cannot tell",
}


def to_html(page: Page, *, script: bool = True) -> str:
    """Return the report as one file.

    With `script`, tables can be sorted, filtered and saved; without it the file holds no script.
    """
    code = _resource("page.js") if script else ""
    digest = base64.b64encode(sha256(code.encode()).digest()).decode()
    allowed = f"'sha256-{digest}'" if script else "'none'"
    policy = (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    template = _environment().get_template("page.html")
    return str(
        template.render(
            page=page,
            shown=_SHOWN,
            most_findings=_MOST_FINDINGS,
            rows=_ROWS,
            most=_MOST_ROWS,
            marks=_MARKS,
            bars=_bars,
            change=_change,
            topics=same_topic,
            numbers=script_json(_compact(page.numbers)) if page.numbers and script else "",
            style=_resource("style.css"),
            script=code,
            policy=policy,
        ).lstrip()
    )


def card_html(title: str, entries: Sequence[CardEntry]) -> str:
    """Return a card as one file without a script."""
    template = _environment().get_template("card.html")
    policy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
    page = template.render(
        title=title, entries=entries, style=_resource("style.css"), policy=policy,
        bars=lambda finding: charts.bars(finding.levels, _largest([finding]), finding.span),
    )  # fmt: skip
    return str(page).lstrip()


def standalone_svg(panel: str) -> str:
    """Return a chart of the page as an SVG file of its own, which brings the page's colors."""
    rules = [line for line in _resource("style.css").splitlines() if line.startswith(_OF_CHARTS)]
    font = "svg{font-family:system-ui,sans-serif}"
    opened = panel.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)
    return opened.replace(">", f"><style>{font}{''.join(rules)}</style>", 1)


_OF_CHARTS = (":root", "@media screen and (prefers-color-scheme:dark)", "svg")


def _largest(findings: Iterable[Finding]) -> float:
    """Return the largest level of some findings, confidence intervals included."""
    ends = [v for f in findings for level in f.levels for v in (level.value, *(f.span or ()))]
    return max(ends, default=0.0) or 1.0


def _bars(finding: Finding, verdict: Verdict) -> str:
    most = _largest((*verdict.findings, *verdict.early))
    return charts.bars(finding.levels, most, finding.span)


def _change(finding: Finding, verdict: Verdict) -> str:
    leads = [s.lead for s in verdict.systems if s.lead is not None]
    level, other = (one.value for one in finding.levels)
    return charts.change(level, other, finding.span, _largest(leads))


def script_json(content: Any) -> str:
    """Return JSON that cannot end the script element that it is in."""
    text = json.dumps(content, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _compact(table: Table) -> dict[str, Any]:
    """Return a long table as columns: each different text once, and where it stands.

    Words stand in runs (place, length, ...). Numbers that are mostly different stand in full.
    """
    columns = []
    for index, column in enumerate(table.columns):
        texts = [visible(row[index].text) for row in table.rows]
        if not any(texts):
            continue
        different = list(dict.fromkeys(texts))
        place = {text: i for i, text in enumerate(different)}
        made: dict[str, Any] = {"title": column.title, "numeric": column.numeric, "of": different}
        if not column.numeric:
            runs = [(place[text], len(list(run))) for text, run in groupby(texts)]
            made["runs"] = [number for run in runs for number in run]
        elif 2 * len(different) > len(texts):
            made["of"] = " ".join(texts)
        else:
            made["at"] = [place[text] for text in texts]
        columns.append(made)
    return {"caption": table.caption, "columns": columns}


def _resource(name: str) -> str:
    return (files("ombud.report") / "templates" / name).read_text(encoding="utf-8")


@lru_cache(maxsize=1)
def _environment() -> Any:
    from markupsafe import Markup, escape

    def words(text: Any) -> Markup:
        """Return a sentence; every part is escaped, and a name keeps its writing direction."""
        made = Markup("")
        for part in text:
            if isinstance(part, Strong):
                made += Markup("<b>{}</b>").format(visible(part.text))
            elif isinstance(part, Name):
                made += Markup("<bdi>{}</bdi>").format(part.shown)
            else:
                made += escape(visible(part))
        return made

    environment = templates_of("ombud.report", visible)
    environment.filters |= {
        "words": words,
        "trusted": Markup,
        "kind": lambda block: type(block).__name__.lower(),
    }
    return environment
