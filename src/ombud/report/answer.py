"""The answer page: who is affected, how much, how sure, and what would change it.

Every question fills in an `Answer`; the page is the same for all of them. An answer is a function
of a result, registered with ``@ombud.registry.answer("name")``, that returns an `Answer`, or None
when the result does not hold its question.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from ombud import registry
from ombud.audits.result import Result
from ombud.metrics.engine.comparisons import MATTERS
from ombud.report.blocks import Figure, Paragraph, Part, Strong, paragraph
from ombud.report.display import count
from ombud.report.findings import nearest_end, reading
from ombud.stats.estimate import Estimate

MOST_WORDS = 120
"""Words of the first screen, its title and the caption of its figure counted."""

_MOST_FINDINGS = 3
# "How sure", "What would change it", "3 more findings below", "The numbers".
_LABELS = 12


@dataclass(frozen=True, eq=False)
class Finding:
    """One finding in one sentence.

    Parameters
    ----------
    said
        Who is affected, how much in natural units, and the baseline: "glin flagged 47 of 97
        acceptable texts about Muslims, against 6 of every 100 overall." Its names are words of
        the taxonomy (`ombud.report.titles`), not ids.
    estimate
        The number behind it, which decides where it stands among the others.
    who
        Who is affected, in a few words, for a line in the terminal.
    """

    said: Paragraph
    estimate: Estimate
    who: str = ""


def by_nearest_end(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return findings in order: the one that is certain to be largest comes first."""
    return tuple(
        sorted(
            findings,
            key=lambda f: (-nearest_end(f.estimate), f.estimate.system, f.estimate.group, f.who),
        )
    )


@dataclass(frozen=True, eq=False)
class Answer:
    """What the first screen of a report says about one question.

    Parameters
    ----------
    question
        The question in one line: "Whose acceptable speech is flagged more?".
    findings
        What stands, in any order; the page sorts them by the end of the interval nearest to no
        effect, and shows the first few.
    tested
        Every estimate that could have become a finding: from them the page says how many
        comparisons were made, and how many had too little data.
    nothing
        Said when there are no findings, in natural units: what was compared, and how large a
        difference could still be. Without findings and without `nothing`, the page says how many
        comparisons were made, or that there was too little data for any.
    sure
        How sure, in place of the page's own words: how many comparisons stand after correction.
    also
        One more sentence, about a part of what was found: the label or the group that is hit most.
    directions
        What it means to lie above and below, in one word each.
    change
        What would change the answer: unknown labels, another form of the number, wrong labels.
    unknown
        Large shares that are not known, when there are any.
    figure
        One figure: small, of what the findings are about.
    section
        The registered name of the section that has the details.
    """

    question: str
    findings: tuple[Finding, ...]
    tested: tuple[Estimate, ...]
    change: Paragraph
    nothing: Paragraph | None = None
    sure: Paragraph | None = None
    also: Paragraph | None = None
    directions: tuple[str, str] = ("more", "less")
    unknown: Paragraph | None = None
    figure: Figure | None = None
    section: str = ""
    name: str = ""

    @property
    def ordered(self) -> tuple[Finding, ...]:
        """The findings, the one that is certain to be largest first."""
        return by_nearest_end(self.findings)

    @property
    def said(self) -> Paragraph:
        """What is said instead of findings."""
        return self.nothing or _nothing(self.tested)

    @property
    def how_sure(self) -> Paragraph:
        """How sure the findings are, taken together."""
        return self.sure or _sure(self.tested, self.directions)

    @property
    def _fixed(self) -> int:
        """How many words stand beside the findings."""
        others = (self.how_sure, self.change, self.unknown, self.also)
        fixed = sum(word_count(p) for p in others if p)
        fixed += len(self.question.split()) + _LABELS + 2 * (self.unknown is not None)
        if self.figure is not None:
            fixed += len(self.figure.caption.split()) + len(self.figure.title.split())
        return fixed

    @property
    def least_words(self) -> int:
        """How many words it has with one finding, or with what is said instead of any."""
        return self._fixed + word_count(self.ordered[0].said if self.findings else self.said)

    def shown(self, room: int = MOST_WORDS) -> tuple[tuple[Finding, ...], int]:
        """Return the findings that fit into so many words, and how many more there are.

        At least one is shown.
        """
        ordered = self.ordered
        fixed = self._fixed
        kept: list[Finding] = []
        for finding in ordered[:_MOST_FINDINGS]:
            fixed += word_count(finding.said)
            if kept and fixed > room:
                break
            kept.append(finding)
        return tuple(kept), len(ordered) - len(kept)


def word_count(text: Paragraph) -> int:
    """Return how many words a paragraph has."""
    return len(text.plain.split())


def _sure(tested: Sequence[Estimate], directions: tuple[str, str]) -> Paragraph:
    """Say how many comparisons were made and how many stand, in which direction."""
    made = [e for e in tested if reading(e) not in {"undefined", "untested"}]
    ways = [sum(reading(e) == sign for e in made) for sign in ("above", "below")]
    stand = sum(ways)
    few = len(tested) - len(made)
    if not made:
        return paragraph("Nothing could be tested.")
    corrected = any(e.correction for e in made)
    after = " after correction" if corrected and len(made) > 1 else ""
    if len(made) == 1:
        parts: list[Part] = ["The one comparison ", "is clear" if stand else "is not clear"]
        parts.append(f" at {made[0].level:.0%}.")
    else:
        parts = [f"{stand:,} " if stand else "None "]
        parts.append(f"of {count(len(made), 'comparison')} ")
        parts.append(f"{'is' if stand < 2 else 'are'} clear at {made[0].level:.0%}{after}")
        told = [f"{n:,} {word}" for n, word in zip(ways, directions, strict=True) if n]
        parts.append(f": {' and '.join(told)}." if stand > 1 else ".")
    small = [e for e in made if reading(e) == "small"]
    if small:
        parts.append(f" {len(small):,} more {_smaller(small)}.")
    if few:
        parts.append(f" {few:,} had too little data.")
    return Paragraph(tuple(parts))


def _smaller(small: Sequence[Estimate]) -> str:
    verb = "differs" if len(small) == 1 else "differ"
    sizes = {e.details[MATTERS] for e in small}
    than = f"{sizes.pop():g}" if len(sizes) == 1 else "what was declared to matter"
    return f"{verb}, but not surely by more than {than}"


def _nothing(tested: Sequence[Estimate]) -> Paragraph:
    made = [e for e in tested if reading(e) not in {"undefined", "untested"}]
    if not tested:
        return paragraph(Strong("Nothing was compared"), ": the report describes what there is.")
    if not made:
        return paragraph(
            Strong("There is too little data to say"),
            f": none of {count(len(tested), 'comparison')} could be made."
            if len(tested) > 1
            else ": the one comparison could not be made.",
        )
    where = "the one comparison" if len(made) == 1 else f"{len(made):,} comparisons"
    return paragraph(Strong("No clear difference was found"), f" in {where}.")


def answers_of(result: Result) -> tuple[Answer, ...]:
    """Return the answers that a result holds; that of its preset's question first.

    What is registered as ``general`` speaks for plans that hold no question of ombud or of a
    plugin.
    """
    found: list[Answer] = []
    names = [name for name in registry.names("answer") if name != "general"]
    for name in sorted(names, key=lambda name: (name != result.plan.preset, name)):
        answer = registry.get("answer", name)(result)
        if answer is not None:
            found.append(replace(answer, name=name.replace("/", "-")))
    if not found and "general" in registry.names("answer"):
        answer = registry.get("answer", "general")(result)
        found += [] if answer is None else [replace(answer, name="general")]
    return tuple(found)
