"""What a report says, as data. Writers turn these objects into HTML, text, Markdown or JSON.

Nothing here is markup and nothing is computed twice: the terminal, the page, ``ombud check`` and
the app all print the same `Verdict`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import Any, Literal, TypeAlias

from ombud.metrics.engine.signs import reading
from ombud.report.display import count, shorten, visible
from ombud.stats.estimate import Estimate


@dataclass(frozen=True)
class Strong:
    """Words that stand out."""

    text: str


@dataclass(frozen=True)
class Name:
    """A name that came from data; its writing direction stays its own, and long ones are cut."""

    text: str

    @property
    def shown(self) -> str:
        """The name, visible and short enough for a sentence."""
        return shorten(self.text, 80)

    def __str__(self) -> str:
        """Return what a sentence shows."""
        return self.shown


Text: TypeAlias = tuple[str | Strong | Name, ...]
"""A sentence: plain strings, emphasized numbers (`Strong`), and names from data (`Name`)."""

Answer = Literal["yes", "no clear evidence", "mixed", "cannot tell"]
"""What a verdict can be."""

Status = Literal["increase", "decrease", "too small", "no clear difference", "not tested"]
"""What one comparison shows after correction for multiple testing."""

Mark = Literal["finding", "early sign", "none", "below limit", "unknown"]
"""How a system is marked in the summary; the page has a symbol and a word for each."""

VERDICT_SCHEMA = 1
"""The version of ``verdict.json`` that this ombud writes."""

FEW_EVENTS = 10
"""With fewer events a significant difference is an early sign, not a finding."""

FEWEST_EVENTS = 5
"""With fewer events the size of an early sign is not printed."""

_STATUS: dict[str, Status] = {
    "above": "increase",
    "below": "decrease",
    "small": "too small",
    "untested": "not tested",
    "undefined": "not tested",
}


def status_of(estimate: Estimate) -> Status:
    """Return what a comparison shows after correction for multiple testing."""
    return _STATUS.get(reading(estimate), "no clear difference")


_SYMBOLS: dict[Mark, str] = {
    "finding": "\u25b2",
    "early sign": "\u25b3",
    "none": "\u25cb",
    "below limit": "\u2713",
    "unknown": "?",
}
_DOWNWARD: dict[str, str] = {"\u25b2": "\u25bc", "\u25b3": "\u25bd"}


def is_early(estimate: Estimate) -> bool:
    """Return whether too few events are behind an estimate for a headline."""
    return estimate.events is not None and estimate.events < FEW_EVENTS


def plain(text: Text) -> str:
    """Return a sentence without emphasis."""
    shown = (
        p.shown if isinstance(p, Name) else p.text if isinstance(p, Strong) else p for p in text
    )
    return visible("".join(shown))


@dataclass(frozen=True)
class Level:
    """One of the two quantities that a finding compares: "people aged 18 to 24", 29.0%."""

    name: str
    value: float
    text: str


@dataclass(frozen=True)
class Finding:
    """One comparison in one sentence, with the number behind it."""

    estimate: Estimate  # The difference or ratio, with the keys it is about
    sentence: Text  # Who, what, and both levels
    unnamed: Text  # The same for a line that begins with the name of the system
    evidence: Text  # The difference with its confidence interval, and how many users or texts
    object: Text  # What it adds to a sentence about its system: "violence to all users"
    # Content and people, for a line of the summary.
    what: Text
    who: Text
    # The difference alone ("+7.2 percentage points"), and with its confidence interval.
    size: str
    difference: str
    sample: str  # How many users or texts it is about
    certain: float  # The smallest effect consistent with the data, which orders findings
    # The two quantities compared; empty where the result does not store them.
    levels: tuple[Level, ...] = ()
    # The confidence interval on the scale of the first level.
    span: tuple[float, float] | None = None
    # Weaker findings about the same system and label, such as the average over all users.
    related: tuple[Finding, ...] = ()
    anchor: str = ""  # Where it is on the page
    # Users or texts that show it most clearly; none in a public report.
    examples: tuple[str, ...] = field(default=(), compare=False)

    @property
    def status(self) -> Status:
        """What the comparison shows."""
        return status_of(self.estimate)

    @property
    def symbol(self) -> str:
        """Which way it points: up for more, down for less."""
        return "\u25bc" if self.status == "decrease" else "\u25b2"

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        e = self.estimate
        return {
            "key": e.key,
            "system": e.system,
            "label": e.label,
            "group": e.group,
            "status": self.status,
            "sentence": plain(self.sentence),
            "evidence": plain(self.evidence),
            "value": e.value,
            "interval": e.to_dict()["interval"],
            "n": e.n,
            "events": e.events,
            "levels": [{"name": one.name, "value": one.value} for one in self.levels],
            "related": [one.to_dict() for one in self.related],
        }


def same_topic(findings: Sequence[Finding]) -> list[tuple[Finding, ...]]:
    """Return findings of several systems about the same content and people together.

    They stay in order: each topic is where its first finding is.
    """
    topics: dict[tuple[str, ...], list[Finding]] = {}
    for finding in findings:
        e = finding.estimate
        topics.setdefault((e.key, e.label, e.group, finding.status), []).append(finding)
    return [tuple(some) for some in topics.values()]


@dataclass(frozen=True)
class Family:
    """The comparisons that answer a question. Every count on the page comes from here."""

    estimates: tuple[Estimate, ...]
    harmful: int  # How many are significant in a direction that counts
    harm: frozenset[str]  # The directions that count: "more", "less", "both"
    description: str = ""
    reversible: int = 0  # How many of those unlabeled items, or errors of labels, could reverse
    culprit: str = "Unlabeled items"  # What could

    def number(self, *statuses: Status) -> int:
        """Return how many comparisons have one of these statuses."""
        return sum(status_of(e) in statuses for e in self.estimates)

    @property
    def tested(self) -> int:
        """How many comparisons could be made."""
        return len(self.estimates) - self.number("not tested")

    @property
    def sentence(self) -> str:
        """Say how many comparisons are significant, and how many could not be made."""
        untested = self.number("not tested")
        if not self.estimates:
            return "The plan declares nothing to compare."
        if not self.tested and untested == 1:
            return "The one comparison could not be made."
        if not self.tested:
            return f"None of {count(len(self.estimates), 'comparison')} could be made."
        what = "a significant difference in the direction that counts"
        if len(self.harm) == 1:
            words = {"more": "increase", "less": "decrease", "both": "difference"}
            what = f"a significant {words[next(iter(self.harm))]}"
        shows = "show" if self.harmful > 1 else "shows"
        text = f"{self.harmful or 'None'} of {count(self.tested, 'comparison')} {shows} {what}"
        few = f" {count(untested, 'more comparison')} had too little data." if untested else ""
        small = self.number("too small")
        if small:
            few = (
                f" {count(small, 'more comparison')} {'differs' if small == 1 else 'differ'}, but "
                f"not by more than the smallest effect that matters.{few}"
            )
        if self.reversible:
            lost = f"{self.culprit} could reverse {self.reversible} of these"
            few = f" {lost}, which are therefore not findings.{few}"
        return f"{text} after correction for multiple testing.{few}"


@dataclass(frozen=True)
class SystemStatus:
    """The answer for one system, as a line of the summary."""

    # Its key and its display name.
    system: str
    name: str
    # What was found.
    answer: Answer
    mark: Mark
    # What is said where there is no finding to show: "No clear difference. Could still be ...".
    sentence: Text
    lead: Finding | None = None  # Its largest finding or early sign
    more: int = 0  # How many further findings it has
    reference: bool = False  # Whether it is a baseline (random, popularity) that nobody audits

    @property
    def symbol(self) -> str:
        """The sign of its line: a triangle for what was found, down for less."""
        symbol = _SYMBOLS[self.mark]
        null, value = (self.lead.estimate.null, self.lead.estimate.value) if self.lead else (0, 0)
        less = value is not None and null is not None and value < null
        return _DOWNWARD.get(symbol, symbol) if less else symbol


@dataclass(frozen=True)
class Verdict:
    """The answer to a question, and the rule that led to it.

    Parameters
    ----------
    name
        The question's registered name.
    question, answer
        The question in one line, and its answer.
    rule
        Why this answer, in one sentence: a row of the table in ``verdict.py``.
    headline
        The answer as one or two sentences that name systems, content and people.
    systems
        One line for each audited system; the largest finding first, references last.
    findings, early
        Significant harm, the largest first; and what rests on fewer than 10 events.
    family
        The comparisons that were made.
    sure, changes, following
        How sure it is; what could change it; what to do next.
    """

    name: str
    question: str
    answer: Answer
    rule: str
    headline: Text
    systems: tuple[SystemStatus, ...]
    findings: tuple[Finding, ...]
    early: tuple[Finding, ...]
    family: Family
    sure: Text
    changes: tuple[Text, ...]
    following: Text
    effects: tuple[Text, ...] = ()
    in_short: tuple[Text, ...] = ()  # The main results, one sentence each
    per: str = "System"  # What a line of the summary is about

    def name_of(self, finding: Finding) -> str:
        """Return the display name of the system that a finding is about."""
        system = finding.estimate.system
        return next((s.name for s in self.systems if s.system == system), system)

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        return {
            "name": self.name,
            "question": self.question,
            "answer": self.answer,
            "rule": self.rule,
            "headline": plain(self.headline),
            "how_sure": plain(self.sure),
            "could_change": [plain(text) for text in self.changes],
            "next": plain(self.following),
            "rerankers": [plain(text) for text in self.effects],
            **({"in_short": [plain(t) for t in self.in_short]} if self.in_short else {}),
            "comparisons": {
                "tested": self.family.tested,
                "harmful": self.family.harmful,
                "not_tested": self.family.number("not tested"),
                "description": self.family.description,
                "sentence": self.family.sentence,
            },
            "systems": [
                {
                    "system": s.system,
                    "name": s.name,
                    "answer": s.answer,
                    "mark": s.mark,
                    "sentence": plain(s.sentence),
                    "reference": s.reference,
                }
                for s in self.systems
            ],
            "findings": [f.to_dict() for f in self.findings],
            "early_signs": [f.to_dict() for f in self.early],
        }


@dataclass(frozen=True)
class CardEntry:
    """What one question adds to a card."""

    # The question's registered name, and the question in one line.
    name: str
    question: str
    # The verdict; ``"not asked"`` where no result answers the question.
    answer: Answer | Literal["not asked"]
    headline: Text = ()  # The answer in one or two sentences; empty where it was not asked
    finding: Finding | None = None  # The largest finding or early sign, if there is one
    facts: tuple[str, ...] = ()  # How much data, which period, and when
    notices: tuple[str, ...] = ()  # Input that does not fit
    # The report of the result, and how the card links to it.
    report: Path | None = None
    link: str = ""


@dataclass(frozen=True)
class Column:
    """A column of a table; where its cells have charts, `ticks` label their shared axis.

    Neighbors of one `block` stand under it as a common heading, such as the name of a data set.
    """

    title: str
    numeric: bool = False
    ticks: tuple[tuple[float, str], ...] = ()
    block: str = ""

    @property
    def whole(self) -> str:
        """The title with that of its block, for writers without a second row of headings."""
        return ": ".join(part for part in (self.block, self.title) if part)


@dataclass(frozen=True)
class Cell:
    """A cell: its text, a second line such as a confidence interval, and what sorts it.

    `strength` is how far it lies from no difference, from 0 to 1; `chart` an SVG beside the text;
    `link` where a click on the name of a row leads.
    """

    text: str
    small: str = ""
    status: Status | Literal[""] = ""
    value: float | None = None
    strength: float = 0.0
    chart: str = ""
    link: str = ""


@dataclass(frozen=True)
class Table:
    """Rows under columns; the first column names the row. `unit` is that of the numbers.

    `notes` say why cells are empty; their cells refer to them by a letter.
    """

    name: str
    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    unit: str = ""
    notes: tuple[str, ...] = ()
    folded: bool = False
    less_is_harm: bool = False  # Whether a decrease has the color of findings

    @property
    def heading(self) -> list[tuple[str, int]]:
        """The blocks of columns, each with its number of columns; empty where no column has one."""
        runs = [(block, len(list(some))) for block, some in groupby(c.block for c in self.columns)]
        return runs if any(block for block, _ in runs) else []


@dataclass(frozen=True)
class Chart:
    """A chart as SVG panels that inherit the colors of the page; a table has its numbers."""

    name: str
    title: str
    caption: str
    alt: str
    panels: tuple[str, ...]
    single_users: bool = False  # Whether it shows users one by one; a public report leaves it out


@dataclass(frozen=True)
class Prose:
    """Paragraphs; with a title, something that the reader must not miss."""

    paragraphs: tuple[Text, ...]
    title: str = ""
    bullets: bool = False


@dataclass(frozen=True)
class Heading:
    """A heading within a section."""

    title: str


Block: TypeAlias = Table | Chart | Prose | Heading


@dataclass(frozen=True)
class Section:
    """Blocks under a heading."""

    name: str
    title: str
    blocks: tuple[Block, ...]
    appendix: bool = False


@dataclass(frozen=True)
class Page:
    """A whole report, before any writer has seen it."""

    # The title, and what stands at the foot of the summary: who, when, which data.
    title: str
    facts: Sequence[str]
    verdicts: tuple[Verdict, ...]  # One for each question of the result, that of its preset first
    sections: Sequence[Section]  # What follows the findings
    numbers: Table | None = None  # Every estimate as a table
    warnings: Sequence[str] = ()  # Before all else: numbers that were edited
    notices: Sequence[str] = ()  # Below the first answer: input that does not fit
    # Declared limits and whether they are met: state and sentence.
    limits: Sequence[tuple[str, str]] = ()

    def for_everyone(self) -> Page:
        """Return the page without charts that show users one by one."""
        return replace(
            self,
            sections=[
                replace(
                    s,
                    blocks=tuple(
                        b for b in s.blocks if not (isinstance(b, Chart) and b.single_users)
                    ),
                )
                for s in self.sections
            ],
        )

    @property
    def verdict(self) -> Verdict | None:
        """The first verdict."""
        return self.verdicts[0] if self.verdicts else None
