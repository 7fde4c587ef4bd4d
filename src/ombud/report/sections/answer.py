"""The answer in words, with its uncertainty."""

from __future__ import annotations

from ombud.audits.result import Result
from ombud.registry import section
from ombud.report.blocks import Block, Section, paragraph
from ombud.report.findings import EstimateSet
from ombud.report.sections.coverage import answered_elsewhere, left_to_general
from ombud.report.wording import answer_of, headline

__all__ = ["answer"]


@section("answer")
def answer(result: Result) -> Section | None:
    """Say what was found in both directions, what was not, and what is undefined."""
    found = left_to_general(result)
    if not found:
        return None
    blocks: list[Block] = [headline(found)]
    by_metric: dict[str, list[EstimateSet]] = {}
    for family in found:
        by_metric.setdefault(family.metric.title, []).append(family)
    for title, parts in by_metric.items():
        said = [block for part in parts for block in answer_of(part)]
        if not said:
            continue
        info = parts[0].metric
        inner: list[Block] = []
        about = (info.summary, _whole_sentences(info.reading))
        if any(about):
            inner.append(paragraph(" ".join(filter(None, about))))
        blocks.append(Section(title, (*inner, *said)))
    title = "The answer in short"
    if answered_elsewhere(result):
        title = "Further comparisons in short"
    return Section(title, tuple(blocks), order=200)


def _whole_sentences(text: str) -> str:
    """Return a text without a first sentence that goes on after a formula, which is not shown."""
    return text.partition(". ")[2] if text[:1].islower() else text
