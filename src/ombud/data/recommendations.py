"""What recommenders answered: one ranked list per user."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from ombud.data.exclusions import Exclusion
from ombud.data.faults import rows_where
from ombud.data.frames import FLOAT32_MAX, Column, Frame, MappedFile, read_table, without_copies
from ombud.data.ids import Ids, Vocabulary
from ombud.data.reading import PLAIN, Reading, note
from ombud.errors import DataError

if TYPE_CHECKING:
    from ombud.data.interactions import Interactions


@dataclass(frozen=True, eq=False)
class Recommendations:
    """Ranked lists, best first, as a matrix of item codes.

    Parameters
    ----------
    users
        The user of each list.
    items
        Lists x ranks: codes into `catalogue`; -1 where a list has ended.
    catalogue
        The item ids behind the codes.
    scores
        The system's score of each recommendation, or None.
    exclusions
        What was left out while reading.
    """

    users: NDArray[Any]
    items: NDArray[np.int32]
    catalogue: Vocabulary
    scores: NDArray[np.float32] | None = None
    exclusions: tuple[Exclusion, ...] = field(default=())

    def __post_init__(self) -> None:
        if self.items.ndim != 2 or len(self.items) != len(self.users):
            raise ValueError(
                f"items has shape {self.items.shape}; ({len(self.users)} users, n) was expected"
            )
        if self.scores is not None and self.scores.shape != self.items.shape:
            raise ValueError(f"scores {self.scores.shape} and items {self.items.shape} differ")

    @classmethod
    def from_frame(cls, frame: Frame, *, source: str = "") -> Self:
        """Read lists from a frame or file with `user`, `item` and `rank` (or `score`).

        `rank` counts positions from 1 (or, if the lowest rank is 0, from 0), best first, and
        leaves none out: of ranks 10, 20, ..., 100 the first ten are not known. Without it, lists
        are ordered by `score`, highest first (ties by row), and without both, by row.
        """
        score = Column("score", "number", False, -FLOAT32_MAX, FLOAT32_MAX, nullable=True)
        rank = Column("rank", "count", required=False, low=0)
        table = read_table(frame, [Column("user", "id"), Column("item", "id"), rank, score], source)
        name = source or (str(frame) if isinstance(frame, str) else "recommendations")
        reading = _source_reading(frame)
        table = _from_first_rank(table, name, reading)
        if "rank" not in table.columns and "score" in table.columns:
            none = pl.col("score").cast(pl.Float64).fill_nan(None).is_null()
            if lost := rows_where(table, none):  # beside a rank, LensKit leaves scores out
                raise DataError(name, [f"column 'score' is missing in {lost}"])
            scored, highest = table.select("score").with_row_index("row"), reading.best != "lowest"
            order = scored.sort("score", descending=highest, maintain_order=True)["row"].to_numpy()
        else:
            order = np.arange(table.height)
        users, rows = Vocabulary.encode(table["user"].to_arrow())
        catalogue, codes = Vocabulary.encode(table["item"].to_arrow())
        counts = np.bincount(rows, minlength=len(users))
        width = int(counts.max())
        if "rank" in table.columns:
            place = table["rank"].to_numpy() - 1
            beyond = place >= counts[rows]
            place = np.where(beyond, 0, place)  # it is refused below
        else:
            order = order[np.argsort(rows[order], kind="stable")]
            place = np.empty(len(rows), dtype=np.int64)
            place[order] = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
            beyond = np.zeros(1, dtype=np.bool_)
        items = np.full((len(users), width), -1, dtype=np.int32)
        items[rows, place] = codes
        # Every place of every list is taken once, by an item of its own, or something is wrong.
        within = np.sort(items, axis=1)
        again = (within[:, 1:] == within[:, :-1]) & (within[:, 1:] >= 0)
        if beyond.any() or again.any() or np.count_nonzero(items >= 0) < len(rows):
            kept, copies = without_copies(table, "recommendations")
            if copies and {"rank", "score"} & set(table.columns):
                once = MappedFile(kept, reading=Reading(best=reading.best))
                made = cls.from_frame(once, source=name)
                return replace(made, exclusions=(*copies, *made.exclusions))
            raise DataError(name, _list_faults(table))
        scores = None
        exclusions: tuple[Exclusion, ...] = ()
        if "score" in table.columns:
            scores = np.full(items.shape, np.nan, dtype=np.float32)
            scores[rows, place] = table["score"].cast(pl.Float32).to_numpy()
            exclusions = _against_rank(scores, name) if "rank" in table.columns else ()
        return cls(users.ids, items, catalogue, scores, exclusions)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """How many items each list holds."""
        return np.asarray(np.count_nonzero(self.items >= 0, axis=1), dtype=np.int64)

    @property
    def shown(self) -> NDArray[Any]:
        """The items of all lists, each once."""
        return self.catalogue.take(np.unique(self.items[self.items >= 0]))

    def __len__(self) -> int:
        return len(self.users)

    def top(self, n: int) -> Self:
        """Return the first n places of every list."""
        scores = None if self.scores is None else self.scores[:, :n]
        return type(self)(self.users, self.items[:, :n], self.catalogue, scores, self.exclusions)

    def for_users(self, users: Ids) -> Self:
        """Return the lists of some users, in their order; an unknown user gets an empty list."""
        rows = Vocabulary(self.users).codes(users)
        items = np.where(rows[:, None] >= 0, self.items[rows], np.int32(-1))
        scores = None
        if self.scores is not None:
            scores = np.where(rows[:, None] >= 0, self.scores[rows], np.float32("nan"))
        return type(self)(np.asarray(users), items, self.catalogue, scores, self.exclusions)

    def in_catalogue(self, catalogue: Vocabulary) -> NDArray[np.int32]:
        """Return the lists as codes of another vocabulary: -1 ended, -2 not in that vocabulary."""
        if catalogue is self.catalogue:
            return self.items
        new = catalogue.codes(self.catalogue.arrow)
        new[new < 0] = -2
        return np.asarray(np.append(new, np.int32(-1))[self.items], dtype=np.int32)

    def seen_in(self, histories: Interactions) -> NDArray[np.bool_]:
        """Return which places hold an item of the user's own history.

        Examples
        --------
        >>> from ombud.data.interactions import Interactions
        >>> lists = Recommendations.from_frame({"user": ["u", "u"], "item": ["a", "b"]})
        >>> lists.seen_in(Interactions.from_arrays(["u", "v"], ["b", "a"])).tolist()
        [[False, True]]
        """
        items = self.in_catalogue(histories.items)
        users = histories.users.codes(self.users)
        result = np.zeros(items.shape, dtype=np.bool_)
        rows, places = np.nonzero((items >= 0) & (users >= 0)[:, None])
        if len(rows):
            width = len(histories.items)
            asked = np.unique(users[users >= 0])
            part = histories.matrix[asked]
            owner = np.repeat(asked.astype(np.int64), np.diff(part.indptr))
            # Users and their items are in order, so all pairs are one sorted array.
            known = owner * width + part.indices
            shown = users[rows].astype(np.int64) * width + items[rows, places]
            at = np.minimum(np.searchsorted(known, shown), max(len(known) - 1, 0))
            result[rows, places] = known[at] == shown if len(known) else False
        return result

    def to_lists(self) -> pl.DataFrame:
        """Return one row per user, empty lists included: `user`, `items` and `scores`."""
        used = self.items >= 0
        starts = pa.array(np.concatenate([[0], np.cumsum(used.sum(axis=1))]).astype(np.int64))
        items = pa.array(self.catalogue.take(self.items[used]), type=self.catalogue.arrow.type)
        columns = {
            "user": pa.array(np.asarray(self.users).tolist()),
            "items": pa.LargeListArray.from_arrays(starts, items),
        }
        if self.scores is not None:
            scores = pa.array(self.scores[used], type=pa.float32())
            columns["scores"] = pa.LargeListArray.from_arrays(starts, scores)
        frame = pl.from_arrow(pa.table(columns))
        assert isinstance(frame, pl.DataFrame)  # a table never becomes a series
        return frame

    @classmethod
    def from_lists(cls, frame: pl.DataFrame) -> Self:
        """Rebuild recommendations from `to_lists`."""
        lengths = frame["items"].list.len().to_numpy().astype(np.int64)
        users = frame["user"].to_numpy()
        items = np.full((len(users), int(lengths.max(initial=0))), -1, dtype=np.int32)
        used = np.arange(items.shape[1]) < lengths[:, None]
        flat = frame["items"].explode(empty_as_null=False).drop_nulls()
        catalogue, codes = Vocabulary.encode(flat.to_arrow())
        items[used] = codes
        scores = None
        if "scores" in frame.columns:
            scores = np.full(items.shape, np.nan, dtype=np.float32)
            scores[used] = frame["scores"].explode(empty_as_null=False).to_numpy()
        return cls(users, items, catalogue, scores)

    @classmethod
    def concat(cls, parts: Sequence[Self]) -> Self:
        """Return the lists of several answers, one after the other."""
        if len(parts) == 1:
            return parts[0]
        filled = [part for part in parts if part.lengths.any()] or list(parts)
        scored = all(part.scores is not None for part in filled)
        items = filled[0].to_lists().schema["items"]
        # A part without any item knows neither the type of the ids nor whether there are scores.
        frames = [
            part.to_lists().select(
                "user", pl.col("items").cast(items), *([_scores_of(part)] if scored else [])
            )
            for part in parts
        ]
        whole = cls.from_lists(pl.concat(frames))
        return replace(whole, exclusions=Exclusion.merged(e for p in parts for e in p.exclusions))

    def to_frame(self) -> pl.DataFrame:
        """Return one row per recommendation: `user`, `item`, `rank` and `score` where known."""
        rows, places = np.nonzero(self.items >= 0)
        columns: dict[str, Any] = {
            "user": np.asarray(self.users)[rows],
            "item": self.catalogue.take(self.items[rows, places]),
            "rank": (places + 1).astype(np.int32),
        }
        if self.scores is not None:
            columns["score"] = self.scores[rows, places]
        return pl.DataFrame(columns)


def _source_reading(frame: Frame) -> Reading:
    return frame.reading if isinstance(frame, MappedFile) else PLAIN


def _from_first_rank(table: pl.DataFrame, name: str, reading: Reading) -> pl.DataFrame:
    """Return a table whose ranks start with 1."""
    if "rank" not in table.columns:
        return table
    lowest = table["rank"].min()
    first = reading.first_rank if reading.first_rank is not None else lowest
    if first == 0:
        if reading.first_rank is None:
            note(name, "ranks start with 0", "assumed/first-rank")
        return table.with_columns(pl.col("rank") + 1)
    if lowest == 0:
        below = rows_where(table, pl.col("rank") < 1)
        raise DataError(name, [f"column 'rank' is below 1 in {below}"])
    return table


def _against_rank(scores: NDArray[np.float32], name: str) -> tuple[Exclusion, ...]:
    """Return a warning if scores rise where ranks say that items get worse."""
    with np.errstate(invalid="ignore"):
        rises = (scores[:, 1:] > scores[:, :-1]).any(axis=1)
    count = int(np.count_nonzero(rises))
    if not count:
        return ()
    reason = (
        f"in {count:,} of {len(scores):,} lists the score rises where the rank says that items get "
        "worse; the rank decides. Remove one of the two columns if it is wrong"
    )
    return (Exclusion(name, "", count, reason, len(scores), "warning/score-order"),)


def _scores_of(part: Recommendations) -> pl.Expr:
    if part.scores is not None:
        return pl.col("scores")
    return pl.lit(pl.Series("scores", [[]] * len(part), dtype=pl.List(pl.Float32)))


def _list_faults(table: pl.DataFrame) -> list[str]:
    """Return what is wrong with lists of which an item or a place comes twice, or is left out."""
    faults = []
    for key, text in (("item", "recommends an item again"), ("rank", "has a rank again")):
        twice = (
            ~pl.struct("user", key).is_first_distinct() if key in table.columns else pl.lit(False)
        )
        if where := rows_where(table, twice):
            faults.append(
                f"a user's list {text} in {where}; keep one row for each. If the file holds "
                "lists of several days or systems, read one: --read recommendations.where="
                "COLUMN=VALUE of ombud audit, or where in [systems.NAME.reading]"
            )
    if "rank" in table.columns and not faults:
        beyond = rows_where(table, pl.col("rank") > pl.len().over("user"))
        faults.append(
            f"a rank is larger than the length of its list in {beyond}, so places before it "
            "are left out; rank every list 1, 2, 3, ..., or leave the column 'rank' out "
            "where the rows stand in order"
        )
    return faults
