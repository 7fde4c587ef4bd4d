"""The numbers an audit should find: exact, given the world."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.special import gammaln

from ombud.errors import PlanError

if TYPE_CHECKING:
    from ombud.data.groups import Grouping


Unknown = Literal["exclude", "no", "yes"]
"""How items with an unknown or disputed label count: not at all, as *no*, or as *yes*."""


@dataclass(frozen=True, eq=False)
class ShareTruth:
    """Expected share of each label in each user's history and list."""

    labels: tuple[str, ...]  # The labels of the columns
    groups: Grouping  # Groups of the users, in the order of the rows
    # Users x labels: the expected share, given that it is defined; NaN where it never is.
    history: NDArray[np.float64]
    lists: NDArray[np.float64]
    # Users x labels: the probability that both shares are defined (some item of the list and some
    # item of the history has a known label). 1 unless unknown items are excluded.
    defined: NDArray[np.float64]

    def mean_gap(self, group: str | None = None) -> NDArray[np.float64]:
        """Return, for each label, the mean over users of list share minus history share.

        Users count with the probability that their shares are defined.
        """
        return self._mean(self.lists - self.history, group)

    def ratio_of_means(self, group: str | None = None) -> NDArray[np.float64]:
        """Return, for each label, the mean list share over the mean history share.

        NaN where no history holds the label.
        """
        history = self._mean(self.history, group)
        lists = self._mean(self.lists, group)
        return np.divide(lists, history, out=np.full_like(lists, np.nan), where=history > 0)

    def to_frame(self) -> pl.DataFrame:
        """Return one row per group (``"all"`` first) and label, with the expected means."""
        parts = []
        for group in (None, *self.groups.names):
            parts.append(
                pl.DataFrame(
                    {
                        "group": [group or "all"] * len(self.labels),
                        "label": list(self.labels),
                        "history": self._mean(self.history, group),
                        "lists": self._mean(self.lists, group),
                        "gap": self.mean_gap(group),
                        "ratio": self.ratio_of_means(group),
                    }
                )
            )
        return pl.concat(parts)

    def _mean(self, values: NDArray[np.float64], group: str | None) -> NDArray[np.float64]:
        weights = self.defined
        if group is not None:
            weights = weights * find_group(self.groups, group)[:, None]
        total = weights.sum(axis=0)
        sums = (weights * np.where(weights > 0, values, 0.0)).sum(axis=0)
        mean: NDArray[np.float64] = np.divide(
            sums, total, out=np.full_like(total, np.nan), where=total > 0
        )
        return mean


@dataclass(frozen=True, eq=False)
class SuppressionTruth:
    """Expected false-positive rates of a planted moderator, given the texts."""

    groups: tuple[str, ...]  # The identity groups
    support: NDArray[np.int64]  # For each group, how many texts name it and should not be flagged
    # For each group, the mean over those texts of the probability to be flagged; NaN without such
    # texts.
    false_positive_rate: NDArray[np.float64]
    overall: float  # The same over all texts that should not be flagged
    true_positive_rate: float  # The mean over texts that should be flagged
    # The median of the score over the same texts: the value below which half of the mixture of the
    # texts' score distributions lies.
    median_score: NDArray[np.float64]
    overall_median_score: float

    @property
    def suppression(self) -> NDArray[np.float64]:
        """For each group, its false-positive rate over that of all texts (the group included)."""
        if not self.overall > 0:
            return np.full(len(self.groups), np.nan)
        return np.asarray(self.false_positive_rate / self.overall, dtype=np.float64)

    def to_frame(self) -> pl.DataFrame:
        """Return one row per group."""
        return pl.DataFrame(
            {
                "group": list(self.groups),
                "texts": self.support,
                "false_positive_rate": self.false_positive_rate,
                "suppression": self.suppression,
                "median_score": self.median_score,
            }
        )


def probability_none(
    size: NDArray[np.int64], without: NDArray[np.int64], drawn: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return the probability that a uniformly random part holds none of some items.

    ``C(without, drawn) / C(size, drawn)``

    Parameters
    ----------
    size
        How many things there are.
    without
        How many of them are not of the sought kind.
    drawn
        How many are drawn, without replacement.

    Examples
    --------
    >>> probability_none(np.array([4]), np.array([3]), np.array([2])).round(3).tolist()
    [0.5]
    """
    enough = without >= drawn
    left = np.where(enough, without - drawn, 0)
    log = gammaln(without + 1) - gammaln(left + 1) - gammaln(size + 1) + gammaln(size - drawn + 1)
    return np.where(enough, np.exp(np.minimum(log, 0.0)), 0.0)


def find_group(groups: Grouping, name: str) -> NDArray[np.bool_]:
    """Return the members of a group, by its full name (``"age=18-24"``) or its value alone."""
    if name in groups.names:
        return groups.members[:, groups.names.index(name)]
    result = [i for i, full in enumerate(groups.names) if full.split("=", 1)[-1] == name]
    if len(result) != 1:
        what = "is not a group" if not result else "is the value of several attributes"
        raise PlanError(f"{name!r} {what}; the groups are {', '.join(groups.names)}")
    return groups.members[:, result[0]]
