"""What the audit cannot say."""

from __future__ import annotations

from ombud.audits.result import Result
from ombud.registry import section
from ombud.report.blocks import Block, Bullets, Definitions, Paragraph, Section, paragraph

__all__ = ["limits"]


@section("limits")
def limits(result: Result) -> Section:
    """Say what each measure leaves out, and what no audit of this kind can show."""
    blocks: list[Block] = []
    items: list[tuple[str, Paragraph]] = []
    for info in result.metrics:
        said = [f"Does not capture: {info.limits}"] if info.limits else []
        said += [f"Undefined: {info.undefined}"] if info.undefined else []
        if said:
            items.append((info.title, paragraph(" ".join(said))))
    if items:
        blocks.append(Definitions(tuple(items)))
    silent = [info.title for info in result.metrics if not info.limits]
    general = [
        "An interval covers chance: which users or texts happened to be in the data. It does not "
        "cover wrong labels, missing data, or people who are not in the data at all.",
        "A difference is not a cause. The numbers say what the systems did on this data, not why.",
        "The systems were measured as they were on the day of the audit, on this data. Another "
        "time, another data set or other users can give other numbers.",
        "A number without a mark is no promise: too little data looks the same as no difference.",
    ]
    if silent:
        general.append(f"No limits are stored for: {', '.join(silent)}.")
    if result.card.unknowns:
        general.append(f"Missing labels and values: {result.card.unknowns}")
    blocks.append(Bullets(tuple(paragraph(line) for line in general)))
    return Section("Limits", tuple(blocks), order=900)
