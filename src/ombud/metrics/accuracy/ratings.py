"""How far predicted ratings are from the ratings that were held out."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from ombud.data.dataset import Dataset
from ombud.data.exclusions import Exclusion
from ombud.data.ids import Vocabulary
from ombud.data.predictions import Predictions
from ombud.errors import PlanError
from ombud.metrics.base import Metric, Rows
from ombud.registry import metric
from ombud.stats.statistics import Floats, Mean, OfSums, RatioOfSums


def _root_of_ratio(squares: Floats, pairs: Floats, weight: Floats) -> Floats:
    return np.sqrt(squares / pairs)


_ROOT_OF_RATIO = OfSums(("numerator", "denominator"), _root_of_ratio)


@dataclass(frozen=True)
class _Error(Metric):
    """What the metrics of predicted ratings have in common."""

    over: Literal["pairs", "users"] = "pairs"

    registered_name: ClassVar[str]
    by_item: ClassVar[Literal["held-out"]] = "held-out"
    of: ClassVar[Literal["recommender"]] = "recommender"
    reads: ClassVar[Literal["predictions"]] = "predictions"
    null: ClassVar[float | None] = None
    contrast: ClassVar[Literal["difference"]] = "difference"
    depth: ClassVar[int] = 0
    name: ClassVar[str]

    def block_fault(self, tables: Collection[str]) -> str:
        """Return why pairs cannot be measured in blocks."""
        del tables
        return "predicted ratings are not among the tables that are read in blocks"

    @property
    def title(self) -> str:
        """The name as printed."""
        return self.name + ("" if self.over == "pairs" else " (mean over users)")

    def measure(self, outputs: Any, data: Dataset) -> Rows:
        """Return one row per user with a prediction."""
        if not isinstance(outputs, Predictions):
            raise PlanError(
                f"{self.title} needs predicted ratings of held-out items; the system gives lists "
                "only. Use a recommender with `predict`, or a metric of lists"
            )
        known = ~np.isnan(outputs.predicted)
        errors = outputs.predicted[known].astype(np.float64) - outputs.actual[known]
        users, rows = Vocabulary.encode(outputs.users[known])
        pairs = np.bincount(rows, minlength=len(users)).astype(np.float64)
        sums = np.bincount(rows, weights=self._loss(errors), minlength=len(users)).astype(
            np.float64
        )
        columns: dict[str, Floats] = {"numerator": sums, "denominator": pairs}
        if self.over == "users":
            columns = {"value": self._unloss(sums / pairs)}
        return Rows(
            unit="user",
            ids=users.ids,
            columns={name: values[:, None] for name, values in columns.items()},
            exclusions=outputs.exclusions + _unpredicted(outputs, known),
        )

    def _loss(self, errors: Floats) -> Floats:
        raise NotImplementedError

    def _unloss(self, mean: Floats) -> Floats:
        raise NotImplementedError


def _unpredicted(outputs: Predictions, known: Any) -> tuple[Exclusion, ...]:
    missing = int(np.count_nonzero(~known))
    if not missing:
        return ()
    reason = "the system has no prediction for the pair"
    return (Exclusion("accuracy", "held-out ratings", missing, reason, len(outputs)),)


@metric("rmse")
@dataclass(frozen=True)
class RMSE(_Error):
    r"""Root of the mean squared difference between predicted and held-out ratings.

    .. math:: \sqrt{\frac{\sum_u \sum_{i \in T_u} (\hat r_{ui} - r_{ui})^2}{\sum_u |T_u|}}

    - **Unit of resampling**: the user (all of a user's pairs move together).
    - **Undefined**: when no held-out pair has a prediction.
    - **Does not capture**: the order of items, and pairs without a prediction, which are left
      out and counted; a system that declines hard pairs looks better.

    Parameters
    ----------
    over
        ``pairs``: one root over all pairs, so active users weigh more. ``users``: each user's
        own root, then the mean.

    References
    ----------
    Herlocker, Konstan, Terveen and Riedl (2004), *Evaluating Collaborative Filtering Recommender
    Systems*.

    Examples
    --------
    >>> RMSE().statistic.point(np.array([[1.0, 1.0], [7.0, 1.0]]))
    2.0
    """

    name: ClassVar[str] = "RMSE"

    @property
    def statistic(self) -> OfSums:
        """The root of a ratio of sums, or the mean over users."""
        return _ROOT_OF_RATIO if self.over == "pairs" else Mean()

    def _loss(self, errors: Floats) -> Floats:
        return errors**2

    def _unloss(self, mean: Floats) -> Floats:
        return np.sqrt(mean)


@metric("mae")
@dataclass(frozen=True)
class MAE(_Error):
    r"""Mean absolute difference between predicted and held-out ratings.

    .. math:: \frac{\sum_u \sum_{i \in T_u} |\hat r_{ui} - r_{ui}|}{\sum_u |T_u|}

    - **Unit of resampling**: the user (all of a user's pairs move together).
    - **Undefined**: when no held-out pair has a prediction.
    - **Does not capture**: the order of items, and pairs without a prediction, which are left
      out and counted.

    Parameters
    ----------
    over
        ``pairs``: over all pairs. ``users``: each user's own mean, then the mean.
    """

    name: ClassVar[str] = "MAE"

    @property
    def statistic(self) -> OfSums:
        """A ratio of sums, or the mean over users."""
        return RatioOfSums() if self.over == "pairs" else Mean()

    def _loss(self, errors: Floats) -> Floats:
        return np.abs(errors)

    def _unloss(self, mean: Floats) -> Floats:
        return mean
