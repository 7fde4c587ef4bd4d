"""The quota rules, user by user and place by place."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ombud.systems.recommenders.kernels._jit import kernel, prange

_CLOSE = 1e-9


@kernel()
def _may(g: int, mass: NDArray[np.float64], known: float, target: NDArray[np.float64]) -> bool:
    """Whether an identity's share is not above its target."""
    return bool(mass[g] <= target[g] * known + _CLOSE)


@kernel()
def _may_by_quota(
    g: int, count: NDArray[np.float64], known: float, target: NDArray[np.float64], n: int
) -> bool:
    """Whether an identity may take the next known place, now and with all later ones in view."""
    if count[g] + 1 > np.ceil(target[g] * (known + 1) - _CLOSE):
        return False
    for place in range(int(known) + 1, n + 1):
        needed = 0.0
        behind = True
        for h in range(len(target)):
            wanted = np.floor(target[h] * place + _CLOSE)
            have = count[h] + (1.0 if h == g else 0.0)
            if wanted > have:
                needed += wanted - have
            if wanted < have:
                behind = False
        if needed > place - known - 1:
            return False
        if behind:
            # Once none is ahead of its share, shares that sum to 1 fit into all later places.
            break
    return True


@kernel(parallel=True)
def choose(
    codes: NDArray[np.int64],
    target: NDArray[np.float64],
    n: int,
    single: bool,
    by_quota: bool,
    places: NDArray[np.float64],
) -> NDArray[np.int64]:
    """Return users x n positions in the order of choice, -1 where a list has ended.

    Parameters
    ----------
    codes
        Users x candidates: the identity, -1 unknown, -2 no candidate.
    target
        Users x identities.
    n
        Places.
    single
        Whether what was passed over is rejected for good.
    by_quota
        Whether shares must also be kept later; else an identity may have what is not above it.
    places
        The weight of each place.
    """
    users, width = codes.shape
    groups = target.shape[1]
    order = np.full((users, n), -1, dtype=np.int64)
    for u in prange(users):
        mass = np.zeros(groups)
        known = 0.0
        if single:
            place = 0
            for at in range(width):
                g = codes[u, at]
                if place == n:
                    break
                if g < -1:
                    continue
                if g >= 0:
                    if by_quota:
                        if not _may_by_quota(g, mass, known, target[u], n):
                            continue
                    elif not _may(g, mass, known, target[u]):
                        continue
                    mass[g] += places[place]
                    known += places[place]
                order[u, place] = at
                place += 1
            continue
        # The next candidate of each kind; the last kind is unknown.
        heads = np.zeros(groups + 1, dtype=np.int64)
        for kind in range(groups + 1):
            wanted = kind if kind < groups else -1
            at = 0
            while at < width and codes[u, at] != wanted:
                at += 1
            heads[kind] = at
        for place in range(n):
            best, kind = width, -1
            for g in range(groups + 1):
                if heads[g] >= best:
                    continue
                if g < groups:
                    if by_quota:
                        if not _may_by_quota(g, mass, known, target[u], n):
                            continue
                    elif not _may(g, mass, known, target[u]):
                        continue
                best, kind = heads[g], g
            if kind < 0:
                break
            order[u, place] = best
            if kind < groups:
                mass[kind] += places[place]
                known += places[place]
            wanted = kind if kind < groups else -1
            at = best + 1
            while at < width and codes[u, at] != wanted:
                at += 1
            heads[kind] = at
    return order
