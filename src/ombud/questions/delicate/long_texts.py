"""Texts longer than a detector's window: cut after the first window, or read to their end."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ombud.audits.analysis import Analysis, AnalysisResult, Context
from ombud.data.decisions import Decisions
from ombud.data.exclusions import Exclusion
from ombud.data.texts import Texts
from ombud.metrics.engine.estimate import correct, estimate_metric
from ombud.questions.delicate.judged import labelled_texts
from ombud.questions.delicate.metrics import F1Score, FlagShare, Precision, Recall
from ombud.registry import analysis
from ombud.stats.estimate import Estimate
from ombud.systems.base import Moderator
from ombud.systems.detectors import Detector
from ombud.systems.detectors.base import Scores
from ombud.systems.detectors.saved import detector_in
from ombud.systems.moderators.local import clean_texts

if TYPE_CHECKING:
    from ombud.data.dataset import Dataset
    from ombud.metrics.engine.estimator import Settings


# The cut text last: the engine takes the later of two systems from the earlier.
_WAYS = ("max", "mean", "cut")


@analysis("long-texts")
@dataclass(frozen=True)
class LongTexts(Analysis):
    """Detection on texts longer than a detector's window: cut, and in windows.

    Published detectors cut a text where their window ends. For every detector of ombud that has a
    window, F1, precision, recall and the share flagged of the texts that do not fit are given for
    the first window alone (*cut*), for the highest window (*max*) and for the mean of windows
    (*mean*), each decided by the detector's threshold; the last two are compared with the first on
    the same texts.

    - **Unit**: the text, or what texts share.
    - **Undefined**: when fewer texts are longer than the window than the least number of the audit.
    - **Does not capture**: whether the threshold, set on other texts, suits long ones; a highest
      window grows with the number of windows.
    """

    asks_systems = True

    def analyze(self, context: Context) -> AnalysisResult:
        """Return detection on long texts, of every live detector."""
        data, settings = context.data, context.settings
        texts = labelled_texts(data, "long-texts")
        estimates: list[Estimate] = []
        rows: list[dict[str, Any]] = []
        exclusions: list[Exclusion] = []
        for number, (name, system) in enumerate(context.systems.items()):
            detector = detector_in(system)
            if isinstance(system, Moderator) and system.record is not None:
                reason = "recorded decisions do not tell how much of a text was read"
                exclusions.append(Exclusion("long-texts", "systems", 1, reason, system=name))
            if detector is None:
                continue
            context.progress(number, len(context.systems), f"long texts: {name}")
            some = _may_be_long(texts, detector)
            _, scores = detector.score(clean_texts(some))
            long = (scores.windows > 1) & (some.truth >= 0)
            rows.append(_row(name, len(texts), detector, scores, long))
            if long.any():
                # Texts that fit are decided alike either way: only the others are measured.
                only = replace(some, truth=np.where(long, some.truth, -1).astype(np.int8))
                said = {way: _said(detector, scores, way, some.ids) for way in _WAYS}
                estimates += _estimates(replace(data, texts=only), said, name, settings)
        tables = {"long-texts": pl.DataFrame(rows)} if rows else {}
        return AnalysisResult(tuple(estimates), tables, tuple(exclusions))


def _may_be_long(texts: Texts, detector: Detector) -> Texts:
    """Return the texts that may not fit into the window: a token has at least one byte."""
    sizes = np.array([len(text.encode()) for text in clean_texts(texts)])
    room = detector.window or np.inf
    # Room is kept for the tokens that begin and end a text.
    kept = np.flatnonzero(sizes > room - 4)
    return Texts(
        texts.ids[kept],
        texts.texts[kept],
        texts.truth[kept],
        None if texts.clusters is None else texts.clusters[kept],
    )


def _row(
    name: str, texts: int, detector: Detector, scores: Scores, long: NDArray[np.bool_]
) -> dict[str, Any]:
    cut = detector.of_windows(scores, "cut") > detector.threshold
    row: dict[str, Any] = {"system": name, "window": detector.window or None, "texts": texts}
    row["longer than the window"] = int(long.sum())
    row["most windows"] = int(scores.windows.max(initial=1))
    row["used"] = detector.long_texts
    for way in _WAYS[:2]:
        other = detector.of_windows(scores, way) > detector.threshold
        row[f"{way} differs from cut"] = int((long & (other != cut)).sum())
    return row


def _said(detector: Detector, scores: Scores, way: str, ids: NDArray[Any]) -> Decisions:
    score = detector.of_windows(scores, way)
    flagged = (score > detector.threshold).astype(np.int8)
    return Decisions(np.asarray(ids), flagged, score.astype(np.float32))


def _estimates(
    data: Dataset, said: dict[str, Decisions], system: str, settings: Settings
) -> list[Estimate]:
    """Return levels of each way of reading, and differences to the texts that were cut."""
    result: list[Estimate] = []
    for key, metric in (
        ("f1", F1Score()), ("precision", Precision()), ("recall", Recall()),
        ("flag-share", FlagShare()),
    ):  # fmt: skip
        rows = {way: metric.measure(some, data) for way, some in said.items()}
        found = estimate_metric(metric, rows, None, settings)
        fields = {"system": system, "key": f"long-texts/{key}"}
        result += [e.replace(label=e.system, **fields) for e in found if e.kind == "level"]
        gaps = [e for e in found if e.kind == "gap" and e.against == "cut"]
        result += [e.replace(label=e.system, **fields) for e in correct(gaps, settings.correction)]
    return result
