"""Confusion matrices: rates at other base rates, counts behind printed rates, and the ROC area."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ombud.stats.estimate import Estimate
from ombud.stats.proportions import normal_quantile
from ombud.stats.statistics import Floats

__all__ = [
    "Confusion",
    "auc_difference",
    "auc_estimate",
    "placements",
    "precision_at",
    "precision_at_estimate",
    "recover_counts",
]

_SLACK = 1e-9


class Confusion(NamedTuple):
    """How many texts were flagged or not, and should have been or not.

    Examples
    --------
    >>> m = Confusion(tp=263, fp=60, fn=73, tn=627)
    >>> [round(100 * rate, 1) for rate in (m.precision, m.recall, m.f1)]
    [81.4, 78.3, 79.8]
    """

    tp: int
    fp: int
    fn: int
    tn: int

    @property
    def precision(self) -> float:
        """Share of the flagged that should be; NaN when none is flagged."""
        return self.tp / (self.tp + self.fp) if self.tp + self.fp else float("nan")

    @property
    def recall(self) -> float:
        """Share flagged of those that should be; NaN when there are none."""
        return self.tp / (self.tp + self.fn) if self.tp + self.fn else float("nan")

    @property
    def f1(self) -> float:
        """Harmonic mean of both; NaN when there is nothing to find and nothing was flagged."""
        whole = 2 * self.tp + self.fp + self.fn
        return 2 * self.tp / whole if whole else float("nan")


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
) -> list[Confusion]:
    r"""List every confusion matrix that rounds to printed rates.

    All pairs of true positives :math:`0..P` and false positives :math:`0..N` are tried; one answer
    means that the counts are known, several that the rates do not settle them, none that the
    printed figures contradict each other or the class sizes.

    Parameters
    ----------
    positives, negatives
        Sizes of the two classes.
    precision, recall, f1, accuracy, macro_f1
        What was printed, in percent; macro F1 is the mean of the F1 of both classes.
    decimals
        To how many decimals they were printed. Half a unit counts as either side, because not
        everyone rounds halves alike.

    Examples
    --------
    >>> recover_counts(336, 687, precision=81.4, recall=78.3, f1=79.8)
    [Confusion(tp=263, fp=60, fn=73, tn=627)]
    >>> len(recover_counts(336, 687, precision=55.0, recall=64.0, f1=58.9))
    0
    """
    printed = {
        name: value
        for name, value in (
            ("precision", precision),
            ("recall", recall),
            ("f1", f1),
            ("accuracy", accuracy),
            ("macro_f1", macro_f1),
        )
        if value is not None
    }
    if not printed:
        raise ValueError("no rate is given; there is nothing to recover counts from")
    if positives < 1 or negatives < 1:
        raise ValueError(f"{positives} positives and {negatives} negatives; both must be present")
    half = 0.5 * 10.0**-decimals + _SLACK

    def fits(name: str, rate: Floats) -> npt.NDArray[np.bool_]:
        with np.errstate(invalid="ignore"):
            return np.asarray(np.abs(100 * rate - printed[name]) <= half)

    tp_all = np.arange(positives + 1, dtype=np.float64)
    if "recall" in printed:
        tp_all = tp_all[fits("recall", tp_all / positives)]
    fp = np.arange(negatives + 1, dtype=np.float64)
    result = []
    for tp in tp_all:
        fn, tn = positives - tp, negatives - fp
        with np.errstate(invalid="ignore", divide="ignore"):
            own = 2 * tp / (2 * tp + fp + fn)
            rates = {
                "precision": tp / (tp + fp),
                "f1": own,
                "accuracy": (tp + tn) / (positives + negatives),
                "macro_f1": (own + 2 * tn / (2 * tn + fp + fn)) / 2,
            }
        kept = np.ones(len(fp), dtype=bool)
        for name in printed.keys() & rates.keys():
            kept &= fits(name, rates[name])
        result += [Confusion(int(tp), int(x), int(fn), int(negatives - x)) for x in fp[kept]]
    return result


def precision_at(base: float, recall: npt.ArrayLike, false_positive_rate: npt.ArrayLike) -> Floats:
    r"""Return the precision that a detector would have where a share `base` should be flagged.

    .. math:: \frac{\pi\, TPR}{\pi\, TPR + (1 - \pi)\, FPR}

    Examples
    --------
    >>> round(float(precision_at(0.01, 0.8, 0.08)), 4)
    0.0917
    """
    hit = base * np.asarray(recall, dtype=np.float64)
    false = (1 - base) * np.asarray(false_positive_rate, dtype=np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(hit / (hit + false))


def precision_at_estimate(
    counts: Confusion,
    base: float,
    *,
    rng: np.random.Generator,
    level: float = 0.95,
    draws: int = 20_000,
    **about: Any,
) -> Estimate:
    """Estimate the precision at another base rate from two independent samples of texts.

    The interval holds the middle of the values that draws of both rates give, each from the Beta
    distribution of its counts with Jeffreys' prior, so that no false positive at all does not
    become a promise of none. Undefined without positives or without negatives, and when nothing is
    flagged. It supposes that the texts of each class there are like those here.

    Parameters
    ----------
    counts
        Texts that stand alone.
    base
        The share of texts that should be flagged, there.
    rng, draws
        Source of randomness, and how many draws.
    level
        Coverage of the interval.
    about
        Fields of the estimate.
    """
    tp, fp, fn, tn = counts
    n = sum(counts)
    about = {"metric": f"precision at a base rate of {base:g}", "unit": "text"} | about
    if not tp + fn or not fp + tn:
        which = "should be flagged" if not tp + fn else "should not be flagged"
        return Estimate.undefined(reason=f"no text {which}", n=n, level=level, **about)
    if not tp + fp:
        return Estimate.undefined(reason="no text is flagged", n=n, level=level, **about)
    value = float(precision_at(base, tp / (tp + fn), fp / (fp + tn)))
    drawn = precision_at(
        base,
        rng.beta(tp + 0.5, fn + 0.5, size=draws),
        rng.beta(fp + 0.5, tn + 0.5, size=draws),
    )
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2])
    return Estimate(
        value=value,
        interval=(min(float(low), value), max(float(high), value)),
        method="Jeffreys, both rates",
        n=n,
        level=level,
        **about,
    )


def placements(scores: npt.ArrayLike, truth: npt.ArrayLike) -> Floats:
    """Return, for each text, the share of the other class that it beats; ties count half.

    Examples
    --------
    >>> placements([0.9, 0.4, 0.4, 0.1], [1, 1, 0, 0]).tolist()
    [1.0, 0.75, 0.75, 1.0]
    """
    values, positive = np.asarray(scores, dtype=np.float64), np.asarray(truth, dtype=bool)
    result = np.empty(len(values))
    for here, other, sign in ((positive, ~positive, 1.0), (~positive, positive, -1.0)):
        ordered = np.sort(sign * values[other])
        below = np.searchsorted(ordered, sign * values[here], side="left")
        upto = np.searchsorted(ordered, sign * values[here], side="right")
        result[here] = (below + upto) / 2 / max(len(ordered), 1)
    return result


def _influence(scores: Floats, truth: npt.NDArray[np.bool_]) -> tuple[float, Floats]:
    """Return the area, and what each text adds to it: sums of squares make its variance."""
    place = placements(scores, truth)
    area = float(place[truth].mean())
    sizes = np.where(truth, truth.sum(), (~truth).sum())
    return area, (place - area) / sizes


def _error(influence: Floats, clusters: npt.NDArray[Any] | None) -> tuple[float, int]:
    if clusters is not None:
        _, codes = np.unique(clusters, return_inverse=True)
        influence = np.bincount(codes, weights=influence).astype(np.float64)
    n = len(influence)
    return float(np.sqrt((influence**2).sum() * n / max(n - 1, 1))), n


def auc_estimate(
    scores: npt.ArrayLike,
    truth: npt.ArrayLike,
    *,
    clusters: npt.ArrayLike | None = None,
    level: float = 0.95,
    **about: Any,
) -> Estimate:
    r"""Estimate the area under the ROC curve: how often a positive text scores above a negative.

    .. math:: AUC = P(s_+ > s_-) + P(s_+ = s_-) / 2

    Variance of DeLong, over clusters that of Obuchowski; the interval is made on the logit scale,
    so it stays within 0 and 1. Unit: the text, or the cluster. Undefined when a class is absent;
    without an interval when the classes are parted completely. It says nothing about any threshold.

    Parameters
    ----------
    scores
        One score a text.
    truth
        Whether the text is positive.
    clusters
        What texts share.
    level
        Coverage of the interval.
    about
        Fields of the estimate.

    References
    ----------
    DeLong, DeLong and Clarke-Pearson (1988), Biometrics 44; Obuchowski (1997), Biometrics 53.

    Examples
    --------
    >>> auc_estimate([0.9, 0.4, 0.4, 0.1], [1, 1, 0, 0]).value
    0.875
    """
    values, positive = np.asarray(scores, dtype=np.float64), np.asarray(truth, dtype=bool)
    groups = None if clusters is None else np.asarray(clusters)
    about = {"metric": "area under the ROC curve", "unit": "text"} | about
    if positive.all() or not positive.any():
        return Estimate.undefined(
            reason="only one class is present", n=len(values), level=level, **about
        )
    area, influence = _influence(values, positive)
    error, n = _error(influence, groups)
    if area in (0.0, 1.0) or error == 0:
        method = "none: the scores part the classes completely"
        return Estimate(value=area, interval=None, method=method, n=n, level=level, **about)
    z = normal_quantile(level)
    centre, half = np.log(area / (1 - area)), z * error / (area * (1 - area))
    low, high = 1 / (1 + np.exp(-np.array([centre - half, centre + half])))
    return Estimate(
        value=area,
        interval=(float(low), float(high)),
        method="DeLong, logit" if groups is None else "DeLong over clusters, logit",
        n=n,
        level=level,
        **about,
    )


def auc_difference(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    truth: npt.ArrayLike,
    *,
    clusters: npt.ArrayLike | None = None,
    level: float = 0.95,
    **about: Any,
) -> Estimate:
    """Estimate the difference of two areas under the ROC curve on the same texts, paired.

    DeLong's test. Undefined when a class is absent, or when both rank all texts alike.

    Parameters
    ----------
    first, second
        Two scores a text.
    truth, clusters, level, about
        As in `auc_estimate`.
    """
    from scipy.special import ndtr

    positive = np.asarray(truth, dtype=bool)
    groups = None if clusters is None else np.asarray(clusters)
    about = {"metric": "area under the ROC curve", "unit": "text", "kind": "gap"} | about
    if positive.all() or not positive.any():
        return Estimate.undefined(
            reason="only one class is present", n=len(positive), level=level, **about
        )
    one, here = _influence(np.asarray(first, dtype=np.float64), positive)
    two, there = _influence(np.asarray(second, dtype=np.float64), positive)
    error, n = _error(here - there, groups)
    if error == 0:
        return Estimate.undefined(
            reason="both rank all texts alike", n=n, level=level, null=0.0, **about
        )
    half = normal_quantile(level) * error
    gap = one - two
    return Estimate(
        value=gap,
        interval=(max(gap - half, -1.0), min(gap + half, 1.0)),
        method="DeLong, paired",
        n=n,
        level=level,
        null=0.0,
        p_value=float(2 * ndtr(-abs(gap) / error)),
        **about,
    )
