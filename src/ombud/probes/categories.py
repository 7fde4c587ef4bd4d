"""Whether a system sorts people into boxes: groups of users by what they can reach."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ombud.rng import generator
from ombud.stats import Estimate, proportion

Floats = NDArray[np.float64]


def reach_groups(reachable: Floats, groups: int) -> NDArray[np.int64]:
    """Return groups of users who can reach the same targets, by Ward's method.

    `reachable` is users x targets: 1 reachable, 0 unreachable, 0.5 undecided, NaN not asked. Fewer
    groups are returned when users do not differ so much.
    """
    from scipy.cluster.hierarchy import fcluster, linkage  # takes a while to import

    if groups < 2:
        raise ValueError(f"groups is {groups}; at least 2 are needed to tell users apart")
    known = ~np.isnan(reachable)
    means = np.where(known, reachable, 0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    # A pair that was not asked about says nothing: the target's mean stands in.
    filled = np.where(known, reachable, means)
    if len(np.unique(filled, axis=0)) < 2:
        return np.zeros(len(filled), np.int64)
    found = fcluster(linkage(filled, "ward"), groups, "maxclust")
    return np.asarray(np.unique(found, return_inverse=True)[1].reshape(-1), dtype=np.int64)


def cramers_v(first: NDArray[Any], second: NDArray[Any]) -> float:
    r"""Return Cramer's V of two groupings, corrected for chance; NaN when one has a single group.

    :math:`\tilde V = \sqrt{\tilde\varphi^2 / \min(\tilde r - 1, \tilde c - 1)}` with
    :math:`\tilde\varphi^2 = \max(0, \chi^2/n - (r-1)(c-1)/(n-1))` and
    :math:`\tilde r = r - (r-1)^2/(n-1)`: 0 when one tells nothing of the other, 1 when it tells
    all.

    References
    ----------
    Bergsma (2013), "A bias-correction for Cramer's V and Tschuprow's T", J. Korean Stat. Soc. 42.

    Examples
    --------
    >>> a = np.repeat([0, 1], 20)
    >>> round(cramers_v(a, a), 3), cramers_v(a, np.tile([0, 1], 20))
    (1.0, 0.0)
    """
    rows, i = np.unique(first, return_inverse=True)
    columns, j = np.unique(second, return_inverse=True)
    n, r, c = len(i), len(rows), len(columns)
    if min(r, c) < 2 or n < 3:
        return float("nan")
    table = np.bincount(i.reshape(-1) * c + j.reshape(-1), minlength=r * c).reshape(r, c)
    expected = table.sum(axis=1, keepdims=True) * table.sum(axis=0) / n
    phi = ((table - expected) ** 2 / expected).sum() / n
    phi = max(0.0, phi - (r - 1) * (c - 1) / (n - 1))
    least = min(r - (r - 1) ** 2 / (n - 1), c - (c - 1) ** 2 / (n - 1)) - 1
    return float(min(1.0, np.sqrt(phi / least))) if least > 0 else float("nan")


def over_categorisation(
    reachable: Floats,
    attributes: Mapping[str, NDArray[Any]],
    *,
    groups: int = 4,
    system: str = "",
    permutations: int = 999,
    level: float = 0.95,
    seed: int = 0,
) -> list[Estimate]:
    """Return how well attributes tell what users can reach, and what no one in a group can reach.

    Users are grouped by what they can reach. For each attribute: the corrected Cramer's V between
    it and the groups, with a permutation p-value of *no relation* (the groups do not depend on the
    attribute, so they are found once). For each group: the share of targets that
    are proved unreachable for everyone in it, with an interval over targets, these users given; the
    fewer users a group has, the higher that share.

    Parameters
    ----------
    reachable
        Users x targets: 1 reachable, 0 unreachable, 0.5 undecided, NaN not asked.
    attributes
        One value per user for each attribute; None is unknown, and its user is left out.
    groups
        How many groups of users to look for.
    system
        The system's name.
    permutations
        How many shuffles of the attribute.
    level
        Of the intervals.
    seed
        Of shuffling.
    """
    box = reach_groups(reachable, groups)
    found = []
    for name, values in attributes.items():
        given = np.asarray(values, dtype=object)
        if given.shape != box.shape:
            raise ValueError(f"attribute {name!r} has {given.shape} values for {len(box)} users")
        known = np.array([value is not None for value in given], dtype=np.bool_)
        about: dict[str, Any] = {
            "metric": f"groups by reach told by {name} (Cramer's V)",
            "key": "over-categorisation/told",
            "n": int(known.sum()),
            "unit": "user",
            "system": system,
            "group": name,
            "level": level,
            "details": {"groups": int(box.max(initial=-1)) + 1, "unknown": int((~known).sum())},
        }
        words = given[known].astype(str)
        value = cramers_v(words, box[known])
        if np.isnan(value):
            reason = "all users are in one group, or have one value"
            found.append(Estimate.undefined(reason_code="no-variation", reason=reason, **about))
            continue
        rng = generator(seed, "over-categorisation", name)
        shuffled = [cramers_v(rng.permutation(words), box[known]) for _ in range(permutations)]
        p = (1 + sum(v >= value - 1e-12 for v in shuffled)) / (permutations + 1)
        method = "none: tested by permutation"
        found.append(
            Estimate(value=value, interval=None, method=method, null=0.0, p_value=p, **about)
        )
    asked = ~np.isnan(reachable)
    for number in range(int(box.max(initial=-1)) + 1):
        mine = box == number
        told = asked[mine].any(axis=0)
        shut = told & (np.where(asked[mine], reachable[mine], 0) == 0).all(axis=0)
        found.append(
            proportion(
                int(shut.sum()), int(told.sum()), unit="target", system=system, level=level,
                metric="targets reachable by no one in the group",
                key="over-categorisation/shut", group=f"group {number + 1}",
                details={"users": int(mine.sum())},
            )
        )  # fmt: skip
    return found
