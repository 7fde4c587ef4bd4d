"""A report is a pure function of a result."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path

import polars as pl

from ombud.audits.gate import Expectation, Gate
from ombud.audits.provenance import record_reports
from ombud.audits.result import Result
from ombud.errors import PlanError
from ombud.files import csv_text, write_text
from ombud.metrics.engine.signs import reading
from ombud.report.html import standalone_svg, to_html
from ombud.report.latex import to_latex
from ombud.report.markdown import to_markdown
from ombud.report.model import Chart, Page, Section, Verdict
from ombud.report.page import build_page
from ombud.report.pdf import write_pdf
from ombud.report.redaction import merged_groups, shown_plan
from ombud.report.terminal import MOST_LINES, terminal_lines

FORMATS = {
    "html": ".html",
    "pdf": ".pdf",
    "markdown": ".md",
    "latex": ".tex",
    "json": ".json",
    "csv": ".csv",
}
"""What a report can be written as, and how such a file ends."""


@dataclass(frozen=True, eq=False)
class Report:
    """A result in words, charts and tables: the verdict first.

    Parameters
    ----------
    result
        What an audit found.
    gate
        Limits that are shown on the first screen, with whether they are met: a `Gate` from a
        file, or limits already judged. Default, what the plan of the result declares.
    public
        Whether the report is for everyone: it then shows no single users and texts.

    Examples
    --------
    >>> from ombud.audits import Plan, Result
    >>> from ombud.stats.estimate import Estimate
    >>> found = Estimate(metric="share@10", value=0.25, interval=(0.2, 0.31), method="wilson", n=99)
    >>> "0.250 (0.200 to 0.310)" in Report(Result(Plan(title="Ours"), (found,))).markdown()
    True
    """

    result: Result
    gate: Gate | tuple[Expectation, ...] | None = None
    public: bool = False

    @cached_property
    def expected(self) -> tuple[Expectation, ...]:
        """The declared limits, and whether they are met."""
        gate = Gate.of(self.result.plan) if self.gate is None else self.gate
        if not isinstance(gate, Gate):
            return gate
        answers = self.result.answers if gate.is_about_verdict else ()
        return gate.judge(self.result.estimates, answers)

    @cached_property
    def page(self) -> Page:
        """Everything that the report says, as data."""
        page = build_page(merged_groups(self.result), self.expected, public=self.public)
        return page.for_everyone() if self.public else page

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """The verdict of each question, that of the preset first."""
        return self.page.verdicts

    @property
    def sections(self) -> tuple[Section, ...]:
        """What follows the findings, in order."""
        return tuple(self.page.sections)

    @property
    def warning(self) -> str:
        """What changes how the answer is read: edited numbers, input that does not fit."""
        return " ".join((*self.page.warnings, *self.page.notices))

    def html(self, *, script: bool = True) -> str:
        """Return the report as a self-contained HTML file, which loads nothing and sends nothing.

        Parameters
        ----------
        script
            Whether tables can be sorted, filtered and saved; without it the file has no script.
        """
        return to_html(self.page, script=script)

    def markdown(self) -> str:
        """Return the report as Markdown."""
        return to_markdown(self.page)

    def summary(self) -> str:
        """Return the verdict and declared limits as a page of Markdown.

        It is what a build server shows beside a run (GitHub: the step summary).
        """
        return to_markdown(self.page, whole=False)

    def lines(self, *, width: int = 80, most: int = MOST_LINES) -> list[str]:
        """Return the verdict for a terminal, in at most so many lines."""
        return terminal_lines(self.page, width, most)

    def latex(self) -> str:
        """Return the tables of the report as LaTeX."""
        return to_latex(self.page.sections, self.warning)

    @property
    def figures(self) -> dict[str, str]:
        """The charts of the report as SVG, by name; those with several panels are numbered."""
        found: dict[str, str] = {}
        for chart in (b for s in self.sections for b in s.blocks if isinstance(b, Chart)):
            for number, panel in enumerate(chart.panels, 1):
                name = chart.name if len(chart.panels) == 1 else f"{chart.name}-{number}"
                found[name] = standalone_svg(panel)
        return found

    def save_figures(self, folder: Path | str) -> tuple[Path, ...]:
        """Write the charts of the report as SVG files into a folder, and return the files."""
        paths = []
        for name, content in self.figures.items():
            paths.append(Path(folder) / f"{name}.svg")
            write_text(paths[-1], content)
        return tuple(paths)

    def json(self) -> str:
        """Return every estimate, what it shows, and the verdicts, as JSON."""
        shown = merged_groups(self.result)
        content = shown.to_dict()
        for estimate, fields in zip(shown.estimates, content["estimates"], strict=True):
            fields["reading"] = reading(estimate)
        content |= {
            "title": self.result.plan.title,
            "verdicts": [verdict.to_dict() for verdict in self.verdicts],
            "expected": [one.to_dict() for one in self.expected],
            "plan": shown_plan(self.result.plan),
            "provenance": dict(self.result.provenance),
        }
        if self.result.integrity is not None and self.result.integrity.said:
            content["integrity"] = self.result.integrity.to_dict()
        return json.dumps(content, indent=1, allow_nan=False, sort_keys=True) + "\n"

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the page in a frame, which no script of it can leave."""
        page = escape(self.html(script=False), quote=True)
        style = "width:100%;height:640px;border:1px solid #ccc;border-radius:8px"
        return f'<iframe sandbox title="Report" style="{style}" srcdoc="{page}"></iframe>'

    def save(self, path: Path | str, formats: Iterable[str] | None = None) -> tuple[Path, ...]:
        """Write the report, each file whole or not at all.

        Parameters
        ----------
        path
            A file, whose ending says the format; or a folder for ``report.html`` and so on.
        formats
            Some of `FORMATS`, for a folder; default, HTML.

        Returns
        -------
        The files that were written. Those in the folder of the result are noted there with their
        hashes.
        """
        written = self._save(Path(path), formats)
        if self.result.folder is not None:
            record_reports(self.result.folder, written)
        return written

    def _save(self, path: Path, formats: Iterable[str] | None) -> tuple[Path, ...]:
        endings = {ending: name for name, ending in FORMATS.items()}
        if formats is None and path.suffix in endings:
            self._write(path, endings[path.suffix])
            return (path,)
        if path.suffix and not path.is_dir() and formats is None:
            raise PlanError(
                f"{path} ends in {path.suffix}; expected a folder, or one of {', '.join(endings)}"
            )
        wanted = ("html",) if formats is None else tuple(formats)
        unknown = [name for name in wanted if name not in FORMATS]
        if unknown:
            raise PlanError(f"no format is called {unknown[0]!r}; known: {', '.join(FORMATS)}")
        paths = tuple(path / f"report{FORMATS[name]}" for name in wanted)
        for name, file in zip(wanted, paths, strict=True):
            self._write(file, name)
        return paths

    def _wide(self) -> pl.DataFrame:
        return merged_groups(self.result).to_wide()

    def _write(self, path: Path, name: str) -> None:
        if name == "pdf":
            write_pdf(self.html(script=False), path)
        else:
            write_text(path, self._text(name))

    def _text(self, name: str) -> str:
        if name == "csv":
            return csv_text(self._wide())
        forms = {"html": self.html, "markdown": self.markdown, "latex": self.latex}
        return forms[name]() if name in forms else self.json()
