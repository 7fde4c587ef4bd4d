"""How to read the numbers, for readers who do not do this every day."""

from __future__ import annotations

from collections.abc import Mapping

from ombud.audits.result import Result
from ombud.metrics.engine.comparisons import Matters
from ombud.registry import section
from ombud.report.blocks import Definitions, Paragraph, Section, paragraph


@section("how-to-read")
def how_to_read(result: Result) -> Section:
    """Explain intervals, marks, corrections and undefined numbers."""
    statistics = result.plan.statistics
    level = f"{statistics.level:.0%}"
    chance = 1 - statistics.level
    items: list[tuple[str, Paragraph]] = [
        (
            "0.25 [0.20, 0.31]",
            paragraph(
                f"The estimate, and its {level} interval in brackets: if the audit were repeated "
                f"on new samples of the same kind, about {level} of such intervals would hold the "
                "true value. A wide interval means that little is known."
            ),
        ),
        (
            "n",
            paragraph(
                "How many independent units (users, texts, ...) stand behind a number. Many rows "
                "about one user are still one unit."
            ),
        ),
        (
            "▲ ▼",
            paragraph(
                "Above or below the value that would mean \u201cno difference\u201d, also after "
                "correction for many comparisons. The mark says that there is a difference, not "
                "that it is large, harmful or wanted."
            ),
        ),
        (
            "△ ▽",
            paragraph(
                "Above or below only before the correction: too weak to count among so many "
                "comparisons."
            ),
        ),
        *_matters(statistics.matters),
        ("No mark", paragraph(_no_mark())),
        ("Correction", paragraph(_correction(statistics.correction, chance))),
        (
            "Not defined",
            paragraph(
                "The number does not exist or would rest on too few units (fewer than "
                f"{statistics.minimum} in a group). It is not zero. The reason is given."
            ),
        ),
    ]
    return Section("How to read this report", (Definitions(tuple(items)),), order=700)


def _matters(size: Matters) -> list[tuple[str, Paragraph]]:
    """Explain the smallest difference that matters, where one was declared."""
    if size is None:
        return []
    told = f"{size:g}" if isinstance(size, float) else ""
    if isinstance(size, Mapping):
        told = ", ".join(f"{name} {one:g}" for name, one in size.items())
    return [
        (
            "≈",
            paragraph(
                f"Beforehand, the smallest difference that matters was declared: {told}. ▲ and ▼ "
                "stand where the whole interval lies beyond it; ≈ where there is a difference, but "
                "it may be smaller than that."
            ),
        )
    ]


def _no_mark() -> str:
    return (
        "No clear sign in either direction. This does not show that there is no difference: look "
        "at the ends of the interval to see how large one could still be."
    )


def _correction(name: str, chance: float) -> str:
    if name == "none":
        return (
            "None was made. Where nothing differs, about "
            f"{chance:.0%} of comparisons are marked by chance alone."
        )
    text = {
        "holm": (
            "Holm's method: where nothing differs, the chance of even one mark in a family of "
            f"comparisons is at most {chance:.0%}."
        ),
        "benjamini-hochberg": (
            "Benjamini and Hochberg's method: among all marks in a family of comparisons, about "
            f"{chance:.0%} or fewer are expected to be false."
        ),
    }
    return text.get(name, f"{name}.") + (
        " A family is one measure over all units, over groups, between groups, or between systems."
    )
