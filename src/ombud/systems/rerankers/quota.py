"""Lists kept close to a mix of identities at every length: the rules, for all users at once."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ombud.errors import PlanError
from ombud.stats.statistics import Floats

UNKNOWN_IDENTITY = -1
"""The code of an item whose identity is not known: always taken when reached."""

ABSENT = -2
"""The code of a place where the ranking has ended."""

Pass: TypeAlias = Literal["greedy", "single"]
"""Whether an item that was passed over may be taken later, or is rejected for good."""

# Numbers of one array while choosing (16 MiB).
_HELD = 2**21
# Shares are sums of floats; a share that is a whole number must count as one.
_CLOSE = 1e-9


@dataclass(frozen=True, slots=True)
class Chosen:
    """Which candidates were taken."""

    # Users x n: positions in the ranking in the order of choice; -1 where a list has ended.
    order: NDArray[np.int64]
    # Users whose list ended although candidates were left: none of them was allowed.
    ended_early: NDArray[np.bool_]
    untouched: NDArray[np.bool_]  # users without a target, whose list is the top of their ranking


def choose_by_quota(
    codes: NDArray[np.integer],
    target: ArrayLike,
    n: int,
    *,
    take: Pass = "greedy",
    places: ArrayLike | None = None,
) -> Chosen:
    r"""Choose items so that every prefix of the list stays close to a target mix.

    At each place the best-ranked candidate is taken whose identity is allowed; an item of unknown
    identity always is. With ``take="single"`` the ranking is passed once and what was
    not allowed is rejected for good (SingleEQ); with ``"greedy"`` it may be taken later
    (GreedyEQ; GreedyReflect when the target is each user's own mix).

    With two identities, g is allowed while :math:`n_g \le p_g N`, N items of known identity
    being in the list; every prefix then has :math:`-p_g \le n_g - p_g N \le 1 - p_g` (for both
    identities). With more, g is allowed when :math:`|n_h - p_h N| < 1` holds for all h at the next
    place and can still be held later: :math:`\sum_h \max(0, \lfloor p_h T \rfloor - n_h)
    \le T - N` for every later T, n and N with the item in. With `places`, shares are of exposure:
    identity g is allowed while its exposure is at most :math:`p_g` of the known exposure, whatever
    the number of identities; with two, exposure stays within the weight of one place.

    Parameters
    ----------
    codes
        Users x candidates, best first: the identity, `UNKNOWN_IDENTITY` or `ABSENT`.
    target
        The share of each identity, for all users or users x identities; shares sum to 1. A row
        of NaN leaves that user's list as it is.
    n
        How long the lists should be.
    take
        ``greedy`` or ``single``.
    places
        The exposure of each of the n places; default, all count the same.

    Examples
    --------
    >>> codes = np.array([[0, 0, 0, 1, 1, -1]])
    >>> choose_by_quota(codes, [0.5, 0.5], 4).order.tolist()
    [[0, 3, 1, 4]]
    >>> choose_by_quota(codes, [0.5, 0.5], 4, take="single").order.tolist()
    [[0, 3, 4, 5]]
    """
    codes = np.asarray(codes)
    aim, weights = _checked(codes, target, n, take, places)
    order = np.full((len(codes), n), -1, dtype=np.int64)
    untouched = np.asarray(np.isnan(aim).any(axis=1))
    choose = choose_with_arrays if find_spec("numba") is None else _compiled
    if not untouched.any():
        order = choose(codes, aim, n, take, weights)
    elif not untouched.all():
        order[~untouched] = choose(codes[~untouched], aim[~untouched], n, take, weights)
    there = codes != ABSENT
    if untouched.any():
        first = np.argsort(~there[untouched], axis=1, kind="stable")[:, :n]
        ended = ~np.take_along_axis(there[untouched], first, axis=1)
        order[untouched, : first.shape[1]] = np.where(ended, -1, first)
    wanted = np.minimum(n, there.sum(axis=1))
    ended_early = ((order >= 0).sum(axis=1) < wanted) & ~untouched
    return Chosen(order, ended_early, untouched)


def _compiled(
    codes: NDArray[np.integer], target: Floats, n: int, take: str, places: Floats | None
) -> NDArray[np.int64]:
    from ombud.systems.recommenders.kernels._jit import workers
    from ombud.systems.rerankers._kernels import choose

    by_quota = target.shape[1] > 2 and places is None
    weights = np.ones(n) if places is None else places
    plain = np.ascontiguousarray(codes, dtype=np.int64)
    with workers(None):
        return choose(plain, target, n, take == "single", by_quota, weights)


def choose_with_arrays(
    codes: NDArray[np.integer], target: Floats, n: int, take: str, places: Floats | None
) -> NDArray[np.int64]:
    """Return what the compiled kernel returns, without numba: place by place, all users at once.

    Arguments are those of `choose_by_quota`, checked.
    """
    users, width = codes.shape
    groups = target.shape[1]
    order = np.full((users, n), -1, dtype=np.int64)
    step = max(1, _HELD // ((groups + 1) * (width + 1) + groups * n))
    for start in range(0, users, step):
        part = slice(start, start + step)
        order[part] = _choose(codes[part], target[part], n, take, places)
    return order


def _checked(
    codes: NDArray[np.integer], target: ArrayLike, n: int, take: str, places: ArrayLike | None
) -> tuple[Floats, Floats | None]:
    if codes.ndim != 2:
        raise PlanError(f"codes has {codes.ndim} dimensions; users x candidates was expected")
    if take not in get_args(Pass):
        raise PlanError(f"take is {take!r}; one of {', '.join(get_args(Pass))}")
    if n < 1:
        raise PlanError(f"n is {n}; lists have at least one place")
    shares = np.asarray(target, dtype=np.float64)
    if shares.ndim == 1:
        shares = np.tile(shares, (len(codes), 1))
    if shares.ndim != 2 or len(shares) != len(codes) or shares.shape[1] < 2:
        raise PlanError(
            f"target has shape {np.shape(target)}; a share for each of two or more identities was "
            f"expected, once or for each of {len(codes)} users"
        )
    given = shares[~np.isnan(shares).any(axis=1)]
    if (given < 0).any() or (np.abs(given.sum(axis=1) - 1) > 1e-6).any():
        raise PlanError("target shares must be zero or more and sum to 1")
    low, high = int(codes.min(initial=0)), int(codes.max(initial=0))
    if low < ABSENT or high >= shares.shape[1]:
        raise PlanError(
            f"codes go from {low} to {high}; {ABSENT} to {shares.shape[1] - 1} was expected"
        )
    if places is None:
        return shares, None
    weights = np.asarray(places, dtype=np.float64)
    if weights.shape != (n,) or not np.all(weights > 0):
        raise PlanError(f"places must hold {n} positive weights")
    return shares, weights


def _choose(
    codes: NDArray[np.integer], target: Floats, n: int, take: str, places: Floats | None
) -> NDArray[np.int64]:
    users, width = codes.shape
    groups = target.shape[1]
    row = np.arange(users)
    kinds = np.where(codes >= 0, codes, np.where(codes == UNKNOWN_IDENTITY, groups, groups + 1))
    heads = _Greedy(kinds, groups + 1) if take == "greedy" else _Single(kinds, groups + 1)
    mass = np.zeros((users, groups))
    known = np.zeros(users)
    lookahead = None
    if groups > 2 and places is None:
        lookahead = np.floor(target[:, :, None] * np.arange(1, n + 1) + _CLOSE)
    order = np.full((users, n), -1, dtype=np.int64)
    allowed = np.ones((users, groups + 1), dtype=bool)
    for place in range(n):
        if lookahead is None:
            allowed[:, :groups] = mass <= target * known[:, None] + _CLOSE
        else:
            allowed[:, :groups] = _within_quota(mass, known, target, lookahead)
        candidates = np.where(allowed, heads.first, width)
        best = candidates.argmin(axis=1)
        position = candidates[row, best]
        taken = position < width
        if not taken.any():
            break
        order[:, place] = np.where(taken, position, -1)
        heads.take(np.where(taken, best, -1), position)
        counted = np.flatnonzero(taken & (best < groups))
        weight = 1.0 if places is None else places[place]
        mass[counted, best[counted]] += weight
        known[counted] += weight
    return order


def _within_quota(
    count: Floats, known: Floats, target: Floats, lookahead: Floats
) -> NDArray[np.bool_]:
    """Return users x identities: who may take the next known place."""
    places = np.arange(1, lookahead.shape[2] + 1)
    after = known[:, None] + 1
    fits = count + 1 <= np.ceil(target * after - _CLOSE)
    short = lookahead > count[:, :, None]
    needed = np.where(short, lookahead - count[:, :, None], 0.0).sum(axis=1)
    slack = places - after - needed
    later = places >= after
    # Where one place too few is left, only an identity that is short there may have this one.
    tight, lost = later & (slack == -1), (later & (slack < -1)).any(axis=1)
    blocked = (tight[:, None, :] & ~short).any(axis=2)
    return np.asarray(fits & ~blocked & ~lost[:, None])


class _Greedy:
    """The best remaining candidate of each kind; what was passed over stays."""

    def __init__(self, kinds: NDArray[np.integer], count: int) -> None:
        users, self.width = kinds.shape
        order = np.argsort(kinds, axis=1, kind="stable")
        sizes = np.stack([(kinds == kind).sum(axis=1) for kind in range(count)], axis=1)
        self.ends = np.cumsum(sizes, axis=1)
        self.next = self.ends - sizes
        # One more column, so that an empty kind has somewhere to look.
        self.order = np.concatenate([order, np.full((users, 1), self.width)], axis=1)
        self.row = np.arange(users)
        at = np.take_along_axis(self.order, self.next, axis=1)
        self.first = np.where(self.next < self.ends, at, self.width)

    def take(self, kind: NDArray[np.intp], position: NDArray[np.int64]) -> None:
        rows = np.flatnonzero(kind >= 0)
        kind = kind[rows]
        self.next[rows, kind] += 1
        at = self.next[rows, kind]
        self.first[rows, kind] = np.where(
            at < self.ends[rows, kind], self.order[rows, at], self.width
        )


class _Single:
    """The next candidate of each kind after the last one taken; the others are gone."""

    def __init__(self, kinds: NDArray[np.integer], count: int) -> None:
        users, self.width = kinds.shape
        self.following = np.full((users, count, self.width + 1), self.width, dtype=np.int32)
        index = np.arange(self.width, dtype=np.int32)
        for kind in range(count):
            at = np.where(kinds == kind, index, np.int32(self.width))
            self.following[:, kind, :-1] = np.minimum.accumulate(at[:, ::-1], axis=1)[:, ::-1]
        self.first = self.following[:, :, 0].astype(np.int64)

    def take(self, kind: NDArray[np.intp], position: NDArray[np.int64]) -> None:
        rows = np.flatnonzero(kind >= 0)
        self.first[rows] = self.following[rows, :, position[rows] + 1]
