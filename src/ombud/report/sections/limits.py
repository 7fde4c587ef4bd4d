"""What the audit cannot say."""

from __future__ import annotations

from ombud.audits.repeats import randomness_of
from ombud.audits.result import Result
from ombud.registry import section
from ombud.report.blocks import Block, Bullets, Definitions, Section, paragraph
from ombud.report.display import joined

_GENERAL = (
    "No interval covers wrong labels, missing data, or people who are not in the data at all.",
    "A difference is not a cause. The numbers say what the systems did on this data, not why.",
    "The systems were measured as they were on the day of the audit, on this data. Another "
    "time, another data set or other users can give other numbers.",
    "A number without a mark is no promise: too little data looks the same as no difference.",
)


@section("limits")
def limits(result: Result) -> Section:
    """Say what no audit of this kind can show."""
    lines = [randomness_of(result.plan).said, *_GENERAL]
    if result.card.unknowns:
        lines.append(f"Missing labels and values: {result.card.unknowns}")
    blocks = (Bullets(tuple(paragraph(line) for line in lines)),)
    return Section("Limits", blocks, order=900)


@section("limits-of-measures")
def limits_of_measures(result: Result) -> Section | None:
    """Say what each measure leaves out, once for all its forms."""
    said: dict[str, list[str]] = {}
    for info in result.metrics:
        parts = [f"Does not capture: {info.limits}"] if info.limits else []
        parts += [f"Undefined: {info.undefined}"] if info.undefined else []
        if parts:
            said.setdefault(" ".join(parts), []).append(info.title)
    items = [(titles[0], _forms(titles), text) for text, titles in said.items()]
    blocks: list[Block] = []
    if items:
        blocks.append(Definitions(tuple((t, paragraph(f"{x}{f}")) for t, f, x in items)))
    silent = [info.title for info in result.metrics if not info.limits]
    if silent:
        blocks.append(paragraph(f"No limits are stored for: {', '.join(silent)}."))
    if not blocks:
        return None
    return Section("Limits of each measure", tuple(blocks), order=910, place="appendix")


def _forms(titles: list[str]) -> str:
    return f" The same holds for {joined(titles[1:])}." if len(titles) > 1 else ""
