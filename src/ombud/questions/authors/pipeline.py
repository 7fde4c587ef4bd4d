"""RQ1 to RQ3: how catalog, profiles and lists are divided, and how much lists reach."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ombud.audits.analysis import Analysis, AnalysisResult, Context, all_interactions
from ombud.data.exclusions import Exclusion
from ombud.data.items import Items
from ombud.data.recommendations import Recommendations
from ombud.questions.authors.creators import (
    Creators,
    creators_of,
    exposure_of,
    lists_in,
    profile_users,
    shares,
)
from ombud.questions.authors.options import CatalogOptions, CreatorTableOptions, ListOptions
from ombud.questions.authors.shares import (
    PIPELINE,
    STAGE,
    all_creator_list_shares,
    all_creator_shares,
    among_users,
    bounds,
    mean_share,
    stage,
)
from ombud.registry import analysis
from ombud.stats.effects import cliffs_delta
from ombud.stats.estimate import Estimate
from ombud.stats.means import mean_estimate
from ombud.stats.proportions import proportion
from ombud.stats.ratios import ratio_of_means_estimate
from ombud.stats.statistics import Floats

if TYPE_CHECKING:
    from ombud.data.interactions import Interactions


_FEWEST = 10
_UNLINKED = frozenset({"no_book", "no_author", "no_authority"})


def popularity_percentile(counts: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
    """Return the popularity of each item as a whole percentile.

    Items are ranked by interactions, ties get their average rank; rank over the largest rank,
    in percent, rounded.

    Examples
    --------
    >>> popularity_percentile(np.array([1, 1, 5, 9])).tolist()
    [38, 38, 75, 100]
    """
    from scipy.stats import rankdata

    ranks = rankdata(counts)
    percent = np.floor(100 * ranks / ranks.max() + 0.5)
    return np.asarray(percent, dtype=np.int64)


@analysis("creator-catalogue")
class CreatorCatalogue(CatalogOptions, Analysis):
    """Resolution, coverage by popularity, shares with bounds, and interactions by identity.

    - **Shares** are among items (or interactions) of known identity. Their bounds are the shares
      if every item without an identity had another one, or this one.
    - **Interactions per item**: mean of each identity; the ratio of its mean to that of all other
      known items; and Cliff's delta, which sees order only.
    - **Unit**: the item; for shares of interactions, the user.
    - **Undefined**: for an identity with fewer than 10 items.
    - **Does not capture**: who has no record at all; coverage is not random.

    References
    ----------
    Ekstrand and Kluver (2021), Exploring author gender in book rating and recommendation, UMUAI.
    """

    def analyze(self, context: Context) -> AnalysisResult:
        """Return the shares and tables; no system is asked."""
        data, settings = context.data, context.settings
        interactions = all_interactions(data, self.registered_name)
        creators = creators_of(data, self.attribute, self.registered_name)
        codes = creators.on(interactions.items)
        counts = np.bincount(interactions.matrix.indices, minlength=interactions.n_items)
        met = counts > 0
        level = settings.level
        profiles = creators.in_profiles(interactions, interactions.users.arrow)
        estimates = _known(creators, codes[met], profiles, interactions, level)
        if self.catalogue:
            estimates += _catalogued(self.catalogue, creators, level)
        if self.creators:
            estimates += all_creator_shares(
                self.creators, interactions, creators, self.catalogue, level
            )
        for g, name in enumerate(creators.names):
            items = codes[met] == g
            known = int(np.count_nonzero(codes[met] >= 0))
            ends = bounds(int(items.sum()), known, int(met.sum()))
            about = {"unit": "item", "level": level}
            estimates.append(
                stage("platform", int(items.sum()), known, name, **about).replace(
                    details={STAGE: "platform", "of": known} | ends
                )
            )
            estimates.append(_interactions(creators, codes, counts, profiles, g, level))
            estimates += _per_item(codes[met], counts[met].astype(np.float64), name, g, level)
        return AnalysisResult(
            tuple(estimates),
            {
                "creator-data": _data_table(interactions),
                "creator-resolution": _resolution(creators, codes, counts, interactions),
                "creator-coverage": _coverage(creators, codes, counts, interactions),
            },
        )


def _known(
    creators: Creators,
    codes: NDArray[np.int64],
    profiles: Floats,
    interactions: Interactions,
    level: float,
) -> list[Estimate]:
    about: dict[str, Any] = {
        "metric": f"share with a known {creators.attribute}",
        "key": "creator-catalogue/known-share",
        "level": level,
        "details": {"attribute": creators.attribute},
    }
    known = int(np.count_nonzero(codes >= 0))
    some = proportion(known, len(codes), unit="item", group="items", **about)
    sizes = np.diff(interactions.matrix.indptr)
    return [some, among_users(profiles.sum(axis=1), sizes, group="interactions", **about)]


def _catalogued(path: Path | str, creators: Creators, level: float) -> list[Estimate]:
    table = Items.from_frame(str(path), by=[creators.attribute], source=Path(path).name)
    values = table.values[creators.attribute]
    there = np.array([value is not None for value in values], dtype=bool)
    known = int(there.sum())
    found = []
    # Who is catalogued and met by nobody is part of the answer.
    others, often = np.unique(values[there].astype(str), return_counts=True)
    unmet = [str(name) for name in others[np.argsort(-often, kind="stable")]]
    for name in dict.fromkeys([*creators.names, *unmet]):
        of = int(np.count_nonzero(values[there] == name))
        about = {"unit": "item", "level": level}
        details = {STAGE: "catalogue", "of": known} | bounds(of, known, len(values))
        found.append(stage("catalogue", of, known, name, **about).replace(details=details))
    return found


def _interactions(
    creators: Creators,
    codes: NDArray[np.int64],
    counts: NDArray[Any],
    profiles: Floats,
    g: int,
    level: float,
) -> Estimate:
    known = float(counts[codes >= 0].sum())
    ends = bounds(float(counts[codes == g].sum()), known, float(counts.sum()))
    return among_users(
        profiles[:, g],
        profiles.sum(axis=1),
        metric="share among interactions",
        key=PIPELINE,
        label=creators.names[g],
        level=level,
        details={STAGE: "interactions", "of": known} | ends,
    )


def _per_item(
    codes: NDArray[np.int64], counts: Floats, name: str, g: int, level: float
) -> list[Estimate]:
    own, others = counts[codes == g], counts[(codes >= 0) & (codes != g)]
    key = "creator-catalogue/interactions-per-item"
    about: dict[str, Any] = {"label": name, "unit": "item", "level": level}
    metric = "interactions per item"
    ratio: dict[str, Any] = {"metric": f"{metric}, ratio", "key": f"{key}-ratio"}
    delta: dict[str, Any] = {"metric": "Cliff's delta of interactions", "key": f"{key}-delta"}
    against: dict[str, Any] = {"against": "items of other known identities"}
    few = min(len(own), len(others))
    if len(own) < _FEWEST:
        reason = f"not enough data: {len(own)} items; {_FEWEST} are needed"
        return [
            Estimate.undefined(
                reason_code="too-few-units", reason=reason, n=len(own), **about, **names
            )
            for names in ({"metric": metric, "key": key}, ratio | against, delta | against)
        ]
    median = {"median": float(np.median(own)), "items": len(own)}
    found = [mean_estimate(own, metric=metric, key=key, details=median, **about)]
    if few < _FEWEST:
        reason = f"not enough data: {few} items to compare with; {_FEWEST} are needed"
        return found + [
            Estimate.undefined(
                reason_code="too-few-units", reason=reason, n=few, **about, **names, **against
            )
            for names in (ratio, delta)
        ]
    both = np.concatenate([own, others])
    mine = np.arange(len(both)) < len(own)
    first, second = np.where(mine, both, np.nan), np.where(mine, np.nan, both)
    found.append(ratio_of_means_estimate(first, second, **ratio, **about, **against))
    effect = cliffs_delta(own, others, level)
    ends = None if np.isnan(effect.low) else (effect.low, effect.high)
    method = "DeLong" if ends else "none: no overlap, or no spread"
    found.append(
        Estimate(
            value=effect.value, interval=ends, method=method, n=few, kind="gap", null=0.0,
            **about, **delta, **against,
        )
    )  # fmt: skip
    return found


def _data_table(interactions: Interactions) -> pl.DataFrame:
    users = int(np.count_nonzero(np.diff(interactions.matrix.indptr)))
    items = len(np.unique(interactions.matrix.indices))
    pairs = len(interactions)
    return pl.DataFrame(
        {"users": [users], "items": [items], "pairs": [pairs], "density": [pairs / users / items]}
    )


def _outcomes(creators: Creators, interactions: Interactions) -> NDArray[np.object_]:
    """Return the identity of each item, or the outcome in its place."""
    codes = creators.on(interactions.items)
    names = np.array([*creators.names, ""], dtype=object)
    return np.where(codes >= 0, names[codes], creators.status_on(interactions.items))


def _resolution(
    creators: Creators, codes: NDArray[np.int64], counts: NDArray[Any], interactions: Interactions
) -> pl.DataFrame:
    met = counts > 0
    frame = pl.DataFrame(
        {
            "outcome": _outcomes(creators, interactions)[met].astype(str),
            "known": codes[met] >= 0,
            "interactions": counts[met].astype(np.int64),
        }
    )
    sums = [pl.len().cast(pl.Int64).alias("items"), pl.col("interactions").sum()]
    flagged = creators.flagged_on(interactions.items)
    if flagged is not None:
        frame = frame.with_columns(pl.Series("flagged", flagged[met]))
        sums += [
            pl.col("flagged").sum().cast(pl.Int64).alias("flagged_items"),
            pl.col("interactions").filter("flagged").sum().alias("flagged_interactions"),
        ]
    found = frame.group_by("outcome", "known").agg(sums)
    return found.with_columns(
        (pl.col("items") / pl.col("items").sum()).alias("items_share"),
        (pl.col("interactions") / pl.col("interactions").sum()).alias("interactions_share"),
    ).sort(["known", "items", "outcome"], descending=[True, True, False])


def _coverage(
    creators: Creators, codes: NDArray[np.int64], counts: NDArray[Any], interactions: Interactions
) -> pl.DataFrame:
    met = counts > 0
    outcome = _outcomes(creators, interactions)[met].astype(str)
    unlinked = np.isin(outcome, list(_UNLINKED | {"not in the table of items"}))
    outcome = np.where((codes[met] < 0) & unlinked, "unlinked", outcome)
    frame = pl.DataFrame({"percentile": popularity_percentile(counts[met]), "outcome": outcome})
    return (
        frame.group_by("percentile", "outcome")
        .agg(pl.len().cast(pl.Int64).alias("items"))
        .with_columns((pl.col("items") / pl.col("items").sum().over("percentile")).alias("share"))
        .sort("percentile", "outcome")
    )


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
