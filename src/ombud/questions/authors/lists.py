"""RQ2 and RQ3: how profiles and lists are divided, how much of the catalogue lists reach."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ombud.audits.analysis import Analysis, AnalysisResult, Context
from ombud.data.exclusions import Exclusion
from ombud.data.recommendations import Recommendations
from ombud.questions.authors.all_creators import all_creator_list_shares
from ombud.questions.authors.creators import (
    Creators,
    creators_of,
    exposure_of,
    lists_in,
    profile_users,
    shares,
)
from ombud.questions.authors.options import CreatorTableOptions, ListOptions
from ombud.questions.authors.stages import STAGE, mean_share, stage
from ombud.registry import analysis
from ombud.stats.estimate import Estimate
from ombud.stats.statistics import Floats

if TYPE_CHECKING:
    from ombud.data.interactions import Interactions


@analysis("creator-lists")
class CreatorLists(ListOptions, CreatorTableOptions, Analysis):
    """Profile and list balance by identity, list coverage, and the two lists for everyone.

    - **Profiles, lists**: mean over users of the share among known items, plain and by exposure,
      with the spread over users. A user without a known item is counted, not averaged.
    - **Baselines**: the most popular and the best rated items, one list for everybody, seen items
      not taken out: a share without a spread, printed with its counts.
    - **Coverage**: lists asked for, missing and short, recommendations, distinct items.
    - **Unit**: the user.

    References
    ----------
    Ekstrand and Kluver (2021), Exploring author gender in book rating and recommendation, UMUAI.
    """

    def analyze(self, context: Context) -> AnalysisResult:
        """Return the shares, and tables of lists and baselines."""
        data, outputs, settings = context.data, context.outputs, context.settings
        creators = creators_of(data, self.attribute, self.registered_name)
        assert data.interactions is not None  # creators_of has checked
        lists = lists_in(outputs, self.registered_name)
        estimates: list[Estimate] = []
        exclusions: list[Exclusion] = []
        rows: list[dict[str, Any]] = []
        users = np.asarray(next(iter(lists.values())).users)
        counts = creators.in_profiles(data.interactions, users)
        sample = profile_users(data, users) & (counts.sum(axis=1) >= self.least)
        past = shares(counts[sample])
        for g, name in enumerate(creators.names):
            about: dict[str, Any] = {"level": settings.level}
            estimates.append(mean_share(past[:, g], "profiles", name, {}, **about))
        if self.creators:
            cut = {name: some.for_users(users[sample]).top(self.k) for name, some in lists.items()}
            estimates += all_creator_list_shares(
                self.creators, data.interactions, creators, users[sample], cut, settings.level
            )
        estimates += _baselines(creators, data.interactions, self.k, settings.level)
        for system, answered in lists.items():
            own = answered.for_users(users[sample]).top(self.k)
            found, row = _list_shares(creators, own, system, self.k, settings.level)
            estimates += found
            rows.append(row)
            if row["without"]:
                reason = "no list was recommended"
                exclusions.append(
                    Exclusion("lists", "users", row["without"], reason, row["users"], "", system)
                )
        return AnalysisResult(
            tuple(estimates),
            {
                "creator-list-coverage": pl.DataFrame(rows, infer_schema_length=None),
                "creator-balance-bins": _bins(creators, past, lists, users[sample], self.k),
            },
            tuple(exclusions),
        )


def _list_shares(
    creators: Creators, lists: Recommendations, system: str, k: int, level: float
) -> tuple[list[Estimate], dict[str, Any]]:
    there = lists.lengths > 0
    counts = creators.in_lists(lists, k)
    plain = shares(counts)[there]
    seen = shares(creators.in_lists(lists, k, exposure_of(k)))[there]
    known = int(counts.sum())
    places = int(lists.lengths.sum())
    estimates = []
    for g, name in enumerate(creators.names):
        exposure = seen[:, g][~np.isnan(seen[:, g])]
        details = {
            "exposure_mean": float(exposure.mean()) if len(exposure) else None,
            "known_places": known,
            "places": places,
        }
        estimates.append(
            mean_share(plain[:, g], "lists", name, details, system=system, level=level)
        )
    distinct = len(np.unique(lists.items[lists.items >= 0]))
    row = {
        "system": system,
        "users": len(lists),
        "without": int(np.count_nonzero(~there)),
        "short": int(np.count_nonzero(there & (lists.lengths < k))),
        "recommendations": places,
        "distinct": distinct,
        "distinct_share": distinct / places if places else None,
        "known_share": known / places if places else None,
        "without_known": int(np.count_nonzero(counts[there].sum(axis=1) == 0)),
    }
    return estimates, row


def top_items(interactions: Interactions, by: str, k: int) -> NDArray[np.int64]:
    """Return the codes of the k items with the most interactions, or the highest mean rating.

    Ties go to the item with more interactions, then to the lower id.

    Examples
    --------
    >>> from ombud.data.interactions import Interactions
    >>> some = Interactions.from_arrays([1, 1, 2], ["a", "b", "b"], [5.0, 3.0, 4.0])
    >>> top_items(some, "count", 1).tolist(), top_items(some, "mean", 1).tolist()
    ([1], [0])
    """
    counts = np.bincount(interactions.matrix.indices, minlength=interactions.n_items)
    codes = np.arange(interactions.n_items)
    if by == "count":
        return np.lexsort((codes, -counts))[:k]
    total = np.bincount(
        interactions.matrix.indices,
        weights=interactions.matrix.data.astype(np.float64),
        minlength=interactions.n_items,
    )
    mean: Floats = np.full(interactions.n_items, -np.inf)
    np.divide(total, counts, out=mean, where=counts > 0)
    return np.lexsort((codes, -counts, -mean))[:k]


def _baselines(
    creators: Creators, interactions: Interactions, k: int, level: float
) -> list[Estimate]:
    codes = creators.on(interactions.items)
    kinds = {"most popular": "count"} | ({"best rated": "mean"} if interactions.explicit else {})
    found = []
    for kind, by in kinds.items():
        top = codes[top_items(interactions, by, k)]
        known = int(np.count_nonzero(top >= 0))
        for g, name in enumerate(creators.names):
            of = int(np.count_nonzero(top == g))
            e = stage("baseline", of, known, name, group=kind, unit="item", level=level)
            details = {STAGE: "baseline", "count": of, "of": known, "places": len(top)}
            found.append(
                e.replace(details=details)
                if e.value is None
                else e.replace(
                    details=details, interval=None, method="none: one list for everyone",
                    metric="share in one list for everyone",
                )
            )  # fmt: skip
    return found


def _bins(
    creators: Creators,
    past: Floats,
    lists: Mapping[str, Recommendations],
    users: NDArray[Any],
    k: int,
) -> pl.DataFrame:
    """Return how many profiles and lists have each share of each identity, in steps of 0.05."""
    rows = []
    edges = np.linspace(0, 1, 21)
    drawn = {"": past} | {
        system: shares(creators.in_lists(some.for_users(users), k))
        for system, some in lists.items()
    }
    for system, values in drawn.items():
        for g, name in enumerate(creators.names):
            there = values[:, g][~np.isnan(values[:, g])]
            counted = np.histogram(there, edges)[0]
            for low, number in zip(edges[:-1], counted, strict=True):
                rows.append((system, name, round(float(low), 2), int(number)))
    columns = ["system", "identity", "from", "users"]
    return pl.DataFrame(rows, schema=columns, orient="row")
