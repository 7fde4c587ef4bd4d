"""What a change costs: relative loss over the same units, or counts when there are few hits."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ombud.stats.estimate import Estimate
from ombud.stats.ratios import ratio_of_means

FEWEST_HITS = 50
"""With fewer units that scored before, a percentage means nothing."""


def relative_loss(
    before: npt.ArrayLike,
    after: npt.ArrayLike,
    *,
    metric: str,
    level: float = 0.95,
    fewest: int = FEWEST_HITS,
    **about: Any,
) -> Estimate:
    r"""Return :math:`(\bar x - \bar x') / \bar x`, paired over units; negative is a gain.

    The interval is that of the ratio of two means over the same units, on the log scale. With
    fewer than `fewest` units above zero before, the loss is undefined; `details` always has the
    counts of both: units above zero before, after, and both times. It then has the loss too, as
    ``on_few_hits``, for tables that print it with its counts.

    Parameters
    ----------
    before, after
        A measure of each unit, zero or more, such as the reciprocal rank of its held-out item.
    metric, level, about
        How the estimate is named; `about` are further fields of `Estimate`.
    fewest
        How many units must be above zero before.

    Examples
    --------
    >>> before = np.tile([1.0, 0.5, 0.0], 100)
    >>> e = relative_loss(before, before * 0.9, metric="loss of MRR", unit="user")
    >>> round(e.value, 6), e.n
    (0.1, 300)
    >>> relative_loss([1, 0], [0.5, 0], metric="loss of MRR", unit="user").reason
    '1 unit scored before and 1 after; fewer than 50 are counted, not turned into a percentage'
    """
    x, y = np.asarray(before, dtype=np.float64), np.asarray(after, dtype=np.float64)
    if x.shape != y.shape or x.ndim != 1:
        raise ValueError(f"before has shape {x.shape} and after {y.shape}; one row per unit")
    if not (np.all(x >= 0) and np.all(y >= 0)):
        raise ValueError("before and after must be zero or more, and no NaN")
    hits = int(np.count_nonzero(x)), int(np.count_nonzero(y))
    counts = {
        "hits_before": hits[0],
        "hits_after": hits[1],
        "hits_both": int(np.count_nonzero((x > 0) & (y > 0))),
    }
    about = {"kind": "ratio", "details": counts, **about}
    if 0 < hits[0] < fewest:  # for tables that print it with its hits; no sentence uses it
        about["details"] = {**about["details"], "on_few_hits": 1 - float(y.mean() / x.mean())}
    if hits[0] < fewest:
        some = "unit" if hits[0] == 1 else "units"
        reason = (
            f"{hits[0]} {some} scored before and {hits[1]} after; fewer than {fewest} are "
            "counted, not turned into a percentage"
        )
        return Estimate.undefined(
            reason_code="too-few-events",
            metric=metric,
            reason=reason,
            n=len(x),
            level=level,
            **about,
        )
    found = ratio_of_means(y, x, level=level)
    ratio, low, high = (float(part) for part in (found.ratio, found.low, found.high))
    interval = None if np.isnan(low) or np.isnan(high) else (1 - high, 1 - low)
    method = "paired, delta method on the log scale"
    if np.array_equal(x, y):
        interval, method = None, "none: nothing changed"
    elif interval is None:
        method = "none: the units show no spread on the log scale, which is not certainty"
    return Estimate(
        metric=metric,
        value=1 - ratio,
        interval=interval,
        method=method,
        n=len(x),
        level=level,
        null=0.0,
        **about,
    )
