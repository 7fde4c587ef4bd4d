"""The answer of the authors study: whose work do lists show, against readers' own profiles?"""

from __future__ import annotations

from collections.abc import Sequence

from ombud.audits.result import Result
from ombud.questions.authors.figures import pipeline_figure
from ombud.questions.authors.lookup import attribute, chief_gap, inferred, pipeline
from ombud.registry import answer
from ombud.report.answer import Answer, Finding
from ombud.report.blocks import Name, Paragraph, Part, Strong, paragraph
from ombud.report.findings import estimates_of, reading
from ombud.report.format import number_text
from ombud.report.natural import base_of, in_hundred, more_or_less, out_of
from ombud.stats.estimate import Estimate

_LARGE = 0.1


@answer("authors")
def authors_answer(result: Result) -> Answer | None:
    """Say for each system whose work fills more or fewer places than in users' profiles."""
    info = chief_gap(result)
    if info is None:
        return None
    tested = tuple(e for e in estimates_of(result, info) if e.kind == "level" and not e.group)
    clear = [e for e in tested if reading(e) in {"above", "below"}]
    return Answer(
        question="Whose work do lists show, against users' own profiles?",
        findings=tuple(Finding(_said(e), e, f"{e.label} ({e.system})") for e in clear),
        tested=tested,
        nothing=_nothing(tested),
        change=_change(result),
        unknown=_unknown(result),
        figure=pipeline_figure(result, name="answer-figure", table="authors-pipeline", small=True),
        section="authors",
    )


def _said(e: Estimate) -> Paragraph:
    assert e.value is not None  # a finding has a number
    parts: list[Part] = [Name(e.system), "'s lists: ", Strong(more_or_less(e.value))]
    parts += [" known places go to ", Name(e.label)]
    past, base = e.details.get("profile"), base_of(e.value)
    if isinstance(past, float):
        parts.append(f"; users' own profiles have {in_hundred(past, base)}")
    if e.interval is not None:
        low, high = (number_text(base * end, 1, signed=True) for end in e.interval)
        parts.append(f" ({low} to {high})")
    return paragraph(*parts, ".")


def _nothing(tested: Sequence[Estimate]) -> Paragraph | None:
    ends = [end for e in tested if e.interval is not None for end in e.interval]
    if not ends:
        return None
    low, high = (number_text(100 * end, 1, signed=True) for end in (min(ends), max(ends)))
    return paragraph(
        Strong("No clear difference"),
        f" between lists and profiles; from {low} to {high} of every 100 places is not ruled out.",
    )


def _change(result: Result) -> Paragraph:
    how = " Identities were inferred, not asserted." if inferred(result) else ""
    return paragraph(
        "Identities of creators who have none here, and genre, which may explain part." + how
    )


def _unknown(result: Result) -> Paragraph | None:
    """Say how many places of lists are filled by creators whose identity is not known."""
    places = {
        e.system: (e.details.get("known_places"), e.details.get("places"))
        for e in pipeline(result, "lists")
    }
    known = sum(int(k or 0) for k, _ in places.values())
    whole = sum(int(n or 0) for _, n in places.values())
    if not whole or 1 - known / whole < _LARGE:
        return None
    return paragraph(
        f"The {attribute(result)} for ", Strong(out_of(1 - known / whole)), " places in lists."
    )
