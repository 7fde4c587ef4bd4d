"""Errors that all units have in common, such as labels that are themselves uncertain.

Resampling users says nothing about them: every user meets the same doubtful labels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ombud.data.ids import Vocabulary
from ombud.data.labels import Labels
from ombud.rng import generator
from ombud.stats.bootstrap.replicates import Replicates
from ombud.stats.statistics import Floats, OfSums, Statistic

# Numbers of the draws that are kept (512 MiB).
_KEPT = 2**27
_DRAWS = 50

LABEL_ERRORS = "label errors"
"""Stands among the names of tables where labels have measured errors (`Metric.block_fault`)."""
DRAWN = "labels with measured errors are drawn for all units at once; run it without [engine]"
"""Why a metric that draws labels is not measured in blocks."""

# With fewer units, what a group has in common cannot be told from chance: everyone's is used.
_FEW = 30


@dataclass(frozen=True, eq=False)
class LabelDraws:
    """What units would have measured under other states of what they share."""

    ids: NDArray[Any]  # the units: all, or a random part of them where all would not fit in memory
    # For each column of the statistic, draws x units x labels.
    columns: Mapping[str, NDArray[np.float32]]

    def shifts(self, statistic: Statistic, members: NDArray[np.bool_]) -> Floats:
        """Return draws x groups x labels: the statistic of each draw minus that of all draws.

        `members` is units x groups; the first group is everyone.
        """
        stacked = [self.columns[name] for name in statistic.columns]
        draws, _, labels = stacked[0].shape
        result = np.full((draws, members.shape[1], labels), np.nan)
        for d in range(draws):
            # Labels x units x columns, so that each label is one sample.
            values = np.stack([column[d].T for column in stacked], axis=-1).astype(np.float64)
            for w in range(labels):
                result[d, :, w] = _points(statistic, values[w], members)
        result -= result.mean(axis=0)
        rough = (members.sum(axis=0) < _FEW)[:, None] & np.ones(labels, dtype=bool)
        rough |= np.isnan(result).any(axis=0)
        return np.nan_to_num(np.where(rough, result[:, :1], result), nan=0.0)


def over_label_draws(
    labels: Labels,
    ids: NDArray[Any],
    measure: Callable[[NDArray[np.float32]], Floats],
    draws: int = _DRAWS,
) -> tuple[Floats, LabelDraws]:
    """Measure under draws of labels whose errors are known; return the mean, and the draws.

    Parameters
    ----------
    labels
        With `errors`.
    ids
        The units.
    measure
        From how far each item of the labels carries each of them (NaN: unknown) to units x labels.
    draws
        How many. They are the same for every system.
    """
    if labels.errors is None:
        raise ValueError("the labels have no measured errors: there is nothing to draw")
    rng = generator(0, "label votes")
    width = len(labels.names)
    most = max(1, _KEPT // max(1, draws * width))
    n = len(ids)
    kept = np.arange(n) if n <= most else np.sort(generator(0, "kept").permutation(n)[:most])
    each = np.empty((draws, len(kept), width), dtype=np.float32)
    total = np.zeros((n, width))
    for d in range(draws):
        values = measure(labels.errors.draw(rng))
        total += values
        each[d] = values[kept]
    return total / draws, LabelDraws(np.asarray(ids)[kept], {"value": each})


def _points(statistic: Statistic, values: Floats, members: NDArray[np.bool_]) -> Floats:
    if isinstance(statistic, OfSums):
        known = ~np.isnan(values).any(axis=1)
        terms = statistic.terms_of(values[known])
        terms = np.column_stack([terms, np.ones(len(terms))])
        return statistic.evaluate(members[known].T.astype(np.float64) @ terms)
    return np.array([statistic.point(values[column]) for column in members.T])


def add_shared(
    replicates: Replicates,
    shared: Sequence[LabelDraws | None],
    units: Vocabulary,
    members: NDArray[np.bool_] | None,
    rng: np.random.Generator,
) -> None:
    r"""Add what units share to bootstrap replicates, in place.

    With :math:`T_d` the statistic under draw d of D, each replicate is moved by
    :math:`\sum_d z_d (T_d - \bar T) / \sqrt{D - 1}` with independent standard normal
    :math:`z_d`, the same for all samples and groups. The variance of a replicate is then the
    sum of both parts, as the law of total variance has it, and a gap between two systems or
    groups keeps only what they do not have in common.

    Parameters
    ----------
    replicates
        One sample per system and label, labels fastest.
    shared
        For each system, the draws, or None. Draw d of one system is draw d of the others.
    units
        All units, in the order of the replicates.
    members
        Units x groups as resampled; None for everyone alone.
    rng
        Source of randomness.
    """
    sizes = {len(next(iter(s.columns.values()))) for s in shared if s is not None}
    if not sizes:
        return
    if len(sizes) > 1:
        raise ValueError(f"systems have {sorted(sizes)} draws of what they share; one expected")
    (draws,) = sizes
    weights = rng.standard_normal((len(replicates.draws), draws)) / np.sqrt(draws - 1)
    labels = replicates.draws.shape[1] // len(shared)
    for number, result in enumerate(shared):
        if result is None:
            continue
        who = units.codes(result.ids)
        inside = np.ones((len(who), 1), dtype=bool) if members is None else members[who]
        statistic = replicates.samples[number * labels].statistic
        shifts = result.shifts(statistic, inside).swapaxes(1, 2)
        moved = weights @ shifts.reshape(draws, -1)
        part = slice(number * labels, (number + 1) * labels)
        replicates.draws[:, part] += moved.reshape(len(weights), labels, -1)
