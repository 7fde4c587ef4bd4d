"""Samples of users and of targets, in strata, with what each sampled unit stands for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class StratifiedSample:
    """Units drawn in strata."""

    units: NDArray[np.int64]  # which units, rising
    strata: NDArray[np.int64]  # the stratum of each
    weights: NDArray[np.float64]  # how many units of its stratum each stands for


def stratified_sample(
    strata: NDArray[Any], count: int, rng: np.random.Generator
) -> StratifiedSample:
    """Draw about equally many units of every stratum, without replacement.

    Strata with fewer units than their part are taken whole, and the rest is shared among the
    others; there are ``count`` units in all, or all there are.

    Strata below 0 are not drawn from.

    Examples
    --------
    >>> strata = np.array([0] * 90 + [1] * 9 + [2])
    >>> found = stratified_sample(strata, 9, np.random.default_rng(0))
    >>> np.bincount(found.strata).tolist(), float(found.weights.sum())
    ([4, 4, 1], 100.0)
    """
    names, sizes = np.unique(strata[strata >= 0], return_counts=True)
    if count < 1 or len(names) == 0:
        raise ValueError(f"{count} units of {len(names)} strata; at least one of each is needed")
    if count < len(names):
        raise ValueError(f"{count} units cannot represent {len(names)} strata; draw more")
    part = np.zeros(len(names), np.int64)
    left = min(count, int(sizes.sum()))
    while left > 0:
        room = np.flatnonzero(part < sizes)
        # One more for each stratum that has one, the largest first when they do not go round.
        order = room[np.argsort(-sizes[room], kind="stable")]
        more = np.maximum(left // len(order), 1)
        for place in order[:left]:
            given = min(int(more), int(sizes[place] - part[place]), left)
            part[place] += given
            left -= given
    units, weights = [], []
    for name, size, number in zip(names, sizes, part, strict=True):
        units.append(rng.choice(np.flatnonzero(strata == name), number, replace=False))
        weights.append(np.full(number, size / number))
    chosen = np.concatenate(units).astype(np.int64)
    # In the order of the data: results then list people as the data does, not by stratum.
    order = np.argsort(chosen)
    return StratifiedSample(
        chosen[order],
        np.asarray(strata)[chosen[order]].astype(np.int64),
        np.concatenate(weights)[order],
    )


def quantile_groups(values: NDArray[Any], groups: int = 10) -> NDArray[np.int64]:
    """Return groups of equally many units by rising value, 0 first; ties go by the unit's number.

    Ten groups of items by their number of interactions are the popularity deciles.

    Examples
    --------
    >>> quantile_groups(np.array([5, 1, 9, 7]), 2).tolist()
    [0, 0, 1, 1]
    """
    order = np.argsort(values, kind="stable")
    found = np.empty(len(order), np.int64)
    found[order] = np.arange(len(order)) * groups // max(len(order), 1)
    return found
