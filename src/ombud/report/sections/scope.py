"""What was asked: the data, the systems, the metrics and the groups."""

from __future__ import annotations

from ombud.audits.result import Result
from ombud.registry import section
from ombud.report.blocks import Block, Definitions, Name, Paragraph, Part, Section, paragraph
from ombud.report.display import count
from ombud.report.wording import support

__all__ = ["scope"]


@section("asked")
def scope(result: Result) -> Section:
    """Say what was asked, of which systems, on which data."""
    data = result.card.title or result.card.name
    systems = result.systems
    head: list[Part] = ["This audit measured "]
    head += _names(systems, "system") or ["the data"]
    head += [" on ", Name(data), ", with ", count(len(result.metrics), "measure"), ":"]
    blocks: list[Block] = [Paragraph(tuple(head))]
    blocks.append(
        Definitions(
            tuple(
                (info.title, paragraph(info.summary or "No description was stored."))
                for info in result.metrics
            )
        )
    )
    overall = [e for e in result.estimates if not e.group]
    if any(e.value is not None for e in overall):
        blocks.append(paragraph(f"Behind each number stand {support(overall)}."))
    # Analyses put other names there too, such as the columns of a regression.
    titles = {info.title for info in result.metrics}
    groups = tuple(
        dict.fromkeys(e.group for e in result.estimates if e.group and e.metric in titles)
    )
    if groups:
        blocks.append(paragraph("Groups compared: ", *_listed(groups, 20), "."))
    if result.plan.sample is not None:
        blocks.append(paragraph(f"A random sample of {result.plan.sample:,} was asked for."))
    return Section("What was asked", tuple(blocks), order=100)


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
