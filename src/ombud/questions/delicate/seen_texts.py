"""Texts that a detector was trained or calibrated on: no test of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from ombud.audits.analysis import Analysis, AnalysisResult, Context
from ombud.registry import analysis
from ombud.systems.detectors import Detector
from ombud.systems.detectors.saved import detector_in
from ombud.text.tagging import texts_of

if TYPE_CHECKING:
    pass


@analysis("seen-texts")
@dataclass(frozen=True)
class SeenTexts(Analysis):
    """How each detector of ombud decides, and how many audited texts it has seen before.

    A detector remembers the words of the texts that it was trained on and that its threshold was
    set on. Where audited texts are among them, its figures are marked with #: they are too good.

    - **Unit**: the text; counts, not estimates.
    - **Does not capture**: texts that a checkpoint or an embedding had seen before training, or
      that nearly repeat a training text.
    """

    asks_systems = True

    def analyze(self, context: Context) -> AnalysisResult:
        """Return one row for each live detector."""
        data = context.data
        given = texts_of(data, "seen-texts")
        texts = [str(text) for text in given]
        sets = None if given.sets is None else given.sets.tolist()
        rows: list[dict[str, Any]] = []
        by_set: list[dict[str, Any]] = []
        for name, system in context.systems.items():
            detector = detector_in(system)
            if detector is None:
                continue
            rows.append(
                {
                    "system": name,
                    "kind": detector.kind,
                    "head": detector.head.kind,
                    "rule": detector.rule,
                    "threshold": detector.threshold if detector.rule == "threshold" else None,
                    "set on": detector.calibrated or "given, not calibrated",
                    "texts": len(texts),
                    **_seen(detector, texts),
                }
            )
            for part in sorted(set(sets or ())):
                some = [text for text, of in zip(texts, sets or (), strict=True) if of == part]
                row = {"system": name, "set": part, "texts": len(some), **_seen(detector, some)}
                by_set.append(row)
        tables = {"seen-texts": pl.DataFrame(rows)} if rows else {}
        if by_set:
            tables["seen-by-set"] = pl.DataFrame(by_set)
        return AnalysisResult(tables=tables)


def _seen(detector: Detector, texts: list[str]) -> dict[str, int | None]:
    seen = detector.seen(texts)
    return {"trained on": seen.get("training"), "calibrated on": seen.get("validation")}
