"""Any Python function as a recommender."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ombud.data.ids import Ids
from ombud.data.recommendations import Recommendations
from ombud.errors import AuditedSystemError
from ombud.systems.base import Recommender
from ombud.systems.recommenders.adapters.answers import Answer, Faults, as_answer, gather


@dataclass(kw_only=True)
class CallableRecommender(Recommender):
    """A function that takes user ids and a length, and returns one list of item ids per user.

    It has no name in the registry on purpose: a plan is a file from anywhere, and a plan that
    could name a function to import could run anything. Use it from Python, or put it into a
    plugin that registers it. `exclude_seen` is not passed on: the function decides.

    Parameters
    ----------
    function
        Takes a list of user ids and n; returns, in the order of the users, a list of item ids
        each, best first, or None for a user it has no list for.
    name
        The system's name in the report.
    faults
        What a list with a fault (an item twice, no list, mixed ids) does: ``error``, or
        ``exclude`` the user and count.
    batch
        Users in one call.

    Examples
    --------
    >>> first = CallableRecommender(function=lambda users, n: [list("abc")[:n] for _ in users])
    >>> first.recommend([1, 2], 2).to_frame()["item"].to_list()
    ['a', 'b', 'a', 'b']
    """

    function: Callable[[list[Any], int], Sequence[Sequence[Any] | None]]
    name: str = "callable"
    faults: Faults = "error"
    batch: int = 1000

    def recommend(self, users: Ids, n: int, exclude_seen: bool = True) -> Recommendations:
        """Return what the function gives for each user, checked and cut to n."""
        asked = np.asarray(users).tolist()
        answers: list[Answer | None] = []
        for start in range(0, len(asked), self.batch):
            some = asked[start : start + self.batch]
            given = self.function(some, n)
            if isinstance(given, str | bytes) or not isinstance(given, Sequence | np.ndarray):
                raise AuditedSystemError(
                    f"{self.name} returned a {type(given).__name__}; a list per user was expected"
                )
            if len(given) != len(some):
                raise AuditedSystemError(
                    f"{self.name} returned {len(given)} lists; one for each of {len(some)} users "
                    "was expected"
                )
            answers += [None if items is None else as_answer(_plain(items)) for items in given]
        return gather(self.name, users, answers, n, self.faults)


def _plain(items: Any) -> Any:
    """Return arrays, and numpy's numbers in lists, as Python's own."""
    if isinstance(items, np.ndarray):
        return items.tolist()
    if isinstance(items, Sequence) and not isinstance(items, str | bytes):
        return [item.item() if isinstance(item, np.generic) else item for item in items]
    return items
