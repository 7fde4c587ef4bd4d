"""One page for one system, or for one platform, over all questions asked about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ombud.audits.result import Result
from ombud.errors import PlanError
from ombud.registry import hint
from ombud.report.context import Context
from ombud.report.display import shorten
from ombud.report.html import card_html
from ombud.report.markdown import card_markdown
from ombud.report.model import CardEntry, Verdict
from ombud.report.page import facts_of, notices_of
from ombud.report.verdict import questions_of, verdict_of

QUESTIONS = {
    "warnings": "Does it show people more sensitive content than their own history contains?",
    "suppression": "Whose acceptable speech does it wrongly remove?",
    "authors": "Whose work does it recommend more or less than users read?",
    "counterfactual": "What can users reach or escape, and how far do others change what they see?",
    "delicate": "Which delicate texts does it miss, and does it treat people alike?",
}
"""The questions of a card, by the name of their preset."""

_SAME = {"exposure": "warnings", "requests": "warnings"}
_FACTS = ("data", "units", "groups", "day")


@dataclass(frozen=True)
class SystemCard:
    """The verdicts of several results on one page.

    Examples
    --------
    >>> SystemCard.of([]).entries[0].answer
    'not asked'
    """

    title: str  # The system, or what the results have in common
    # One for each question, those that were asked first; the others are *not asked*.
    entries: tuple[CardEntry, ...]

    @classmethod
    def of(cls, results: Sequence[Result], system: str = "", title: str = "") -> SystemCard:
        """Return the card of one system, or of all systems in the results.

        Parameters
        ----------
        results
            What audits found.
        system
            The system, as the plans name it; default, all of them together.
        title
            The heading; default, the name of the system or of the audited platform.
        """
        known = sorted({name for result in results for name in result.systems})
        if system and system not in known:
            raise PlanError(f"no result audits {system!r}; {hint(system, known)}")
        entries: list[CardEntry] = []
        name = ""
        for result in results:
            context = Context.of(result)
            verdicts = (verdict_of(question, context) for question in questions_of(context))
            found = (_entry(verdict, context, system) for verdict in verdicts)
            entries += [entry for entry in found if entry is not None]
            own = context.names.system(system).shown if system else result.plan.about.audited or ""
            name = name or own
        asked = {_SAME.get(entry.name, entry.name) for entry in entries}
        others = {name: text for name, text in QUESTIONS.items() if name not in asked}
        entries += [CardEntry(name, text, "not asked") for name, text in others.items()]
        return cls(title or name or "What the audits found", tuple(entries))

    def html(self) -> str:
        """Return the card as one HTML file without a script."""
        return card_html(self.title, self.entries)

    def markdown(self) -> str:
        """Return the card as Markdown."""
        return card_markdown(self.title, self.entries)

    def linked(self, folder: Path) -> SystemCard:
        """Return the card with links to the reports, as seen from a folder."""
        return replace(self, entries=tuple(_linked(entry, folder) for entry in self.entries))


def _entry(verdict: Verdict, context: Context, system: str) -> CardEntry | None:
    """Return what a verdict says about a system, or about all; None if it is about others."""
    facts = facts_of(context)
    folder = context.result.folder
    report = folder and folder / "report.html"
    entry = CardEntry(
        verdict.name,
        verdict.question,
        verdict.answer,
        verdict.headline,
        next(iter((*verdict.findings, *verdict.early)), None),
        facts=tuple(facts[name] for name in _FACTS if name in facts),
        notices=notices_of(context),
        report=report if report and report.is_file() else None,
    )
    if not system:
        return entry
    status = next((s for s in verdict.systems if s.system == system), None)
    if status is None:
        return None
    return replace(entry, answer=status.answer, headline=status.sentence, finding=status.lead)


def _linked(entry: CardEntry, folder: Path) -> CardEntry:
    if entry.report is None:
        return entry
    try:
        path = entry.report.resolve().relative_to(folder.resolve())
    except ValueError:  # a report elsewhere is named by where it is, and may not travel along
        return replace(entry, link=shorten(entry.report.resolve().as_uri(), 2000))
    return replace(entry, link=path.as_posix())
