"""Ratings on items: ids become clusters, and two data sets come out of each source.

*Explicit*: rows with a rating; several ratings of one item by one user become their median.
*Implicit*: all rows, one for each user and item, low ratings included.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from ombud.files import write_parquet
from ombud.link.isbn import extract_isbns, isbn_texts
from ombud.link.store import LinkTables, RatingSet

__all__ = ["link_ratings"]


def _ids_to_items(tables: LinkTables, known: RatingSet) -> pl.DataFrame:
    """Return `id`, `item`, `cluster` (missing: the id is in no record) of all rated ids."""
    ratings = tables.scan(f"ratings/{known.source}")
    ids = ratings.select(id="item").unique().collect(engine="streaming")
    names = tables.scan("cluster_items").select("cluster", named="item")
    if known.refers:
        books = tables.scan("books").filter(pl.col("source") == known.refers)
        keyed = books.select("record", id="key").join(
            tables.scan("clusters").select("record", "cluster"), on="record"
        )
        keyed = keyed.group_by("id").agg(pl.col("cluster").first())
        found = ids.lazy().join(keyed, on="id", how="left").join(names, on="cluster", how="left")
        own = pl.format("{}:{}", pl.lit(known.refers), pl.col("id"))
        return found.select("id", "cluster", item=pl.coalesce("named", own)).collect()
    isbns = extract_isbns(ids["id"]).unique("row", keep="first")
    keyed_ids = (
        ids.with_row_index("row")
        .join(isbns.select("row", "isbn"), on="row", how="left")
        .lazy()
        .join(tables.scan("isbn_clusters"), on="isbn", how="left")
        .join(names, on="cluster", how="left")
    )
    item = pl.coalesce("named", isbn_texts(pl.col("isbn")), "id")
    return keyed_ids.select("id", "cluster", item=item).collect()


def link_ratings(tables: LinkTables, known: RatingSet, folder: Path) -> dict[str, Any]:
    """Write the interactions of one source on items; return counts.

    Writes ``SOURCE-explicit.parquet`` (where there are ratings) and ``SOURCE-implicit.parquet`` to
    the folder, and the table ``ids/SOURCE``.
    """
    ids = _ids_to_items(tables, known)
    (tables.folder / "ids").mkdir(exist_ok=True)
    tables.write(f"ids/{known.source}", ids.sort("id"))
    rows = tables.scan(f"ratings/{known.source}").rename({"item": "id"})
    rows = rows.join(ids.select("id", "item").lazy(), on="id")
    has_times = rows.select(pl.col("time").is_not_null().any()).collect().item()
    time = [pl.col("time").max()] if has_times else []
    pair = ["user", "item"]
    implicit = rows.group_by(pair).agg(*time, n=pl.len()) if has_times else None
    folder.mkdir(parents=True, exist_ok=True)
    facts: dict[str, Any] = {"rows": known.rows, "ids": ids.height}
    facts["ids_in_no_record"] = int(ids["cluster"].is_null().sum())
    every = implicit.drop("n") if implicit is not None else rows.select(pair).unique()
    for kind, frame in (
        ("implicit", every),
        (
            "explicit",
            rows.drop_nulls("rating").group_by(pair).agg(pl.col("rating").median(), *time),
        ),
    ):
        table = frame.collect(engine="streaming").sort(pair)
        if not table.height:
            continue
        write_parquet(folder / f"{known.source}-{kind}.parquet", table)
        facts[kind] = {
            "interactions": table.height,
            "users": table["user"].n_unique(),
            "items": table["item"].n_unique(),
        }
    return facts
