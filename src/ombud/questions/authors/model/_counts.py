"""Counts behind the propagation model, checked once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ombud.errors import DataError
from ombud.stats.statistics import Floats


@dataclass(frozen=True, slots=True)
class Counts:
    """Items of one identity among those of known identity, in profiles and in lists."""

    # For each user.
    count: Floats
    known: Floats
    # Users x systems; a list without any item of known identity has 0 and 0 and says nothing.
    list_count: Floats
    list_known: Floats
    names: tuple[str, ...]  # Of the systems
    times: Floats  # How often a row stands for a user: equal rows are integrated once
    # Log odds that are expected of each profile and of each list for other reasons; the model is
    # about what goes beyond them.
    offset: Floats
    list_offset: Floats

    @property
    def systems(self) -> int:
        """How many systems."""
        return len(self.names)

    @property
    def users(self) -> int:
        """How many users."""
        return int(self.times.sum())

    @classmethod
    def check(
        cls,
        count: ArrayLike,
        known: ArrayLike,
        list_count: ArrayLike | None = None,
        list_known: ArrayLike | None = None,
        names: Sequence[str] | None = None,
        offset: ArrayLike | None = None,
        list_offset: ArrayLike | None = None,
    ) -> Counts:
        """Return the counts, or one error with every fault."""
        faults: list[str] = []
        y, n = _whole("count", count, 1, faults), _whole("known", known, 1, faults)
        if list_count is None and list_known is None:
            k = r = np.zeros((len(y), 0))
        elif list_count is None or list_known is None:
            faults.append("list_count and list_known belong together; one of them is missing")
            k = r = np.zeros((len(y), 0))
        else:
            k = _whole("list_count", list_count, 2, faults)
            r = _whole("list_known", list_known, 2, faults)
        if not faults:
            if y.shape != n.shape or k.shape != r.shape or len(k) != len(y):
                faults.append(
                    f"shapes are {y.shape}, {n.shape}, {k.shape}, {r.shape}; "
                    "expected users, users, users x systems, users x systems"
                )
            else:
                faults += _above("count", y, "known", n) + _above("list_count", k, "list_known", r)
                if not len(y):
                    faults.append("there are no users")
                elif not (n > 0).any():
                    faults.append("no profile holds an item of known identity")
        given = tuple(names) if names is not None else tuple(str(a) for a in range(k.shape[-1]))
        if len(given) != k.shape[-1]:
            faults.append(f"{len(given)} names for {k.shape[-1]} systems")
        elif len(set(given)) != len(given):
            faults.append("two systems have the same name")
        o = _offsets("offset", offset, n, faults)
        lists = _offsets("list_offset", list_offset, r, faults)
        if faults:
            raise DataError("counts for the propagation model", faults)
        return cls(y, n, k, r, given, np.ones(len(y)), o, lists)

    def profiles(self) -> Counts:
        """Return the profiles alone, equal ones joined, empty ones left out."""
        rows, times = np.unique(
            np.stack([self.known, self.count, self.offset], axis=1)[self.known > 0],
            axis=0,
            return_counts=True,
        )
        none = np.zeros((len(rows), 0))
        often = times.astype(np.float64)
        return Counts(rows[:, 1], rows[:, 0], none, none, (), often, rows[:, 2], none)

    def only(self, systems: list[int]) -> Counts:
        """Return the profiles with the lists of some systems."""
        return replace(
            self,
            list_count=self.list_count[:, systems],
            list_known=self.list_known[:, systems],
            names=tuple(self.names[a] for a in systems),
            list_offset=self.list_offset[:, systems],
        )

    def rows(self, chosen: NDArray[Any] | list[int]) -> Counts:
        """Return some of the rows."""
        users = [part.name for part in fields(self) if part.name != "names"]
        return replace(self, **{name: getattr(self, name)[chosen] for name in users})


def _whole(name: str, values: ArrayLike, dimensions: int, faults: list[str]) -> Floats:
    array = np.asarray(values)
    if array.ndim != dimensions:
        faults.append(f"{name} has {array.ndim} dimensions; {dimensions} expected")
        return np.zeros((0,) * dimensions)
    if array.dtype.kind not in "iuf":
        faults.append(f"{name} holds {array.dtype}; whole numbers expected")
        return np.zeros((0,) * dimensions)
    floats = array.astype(np.float64)
    wrong = ~(np.isfinite(floats) & (floats >= 0) & (floats == np.floor(floats)))
    if wrong.any():
        first = tuple(int(i) for i in np.argwhere(wrong)[0])
        faults.append(
            f"{name} has {np.count_nonzero(wrong)} values that are no counts, "
            f"the first at {first}: {array[first]}"
        )
    return floats


def _offsets(name: str, values: ArrayLike | None, counts: Floats, faults: list[str]) -> Floats:
    """Return log odds for each count; where there is nothing to count they do not matter."""
    if values is None:
        return np.zeros(counts.shape)
    array = np.asarray(values, dtype=np.float64)
    if array.shape != counts.shape:
        faults.append(f"{name} has shape {array.shape}; {counts.shape} expected")
        return np.zeros(counts.shape)
    if not np.isfinite(array[counts > 0]).all():
        faults.append(f"{name} has values that are no log odds, such as those of 0 and of 1")
    return np.where(counts > 0, array, 0.0)


def _above(part: str, y: Floats, whole: str, n: Floats) -> list[str]:
    over = y > n
    if not over.any():
        return []
    first = tuple(int(i) for i in np.argwhere(over)[0])
    return [
        f"{part} is larger than {whole} in {np.count_nonzero(over)} places, the first at {first}"
    ]
