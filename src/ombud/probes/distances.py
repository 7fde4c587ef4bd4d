"""How far apart two outcomes are: lists, shares of a label in them, and distributions.

Every distance is at least 0, is 0 for equal outcomes, and lies in [0, 1]. A list is a row of item
codes, best first, -1 where it has ended.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ombud import registry
from ombud.errors import RegistryError
from ombud.registry import distance

Floats = NDArray[np.float64]
Lists = NDArray[np.int32]


class ListDistance(Protocol):
    """A distance between ranked lists, row by row."""

    @property
    def name(self) -> str:
        """The name as printed."""
        ...

    def __call__(self, first: Lists, second: Lists) -> Floats:
        """Return one distance per row; NaN where it is undefined."""
        ...


def distance_of(name: str, **arguments: Any) -> ListDistance:
    """Return a registered distance by name, checked by `check_distance`."""
    found: ListDistance = registry.create("distance", name, arguments)
    check_distance(found)
    return found


def check_distance(found: ListDistance, *, items: int = 12) -> None:
    """Raise unless a distance is 0 for equal lists and never negative, on a hundred lists."""
    rng = np.random.default_rng(0)
    first = rng.permuted(np.tile(np.arange(items, dtype=np.int32), (100, 1)), axis=1)[:, :5]
    second = rng.permuted(np.tile(np.arange(items, dtype=np.int32), (100, 1)), axis=1)[:, :5]
    for rows in (first, second):
        rows[np.arange(5) >= rng.integers(0, 6, size=(100, 1))] = -1
    name = getattr(found, "name", type(found).__name__)
    same, other = found(first, first.copy()), found(first, second)
    if same.shape != (100,) or other.shape != (100,):
        raise RegistryError(f"distance {name!r} does not return one number per row")
    if np.any(same != 0):
        raise RegistryError(f"distance {name!r} is not 0 for two equal lists")
    if np.any(other < 0):
        raise RegistryError(f"distance {name!r} is negative for some lists")


def _in_other(first: Lists, second: Lists) -> NDArray[np.bool_]:
    """Return which entries of first occur anywhere in the same row of second."""
    shared = (first[:, :, None] == second[:, None, :]).any(axis=2)
    return np.asarray(shared & (first >= 0), dtype=np.bool_)


def _padded(lists: Lists, depth: int) -> Lists:
    return np.pad(lists, ((0, 0), (0, depth - lists.shape[1])), constant_values=-1)


def _divide(top: Floats, bottom: Floats, otherwise: float) -> Floats:
    filled = np.full(top.shape, otherwise)
    return np.asarray(np.divide(top, bottom, out=filled, where=bottom > 0))


@distance("jaccard")
@dataclass(frozen=True)
class Jaccard:
    r"""One minus the share of common items among all items of two lists; the order plays no part.

    :math:`1 - |A \cap B| / |A \cup B|`; 0 for two empty lists.

    Examples
    --------
    >>> Jaccard()(np.array([[1, 2, 3]]), np.array([[3, 2, 4]])).tolist()
    [0.5]
    """

    name: str = field(default="1 - Jaccard", init=False)

    def __call__(self, first: Lists, second: Lists) -> Floats:
        """Return one distance per row."""
        common = _in_other(first, second).sum(axis=1).astype(np.float64)
        sizes = (first >= 0).sum(axis=1) + (second >= 0).sum(axis=1)
        return 1.0 - _divide(common, sizes - common, 1.0)


@distance("rank-biased")
@dataclass(frozen=True)
class RankBiased:
    r"""One minus rank-biased overlap, cut at the length of the lists.

    .. math:: 1 - \frac{1 - p}{1 - p^k} \sum_{d=1}^{k} p^{d-1}
       \frac{|A_{1:d} \cap B_{1:d}|}{\max(|A_{1:d}|, |B_{1:d}|)}

    The weights of the k depths add up to 1, so equal lists have distance 0 and disjoint lists 1.
    A list that has ended keeps its items at greater depths; two empty lists agree.

    Parameters
    ----------
    p
        How far down a reader goes: the chance to look one place further.

    References
    ----------
    Webber, Moffat and Zobel (2010), "A similarity measure for indefinite rankings", ACM TOIS 28(4).

    Examples
    --------
    >>> RankBiased(0.5)(np.array([[1, 2]]), np.array([[2, 1]])).round(4).tolist()
    [0.6667]
    """

    p: float = 0.9

    def __post_init__(self) -> None:
        if not 0 < self.p < 1:
            raise ValueError(f"p is {self.p}; it must be between 0 and 1")

    @property
    def name(self) -> str:
        """The name as printed."""
        return f"1 - RBO (p = {self.p:g})"

    def __call__(self, first: Lists, second: Lists) -> Floats:
        """Return one distance per row."""
        depth = max(first.shape[1], second.shape[1])
        a, b = _padded(first, depth), _padded(second, depth)
        # An item is common from the greater of its two places on.
        same = (a[:, :, None] == b[:, None, :]) & (a >= 0)[:, :, None]
        later = np.maximum(np.arange(depth)[:, None], np.arange(depth))
        arrives = np.stack([same[:, later == d].sum(axis=1) for d in range(depth)], axis=1)
        common = np.cumsum(arrives, axis=1).astype(np.float64)
        longer = np.maximum(np.cumsum(a >= 0, axis=1), np.cumsum(b >= 0, axis=1))
        agreement = _divide(common, longer.astype(np.float64), 1.0)
        weights = self.p ** np.arange(depth)
        weights /= weights.sum()
        # Disagreement is added, not agreement subtracted: equal lists give 0 to the bit.
        return np.asarray((1.0 - agreement) @ weights, dtype=np.float64)


@distance("kendall")
@dataclass(frozen=True)
class Kendall:
    r"""Kendall's distance on the union of two lists, over the largest it could be.

    A pair of items counts 1 when the lists order it differently, an item outside a list standing
    below all inside; a pair of which one list says nothing (both items are only in the other)
    counts ``penalty``. The sum is divided by that of two disjoint lists of the same lengths,
    :math:`ab + q\,(a(a-1) + b(b-1))/2` with penalty q. Two empty lists have distance 0; an empty
    list and another that is not have distance 1. A list and its own beginning can be 0 apart.

    Parameters
    ----------
    penalty
        0 for the optimistic, 1/2 for the neutral version.

    References
    ----------
    Fagin, Kumar and Sivakumar (2003), "Comparing top k lists", SIAM J. Discrete Math. 17(1).

    Examples
    --------
    >>> Kendall()(np.array([[1, 2]]), np.array([[2, 1]])).tolist()
    [0.2]
    """

    penalty: float = 0.5

    def __post_init__(self) -> None:
        if not 0 <= self.penalty <= 1:
            raise ValueError(f"penalty is {self.penalty}; it must be 0 to 1")

    @property
    def name(self) -> str:
        """The name as printed."""
        return f"Kendall on the union (penalty {self.penalty:g})"

    def __call__(self, first: Lists, second: Lists) -> Floats:
        """Return one distance per row."""
        shared_a, shared_b = _in_other(first, second), _in_other(second, first)
        only_a, only_b = (first >= 0) & ~shared_a, (second >= 0) & ~shared_b
        # Place in the second list of each item of the first.
        same = first[:, :, None] == second[:, None, :]
        place = np.where(shared_a, same.argmax(axis=2), 0)
        upper = np.triu(np.ones((first.shape[1],) * 2, dtype=np.bool_), 1)
        both = shared_a[:, :, None] & shared_a[:, None, :] & upper
        swapped = (both & (place[:, :, None] > place[:, None, :])).sum(axis=(1, 2))
        # An item that only one list has, ahead of one that both have: the other list disagrees.
        ahead = sum(
            (np.cumsum(only, axis=1) * shared).sum(axis=1)
            for only, shared in ((only_a, shared_a), (only_b, shared_b))
        )
        a_only, b_only = only_a.sum(axis=1), only_b.sum(axis=1)
        apart = a_only * b_only
        silent = (a_only * (a_only - 1) + b_only * (b_only - 1)) / 2
        a, b = (first >= 0).sum(axis=1), (second >= 0).sum(axis=1)
        top = swapped + ahead + apart + self.penalty * silent
        most = a * b + self.penalty * (a * (a - 1) + b * (b - 1)) / 2
        empty = ((a == 0) ^ (b == 0)).astype(np.float64)
        return np.where(empty > 0, 1.0, _divide(top.astype(np.float64), most * 1.0, 0.0))


@distance("first-item")
@dataclass(frozen=True)
class FirstItem:
    """1 where the first item differs, else 0; an empty list differs from any other.

    Examples
    --------
    >>> FirstItem()(np.array([[1, 2], [1, 2]]), np.array([[1, 3], [2, 1]])).tolist()
    [0.0, 1.0]
    """

    name: str = field(default="first item changed", init=False)

    def __call__(self, first: Lists, second: Lists) -> Floats:
        """Return one distance per row."""
        return np.asarray(first[:, 0] != second[:, 0], dtype=np.float64)


@distance("label-share")
@dataclass(frozen=True, eq=False)
class LabelShare:
    """The absolute difference between the shares of a label among the items of two lists.

    Items whose label is unknown are left out of both shares. Undefined (NaN) when one list has a
    share and the other has none; 0 when neither has one.

    Parameters
    ----------
    carries
        One boolean per item: whether it carries the label.
    known
        One boolean per item: whether that is known; all by default.
    label
        The label's name, for printing.

    Examples
    --------
    >>> share = LabelShare(np.array([True, False, False, True]))
    >>> share(np.array([[0, 1]]), np.array([[0, 3]])).tolist()
    [0.5]
    """

    carries: NDArray[np.bool_]
    known: NDArray[np.bool_] | None = None
    label: str = ""

    @property
    def name(self) -> str:
        """The name as printed."""
        return f"difference in label share{f' of {self.label}' if self.label else ''}"

    def _share(self, lists: Lists) -> Floats:
        inside = lists >= 0
        if self.known is not None:
            inside &= self.known[lists]
        carried = (self.carries[lists] & inside).sum(axis=1).astype(np.float64)
        return _divide(carried, inside.sum(axis=1).astype(np.float64), np.nan)

    def __call__(self, first: Lists, second: Lists) -> Floats:
        """Return one distance per row; NaN where one list has no item with a known label."""
        a, b = self._share(first), self._share(second)
        return np.where(np.isnan(a) & np.isnan(b), 0.0, np.abs(a - b))


def first_lists(scores: NDArray[Any], n: int) -> Lists:
    """Return the n best items of each row, best first; ties go to the lower item, NaN is none.

    Examples
    --------
    >>> first_lists(np.array([[0.5, np.nan, 2.0, 0.5]]), 3).tolist()
    [[2, 0, 3]]
    >>> first_lists(np.array([[np.nan, 1.0]]), 3).tolist()
    [[1, -1, -1]]
    """
    width = min(n, scores.shape[1])
    keys = np.where(np.isnan(scores), np.inf, -scores)
    if width < scores.shape[1]:
        edge = np.partition(keys, width - 1, axis=1)[:, width - 1 : width]
        # Everything up to the edge, ties included, keeps its place; the rest cannot be listed.
        keys = np.where(keys <= edge, keys, np.inf)
    order = np.argsort(keys, axis=1, kind="stable")[:, :width].astype(np.int32)
    best = np.take_along_axis(keys, order, axis=1)
    lists = np.full((len(scores), n), -1, np.int32)
    lists[:, :width] = np.where(np.isinf(best), -1, order)
    return lists


def probabilities(scores: NDArray[Any], beta: float, *, nothing: float = np.nan) -> Floats:
    """Return the softmax of ``beta * scores`` over the items that have a score, row by row.

    NaN and -inf have probability 0.

    `nothing` stands throughout a row without any score: NaN where it has no distribution, 0 where
    nobody is shown anything.

    Examples
    --------
    >>> probabilities(np.array([[0.0, np.nan, 0.0]]), 1.0).tolist()
    [[0.5, 0.0, 0.5]]
    """
    if not beta > 0:
        raise ValueError(f"beta is {beta}; it must be positive")
    known = ~np.isnan(scores)
    shifted = np.where(known, scores, -np.inf).astype(np.float64)
    top = shifted.max(axis=-1, keepdims=True, initial=-np.inf)
    weights = np.exp(beta * (shifted - np.where(np.isinf(top), 0.0, top)))
    total = weights.sum(axis=-1, keepdims=True)
    empty = np.full(weights.shape, nothing)
    return np.asarray(np.divide(weights, total, out=empty, where=total > 0))


def total_variation(first: Floats, second: Floats) -> Floats:
    """Return half the sum of absolute differences of probabilities, over the last axis.

    0 where neither side has a distribution; 1, the most, where only one has.

    Examples
    --------
    >>> total_variation(np.array([0.5, 0.5, 0.0]), np.array([0.5, 0.0, 0.5])).tolist()
    0.5
    """
    none = np.isnan(first).all(axis=-1), np.isnan(second).all(axis=-1)
    apart = 0.5 * np.abs(first - second).sum(axis=-1)
    return np.where(none[0] & none[1], 0.0, np.where(none[0] | none[1], 1.0, apart))


def expected_distance(
    first: NDArray[Any],
    second: NDArray[Any],
    distance: ListDistance,
    *,
    n: int,
    beta: float,
    draws: int = 64,
    rng: np.random.Generator,
) -> tuple[Floats, Floats]:
    """Return the expected distance between sampled lists under common random numbers.

    A list is sampled from scores without replacement, item by item, each with probability
    proportional to ``exp(beta * score)`` among those left; both lists are made from the same
    noise (Gumbel noise added to ``beta * score``, then sorted), so equal scores give equal lists
    and distance 0, which two independent draws would not.

    Parameters
    ----------
    first, second
        Scores of two outcomes, users x items; NaN is no score.
    distance
        Between lists.
    n
        The length of a list.
    beta
        How strongly the system prefers high scores.
    draws
        How many pairs of lists are drawn.
    rng
        Source of randomness.

    Returns
    -------
    tuple
        The means per row, and their standard errors over the draws.

    References
    ----------
    Kool, van Hoof and Welling (2019), "Stochastic beams and where to find them", ICML.
    """
    if draws < 2:
        raise ValueError(f"draws is {draws}; at least 2 are needed for a standard error")
    found = np.empty((draws, len(first)))
    for draw in range(draws):
        noise = rng.gumbel(size=first.shape)
        found[draw] = distance(
            first_lists(beta * first + noise, n), first_lists(beta * second + noise, n)
        )
    return found.mean(axis=0), found.std(axis=0, ddof=1) / np.sqrt(draws)
