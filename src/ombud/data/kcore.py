"""Keep only users and items with enough interactions, to the fixed point."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ombud.data.exclusions import Exclusion


@dataclass(frozen=True, slots=True)
class CorePass:
    """What one pass excluded."""

    # How many of each fell below the minimum.
    users: int
    items: int
    interactions: int  # How many interactions went with them


@dataclass(frozen=True, eq=False)
class KCore:
    """Which users and items stay, and what each pass excluded."""

    # Whether each row and column of the matrix stays.
    users: NDArray[np.bool_]
    items: NDArray[np.bool_]
    passes: tuple[CorePass, ...]  # One entry for each pass that was made and left something out
    complete: bool  # Whether the fixed point was reached: a further pass would leave nothing out
    minimum: int  # How many interactions each user had to have
    minimum_items: int  # and each item
    # Items excluded in the first pass because they were not permitted, and their interactions.
    outside_items: int = 0
    outside_interactions: int = 0

    def exclusions(self, outside: str = "not permitted") -> tuple[Exclusion, ...]:
        """Return what was left out, pass by pass.

        `outside` says why items were not permitted, in words.
        """
        result = []
        if self.outside_items:
            reason = f"{outside} (with them went {self.outside_interactions:,} interactions)"
            result.append(Exclusion("filter", "items", self.outside_items, reason, len(self.items)))
        for number, one in enumerate(self.passes, start=1):
            for what, count, minimum in (
                ("users", one.users, self.minimum),
                ("items", one.items, self.minimum_items),
            ):
                few = f"fewer than {minimum} interactions"
                if count:
                    result.append(Exclusion(f"filter, pass {number}", what, count, few))
            if one.interactions:
                reason = "their user or item was left out in this pass"
                where = f"filter, pass {number}"
                result.append(Exclusion(where, "interactions", one.interactions, reason))
        return tuple(result)


@dataclass(eq=False)
class _Side:
    """Users or items: who is still in, how many neighbours each has, and who they are."""

    starts: NDArray[Any]
    neighbours: NDArray[Any]
    degrees: NDArray[np.int64]
    alive: NDArray[np.bool_]

    @classmethod
    def of(cls, starts: NDArray[Any], neighbours: NDArray[Any]) -> _Side:
        degrees = np.diff(starts).astype(np.int64)
        return cls(starts, neighbours, degrees, np.ones(len(degrees), dtype=bool))

    def below(self, minimum: int, among: NDArray[Any] | None) -> NDArray[Any]:
        if among is None:
            return np.flatnonzero(self.alive & (self.degrees < minimum))
        result: NDArray[Any] = among[self.alive[among] & (self.degrees[among] < minimum)]
        return result

    def neighbours_of(self, codes: NDArray[Any]) -> NDArray[Any]:
        first = self.starts[codes].astype(np.int64)
        counts = self.starts[codes + 1] - first
        ends = np.cumsum(counts)
        places = np.arange(ends[-1]) + np.repeat(first - (ends - counts), counts)
        result: NDArray[Any] = self.neighbours[places]
        return result


def _leave_out(codes: NDArray[Any], side: _Side, other: _Side) -> tuple[int, NDArray[Any]]:
    """Take some out of one side; return the interactions lost and who is touched on the other."""
    lost = int(side.degrees[codes].sum())
    side.alive[codes] = False
    touched: NDArray[Any] = np.empty(0, dtype=np.int64)
    if len(codes):
        met = side.neighbours_of(codes)
        met = met[other.alive[met]]
        if len(met) * 4 > len(other.degrees):
            counts = np.bincount(met, minlength=len(other.degrees))
            other.degrees -= counts
            touched = np.flatnonzero(counts)
        else:
            touched, fewer = np.unique(met, return_counts=True)
            other.degrees[touched] -= fewer
    side.degrees[codes] = 0
    return lost, touched


def k_core(
    matrix: sparse.csr_array,
    minimum: int = 3,
    *,
    passes: int | None = None,
    permitted: NDArray[np.bool_] | None = None,
    items: int | None = None,
) -> KCore:
    """Leave out users and items with too few interactions, until none is left that has too few.

    Each pass leaves out users first, then items, as the published code of ML-DDD does. A pass
    looks only at those whose count changed, so the whole costs no more than reading every
    interaction once from each side, however many passes there are.

    Parameters
    ----------
    matrix
        Users x items; every stored entry is one interaction, whatever its value.
    minimum
        How many interactions each user and each item must have among those that stay.
    passes
        Make so many passes at most; default, as many as the fixed point takes. Three passes are
        what the published code makes.
    permitted
        Items that may stay at all. The others go in the first pass after users were counted, as
        in the published code; the fixed point does not depend on that order.
    items
        How many interactions each item must have; default, as many as users.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> core = k_core(sparse.csr_array(np.array([[1, 1, 0], [1, 1, 0], [0, 1, 1]])), 2)
    >>> core.users.tolist(), core.items.tolist(), core.passes
    ([True, True, False], [True, True, False], (CorePass(users=0, items=1, interactions=1), \
CorePass(users=1, items=0, interactions=1)))
    """
    of_items = minimum if items is None else items
    if minimum < 0 or of_items < 0:
        raise ValueError(f"minimum is {min(minimum, of_items)}; it must be zero or more")
    users = _Side.of(matrix.indptr, matrix.indices)
    pattern = sparse.csr_array(
        (np.ones(matrix.nnz, dtype=np.int8), matrix.indices, matrix.indptr), shape=matrix.shape
    )
    columns = pattern.tocsc()
    things = _Side.of(columns.indptr, columns.indices)
    made: list[CorePass] = []
    outside_items = outside_interactions = 0
    among_users: NDArray[Any] | None = None
    complete, first = False, True
    while passes is None or len(made) < passes:
        few = users.below(minimum, among_users)
        lost, touched = _leave_out(few, users, things)
        rare = things.below(of_items, None if first else touched)
        lost_items, again = _leave_out(rare, things, users)
        if first and permitted is not None:
            outside = np.flatnonzero(things.alive & ~permitted)
            outside_items = len(outside)
            outside_interactions, more = _leave_out(outside, things, users)
            again = np.union1d(again, more)
        # Those who lost everything with their items go with them, as rows of a table would.
        empty = again[users.alive[again] & (users.degrees[again] == 0)]
        users.alive[empty] = False
        gone = CorePass(len(few) + len(empty), len(rare), lost + lost_items)
        if gone == CorePass(0, 0, 0) and not (first and outside_items):
            complete = True
            break
        made.append(gone)
        among_users, first = again, False
    if not complete:
        complete = bool(
            (users.degrees[users.alive] >= minimum).all()
            and (things.degrees[things.alive] >= of_items).all()
        )
    return KCore(
        users.alive,
        things.alive,
        tuple(made),
        complete,
        minimum,
        of_items,
        outside_items,
        outside_interactions,
    )
