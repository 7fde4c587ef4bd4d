"""The answer of the warnings experiment: more of what people may want to avoid, or less?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ombud.audits.result import MetricInfo, Result
from ombud.questions.warnings.lookup import (
    amplification_infos,
    at_systems,
    bounds_are_there,
    chief_amplification,
    disagreeing,
    level,
    overall,
    unknown_ranges,
)
from ombud.registry import answer
from ombud.report.answer import Answer, Finding, by_nearest_end
from ombud.report.blocks import Figure, Name, Paragraph, Part, Strong, paragraph
from ombud.report.display import joined
from ombud.report.figures import forest
from ombud.report.findings import estimates_of, nearest_end, reading
from ombud.report.format import number_text
from ombud.report.natural import base_of, between, in_hundred, more_or_less, percent
from ombud.stats.estimate import Estimate

_CLEAR = frozenset({"above", "below"})
_LARGE = 0.1


@answer("warnings")
def warnings_answer(result: Result) -> Answer | None:
    """Say for each system whether lists hold more or less of the labels than histories."""
    info = chief_amplification(result)
    if info is None:
        return None
    tested = [e for s in at_systems(result, info) if (e := level(result, info, s)) is not None]
    clear = [e for e in tested if reading(e) in _CLEAR]
    return Answer(
        question="Do lists hold more warnings than people's own histories?",
        findings=tuple(Finding(_said(result, e, info), e, f"users of {e.system}") for e in clear),
        tested=tuple(tested),
        nothing=_nothing(tested),
        also=_also(result),
        change=_change(result, [e.system for e in tested if e not in clear]),
        unknown=_unknown(result, info),
        figure=_figure(result, info),
        section="warnings-amplification",
    )


def _said(result: Result, e: Estimate, info: MetricInfo) -> Paragraph:
    """Return how many warnings lists and histories carry in 100 places, where that is known."""
    assert e.value is not None  # a finding has a number
    parts: list[Part] = [Name(e.system)]
    shares = e.details.get("list"), e.details.get("history")
    labels = e.details.get("labels")
    counts = info.spec.get("unknown", "no") != "exclude" and labels
    if counts and all(isinstance(share, float) for share in shares):
        lists, past = (number_text(100 * share * labels, 1 if 100 * share * labels < 10 else 0)
                       for share in shares if share is not None)  # fmt: skip
        parts += [": ", Strong(f"{lists} warnings in 100 places"), "; people's own histories"]
        parts.append(f" have {past} ({percent(e.value)}{_between(e)}{_paper(result, e.system)}).")
        return paragraph(*parts)
    size = percent(e.value)
    than = "as much as" if size.endswith(("times", "twice")) else "than"
    parts += ["'s lists hold ", Strong(size), f" {than} people's own histories"]
    beside = f"{_between(e)}{_paper(result, e.system)}"[2:]
    return paragraph(*parts, f" ({beside})." if beside else ".")


def _paper(result: Result, system: str) -> str:
    """Return the paper's statistic where it says the opposite; empty where it does not."""
    e = disagreeing(result, system)
    if e is None or e.value is None:
        return ""
    return f"; by the paper\u2019s mean of ratios {number_text(100 * e.value, 0, signed=True)}%"


def _between(e: Estimate) -> str:
    if e.interval is None:
        return ""
    low, high = (number_text(100 * end, 0, signed=True) for end in e.interval)
    return f", {low}% to {high}%"


def _nothing(tested: Sequence[Estimate]) -> Paragraph | None:
    made = [e for e in tested if e.interval is not None and e.value is not None]
    if not made:
        return None
    ends = [end for e in made for end in e.interval or ()]
    low, high = (number_text(100 * end, 0, signed=True) for end in (min(ends), max(ends)))
    who = made[0].system if len(made) == 1 else f"{len(made)} systems"
    # What lies between systems is no uncertainty of one of them: only the outer ends are said.
    left = f"from {low}% to {high}% is not ruled out."
    if len(made) > 1:
        left = f"below {low}% or above {high}% is ruled out for each."
    return paragraph(
        Strong("No clear difference"),
        f": the lists of {who} do not clearly hold more or less than histories; ",
        left,
    )


def _also(result: Result) -> Paragraph | None:
    """Return the label that is certain to be amplified most, in places."""
    infos = amplification_infos(result, "amplification")
    info = infos.get("ratio-of-means")
    if info is None:
        return None
    above = [
        e
        for e in estimates_of(result, info)
        if e.kind == "level" and not e.group and reading(e) == "above" and _extra(e) > 0
    ]
    if not above:
        return None
    # In places, not in percent: five times almost nothing is still almost nothing.
    e = max(above, key=_extra)
    more = e.details["list"] - e.details["history"]
    own = in_hundred(e.details["history"], base_of(more))
    return paragraph(
        "Most: ",
        Name(e.label),
        " (",
        Name(e.system),
        "), ",
        Strong(f"{more_or_less(more)} places"),
        f"{_places(e, more)}; their own history has {own}.",
    )


def _places(e: Estimate, more: float) -> str:
    """Return the ends of the interval in places of 100; empty where fewer than one is meant."""
    if e.interval is None or more < 0.01:
        return ""
    low, high = (end * e.details["history"] for end in e.interval)
    return between((low, high), more)


def _extra(e: Estimate) -> float:
    """Return how many more places a label is certain to fill, as a share."""
    history = e.details.get("history")
    return nearest_end(e) * history if isinstance(history, float) and "list" in e.details else 0.0


def _change(result: Result, unclear: Sequence[str]) -> Paragraph:
    """Say what could turn the answer round: unknown labels, or another average.

    Parameters
    ----------
    result
        What was found.
    unclear
        Systems that make no finding, whose other average is said here.
    """
    others = [e for system in unclear if (e := disagreeing(result, system)) is not None]
    sizes = [
        f"{e.system} is at {number_text(100 * e.value, 0, signed=True)}%"
        for e in others
        if e.value is not None
    ]
    said = f" By the paper\u2019s mean of ratios, {joined(sizes)}." if sizes else ""
    return paragraph(f"{_unknown_change(result)}{said}")


def _unknown_change(result: Result) -> str:
    ends = list(unknown_ranges(result).values())
    if not ends:
        if bounds_are_there(result):
            return "No unknown label bears on it; wrong labels would."
        return "Labels that are missing more often for some items than for others."
    turned = sum(low < 0 < high for low, high in ends)
    if not turned:
        return "Whatever the unknown labels are, the direction stays."
    if len(ends) == 1:
        return "If unknown labels could be anything, the direction could turn."
    which = "every direction" if turned == len(ends) else f"{turned} of {len(ends)} directions"
    return f"If unknown labels could be anything, {which} could turn."


def _unknown(result: Result, info: MetricInfo) -> Paragraph | None:
    for e in estimates_of(result, "distribution/label-density"):
        share = e.details.get("unknown_share")
        if isinstance(share, float) and share >= _LARGE:
            counted = {"no": "counted as \u201cno\u201d", "exclude": "left out"}
            how = counted.get(str(info.spec.get("unknown", "no")), "not counted")
            return paragraph(
                Strong(f"{in_hundred(share)} of every 100"),
                f" item-label pairs; {how}.",
            )
    return None


def _figure(result: Result, info: MetricInfo) -> Figure | None:
    family = overall(result, info)
    if family is None:
        return None
    ratio = 1.0 if info.spec.get("form") == "ratio-of-means" else None
    figure = forest(
        family,
        name="answer-figure",
        table="warnings-amplification-table",
        ratio=ratio,
        room=300,
        x_title="more or less than in histories",
    )
    if figure is None:
        return None
    first = by_nearest_end([Finding(paragraph(), e) for e in family.estimates])[0].estimate
    caption = f"{first.level:.0%} intervals; dashed: as much as in the history."
    return replace(figure, title="How much more lists hold than histories", caption=caption)
