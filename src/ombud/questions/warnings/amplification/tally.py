"""How much of each label a list or a history carries, for all users and labels at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ombud.data.labels import LabelState
from ombud.stats.statistics import Floats

Side = Literal["history", "list"]
Smoothing = Literal["additive", "drop", "imaginary-item"]
"""What is done about a history without the label: see `smoothed`."""

UnknownLabels = Literal["exclude", "highest", "lowest", "no", "yes"]
"""How unknown and disputed labels count: not at all, as no, as yes, or as a bound.

``lowest`` takes every unknown as *no* in lists and as *yes* in histories, ``highest`` the other
way round. No assignment of the unknowns gives any user less or more than these."""

# A label of which less than this many items are expected is absent; for yes and no: none.
_ABSENT = 0.5


@dataclass(frozen=True, eq=False)
class Carried:
    """How far each item carries each label.

    Parameters
    ----------
    degree
        Items x labels: 0 or 1, or a probability. Zero where it is not counted.
    counted
        Items x labels: whether the pair counts; None when all do.
    """

    degree: NDArray[Any]
    counted: NDArray[np.uint8] | None


@dataclass(frozen=True, eq=False)
class Tally:
    """Sums over the items of each list (or history).

    Parameters
    ----------
    carrying
        Lists x labels: weight of the items that carry the label.
    weight
        Lists x labels, or x 1: weight of the items that count.
    places
        Of the same shape as `weight`: how many items count.
    """

    carrying: Floats
    weight: Floats
    places: Floats

    @property
    def share(self) -> Floats:
        """Lists x labels: the share that carries the label; NaN where no item counts."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(np.where(self.places > 0, self.carrying / self.weight, np.nan))


def carried(
    states: NDArray[np.int8],
    unknown: UnknownLabels,
    side: Side,
    probability: NDArray[np.float32] | None = None,
) -> Carried:
    """Return how far items carry labels, with unknowns treated as asked.

    Parameters
    ----------
    states
        Items x labels, values of `LabelState`.
    unknown
        How unknowns count.
    side
        For the two bounds: whether this is for lists or for histories.
    probability
        Used in place of states wherever it is not NaN.
    """
    known = states >= 0 if probability is None else ~np.isnan(probability)
    as_yes = unknown == "yes" or (unknown, side) in {("highest", "list"), ("lowest", "history")}
    if probability is None:
        degree: NDArray[Any] = (states == LabelState.YES).astype(np.uint8)
    else:
        degree = np.where(known, probability, np.float32(0))
    if as_yes:
        degree[~known] = 1
    return Carried(degree, known.astype(np.uint8) if unknown == "exclude" else None)


def tally(lists: sparse.csr_array, items: Carried) -> Tally:
    """Return the sums for each list: one sparse product.

    Parameters
    ----------
    lists
        Lists x items: the weight of each item.
    items
        What they carry.
    """
    lengths = np.diff(lists.indptr)
    plain = items.degree.dtype == np.uint8 and bool(np.all(lists.data == 1))
    if plain:
        # Counting in the smallest integers that cannot overflow is twice as fast.
        longest = int(lengths.max(initial=0))
        small = np.uint8 if longest < 2**8 else np.uint16 if longest < 2**16 else np.uint32
        lists = _with_data(lists, np.ones(lists.nnz, dtype=small))
        degree, counted = items.degree.astype(small, copy=False), items.counted
    else:
        degree, counted = items.degree.astype(lists.dtype, copy=False), items.counted
    carrying = _product(lists, degree)
    if counted is None:
        places = lengths[:, None].astype(np.float64)
        weight = places if plain else np.asarray(lists.sum(axis=1), np.float64)[:, None]
        return Tally(carrying, weight, places)
    weight = _product(lists, counted.astype(degree.dtype, copy=False))
    if plain:
        return Tally(carrying, weight, weight)
    ones = _with_data(lists, np.ones(lists.nnz, dtype=np.float32))
    return Tally(carrying, weight, _product(ones, counted.astype(np.float32)))


def smoothed(
    found: Tally, smoothing: Smoothing, next_weight: Floats | float = 1.0
) -> tuple[Floats, NDArray[np.bool_]]:
    """Return shares that can be divided by, and which of them were changed or dropped.

    A label is absent when fewer than half an item is expected to carry it; with states of yes
    and no, that is when no item does.

    Parameters
    ----------
    found
        The sums.
    smoothing
        ``imaginary-item``: where the label is absent, one more item that carries it is added,
        so that the share is 1 / (n + 1). ``drop``: NaN where the label is absent.
        ``additive``: half an item with and half an item without are added everywhere,
        (c + 1/2) / (n + 1).
    next_weight
        Weight of an imaginary item: 1, or that of the place after the last.

    Examples
    --------
    >>> found = Tally(np.array([[0.0, 1.0]]), np.array([[4.0]]), np.array([[4.0]]))
    >>> smoothed(found, "imaginary-item")[0].tolist()
    [[0.2, 0.25]]
    >>> smoothed(found, "additive")[0].tolist()
    [[0.1, 0.3]]
    """
    share = found.share
    with np.errstate(invalid="ignore"):
        absent = share * found.places < _ABSENT
    if smoothing == "additive":
        return (share * found.places + 0.5) / (found.places + 1), ~np.isnan(share)
    if smoothing == "drop":
        return np.where(absent, np.nan, share), absent
    more = (found.carrying + next_weight) / (found.weight + next_weight)
    return np.where(absent, more, share), absent


def _with_data(matrix: sparse.csr_array, data: NDArray[Any]) -> sparse.csr_array:
    return sparse.csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape)


def _product(lists: Any, items: NDArray[Any]) -> Floats:
    return np.asarray(lists @ items, dtype=np.float64)
