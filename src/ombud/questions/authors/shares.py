"""Shares of identities at each stage: by the first creator of an item, or by all creators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import polars as pl
from scipy import sparse

from ombud.data.frames import Column, read_table
from ombud.data.ids import Vocabulary
from ombud.data.items import Items
from ombud.errors import DataError
from ombud.stats.estimate import Estimate
from ombud.stats.means import mean_estimate
from ombud.stats.proportions import proportion
from ombud.stats.ratios import ratio_of_means
from ombud.stats.statistics import Floats
from ombud.systems.rerankers.balance import identity_codes

if TYPE_CHECKING:
    from ombud.data.ids import Ids
    from ombud.data.interactions import Interactions
    from ombud.data.recommendations import Recommendations
    from ombud.questions.authors.creators import Creators


PIPELINE = "creator-pipeline/share"
"""The key of every share of the pipeline; `details` has its stage."""

STAGE = "stage"
"""The name of the stage in `details`."""

ORDER = ("catalogue", "platform", "interactions", "profiles", "baseline", "lists", "reranked")
"""The stages, from the catalogue on."""


def stage(name: str, of: int, known: int, identity: str, **about: Any) -> Estimate:
    """Return the share of an identity among known items of a stage."""
    return proportion(
        of, known, metric=f"share among {name} items", key=PIPELINE, label=identity, **about
    )


def bounds(of: float, known: float, everything: float) -> dict[str, float]:
    """Return the share if no unknown one, and if every unknown one, were of the identity."""
    unknown = everything - known
    return {"lowest": of / everything, "highest": (of + unknown) / everything}


def among_users(
    count: npt.ArrayLike, known: npt.ArrayLike, *, metric: str, level: float, **about: Any
) -> Estimate:
    """Return the sum of counts over the sum of totals, with users (or `unit`) as independent.

    Examples
    --------
    >>> e = among_users([1, 2, 0], [2, 2, 1], metric="m", level=0.95)
    >>> e.value, e.n
    (0.6, 3)
    """
    y, n = np.asarray(count, dtype=np.float64), np.asarray(known, dtype=np.float64)
    y, n = y[n > 0], n[n > 0]
    about["level"] = level
    about.setdefault("unit", "user")
    if not len(n):
        nothing = "no item is known" if about["unit"] == "item" else "no user has a known item"
        return Estimate.undefined(
            reason_code="no-labels", metric=metric, reason=nothing, n=0, **about
        )
    found = ratio_of_means(y, n, level=level)
    value = float(y.sum() / n.sum())
    low, high = float(found.low), float(found.high)
    if np.isnan(low) or np.isnan(high):
        method = "none: users show no spread, which is not certainty"
        return Estimate(metric=metric, value=value, interval=None, method=method, n=len(n), **about)
    ends = (low, min(high, 1.0))
    return Estimate(
        metric=metric, value=value, interval=ends, method="log-delta", n=len(n), **about
    )


def mean_share(
    values: Floats, name: str, identity: str, details: dict[str, Any], **about: Any
) -> Estimate:
    """Return the mean share over users; NaN users are excluded, their number is in `details`."""
    there = values[~np.isnan(values)]
    sd = float(there.std(ddof=1)) if len(there) > 1 else None
    details = {STAGE: name, "sd": sd, "without": int(len(values) - len(there))} | details
    return mean_estimate(
        values, metric=f"mean share in {name}", key=PIPELINE, label=identity, unit="user",
        details=details, **about,
    )  # fmt: skip


ALL_CREATORS = "creator-catalogue/all-creators-share"
"""The key of shares for which all creators count; `details` has the stage."""

_FEWEST = 10


def all_creator_shares(
    path: Path | str,
    interactions: Interactions,
    creators: Creators,
    catalogue: Path | str,
    level: float,
) -> list[Estimate]:
    """Return shares among catalogued items, items of the platform, and interactions.

    Parameters
    ----------
    path
        A table of `item`, the attribute, and `weight`: what the item counts for that identity. In
        equal parts, weights of an item add up to 1, those without an identity included (``ombud
        link build --creators all``); where an item counts for each identity, they are 1 (``any``),
        and shares may add up to more than 1.
    interactions
        The histories.
    creators
        The identities by first creators, whose names come first.
    catalogue
        A table of all catalogued items; empty for none.
    level
        Of the intervals.
    """
    table = _read(path, creators.attribute)
    names = [*creators.names, *sorted(set(table["identity"]) - set(creators.names))]
    counts = np.bincount(interactions.matrix.indices, minlength=interactions.n_items)
    weights = _weights(table, interactions.items, names)
    found = []
    if catalogue:
        by = [creators.attribute]
        items = Items.from_frame(str(catalogue), by=by, source=Path(catalogue).name).items
        found += _among_items(_weights(table, items, names), names, "catalogue", level)
    found += _among_items(weights[counts > 0], names, "platform", level)
    matrix = interactions.matrix
    ones = sparse.csr_array(
        (np.ones(matrix.nnz), matrix.indices, matrix.indptr), shape=matrix.shape
    )
    known: Floats = np.asarray(ones @ _known(weights), dtype=np.float64)
    for g, name in enumerate(names):
        mine: Floats = np.asarray(ones @ _column(weights, g), dtype=np.float64)
        if (few := _too_few(weights[counts > 0], g, name, "interactions", "user", level)) is None:
            found.append(
                among_users(
                    mine, known, metric="share among interactions, all creators",
                    key=ALL_CREATORS, label=name, level=level,
                    details=_details("interactions", mine.sum(), known.sum(), matrix.nnz),
                )
            )  # fmt: skip
        else:
            found.append(few)
    return found


def all_creator_list_shares(
    path: Path | str,
    interactions: Interactions,
    creators: Creators,
    users: Ids,
    lists: Mapping[str, Recommendations],
    level: float,
) -> list[Estimate]:
    """Return the mean shares of profiles, and of each system's lists.

    `users` are those of the profiles; `lists` are cut to the places that count. All else is as in
    `all_creator_shares`.
    """
    table = _read(path, creators.attribute)
    names = [*creators.names, *sorted(set(table["identity"]) - set(creators.names))]
    rows = interactions.users.codes(users)
    matrix = interactions.matrix[rows[rows >= 0]]
    ones = sparse.csr_array(
        (np.ones(matrix.nnz), matrix.indices, matrix.indptr), shape=matrix.shape
    )
    found = _means(ones, _weights(table, interactions.items, names), names, "profiles", level)
    # Lists may have items that nobody met; the table says who made those too.
    own, _ = Vocabulary.encode(table["item"].to_arrow())
    weights = _weights(table, own, names)
    for system, some in lists.items():
        places = identity_codes(some, own, np.arange(len(own)))
        row, place = np.nonzero(places >= 0)
        there = sparse.csr_array(
            (np.ones(len(row)), (row, places[row, place])), shape=(len(places), len(own))
        )
        there = there[np.asarray(some.lengths) > 0]
        found += _means(there, weights, names, "lists", level, system=system)
    return found


def _means(
    counts: sparse.csr_array,
    weights: sparse.csr_array,
    names: Sequence[str],
    stage: str,
    level: float,
    **about: Any,
) -> list[Estimate]:
    """Return mean shares over users; counts are users x items."""
    known: Floats = np.asarray(counts @ _known(weights), dtype=np.float64)
    sums: Floats = np.asarray((counts @ weights).toarray(), dtype=np.float64)
    values: Floats = np.full(sums.shape, np.nan)
    np.divide(sums, known[:, None], out=values, where=known[:, None] > 0)
    return [
        mean_share(values[:, g], stage, name, {}, level=level, **about).replace(
            metric=f"mean share in {stage}, all creators", key=ALL_CREATORS
        )
        for g, name in enumerate(names)
    ]


def _read(path: Path | str, attribute: str) -> pl.DataFrame:
    """Return `item`, `identity`, `weight` of the rows that have an identity."""
    columns = [
        Column("item", "id"),
        Column(attribute, "category", nullable=True),
        Column("weight", "number"),
    ]
    source = Path(path).name
    table = read_table(str(path), columns, source).rename({attribute: "identity"})
    wrong = table.filter(~pl.col("weight").is_between(0, 1 + 1e-9)).height
    if wrong:
        raise DataError(source, [f"{wrong:,} weights are not from 0 to 1"])
    return table.drop_nulls("identity")


def _weights(table: pl.DataFrame, items: Vocabulary, names: Sequence[str]) -> sparse.csr_array:
    """Return items x identities; few of a catalogue's items have any of many identities."""
    rows = items.codes(table["item"].to_arrow())
    place = {name: g for g, name in enumerate(names)}
    columns = table["identity"].replace_strict(place, return_dtype=pl.Int64).to_numpy()
    here = rows >= 0
    values = table["weight"].to_numpy()[here]
    shape = (len(items), len(names))
    return sparse.csr_array((values, (rows[here], columns[here])), shape=shape)


def _column(weights: sparse.csr_array, g: int) -> Floats:
    found: Floats = weights[:, [g]].toarray().ravel()
    return found


def _known(weights: sparse.csr_array) -> Floats:
    """Return how much of each item is known: of equal parts the known ones, otherwise all of it."""
    found: Floats = np.minimum(weights.sum(axis=1), 1.0)
    return found


def _among_items(
    weights: sparse.csr_array, names: Sequence[str], stage: str, level: float
) -> list[Estimate]:
    known = _known(weights)
    found = []
    for g, name in enumerate(names):
        mine = _column(weights, g)
        few = _too_few(weights, g, name, stage, "item", level)
        own = among_users(
            mine, known, metric=f"share among {stage} items, all creators",
            key=ALL_CREATORS, label=name, level=level, unit="item",
            details=_details(stage, mine.sum(), known.sum(), len(known)),
        )  # fmt: skip
        found.append(own if few is None else few)
    return found


def _details(stage: str, of: float, known: float, everything: float) -> dict[str, Any]:
    return {STAGE: stage, "of": float(known), **bounds(float(of), float(known), everything)}


def _too_few(
    weights: sparse.csr_array, g: int, name: str, stage: str, unit: str, level: float
) -> Estimate | None:
    count = int(np.count_nonzero(_column(weights, g)))
    if count >= _FEWEST:
        return None
    counted = "interactions" if stage == "interactions" else f"{stage} items"
    return Estimate.undefined(
        reason_code="too-few-units",
        metric=f"share among {counted}, all creators", key=ALL_CREATORS, label=name, n=count,
        reason=f"not enough data: {count} items; {_FEWEST} are needed", unit=unit, level=level,
        details={STAGE: stage},
    )  # fmt: skip
