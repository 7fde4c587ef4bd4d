"""A report is a pure function of a result."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import ombud.report.sections  # noqa: F401 - registers the built-in sections
from ombud import registry
from ombud.audits.result import Result
from ombud.errors import PlanError
from ombud.files import write_atomically, write_text
from ombud.report.blocks import Section, figures_in
from ombud.report.findings import families, reading
from ombud.report.html import to_html
from ombud.report.images import to_png, to_svg
from ombud.report.latex import to_latex
from ombud.report.markdown import to_markdown
from ombud.report.redaction import shown_plan
from ombud.report.wording import headline, sentences_of

__all__ = ["FORMATS", "Report"]

FORMATS = {"html": ".html", "markdown": ".md", "latex": ".tex", "json": ".json"}
"""What a report can be written as, and how such a file ends."""


@dataclass(frozen=True, eq=False)
class Report:
    """A result in words, pictures and tables.

    Parameters
    ----------
    result
        What an audit found.

    Examples
    --------
    >>> from ombud.audits import Plan, Result
    >>> from ombud.stats.estimate import Estimate
    >>> found = Estimate(metric="share@10", value=0.25, interval=(0.2, 0.31), method="wilson", n=99)
    >>> "0.25 [0.20, 0.31]" in Report(Result(Plan(title="Ours"), (found,))).markdown()
    True
    """

    result: Result

    @cached_property
    def sections(self) -> tuple[Section, ...]:
        """All sections that have something to say, in their order."""
        made = []
        for name in registry.names("section"):
            section = registry.get("section", name)(self.result)
            if section is not None:
                made.append(replace(section, name=name.replace("/", "-")))
        return tuple(sorted(made, key=lambda section: (section.order, section.name)))

    @property
    def about(self) -> tuple[str, ...]:
        """Short facts under the title."""
        result = self.result
        facts = [f"Data: {result.card.title or result.card.name}"]
        if result.provenance.get("finished"):
            facts.append(f"Finished: {str(result.provenance['finished']).replace('T', ' ')}")
        version = result.provenance.get("versions", {}).get("ombud")
        if version:
            facts.append(f"ombud {version}")
        return tuple(facts)

    def html(self, *, interactive: bool = True) -> str:
        """Return one self-contained HTML file, which loads nothing and sends nothing.

        Parameters
        ----------
        interactive
            Whether figures answer to the pointer; without it the file is smaller and has no
            script.
        """
        return to_html(self.result.plan.title, self.sections, self.about, interactive=interactive)

    def markdown(self, *, pictures: str = "") -> str:
        """Return the report as Markdown.

        Parameters
        ----------
        pictures
            The folder of the figures (see `save_figures`), relative to the document.
        """
        return to_markdown(self.result.plan.title, self.sections, self.about, pictures=pictures)

    def latex(self) -> str:
        """Return the tables of the report as LaTeX."""
        return to_latex(self.sections)

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
            "headline": headline(result).plain if result else "",
            "answers": [answer for answer in answers if answer["sentences"]],
            "plan": shown_plan(self.result.plan),
            "provenance": dict(self.result.provenance),
        }
        return json.dumps(content, indent=1, allow_nan=False, sort_keys=True) + "\n"

    def figures(self) -> dict[str, dict[str, Any]]:
        """Return the Vega-Lite specification of each figure, by name."""
        return {figure.name: figure.spec for figure in figures_in(self.sections)}

    def save(self, path: Path | str, formats: Iterable[str] | None = None) -> tuple[Path, ...]:
        """Write the report, each file whole or not at all.

        Parameters
        ----------
        path
            A file, whose ending says the format; or a folder for ``report.html`` and so on.
        formats
            Some of `FORMATS`, for a folder; default, HTML. With Markdown, the figures are
            written as SVG into ``figures``.

        Returns
        -------
        The files of the formats asked for.
        """
        path = Path(path)
        endings = {ending: name for name, ending in FORMATS.items()}
        if formats is None and path.suffix in endings:
            self._write(path, endings[path.suffix])
            return (path,)
        if path.suffix and not path.is_dir() and formats is None:
            raise PlanError(
                f"{path} ends in {path.suffix}; expected a folder, or one of {', '.join(endings)}"
            )
        asked = ("html",) if formats is None else tuple(formats)
        unknown = [name for name in asked if name not in FORMATS]
        if unknown:
            raise PlanError(f"no format is called {unknown[0]!r}; known: {', '.join(FORMATS)}")
        paths = tuple(path / f"report{FORMATS[name]}" for name in asked)
        for name, file in zip(asked, paths, strict=True):
            self._write(file, name)
        return paths

    def _write(self, path: Path, name: str) -> None:
        if name == "markdown":
            self.save_figures(path.parent / "figures", formats=("svg",))
            write_text(path, self.markdown(pictures="figures"))
            return
        content = {"html": self.html, "latex": self.latex, "json": self.json}[name]()
        write_text(path, content)

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
