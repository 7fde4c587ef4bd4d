"""From a significant comparison to a finding in words, and which findings are one story."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ombud.metrics.engine.signs import nearest_end
from ombud.report.context import Context, Select, role_of
from ombud.report.display import count
from ombud.report.model import (
    FEWEST_EVENTS,
    Family,
    Finding,
    Level,
    Strong,
    is_early,
    plain,
    status_of,
)
from ombud.report.numbers import meet
from ombud.report.question import Phrase, Question, fill
from ombud.stats.estimate import Estimate


@dataclass(frozen=True)
class Case:
    """What one verdict is made of."""

    question: Question
    context: Context
    family: Family
    phrases: Mapping[int, Phrase]
    words: Mapping[str, str]
    # Significant harm: as findings, as early signs, and what unlabeled items could reverse.
    findings: tuple[Finding, ...] = ()
    early: tuple[Finding, ...] = ()
    reversible: tuple[Estimate, ...] = ()

    def of(self, system: str) -> list[Estimate]:
        """Return the comparisons of a system."""
        return [e for e in self.family.estimates if e.system == system]

    def phrase(self, e: Estimate) -> Phrase:
        """Return the words for a comparison."""
        return self.phrases[id(e)]

    def forms(self, number: int) -> dict[str, str]:
        """Return the words of the question and the ending of verbs, after so many systems."""
        # "flags" has its plural beside it: "flag".
        words = {
            key: self.words.get(key.removesuffix("s"), word) if number > 1 else word
            for key, word in self.words.items()
        }
        return {"s": "s" if number == 1 else "", **words}


def finding_of(e: Estimate, case: Case) -> Finding:
    """Return an estimate in the words of its phrase."""
    assert e.value is not None  # a finding has a value
    phrase, names = case.phrase(e), case.context.names
    level, other = phrase.levels(e)
    met = None
    if level is not None and other is not None:
        met = meet(e, level, other, phrase.levels_in, phrase.scale)
    size = phrase.scale.prose(e.value) if met is None else met.size
    slots: dict[str, object] = {
        "system": names.system(e.system),
        "what": names.label(e.label),
        "who": names.members(e.group),
        "group": names.group(e.group),
        "more": "more" if status_of(e) == "increase" else "less",
        "fewer": "more" if status_of(e) == "increase" else "fewer",
        "level": "" if met is None else Strong(met.level),
        "other": "" if met is None else met.other,
        "counts": _counts(e),
        "size": Strong(size),
        "note": phrase.note(e, case.context),
        **case.words,
    }
    levels: tuple[Level, ...] = ()
    span = None
    if met is not None and level is not None and other is not None:
        titles = [plain(fill(title, **slots)) for title in phrase.compared]
        levels = (Level(titles[0], level, met.level), Level(titles[1], other, met.other))
        span = None if e.interval is None else phrase.scale.span(other, e.interval)
    template = (phrase.fallback if met is None else "") or phrase.sentence
    interval = phrase.scale.interval(e) if met is None else met.interval
    sample = _sample(e, case.context)
    difference = f"{size}{phrase.evidence} ({interval})"
    if met is None and "{size}" in template:
        difference = f"{interval[0].upper()}{interval[1:]}"
    evidence = f"{difference}. {sample}."
    certain = nearest_end(e)
    if phrase.scale.compares == "relative" and other is not None:
        certain *= other  # a tenfold increase of something rare is no large effect
    if is_early(e):
        few = count(e.events or 0, "event")
        evidence += f" Early sign: it rests on {few}."
        if (e.events or 0) < FEWEST_EVENTS:
            # After "may" a verb is as it is after several systems.
            may = {"system": "{system} may", "objects": phrase.object}
            template = phrase.summary.format_map(may | case.forms(2)) + f"{phrase.than}."
            evidence = f"Early sign: it rests on {few}, too few for a number."
            levels, span, size, difference = (), None, "", ""
    first, *rest = fill(template.removeprefix("{system}").lstrip(": "), **slots)
    unnamed = (first[:1].upper() + first[1:] if isinstance(first, str) else first, *rest)
    return Finding(
        e, fill(template, **slots), unnamed, (evidence,), fill(phrase.object, **slots),
        fill(phrase.what, **slots), fill(phrase.who, **slots),
        size and size + phrase.evidence, difference, sample, certain, levels, span,
    )  # fmt: skip


def _counts(e: Estimate) -> str:
    """Return " (83 of 321)" where counts are stored and small enough to mean something."""
    events, texts = e.details.get("events"), e.details.get("texts")
    if events is None or not texts or texts > 1000 or events != int(events):
        return ""
    return f" ({events:,.0f} of {texts:,})"


def _sample(e: Estimate, context: Context) -> str:
    """Say how many people or texts are behind a finding, those of the group where known."""
    texts = e.details.get("texts")
    own = context.find(Select(e.key, ("group",), label=e.label, exact=True)) if e.group else ()
    units = [o.n for o in own if (o.system, o.group) == (e.system, e.group)] or [e.n]
    unit = {"target": "item"}.get(e.unit, e.unit)
    said = count(int(texts or units[0]), "text" if texts else unit)
    return f"{said} of related texts" if e.unit == "cluster" and not texts else said


def stories(findings: Sequence[Finding], case: Case) -> tuple[Finding, ...]:
    """Return one finding for each system and label; weaker ones about the same are related.

    An average over all users and the group that drives it are one story, not two.
    """
    ordered = sorted(findings, key=lambda f: (-f.certain, f.estimate.system))
    labeled = any(f.estimate.label for f in findings)
    lead: dict[tuple[str, ...], Finding] = {}
    for finding in ordered:
        e = finding.estimate
        # Contrasts of groups are about these, whatever labels other measures have.
        group = case.phrase(e).story(e, case.context)
        about = e.label if e.label or (labeled and e.kind == "level") else group
        key = (e.key, e.system, about)
        first = lead.get(key)
        if first is None:
            lead[key] = finding
        elif not e.group and first.estimate.group and _is_everywhere(e, case.context):
            # Every group shows it: the average over everyone tells the story.
            lead[key] = replace(finding, related=(*first.related, replace(first, related=())))
        else:
            lead[key] = replace(first, related=(*first.related, finding))
    told = (_concentrated(f, case.context) for f in lead.values())
    # What is measured over all content answers the question; its parts follow.
    return tuple(
        sorted(told, key=lambda f: (bool(f.estimate.label), -f.certain, f.estimate.system))
    )


def _peers(e: Estimate, context: Context) -> list[Estimate]:
    """Return the levels of groups for the same system and label, where they can be tested."""
    some = context.find(Select(e.key, ("group",), label=e.label, exact=True))
    return [o for o in some if o.system == e.system and o.null is not None]


def _is_everywhere(e: Estimate, context: Context) -> bool:
    peers = _peers(e, context)
    return bool(peers) and all(status_of(o) == status_of(e) for o in peers)


def _concentrated(finding: Finding, context: Context) -> Finding:
    """Say whether other groups of the same attribute show the effect too."""
    e = finding.estimate
    if e.kind != "level" or role_of(e) == "systems":
        return finding
    attribute = context.names.attribute(e.group)
    others = [
        o
        for o in _peers(e, context)
        if not e.group or (o.group != e.group and context.names.attribute(o.group) == attribute)
    ]
    if not others:
        return finding
    clear = sum(status_of(o) == finding.status for o in others)
    if e.group and clear:
        return finding
    how = "every group" if clear == len(others) else f"{clear} of {len(others)} groups"
    more = f" The {finding.status} is significant in {how}."
    if e.group:
        more = f" No other {attribute} group shows a significant {finding.status}."
    return replace(finding, evidence=(*finding.evidence, more))
