"""Three labels made of the ratings of several raters, and the share of raters behind them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["RatingLabels", "labels_from_ratings"]

_Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class RatingLabels:
    """Labels of texts; -1 where the ratings do not decide.

    Parameters
    ----------
    identified
        Step I: most raters called the text delicate at all (rating above 0).
    delicate
        The binary target: most raters gave the cut (3) or more.
    risk
        A class with at least two votes, and more than any other; -1 sends a text to adjudication.
    median
        The median rating, shown meanwhile.
    adjudicate
        Which rated texts have no risk class.
    unanimous
        Which texts all their raters gave the same side of the cut.
    soft
        Texts x classes: the share of raters for each class; NaN without ratings.
    raters
        How many rated each text.
    """

    identified: NDArray[np.int8]
    delicate: NDArray[np.int8]
    risk: NDArray[np.int8]
    median: NDArray[np.float64]
    adjudicate: _Bools
    unanimous: _Bools
    soft: NDArray[np.float64]
    raters: NDArray[np.int64]


def labels_from_ratings(ratings: ArrayLike, *, classes: int = 6, cut: int = 3) -> RatingLabels:
    """Make the three labels of texts from ratings.

    Majorities are of the raters who rated; with an even number of them a tie is -1, never a pick.

    Parameters
    ----------
    ratings
        Texts x raters, 0 to classes - 1, NaN where a rater did not rate.
    classes, cut
        The scale, and the first class that counts as delicate.

    Examples
    --------
    Ratings 3, 5, 1 are delicate without having a risk class:

    >>> found = labels_from_ratings([[3, 5, 1]])
    >>> found.delicate.tolist(), found.risk.tolist(), found.median.tolist()
    ([1], [-1], [3.0])
    """
    values = np.asarray(ratings, dtype=np.float64)
    if values.ndim != 2:
        raise ValueError(f"ratings have {values.ndim} dimensions; expected texts x raters")
    known = ~np.isnan(values)
    wrong = known & ((values < 0) | (values >= classes) | (values != np.floor(values)))
    if wrong.any():
        raise ValueError(
            f"{wrong.sum()} ratings are not whole numbers from 0 to {classes - 1}; "
            f"the first is {values[wrong][0]:g}"
        )
    counts = np.stack([(values == k).sum(axis=1) for k in range(classes)], axis=1)
    raters = known.sum(axis=1)
    above = counts[:, cut:].sum(axis=1)
    with np.errstate(invalid="ignore"):
        soft = counts / raters[:, None].astype(np.float64)
    ordered = np.sort(counts, axis=1)
    clear = (ordered[:, -1] >= np.minimum(2, np.maximum(raters, 1))) & (
        ordered[:, -1] > ordered[:, -2]
    )
    risk = np.where(clear & (raters > 0), counts.argmax(axis=1), -1).astype(np.int8)
    median = np.full(len(values), np.nan)
    rated = raters > 0
    if rated.any():
        median[rated] = np.nanmedian(values[rated], axis=1)
    return RatingLabels(
        identified=_majority(raters - counts[:, 0], raters),
        delicate=_majority(above, raters),
        risk=risk,
        median=median,
        adjudicate=rated & (risk < 0),
        unanimous=rated & ((above == 0) | (above == raters)),
        soft=soft,
        raters=raters.astype(np.int64),
    )


def _majority(votes: NDArray[np.int64], raters: NDArray[np.int64]) -> NDArray[np.int8]:
    side = np.where(2 * votes > raters, 1, np.where(2 * votes < raters, 0, -1))
    return np.where(raters > 0, side, -1).astype(np.int8)
