"""RQ1: whose work is catalogued and read, how much of that is known, and what the rest could do."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ombud.audits.analysis import Analysis, AnalysisResult, Context, all_interactions
from ombud.data.items import Items
from ombud.questions.authors.all_creators import all_creator_shares
from ombud.questions.authors.creators import Creators, creators_of
from ombud.questions.authors.options import CatalogOptions
from ombud.questions.authors.stages import PIPELINE, STAGE, among_users, bounds, stage
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
    creators: Creators,
    codes: NDArray[np.int64],
    counts: NDArray[Any],
    interactions: Interactions,
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
    creators: Creators,
    codes: NDArray[np.int64],
    counts: NDArray[Any],
    interactions: Interactions,
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
