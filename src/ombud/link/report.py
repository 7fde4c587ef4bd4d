"""What came out of linking: outcomes by data set, by item and by interaction."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from ombud.link.store import LinkTables

__all__ = ["outcome_table"]


def outcome_table(
    tables: LinkTables, items: pl.DataFrame, interactions: Path, attribute: str
) -> pl.DataFrame:
    """Return `set`, `outcome`, `items`, `interactions` for catalogues and data sets of ratings.

    An outcome is one of the five without an identity, or the identity itself.
    """
    status = f"{attribute}_status"
    outcome = pl.when(pl.col(status) == "known").then(pl.col(attribute)).otherwise(status)
    named = items.select("item", "cluster", "flagged", outcome=outcome)
    parts = []
    members = (
        tables.scan("books")
        .select("record", "source")
        .join(tables.scan("clusters").select("record", "cluster"), on="record")
    )
    pairs = members.select("source", "cluster").unique().collect(engine="streaming")
    counted = (
        pairs.join(named, on="cluster")
        .group_by(set="source", outcome="outcome")
        .agg(items=pl.len(), flagged=pl.col("flagged").sum())
    )
    parts.append(counted.with_columns(interactions=pl.lit(None, dtype=pl.UInt32)))
    for file in sorted(interactions.glob("*.parquet")) if interactions.is_dir() else []:
        rated = pl.scan_parquet(file).group_by("item").agg(n=pl.len()).collect(engine="streaming")
        joined = (
            rated.join(named, on="item")
            .group_by("outcome")
            .agg(items=pl.len(), flagged=pl.col("flagged").sum(), interactions=pl.col("n").sum())
        )
        parts.append(joined.with_columns(set=pl.lit(file.stem)))
    columns = ["set", "outcome", "items", "interactions", "flagged"]
    whole = [p.select(columns).with_columns(pl.col(columns[2:]).cast(pl.Int64)) for p in parts]
    return pl.concat(whole).sort("set", "items", descending=[False, True])
