"""Edits of the values of a fixed set of items, where scores are affine: ``scores = c + B a``.

With the values in a box, the greatest softmax probability of an item is a smooth concave problem in
its logarithm, and membership in the top 1 a linear programme (Curmei, Dean & Recht 2021; Dean, Rich
& Recht 2020). All items of a person are solved together by a projected Newton method.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ombud.errors import PlanError
from ombud.probes.edits import History
from ombud.probes.models.base import WhiteBox

Array = NDArray[np.float64]

_CUTS = 60
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
    box: WhiteBox,
    history: History,
    actions: NDArray[np.int32],
    low: float,
    high: float,
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


def reaches_top(
    scores: AffineScores,
    goal: int,
    k: int = 1,
    *,
    hint: Array | None = None,
    seconds: float = 10.0,
) -> tuple[Literal["yes", "no", "undecided"], Array | None, str]:
    """Return whether some values bring a goal among the first k, which ones, and how it was found.

    First the interval of every pairwise difference over the box, then the hint, then a linear
    programme with cutting planes (k = 1) or a mixed-integer one (k > 1) with a time limit.

    Parameters
    ----------
    scores, goal, k
        Affine scores, the goal's place among the candidates, the length of the list.
    hint
        Values that may do it already, such as those of `most_probable`.
    seconds
        Time limit of the mixed-integer programme.
    """
    apart, offset = scores.slope - scores.slope[goal], scores.intercept - scores.intercept[goal]
    low, high = scores.low, scores.high
    most = offset + np.maximum(apart * low, apart * high).sum(axis=1)
    least = offset + np.minimum(apart * low, apart * high).sum(axis=1)
    most[goal] = least[goal] = -1.0
    always = int((least > 0).sum())
    if always >= k:
        return "no", None, "interval"
    if (most > 0).sum() < k:
        return "yes", np.full(len(apart.T), (low + high) / 2), "interval"
    if hint is not None and int((apart @ hint + offset > 0).sum()) < k:
        return "yes", hint, "hint"
    if k == 1:
        return _top_one(apart, offset, goal, low, high)
    return _top_k(apart, offset, most, least, k - 1 - always, low, high, seconds)


def _top_one(
    apart: Array, offset: Array, goal: int, low: float, high: float
) -> tuple[Literal["yes", "no", "undecided"], Array | None, str]:
    from scipy.optimize import linprog

    m = apart.shape[1]
    values, rows = np.full(m, (low + high) / 2), np.empty(0, np.int64)
    for _ in range(_CUTS):
        ahead = apart @ values + offset
        ahead[goal] = -np.inf
        worst = np.argsort(-ahead, kind="stable")[:20]
        if ahead[worst[0]] <= 0:
            return "yes", values, "linear programme"
        fresh = np.setdiff1d(worst[ahead[worst] > 0], rows)
        if len(fresh) == 0:
            return "undecided", None, "rounding"
        rows = np.concatenate([rows, fresh])
        solved = linprog(
            np.append(np.zeros(m), -1.0),
            A_ub=np.column_stack([apart[rows], np.ones(len(rows))]),
            b_ub=-offset[rows],
            bounds=[(low, high)] * m + [(None, None)],
            method="highs",
        )
        if solved.x is None:
            return "undecided", None, "linear programme"
        values = solved.x[:m]
        if solved.x[m] < -1e-9:
            return "no", None, "linear programme"
    return "undecided", None, "linear programme"


def _top_k(
    apart: Array,
    offset: Array,
    most: Array,
    least: Array,
    allowed: int,
    low: float,
    high: float,
    seconds: float,
) -> tuple[Literal["yes", "no", "undecided"], Array | None, str]:
    from scipy import sparse
    from scipy.optimize import Bounds, LinearConstraint, milp

    open_ = np.flatnonzero((most > 0) & (least <= 0))
    m, n = apart.shape[1], len(open_)
    rows = sparse.hstack([sparse.csr_array(apart[open_]), -sparse.diags_array(most[open_])])
    count = np.append(np.zeros(m), np.ones(n))
    solved = milp(
        count,
        constraints=[
            LinearConstraint(rows, -np.inf, -offset[open_]),
            LinearConstraint(count[None], -np.inf, allowed),
        ],
        integrality=count.astype(np.int64),
        bounds=Bounds(
            np.append(np.full(m, low), np.zeros(n)), np.append(np.full(m, high), np.ones(n))
        ),
        options={"time_limit": seconds},
    )
    if solved.x is not None:
        values = np.clip(solved.x[:m], low, high)
        ahead = int((apart @ values + offset > 1e-9).sum())
        return ("yes" if ahead <= allowed + int((least > 0).sum()) else "undecided"), values, "milp"
    return ("no" if solved.status == 2 else "undecided"), None, "milp"
