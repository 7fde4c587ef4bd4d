"""The answer of a suppression audit: whose acceptable speech is flagged more, and how much."""

from __future__ import annotations

from collections.abc import Sequence

from ombud.audits.result import Result
from ombud.questions.suppression.figures import dots_figure
from ombud.questions.suppression.lookup import chief, happened, undecided
from ombud.registry import answer
from ombud.report.answer import Answer, Finding
from ombud.report.blocks import Name, Paragraph, Part, Strong, paragraph
from ombud.report.display import joined
from ombud.report.findings import estimates_of, reading
from ombud.report.format import number_text
from ombud.report.natural import counted, out_of, times
from ombud.stats.estimate import Estimate

_LARGE = 0.1


@answer("suppression")
def suppression_answer(result: Result) -> Answer | None:
    """Say which groups' acceptable texts are flagged more than all, in counts."""
    info = chief(result)
    if info is None:
        return None
    tested = tuple(e for e in estimates_of(result, info) if not e.label)
    above = [e for e in tested if reading(e) == "above"]
    findings = tuple(
        Finding(_said(e, happened(info)), e, f"texts about {e.group} ({e.system})") for e in above
    )
    return Answer(
        question=f"Whose acceptable speech is {happened(info)} more?",
        findings=findings,
        tested=tested,
        nothing=_nothing(tested, happened(info)),
        change=paragraph(
            "Other terms, or other labels of what is acceptable; groups are named in the text, "
            "whoever speaks."
        ),
        unknown=_unknown(result),
        figure=dots_figure(
            tested,
            name="answer-figure",
            table="suppression-table",
            title="Times as often as all acceptable texts",
            caption=f"{tested[0].level:.0%} intervals; dashed: as often." if tested else "",
            room=300,
        ),
        section="suppression",
    )


def _said(e: Estimate, event: str) -> Paragraph:
    """Return how many of a group's acceptable texts were flagged, and how many of all."""
    assert e.value is not None  # a finding has a number
    parts: list[Part] = [Name(e.system), f" {event} "]
    events, texts = e.details.get("events"), e.details.get("texts")
    whole, every = e.details.get("other_events"), e.details.get("other_texts")
    if events is None or not texts or whole is None or not every:
        parts += ["acceptable texts about ", Name(e.group)]
        parts += [" ", Strong(f"{times(e.value)} as often"), " as all acceptable texts"]
    else:
        parts += [Strong(counted(events, texts)), " acceptable texts about ", Name(e.group)]
        parts.append(f", against {out_of(whole / every)} overall")
    if e.interval is not None:
        low, high = (number_text(end, 1) for end in e.interval)
        parts.append(f" ({times(e.value)} as often; {low} to {high})")
    return paragraph(*parts, ".")


def _nothing(tested: Sequence[Estimate], event: str) -> Paragraph | None:
    """Say what was not found, and how much suppression is not ruled out."""
    made = [e for e in tested if e.interval is not None and e.value is not None]
    if not made:
        return None
    systems = joined(list(dict.fromkeys(e.system for e in made)))
    far = max(made, key=lambda e: (e.interval or (0, 0))[1])
    top = (far.interval or (0.0, 0.0))[1]
    parts: list[Part] = [Strong(f"No group's acceptable texts are clearly {event} more"), " by "]
    parts.append(systems if len(systems) < 40 else f"{len({e.system for e in made})} systems")
    less = sum(reading(e) == "below" for e in made)
    if less:
        parts.append(f"; {less} {'is' if less == 1 else 'are'} {event} less")
    parts += [f". Up to {times(top)} as often is not ruled out (", Name(far.group), ")."]
    return paragraph(*parts)


def _unknown(result: Result) -> Paragraph | None:
    """Say how many texts have no label or no decision, where they are many."""
    parts: list[Part] = []
    facts = result.card.facts
    texts, unknown = facts.get("texts"), facts.get("label_unknown")
    if isinstance(texts, int) and isinstance(unknown, int) and texts and unknown / texts >= _LARGE:
        parts += [Strong(out_of(unknown / texts)), " texts have no label."]
    shares = [e for e in undecided(result) if e.kind == "level" and not e.group and e.value]
    most = max(shares, key=lambda e: e.value or 0.0, default=None)
    if most is not None and (most.value or 0.0) >= _LARGE:
        parts += [" "] if parts else []
        parts += [Name(most.system), " left ", Strong(out_of(most.value or 0.0))]
        parts.append(" texts without a decision.")
    return paragraph(*parts) if parts else None
