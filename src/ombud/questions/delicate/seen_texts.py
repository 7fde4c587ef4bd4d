"""Texts that a detector was trained or calibrated on: no test of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import polars as pl

from ombud.audits.analyses import Analysed, LiveSystems
from ombud.registry import analysis
from ombud.systems.detectors import detector_in
from ombud.text.tagging import texts_of

if TYPE_CHECKING:
    from ombud.data.dataset import Dataset
    from ombud.metrics.engine import Settings

__all__ = ["SeenTexts"]


@analysis("seen-texts")
@dataclass(frozen=True)
class SeenTexts:
    """How each detector of ombud decides, and how many audited texts it has seen before.

    A detector remembers the words of the texts that it was trained on and that its threshold was
    set on. Where audited texts are among them, its figures are marked with #: they are too good.

    - **Unit**: the text; counts, not estimates.
    - **Does not capture**: texts that a checkpoint or an embedding had seen before training, or
      that nearly repeat a training text.
    """

    registered_name: ClassVar[str]

    def analyse_systems(self, data: Dataset, live: LiveSystems, settings: Settings) -> Analysed:
        """Return one row for each live detector."""
        del settings
        texts = [str(text) for text in texts_of(data, "seen-texts")]
        rows = []
        for name, system in live.systems.items():
            detector = detector_in(system)
            if detector is None:
                continue
            seen = detector.seen(texts)
            decides = {"threshold": detector.threshold} if detector.rule == "threshold" else {}
            rows.append(
                {
                    "system": name,
                    "kind": detector.kind,
                    "head": detector.head.kind,
                    "rule": detector.rule,
                    "threshold": decides.get("threshold"),
                    "set on": detector.calibrated or "given, not calibrated",
                    "texts": len(texts),
                    "trained on": seen.get("training"),
                    "calibrated on": seen.get("validation"),
                }
            )
        return Analysed(tables={"seen-texts": pl.DataFrame(rows)} if rows else {})
