"""Confusion matrices that fit published, rounded figures."""

from __future__ import annotations

import numpy as np

from ombud.questions.delicate.detection import Confusion


def recover_counts(
    positives: int,
    negatives: int,
    *,
    precision: float | None = None,
    recall: float | None = None,
    f1: float | None = None,
    accuracy: float | None = None,
    macro_f1: float | None = None,
    decimals: int = 1,
) -> tuple[Confusion, ...]:
    """Return every confusion matrix that gives the published figures after rounding.

    All pairs of true and false positives are tried. One result means that the figures determine
    the counts; none means that figures and class sizes cannot belong together.

    Parameters
    ----------
    positives, negatives
        Class sizes.
    precision, recall, f1, accuracy, macro_f1
        Published figures in per cent; at least one.
    decimals
        To how many decimals (of per cent) they were rounded. A figure fits when it lies within
        half a unit of the last decimal, ends included, whichever way halves were rounded.

    Examples
    --------
    >>> recover_counts(336, 687, precision=81.4, recall=78.3, f1=79.8)
    (Confusion(tp=263, fp=60, fn=73, tn=627),)
    """
    given = {
        "precision": precision,
        "recall": recall,
        "f1": f1,
        "accuracy": accuracy,
        "macro_f1": macro_f1,
    }
    wanted = {name: value for name, value in given.items() if value is not None}
    if not wanted:
        raise ValueError("no figure was given")
    if positives < 1 or negatives < 1:
        raise ValueError("both classes need at least one text")
    tp = np.arange(positives + 1)[:, None].astype(np.float64)
    fp = np.arange(negatives + 1)[None, :].astype(np.float64)
    fn, tn = positives - tp, negatives - fp
    with np.errstate(all="ignore"):
        one = 2 * tp / (2 * tp + fp + fn)
        zero = 2 * tn / (2 * tn + fp + fn)
        figures = {
            "precision": tp / (tp + fp),
            "recall": tp / positives + 0 * fp,
            "f1": one,
            "accuracy": (tp + tn) / (positives + negatives),
            # A class that is neither met nor named has no F1; it counts as 0, as scikit-learn does.
            "macro_f1": (np.nan_to_num(one) + np.nan_to_num(zero)) / 2,
        }
    fits = np.ones((positives + 1, negatives + 1), dtype=bool)
    half = 0.5 * 10.0**-decimals
    for name, value in wanted.items():
        with np.errstate(invalid="ignore"):
            fits &= np.abs(100 * figures[name] - value) <= half + 1e-9
    return tuple(
        Confusion(int(a), int(b), positives - int(a), negatives - int(b))
        for a, b in np.argwhere(fits)
    )
