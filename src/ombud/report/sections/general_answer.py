"""The answer of a plan without a question of its own: what differs, in natural units."""

from __future__ import annotations

from collections.abc import Sequence

from ombud.audits.result import MetricInfo, Result
from ombud.registry import answer
from ombud.report.answer import Answer, Finding, by_nearest_end
from ombud.report.blocks import Figure, Name, Paragraph, Part, Strong, paragraph
from ombud.report.figures import forest, group_contrasts
from ombud.report.findings import EstimateSet, families, reading
from ombud.report.format import estimate_text, number_text
from ombud.report.natural import counted as counted_of
from ombud.report.natural import in_hundred, more_or_less, out_of
from ombud.stats.estimate import Estimate

# What a share of these measures counts, for differences "of every 100".
_COUNTED = {
    "share-gap": "places",
    "label-share": "places",
    "history-share": "items of a history",
    "false-positive-rate": "acceptable texts flagged",
    "undecided-share": "texts without a decision",
}
_UNKNOWN = 0.1


@answer("general")
def general(result: Result) -> Answer | None:
    """Say what differs from the value that means *no difference*, whatever was measured."""
    found = families(result)
    if not found:
        return None
    chosen = _chosen(found)
    findings = [
        Finding(_said(e, family.metric, family.kind == "overall"), e, _who(e))
        for family in chosen
        for e in family.estimates
        if reading(e) in {"above", "below"}
    ]
    tested = tuple(e for family in chosen for e in family.estimates if e.null is not None)
    first = by_nearest_end(findings)[:1]
    return Answer(
        question="What differs?" if tested else "What was measured?",
        findings=tuple(findings),
        tested=tested,
        nothing=_nothing(tested) if tested else _described(found),
        change=paragraph("Wrong or missing labels could move the numbers beyond their intervals."),
        unknown=_unknown(result),
        figure=_figure(chosen, first[0].estimate if first else None),
        section="comparisons",
        directions=("above", "below"),
    )


def _chosen(found: Sequence[EstimateSet]) -> list[EstimateSet]:
    """Return what can say who is affected: levels with a null value, and groups compared.

    Systems compared are an answer only where nothing else is.
    """
    tested = [f for f in found if any(e.null is not None for e in f.estimates)]
    named = [f for f in tested if f.metric.spec or f.estimates[0].system]
    about = [f for f in named or tested if f.kind in {"overall", "group contrast"}]
    return about or [f for f in tested if f.kind == "system contrast"] or tested


def _said(e: Estimate, info: MetricInfo, level: bool) -> Paragraph:
    assert e.value is not None  # a finding has a number
    counted = _COUNTED.get(str(info.spec.get("name")))
    who: list[Part] = []
    for name in (e.system, e.group, e.label):
        if name:
            who += [", ", Name(name)] if who else [Name(name)]
    head: list[Part] = [*who, ": "] if who else []
    if "largest" in e.details and "smallest" in e.details:
        pair = (Name(e.details["largest"]), " against ", Name(e.details["smallest"]))
        return paragraph(*head, Strong(f"{info.title} {estimate_text(e)}"), " (", *pair, ").")
    if counted is None or e.kind == "ratio":
        what = f"{info.title} {estimate_text(e, signed=e.null == 0)}"
        against = f", against {e.against}" if e.against else f"; {e.null:g} is no difference"
        return paragraph(*head, Strong(what), f"{against}.")
    size = Strong(f"{more_or_less(e.value)} {counted}")
    if level:
        history = e.details.get("history")
        than = " than in the same people's histories"
        if isinstance(history, float):
            than += f", which have {out_of(history)}"
        return paragraph(*head, size, f"{than}{_between(e)}.")
    events, texts = e.details.get("events"), e.details.get("texts")
    other, others = e.details.get("other_events"), e.details.get("other_texts")
    if events is not None and texts and other is not None and others:
        told = Strong(f"{counted_of(events, texts)} {counted}")
        past = out_of(other / others)
        of = "" if past[0].isdigit() else " of the"
        return paragraph(*head, told, f", against {past}{of} {e.against}.")
    return paragraph(*head, size, f" than {e.against}{_between(e)}.")


def _between(e: Estimate) -> str:
    if e.interval is None:
        return ""
    low, high = (number_text(100 * end, 1, signed=True) for end in e.interval)
    return f" ({e.level:.0%} interval {low} to {high} of 100)"


def _who(e: Estimate) -> str:
    return ", ".join(part for part in (e.system, e.group, e.label) if part)


def _nothing(tested: Sequence[Estimate]) -> Paragraph | None:
    """Say how large a difference could still be, where no sign of one was found."""
    clear = [e for e in tested if reading(e) in {"above", "below"}]
    wide = [e for e in tested if e.interval is not None and reading(e) not in {"above", "below"}]
    if clear or not wide:
        return None
    found = "No clear difference was found"
    if any(reading(e) == "small" for e in tested):
        found = "No difference that surely matters was found"
    far = max(wide, key=lambda e: max(abs(end - (e.null or 0.0)) for end in e.interval or ()))
    return paragraph(
        Strong(found),
        ". The widest interval is that of ",
        Name(_who(far) or far.metric),
        f": {estimate_text(far)}.",
    )


def _described(found: Sequence[EstimateSet]) -> Paragraph:
    """Return the highest and the lowest value of the first measure, where nothing is tested."""
    family = next((f for f in found if f.kind == "overall" and f.metric.spec), found[0])
    defined = sorted((e for e in family.estimates if e.value is not None), key=_value)
    if not defined:
        return paragraph(Strong(f"{family.metric.title} is not defined"), " on this data.")
    high, low = defined[-1], defined[0]
    parts: list[Part] = [Strong(family.metric.title), ": "]
    if _who(high):
        parts += [Name(_who(high)), " "]
    parts.append(estimate_text(high))
    if low is not high:
        parts += ["; lowest, ", Name(_who(low)), f" {estimate_text(low)}"]
    return paragraph(*parts, ". Nothing was tested against a value that means no difference.")


def _value(e: Estimate) -> float:
    return e.value or 0.0


def _unknown(result: Result) -> Paragraph | None:
    """Say how much is not known, from an analysis of the data or from its card."""
    for e in result.estimates:
        share = e.details.get("unknown_share")
        if isinstance(share, float) and share >= _UNKNOWN:
            told = f"{in_hundred(share)} of every 100"
            return paragraph("Labels are not known for ", Strong(told), " pairs of item and label.")
    texts, unknown = (result.card.facts.get(name) for name in ("texts", "label_unknown"))
    if isinstance(texts, int) and isinstance(unknown, int) and texts and unknown / texts > _UNKNOWN:
        return paragraph("Of the texts, ", Strong(out_of(unknown / texts)), " have no known label.")
    return None


def _figure(chosen: Sequence[EstimateSet], first: Estimate | None) -> Figure | None:
    """Draw the family of the first finding, or the first family."""
    holding = [f for f in chosen if first is None or any(e is first for e in f.estimates)]
    for family in holding:
        draw = group_contrasts if family.kind == "group contrast" else forest
        figure = draw(family, name="answer-figure", table="every-number", room=300)
        if figure is not None:
            return figure
    return None
