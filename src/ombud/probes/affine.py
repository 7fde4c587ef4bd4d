"""Edits of the values of a fixed set of items, where scores are affine: ``scores = c + B a``.

With the values in a box, the greatest softmax probability of an item is a smooth concave problem in
its logarithm (Curmei, Dean & Recht 2021; Dean, Rich & Recht 2020). All items of a person are solved
together by a projected Newton method.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ombud.errors import PlanError
from ombud.probes.edits import History
from ombud.probes.models.base import WhiteBox

Array = NDArray[np.float64]

_HALVINGS = 6


@dataclass(frozen=True, eq=False)
class AffineScores:
    """The scores of candidate items as a function of the values of an action set."""

    # Candidates x actions, and candidates.
    slope: Array
    intercept: Array
    # Item codes of the action set and of the items that can be shown.
    actions: NDArray[np.int32]
    candidates: NDArray[np.int32]
    # The scale of the values.
    low: float
    high: float
    today: Array  # the action set's values today; NaN where an item is not rated

    def at(self, values: Array) -> Array:
        """Return the candidates' scores for some values of the action set."""
        return values @ self.slope.T + self.intercept


def affine_scores(
    box: WhiteBox, history: History, actions: NDArray[np.int32], low: float, high: float
) -> AffineScores:
    """Return the affine scores of all items outside the history and the action set.

    Parameters
    ----------
    box
        A model whose scores are affine in the values of a fixed set of rated items.
    history
        The history; entries of the action set are free, the others stay.
    actions
        Items of the history (what Curmei, Dean & Recht call *history*) or new ones (*future*).
    low, high
        The rating scale.
    """
    if not box.affine:
        raise PlanError("the scores of this model are not affine in ratings; search edits instead")
    if len(np.unique(actions)) != len(actions) or len(actions) == 0:
        raise PlanError("an action set holds at least one item, and none twice")
    entries = dict(zip(history.items.tolist(), history.values.tolist(), strict=True))
    today = np.array([entries.get(int(a), np.nan) for a in actions])

    def with_values(values: Array) -> History:
        new = {**entries, **dict(zip(actions.tolist(), values.tolist(), strict=True))}
        return History.of(new.keys(), new.values())

    base = np.full(len(actions), low)
    ends = base + (high - low) * np.eye(len(actions))
    scores = box.scores([with_values(base), *(with_values(row) for row in ends)])
    listed = np.asarray(np.isfinite(scores).all(axis=0))
    listed[history.items] = listed[actions] = False
    candidates = np.flatnonzero(listed).astype(np.int32)
    slope = (scores[1:, candidates] - scores[0, candidates]).T / (high - low)
    return AffineScores(
        slope, scores[0, candidates] - slope @ base, actions, candidates, low, high, today
    )


@dataclass(frozen=True, eq=False)
class Attained:
    """The optimum of each goal."""

    log_probability: Array  # what the values attain
    gap: Array  # the optimum is at most so much higher (proved, as the problem is convex)
    # The values of the action set, and the Newton steps taken.
    values: Array
    steps: NDArray[np.int64]


def most_probable(
    scores: AffineScores,
    goals: NDArray[np.int64],
    beta: float,
    *,
    start: Array | None = None,
    tolerance: float = 1e-8,
    most_steps: int = 200,
) -> Attained:
    """Return the greatest softmax probability of each goal over the box of values.

    Minimises ``log sum exp(beta (B a + c)) - beta (b_g a + c_g)`` for all goals together; each step
    is Newton's on the values that are not at a bound, with a backtracking line search.

    Parameters
    ----------
    scores
        Affine scores.
    goals
        Places of the goals among the candidates.
    beta
        Inverse temperature.
    start
        Values to start from; default the middle of the scale.
    tolerance
        The proved gap, in units of log-probability, at which a goal is done.
    most_steps
        Newton steps at most.
    """
    slope, constant = scores.slope * beta, scores.intercept * beta
    low, high, m = scores.low, scores.high, scores.slope.shape[1]
    middle = np.full(m, (low + high) / 2) if start is None else np.clip(start, low, high)
    values = np.repeat(middle[None], len(goals), axis=0)
    first, other = np.triu_indices(m)
    pairs = slope[:, first] * slope[:, other]
    own, own_constant = slope[goals], constant[goals]
    slope_t = np.ascontiguousarray(slope.T)

    def loss(at: Array, which: NDArray[np.int64]) -> tuple[Array, Array, Array]:
        raised = at @ slope_t
        raised += constant
        top = raised.max(axis=1, keepdims=True)
        raised -= top
        np.exp(raised, out=raised)
        total = raised.sum(axis=1)
        value = top[:, 0] + np.log(total) - (at * own[which]).sum(axis=1) - own_constant[which]
        return value, raised, total

    active = np.arange(len(goals))
    final, steps = np.empty(len(goals)), np.zeros(len(goals), np.int64)
    gaps = np.full(len(goals), np.inf)
    value, weights, total = loss(values, active)
    final[:] = value
    diagonal, damping = np.arange(m), np.zeros(len(goals))
    for _ in range(most_steps):
        at = values[active]
        mean = (weights @ slope) / total[:, None]
        gradient = mean - own[active]
        # How much the loss could still fall, were it linear: it is convex, so it falls no further.
        gap = np.maximum(gradient * (at - low), gradient * (at - high)).sum(axis=1)
        gaps[active] = gap
        going = (gap > tolerance) & (damping[active] < 1e12)
        if not going.all():
            active, at, mean, gradient = (x[going] for x in (active, at, mean, gradient))
            value, weights, total = value[going], weights[going], total[going]
        if len(active) == 0:
            break
        fixed = ((at <= low) & (gradient > 0)) | ((at >= high) & (gradient < 0))
        second = np.empty((len(active), m, m))
        second[:, first, other] = (weights @ pairs) / total[:, None]
        second[:, other, first] = second[:, first, other]
        second -= mean[:, :, None] * mean[:, None, :]
        free = ~fixed
        second *= free[:, :, None] & free[:, None, :]
        scale = np.einsum("gii->g", second) + 1e-8
        ridge = (1e-10 + damping[active]) * scale
        second[:, diagonal, diagonal] += np.where(free, ridge[:, None], 1.0)
        move = -np.linalg.solve(second, np.where(fixed, 0, gradient)[:, :, None])[:, :, 0]
        open_ = np.arange(len(active))
        following, newer = at.copy(), value.copy()
        length = np.ones(len(active))
        for _ in range(_HALVINGS):
            if len(open_) == 0:
                break
            trial = np.clip(at[open_] + length[open_, None] * move[open_], low, high)
            got, trial_weights, trial_total = loss(trial, active[open_])
            drop = ((trial - at[open_]) * gradient[open_]).sum(axis=1)
            good = (drop < 0) & (got <= value[open_] + 1e-4 * drop + 1e-14)
            done = open_[good]
            following[done], newer[done] = trial[good], got[good]
            weights[done], total[done] = trial_weights[good], trial_total[good]
            open_ = open_[~good]
            length[open_] /= 2
        # Where bounds spoil Newton's direction, lean towards the gradient's, which never fails.
        damping[active] *= 0.1
        damping[active[length < 1]] = np.maximum(damping[active[length < 1]] * 10, 1e-6)
        damping[active[open_]] = np.maximum(damping[active[open_]] * 100, 1e-3)
        values[active], final[active] = following, newer
        steps[active] += 1
        value = newer
    return Attained(-final, np.maximum(gaps, 0.0), values, steps)
