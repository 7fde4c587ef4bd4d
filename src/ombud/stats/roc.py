"""The area under the ROC curve, and paired differences of two."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from ombud.stats.estimate import Estimate
from ombud.stats.proportions import normal_quantile
from ombud.stats.statistics import Floats


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

    `clusters` are what texts share; `about` are fields of the estimate.

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
            reason_code="no-variation",
            reason="only one class is present",
            n=len(values),
            level=level,
            **about,
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

    `truth`, `clusters`, `level` and `about` are as in `auc_estimate`.
    """
    positive = np.asarray(truth, dtype=bool)
    groups = None if clusters is None else np.asarray(clusters)
    about = {"metric": "area under the ROC curve", "unit": "text", "kind": "gap"} | about
    if positive.all() or not positive.any():
        return Estimate.undefined(
            reason_code="no-variation",
            reason="only one class is present",
            n=len(positive),
            level=level,
            **about,
        )
    one, here = _influence(np.asarray(first, dtype=np.float64), positive)
    two, there = _influence(np.asarray(second, dtype=np.float64), positive)
    error, n = _error(here - there, groups)
    if error == 0:
        return Estimate.undefined(
            reason_code="no-variation",
            reason="both rank all texts alike",
            n=n,
            level=level,
            null=0.0,
            **about,
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
