"""From large columns to a filtered, pseudonymous data set, and from there to a folder."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray
from scipy import sparse

from ombud.data.card import Card
from ombud.data.dataset import Dataset
from ombud.data.exclusions import Exclusion
from ombud.data.ids import Vocabulary
from ombud.data.interactions import Interactions
from ombud.data.kcore import KCore, k_core
from ombud.data.tables import write_tables
from ombud.errors import DataError
from ombud.files import remove_leftovers, write_folder
from ombud.taxonomy import load_taxonomy


@dataclass(frozen=True)
class Filter:
    """How a builder excludes users and items with few interactions."""

    minimum: int = 3  # How many interactions each user and each item must have
    # How many passes to make; None goes to the fixed point, 3 is what the published code does.
    passes: int | None = None
    # How many an item must have, where that is another number than for users.
    items: int | None = None

    def __str__(self) -> str:
        reach = "to the fixed point" if self.passes is None else f"{self.passes} passes"
        if self.items is not None and self.items != self.minimum:
            of = f"users with at least {self.minimum} interactions, items with {self.items}"
            return f"{of}, {reach}"
        return f"users and items with at least {self.minimum} interactions, {reach}"


def history_matrix(
    users: NDArray[np.int32],
    items: NDArray[np.int32],
    ratings: NDArray[np.float32] | None,
    shape: tuple[int, int],
    source: str,
) -> tuple[sparse.csr_array, tuple[Exclusion, ...]]:
    """Return users x items with sorted columns, and how many repeated rows were merged.

    A repeated row without a rating says nothing new and is counted; two ratings of one user for
    one item contradict each other and are refused.
    """
    data = np.ones(len(users), dtype=np.int8) if ratings is None else ratings
    matrix = sparse.coo_array((data, (users, items)), shape=shape).tocsr()
    matrix.sum_duplicates()
    repeated = len(users) - matrix.nnz
    if not repeated:
        return matrix, ()
    if ratings is not None:
        fault = f"{repeated:,} rows rate an item that the same user rates in another row"
        raise DataError(source, [f"{fault}; keep one rating for each user and item"])
    reason = "the same user and item again"
    return matrix, (Exclusion("interactions", "rows", repeated, reason, len(users)),)


def filtered_interactions(
    matrix: sparse.csr_array,
    items: Vocabulary,
    asked: Filter,
    *,
    permitted: NDArray[np.bool_] | None = None,
    outside: str = "",
    rating_scale: tuple[float, float] | None = None,
    merged: tuple[Exclusion, ...] = (),
    rng: np.random.Generator | None = None,
) -> tuple[Interactions, KCore]:
    """Filter users and items, give the users pseudonyms, and return what is left.

    `matrix` is users x items, as `history_matrix` returns it. `outside` says in words why items are
    not permitted; `rating_scale` is None when the entries are not ratings; `merged` is what was
    excluded before. `rng` is for tests: by default nobody can repeat the order of the users.
    """
    core = k_core(
        matrix, asked.minimum, passes=asked.passes, permitted=permitted, items=asked.items
    )
    if not core.users.any() or not core.items.any():
        raise DataError(
            "interactions", [f"nothing is left of {matrix.nnz:,} interactions: {asked}"]
        )
    kept = take(matrix, pseudonymous_order(core.users, rng), core.items)
    if rating_scale is None:
        kept.data = np.ones(kept.nnz, dtype=np.float32)
    people = Vocabulary(pa.array(np.arange(1, kept.shape[0] + 1, dtype=np.int64)))
    things = Vocabulary(items.arrow.filter(pa.array(core.items)))
    dropped = (*merged, *core.exclusions(outside))
    result = Interactions(
        people, things, kept, rating_scale is not None, rating_scale, None, dropped
    )
    return result, core


_STATES = {"Clear Yes": 1, "Clear No": 0, "No Votes": -2, "Unclear": -1}


def released_tables(data: Dataset) -> dict[str, pl.DataFrame]:
    """Return a built data set as the two tables that its authors released, by their file names.

    With ratings (ML-DDD), the sensitivity table has four columns of 0 and 1 for each warning;
    without (AO3), one. Two columns are not there: the lists of each work's users, which the
    interaction table has, and warnings in the authors' own words, which ombud does not read.
    """
    interactions, labels = data.need("interactions", "export"), data.need("labels", "export")
    items, counts = interactions.items, np.bincount(
        interactions.matrix.indices, minlength=interactions.n_items
    )  # fmt: skip
    states = labels.aligned(items)
    known = load_taxonomy("warnings-ddd@1")
    names = {name: known[name].title if name in known.ids else name for name in labels.names}
    table: dict[str, Any] = {"work_id": items.ids}
    if interactions.explicit:
        sums = np.bincount(
            interactions.matrix.indices,
            weights=interactions.matrix.data.astype(np.float64),
            minlength=interactions.n_items,
        )
        table |= {"n_ratings": counts, "av_rating": sums / np.maximum(counts, 1)}
        for title, state in _STATES.items():
            for place, name in enumerate(labels.names):
                table[f"{title}: {names[name]}"] = (states[:, place] == state).astype(np.int8)
        own = np.array([names[name] for name in labels.names], dtype=object)
        table["all_warnings"] = [str(own[row == 1].tolist()) for row in states]
    else:
        for column in ("hits", "kudos"):
            if data.items is not None and column in data.items.values:
                rows = data.items.items.codes(items.arrow)
                table[f"n_{column}"] = data.items.values[column][rows].astype(np.int64)
        table["n_users"] = counts
        for place, name in enumerate(labels.names):
            table[name] = (states[:, place] == 1).astype(np.int8)
    own_name = "ml-ddd" if interactions.explicit else "ao3"
    kept = {"user": "user_id", "item": "work_id"}
    kept |= {"rating": "rating"} if interactions.explicit else {}
    return {
        f"{own_name}_sensitivity_table.csv": pl.DataFrame(table),
        f"{own_name}_interaction_table.csv": interactions.to_frame()
        .select(list(kept))
        .rename(kept),
    }


def write_dataset(data: Dataset, folder: str | Path, *, replace: bool = False) -> Path:
    """Write interactions, labels, groups and card as one folder, which appears whole or not at all.

    The folder must not exist; with `replace` the new one takes the place of an old one.

    Returns
    -------
    Path
        The folder, with ``interactions.parquet``, ``labels.parquet``, ``users.parquet`` (if there
        are groups) and ``card.json``.
    """
    target = Path(folder)
    remove_leftovers(target)
    if target.exists() and not replace:
        raise DataError(str(target), ["it exists; choose another folder, or ask to replace it"])

    def write(part: Path) -> None:
        write_tables(data, part)
        (part / "card.json").write_text(_card_text(data.card), encoding="utf-8")
        for path in part.iterdir():
            path.chmod(0o644)

    write_folder(target, write)
    return target


def _card_text(card: Card) -> str:
    return card.model_dump_json(indent=1) + "\n"


# Random ids for people, with no key kept, and histories taken out in their order.


_BLOCK = 1 << 22


def pseudonymous_order(
    users: NDArray[np.bool_], rng: np.random.Generator | None = None
) -> NDArray[np.int64]:
    """Return the users that stay in a random order; the place in it is the pseudonym.

    By default the order comes from the randomness of the operating system, which nobody can repeat.
    A generator with a seed is a key: give one in tests only.
    """
    source = rng if rng is not None else np.random.default_rng(secrets.randbits(256))
    return source.permutation(np.flatnonzero(users))


def take(
    matrix: sparse.csr_array, rows: NDArray[np.int64], columns: NDArray[np.bool_]
) -> sparse.csr_array:
    """Return some rows in the order given, with only some columns, block by block.

    The matrix has sorted column indices; each row is wanted at most once.
    """
    places = (np.cumsum(columns) - 1).astype(np.int32)
    lengths = np.diff(matrix.indptr)[rows]
    ends = np.cumsum(lengths, dtype=np.int64)
    total = int(ends[-1]) if len(ends) else 0
    indices = np.empty(total, dtype=np.int32)
    data = np.empty(total, dtype=matrix.data.dtype)
    counts = np.zeros(len(rows) + 1, dtype=np.int64)
    filled, low = 0, 0
    while low < len(rows):
        begin = int(ends[low] - lengths[low])
        # At least one row a block, however long it is.
        high = max(low + 1, int(np.searchsorted(ends, begin + _BLOCK, side="right")))
        size = lengths[low:high].astype(np.int64)
        shift = matrix.indptr[rows[low:high]] - (ends[low:high] - size - begin)
        entries = np.arange(int(size.sum())) + np.repeat(shift, size)
        met = matrix.indices[entries]
        kept = columns[met]
        owner = np.repeat(np.arange(high - low), size)[kept]
        counts[low + 1 : high + 1] = np.bincount(owner, minlength=high - low)
        number = len(owner)
        indices[filled : filled + number] = places[met[kept]]
        data[filled : filled + number] = matrix.data[entries[kept]]
        filled, low = filled + number, high
    starts = np.cumsum(counts)
    if filled < 2**31:
        starts = starts.astype(np.int32)
    shape = (len(rows), int(np.count_nonzero(columns)))
    taken = sparse.csr_array((data[:filled], indices[:filled], starts), shape=shape)
    taken.has_sorted_indices = True
    return taken
