"""The answer of a counterfactual audit: what cannot be reached or left, and what moves lists."""

from __future__ import annotations

from collections.abc import Sequence

from ombud.audits.result import Result
from ombud.questions.counterfactual.figures import decile_figure, stability_figure
from ombud.questions.counterfactual.lookup import OVERLAP, find, parts_of
from ombud.registry import answer
from ombud.report.answer import Answer, Finding
from ombud.report.blocks import Figure, Name, Paragraph, Strong, paragraph
from ombud.report.display import count
from ombud.report.findings import reading
from ombud.report.format import number_text
from ombud.report.natural import counted, out_of
from ombud.report.titles import titles_of
from ombud.stats.estimate import Estimate


@answer("counterfactual")
def counterfactual_answer(result: Result) -> Answer | None:
    """Say what people cannot reach, what they cannot get rid of, and whose data move lists."""
    if not parts_of(result):
        return None
    gaps = find(result, "reach/popularity-gap")
    moved = find(result, "stability/above-noise", distance=OVERLAP)
    stuck = _stuck(result)
    findings = [
        *(Finding(_reach(e), e, f"less popular items ({e.system})") for e in _first(gaps, "below")),
        *(Finding(_moved(e, result), e, f"lists of {e.system}") for e in _first(moved, "above")),
        *(Finding(_kept(e, result), e, f"{e.label} ({e.system})") for e in stuck),
    ]
    tested = (*gaps, *moved)
    return Answer(
        question="What could people be shown if they acted differently?",
        findings=tuple(findings),
        tested=tested,
        sure=_sure(tested),
        change=paragraph(
            "More edits, a better search (not found is not proved absent), other labels, training "
            "again."
        ),
        figure=_figure(result),
        section="counterfactual",
    )


def _first(estimates: Sequence[Estimate], sign: str) -> list[Estimate]:
    """Return the estimate that is surest to be far from nothing, of those with a sign."""
    some = [e for e in estimates if reading(e) == sign and e.value is not None]

    def nearest(e: Estimate) -> float:
        low, high = e.interval or (0.0, 0.0)
        return min(abs(low), abs(high))

    return sorted(some, key=lambda e: -nearest(e))[:1]


def _stuck(result: Result) -> list[Estimate]:
    """Return the label and system from which most people cannot get away, with that share."""
    shares = [e for e in find(result, "escape/share") if not e.group and e.value is not None]
    last = [e for e in shares if e.details.get("edits") == e.details.get("budget")]
    if not last:
        return []
    worst = min(last, key=lambda e: (e.interval or (1.0, 1.0))[1])
    assert worst.value is not None  # shares have one
    if worst.value >= 1:
        return []
    low, high = worst.interval or (worst.value, worst.value)
    return [worst.replace(value=1 - worst.value, interval=(1 - high, 1 - low))]


def _reach(e: Estimate) -> Paragraph:
    less, more = e.details.get("less_popular"), e.details.get("more_popular")
    edits = count(int(e.details["budget"]), "edit")
    assert isinstance(less, float) and isinstance(more, float)  # a defined gap has both
    return paragraph(
        Name(e.system), f": {edits} can bring in ", Strong(out_of(less)),
        f" less popular items, against {out_of(more)} popular ones.",
    )  # fmt: skip


def _moved(e: Estimate, result: Result) -> Paragraph:
    assert e.value is not None  # a finding has a number
    users = count(int(e.details["budget"]), "other user")
    most = [x for x in find(result, "stability/largest", distance=OVERLAP) if x.system == e.system]
    size = next((x.value for x in most if x.value is not None), e.value)
    n = int(e.details["n"])
    # For two lists of n items, a share of m places that differ gives 1 - Jaccard = 2m / (n + m).
    places = n * size / (2 - size)
    floor = "training alone changes none" if e.details.get("deterministic") else "beyond its noise"
    return paragraph(
        Name(e.system), f": {users} {e.details['treatment']} can replace ",
        Strong(f"{number_text(places, 1).removesuffix('.0')} of {n} places"), f"; {floor}.",
    )  # fmt: skip


def _kept(e: Estimate, result: Result) -> Paragraph:
    assert e.value is not None  # a finding has a number
    found = int(e.details["found"])
    budget = count(int(e.details["budget"]), "edit")
    return paragraph(
        Name(e.system), ": for ", Strong(counted(e.n - found, e.n)),
        " people no way was found to get ", Name(titles_of(result).label(e.label)),
        f" out of their list within {budget}.",
    )  # fmt: skip


def _sure(tested: Sequence[Estimate]) -> Paragraph:
    made = [e for e in tested if reading(e) not in {"undefined", "untested"}]
    if not made:
        return paragraph("Nothing was compared; shares have intervals over people.")
    clear = sum(reading(e) in {"above", "below"} for e in made)
    return paragraph(
        f"{clear:,} of {count(len(made), 'comparison')} "
        f"{'is' if clear == 1 else 'are'} clear at {made[0].level:.0%}, each by itself."
    )


def _figure(result: Result) -> Figure | None:
    proved = find(result, "reach/availability/proved")
    figure = decile_figure(proved, name="answer-figure", table="counterfactual-deciles")
    if figure is None:
        figure = stability_figure(
            find(result, "stability/largest", distance=OVERLAP),
            find(result, "stability/typical/mean", distance=OVERLAP),
            find(result, "stability/noise/largest", distance=OVERLAP),
            name="answer-figure",
            table="",
        )
    if figure is None:
        return None
    return Figure(
        figure.name, figure.spec, figure.title, "Intervals over people and items.", figure.alt,
        figure.table,
    )  # fmt: skip
