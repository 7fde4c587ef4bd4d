"""Changes of other people's data: who is removed, planted, replaced or changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy import sparse

from ombud.data.ids import Vocabulary
from ombud.data.interactions import Interactions
from ombud.errors import DataError, PlanError

SwapKind = Literal[
    "removed",
    "entries",
    "planted-neighbours",
    "planted-popular",
    "planted-random",
    "replaced",
    "changed",
]
SWAP_KINDS: tuple[SwapKind, ...] = (
    "removed",
    "entries",
    "planted-neighbours",
    "planted-popular",
    "planted-random",
    "replaced",
    "changed",
)
"""All kinds of treatments of other users."""

_PLANTED = frozenset({"planted-neighbours", "planted-popular", "planted-random"})


@dataclass(frozen=True, eq=False)
class UserSwap:
    """A data set in which some users have another history."""

    kind: SwapKind  # how it came about
    # The users, as rows of the interactions; rows from ``n_users`` on are planted users.
    rows: tuple[int, ...]
    # Their new histories, one row each; an empty row for a user who is removed.
    histories: sparse.csr_array

    def __post_init__(self) -> None:
        if len(set(self.rows)) < len(self.rows) or self.histories.shape[0] != len(self.rows):
            raise ValueError("a swap has one new history per user, and no user twice")

    @property
    def cost(self) -> int:
        """How many users differ."""
        return len(self.rows)

    def touches(self, row: int) -> bool:
        """Whether this changes the data of a user."""
        return row in self.rows


def swapped(interactions: Interactions, swap: UserSwap | None, *, slots: int = 0) -> Interactions:
    """Return the interactions as a swap leaves them.

    A removed user keeps an empty row: rows, and the random start of a training, stay the same.

    Parameters
    ----------
    interactions
        The data as they are.
    swap
        What changes; None for nothing.
    slots
        How many rows for planted users follow, filled or empty; the same number with and without
        planted users gives both trainings the same random start.
    """
    matrix, n_users = interactions.matrix, interactions.n_users
    rows = () if swap is None else swap.rows
    if swap is not None and swap.histories.shape[1] != interactions.n_items:
        raise ValueError("the histories of a swap must have one column per item")
    beyond = max(rows, default=-1) - n_users + 1
    if beyond > slots:
        raise ValueError(f"{beyond} users are planted, and there are {slots} slots for them")
    # An entry of value 0 must stay one, so rows are put together and never multiplied.
    blocks: list[sparse.csr_array] = []
    last = 0
    for place in np.argsort(rows).tolist():
        row = rows[place]
        if row > last:
            blocks.append(_rows(matrix, last, row))
        assert swap is not None
        blocks.append(_rows(swap.histories, place, place + 1))
        last = row + 1
    total = n_users + slots
    if last < total:
        blocks.append(_rows(matrix, min(last, n_users), n_users))
        empty = total - max(last, n_users)
        blocks.append(sparse.csr_array((empty, matrix.shape[1]), dtype=matrix.dtype))
    joined = _stacked(blocks, matrix)
    users = interactions.users if slots == 0 else _with_slots(interactions.users, slots)
    return type(interactions)(
        users,
        interactions.items,
        joined,
        interactions.explicit,
        interactions.rating_scale,
        None,
        interactions.exclusions,
    )


def _rows(matrix: sparse.csr_array, start: int, stop: int) -> sparse.csr_array:
    ends = matrix.indptr[start : stop + 1]
    part = slice(int(ends[0]), int(ends[-1]))
    starts = ends - ends[0]
    shape = (stop - start, matrix.shape[1])
    return sparse.csr_array((matrix.data[part], matrix.indices[part], starts), shape=shape)


def _stacked(blocks: Sequence[sparse.csr_array], like: sparse.csr_array) -> sparse.csr_array:
    sizes = np.concatenate([np.diff(block.indptr) for block in blocks])
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(like.indptr.dtype)
    data = np.concatenate([block.data for block in blocks]).astype(like.dtype)
    indices = np.concatenate([block.indices for block in blocks]).astype(like.indices.dtype)
    matrix = sparse.csr_array((data, indices, starts), shape=(len(sizes), like.shape[1]))
    matrix.has_sorted_indices = True
    return matrix


def _with_slots(users: Vocabulary, slots: int) -> Vocabulary:
    """Return the users with ids for planted ones, which sort after all others."""
    ids = users.arrow
    if pa.types.is_integer(ids.type):
        top = int(users.ids.max()) if len(users) else 0
        more: list[Any] = [top + 1 + slot for slot in range(slots)]
    else:
        top_name = str(users.ids[-1]) if len(users) else ""
        more = [f"{top_name} planted {slot:06d}" for slot in range(slots)]
    return Vocabulary(pa.concat_arrays([ids, pa.array(more, type=ids.type)]))


@dataclass(frozen=True, eq=False)
class OtherUsers:
    """Which treatments of other users are permitted: one kind, up to ``budget`` users at once.

    - ``removed``: users are taken out.
    - ``entries``: one entry of each user is added, changed or removed.
    - ``planted-neighbours``: copies of the users nearest to the target are added.
    - ``planted-popular``: users who have popular items, rated at the top of the scale, are added.
    - ``planted-random``: users with random items and ratings are added.
    - ``replaced``: users are replaced by others, drawn from the users with replacement.
    - ``changed``: users get other ratings (explicit) or items (implicit) in a share of their
      entries.

    Parameters
    ----------
    interactions
        The data as they are.
    kind
        One of `SWAP_KINDS`.
    budget
        At most so many users differ.
    group
        Rows of users that may be touched (or copied); None for all with a history.
    share
        The share of entries that differ in a ``changed`` user.
    """

    interactions: Interactions
    kind: SwapKind
    budget: int = 1
    group: NDArray[np.int64] | None = None
    share: float = 0.5
    _pool: NDArray[np.int64] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        faults = []
        if self.kind not in SWAP_KINDS:
            faults.append(f"kind is {self.kind!r}; choose from {', '.join(SWAP_KINDS)}")
        if self.budget < 1:
            faults.append(f"budget is {self.budget}; at least one user must be able to differ")
        if not 0 < self.share <= 1:
            faults.append(f"share is {self.share}; it must be above 0 and at most 1")
        lengths = np.diff(self.interactions.matrix.indptr)
        pool = np.flatnonzero(lengths > 0)
        if self.group is not None:
            group = np.unique(np.asarray(self.group, dtype=np.int64))
            if len(group) and (group[0] < 0 or group[-1] >= self.interactions.n_users):
                faults.append("group names a user who is not in the interactions")
            else:
                pool = np.intersect1d(pool, group)
        if not faults and self.budget > len(pool) - 1:
            faults.append(
                f"budget is {self.budget}, but only {max(len(pool) - 1, 0)} other users have a "
                "history"
            )
        if faults:
            raise PlanError("other users: " + "; ".join(faults))
        object.__setattr__(self, "_pool", pool)

    @property
    def planted(self) -> bool:
        """Whether users are added rather than touched."""
        return self.kind in _PLANTED

    @property
    def slots(self) -> int:
        """How many rows planted users need."""
        return self.budget if self.planted else 0

    @property
    def pool(self) -> NDArray[np.int64]:
        """The rows of users that may be touched or copied."""
        return self._pool

    def nothing(self) -> UserSwap:
        """Return the treatment that changes nothing."""
        return self._swap((), [])

    def cost(self, treatment: UserSwap) -> int:
        """Return how many users differ."""
        return treatment.cost

    def faults(self, treatment: UserSwap) -> list[str]:
        """Return why a treatment is not permitted; nothing when it is."""
        said = []
        if treatment.cost > self.budget:
            said.append(f"{treatment.cost} users differ, over the budget of {self.budget}")
        n_users = self.interactions.n_users
        added = [row for row in treatment.rows if row >= n_users]
        if treatment.rows and bool(added) != self.planted:
            said.append(f"users are {'' if added else 'not '}planted, and the kind is {self.kind}")
        if not self.planted and not set(treatment.rows) <= set(self._pool.tolist()):
            said.append("a user outside the permitted group differs")
        if treatment.kind == "removed" and treatment.histories.nnz:
            said.append("a removed user has a history")
        return said

    def _swap(self, rows: Sequence[int], histories: list[sparse.csr_array]) -> UserSwap:
        matrix = self.interactions.matrix
        if not histories:
            stacked = sparse.csr_array((len(rows), matrix.shape[1]), dtype=matrix.dtype)
        else:
            stacked = _stacked(histories, matrix)
        return UserSwap(self.kind, tuple(int(row) for row in rows), stacked)

    def removals(self) -> list[UserSwap]:
        """Return the removal of each single user that may be removed."""
        if self.kind != "removed":
            raise PlanError(f"other users: the kind is {self.kind}; only removals can be listed")
        return [self._swap((int(row),), []) for row in self._pool]

    def joined(self, swaps: Sequence[UserSwap]) -> UserSwap:
        """Return several treatments of different users as one."""
        rows = [row for swap in swaps for row in swap.rows]
        return self._swap(rows, [swap.histories for swap in swaps])

    def draw(
        self, n: int, rng: np.random.Generator, *, target: int | None = None
    ) -> list[UserSwap]:
        """Return random treatments that use the whole budget and leave the target alone.

        Parameters
        ----------
        n
            How many.
        rng
            Source of randomness.
        target
            The row of the user in question; needed to plant copies of their neighbours, which
            are drawn from the nearest tenth of the users who share an item with them.
        """
        return list(self._drawn(n, rng, target))

    def _drawn(
        self, count: int, rng: np.random.Generator, target: int | None
    ) -> Iterator[UserSwap]:
        matrix, n_users = self.interactions.matrix, self.interactions.n_users
        pool = self._pool if target is None else self._pool[self._pool != target]
        sources = pool
        if self.kind == "planted-neighbours":
            if target is None:
                raise PlanError("other users: copies of neighbours need a target")
            near = nearest_users(self.interactions, target)
            sources = near[np.isin(near, pool)]
            sources = sources[: max(self.budget, len(sources) // 10)]
            if len(sources) == 0:
                raise DataError("other users", ["nobody shares an item with the target"])
        popularity = np.bincount(matrix.indices, minlength=matrix.shape[1]).astype(np.float64)
        lengths = np.diff(matrix.indptr)[self._pool]
        for _ in range(count):
            rows = n_users + np.arange(self.budget)
            if not self.planted:
                rows = rng.choice(pool, self.budget, replace=False)
            histories = []
            for row in rows.tolist() if self.kind != "removed" else []:
                if self.kind in {"planted-neighbours", "replaced"}:
                    source = int(rng.choice(sources))
                    histories.append(_rows(matrix, source, source + 1))
                elif self.kind == "entries":
                    histories.append(self._one_entry(row, rng))
                elif self.kind == "changed":
                    histories.append(self._changed(row, rng))
                else:
                    weights = popularity if self.kind == "planted-popular" else popularity > 0
                    histories.append(self._invented(int(rng.choice(lengths)), weights, rng))
            yield self._swap(rows.tolist(), histories)

    def _values(self, count: int, rng: np.random.Generator) -> NDArray[np.float32]:
        data = self.interactions.matrix.data
        return rng.choice(data, count).astype(np.float32)

    def _invented(
        self, length: int, weights: NDArray[Any], rng: np.random.Generator
    ) -> sparse.csr_array:
        n_items = self.interactions.n_items
        length = min(length, int(np.count_nonzero(weights)))
        chance = weights / weights.sum()
        items = np.sort(rng.choice(n_items, length, replace=False, p=chance))
        values = self._values(length, rng)
        scale = self.interactions.rating_scale
        if self.kind == "planted-popular" and self.interactions.explicit and scale is not None:
            values = np.full(length, scale[1], np.float32)
        return sparse.csr_array((values, items, np.array([0, length])), shape=(1, n_items))

    def _one_entry(self, row: int, rng: np.random.Generator) -> sparse.csr_array:
        """Return a user's history with one entry added, changed or removed; half are additions."""
        own = _rows(self.interactions.matrix, row, row + 1)
        entries = dict(zip(own.indices.tolist(), own.data.tolist(), strict=True))
        free = np.setdiff1d(np.arange(self.interactions.n_items), own.indices)
        held = list(entries)
        rated = len(held) > 0 and (len(free) == 0 or rng.random() < 0.5)
        item = int(rng.choice(own.indices if rated else free))
        values = [v for v in np.unique(self.interactions.matrix.data).tolist()
                  if v != entries.get(item)]  # fmt: skip
        before = entries.pop(item, None)
        if before is None or (values and rng.random() < 0.5):
            entries[item] = float(rng.choice(values))
        items = np.array(sorted(entries), np.int32)
        data = np.array([entries[i] for i in items.tolist()], np.float32)
        ends = np.array([0, len(items)])
        return sparse.csr_array((data, items, ends), shape=(1, self.interactions.n_items))

    def _changed(self, row: int, rng: np.random.Generator) -> sparse.csr_array:
        matrix, n_items = self.interactions.matrix, self.interactions.n_items
        own = _rows(matrix, row, row + 1)
        items, values = own.indices.copy(), own.data.copy()
        count = max(1, round(self.share * len(items)))
        chosen = rng.choice(len(items), count, replace=False)
        if self.interactions.explicit:
            values[chosen] = self._values(count, rng)
        else:
            free = np.setdiff1d(np.arange(n_items), items)
            count = min(count, len(free))
            items[chosen[:count]] = rng.choice(free, count, replace=False)
        order = np.argsort(items)
        return sparse.csr_array((values[order], items[order], own.indptr), shape=(1, n_items))


def nearest_users(interactions: Interactions, target: int) -> NDArray[np.int64]:
    """Return the users who share an item with the target, nearest by cosine of presence first."""
    matrix = interactions.matrix
    present = sparse.csr_array(
        (np.ones(len(matrix.indices)), matrix.indices, matrix.indptr), shape=matrix.shape
    )
    own = np.zeros(matrix.shape[1])
    own[_rows(matrix, target, target + 1).indices] = 1
    common = present @ own
    lengths = np.sqrt(np.maximum(np.diff(matrix.indptr), 1))
    cosine = common / lengths
    cosine[target] = 0
    order = np.argsort(-cosine, kind="stable")
    result: NDArray[np.int64] = order[cosine[order] > 0]
    return result
