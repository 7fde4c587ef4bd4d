"""FA*IR: every prefix of a list holds as many items of one identity as chance would let expect."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ombud.data.exclusions import Exclusion
from ombud.data.ids import Vocabulary
from ombud.data.recommendations import Recommendations
from ombud.errors import PlanError
from ombud.stats.statistics import Floats
from ombud.systems.rerankers.balance import BALANCE, identity_codes
from ombud.systems.rerankers.calibrate import reordered
from ombud.systems.rerankers.quota import ABSENT

# Halvings of the level: further ones change no count.
_ROUNDS = 50


def prefix_minimums(n: int, share: float, alpha: float = 0.1) -> NDArray[np.int64]:
    r"""Return how many items of an identity each prefix of a list must hold at least.

    With ``m(i)`` the quantile of Binomial(i, `share`) at a level, a list whose places are filled
    by independent coins falls below ``m`` somewhere with some probability; the level is the
    largest at which that is at most `alpha` (the correction for many prefixes of FA*IR).

    `share` is what is aimed at; `alpha` is how often lists filled by chance may be refused.

    References
    ----------
    Zehlike, Bonchi, Castillo, Hajian, Megahed and Baeza-Yates (2017), FA*IR: a fair top-k ranking
    algorithm, CIKM.

    Examples
    --------
    >>> prefix_minimums(20, 0.25).tolist()
    [0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2]
    """
    if n < 1 or not 0 < share < 1 or not 0 < alpha < 1:
        raise PlanError(
            f"n is {n}, share {share} and alpha {alpha}; a list has at least one place, and both "
            "others lie between 0 and 1"
        )
    low, high = 0.0, 1.0
    for _ in range(_ROUNDS):
        middle = (low + high) / 2
        if _refused(_quantiles(n, share, middle), share) > alpha:
            high = middle
        else:
            low = middle
    return _quantiles(n, share, low)


def _quantiles(n: int, share: float, level: float) -> NDArray[np.int64]:
    from scipy.stats import binom

    if level <= 0:
        return np.zeros(n, dtype=np.int64)
    found: NDArray[np.int64] = np.asarray(
        binom.ppf(level, np.arange(1, n + 1), share), dtype=np.int64
    )
    return found


def _refused(minimums: NDArray[np.int64], share: float) -> float:
    """Return how often a list filled by coins falls below the minimums somewhere."""
    held: Floats = np.zeros(len(minimums) + 1)
    held[0] = 1.0
    for least in minimums:
        held[1:] = (1 - share) * held[1:] + share * held[:-1]
        held[0] *= 1 - share
        held[:least] = 0.0
    return 1.0 - float(held.sum())


def choose_by_prefix(
    codes: NDArray[np.integer], identity: int, minimums: NDArray[np.integer]
) -> NDArray[np.int64]:
    """Return users x places: positions in the ranking, in the order of choice; -1 at the end.

    At a place whose prefix would hold too few items of the identity the best-ranked of them is
    taken; else the best-ranked candidate. Where none of the identity is left, the others follow.

    Parameters
    ----------
    codes
        Users x candidates, best first: the identity, `UNKNOWN_IDENTITY` or `ABSENT`. What is not
        known to be of the identity is not.
    identity
        Its code.
    minimums
        For each prefix; see `prefix_minimums`.

    Examples
    --------
    >>> choose_by_prefix(np.array([[0, 0, 0, 1, -1, 1]]), 1, np.array([0, 1, 1, 2])).tolist()
    [[0, 3, 1, 5]]
    """
    codes = np.asarray(codes)
    users, width = codes.shape
    row = np.arange(users)
    heads = []
    for kind in (codes == identity, (codes != identity) & (codes != ABSENT)):
        order = np.argsort(~kind, axis=1, kind="stable")
        places = np.where(np.take_along_axis(kind, order, axis=1), order, width)
        heads.append(np.column_stack([places, np.full(users, width)]))
    taken = np.zeros((2, users), dtype=np.int64)
    found = np.full((users, len(minimums)), -1, dtype=np.int64)
    for place, least in enumerate(minimums):
        own, other = (head[row, at] for head, at in zip(heads, taken, strict=True))
        pick = (own < width) & ((taken[0] < least) | (own < other))
        position = np.where(pick, own, other)
        there = position < width
        found[:, place] = np.where(there, position, -1)
        taken[0] += pick & there
        taken[1] += ~pick & there
    return found


def with_minimums(
    lists: Recommendations,
    items: Vocabulary,
    codes: NDArray[np.integer],
    identity: int,
    share: float,
    n: int,
    *,
    alpha: float = 0.1,
) -> Recommendations:
    """Return lists reranked by FA*IR; see `prefix_minimums` and `choose_by_prefix`.

    Lists in which too few candidates were of the identity are counted in the exclusions.

    Parameters
    ----------
    lists
        Candidates: the full rankings, or as much of them as there is.
    items, codes
        The identity of each item, as in `identity_codes`.
    identity
        The code of the identity that has minimums.
    share, alpha
        As in `prefix_minimums`.
    n
        How many places.
    """
    minimums = prefix_minimums(n, share, alpha)
    found = identity_codes(lists, items, codes)
    order = choose_by_prefix(found, identity, minimums)
    own = np.take_along_axis(found, np.maximum(order, 0), axis=1) == identity
    held = np.cumsum(own & (order >= 0), axis=1)
    below = ((held < minimums) & (order >= 0)).any(axis=1)
    lost: tuple[Exclusion, ...] = ()
    if below.any():
        reason = "too few candidates were of the identity that has minimums"
        lost = (Exclusion(BALANCE, "full lists", int(below.sum()), reason, len(lists)),)
    return reordered(lists, order, lost)
