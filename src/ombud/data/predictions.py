"""Predicted ratings beside the ratings that were held out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ombud.data.exclusions import Exclusion
from ombud.data.ids import Ids
from ombud.data.interactions import Interactions
from ombud.errors import AuditedSystemError, PlanError


@dataclass(frozen=True, eq=False)
class Predictions:
    """One row per held-out pair of user and item."""

    # The ids of each pair.
    users: NDArray[Any]
    items: NDArray[Any]
    predicted: NDArray[np.float32]  # What the system predicts; NaN where it has no prediction
    actual: NDArray[np.float32]  # The rating that was held out
    exclusions: tuple[Exclusion, ...] = field(default=())  # What was excluded on the way

    def __post_init__(self) -> None:
        sizes = {len(self.users), len(self.items), len(self.predicted), len(self.actual)}
        if len(sizes) > 1:
            raise ValueError(f"users, items, predicted and actual differ in length: {sizes}")

    @classmethod
    def of_held_out(
        cls,
        test: Interactions,
        predict: Callable[[Ids, Ids], NDArray[Any]],
        users: Ids | None = None,
        system: str = "the system",
    ) -> Self:
        """Ask a system for its prediction of every held-out rating.

        `predict` takes the users and the items of the pairs, and returns one number per pair, NaN
        where there is no prediction. With `users`, only their pairs are asked for.
        """
        if not test.explicit:
            raise PlanError("predicted ratings are compared with ratings, and there are none")
        counts = np.diff(test.matrix.indptr)
        rows = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
        kept = np.ones(len(rows), dtype=bool)
        if users is not None:
            codes = test.users.codes(users)
            asked = np.zeros(len(counts), dtype=bool)
            asked[codes[codes >= 0]] = True
            kept = asked[rows]
        of, about = test.users.take(rows[kept]), test.items.take(test.matrix.indices[kept])
        predicted = np.asarray(predict(of, about), dtype=np.float32)
        if predicted.shape != of.shape:
            raise AuditedSystemError(
                f"{system} predicted an array of shape {predicted.shape}; "
                f"one number for each of {len(of):,} pairs was expected"
            )
        if np.isinf(predicted).any():
            count = int(np.count_nonzero(np.isinf(predicted)))
            raise AuditedSystemError(
                f"{system} predicted an infinite rating for {count:,} pairs; "
                "NaN is expected where there is no prediction"
            )
        return cls(of, about, predicted, test.matrix.data[kept])

    def __len__(self) -> int:
        return len(self.users)

    def to_frame(self) -> pl.DataFrame:
        """Return the columns `user`, `item`, `predicted` (missing where none) and `actual`."""
        return pl.DataFrame(
            {
                "user": self.users,
                "item": self.items,
                "predicted": pl.Series(self.predicted).fill_nan(None),
                "actual": self.actual,
            }
        )

    @classmethod
    def from_frame(cls, frame: pl.DataFrame) -> Self:
        """Rebuild predictions from `to_frame`."""
        predicted = frame["predicted"].cast(pl.Float32).fill_null(float("nan")).to_numpy()
        actual = frame["actual"].cast(pl.Float32).to_numpy()
        return cls(frame["user"].to_numpy(), frame["item"].to_numpy(), predicted, actual)

    def __repr__(self) -> str:
        known = int(np.count_nonzero(~np.isnan(self.predicted)))
        return f"Predictions({len(self):,} pairs, {known:,} predicted)"
