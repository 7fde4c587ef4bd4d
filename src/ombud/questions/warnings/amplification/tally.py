"""How much of each label a list or a history carries, for all users and labels at once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ombud.data.labels import Labels, LabelState
from ombud.metrics.history import count_items, table_width
from ombud.stats.statistics import Floats

Smoothing = Literal["additive", "drop", "imaginary-item"]
"""What is done about a history without the label: see `smoothed`."""

UnknownLabels = Literal["exclude", "highest", "lowest", "no", "yes"]
"""How unknown and disputed labels count: not at all, as no, as yes, or as a bound.

``lowest`` takes every unknown as *no* in lists and as *yes* in histories, ``highest`` the other
way round. No assignment of the unknowns gives any user less or more than these."""

# Intra-class correlations outside these would make a prior that no vote can change,
# or one that any vote overrules.
_LEAST, _MOST = 0.01, 0.95
_FEW_ITEMS = 10
# A label of which less than this many items are expected is absent; for yes and no: none.
_ABSENT = 0.5
YES, NO = LabelState.YES.value, LabelState.NO.value


@dataclass(frozen=True, eq=False)
class Carried:
    """How far each item carries each label; the columns after the last label are unused."""

    labels: int  # How many labels there are; the tables have a multiple of eight columns
    degree: NDArray[Any]  # Items x labels: 0 or 1, or a probability. Zero where it is not counted.
    counted: NDArray[np.uint8] | None  # Items x labels: whether the pair counts; None when all do


@dataclass(frozen=True, eq=False)
class Tally:
    """Sums over the items of each list (or history)."""

    carrying: NDArray[Any]  # Lists x labels: weight of the items that carry the label
    weight: NDArray[Any]  # Lists x labels, or x 1: weight of the items that count
    places: NDArray[Any]  # Of the same shape as `weight`: how many items count

    def __getitem__(self, rows: slice) -> Tally:
        """Return the sums of some lists, as floats."""
        weight = self.weight[rows].astype(np.float64)
        counted = self.places is self.weight
        places = weight if counted else self.places[rows].astype(np.float64)
        return Tally(self.carrying[rows].astype(np.float64), weight, places)

    @cached_property
    def share(self) -> Floats:
        """Lists x labels: the share that carries the label; NaN where no item counts."""
        with np.errstate(invalid="ignore", divide="ignore"):
            share = self.carrying / self.weight
        counts = self.places > 0
        return np.asarray(share if counts.all() else np.where(counts, share, np.nan))


def carried(
    labels: Labels, unknown: UnknownLabels, probability: NDArray[np.float32] | None = None
) -> tuple[Carried, Carried]:
    """Return how far items carry labels in lists and in histories, with unknowns treated as asked.

    The last row stands for all items without labels. Unless a bound is asked for, both sides are
    the same table.

    `probability` is items x labels, used in place of states wherever it is not NaN.
    """
    lists = _carried(labels, unknown in ("yes", "highest"), unknown == "exclude", probability)
    if unknown not in ("highest", "lowest"):
        return lists, lists
    return lists, _carried(labels, unknown == "lowest", False, probability)


def _carried(
    labels: Labels, as_yes: bool, exclude: bool, probability: NDArray[np.float32] | None
) -> Carried:
    n, w = labels.states.shape
    counted = np.zeros((n + 1, table_width(w)), dtype=np.bool_) if exclude else None
    degree: NDArray[Any] = np.zeros(
        (n + 1, table_width(w)), dtype=np.bool_ if probability is None else np.float32
    )
    # Tables of all items and labels are the largest thing here: each is written in place.
    for rows, states in ((slice(n), labels.states), (slice(n, n + 1), labels.of_others[None])):
        # Plain numbers: numpy widens the states to 64 bits for a member of an enumeration.
        if probability is None:
            compare, state = (np.not_equal, NO) if as_yes else (np.equal, YES)
            compare(states, state, out=degree[rows, :w])
            if counted is not None:
                np.greater_equal(states, 0, out=counted[rows, :w])
            continue
        drawn = np.full(states.shape, np.nan) if rows.start else probability
        known = ~np.isnan(drawn)
        declared = ~known & (states == NO)  # declared, without a vote
        degree[rows, :w] = np.where(known, drawn, (~declared & as_yes).astype(np.float32))
        if counted is not None:
            counted[rows, :w] = known | declared
    table = degree.view(np.uint8) if probability is None else degree
    return Carried(w, table, None if counted is None else counted.view(np.uint8))


def tally(lists: sparse.csr_array, items: Carried) -> Tally:
    """Return the sums for each list: one sparse product.

    `lists` is lists x items: the weight of each item.
    """
    lengths = np.diff(lists.indptr)
    labels = items.labels
    if items.degree.dtype == np.uint8 and bool(np.all(lists.data == 1)):
        carrying = count_items(lists, items.degree, labels)
        if items.counted is None:
            places = lengths[:, None]
        else:
            places = count_items(lists, items.counted, labels)
        return Tally(carrying, places, places)
    degree = items.degree.astype(lists.dtype, copy=False)
    weighed = _product(lists, degree)[:, :labels]
    if items.counted is None:
        places = lengths[:, None]
        return Tally(weighed, np.asarray(lists.sum(axis=1), np.float64)[:, None], places)
    weight = _product(lists, items.counted.astype(degree.dtype, copy=False))[:, :labels]
    ones = _with_data(lists, np.ones(lists.nnz, dtype=np.float32))
    return Tally(weighed, weight, _product(ones, items.counted.astype(np.float32))[:, :labels])


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
    if found.weight is found.places:
        absent = (found.carrying < _ABSENT) & (found.places > 0)
    else:
        with np.errstate(invalid="ignore"):
            absent = share * found.places < _ABSENT
    if smoothing == "additive":
        return (share * found.places + 0.5) / (found.places + 1), ~np.isnan(share)
    if smoothing == "drop":
        return np.where(absent, np.nan, share), absent
    if found.weight is found.places:
        # The share of an absent label is 0, and a sum is several times faster than a choice.
        return share + absent * (next_weight / (found.weight + next_weight)), absent
    more = (found.carrying + next_weight) / (found.weight + next_weight)
    return np.where(absent, more, share), absent


def _with_data(matrix: sparse.csr_array, data: NDArray[Any]) -> sparse.csr_array:
    return sparse.csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape)


def _product(lists: Any, items: NDArray[Any]) -> Floats:
    return np.asarray(lists @ items, dtype=np.float64)


# -- Votes as probabilities: a Beta distribution for each item and label.


def fitted_priors(labels: Labels) -> tuple[Floats, Floats]:
    r"""Return for each label the Beta prior that fits its own votes, by moments.

    With :math:`p_i` the share of yes among the :math:`n_i` votes of item i and weights
    :math:`w_i`, the mean is :math:`m = \sum w_i p_i / \sum w_i`, and the intra-class correlation
    :math:`\rho` follows from the weighted variance of the :math:`p_i` (Kleinman 1973). The prior
    is Beta(:math:`m s`, :math:`(1 - m) s`) with :math:`s = 1/\rho - 1`. Labels with votes on
    fewer than 10 items, or without any disagreement between items, get Beta(1/2, 1/2).

    A fixed prior would pull every rarely voted item of a rare label up to one half.

    References
    ----------
    Kleinman (1973), JASA 68, 46-54.
    """
    if labels.yes is None or labels.no is None:
        raise ValueError("the labels were applied, not voted on: there are no votes")
    total = (labels.yes + labels.no).astype(np.float64)
    voted = total > 0
    n = np.where(voted, total, 1.0)
    p = np.where(voted, labels.yes / n, 0.0)
    items = voted.sum(axis=0)
    rho = np.full(p.shape[1], 0.5)
    mean = np.full(p.shape[1], np.nan)
    # Weights depend on the correlation that they are used to find: twice is enough.
    for _ in range(2):
        weight = voted * n / (1 + (n - 1) * rho)
        whole = weight.sum(axis=0)
        with np.errstate(invalid="ignore", divide="ignore"):
            part = weight * (1 - weight / whole)
            mean = (weight * p).sum(axis=0) / whole
            spread = (weight * (p - mean) ** 2).sum(axis=0)
            chance = mean * (1 - mean)
            within = (part / n).sum(axis=0)
            result = (spread - chance * within) / (chance * (part.sum(axis=0) - within))
        rho = np.clip(np.where(np.isfinite(result), result, 0.5), _LEAST, _MOST)
    strength = 1 / rho - 1
    usable = (items >= _FEW_ITEMS) & np.isfinite(result) & (mean > 0) & (mean < 1)
    a = np.where(usable, mean * strength, 0.5)
    b = np.where(usable, (1 - mean) * strength, 0.5)
    return a, b


def beta_draw(
    labels: Labels, priors: tuple[Floats, Floats], rng: np.random.Generator
) -> NDArray[np.float32]:
    """Return one draw of "share of voters who would say yes" for each pair; NaN without votes."""
    assert labels.yes is not None and labels.no is not None  # fitted_priors has checked
    voted = (labels.yes > 0) | (labels.no > 0)
    drawn = np.full(voted.shape, np.nan, dtype=np.float32)
    a = np.broadcast_to(priors[0], voted.shape)[voted] + labels.yes[voted]
    b = np.broadcast_to(priors[1], voted.shape)[voted] + labels.no[voted]
    drawn[voted] = rng.beta(a, b)
    return drawn
