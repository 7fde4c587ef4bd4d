"""Detectors side by side: counts, areas, thresholds tuned on the test itself, paired tests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ombud.audits.analysis import Analysis, AnalysisResult, Context, decisions_in
from ombud.metrics.engine.estimate import correct
from ombud.questions.delicate.detection import precision_recall_curve
from ombud.questions.delicate.judged import Judged, judged
from ombud.registry import analysis
from ombud.rng import generator
from ombud.stats.bootstrap.replicates import Sample
from ombud.stats.bootstrap.resample import resample
from ombud.stats.estimate import Estimate
from ombud.stats.paired import paired_proportion_estimate
from ombud.stats.roc import auc_difference, auc_estimate
from ombud.systems.detectors.heads import best_threshold

if TYPE_CHECKING:
    from ombud.metrics.engine.estimator import Settings


Floats = NDArray[np.float64]
_CURVE_POINTS = 60


@analysis("detector-comparison")
@dataclass(frozen=True)
class DetectorComparison(Analysis):
    """Counts, ROC areas, F1 at a threshold tuned on the test (#), and paired tests of detectors.

    - ``detection/auc``: area under the ROC curve, and paired differences (DeLong).
    - ``detection/tuned-f1``: the largest F1 that any threshold reaches on these very texts. It is
      too high by its making; its interval tunes again in each replicate, so it says how far the
      *tuning on such a test* varies, not how the threshold does on new texts. Marked with #.
    - ``detection/accuracy-difference``: which of two is right more often, on the same texts
      (McNemar's mid-p, Newcombe's interval; over clusters a bootstrap).

    - **Unit**: the text, or what texts share.
    - **Undefined**: areas and tuned F1 without scores or with one class only.
    - **Does not capture**: cost of the two kinds of errors.

    Parameters
    ----------
    replicates
        Of the tuned F1.
    """

    replicates: int = 500

    def analyze(self, context: Context) -> AnalysisResult:
        """Return the estimates, the table of counts and the precision-recall curves."""
        data, outputs, settings = context.data, context.outputs, context.settings
        found = {
            name: judged(some, data, "detector-comparison")
            for name, some in decisions_in(outputs, "detector-comparison").items()
        }
        estimates: list[Estimate] = []
        for name, texts in found.items():
            about: dict[str, Any] = {"system": name, "unit": texts.unit, "level": settings.level}
            estimates += [self._area(texts, about), self._tuned(texts, about, settings)]
        pairs = list(combinations(found, 2))
        areas = [_area_gap(found[a], found[b], a, b, settings) for a, b in pairs]
        right = [accuracy_difference(found[a], found[b], a, b, settings) for a, b in pairs]
        estimates += correct(areas, settings.correction) + correct(right, settings.correction)
        return AnalysisResult(
            tuple(estimates),
            {"detection-counts": _counts(found), "precision-recall": _curves(found)},
        )

    def _area(self, texts: Judged, about: dict[str, Any]) -> Estimate:
        known = ~np.isnan(texts.score)
        if not known.any():
            return Estimate.undefined(
                reason_code="not-measured",
                metric="area under the ROC curve", key="detection/auc", n=len(texts),
                reason="the system gives no scores", **about,
            )  # fmt: skip
        clusters = None if texts.clusters is None else texts.clusters[known]
        return auc_estimate(
            texts.score[known], texts.truth[known], clusters=clusters, key="detection/auc", **about
        )

    def _tuned(self, texts: Judged, about: dict[str, Any], settings: Settings) -> Estimate:
        about = about | {"metric": "F1 at the threshold tuned on the test (#)"}
        about["key"] = "detection/tuned-f1"
        known = ~np.isnan(texts.score)
        truth = texts.truth[known]
        if not truth.any():
            scored = "no scored text should be flagged" if known.any() else "it gives no scores"
            return Estimate.undefined(
                reason_code="no-variation" if known.any() else "not-measured",
                reason=scored,
                n=int(known.sum()),
                **about,
            )
        scores = texts.score[known]
        if truth.all():
            return Estimate.undefined(
                reason_code="no-variation",
                reason="every text should be flagged",
                n=len(truth),
                **about,
            )
        threshold, f1 = best_threshold(scores, truth)
        units = np.arange(len(scores)) if texts.clusters is None else texts.clusters[known]
        _, codes = np.unique(units, return_inverse=True)
        size = int(codes.max()) + 1
        rng = generator(settings.seed, "tuned F1", about["system"])
        draws = []
        for _ in range(self.replicates):
            counts = np.bincount(rng.integers(size, size=size), minlength=size)[codes]
            if (counts * truth).any() and (counts * ~truth).any():
                draws.append(best_threshold(scores, truth, counts)[1])
        tail = (1 - settings.level) / 2
        low, high = np.quantile(draws, [tail, 1 - tail])
        return Estimate(
            value=f1,
            interval=(min(float(low), f1), max(float(high), f1)),
            method="bootstrap, tuned again each time",
            n=size,
            note="# tuned on the test itself: too high for new texts",
            details={"threshold": threshold, "tuned": True},
            **about,
        )


def _area_gap(one: Judged, two: Judged, a: str, b: str, settings: Settings) -> Estimate:
    at, x, y = _shared(one, two)
    known = ~np.isnan(one.score[x]) & ~np.isnan(two.score[y])
    about: dict[str, Any] = {"key": "detection/auc", "system": a, "against": b}
    about |= {"unit": one.unit, "level": settings.level}
    if not known.any():
        return Estimate.undefined(
            reason_code="not-measured",
            metric="area under the ROC curve", kind="gap", null=0.0, n=len(at),
            reason="one of the two gives no scores", **about,
        )  # fmt: skip
    clusters = None if one.clusters is None else one.clusters[x][known]
    return auc_difference(
        one.score[x][known], two.score[y][known], one.truth[x][known], clusters=clusters, **about
    )


def accuracy_difference(one: Judged, two: Judged, a: str, b: str, settings: Settings) -> Estimate:
    """Return how much more often one of two detectors is right, on the same texts."""
    at, x, y = _shared(one, two)
    truth = one.truth[x]
    about: dict[str, Any] = {
        "metric": "right decisions", "key": "detection/accuracy-difference", "system": a,
        "against": b, "unit": one.unit, "level": settings.level, "kind": "gap", "null": 0.0,
    }  # fmt: skip
    n = len(at) if one.clusters is None else len(np.unique(one.clusters[x]))
    if n < settings.minimum:
        reason = f"not enough data: {n} {one.unit}s, at least {settings.minimum} wanted"
        return Estimate.undefined(reason_code="too-few-units", reason=reason, n=n, **about)
    right = [np.where(truth, f, 1 - f) for f in (one.flagged[x], two.flagged[y])]
    if one.independent and two.independent:
        better = int(((right[0] == 1) & (right[1] == 0)).sum())
        worse = int(((right[0] == 0) & (right[1] == 1)).sum())
        about["details"] = {"only first right": better, "only second right": worse}
        return paired_proportion_estimate(right[0], right[1], **about)
    drawn = resample(
        [Sample(right[0] - right[1])],
        clusters=None if one.clusters is None else one.clusters[x],
        replicates=settings.replicates,
        rng=generator(settings.seed, "right decisions", a, b),
    )
    return drawn.at(0).estimate(method=settings.interval, **about)


def _shared(
    one: Judged, two: Judged
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    return np.intersect1d(one.index, two.index, assume_unique=True, return_indices=True)


def _counts(found: Mapping[str, Judged]) -> pl.DataFrame:
    return pl.DataFrame(
        [{"system": name, "texts": len(texts)} | texts.counts._asdict()
         for name, texts in found.items()]
    )  # fmt: skip


def _curves(found: Mapping[str, Judged]) -> pl.DataFrame:
    """Return precision and recall at some thresholds of each system that gives scores."""
    parts = []
    for name, texts in found.items():
        known = ~np.isnan(texts.score)
        truth = texts.truth[known]
        if not truth.any() or truth.all():
            continue
        curve = precision_recall_curve(texts.score[known], truth)
        kept = np.unique(np.linspace(0, curve.height - 1, _CURVE_POINTS).astype(int))
        parts.append(curve[kept.tolist()].insert_column(0, pl.Series("system", [name] * len(kept))))
    schema = {"system": pl.String, "threshold": pl.Float64, "precision": pl.Float64}
    return pl.concat(parts) if parts else pl.DataFrame(schema=schema | {"recall": pl.Float64})
