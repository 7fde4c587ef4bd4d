"""A series of results as lines for a terminal and as an HTML page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ombud.audits.compare import Comparison, stands
from ombud.audits.monitor import ControlChart, Point, Watch
from ombud.audits.result import Result
from ombud.report import charts
from ombud.report.context import Context
from ombud.report.display import count, joined, shorten
from ombud.report.html import to_html
from ombud.report.model import Cell, Chart, Column, Page, Prose, Section, Strong, Table, Text
from ombud.report.names import Names
from ombud.report.numbers import apart, p_text
from ombud.report.question import Phrase
from ombud.report.verdict import questions_of
from ombud.stats.estimate import Estimate

ChangeAnswer = Literal["worse", "better", "no clear change", "cannot tell"]
"""What became of the answer to a question, from one result to another."""

_MOST_CHANGES = 3


@dataclass(frozen=True)
class ChangeVerdict:
    """Whether what a question asks about became worse or better."""

    # *Worse* where a significant change goes in the direction of harm, whatever else improved;
    # *better* where all significant changes go the other way; *cannot tell* where no comparison of
    # the question could be made in both results.
    answer: ChangeAnswer
    headline: str  # The answer in one sentence
    changes: tuple[str, ...] = ()  # The largest significant changes, each with both levels

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        return {"answer": self.answer, "headline": self.headline, "changes": list(self.changes)}


@dataclass(frozen=True)
class _Change:
    """One number before and after, and whether its change is beyond chance."""

    key: str
    about: tuple[str, str, str]
    before: float | None
    after: float | None
    clear: bool


def change_verdict(found: Comparison, after: Result) -> ChangeVerdict:
    """Return the verdict on two results; `after` says what its question counts as harm."""
    changes = [
        _Change(
            e.key or e.metric, (e.system, e.label, e.group),
            e.details.get("before"), e.details.get("after"), stands(e),
        )
        for e in found.changes
    ]  # fmt: skip
    return _verdict(changes, after)


def watch_verdict(series: Watch, last: Result) -> ChangeVerdict:
    """Return the verdict on a series: the last result compared with the reference."""
    keys = {info.title: info.key or info.title for info in last.metrics}
    changes = [
        _Change(
            keys.get(chart.metric, chart.metric), (chart.system, chart.label, chart.group),
            chart.points[0].value, chart.points[-1].value, chart.points[-1].alarm,
        )
        for chart in series.charts
    ]  # fmt: skip
    return _verdict(changes, last)


def _verdict(changes: Sequence[_Change], after: Result) -> ChangeVerdict:
    context = Context.of(after)
    declared = [
        (key, select, phrase)
        for question in questions_of(context)
        for select, phrase in question.family.items()
        if (key := context.key(select)) is not None
    ]
    phrases = {key: phrase for key, _, phrase in declared}
    wanted = {(key, select.label) for key, select, _ in declared}
    known = [c for c in changes if {(c.key, None), (c.key, c.about[1])} & wanted]
    known = [c for c in known if c.before is not None and c.after is not None]
    if not known:
        return ChangeVerdict(
            "cannot tell", "Cannot tell: no comparison of the question is in both results."
        )
    clear = [c for c in known if c.clear]
    beside = sum(c.clear for c in changes) - len(clear)
    others = f" {count(beside, 'other number')} changed beyond chance." if beside else ""
    if not clear:
        return ChangeVerdict(
            "no clear change", f"No clear change in {count(len(known), 'comparison')}.{others}"
        )
    worse = [c for c in clear if _is_worse(c, phrases[c.key])]
    leading = sorted(worse or clear, key=lambda c: -abs((c.after or 0.0) - (c.before or 0.0)))
    said = tuple(_said(c, phrases[c.key], context) for c in leading[:_MOST_CHANGES])
    better = len(clear) - len(worse)
    counts = [
        f"{n:,} became {word}" for n, word in ((len(worse), "worse"), (better, "better")) if n
    ]
    text = f"{'Worse' if worse else 'Better'}: of {count(len(known), 'comparison')}, "
    return ChangeVerdict("worse" if worse else "better", f"{text}{joined(counts)}.{others}", said)


def _is_worse(change: _Change, phrase: Phrase) -> bool:
    assert change.before is not None and change.after is not None
    if phrase.harm == "both":  # further from no difference
        null = 1.0 if phrase.scale.log else 0.0
        return abs(change.after - null) > abs(change.before - null)
    return (change.after > change.before) == (phrase.harm == "more")


def _said(change: _Change, phrase: Phrase, context: Context) -> str:
    assert change.before is not None and change.after is not None
    system, label, group = change.about
    names = [context.names.system(system)] if system else []
    names += [context.names.label(label)] if label else []
    names += [context.names.members(group)]
    about = ", ".join(name.shown for name in names)
    return f"{about}: {' to '.join(apart(change.before, change.after, phrase.scale))}."


_DRAWN = 8
"""How many numbers are drawn: those that alarm, then those that changed most."""


def said_of(series: Watch) -> str:
    """Return what the last result says, in one sentence."""
    last, alarms = series.names[-1], series.alarms
    about = f"{count(series.numbers, 'number')} compared with {shorten(series.names[0], 80)}"
    rate = f"{series.false_alarms:g}"
    if not series.per_result:
        return _said_at_any_time(series, about, rate)
    chance = f"if nothing had changed, a result would alarm with a probability of at most {rate}"
    if not alarms:
        return f"{shorten(last, 80)}: nothing changed beyond chance ({about}; {chance})."
    verb = "has" if len(alarms) == 1 else "have"
    return f"{shorten(last, 80)}: {len(alarms):,} {verb} changed beyond chance ({about}; {chance})."


def _said_at_any_time(series: Watch, about: str, rate: str) -> str:
    looks = count(len(series.names) - 1, "later result")
    chance = (
        f"if nothing changes, the chance of any alarm over the whole series, all numbers together, "
        f"is at most {rate}"
    )
    if series.alarms:
        verb = "has" if len(series.alarms) == 1 else "have"
        text = f"{len(series.alarms):,} {verb} changed"
    elif series.together:
        text = (
            f"the numbers together have changed since {shorten(series.names[0], 80)} (seen at "
            f"{shorten(series.together, 80)}), and which of them is not clear"
        )
    else:
        text = "no change found"
    return f"{shorten(series.names[-1], 80)}: {text} ({about} over {looks}; {chance})."


def alarm_line(chart: ControlChart, name: str) -> str:
    """Return when a number alarmed, since when it differs, and by how much."""
    alarm, now = chart.alarm, chart.points[-1]
    assert alarm is not None
    since = "" if alarm.since is None else f"; most likely since {shorten(alarm.since, 80)}"
    size = ""
    if alarm.size is not None and alarm.interval is not None:
        ends = " to ".join(f"{end:+.4g}" for end in alarm.interval)
        size = f", by {alarm.size:+.4g} (95% confidence sequence {ends})"
    return (
        f"{name}: {_number(chart.points[0])} to {_number(now)}; alarm at "
        f"{shorten(alarm.result, 80)} (evidence {alarm.evidence:.3g}){since}{size}"
    )


def name_of(chart: ControlChart | Estimate, names: Names) -> str:
    """Return what a number is about, in words."""
    parts = [names.in_words(chart.metric)]
    parts += [names.system(chart.system).shown] if chart.system else []
    parts += [names.label(chart.label).shown] if chart.label else []
    parts += [names.group(chart.group).shown] if chart.group else []
    return ", ".join(parts)


def watch_lines(series: Watch, last: Result | None = None, *, most: int = 20) -> list[str]:
    """Return the state of a series: the sentence, remarks, and what changed, a line each.

    `last` is the last result, which has the display names.
    """
    names = Names() if last is None else Names.of(last)
    lines = [said_of(series), *(f"note: {remark}." for remark in series.remarks)]
    for chart in series.alarms[:most]:
        first, now = chart.points[0], chart.points[-1]
        if chart.alarm is not None:
            lines.append(f"  {alarm_line(chart, shorten(name_of(chart, names), 100))}")
            continue
        lines.append(
            f"  {shorten(name_of(chart, names), 100)}: {_number(first)} to {_number(now)} "
            f"(p {p_text(now.p)}; limits {_limits(now)})"
        )
    if len(series.alarms) > most:
        lines.append(f"  and {len(series.alarms) - most:,} more: see the page")
    earlier = [c for c in series.charts if c.alarms and not c.points[-1].alarm]
    if earlier:
        lines.append(
            f"  {count(len(earlier), 'number')} alarmed in an earlier result and not in the last"
        )
    return lines


def watch_page(
    series: Watch, last: Result | None = None, *, title: str = "What changed over time"
) -> str:
    """Return the series as one HTML file: what alarms with charts, and every number.

    `last` is the last result: its question has a verdict, and its plan has the display names.
    """
    about = (f"{len(series.names)} results", f"last: {shorten(series.names[-1], 80)}")
    return to_html(Page(title, about, (), _sections(series, last)))


def _sections(series: Watch, last: Result | None) -> tuple[Section, ...]:
    lead: tuple[Text, ...] = ()
    names = Names() if last is None else Names.of(last)
    if last is not None:
        verdict = watch_verdict(series, last)
        lead = ((Strong(verdict.headline),), *((change,) for change in verdict.changes))
    blocks: list[Prose | Chart | Table] = [Prose((*lead, (said_of(series),)))]
    if series.remarks:
        notes = tuple((f"{remark[0].upper()}{remark[1:]}.",) for remark in series.remarks)
        blocks.append(Prose(notes, "Note"))
    drawn = [chart for chart in series.charts if len(_known(chart)) > 1][:_DRAWN]
    if drawn:
        blocks.append(_chart(series, drawn, names))
    blocks.append(_table(series, names))
    how = _how(series)
    return (
        Section("changed", "What changed", tuple(blocks)),
        Section("how", "How to read it", (Prose(((how,),)),)),
    )


def _how(series: Watch) -> str:
    if not series.per_result:
        units = (
            "Texts or users that are measured again are compared with themselves."
            if series.paired
            else "Each result is an independent sample."
        )
        return (
            "Evidence is how many times likelier the series is if the number changed at some "
            f"result than if it never did; it alarms at {1 / series.false_alarms:.4g} for one "
            f"number. {count(series.numbers, 'number')} share one rate of false alarms "
            f"({series.false_alarms:g} for the whole series). An alarm stays until it is "
            f"acknowledged (ombud watch --acknowledge). {units}"
        )
    how = (
        f"Each result is compared with {shorten(series.names[0], 80)}, so that slow changes add up "
        "and are seen too. Limits are where a number would be if nothing had changed, wide "
        f"enough that all {series.numbers:,} numbers of a result together cross them by chance in "
        f"at most {series.false_alarms:.0%} of the results (Holm\u2019s correction). "
    )
    how += (
        "All results are on the same texts or users, and compared in pairs."
        if series.paired
        else "Results on other data are compared as independent samples."
    )
    return how


def _known(chart: ControlChart) -> list[Point]:
    return [point for point in chart.points if point.value is not None]


def _number(point: Point) -> str:
    return "undefined" if point.value is None else f"{point.value:.4g}"


def _limits(point: Point) -> str:
    if point.low is None or point.high is None:
        return "none"
    return f"{point.low:.4g} to {point.high:.4g}"


def _table(series: Watch, names: Names) -> Table:
    if not series.per_result:
        return _evidence_table(series, names)
    columns = (
        Column("Number"),
        *(Column(title, True) for title in ("Reference", "Last", "Limits", "p, corrected")),
        Column("Alarm"),
    )
    rows = []
    for chart in series.charts:
        first, last = chart.points[0], chart.points[-1]
        earlier = ", ".join(shorten(p.result, 40) for p in chart.alarms if p is not last)
        words = "last result" if last.alarm else ""
        alarm = "; ".join(filter(None, [words, f"earlier: {earlier}" if earlier else ""]))
        rows.append(
            (
                Cell(shorten(name_of(chart, names), 120)),
                Cell(_number(first), value=first.value),
                Cell(_number(last), value=last.value),
                Cell(_limits(last)),
                Cell("" if last.p is None else p_text(last.p), value=last.p),
                Cell(alarm or "none", status="increase" if last.alarm else ""),
            )
        )
    caption = "Every number of the reference, and what became of it; alarms first."
    return Table("watch-table", caption, columns, tuple(rows))


def _evidence_table(series: Watch, names: Names) -> Table:
    headings = ("Reference", "Last", "Evidence")
    columns = (Column("Number"), *(Column(title, True) for title in headings), Column("Alarm"))
    rows = []
    for chart in series.charts:
        first, last = chart.points[0], chart.points[-1]
        name = shorten(name_of(chart, names), 120)
        alarm = "none" if chart.alarm is None else alarm_line(chart, "").removeprefix(": ")
        rows.append(
            (
                Cell(name),
                Cell(_number(first), value=first.value),
                Cell(_number(last), value=last.value),
                Cell(f"{last.evidence or 0.0:.3g}", value=last.evidence),
                Cell(alarm, status="increase" if chart.alarm else ""),
            )
        )
    caption = "Every number of the reference, and what became of it; alarms first."
    return Table("watch-table", caption, columns, tuple(rows))


def _chart(series: Watch, drawn: list[ControlChart], names: Names) -> Chart:
    panels = tuple(
        charts.timeline(
            name_of(chart, names),
            [
                (shorten(p.result, 16), p.value, p.low, p.high, p.alarm)
                for p in chart.points
                if p.value is not None
            ],
        )
        for chart in drawn
    )
    alarming = sum(chart.points[-1].alarm for chart in drawn)
    return Chart(
        "watch-chart",
        f"Numbers over the results{', with limits' if series.per_result else ''}",
        "Bars are the limits: within them, a number differs from the reference by no more than "
        "chance brings. Those that alarm come first."
        if series.per_result
        else "Filled from the alarm on. Those that alarm come first.",
        f"{len(drawn)} numbers over {len(series.names)} results; {alarming} alarm in the last.",
        panels,
    )
