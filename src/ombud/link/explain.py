"""Why an item has the outcome it has: records, names, authority records, assertions."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from ombud.errors import DataError, ResultError
from ombud.files import read_json
from ombud.link.isbn import isbn_key, isbn_text
from ombud.link.store import LinkTables, kinds_of_isbn
from ombud.link.vocabulary import IdentityMapping

_MOST = 200

_REASONS = {
    "no_book": "no record that was read has the id",
    "no_author": "no record names a first author, or only a placeholder such as 'various'",
    "no_authority": "no authority record has the id or the name of a first author",
    "unknown": "authority records of that name are there, but assert nothing",
    "ambiguous": "authority records assert different identities",
    "known": "one identity is asserted",
}

_EXCLUDED = "records have the id, but it is in the exclusion file and ties nothing together"
_OF_OTHER_KIND = (
    "records have the id only as that of a set or as a cancelled one, which the options leave out"
)


@dataclass(frozen=True)
class Explanation:
    """Everything that led to the outcome of one item, as plain data."""

    asked: str  # what was asked for
    item: str
    outcome: str  # one of the six
    identity: str | None  # the asserted identity, where there is one
    reason: str  # the outcome in words
    facts: dict[str, Any]  # the row of the table of items
    # Rows; at most 200 of each, and `counts` says how many there are.
    records: list[dict[str, Any]]
    names: list[dict[str, Any]]
    matches: list[dict[str, Any]]
    assertions: list[dict[str, Any]]
    counts: dict[str, int]  # the number of rows of each kind
    # Further items that records of the same id belong to; the item is that of the first record.
    other_items: list[str] = field(default_factory=list)


class LinkFolder:
    """A folder that `build_links` wrote.

    Parameters
    ----------
    path
        The folder.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        if not (self.path / "link.json").is_file():
            raise ResultError(f"{self.path} is no link folder: there is no link.json in it")
        self.facts = read_json(self.path / "link.json")
        if self.facts.get("format") != 1:
            raise ResultError(
                f"{self.path} has format {self.facts.get('format')!r}; this ombud reads format 1"
            )
        self.tables = LinkTables(self.path / "link")

    @property
    def attribute(self) -> str:
        """The attribute that was resolved."""
        return str(self.facts["options"]["attribute"])

    @property
    def items(self) -> pl.LazyFrame:
        """The table of items: the item, the attribute, the outcome."""
        return pl.scan_parquet(self.path / "items.parquet")

    @property
    def item_facts(self) -> pl.LazyFrame:
        """The table of items with how each outcome came about."""
        return pl.scan_parquet(self.path / "item_facts.parquet")

    def find(self, asked: str) -> tuple[str, int | None]:
        """Return the item and cluster of an ISBN, an item, or the id of a record or rating.

        Raises
        ------
        DataError
            If nothing of the name is there.
        """
        return self._find(asked)[0]

    def _find(self, asked: str) -> tuple[tuple[str, int | None], list[str]]:
        """Return the item and cluster, and further items that have records of the same id."""
        text = asked.strip()
        names = self.tables.scan("cluster_items")
        direct = names.filter(pl.col("item") == text).select("item", "cluster").collect()
        if direct.height:
            return direct.row(0), []
        key = isbn_key(text)
        if key is not None:
            own = self.tables.scan("isbn_clusters").filter(pl.col("isbn") == key)
            found = own.join(names, on="cluster").select("item", "cluster").collect()
            if found.height:
                return found.row(0), []
        source, _, rest = text.partition(":")
        books = self.tables.scan("books").filter(
            (pl.col("key") == text) | ((pl.col("source") == source) & (pl.col("key") == rest))
        )
        keyed = books.join(self.tables.scan("clusters"), on="record").join(names, on="cluster")
        records = keyed.sort("record").select("source", "item", "cluster").collect()
        found = records.select("item", "cluster").unique(maintain_order=True)
        sources = records["source"].unique().sort().to_list()
        if found.height > 1 and len(sources) > 1:
            fault = f"{asked!r:.80} is an id of {', '.join(sources)}, and not of one item"
            raise DataError("link", [f"{fault}; write SOURCE:ID"])
        if found.height:
            # As ratings of such an id are linked: the first record counts.
            return found.row(0), found["item"].to_list()[1:]
        lone = [text] if key is None else [text, isbn_text(key)]
        items = self.items.filter(pl.col("item").is_in(lone)).select("item").collect()
        if items.height:
            return (str(items.item(0, 0)), None), []
        unused, _ = self._unused(text)
        if unused:
            raise DataError("link", [f"{asked!r:.80} is no item of this folder: {unused}"])
        raise DataError("link", [f"{asked!r:.80} is no ISBN, item or id of this folder"])

    def _unused(self, text: str) -> tuple[str, pl.DataFrame]:
        """Return why records that have an ISBN do not make it theirs, and these records."""
        key = isbn_key(text)
        if key is None:
            return "", pl.DataFrame()
        rows = self.tables.scan("isbns").filter(pl.col("isbn") == key)
        own = rows.select("record", "kind").collect()
        if not own.height:
            return "", pl.DataFrame()
        options = self.facts["options"]
        kinds = kinds_of_isbn(options["set_isbns"] == "use", options["cancelled_isbns"])
        excluded = own["kind"].is_in(kinds).any()
        records = self._records(own.lazy().select("record").unique())
        return _EXCLUDED if excluded else _OF_OTHER_KIND, records

    def explain(self, asked: str) -> Explanation:
        """Return everything that led to the outcome of an item."""
        (item, cluster), others = self._find(asked)
        row = self.item_facts.filter(pl.col("item") == item).collect().row(0, named=True)
        outcome = row[f"{self.attribute}_status"]
        parts: dict[str, pl.DataFrame] = {
            name: pl.DataFrame() for name in ("records", "names", "matches", "assertions")
        }
        if cluster is not None:
            parts = self._parts(cluster)
        reason = _REASONS[outcome]
        if outcome == "no_book":
            unused, parts["records"] = self._unused(item)
            reason = unused or reason
        if row["via"] == "given":
            reason = "as the source resolved it"
        elif outcome == "known" and row["changed"]:
            reason = "the latest of several dated assertions counts"
            if row["changed_by_records"]:
                reason += "; they are those of several authority records"
        elif row["mixed_creators"]:
            reason = "its creators have different identities; item_creators.parquet has each"
        return Explanation(
            asked=asked,
            item=item,
            outcome=outcome,
            identity=row[self.attribute],
            reason=reason,
            facts=row,
            counts={name: frame.height for name, frame in parts.items()},
            other_items=others,
            **{name: frame.head(_MOST).to_dicts() for name, frame in parts.items()},
        )

    def _records(self, members: pl.LazyFrame) -> pl.DataFrame:
        """Return records with their ISBNs."""
        scan = self.tables.scan
        records = scan("books").join(members, on="record", how="semi").collect()
        isbns = scan("isbns").join(members, on="record", how="semi").collect()
        texts = isbns.with_columns(
            isbn=pl.col("isbn").map_elements(isbn_text, return_dtype=pl.String)
        )
        texts = texts.group_by("record").agg(isbns=pl.col("isbn").unique().sort())
        return records.join(texts, on="record", how="left").sort("record")

    def _parts(self, cluster: int) -> dict[str, pl.DataFrame]:
        scan = self.tables.scan
        members = scan("clusters").filter(pl.col("cluster") == cluster).select("record")
        records = self._records(members)
        people = scan("cluster_people").filter(pl.col("cluster") == cluster)
        named = people.join(scan("people"), on="person").collect()
        keys = scan("person_keys").join(people, on="person", how="semi").collect()
        keys = keys.group_by("person").agg("key", placeholder=pl.col("placeholder").all())
        names = named.join(keys, on="person", how="left").drop("cluster")
        matches = scan("matches").join(people.select("person").unique(), on="person")
        authorities = scan("authorities").rename({"key": "record_key"})
        matches = matches.join(authorities, on="authority")
        found = matches.collect().sort("person", "authority")
        said = scan("assertions").filter(pl.col("attribute") == self.attribute)
        said = said.join(matches.select("authority").unique(), on="authority", how="semi")
        said = said.join(scan("authorities").select("authority", "source", "key"), on="authority")
        mapping = IdentityMapping(self.facts["mapping"]["version"], scan("mapping").collect())
        coded = mapping.codes(said.collect())
        return {
            "records": records,
            "names": names.sort("position", "person"),
            "matches": found,
            "assertions": coded.drop("attribute", "known").sort("authority"),
        }
