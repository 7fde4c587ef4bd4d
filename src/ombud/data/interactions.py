"""Who met what: users, items, and a rating where there is one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import sparse

from ombud.data.exclusions import Exclusion
from ombud.data.faults import rows_where
from ombud.data.frames import Column, Frame, read_table, seconds_of
from ombud.data.ids import Ids, Vocabulary
from ombud.errors import DataError

Duplicates = Literal["error", "last", "mean", "median"]


# Ratings are stored in 32 bits; a larger one would become infinite.
_LARGEST = 3.4e38


@dataclass(frozen=True, eq=False)
class Interactions:
    """Users' histories as a compact sparse matrix, 32-bit throughout where it fits.

    Build one with `from_frame` or `from_arrays`.

    Parameters
    ----------
    users, items
        The ids behind rows and columns.
    matrix
        Users x items; the rating (explicit) or 1 (implicit). Column indices are sorted.
    explicit
        Whether there are ratings.
    rating_scale
        Lowest and highest permitted rating, when ratings exist.
    times
        Time of each stored entry, in the order of ``matrix.data``, or None.
    exclusions
        What was left out while reading.
    """

    users: Vocabulary
    items: Vocabulary
    matrix: sparse.csr_array
    explicit: bool
    rating_scale: tuple[float, float] | None = None
    times: NDArray[np.float64] | None = None
    exclusions: tuple[Exclusion, ...] = field(default=())

    @classmethod
    def from_frame(
        cls,
        frame: Frame,
        *,
        rating_scale: tuple[float, float] | None = None,
        duplicates: Duplicates = "error",
        missing: Literal["error", "drop"] = "error",
        source: str = "",
        catalogue: Vocabulary | None = None,
        unread: tuple[str, ...] = (),
    ) -> Self:
        """Read interactions from any frame or file with columns `user` and `item`.

        Parameters
        ----------
        frame
            Has `user`, `item` and, for explicit feedback, `rating`; optionally `time`.
        rating_scale
            Lowest and highest permitted rating; ratings outside are a fault.
        duplicates
            What to do when a user has an item more than once: refuse, or keep the ``last`` row
            (by `time` where there is one), or the ``mean`` or ``median`` rating.
        missing
            What to do with rows whose rating is missing or NaN: refuse, or ``drop`` and count.
        source
            The table's name in messages.
        catalogue
            The items of the matrix, where these rows are a part of more; default, those that occur.
        unread
            Columns (`rating`, `time`) that nothing in the audit reads: where cells are empty, the
            column is ignored, and that is noted.
        """
        low, high = rating_scale if rating_scale is not None else (-_LARGEST, _LARGEST)
        columns = [
            Column("user", "id"),
            Column("item", "id"),
            Column(
                "rating",
                "number",
                False,
                low,
                high,
                nullable=missing == "drop",
                unread="rating" in unread,
            ),
            Column("time", "time", required=False, unread="time" in unread),
        ]
        table = read_table(frame, columns, source)
        exclusions: list[Exclusion] = []
        if "rating" in table.columns and missing == "drop":
            kept = table.filter(pl.col("rating").fill_nan(None).is_not_null())
            if kept.height < table.height:
                gone = table.height - kept.height
                reason = "the rating is missing"
                exclusions.append(Exclusion("interactions", "rows", gone, reason, table.height))
            table = kept
        name = source or (str(frame) if isinstance(frame, str) else "interactions")
        return cls._build(table, duplicates, rating_scale, exclusions, name, catalogue)

    @classmethod
    def from_arrays(
        cls,
        users: Ids,
        items: Ids,
        ratings: NDArray[Any] | Iterable[float] | None = None,
        **options: Any,
    ) -> Self:
        """Build interactions from parallel arrays; the options are those of `from_frame`."""
        columns: dict[str, Any] = {"user": users, "item": items}
        if ratings is not None:
            columns["rating"] = np.asarray(ratings, dtype=np.float64)
        return cls.from_frame(pl.DataFrame(columns), **options)

    @classmethod
    def _build(
        cls,
        table: pl.DataFrame,
        duplicates: Duplicates,
        rating_scale: tuple[float, float] | None,
        exclusions: list[Exclusion],
        name: str,
        catalogue: Vocabulary | None = None,
    ) -> Self:
        explicit = "rating" in table.columns
        users, rows = Vocabulary.encode(table["user"].to_arrow())
        items, columns = _items_of(table, catalogue)
        ratings = table["rating"].to_numpy() if explicit else None
        if ratings is not None and rating_scale is None:
            rating_scale = (float(ratings.min()), float(ratings.max()))
        order = None
        if "time" in table.columns:
            # Row numbers travel through the matrix, so that times end up in its order.
            order = _matrix(rows, columns, np.arange(1, table.height + 1), users, items)
        data = np.ones(table.height, np.float32) if ratings is None else ratings
        matrix = _matrix(rows, columns, data.astype(np.float32, copy=False), users, items)
        if matrix.nnz < table.height:
            if duplicates == "error":
                again = rows_where(table, ~pl.struct("user", "item").is_first_distinct())
                fault = f"the same user and item again in {again}; remove them, or choose "
                raise DataError(name, [f"{fault}duplicates='last', 'mean' or 'median'"])
            before = table.height
            reason = f"the same user and item again (duplicates={duplicates!r})"
            table = _merge(table, duplicates)
            exclusions.append(
                Exclusion("interactions", "rows", before - table.height, reason, before)
            )
            return cls._build(table, "error", rating_scale, exclusions, name, catalogue)
        times = None if order is None else _seconds(table["time"])[order.data - 1]
        return cls(users, items, matrix, explicit, rating_scale, times, tuple(exclusions))

    @property
    def n_users(self) -> int:
        """How many users there are."""
        return len(self.users)

    @property
    def n_items(self) -> int:
        """How many items there are."""
        return len(self.items)

    def __len__(self) -> int:
        return int(self.matrix.nnz)

    @property
    def density(self) -> float:
        """Interactions / (users x items)."""
        return len(self) / (self.n_users * self.n_items)

    def to_frame(self) -> pl.DataFrame:
        """Return one row per interaction, ordered by user and item."""
        rows = np.repeat(np.arange(self.n_users, dtype=np.int32), np.diff(self.matrix.indptr))
        columns: dict[str, Any] = {
            "user": self.users.take(rows),
            "item": self.items.take(self.matrix.indices),
        }
        if self.explicit:
            columns["rating"] = self.matrix.data
        if self.times is not None:
            columns["time"] = self.times
        return pl.DataFrame(columns)

    def over(self, users: Vocabulary, items: Vocabulary) -> Self:
        """Return the same interactions over other users and items, which must hold all of these."""
        rows, columns = users.codes(self.users.arrow), items.codes(self.items.arrow)
        if (rows < 0).any() or (columns < 0).any():
            raise ValueError("the new users or items lack some of the old ones")
        entries = np.repeat(rows, np.diff(self.matrix.indptr)), columns[self.matrix.indices]
        matrix = _matrix(*entries, self.matrix.data, users, items)
        times = None
        if self.times is not None:
            order = _matrix(*entries, np.arange(1, len(self) + 1), users, items)
            times = self.times[order.data - 1]
        return type(self)(
            users, items, matrix, self.explicit, self.rating_scale, times, self.exclusions
        )

    def select(self, entries: NDArray[np.bool_]) -> Self:
        """Return the same users and items with only some entries (in ``matrix.data`` order)."""
        counts = np.add.reduceat(np.append(entries, False), self.matrix.indptr[:-1], dtype=np.int64)
        counts[np.diff(self.matrix.indptr) == 0] = 0
        starts = np.concatenate([[0], np.cumsum(counts)]).astype(self.matrix.indptr.dtype)
        matrix = sparse.csr_array(
            (self.matrix.data[entries], self.matrix.indices[entries], starts),
            shape=self.matrix.shape,
        )
        matrix.has_sorted_indices = True
        times = None if self.times is None else self.times[entries]
        return type(self)(
            self.users, self.items, matrix, self.explicit, self.rating_scale, times, self.exclusions
        )

    def without_ratings(self) -> Self:
        """Return the same interactions as implicit feedback: every value is 1."""
        matrix = self.matrix.copy()
        matrix.data = np.ones_like(matrix.data)
        return replace(self, matrix=matrix, explicit=False, rating_scale=None)

    def __repr__(self) -> str:
        kind = "explicit" if self.explicit else "implicit"
        return (
            f"Interactions({len(self):,} {kind}, {self.n_users:,} users, {self.n_items:,} items, "
            f"density {self.density:.3%})"
        )


def _items_of(
    table: pl.DataFrame, catalogue: Vocabulary | None
) -> tuple[Vocabulary, NDArray[np.int32]]:
    if catalogue is None:
        return Vocabulary.encode(table["item"].to_arrow())
    columns = catalogue.codes(table["item"].to_arrow())
    if len(columns) and columns.min() < 0:
        raise ValueError("some items are not of the catalogue that was given")
    return catalogue, columns


def _matrix(
    rows: NDArray[np.int32],
    columns: NDArray[np.int32],
    data: NDArray[Any],
    users: Vocabulary,
    items: Vocabulary,
) -> sparse.csr_array:
    """Return users x items with sorted columns; repeated pairs are summed (and so noticed)."""
    shape = (len(users), len(items))
    matrix = sparse.coo_array((data, (rows, columns)), shape=shape).tocsr()
    matrix.sum_duplicates()
    if matrix.nnz < 2**31:
        matrix.indices = matrix.indices.astype(np.int32, copy=False)
        matrix.indptr = matrix.indptr.astype(np.int32, copy=False)
    return matrix


def _merge(table: pl.DataFrame, duplicates: Duplicates) -> pl.DataFrame:
    if duplicates == "last" or "rating" not in table.columns:
        if "time" in table.columns:
            table = table.sort("time", maintain_order=True)
        return table.unique(["user", "item"], keep="last", maintain_order=True)
    how = pl.col("rating").mean() if duplicates == "mean" else pl.col("rating").median()
    others = [pl.col("time").max()] if "time" in table.columns else []
    return table.group_by("user", "item", maintain_order=True).agg(how, *others)


def _seconds(times: pl.Series) -> NDArray[np.float64]:
    return seconds_of(times).to_numpy()
