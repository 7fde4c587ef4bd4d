"""The answer in words, with its uncertainty."""

from __future__ import annotations

from ombud.audits.result import Result
from ombud.registry import section
from ombud.report.blocks import Block, Section, paragraph
from ombud.report.findings import Family, families
from ombud.report.sections.drawn import drawn_elsewhere
from ombud.report.words import answer_of, headline

__all__ = ["answer"]


@section("answer")
def answer(result: Result) -> Section | None:
    """Say what was found in both directions, what was not, and what is undefined."""
    elsewhere = drawn_elsewhere(result)
    found = [
        family
        for family in families(result)
        if family.metric.title not in elsewhere
        or (family.kind in {"group", "group contrast"} and any(family.systems))
    ]
    if not found:
        return None
    blocks: list[Block] = [headline(found)]
    by_metric: dict[str, list[Family]] = {}
    for family in found:
        by_metric.setdefault(family.metric.title, []).append(family)
    for title, parts in by_metric.items():
        said = [block for part in parts for block in answer_of(part)]
        if not said:
            continue
        info = parts[0].metric
        inner: list[Block] = []
        if info.summary or info.reading:
            inner.append(paragraph(" ".join(filter(None, (info.summary, info.reading)))))
        blocks.append(Section(title, (*inner, *said)))
    return Section("The answer in short", tuple(blocks), order=200)
