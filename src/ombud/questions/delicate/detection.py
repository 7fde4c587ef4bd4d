"""Decisions counted: the confusion matrix, F1 as a statistic of rows, and the curve of scores."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from ombud.stats.statistics import OfSums

Floats = NDArray[np.float64]


class Confusion(NamedTuple):
    """Counts of texts: true and false positives, false and true negatives."""

    tp: int
    fp: int
    fn: int
    tn: int


def _known(flags: ArrayLike, truth: ArrayLike) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    flagged = np.asarray(flags, dtype=np.float64)
    labels = np.asarray(truth, dtype=np.float64)
    if flagged.shape != labels.shape:
        raise ValueError(f"{flagged.shape} decisions and {labels.shape} labels; expected as many")
    known = ~np.isnan(flagged) & ~np.isnan(labels) & (labels >= 0)
    return flagged, labels, known


def confusion(flags: ArrayLike, truth: ArrayLike) -> Confusion:
    """Count the four outcomes; texts without a decision (NaN) or label (NaN, -1) are left out.

    Examples
    --------
    >>> confusion([1, 1, 0, 0, np.nan], [1, 0, 1, 0, 1])
    Confusion(tp=1, fp=1, fn=1, tn=1)
    """
    flagged, labels, known = _known(flags, truth)
    f, t = flagged[known] == 1, labels[known] == 1
    return Confusion(
        int((f & t).sum()), int((f & ~t).sum()), int((~f & t).sum()), int((~f & ~t).sum())
    )


def _f1(tp: Floats, wrong: Floats, weight: Floats) -> Floats:
    with np.errstate(all="ignore"):
        return np.asarray(2 * tp / (2 * tp + wrong))


def f1_statistic() -> OfSums:
    """Return F1 = 2 TP / (2 TP + FP + FN) as a statistic of rows (TP, FP or FN) of 0 and 1."""
    return OfSums(("tp", "wrong"), _f1)


def precision_recall_curve(scores: ArrayLike, truth: ArrayLike) -> pl.DataFrame:
    """Return precision and recall at every threshold (score >= threshold), highest first.

    Texts without score or label are left out. No interval: a curve is for looking at.

    Examples
    --------
    >>> precision_recall_curve([0.9, 0.8, 0.1], [1, 0, 1]).rows()
    [(0.9, 1.0, 0.5), (0.8, 0.5, 0.5), (0.1, 0.6666666666666666, 1.0)]
    """
    values, labels, known = _known(scores, truth)
    values, labels = values[known], labels[known] == 1
    order = np.argsort(-values, kind="stable")
    ranked, hits = values[order], np.cumsum(labels[order])
    last = np.flatnonzero(np.append(ranked[1:] != ranked[:-1], True)) if len(ranked) else order
    found = hits[last]
    with np.errstate(invalid="ignore"):
        recall = found / labels.sum()
    return pl.DataFrame(
        {"threshold": ranked[last], "precision": found / (last + 1), "recall": recall}
    )
