"""What could have been found: the smallest difference that the data would have shown."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ombud.audits.result import Result
from ombud.registry import section
from ombud.report.blocks import Cell, Column, Paragraph, Section, Table, paragraph
from ombud.report.display import count
from ombud.report.findings import EstimateSet, families
from ombud.report.format import number_text
from ombud.stats.estimate import Estimate
from ombud.stats.power import POWER, is_ratio, smallest_effect

_KINDS = {
    "overall": "everyone",
    "group": "each group",
    "group contrast": "groups compared",
    "system contrast": "systems compared",
}


def _effects(estimates: Sequence[Estimate]) -> list[float]:
    """Return the smallest effects in ascending order; those of ratios are factors."""
    return sorted(far for e in estimates if (far := smallest_effect(e)) is not None)


@section("could-see")
def could_see(result: Result) -> Section | None:
    """Give, measure by measure, the smallest difference that would have been found."""
    rows = []
    for family in families(result):
        effects = _effects(family.estimates)
        if not effects:
            continue
        middle = float(np.median(effects))
        ratio = is_ratio(family.estimates[0])
        shown = [_shown(far, ratio) for far in (effects[0], middle, effects[-1])]
        rows.append(
            (
                Cell(family.metric.title),
                Cell(_KINDS[family.kind]),
                Cell.number(len(effects)),
                *(
                    Cell(text, value=far)
                    for text, far in zip(shown, (effects[0], middle, effects[-1]), strict=True)
                ),
            )
        )
    if not rows:
        return None
    titles = ("Numbers", "Smallest", "Half of them", "All of them")
    columns = (
        Column("Measure", header=True),
        Column("About"),
        *(Column(title, "right") for title in titles),
    )
    told = (
        f"The smallest difference that would have been found with a chance of {POWER:.0%}, from "
        "the width of each interval: by the most certain number, by half of them, and by all of "
        "them. Each is taken alone, before correction for many comparisons; of ratios it is a "
        "factor. What is smaller may be there and not have been found."
    )
    table = Table("could-see-table", columns, tuple(rows), "Differences that would have been found")
    return Section(
        "What could have been found", (paragraph(told), table), order=470, place="appendix"
    )


def smallest_sentence(result: Result) -> Paragraph | None:
    """Say how small a difference the data could show, for the measure that was tested most."""
    found = [(family, _effects(family.estimates)) for family in families(result)]
    found = [(family, effects) for family, effects in found if effects]
    if not found:
        return None
    family, effects = max(found, key=lambda one: (_rank(one[0]), len(one[1])))
    middle = _shown(float(np.median(effects)), is_ratio(family.estimates[0]))
    about = _KINDS[family.kind]
    if len(effects) == 1:
        text = f"{family.metric.title} ({about}) would have shown a difference of {middle}"
    else:
        many = count(len(effects), "number")
        text = (
            f"Half of the {many} of {family.metric.title} ({about}) would have shown a difference "
            f"of {middle}"
        )
    return paragraph(
        f"{text} or more with a chance of {POWER:.0%}; smaller ones may be there and not have been "
        "found."
    )


def _rank(family: EstimateSet) -> int:
    return {"overall": 2, "group contrast": 1}.get(family.kind, 0)


def _shown(far: float, ratio: bool) -> str:
    return f"{far:.2f} times" if ratio else number_text(far, _places(far))


def _places(far: float) -> int:
    return max(0, min(6, 2 - int(np.floor(np.log10(far))) - 1)) if far > 0 else 2
