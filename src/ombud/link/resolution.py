"""Who made an item, and what is asserted about them: exactly one outcome for each item.

======================  =============================================================
``no_book``             the id is in no record, or is not used (exclusion file, sets)
``no_author``           no record names a first author (placeholders name nobody)
``no_authority``        no authority record has that name or id
``unknown``             authority records are there, and assert nothing
``ambiguous``           they contradict each other
``known``               one identity is asserted
======================  =============================================================

An id that book and authority record share beats a name: names of that author are then not used.
Values that were inferred stand in only where nobody asserts anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from ombud.link.names import is_placeholder, name_keys
from ombud.link.store import LinkTables
from ombud.link.vocabulary import IdentityMapping, single_values

OUTCOMES = ("no_book", "no_author", "no_authority", "unknown", "ambiguous", "known")
"""The six outcomes."""


def settle(said: Sequence[tuple[str, int | None, int | None]]) -> tuple[list[str], bool]:
    """Return the identities that stand at the end of dated assertions, and whether they changed.

    Assertions whose dates do not overlap do not contradict each other: the latest counts. Of two
    about one and the same year none is later, and one that ends before it begins has no dates.

    `said` has code, first year and last year of each assertion about one person; None is open.

    Examples
    --------
    >>> settle([("male", 1926, 1972), ("female", 1972, None)])
    (['female'], True)
    >>> settle([("male", 1926, None), ("female", None, None)])
    (['female', 'male'], False)
    >>> settle([("male", 1950, 1950), ("female", 1950, 1950)])
    (['female', 'male'], False)
    """
    codes = sorted({code for code, _, _ in said})
    if len(codes) < 2:
        return codes, False
    low, high = float("-inf"), float("inf")
    spans = [
        (low if start is None else start, high if end is None else end, code)
        for code, start, end in said
    ]
    spans = [(a, b, code) if a <= b else (low, high, code) for a, b, code in spans]
    apart = all(
        a[:2] != b[:2] and (a[1] <= b[0] or b[1] <= a[0])
        for a in spans
        for b in spans
        if a[2] != b[2]
    )
    if not apart:
        return codes, False
    latest = max(spans, key=lambda span: (span[0], span[1]))
    return [latest[2]], True


def _settled(said: pl.DataFrame, by: str) -> pl.DataFrame:
    """Return the assertions that stand at the end for each of `by`, and whether they `changed`.

    `said` has `by`, `code`, `start`, `end` (years), `changed` and further columns; `by` is what
    assertions are about: an authority record, a person, a cluster.
    """
    contested = pl.col("code").n_unique().over(by) > 1
    # An assertion without any date overlaps all others: nothing is settled where one is.
    dated = (pl.col("start").is_not_null() | pl.col("end").is_not_null()).all().over(by)
    said = said.with_columns(contested=contested, dated=contested & dated)
    winners: list[tuple[Any, str]] = []
    for (key,), own in said.filter("dated").group_by(by, maintain_order=True):
        codes, changed = settle(own.select("code", "start", "end").rows())
        if changed:
            winners.append((key, codes[0]))
    latest = pl.DataFrame(winners, schema={by: said.schema[by], "_latest": pl.String}, orient="row")
    said = said.join(latest, on=by, how="left", maintain_order="left")
    kept = pl.col("_latest").is_null() | (pl.col("_latest") == pl.col("code"))
    settled = said.filter(kept).with_columns(
        changed=pl.col("changed") | pl.col("_latest").is_not_null()
    )
    return settled.drop("contested", "dated", "_latest")


def _years(*columns: str) -> pl.Expr:
    return pl.col(*columns).str.extract(r"(\d{3,4})", 1).cast(pl.Int32)


_REVERSED = (_years("start") > _years("end")).fill_null(False)


def count_reversed(tables: LinkTables, attribute: str) -> dict[str, int]:
    """Return for each source how many assertions end before they begin."""
    said = tables.scan("assertions").filter((pl.col("attribute") == attribute) & _REVERSED)
    sources = tables.scan("authorities").select("authority", "source")
    counts = said.join(sources, on="authority").group_by("source").len().sort("source").collect()
    return {str(source): int(n) for source, n in counts.rows()}


def _codes_of_authorities(
    tables: LinkTables, mapping: IdentityMapping, attribute: str, dated: bool
) -> pl.DataFrame:
    """Return what each record asserts in the end; unless `dated`, whatever its dates.

    The columns are `authority`, `code`, `start`, `end`, `inferred` and `changed`.
    """
    own = tables.scan("assertions").filter(pl.col("attribute") == attribute)
    said = single_values(own).collect()
    years = pl.when(~_REVERSED & dated).then(_years("start", "end"))
    said = mapping.codes(said).with_columns(years).drop_nulls("code")
    said = said.with_columns(changed=pl.lit(False)).sort("authority", maintain_order=True)
    settled = _settled(said, "authority")
    columns = ["authority", "code", "start", "end", "inferred", "changed"]
    return settled.select(columns).unique(maintain_order=True)


def _identities(linked: pl.LazyFrame, codes: pl.DataFrame, by: str) -> pl.LazyFrame:
    """Return what all matching authority records together assert about each of `by`.

    Each record is settled by itself first, then all of them: what two records say of different
    years is no contradiction either. Inferred values count only where nothing is asserted.

    `linked` has `by` (``"cluster"`` or ``"person"``) and `authority`; `codes` are those of
    `_codes_of_authorities`.

    Returns
    -------
    polars.LazyFrame
        `by`, `n` (distinct identities), `code`, `inferred`, `changed`, and `changed_by_records`:
        whether it took several records to see the change.
    """
    said = linked.select(by, "authority").unique().join(codes.lazy(), on="authority")
    kept = said.filter(pl.col("inferred") == pl.col("inferred").min().over(by))
    pooled = kept.sort(by, "authority", "code").collect(engine="streaming")
    before = pooled.group_by(by).agg(was=pl.col("code").n_unique())
    settled = _settled(pooled, by).join(before, on=by)
    return (
        settled.lazy()
        .group_by(by)
        .agg(
            n=pl.col("code").n_unique(),
            code=pl.col("code").first(),
            inferred=pl.col("inferred").any(),
            changed=pl.col("changed").any(),
            changed_by_records=pl.col("was").first() > pl.col("code").n_unique(),
        )
    )


def write_people(
    tables: LinkTables, known: frozenset[str], *, first_only: bool, fold_marks: bool
) -> dict[str, int]:
    """Write who made what: `people`, `person_keys`, `person_ids`, `cluster_people`.

    A *person* is an author of a source (by its id) or a name as it stands in records.
    """
    creators = tables.scan("creators")
    if first_only:
        creators = creators.filter(pl.col("position") == 0)
    books = tables.scan("books").select("record", lone=pl.col("key").ne_missing(pl.col("work")))
    creators = creators.join(books, on="record").join(
        tables.scan("clusters").select("record", "cluster"), on="record"
    )
    # A work's own list of authors counts only where none of its editions has one.
    edition = pl.col("lone").any().over("cluster", "source")
    creators = creators.filter(pl.col("lone") | ~edition)
    who = ["source", "author", "name"]
    pairs = creators.select("cluster", "position", *who).unique().collect(engine="streaming")
    pairs = pairs.sort("cluster", "position", *who)  # so that people have the same numbers always
    people = pairs.select(who).unique(maintain_order=True).with_row_index("person")
    members = pairs.join(people, on=who, nulls_equal=True).select("cluster", "position", "person")
    tables.write("cluster_people", members.unique().sort("cluster", "position", "person"))
    named = people.filter(pl.col("author").is_null()).select("person", "name")
    by_id = people.filter(pl.col("author").is_not_null()).select("person", "source", "author")
    author = ["source", "author"]
    names = tables.scan("author_names").join(by_id.lazy(), on=author, maintain_order="left")
    every = pl.concat([named, names.select("person", "name").collect(engine="streaming")])
    keys = every.select("person", key=name_keys(pl.col("name"), fold_marks=fold_marks))
    keys = keys.explode("key").drop_nulls().unique(maintain_order=True)
    keys = keys.with_columns(placeholder=is_placeholder(pl.col("key"), known))
    tables.write("person_keys", keys)
    ids = tables.scan("author_ids").join(by_id.lazy(), on=author).select("person", "id").unique()
    tables.write("person_ids", ids.collect(engine="streaming").sort("person", "id"))
    tables.write("people", people)
    real = keys.filter(~pl.col("placeholder"))["person"].n_unique()
    return {"people": people.height, "people_with_a_usable_name": real}


def match_people(tables: LinkTables, known: frozenset[str], *, fold_marks: bool) -> dict[str, int]:
    """Write `authority_keys` and `matches`: `person`, `authority`, `via` (id or name), `key`."""
    names = tables.scan("authority_names").collect(engine="streaming")
    keys = names.select("authority", key=name_keys(pl.col("name"), fold_marks=fold_marks))
    keys = keys.explode("key").drop_nulls().unique(maintain_order=True)
    keys = keys.filter(~is_placeholder(pl.col("key"), known))
    tables.write("authority_keys", keys)
    by_id = tables.scan("person_ids").join(tables.scan("authority_ids"), on="id")
    found = by_id.select("person", "authority", key="id").unique().collect(engine="streaming")
    own = tables.scan("person_keys").filter(~pl.col("placeholder"))
    own = own.join(found.select("person").lazy(), on="person", how="anti")
    by_name = own.join(keys.lazy(), on="key").select("person", "authority", "key")
    named = by_name.group_by("person", "authority").agg(pl.col("key").min()).collect()
    matches = pl.concat(
        [
            found.with_columns(via=pl.lit("id")),
            named.select(found.columns).with_columns(via=pl.lit("name")),
        ]
    )
    tables.write("matches", matches.sort("person", "authority", "key"))
    return {"matches_by_id": found.height, "matches_by_name": named.height}


def resolve_items(
    tables: LinkTables,
    mapping: IdentityMapping,
    attribute: str,
    *,
    flag_authors: int,
    creators: str = "first",
    published: bool = False,
) -> pl.DataFrame:
    """Return one row a cluster: its item, identity, outcome, and how it came about.

    With ``creators="any"`` all creators count, each resolved by itself: one identity among those
    that are known is the item's. Several leave it *ambiguous* here, with `mixed_creators`; the
    table of creators counts the item for each of them. Otherwise first creators count.

    An item whose records give the id of an authority record uses that record alone; by name, all
    records are pooled. As `published`, an id is one more way to a record, and dates of assertions
    settle nothing: any contradiction makes an item ambiguous.
    """
    codes = _codes_of_authorities(tables, mapping, attribute, not published)
    tables.write("authority_codes", codes)
    everybody = tables.scan("cluster_people")
    first = everybody.filter(pl.col("position") == 0).select("cluster", "person").unique()
    members = everybody.select("cluster", "person").unique() if creators == "any" else first
    main = _main_names(tables)
    matched = tables.scan("matches").select("person").unique()

    def named(people: pl.LazyFrame) -> pl.LazyFrame:
        linked = people.join(main, on="person", how="left").join(
            matched.with_columns(linked=pl.lit(True)), on="person", how="left"
        )
        return linked.filter(pl.col("key").is_not_null() | pl.col("linked").is_not_null())

    count = pl.col("key").n_unique().cast(pl.UInt32)
    authors = (
        named(first)
        .group_by("cluster")
        .agg(
            # Records of one book may differ in whom they name first: the most frequent.
            n_first_authors=count,
            creator=pl.col("key").drop_nulls().sort().mode(maintain_order=True).first(),
        )
    )
    there = named(members).select("cluster", somebody=pl.lit(True)).unique()
    linked = members.join(tables.scan("matches"), on="person")
    if not published:
        by_id = pl.col("via") == "id"
        linked = linked.filter(by_id | ~by_id.any().over("cluster"))
    sources = tables.scan("authorities").select("authority", "source")
    records = linked.select("cluster", "authority", "via").unique().join(sources, on="authority")
    same = records.group_by("cluster", "source").agg(n=pl.col("authority").n_unique())
    homonyms = same.group_by("cluster").agg(homonyms=pl.col("n").max() > 1)
    rank = pl.col("via").replace_strict({"id": 0, "name": 1}, default=2)
    authorities = records.group_by("cluster").agg(
        n_authorities=pl.col("authority").n_unique().cast(pl.UInt32),
        via=pl.col("via").sort_by(rank).first(),
    )
    identities = (
        _of_any(members, _identities(tables.scan("matches"), codes, "person"))
        if creators == "any"
        else _identities(linked, codes, "cluster").with_columns(mixed_creators=pl.lit(False))
    )
    table = tables.scan("cluster_items")
    for part in (authors, there, authorities, homonyms, identities):
        table = table.join(part, on="cluster", how="left")
    known = pl.col("n") == 1
    status = (
        pl.when(pl.col("somebody").is_null()).then(pl.lit("no_author"))
        .when(pl.col("n_authorities").is_null()).then(pl.lit("no_authority"))
        .when(pl.col("n").is_null()).then(pl.lit("unknown"))
        .when(known).then(pl.lit("known"))
        .otherwise(pl.lit("ambiguous"))
    )  # fmt: skip
    result = table.select(
        "cluster",
        "item",
        pl.when(known).then("code").alias(attribute),
        status.alias(f"{attribute}_status"),
        pl.col("inferred")
        .fill_null(False)
        .and_(known.fill_null(False))
        .alias(f"{attribute}_inferred"),
        pl.col("via"),
        pl.col("n_authorities", "n_first_authors").fill_null(0),
        pl.col("homonyms", "changed", "changed_by_records", "mixed_creators").fill_null(False),
        "creator",
        "n_isbns",
        "n_records",
        "n_works",
        flagged=pl.col("n_first_authors").fill_null(0) > flag_authors,
    ).collect(engine="streaming")
    result = _as_given(tables, result, mapping, attribute)
    return result.sort("item")


def _main_names(tables: LinkTables) -> pl.LazyFrame:
    """Return `person` and `key`: the first of the names by which a person is compared."""
    usable = tables.scan("person_keys").with_row_index("row").filter(~pl.col("placeholder"))
    return usable.group_by("person").agg(key=pl.col("key").sort_by("row").first())


def _of_any(members: pl.LazyFrame, people: pl.LazyFrame) -> pl.LazyFrame:
    """Return what is known of clusters when any creator counts; as `_identities`."""
    own = members.join(people, on="person")
    clear = pl.col("n") == 1
    codes = pl.col("code").filter(clear)
    # Without anybody known, one contradiction among the creators makes the item ambiguous.
    kinds = pl.when(clear.any()).then(codes.n_unique()).otherwise(pl.col("n").max())
    return own.group_by("cluster").agg(
        n=kinds,
        code=codes.sort().first(),
        inferred=pl.col("inferred").filter(clear).any(),
        changed=pl.col("changed").any(),
        changed_by_records=pl.col("changed_by_records").any(),
        mixed_creators=codes.n_unique() > 1,
    )


_GIVEN = {
    "no-book": "no_book",
    "no-loc-book": "no_book",
    "no-book-author": "no_author",
    "no-loc-author": "no_author",
    "no-author-rec": "no_authority",
    "no-viaf-author": "no_authority",
    "unknown": "unknown",
    "ambiguous": "ambiguous",
}


def _as_given(
    tables: LinkTables, items: pl.DataFrame, mapping: IdentityMapping, attribute: str
) -> pl.DataFrame:
    """Put in the outcomes that a source has resolved itself."""
    given = tables.scan("given").collect()
    if not given.height:
        return items
    keyed = tables.scan("books").select("record", "source", "key").collect()
    found = given.join(keyed, on=["source", "key"]).join(
        tables.scan("clusters").select("record", "cluster").collect(), on="record"
    )
    named = found.with_columns(attribute=pl.lit(attribute), vocabulary=pl.col("source"))
    coded = mapping.codes(named)
    outcome = pl.col("value").replace_strict(_GIVEN, default=None, return_dtype=pl.String)
    coded = coded.with_columns(given=outcome.fill_null("known")).sort("cluster", "record")
    coded = coded.unique("cluster", keep="first", maintain_order=True)
    coded = coded.select("cluster", "given", given_code="code")
    known = pl.col("given") == "known"
    joined = items.join(coded, on="cluster", how="left")
    return joined.with_columns(
        pl.when(known).then("given_code")
        .when(pl.col("given").is_null()).then(pl.col(attribute)).alias(attribute),
        pl.coalesce("given", f"{attribute}_status").alias(f"{attribute}_status"),
        pl.when(pl.col("given").is_not_null()).then(pl.lit("given")).otherwise("via").alias("via"),
    ).drop("given", "given_code")  # fmt: skip


def creator_shares(tables: LinkTables, attribute: str, how: str) -> pl.DataFrame:
    """Return `item`, the identity and a weight for every creator, not only the first.

    Parameters
    ----------
    tables
        Tables of a link folder built with all creators.
    attribute
        The attribute.
    how
        ``"all"``: each of m creators counts 1/m, those without an identity too (missing).
        ``"any"``: an item counts once for every identity that one of its creators has.
    """
    codes = tables.scan("authority_codes").collect()
    own = _identities(tables.scan("matches"), codes, "person")
    own = own.select("person", code=pl.when(pl.col("n") == 1).then("code"))
    main = _main_names(tables)
    # The same creator in two records of a cluster is one creator.
    members = tables.scan("cluster_people").select("cluster", "person").unique()
    people = members.join(main, on="person").join(own, on="person", how="left")
    people = people.group_by("cluster", "key").agg(
        code=pl.when(pl.col("code").drop_nulls().n_unique() == 1).then(
            pl.col("code").drop_nulls().first()
        )
    )
    if how == "any":
        people = people.drop_nulls("code").select("cluster", "code").unique()
        people = people.with_columns(weight=pl.lit(1.0))
    else:
        people = people.with_columns(weight=1.0 / pl.len().over("cluster"))
        people = people.group_by("cluster", "code").agg(pl.col("weight").sum())
    named = people.join(tables.scan("cluster_items").select("cluster", "item"), on="cluster")
    shares = named.select("item", pl.col("code").alias(attribute), "weight")
    return shares.sort("item", attribute).collect(engine="streaming")


def homonym_facts(items: pl.DataFrame, attribute: str) -> dict[str, Any]:
    """Return how many items met several authority records, and what became of them."""
    ambiguous = pl.col(f"{attribute}_status") == "ambiguous"
    groups = {
        "any": items,
        "several_authority_records": items.filter(pl.col("n_authorities") > 1),
        "several_records_of_one_source": items.filter("homonyms"),
        "changed_over_time": items.filter("changed"),
        "changed_over_time_by_several_records": items.filter("changed_by_records"),
    }
    return {
        name: {"items": group.height, "ambiguous": group.filter(ambiguous).height}
        for name, group in groups.items()
    }
