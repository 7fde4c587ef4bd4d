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
from ombud.stats.estimate import Estimate
from ombud.stats.proportions import wilson
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


# Whether a system's errors could reverse a finding, where they differ by how often items are shown.

FEWEST_CHECKED = 30
"""Validation items that a cell needs before its error rates say something."""

LABEL_DOUBT = "label_error_doubt"
"""Stands in the details of an estimate: why errors of the labels could reverse it, if so."""

TERCILES = ("least shown", "middle", "most shown")
_LEAST_APART = 0.05


def error_cells(
    labels: Labels, cells: Mapping[str, NDArray[np.bool_]]
) -> list[dict[str, list[int]]]:
    """Return, for each label, how often its system erred on validation texts that are items.

    Parameters
    ----------
    labels
        With `errors`.
    cells
        The items of each cell, by name.

    Returns
    -------
    For each label and cell right and wrong answers on items with the label, and wrong and right
    ones on items without: ``[yes, missed, false, no]``.
    """
    errors = labels.errors
    assert errors is not None
    truth = np.full(errors.said.shape, -1) if errors.truth is None else errors.truth
    pairs = ((1, 1), (1, 0), (0, 1), (0, 0))
    return [
        {
            name: [
                int(np.count_nonzero(here & (truth[:, k] == a) & (errors.said[:, k] == b)))
                for a, b in pairs
            ]
            for name, here in cells.items()
        }
        for k in range(errors.said.shape[1])
    ]


def terciles(shown: NDArray[np.floating[Any]]) -> NDArray[np.int64]:
    """Return the third of each item, by how often it is shown; items shown alike stay together."""
    order = np.argsort(shown, kind="stable")
    ranks = np.empty(len(shown))
    ranks[order] = np.arange(len(shown))
    _, same = np.unique(shown, return_inverse=True)
    middle = np.bincount(same, ranks) / np.bincount(same)
    return np.minimum(np.asarray(3 * middle[same] / max(len(shown), 1)), 2).astype(np.int64)


def rates_of(cell: Sequence[int], level: float = 0.95) -> tuple[Floats, Floats]:
    """Return the share found and the share falsely found, each with its Wilson interval.

    Examples
    --------
    >>> found, false = rates_of([9, 1, 2, 18])
    >>> found.round(2).tolist(), false.round(2).tolist()
    ([0.9, 0.6, 0.98], [0.1, 0.03, 0.3])
    """
    made = []
    for hits, misses in ((cell[0], cell[1]), (cell[2], cell[3])):
        n = hits + misses
        low, high = wilson(hits, n, level=level) if n else (0.0, 1.0)
        made.append(np.array([hits / n if n else np.nan, float(low), float(high)]))
    return made[0], made[1]


def label_doubt(estimate: Estimate, *sides: Mapping[str, Any]) -> str:
    r"""Return why errors of the labels could reverse an estimate; empty if they cannot.

    With the said share :math:`A_c` and the share of items :math:`B_c` of a third c (in lists minus
    in histories, of the group minus of the others), the corrected difference is
    :math:`\sum_c (A_c - F_c B_c) / (T_c - F_c)`. The direction must be the same for all error rates
    within their intervals.
    """
    if estimate.value is None or estimate.null is None:
        return ""
    cells = [side.get("label_errors") for side in sides]
    if not all(isinstance(one, Mapping) for one in cells) or not cells:
        return "this metric takes the labels as the system gave them"
    signs = (1.0, -1.0)
    low = high = 0.0
    alike = len(cells) == 1 or cells[0] == cells[1]
    for k, name in enumerate(TERCILES):
        parts = []
        for sign, side, cell in zip(signs, sides, cells, strict=False):
            assert isinstance(cell, Mapping)
            if sum(cell[name]) < FEWEST_CHECKED:
                return (
                    f"{sum(cell[name]):,} validation texts are items of the {name} third; "
                    f"{FEWEST_CHECKED} are needed to know how often the labels are wrong there"
                )
            amounts = [side.get(f"{word}_{k}") for word in ("said", "items")]
            if None in amounts:
                return "how often the labels are wrong could not be separated by exposure"
            parts.append((sign * float(amounts[0] or 0.0), sign * float(amounts[1] or 0.0), cell))
        if alike:
            parts = [(sum(p[0] for p in parts), sum(p[1] for p in parts), parts[0][2])]
        for said, items, cell in parts:
            found, false = rates_of(cell[name])
            if found[1] - false[2] <= _LEAST_APART:
                return f"the labels may be no better than chance on the {name} third"
            ends = [(said - f * items) / (t - f) for t in found[1:] for f in false[1:]]
            low, high = low + min(ends), high + max(ends)
    for side in sides:
        if "label_errors_here" in side and sum(side["label_errors_here"]) < FEWEST_CHECKED:
            return (
                f"{sum(side['label_errors_here']):,} validation texts are items shown to "
                f"{estimate.group or 'a group'}; {FEWEST_CHECKED} are needed to know how often the "
                "labels are wrong there"
            )
    null = 1.0 if estimate.kind == "ratio" else 0.0
    if (estimate.value > null and low > 0) or (estimate.value < null and high < 0):
        return ""
    return (
        f"error rates by exposure allow a difference from {low:+.3g} to {high:+.3g}, so errors of "
        "the labels could reverse it"
    )


def with_label_doubt(
    estimate: Estimate, possible: tuple[float, float], *sides: Mapping[str, Any]
) -> Estimate:
    """Return an estimate on labels with measured errors, with what they could do to it.

    A value that cannot exist is undefined: the error rates do not hold for these items.
    """
    if "label_errors" not in sides[0] or estimate.value is None:
        return estimate
    low, high = possible if estimate.kind == "level" else (-2.0, 2.0)
    low = 0.0 if estimate.kind == "ratio" else low
    if not low - 1e-9 <= estimate.value <= (np.inf if estimate.kind == "ratio" else high + 1e-9):
        return Estimate.undefined(
            reason_code="not-estimable",
            reason="corrected for the measured error rates it is no possible value: the labels err "
            "at other rates here than on the validation texts",
            n=estimate.n,
            **{f: getattr(estimate, f) for f in _ABOUT},
        )
    details = dict(estimate.details)
    impossible = [
        name for name, least in _SHARES.items() if not least <= details.get(name, 0.0) <= 1
    ]
    if impossible:
        details = {name: v for name, v in details.items() if name not in _SHARES}
    if estimate.null is not None:
        details |= {n: sides[0][n] for n in ("label_errors", "label_errors_here") if n in sides[0]}
        doubt = "corrected for the measured error rates, a share is no possible value"
        details[LABEL_DOUBT] = doubt if impossible else label_doubt(estimate, *sides)
    return estimate.replace(details=details)


_ABOUT = ("metric", "system", "label", "group", "against", "kind", "key", "unit", "null")
_SHARES = {
    "lists": 0.0, "history": 0.0, "other_lists": 0.0, "other_history": 0.0,
    "level": -1.0, "other_level": -1.0,
}  # fmt: skip
"""Details that are shares, and the least value of each."""
