"""Whether a system answers as it was recorded to: the check that runs before any edit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ombud.probes.recipe import Chance


@dataclass(frozen=True)
class Consistency:
    """Whether a system, asked about unchanged data, answers as it was recorded to."""

    users: int  # how many users were asked
    same: int  # for how many the list is the same
    overlap: float  # the mean share of the recorded list that is in the new one
    # For how many users the system, asked twice, answered the same; None when asked once.
    repeated: int | None
    chance: Chance  # where randomness comes from

    @property
    def share(self) -> float:
        """The share of users whose list is the same."""
        return self.same / self.users if self.users else math.nan

    @property
    def deterministic(self) -> bool:
        """Whether the system gave the same answer to the same question every time."""
        return self.repeated is None or self.repeated == self.users


def consistency(
    recorded: Sequence[NDArray[Any]],
    asked: Sequence[NDArray[Any]],
    again: Sequence[NDArray[Any]] | None = None,
    chance: Chance = "none",
) -> Consistency:
    """Compare lists as recorded with lists as asked now, and with lists asked once more.

    Each has one list of items per user; negative codes end a list. `chance` says where randomness
    comes from.

    Examples
    --------
    >>> old, new = [np.array([1, 2]), np.array([3, 4])], [np.array([1, 2]), np.array([4, 5])]
    >>> found = consistency(old, new)
    >>> found.share, found.overlap
    (0.5, 0.75)
    """
    if len(recorded) != len(asked) or (again is not None and len(again) != len(asked)):
        raise ValueError("one list per user is needed each time")
    same, overlap = 0, []
    for old, new in zip(recorded, asked, strict=True):
        left, right = _listed(old), _listed(new)
        same += left == right
        overlap.append(len(set(left) & set(right)) / len(left) if left else float(left == right))
    repeated = None
    if again is not None:
        repeated = sum(_listed(a) == _listed(b) for a, b in zip(asked, again, strict=True))
    mean = float(np.mean(overlap)) if overlap else math.nan
    return Consistency(len(asked), same, mean, repeated, chance)


def _listed(items: NDArray[Any]) -> list[Any]:
    return [i for i in np.asarray(items).tolist() if not (isinstance(i, int) and i < 0)]
