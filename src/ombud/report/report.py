"""A report is a pure function of a result."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from ombud.audits.expectations import Expectation, Gate
from ombud.audits.integrity import record_reports
from ombud.audits.result import Result
from ombud.errors import PlanError
from ombud.files import write_atomically, write_text
from ombud.report.answer import Answer, answers_of
from ombud.report.appendix import appendix_sections, table_data
from ombud.report.blocks import Block, Bullets, Figure, Section, figures_in
from ombud.report.compose import sections_of
from ombud.report.expected import expected_section
from ombud.report.findings import families, reading
from ombud.report.html import Page, to_appendix, to_html
from ombud.report.images import to_png, to_svg
from ombud.report.latex import to_latex
from ombud.report.markdown import to_markdown
from ombud.report.pdf import write_pdf
from ombud.report.redaction import shown_plan
from ombud.report.sections.scope import who_audits
from ombud.report.summary import warnings_of
from ombud.report.titles import in_words
from ombud.report.wording import sentences_of

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
    """A result in words, pictures and tables.

    Parameters
    ----------
    result
        What an audit found.
    gate
        Limits that stand on the first screen, with whether they are met: a `Gate` from a file,
        or limits already judged. Default, what the plan of the result declares.

    Examples
    --------
    >>> from ombud.audits import Plan, Result
    >>> from ombud.stats.estimate import Estimate
    >>> found = Estimate(metric="share@10", value=0.25, interval=(0.2, 0.31), method="wilson", n=99)
    >>> "0.25 [0.20, 0.31]" in Report(Result(Plan(title="Ours"), (found,))).markdown()
    True
    """

    result: Result
    gate: Gate | tuple[Expectation, ...] | None = None

    @cached_property
    def expected(self) -> tuple[Expectation, ...]:
        """What was expected, and whether it holds."""
        gate = Gate.of(self.result.plan) if self.gate is None else self.gate
        # Conditions name what a plan and a result name, before labels are put into words.
        return gate.judge(self.result.estimates) if isinstance(gate, Gate) else gate

    @cached_property
    def _shown(self) -> Result:
        """The result with the words of its taxonomies for names."""
        return in_words(self.result)

    @cached_property
    def _all(self) -> tuple[Section, ...]:
        sections = sections_of(self._shown)
        expected = expected_section(self.expected)
        if expected is None:
            return sections
        return tuple(sorted((expected, *sections), key=lambda one: (one.order, one.name)))

    @cached_property
    def answers(self) -> tuple[Answer, ...]:
        """What the first screen says, the preset's question first."""
        return answers_of(self._shown)

    @property
    def sections(self) -> tuple[Section, ...]:
        """The sections that are read, in their order."""
        return tuple(section for section in self._all if section.place == "report")

    @property
    def appendix(self) -> tuple[Section, ...]:
        """The sections that are looked up."""
        return tuple(section for section in self._all if section.place == "appendix")

    @property
    def about(self) -> tuple[str, ...]:
        """Short facts under the title."""
        result = self.result
        facts = [f"Data: {result.card.title or result.card.name}"]
        if declared := who_audits(result.plan.about):
            facts.append(declared)
        if result.provenance.get("finished"):
            facts.append(f"Finished: {str(result.provenance['finished'])[:10]}")
        version = result.provenance.get("versions", {}).get("ombud")
        if version:
            facts.append(f"ombud {version}")
        return tuple(facts)

    @property
    def warning(self) -> str:
        """What must be read before all else: numbers that were edited, input that does not fit."""
        edited = "" if self.result.integrity is None else self.result.integrity.said
        unfit = [f"Warning: {sentence}." for sentence in warnings_of(self.result)]
        return " ".join(filter(None, [edited, *unfit]))

    def html(self, *, appendix: str = "appendix.html", interactive: bool = True) -> str:
        """Return the report as a self-contained HTML file, which loads nothing and sends nothing.

        Parameters
        ----------
        appendix
            Where the appendix lies, relative to this file; empty for none.
        interactive
            Whether figures answer to the pointer; without it the file is smaller and has no
            script.
        """
        page = Page(self.result.plan.title, self.sections, self.about, self.warning)
        return to_html(
            page, self.answers, self.expected, appendix=appendix, interactive=interactive
        )

    def appendix_html(self, *, report: str = "report.html") -> str:
        """Return the appendix as a self-contained HTML file: all tables, and every number.

        Parameters
        ----------
        report
            Where the report lies, relative to this file.
        """
        sections = appendix_sections(self._shown, self._all)
        data = table_data(self._shown, sections)
        page = Page(self.result.plan.title, sections, self.about, self.warning)
        return to_appendix(page, data, report=report)

    def markdown(self, *, pictures: str = "") -> str:
        """Return the report and its appendix as Markdown.

        Parameters
        ----------
        pictures
            The folder of the figures (see `save_figures`), relative to the document.
        """
        sections = (*_as_sections(self.answers), *self.sections, *self.appendix)
        about = (self.warning, *self.about) if self.warning else self.about
        return to_markdown(self.result.plan.title, sections, about, pictures=pictures)

    def summary(self) -> str:
        """Return the answers and what was expected as a page of Markdown, without figures.

        It is what a build server shows beside a run (GitHub: the step summary).
        """
        expected = expected_section(self.expected)
        answers = tuple(_without_figures(section) for section in _as_sections(self.answers))
        sections = (*answers, *(() if expected is None else (expected,)))
        about = (*((self.warning,) if self.warning else ()), *self.about)
        return to_markdown(self.result.plan.title, sections, about, pictures="")

    def latex(self) -> str:
        """Return the tables of the report and of its appendix as LaTeX."""
        return to_latex(self._all, self.warning)

    def json(self) -> str:
        """Return every estimate, what it says, and the answers in words, as JSON."""
        content = self.result.to_dict()
        for estimate, fields in zip(self.result.estimates, content["estimates"], strict=True):
            fields["reading"] = reading(estimate)
        result = families(self.result)
        answers = [
            {
                "metric": family.metric.title,
                "about": family.kind,
                "sentences": sentences_of(family),
            }
            for family in result
        ]
        content |= {
            "title": self.result.plan.title,
            "headline": _first(self.answers),
            "questions": [_told(answer) for answer in self.answers],
            "expected": [one.to_dict() for one in self.expected],
            "answers": [answer for answer in answers if answer["sentences"]],
            "plan": shown_plan(self.result.plan),
            "provenance": dict(self.result.provenance),
        }
        if self.result.integrity is not None and self.result.integrity.said:
            content["integrity"] = self.result.integrity.to_dict()
        return json.dumps(content, indent=1, allow_nan=False, sort_keys=True) + "\n"

    def figures(self) -> dict[str, dict[str, Any]]:
        """Return the Vega-Lite specification of each figure, by name."""
        own = [answer.figure for answer in self.answers if answer.figure is not None]
        figures = (*own, *figures_in(self._all))
        return {figure.name: figure.spec for figure in figures}

    def save(self, path: Path | str, formats: Iterable[str] | None = None) -> tuple[Path, ...]:
        """Write the report, each file whole or not at all.

        Parameters
        ----------
        path
            A file, whose ending says the format; or a folder for ``report.html`` and so on. Beside
            an HTML file, the appendix is written (``appendix.html`` beside ``report.html``).
        formats
            Some of `FORMATS`, for a folder; default, HTML. With Markdown, the figures are
            written as SVG into ``figures``.

        Returns
        -------
        The files that were written; an appendix stands behind its report. Those that lie in the
        folder of the result are noted there with their hashes.
        """
        written = self._save(Path(path), formats)
        if self.result.folder is not None:
            record_reports(self.result.folder, written)
        return written

    def _save(self, path: Path, formats: Iterable[str] | None) -> tuple[Path, ...]:
        endings = {ending: name for name, ending in FORMATS.items()}
        if formats is None and path.suffix in endings:
            return self._write(path, endings[path.suffix])
        if path.suffix and not path.is_dir() and formats is None:
            raise PlanError(
                f"{path} ends in {path.suffix}; expected a folder, or one of {', '.join(endings)}"
            )
        asked = ("html",) if formats is None else tuple(formats)
        unknown = [name for name in asked if name not in FORMATS]
        if unknown:
            raise PlanError(f"no format is called {unknown[0]!r}; known: {', '.join(FORMATS)}")
        paths = tuple(path / f"report{FORMATS[name]}" for name in asked)
        return tuple(
            file
            for name, path in zip(asked, paths, strict=True)
            for file in self._write(path, name)
        )

    def _write(self, path: Path, name: str) -> tuple[Path, ...]:
        if name == "markdown":
            # Two reports in one folder do not overwrite each other's figures.
            pictures = "figures" if path.stem == "report" else f"{path.stem}-figures"
            self.save_figures(path.parent / pictures, formats=("svg",))
            write_text(path, self.markdown(pictures=pictures))
        elif name == "pdf":
            write_pdf(self.html(appendix="", interactive=False), path)
        elif name == "html":
            other = "appendix" if path.stem == "report" else f"{path.stem}-appendix"
            beside = path.with_name(f"{other}.html")
            # The appendix first: the report that links to it is then never alone.
            write_text(beside, self.appendix_html(report=path.name))
            write_text(path, self.html(appendix=beside.name))
            return (path, beside)
        else:
            write_text(path, self._text(name))
        return (path,)

    def _text(self, name: str) -> str:
        if name == "csv":
            # A cell that a spreadsheet would take for a formula is kept from being one.
            import polars.selectors as columns

            plain = columns.string().str.replace(r"^([=+\-@\t\r])", "'$1")
            return self.result.to_wide().with_columns(plain).write_csv()
        return self.latex() if name == "latex" else self.json()

    def save_figures(
        self, folder: Path | str, formats: Iterable[str] = ("svg", "png")
    ) -> tuple[Path, ...]:
        """Write each figure as SVG, PNG, or ``vl.json`` (its specification)."""
        asked = tuple(formats)
        unknown = [name for name in asked if name not in {"svg", "png", "vl.json"}]
        if unknown:
            raise PlanError(f"no picture format is called {unknown[0]!r}; known: svg, png, vl.json")
        paths = []
        for name, spec in self.figures().items():
            for form in asked:
                path = Path(folder) / f"{name}.{form}"
                if form == "png":
                    write_atomically(path, partial(_write_bytes, to_png(spec)))
                elif form == "svg":
                    write_text(path, to_svg(spec))
                else:
                    write_text(path, json.dumps(spec, indent=1, allow_nan=False))
                paths.append(path)
        return tuple(paths)


def _write_bytes(data: bytes, path: Path) -> None:
    path.write_bytes(data)


def _as_sections(answers: tuple[Answer, ...]) -> tuple[Section, ...]:
    """Return the answers as sections, for forms that have no screens."""
    made = []
    for answer in answers:
        shown, more = answer.shown()
        blocks: list[Block] = (
            [Bullets(tuple(one.said for one in shown))] if shown else [answer.said]
        )
        for part in (answer.also, answer.how_sure, answer.change, answer.unknown):
            blocks += [part] if part is not None else []
        if answer.figure is not None:
            blocks.append(answer.figure)
        made.append(Section(answer.question, tuple(blocks), name=f"answer-{answer.name}"))
    return tuple(made)


def _without_figures(section: Section) -> Section:
    return replace(section, blocks=tuple(b for b in section.blocks if not isinstance(b, Figure)))


def _first(answers: tuple[Answer, ...]) -> str:
    if not answers:
        return ""
    ordered = answers[0].ordered
    return ordered[0].said.plain if ordered else answers[0].said.plain


def _told(answer: Answer) -> dict[str, Any]:
    return {
        "name": answer.name,
        "question": answer.question,
        "findings": [{"who": one.who, "said": one.said.plain} for one in answer.ordered],
        "otherwise": "" if answer.findings else answer.said.plain,
        "how_sure": answer.how_sure.plain,
        "what_would_change_it": answer.change.plain,
        "not_known": "" if answer.unknown is None else answer.unknown.plain,
    }
