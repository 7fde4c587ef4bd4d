"""The path of a report: result, context, verdicts and sections, page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import date
from functools import partial
from statistics import median
from typing import Any

from ombud import registry
from ombud.audits.collect import randomness_of
from ombud.audits.gate import Expectation
from ombud.audits.result import Result
from ombud.report.context import Context, role_of
from ombud.report.display import count, joined, plural, shorten
from ombud.report.gate import expected_section
from ombud.report.general import remaining
from ombud.report.model import (
    Block,
    Cell,
    Column,
    Page,
    Prose,
    Section,
    Strong,
    Table,
    Text,
    Verdict,
    status_of,
)
from ombud.report.numbers import correction_name, p_text
from ombud.report.question import Question, questions
from ombud.report.redaction import shown_plan, with_evidence
from ombud.report.show import Custom, Part, Say, part
from ombud.report.verdict import questions_of, verdict_of
from ombud.stats.power import POWER, smallest_effect

_LIMITS = (
    "Confidence intervals do not cover wrong labels, missing data, or people who are not in the "
    "data.",
    "A difference is not a cause. The numbers describe what the systems did on this data, not why.",
    "The systems were measured as they were on the day of the audit. Other data, other users or a "
    "later version can give other results.",
    "\u201cNo clear difference\u201d is not proof of equality: too little data looks the same.",
)
_MOST_OPEN = 5
_ABOUT = {
    "auditor": "Auditor",
    "audited": "Audited party",
    "system_version": "System version",
    "period": "Data period",
    "data": "Data",
    "purpose": "Purpose",
    "contact": "Contact",
}


def build_page(
    result: Result, expected: Sequence[Expectation] = (), *, public: bool = False
) -> Page:
    """Return the whole report of a result.

    `expected` are declared limits, judged. With `public`, single users and texts are excluded.
    """
    context = Context.of(result)
    asked = questions_of(context)
    verdicts = tuple(verdict_of(question, context) for question in asked)
    if not public:
        verdicts = tuple(with_evidence(verdict, result) for verdict in verdicts)
    sections = _sections(context, questions(context), verdicts)
    said = "" if result.integrity is None else result.integrity.said
    edited = (said,) if said else ()
    declared = [(one.state, f"{one.said} ({one.why})") for one in expected]
    if expected and (limits := expected_section(expected, context.names)) is not None:
        sections = [limits, *sections]
    return Page(
        result.plan.title,
        tuple(facts_of(context).values()),
        verdicts,
        tuple(_arranged(sections)),
        every_number(context),
        edited,
        notices_of(context),
        declared,
    )


def _sections(
    context: Context, asked: Sequence[Question], verdicts: tuple[Verdict, ...]
) -> list[Section]:
    parts: list[Part] = [part for question in asked for part in question.sections]
    parts += [registry.get("section", name)() for name in registry.names("section")]
    made = [section for part in parts for section in part.made(context)]
    shown = {claim for part in parts for claim in part.claims(context)} & context.by_key.keys()
    if context.by_key.keys() - shown:
        made += remaining(context, shown).made(context)
    made += [s for one in common_parts(verdicts) for s in one.made(context)]
    return sorted(made, key=lambda section: section.appendix)


def _arranged(sections: Iterable[Section]) -> Iterable[Section]:
    """Return sections with different anchors; few tables of values are open in the body."""
    seen: dict[str, int] = {}
    room = _MOST_OPEN
    for section in sections:
        number = seen[section.name] = seen.get(section.name, 0) + 1
        name = section.name if number == 1 else f"{section.name}-{number}"
        blocks: list[Block] = []
        for block in section.blocks:
            if isinstance(block, Table) and not (block.folded or section.appendix):
                values = any(cell.small for row in block.rows for cell in row)
                room -= values
                block = replace(block, folded=values and room < 0)
            blocks.append(block)
        yield Section(name, section.title, tuple(blocks), section.appendix)


def notices_of(context: Context) -> tuple[str, ...]:
    """Return what changes how an answer is read: input that does not fit."""
    every = map(context.names.exclusion, context.result.exclusions)
    return tuple(f"Warning: {exclusion}." for exclusion in every if exclusion.is_warning)


def facts_of(context: Context) -> dict[str, str]:
    """Return who made the report, on which data, when, and with which version, by what it is."""
    result = context.result
    about = result.plan.about
    data = about.data or ""
    if result.plan.data.source in registry.names("world"):
        data = data or "simulated data"
    elif result.card.title and result.card.name != "files":
        data = data or shorten(result.card.title, 160)
    compared = [e for e in result.estimates if e.family]
    groups = {e.group for e in compared or result.estimates if e.group}
    version = result.provenance.get("versions", {}).get("ombud")
    facts = {
        "auditor": f"Made by {about.auditor}" if about.auditor else "auditor: not stated",
        "audited": f"audited: {about.audited}" if about.audited else "",
        "data": data,
        "period": f"data period: {about.period or 'not stated'}",
        "units": _units(context),
        "groups": count(len(groups), "group") if groups else "",
        "version": f"ombud {version}" if version else "",
    }
    with suppress(ValueError):  # a result of others may hold anything
        day = date.fromisoformat(str(result.provenance.get("finished", ""))[:10])
        facts["day"] = f"{day.day} {day:%B %Y}"
    return {name: fact for name, fact in facts.items() if fact}


def _units(context: Context) -> str:
    """Return how many users or texts the largest number is about."""
    estimates = context.result.estimates
    if context.names.unit != "text":
        # Parts of one analysis, such as reach, are about the same users.
        parts = {e.key.partition("/")[0] for e in estimates if e.family}
        of_users = [e for e in estimates if e.unit == "user"]
        ns = [e.n for e in of_users if not parts or e.key.partition("/")[0] in parts]
        users = max(ns, default=0)
        return count(users, "user") if users else ""
    units = max((e.n for e in estimates if e.unit in {"user", "text"}), default=0)
    cells = [f"count of {cell}" for cell in ("tp", "fp", "fn", "tn")]
    labeled = max((sum(int(e.details.get(c) or 0) for c in cells) for e in estimates), default=0)
    if labeled:
        return count(max(units, labeled), "labeled text")
    units = max([units, *(int(e.details.get("other_texts", 0)) for e in estimates)])
    # Tags are validated on texts that should be flagged too.
    units = next((row["acceptable"] for row in context.rows("set-sizes", kind="all")), units)
    return count(units, "acceptable text") if units else ""


def _exclusions(context: Context) -> Iterable[Block]:
    """Show what was excluded, counted."""
    every = [context.names.exclusion(e) for e in context.result.exclusions]
    found = [e for e in every if not e.is_assumption]
    assumed = [e for e in every if e.is_assumption]
    if found:
        columns = (Column("Where"), Column("Excluded", True), Column("Of", True), Column("Why"))
        rows = tuple(
            (
                Cell(e.where),
                Cell(
                    f"{e.count:,} {e.what.removesuffix('s') if e.count == 1 else e.what}",
                    value=float(e.count),
                ),
                Cell("" if e.of is None else f"{e.of:,}", value=e.of),
                Cell(e.reason),
            )
            for e in sorted(found, key=lambda e: -(e.count / e.of if e.of else 1.0))
        )
        caption = "Data excluded from the comparisons, largest share first."
        yield Table("excluded", caption, columns, rows)
    else:
        yield Prose((("This audit excluded no data while it ran.",),))
    said = [str(e) for e in found]
    dropped = [line for line in context.result.card.dropped if line not in said]
    for lead, lines in (
        ("How the files were read:", [str(e) for e in assumed]),
        ("Excluded when the data set was prepared:", dropped),
    ):
        if lines:
            yield Prose(((lead,), *((line,) for line in lines)))


def _measures(context: Context) -> Iterable[Block]:
    """Show what each metric is, and what it does not capture."""
    if found := context.result.metrics:
        columns = map(Column, ("Metric", "What it is", "Undefined", "Does not capture"))
        rows = (map(Cell, (i.title, i.summary, i.undefined, i.limits)) for i in found)
        caption = "Metrics of this audit."
        yield Table("metrics", caption, tuple(columns), tuple(map(tuple, rows)), folded=True)


def _decision(verdicts: Sequence[Verdict], context: Context) -> Iterable[Block]:
    """Give the rule and the family of each verdict, for readers of the method."""
    for verdict in verdicts:
        about = verdict.family.description
        family = f" The comparisons that count are {about}." if about else ""
        rule = f" {verdict.rule} {verdict.family.sentence}{family}"
        yield Prose(((Strong(f"Verdict: {verdict.answer}."), rule),))


def _method(context: Context) -> Text:
    plan = context.result.plan.statistics
    how = (
        f"corrected for multiple testing by {correction_name(plan.correction)}"
        if plan.correction != "none"
        else "not corrected for multiple testing"
    )
    units = dict.fromkeys(e.unit for e in context.result.estimates if e.interval and e.unit)
    words = {"cluster": "clusters of related texts", "target": "items"}
    over = joined(dict.fromkeys(words.get(u) or plural(u) for u in units))
    return (
        f"Confidence intervals (CI) have a level of {plan.level:.0%}, from {plan.replicates:,} "
        f"bootstrap replicates over {over or 'independent units'}; p-values are {how}. ",
        Strong("Shaded cells"),
        " are statistically significant after correction; the others show no clear difference. A "
        "ring marks an interval that excludes no difference before correction only. "
        f"Samples of fewer than {plan.minimum} are not compared. With fewer than 10 events, a "
        "significant difference is an early sign.",
    )


def _limits(context: Context) -> Text:
    unknown = context.result.card.unknowns
    lines = [randomness_of(context.result.plan).said, *_LIMITS]
    lines += [f"Missing labels: {unknown.rstrip('.')}."] if unknown else []
    return (" ".join(lines),)


def _scope(context: Context) -> Text | None:
    result = context.result
    wanted, there = result.plan.sample, result.card.facts.get("users")
    if wanted is None:
        return None
    if isinstance(there, int) and there <= wanted:
        return (f"The audit includes all {there:,} users.",)
    return (f"The audit uses a random sample of {wanted:,} users.",)


def _about(context: Context) -> Iterable[Block]:
    """Show who audits whom, as the plan states it."""
    about = context.result.plan.about
    rows = tuple(
        (Cell(title), Cell(value))
        for field, title in _ABOUT.items()
        if (value := getattr(about, field))
    )
    if rows:
        yield Table("about", "As stated in the plan.", (Column("About"), Column("Stated")), rows)


def _power(verdicts: Sequence[Verdict], context: Context) -> Iterable[Block]:
    """Show the smallest difference that the comparisons that count could have found."""
    found: dict[tuple[str, str], list[float]] = {}
    for e in (e for verdict in verdicts for e in verdict.family.estimates):
        if (size := smallest_effect(e)) is not None:
            found.setdefault((e.metric, role_of(e)), []).append(size)
    titles = ("Comparisons", "Most precise", "Half of them", "All of them")
    columns = (Column("Metric"), Column("About"), *(Column(t, True) for t in titles))
    rows = tuple(
        (
            Cell(metric),
            Cell(role),
            Cell(f"{len(sizes):,}", value=float(len(sizes))),
            *(Cell(f"{v:.3g}", value=v) for v in (min(sizes), median(sizes), max(sizes))),
        )
        for (metric, role), sizes in found.items()
    )
    if rows:
        caption = (
            f"Detectable effect: the smallest difference that would be significant in "
            f"{POWER:.0%} of audits, before correction."
        )
        yield Table("power", caption, columns, rows, folded=True)


def _stored_tables(context: Context) -> Iterable[Block]:
    """Name the tables that analyses stored, for readers of the files."""
    tables = context.result.tables
    rows = tuple(
        (Cell(f"tables/{name}.parquet"), Cell(f"{tables[name].height:,}"),
         Cell(", ".join(tables[name].columns)))
        for name in sorted(tables)
    )  # fmt: skip
    if rows:
        columns = (Column("File"), Column("Rows", True), Column("Columns"))
        yield Table("stored-tables", "Tables stored with the result.", columns, rows, folded=True)


def _provenance(context: Context) -> Iterable[Block]:
    """Show the data card, the run and the plan, as one table each."""
    result = context.result
    run = {k: v for k, v in result.provenance.items() if k != "files"}
    parts: dict[str, Mapping[str, Any]] = {
        "Data": result.card.model_dump(mode="json"),
        "Run: versions, seeds, times and SHA-256 hashes": run,
        "Files of the result": result.provenance.get("files", {}),
        "Plan": shown_plan(result.plan),
    }
    for caption, values in parts.items():
        rows = tuple((Cell(k), Cell(shorten(v))) for k, v in _flat("", values) if v)
        if rows:
            columns = (Column("Setting"), Column("Value"))
            name = f"provenance-{caption.partition(' ')[0].strip(':').lower()}"
            yield Table(name, caption, columns, rows, folded=True)


def _flat(prefix: str, value: Any) -> Iterable[tuple[str, str]]:
    """Return nested values as pairs of a dotted name and a text."""
    if isinstance(value, Mapping):
        for key, inner in sorted(value.items()):
            yield from _flat(f"{prefix}.{key}" if prefix else str(key), inner)
    elif isinstance(value, list | tuple):
        for place, inner in enumerate(value, 1):
            yield from _flat(f"{prefix} {place}", inner)
    else:
        yield prefix, "" if value is None else str(value)


DATA = part("Data", Custom(_about), Say((_scope,)), Custom(_exclusions))


def common_parts(verdicts: tuple[Verdict, ...]) -> tuple[Part, ...]:
    """Return the sections that every report has."""
    return (
        DATA,
        part(
            "Method",
            Custom(partial(_decision, verdicts)),
            Say((_method,)),
            Custom(partial(_power, verdicts)),
        ),
        part("Limitations", Say((_limits,))),
        part("What was measured", Custom(_measures), appendix=True),
        part("Provenance", Custom(_provenance), Custom(_stored_tables), appendix=True),
    )


def every_number(context: Context) -> Table:
    """Return every estimate as a row; the page shows them in parts, with filters and CSV."""
    titles = ("Metric", "About", "System", "Content", "Group", "Compared with")
    numbers = ("Value", "Low", "High", "n", "p", "p corrected")
    columns = (
        *map(Column, titles),
        *(Column(t, True) for t in numbers),
        *map(Column, ("Status", "Unit", "Interval", "Note", "Key")),
    )
    rows = []
    for e in context.result.estimates:
        low, high = e.interval or (None, None)
        words = (e.metric, role_of(e), e.system, e.label, e.group, e.against)
        values = (e.value, low, high, float(e.n), e.p_value, e.p_adjusted)
        shown = [*(_value(v) for v in values[:4]), *(p_text(p) for p in values[4:])]
        cells = [Cell(shorten(w, 80)) for w in words]
        cells += [Cell(text, value=v) for text, v in zip(shown, values, strict=True)]
        last = (e.reason or status_of(e), e.unit, e.method, e.note, e.key)
        rows.append((*cells, *map(Cell, last)))
    return Table("all-numbers", "Every estimate of this audit.", columns, tuple(rows))


def _value(value: float | None) -> str:
    return "" if value is None else f"{value:,.4g}"
