"""What was asked: the data, the systems, the measures and the groups."""

from __future__ import annotations

from ombud.audits.plan import AboutPlan
from ombud.audits.result import MetricInfo, Result
from ombud.registry import section
from ombud.report.blocks import Block, Definitions, Name, Paragraph, Part, Section, paragraph
from ombud.report.display import count, plural
from ombud.report.findings import key_of_estimate, key_of_metric
from ombud.report.sections.could_see import smallest_sentence
from ombud.report.wording import support

_ABOUT = (
    ("auditor", "Auditor"),
    ("audited", "Audited party"),
    ("system_version", "Version of the system"),
    ("period", "Period"),
    ("purpose", "Purpose"),
    ("contact", "Contact"),
)
_MOST_WORDS = 20


@section("asked")
def scope(result: Result) -> Section:
    """Say what was asked, of which systems, on which data."""
    data = result.card.title or result.card.name
    said = _declared(result.plan.about)
    systems = result.systems
    kinds = len(_by_name(result))
    head: list[Part] = ["This audit measured "]
    head += _names(systems, "system") or ["the data"]
    head += [" on ", Name(data), f", with {count(kinds, 'measure')}"]
    if len(result.metrics) > kinds:
        head.append(f" in {count(len(result.metrics), 'form')}")
    blocks: list[Block] = [Paragraph((*head, "; the appendix says what each is."))]
    overall = [e for e in result.estimates if not e.group]
    if any(e.value is not None for e in overall):
        blocks.append(paragraph(f"Behind each number stand {support(overall)}."))
    if (smallest := smallest_sentence(result)) is not None:
        blocks.append(smallest)
    # Analyses put other names there too, such as the columns of a regression.
    keys = {key_of_metric(info) for info in result.metrics}
    groups = tuple(
        dict.fromkeys(e.group for e in result.estimates if e.group and key_of_estimate(e) in keys)
    )
    if groups:
        blocks.append(paragraph("Groups compared: ", *_listed(groups, 20), "."))
    if sampled := _sampled(result):
        blocks.append(paragraph(sampled))
    return Section("What was asked", (*said, *blocks), order=600)


def _declared(about: AboutPlan) -> tuple[Definitions, ...]:
    """Return who audits whom, as the plan says it."""
    items = tuple(
        (title, paragraph(value)) for field, title in _ABOUT if (value := getattr(about, field))
    )
    return (Definitions(items),) if items else ()


def who_audits(about: AboutPlan) -> str:
    """Return who audits whom in one line, for the head of a report; empty when it is too long.

    Examples
    --------
    >>> who_audits(AboutPlan(auditor="Ada", audited="Films Ltd", system_version="2.1"))
    'Audited: Films Ltd, 2.1; by Ada'
    """
    what = ", ".join(filter(None, (about.audited, about.system_version, about.period)))
    parts = [f"Audited: {what}"] if what else []
    parts += (
        [f"by {about.auditor}" if what else f"Auditor: {about.auditor}"] if about.auditor else []
    )
    line = "; ".join(parts)
    return line if len(line.split()) <= _MOST_WORDS else ""


@section("measures")
def measures(result: Result) -> Section | None:
    """Say what each measure is, in each of its forms."""
    items = [
        (info.title, paragraph(info.summary or "No description was stored."))
        for infos in _by_name(result).values()
        for info in infos
    ]
    if not items:
        return None
    blocks = (Definitions(tuple(items)),)
    return Section("What was measured", blocks, order=450, place="appendix")


def _by_name(result: Result) -> dict[str, list[MetricInfo]]:
    """Return the measures by what they are, whatever their options."""
    found: dict[str, list[MetricInfo]] = {}
    for info in result.metrics:
        found.setdefault(str(info.spec.get("name") or info.title), []).append(info)
    return found


def _sampled(result: Result) -> str:
    """Say how many users were asked, where the plan wants at most so many."""
    wanted, there = result.plan.sample, result.card.facts.get("users")
    if wanted is None:
        return ""
    if isinstance(there, int) and there <= wanted:
        return f"All {there:,} users were asked."
    most = max((e.n for e in result.estimates if e.unit == "user"), default=wanted)
    if most < wanted and not isinstance(there, int):
        return f"At most {wanted:,} {plural('user')} were to be asked, drawn at random."
    return f"A random sample of {wanted:,} {plural('user')} was asked."


def _names(names: tuple[str, ...], word: str) -> list[Part]:
    if not names:
        return []
    return [f"{count(len(names), word)} (", *_listed(names, 10), ")"]


def _listed(names: tuple[str, ...], most: int) -> list[Part]:
    parts: list[Part] = []
    for index, name in enumerate(names[:most]):
        parts += [", " if index else "", Name(name)]
    if len(names) > most:
        parts.append(f" and {len(names) - most:,} more")
    return parts
