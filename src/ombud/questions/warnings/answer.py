"""The answer of the warnings experiment, before everything else: more, or less?"""

from __future__ import annotations

from collections.abc import Sequence

from ombud.audits.result import Result
from ombud.questions.warnings.lookup import (
    FORMS,
    amplification_infos,
    at_systems,
    chief_amplification,
    level,
)
from ombud.questions.warnings.wording import percent_text
from ombud.registry import section
from ombud.report.blocks import Block, Name, Part, Section, Strong, paragraph
from ombud.report.findings import Sign, reading
from ombud.report.format import estimate_text
from ombud.report.sections.coverage import answers
from ombud.stats.estimate import Estimate

__all__ = ["warnings_answer"]

_WHAT = " of what people may want to avoid than the same people's histories: "
_UNCLEAR = frozenset[Sign]({"no sign", "above uncorrected", "below uncorrected"})
_SAID: tuple[tuple[str, str, str, frozenset[Sign]], ...] = (
    ("Lists hold ", "more", _WHAT, frozenset({"above"})),
    ("Lists hold ", "less", _WHAT, frozenset({"below"})),
    ("There is ", "no clear sign", " of more or less than in histories: ", _UNCLEAR),
    ("The difference was ", "not tested", ": ", frozenset({"untested"})),
    ("There is ", "no number", ": ", frozenset({"undefined"})),
)


@answers
def _answers(result: Result) -> bool:
    return chief_amplification(result) is not None


@section("warnings-answer")
def warnings_answer(result: Result) -> Section | None:
    """Say for each system whether lists hold more or less of the labels than histories."""
    info = chief_amplification(result)
    if info is None:
        return None
    found = {s: e for s in at_systems(result, info) if (e := level(result, info.title, s))}
    blocks: list[Block] = []
    for before, strong, after, signs in _SAID:
        some = [(s, e) for s, e in found.items() if reading(e) in signs]
        if some:
            blocks.append(paragraph(before, Strong(strong), after, *_listed(some), "."))
    if not blocks:
        return None
    first = next(iter(found.values()))
    form = FORMS[info.spec.get("form", "mean")]
    made = (
        "the share of the labels in lists over their share in histories, minus 1, all users and "
        "labels together"
        if form == "ratio of means"
        else "the average over users and labels of the share in the list over the share in the "
        "history, minus 1"
    )
    text = f"Each number is the {form}: {made}; in brackets, its {first.level:.0%} interval."
    blocks.append(paragraph(text + _unknown(result)))
    return Section("The answer in short", tuple(blocks), order=90)


def _listed(some: Sequence[tuple[str, Estimate]]) -> list[Part]:
    parts: list[Part] = []
    for index, (system, e) in enumerate(some):
        size = estimate_text(e) if e.value is None else percent_text(e)
        parts += ["; " if index else "", Name(system), f" {size}"]
    return parts


def _unknown(result: Result) -> str:
    """Say for how many systems unknown labels could turn the answer round."""
    infos = amplification_infos(result, "amplification-user")
    if not {"lowest", "highest"} <= set(infos):
        return ""
    ends = []
    for system in at_systems(result, infos["lowest"]):
        low, high = (level(result, infos[b].title, system) for b in ("lowest", "highest"))
        if low and high and low.value is not None and high.value is not None:
            ends.append((low.value, high.value))
    if not ends:
        return ""
    turned = sum(low < 0 < high for low, high in ends)
    if not turned:
        return " Whatever the unknown labels are, the direction stays."
    return (
        f" Unknown labels could turn the direction round for {turned} of {len(ends)} systems: the "
        "bounds are below."
    )
