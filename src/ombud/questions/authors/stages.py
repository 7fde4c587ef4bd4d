"""The one pipeline: the share of an identity from the catalogue to reranked lists."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ombud.stats.estimate import Estimate
from ombud.stats.means import mean_estimate
from ombud.stats.proportions import proportion
from ombud.stats.ratios import ratio_of_means
from ombud.stats.statistics import Floats

PIPELINE = "creator-pipeline/share"
"""The key of every share of the pipeline; `details` has its stage."""

STAGE = "stage"
"""The name of the stage in `details`."""

ORDER = ("catalogue", "platform", "interactions", "profiles", "baseline", "lists", "reranked")
"""The stages, from the catalogue on."""


def stage(name: str, of: int, known: int, identity: str, **about: Any) -> Estimate:
    """Return the share of an identity among known items of a stage."""
    return proportion(
        of, known, metric=f"share among {name} items", key=PIPELINE, label=identity, **about
    )


def bounds(of: float, known: float, everything: float) -> dict[str, float]:
    """Return the share if no unknown one, and if every unknown one, were of the identity."""
    unknown = everything - known
    return {"lowest": of / everything, "highest": (of + unknown) / everything}


def among_users(
    count: npt.ArrayLike, known: npt.ArrayLike, *, metric: str, level: float, **about: Any
) -> Estimate:
    """Return the sum of counts over the sum of totals, with users (or `unit`) as independent.

    Examples
    --------
    >>> e = among_users([1, 2, 0], [2, 2, 1], metric="m", level=0.95)
    >>> e.value, e.n
    (0.6, 3)
    """
    y, n = np.asarray(count, dtype=np.float64), np.asarray(known, dtype=np.float64)
    y, n = y[n > 0], n[n > 0]
    about["level"] = level
    about.setdefault("unit", "user")
    if not len(n):
        nothing = "no item is known" if about["unit"] == "item" else "no user has a known item"
        return Estimate.undefined(
            reason_code="no-labels", metric=metric, reason=nothing, n=0, **about
        )
    found = ratio_of_means(y, n, level=level)
    value = float(y.sum() / n.sum())
    low, high = float(found.low), float(found.high)
    if np.isnan(low) or np.isnan(high):
        method = "none: users show no spread, which is not certainty"
        return Estimate(metric=metric, value=value, interval=None, method=method, n=len(n), **about)
    ends = (low, min(high, 1.0))
    return Estimate(
        metric=metric, value=value, interval=ends, method="log-delta", n=len(n), **about
    )


def mean_share(
    values: Floats, name: str, identity: str, details: dict[str, Any], **about: Any
) -> Estimate:
    """Return the mean share over users; NaN users are left out, their number is in `details`."""
    there = values[~np.isnan(values)]
    sd = float(there.std(ddof=1)) if len(there) > 1 else None
    details = {STAGE: name, "sd": sd, "without": int(len(values) - len(there))} | details
    return mean_estimate(
        values, metric=f"mean share in {name}", key=PIPELINE, label=identity, unit="user",
        details=details, **about,
    )  # fmt: skip
