"""Permutation tests: many labels over the same items, and paired values."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import comb, lgamma, log
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from scipy.fft import irfft, next_fast_len, rfft

from ombud.stats.bootstrap._design import BLOCK, chunks
from ombud.stats.effects import cliffs_delta_of_codes, welch
from ombud.stats.statistics import Floats, as_rows

YES, NO, UNKNOWN = 1, 0, -1
"""States of a label on an item."""

# Independent orderings per label, each of which is shifted all the way round.
_ORDERINGS = 4
# Numbers transformed at once (8 MiB).
_AT_ONCE = 2**20
_EPS = float(np.finfo(np.float64).eps)
_COLUMNS = 32
_Real = TypeVar("_Real", np.float32, np.float64)


@dataclass(frozen=True, eq=False)
class LabelTests:
    """One row per label; NaN where `reason` says why there is no number."""

    # Items in each state. Items without a value are unknown.
    yes: npt.NDArray[np.int64]
    no: npt.NDArray[np.int64]
    unknown: npt.NDArray[np.int64]
    # Mean of yes minus mean of no, with Welch's interval.
    difference: Floats
    low: Floats
    high: Floats
    p: Floats  # two-sided p-value
    # How many were drawn; or all of them, and then `exact`.
    permutations: npt.NDArray[np.int64]
    exact: npt.NDArray[np.bool_]
    # Cliff's delta with its interval.
    delta: Floats
    delta_low: Floats
    delta_high: Floats
    reason: npt.NDArray[np.object_]  # why there is no test; empty otherwise


def label_tests(
    values: npt.ArrayLike,
    states: npt.ArrayLike,
    *,
    permutations: int = 10_000,
    level: float = 0.95,
    rng: np.random.Generator,
) -> LabelTests:
    r"""Test for each label whether items with it and items without it have the same mean.

    Within each label, values are permuted over the items whose state is known. The p-value is
    two-sided, :math:`p = (b + 1) / (m + 1)` where b of m permutations give a difference at least
    as large in size; when there are at most m arrangements all are counted and p is exact.

    Parameters
    ----------
    values
        One number per item; items with NaN are left out.
    states
        Shape (items, labels): 1 yes, 0 no, -1 unknown.
    permutations
        m above.
    level
        Of the intervals of the two effect sizes.
    rng
        Source of randomness.

    Notes
    -----
    Permutations are drawn as random orderings of the known items, each shifted cyclically by
    every step; a convolution gives the sums of all shifts of an ordering at once. The observed
    arrangement is one member of that family, chosen before looking, and the m others are
    a random choice of the rest, so observed and drawn differences are exchangeable under the
    null and the p-value is valid, as with independent draws (Besag and Clifford 1989). Sums
    closer than rounding allows count as ties. A low p-value says that
    items with and without the label do not have the same distribution of values: with very
    unequal groups and spreads it can be low although the means agree, so read it beside the
    interval of the difference, which allows for unequal spreads.

    References
    ----------
    Besag and Clifford (1989), Biometrika 76, 633-642; Phipson and Smyth (2010), SAGMB 9:39.

    Examples
    --------
    >>> values = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    >>> states = np.array([[0, 0, 0, 1, 1, 1]]).T
    >>> found = label_tests(values, states, rng=np.random.default_rng(0))
    >>> float(found.difference[0]), float(found.p[0]), bool(found.exact[0])
    (3.0, 0.1, True)
    """
    x = np.asarray(values, dtype=np.float64)
    state = np.asarray(states)
    if state.ndim == 1:
        state = state[:, None]
    if x.ndim != 1 or state.shape[0] != len(x):
        raise ValueError(f"values {x.shape} and states {state.shape} must share the items")
    if not _are_states(state):
        raise ValueError("states must be 1 (yes), 0 (no) or -1 (unknown)")
    if permutations < 1:
        raise ValueError(f"permutations is {permutations}; at least 1 is needed")
    labels = state.shape[1]
    # One sort for all labels: ranks within a label are counts along the order of all values.
    distinct, codes = np.unique(x, return_inverse=True)
    valued = None if not np.isnan(x).any() else ~np.isnan(x)
    numbers = np.full((7, labels), np.nan)
    counts = np.zeros((4, labels), dtype=np.int64)
    exact = np.zeros(labels, dtype=np.bool_)
    reason = np.full(labels, "", dtype=object)
    # A stream for each label, so that adding one changes no other.
    streams = rng.spawn(labels)
    for index in range(labels):
        if index % _COLUMNS == 0:  # a column alone would be read across the whole table
            block = np.ascontiguousarray(state[:, index : index + _COLUMNS].T)
        column = block[index % _COLUMNS]
        if valued is not None:
            column = np.where(valued, column, UNKNOWN)
        with_label, without = np.flatnonzero(column == YES), np.flatnonzero(column == NO)
        yes, no = x[with_label], x[without]
        counts[:3, index] = len(yes), len(no), len(x) - len(yes) - len(no)
        if not len(yes) or not len(no):
            reason[index] = f"no item is known to be {'with' if not len(yes) else 'without'} it"
            continue
        numbers[:3, index] = welch(yes, no, level)
        numbers[4:, index] = cliffs_delta_of_codes(
            codes[with_label], codes[without], len(distinct), level
        )
        p, drawn, exact[index] = _p_value(yes, no, permutations, streams[index])
        numbers[3, index], counts[3, index] = p, drawn
    return LabelTests(
        yes=counts[0],
        no=counts[1],
        unknown=counts[2],
        difference=numbers[0],
        low=numbers[1],
        high=numbers[2],
        p=numbers[3],
        permutations=counts[3],
        exact=exact,
        delta=numbers[4],
        delta_low=numbers[5],
        delta_high=numbers[6],
        reason=reason,
    )


def _are_states(state: npt.NDArray[np.generic]) -> bool:
    # The extremes decide for whole numbers, without a copy as large as the table.
    if state.dtype.kind in "biu":
        return bool(not state.size or (state.min() >= UNKNOWN and state.max() <= YES))
    return bool(np.isin(state, (YES, NO, UNKNOWN)).all())


def _p_value(
    yes: Floats, no: Floats, permutations: int, rng: np.random.Generator
) -> tuple[float, int, bool]:
    small = yes if len(yes) <= len(no) else no
    both = np.concatenate([small, yes if small is no else no])
    both = both - both.mean()
    k, n = len(small), len(both)
    observed = abs(both[:k].sum())
    if _few_arrangements(n, k, permutations):
        arrangements = comb(n, k)
        chosen = np.fromiter(
            combinations(range(n), k), dtype=np.dtype((np.int64, k)), count=arrangements
        )
        sums = np.abs(both[chosen].sum(axis=1))
        extreme = np.count_nonzero(sums >= observed - _slack(both, k, np.float64))
        return extreme / arrangements, arrangements, True
    sums = np.abs(_shifted_sums(both, k, permutations, rng, exact_near=observed))
    extreme = np.count_nonzero(sums >= observed - _slack(both, k, np.float64))
    return (extreme + 1) / (permutations + 1), permutations, False


def _slack(both: Floats, k: int, kind: type[np.floating[Any]]) -> float:
    """Return what sums of k of these numbers may lose to rounding."""
    size = 8 * max(1.0, np.log2(len(both))) * np.linalg.norm(both) * np.sqrt(k)
    return float(size) * float(np.finfo(kind).eps)


def _few_arrangements(n: int, k: int, most: int) -> bool:
    # A binomial coefficient of thousands has thousands of digits; its logarithm does not.
    logarithm = lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)
    return logarithm <= log(most) + 1 and comb(n, k) <= most


def _shifted_sums(
    both: Floats, k: int, permutations: int, rng: np.random.Generator, *, exact_near: float
) -> Floats:
    """Return sums of k chosen items under permutations other than the observed one.

    Sums have single precision, which halves the time of a transform, except those whose size
    single precision cannot tell from `exact_near`.
    """
    n = len(both)
    orderings = max(_ORDERINGS, -(-(permutations + 1) // n))
    order = rng.permutation(n)
    marked = order < k
    # The first ordering agrees with the marks, so that its shift by zero is what was observed.
    taken = np.sort(1 + rng.choice(orderings * n - 1, size=permutations, replace=False))
    scale = float(np.abs(both).max()) or 1.0  # single precision has a small range
    margin = _slack(both, k, np.float32)
    sums = np.empty(permutations)
    step = max(1, _AT_ONCE // n)
    for first in range(0, orderings, step):
        last = min(first + step, orderings)
        values = rng.permuted(np.tile(both, (last - first, 1)), axis=1)
        if first == 0:
            values[0] = both[order]
        low, high = np.searchsorted(taken, (first * n, last * n))
        row, shift = np.divmod(taken[low:high] - first * n, n)
        single = (values / scale).astype(np.float32)
        found = scale * _sums_at(single, marked, row, shift).astype(np.float64)
        near = np.flatnonzero(np.abs(np.abs(found) - exact_near) < margin)
        row, shift = row[near], shift[near]
        # Usually none or one; many where values are tied, and then a transform is faster.
        if len(near) * k <= values.size:
            chosen = (np.flatnonzero(marked) + shift[:, None]) % n
            found[near] = values[row[:, None], chosen].sum(axis=1)
        else:
            found[near] = _sums_at(values, marked, row, shift)
        sums[low:high] = found
    return sums


def _sums_at(
    values: npt.NDArray[_Real],
    marked: npt.NDArray[np.bool_],
    row: npt.NDArray[np.int64],
    shift: npt.NDArray[np.int64],
) -> npt.NDArray[_Real]:
    """Return the sums of marked values of rows that are shifted cyclically."""
    n = values.shape[1]
    # A transform of prime length takes several times as long as one of twice a smooth length,
    # padded with zeros: what the shift moved over the end is then added from the padding.
    smooth = next_fast_len(n, real=True) == n
    length = n if smooth else next_fast_len(2 * n, real=True)
    transformed = rfft(values, length, axis=1)
    transformed *= np.conj(rfft(marked.astype(values.dtype), length))
    shifted = irfft(transformed, length, axis=1, overwrite_x=True)
    sums = shifted[row, shift]
    if not smooth:
        sums += shifted[row, shift - n]
    return sums


@dataclass(frozen=True, eq=False)
class SignTests:
    """One row per column: mean, p-value, units, permutations, whether all were counted, why not."""

    mean: Floats
    p: Floats
    n: npt.NDArray[np.int64]
    permutations: npt.NDArray[np.int64]
    exact: npt.NDArray[np.bool_]
    reason: npt.NDArray[np.object_]


def sign_flip_test(
    differences: npt.ArrayLike, *, permutations: int = 10_000, rng: np.random.Generator
) -> SignTests:
    """Test for each column whether paired differences are symmetric around zero.

    Signs of whole units are flipped at random, the same for all columns; the statistic is the
    mean. Two-sided, with p as in `label_tests`; all sign patterns are counted when there are
    at most `permutations`. Units with NaN are left out of their column.

    Examples
    --------
    >>> found = sign_flip_test([1.0, 2.0, 3.0, 4.0], rng=np.random.default_rng(0))
    >>> float(found.p[0]), bool(found.exact[0])
    (0.125, True)
    """
    x = as_rows(differences)
    n = np.count_nonzero(~np.isnan(x), axis=0)
    filled = np.nan_to_num(x, nan=0.0)
    total = filled.sum(axis=0)
    slack = 64 * _EPS * np.abs(filled).sum(axis=0)
    columns = x.shape[1]
    p = np.full(columns, np.nan)
    drawn = np.zeros(columns, dtype=np.int64)
    exact = np.zeros(columns, dtype=np.bool_)
    reason = np.full(columns, "", dtype=object)
    reason[n == 0] = "no units"
    mattering = np.count_nonzero(filled, axis=0)
    for column in np.flatnonzero((n > 0) & (2.0**mattering <= permutations)):
        some = filled[filled[:, column] != 0, column]
        signs = 2.0 * (np.arange(2 ** len(some))[:, None] >> np.arange(len(some)) & 1) - 1
        p[column] = np.mean(np.abs(signs @ some) >= abs(total[column]) - slack[column])
        drawn[column], exact[column] = len(signs), True
    rest = np.flatnonzero((n > 0) & ~exact)
    if len(rest):
        sums = _flipped_sums(filled[:, rest], permutations, rng)
        extreme = np.count_nonzero(np.abs(sums) >= np.abs(total[rest]) - slack[rest], axis=0)
        p[rest] = (extreme + 1) / (permutations + 1)
        drawn[rest] = permutations
    with np.errstate(invalid="ignore"):
        mean = total / n
    return SignTests(mean, p, n.astype(np.int64), drawn, exact, reason)


def _flipped_sums(values: Floats, permutations: int, rng: np.random.Generator) -> Floats:
    sums = np.zeros((permutations, values.shape[1]))
    for low in range(0, len(values), BLOCK):
        block = values[low : low + BLOCK]
        width = -(-len(block) // 8)
        for start, stop in chunks(permutations, len(block)):
            raw = np.frombuffer(rng.bytes((stop - start) * width), dtype=np.uint8)
            bits = np.unpackbits(raw.reshape(stop - start, width), axis=1, count=len(block))
            # Kept minus flipped is twice kept minus all.
            sums[start:stop] += 2 * (bits.astype(np.float64) @ block) - block.sum(axis=0)
    return sums
