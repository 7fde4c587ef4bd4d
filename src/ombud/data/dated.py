"""Dated lists and dated requests: who was shown what when, and who asked not to see what when."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ombud.data.frames import Column, Frame, read_table, seconds_of
from ombud.data.ids import Vocabulary
from ombud.errors import DataError


@dataclass(frozen=True, eq=False)
class Requests:
    """Who asked not to see which label, from when on.

    Examples
    --------
    >>> asked = {"user": ["ann"], "label": ["blood"], "time": [1000]}
    >>> Requests.from_frame(asked).times.tolist()
    [1000.0]
    """

    # One of each for every request.
    users: NDArray[Any]
    labels: NDArray[np.object_]
    times: NDArray[np.float64]  # When it was made, in seconds since 1970
    until: NDArray[np.float64]  # When it was taken back; infinity where it stands

    @classmethod
    def from_frame(cls, frame: Frame, *, source: str = "") -> Self:
        """Read one row per request: `user`, `label`, `time`, and `until` where it was taken back.

        Times are seconds, dates or moments. A user may ask again after taking a request back; two
        requests of one user for one label that hold at the same time are refused.
        """
        columns = [
            Column("user", "id"),
            Column("label", "text"),
            Column("time", "time"),
            Column("until", "time", required=False, nullable=True),
        ]
        table = read_table(frame, columns, source)
        name = source or (str(frame) if isinstance(frame, str) else "requests")
        if "until" not in table.columns:
            table = table.with_columns(until=pl.lit(None, dtype=pl.Float64))
        until = seconds_of(table["until"]).fill_null(float("inf"))
        table = table.with_columns(seconds_of(table["time"]).alias("time"), until.alias("until"))
        ordered = table.with_row_index("row", offset=1).sort("user", "label", "time")
        before = pl.col("until").shift(1).over("user", "label")
        wrong = {
            "ends before it begins": ordered.filter(pl.col("until") <= pl.col("time")),
            "begins while an earlier one of the same user and label stands": ordered.filter(
                before > pl.col("time")
            ),
        }
        faults = [
            f"a request {text} in row {rows['row'][0]} ({rows.height:,} such rows)"
            for text, rows in wrong.items()
            if rows.height
        ]
        if faults:
            raise DataError(name, faults)
        return cls(
            table["user"].to_numpy(),
            table["label"].to_numpy().astype(object),
            table["time"].to_numpy().astype(np.float64),
            table["until"].to_numpy().astype(np.float64),
        )

    def __len__(self) -> int:
        return len(self.users)


@dataclass(frozen=True, eq=False)
class DatedLists:
    """What people were shown, place by place, each with its time."""

    users: NDArray[Any]  # The user of each place
    items: NDArray[np.int32]  # Codes of the items, into `catalogue`
    catalogue: Vocabulary  # The items that were shown
    ranks: NDArray[np.int64]  # The place in its list, from 1; 0 where it is not known
    times: NDArray[np.float64]  # When it was shown, in seconds since 1970

    @classmethod
    def from_frame(cls, frame: Frame, *, source: str = "") -> Self:
        """Read one row per place shown: `user`, `item`, `time`, and optionally `rank`."""
        columns = [
            Column("user", "id"),
            Column("item", "id"),
            Column("time", "time"),
            Column("rank", "count", required=False, low=1),
        ]
        table = read_table(frame, columns, source)
        catalogue, codes = Vocabulary.encode(table["item"].to_arrow())
        ranks = np.zeros(table.height, dtype=np.int64)
        if "rank" in table.columns:
            ranks = table["rank"].to_numpy().astype(np.int64)
        times = seconds_of(table["time"]).to_numpy()
        return cls(table["user"].to_numpy(), codes, catalogue, ranks, times)

    def __len__(self) -> int:
        return len(self.users)
