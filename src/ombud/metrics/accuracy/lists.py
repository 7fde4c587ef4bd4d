"""Statistics of all lists together, with replicates that do not mislead.

The number of distinct items grows with the number of users, and so does nothing but fall when
users are drawn with replacement: the ordinary bootstrap of coverage lies below the value it
should surround. These statistics are therefore replicated in linear form: each user's influence
is the change when that user is left out (exact, in one pass), and a replicate is the value plus
the resampled influences. Their variance is the jackknife's, which for a symmetric statistic is
not too small on average (Efron and Stein 1981, *The Jackknife Estimate of Variance*). What the
interval is about is the *expected value for as many users from the same population*.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from ombud.stats.statistics import Floats, known_rows


def list_columns(k: int) -> tuple[str, ...]:
    """Return the columns of a list statistic: the size of the catalogue, and k item codes."""
    return ("catalogue", *(f"place {j}" for j in range(1, k + 1)))


@dataclass(frozen=True)
class ListStatistic(ABC):
    """A number in [0, 1] made of all lists.

    Rows hold the size of the catalogue, then item codes; -1 where a list has ended.
    """

    k: int  # how many places a list has
    _influences: dict[bytes, tuple[float, Floats]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    log_shift: ClassVar[float | None] = None

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns it reads, in order."""
        return list_columns(self.k)

    @abstractmethod
    def _value(self, items: NDArray[np.int64], catalogue: int) -> float:
        """Return the statistic of some lists; NaN when it is undefined."""

    @abstractmethod
    def _without_each(self, items: NDArray[np.int64], catalogue: int) -> Floats:
        """Return the statistic without each list in turn."""

    def point(self, values: Floats, weights: Floats | None = None) -> float:
        """Return the statistic of the lists; NaN when it is undefined."""
        rows = values[known_rows(values)]
        if weights is not None:
            rows = np.repeat(rows, weights[known_rows(values)].astype(np.int64), axis=0)
        # Binomial weights of all lists can add up to a hair over 1.
        return min(self._value(*_items(rows)), 1.0) if len(rows) else float("nan")

    def jackknife(self, values: Floats) -> Floats:
        """Return the statistic with each list left out in turn."""
        known = known_rows(values)
        result = np.full(len(values), self.point(values))
        if np.count_nonzero(known) == 1:
            result[known] = np.nan
        elif known.any():
            result[known] = self._without_each(*_items(values[known]))
        return result

    def replicates(self, values: Floats, weights: Floats) -> Floats:
        """Return the statistic for each row of `weights`, in linear form."""
        point, influence = self._influence(values)
        total = weights @ known_rows(values).astype(np.float64)
        with np.errstate(invalid="ignore", divide="ignore"):
            draws = point + np.where(total > 0, weights @ influence / total, np.nan)
        return np.clip(draws, 0.0, 1.0)

    def _influence(self, values: Floats) -> tuple[float, Floats]:
        # The engine asks for the same units in many portions of replicates.
        key = blake2b(np.ascontiguousarray(values).data, digest_size=16).digest()
        if key not in self._influences:
            known = known_rows(values)
            influence = np.zeros(len(values))
            if np.count_nonzero(known) > 1:
                left = self.jackknife(values)[known]
                influence[known] = (len(left) - 1) * (left.mean() - left)
            self._influences[key] = self.point(values), influence
        return self._influences[key]


def _items(rows: Floats) -> tuple[NDArray[np.int64], int]:
    return rows[:, 1:].astype(np.int64), int(rows[0, 0])


def _exposure(items: NDArray[np.int64], catalogue: int) -> NDArray[np.int64]:
    """Return in how many lists each item of the catalogue stands."""
    return np.bincount(items[items >= 0], minlength=catalogue)


def _absent(lists: int, holding: NDArray[np.int64], users: int) -> Floats:
    """Return the chance that `users` of so many lists, drawn without replacement, miss an item."""

    def log_choose(n: NDArray[np.int64] | int) -> Floats:
        n = np.asarray(n, dtype=np.float64)
        return np.asarray(gammaln(n + 1) - gammaln(n - users + 1))

    free = lists - holding
    chance = np.exp(log_choose(np.maximum(free, users)) - log_choose(lists))
    return np.where(free >= users, chance, 0.0)


@dataclass(frozen=True)
class DistinctItems(ListStatistic):
    """Distinct items of the lists, over the catalogue or over the filled places.

    Parameters
    ----------
    k
        How many places a list has.
    over
        ``catalogue`` or ``places``.
    users
        Expected for so many of the lists, drawn without replacement (rarefaction); None for all.

    Examples
    --------
    >>> rows = np.array([[4.0, 0, 1], [4, 1, 2]])
    >>> DistinctItems(2).point(rows), DistinctItems(2, "places").point(rows)
    (0.75, 0.75)
    >>> DistinctItems(2, users=1).point(rows)
    0.5
    """

    over: str = "catalogue"
    users: int | None = None

    def _distinct(self, lists: int, holding: NDArray[np.int64], drawn: int | None) -> Floats:
        """Return for each item the chance to be among the drawn lists."""
        if drawn is None or drawn == lists:
            return (holding > 0).astype(np.float64)
        return 1.0 - _absent(lists, holding, drawn)

    def _value(self, items: NDArray[np.int64], catalogue: int) -> float:
        if self.users is not None and len(items) < self.users:
            return float("nan")
        distinct = self._distinct(len(items), _exposure(items, catalogue), self.users).sum()
        places = float(np.count_nonzero(items >= 0))
        if self.over == "catalogue":
            return float(distinct / catalogue)
        if self.users is not None:
            places *= self.users / len(items)
        return float(distinct / places) if places else float("nan")

    def _without_each(self, items: NDArray[np.int64], catalogue: int) -> Floats:
        left = len(items) - 1
        if self.users is not None and left < self.users:
            return np.full(len(items), np.nan)
        holding = _exposure(items, catalogue)
        same = self._distinct(left, np.minimum(holding, left), self.users)
        fewer = self._distinct(left, np.maximum(holding - 1, 0), self.users)
        change = np.append(fewer - same, 0.0)  # -1, the end of a list, changes nothing
        distinct = same.sum() + change[items].sum(axis=1)
        if self.over == "catalogue":
            return np.asarray(distinct / catalogue)
        lengths = np.count_nonzero(items >= 0, axis=1)
        places = lengths.sum() - lengths.astype(np.float64)
        if self.users is not None:
            places *= self.users / left
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(places > 0, distinct / places, np.nan)


@dataclass(frozen=True)
class GiniOfExposure(ListStatistic):
    """Gini coefficient of the number of lists that hold each item of the catalogue.

    Examples
    --------
    >>> GiniOfExposure(1).point(np.array([[4.0, 0], [4, 0]]))
    0.75
    """

    def _value(self, items: NDArray[np.int64], catalogue: int) -> float:
        ordered = np.sort(_exposure(items, catalogue))
        return float(_gini(np.dot(np.arange(1, catalogue + 1), ordered), ordered.sum(), catalogue))

    def _without_each(self, items: NDArray[np.int64], catalogue: int) -> Floats:
        exposure = _exposure(items, catalogue)
        ordered = np.sort(exposure)
        ranked = float(np.dot(np.arange(1, catalogue + 1), ordered))
        # Without a list each of its items falls by one, from the first rank of its equals; the
        # second of two equals that fall does so from the rank after.
        counts = np.sort(np.where(items >= 0, exposure[items], -1), axis=1)
        first = np.searchsorted(ordered, counts) + 1
        new = np.ones(counts.shape, dtype=bool)
        new[:, 1:] = counts[:, 1:] != counts[:, :-1]
        column = np.arange(counts.shape[1])
        nth = column - np.maximum.accumulate(np.where(new, column, 0), axis=1)
        fall = np.where(counts >= 0, first + nth, 0).sum(axis=1)
        lengths = np.count_nonzero(items >= 0, axis=1)
        return _gini(ranked - fall, ordered.sum() - lengths, catalogue)


def _gini(ranked: Floats | float, total: Floats | float, n: int) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        value = 2 * np.asarray(ranked, dtype=np.float64) / (n * np.asarray(total)) - (n + 1) / n
    return np.where(np.asarray(total) > 0, value, np.nan)
