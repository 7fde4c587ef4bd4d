"""From raw files to a table of items, and the folder that explains it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from glob import glob
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

import ombud
from ombud.errors import DataError, require
from ombud.files import (
    hash_file,
    remove_leftovers,
    write_folder,
    write_json,
    write_parquet,
    write_text,
)
from ombud.link.isbn import extract_isbns, isbn_text, isbn_texts
from ombud.link.items import cluster_tables, largest_clusters, read_exclusions
from ombud.link.names import placeholders
from ombud.link.problems import Problems
from ombud.link.readers import READERS
from ombud.link.readers.base import ReaderOptions
from ombud.link.resolution import (
    count_reversed,
    creator_shares,
    homonym_facts,
    match_people,
    resolve_items,
    write_people,
)
from ombud.link.store import KINDS_OF_ISBN, LinkTables, RatingSet, Store, kinds_of_isbn
from ombud.link.vocabulary import IdentityMapping, normalised_terms, read_mapping, single_values


def _ids_to_items(tables: LinkTables, known: RatingSet, kinds: Sequence[int]) -> pl.DataFrame:
    """Return `id`, `item`, `cluster`, `n_clusters` and `held` of all rated ids.

    An id in no record has no cluster. One whose records lie in several clusters has that of the
    first record. `held` says of ISBNs without a cluster that records have them: true, as one of
    the `kinds` that tie records together, so that it is the exclusion file that keeps them apart;
    false, as another kind only.
    """
    ratings = tables.scan(f"ratings/{known.source}")
    ids = ratings.select(id="item").unique().collect(engine="streaming")
    names = tables.scan("cluster_items").select("cluster", named="item")
    several = pl.col("cluster").drop_nulls().n_unique().cast(pl.UInt32).alias("n_clusters")
    if known.refers:
        books = tables.scan("books").filter(pl.col("source") == known.refers)
        keyed = books.select("record", id="key").join(
            tables.scan("clusters").select("record", "cluster"), on="record"
        )
        first = pl.col("cluster").sort_by("record").first()
        keyed = keyed.group_by("id").agg(several, first)
        keyed = keyed.with_columns(held=pl.lit(None, dtype=pl.Boolean))
        found = ids.lazy().join(keyed, on="id", how="left").join(names, on="cluster", how="left")
        own = pl.format("{}:{}", pl.lit(known.refers), pl.col("id"))
        item = pl.coalesce("named", own)
    else:
        isbns = extract_isbns(ids["id"]).select("row", "isbn").lazy()
        clusters = tables.scan("isbn_clusters")
        lone = isbns.join(clusters, on="isbn", how="anti").select("isbn").unique()
        holders = tables.scan("isbns").join(lone, on="isbn", how="semi").group_by("isbn")
        unused = holders.agg(held=pl.col("kind").is_in(kinds).any())
        numbered = isbns.join(clusters, on="isbn", how="left", maintain_order="left")
        numbered = numbered.join(unused, on="isbn", how="left", maintain_order="left")
        numbered = numbered.group_by("row", maintain_order=True).agg(
            several, pl.col("isbn", "cluster").first(), pl.col("held").max()
        )
        keyed = ids.lazy().with_row_index("row").join(numbered, on="row", how="left")
        found = keyed.join(names, on="cluster", how="left")
        item = pl.coalesce("named", isbn_texts(pl.col("isbn")), "id")
    several = pl.col("n_clusters").fill_null(0)
    held = pl.when(pl.col("cluster").is_null()).then("held")
    return found.select("id", "cluster", several, item=item, held=held).collect()


def link_ratings(
    tables: LinkTables,
    known: RatingSet,
    folder: Path,
    problems: Problems,
    kinds: Sequence[int] = tuple(KINDS_OF_ISBN.values()),
) -> dict[str, Any]:
    """Write the interactions of one source on items; return counts.

    The `kinds` are those of ISBNs that tie records together.

    Writes ``SOURCE-explicit.parquet`` (where there are ratings) and ``SOURCE-implicit.parquet`` to
    the folder, and the table ``ids/SOURCE``.
    """
    ids = _ids_to_items(tables, known, kinds)
    (tables.folder / "ids").mkdir(exist_ok=True)
    tables.write(f"ids/{known.source}", ids.drop("held").sort("id"))
    rows = tables.scan(f"ratings/{known.source}").rename({"item": "id"})
    rows = rows.join(ids.select("id", "item").lazy(), on="id")
    has_times = rows.select(pl.col("time").is_not_null().any()).collect().item()
    time = [pl.col("time").max()] if has_times else []
    pair = ["user", "item"]
    implicit = rows.group_by(pair).agg(*time, n=pl.len()) if has_times else None
    folder.mkdir(parents=True, exist_ok=True)
    facts: dict[str, Any] = {"rows": known.rows, "ids": ids.height}
    held = ids["held"]
    facts["ids_in_no_record"] = int((ids["cluster"].is_null() & held.is_null()).sum())
    facts["ids_in_the_exclusion_file"] = int(held.sum())
    facts["ids_only_of_sets_or_cancelled"] = int((~held).sum())
    torn = ids.filter(pl.col("n_clusters") > 1).sort("id")
    facts["ids_in_several_clusters"] = torn.height
    reason = "a rated id whose records lie in several clusters (that of the first record is taken)"
    problems.add(known.source, reason, ", ".join(torn["id"].head(5)), count=torn.height)
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
    return pl.concat(whole).sort("set", "items", "outcome", descending=[False, True, False])


FORMAT = 1
"""The version of the link folder."""

Progress = Callable[[int, int, str], None]


@dataclass(frozen=True)
class LinkOptions:
    """How records are linked.

    Parameters
    ----------
    attribute
        The attribute of creators; ``"gender"`` unless another is asked for.
    reader
        What readers are told; its attribute is set to this one.
    set_isbns
        ``"use"``, or ``"ignore"`` ISBNs that a record marks as those of a set.
    cancelled_isbns
        Whether cancelled ISBNs (MARC 020 ``$z``) tie records together.
    exclude
        A file of ISBNs that tie nothing together.
    mapping, placeholders
        Files that add to the shipped ones.
    creators
        ``"first"``; or ``"all"`` (each of m counts 1/m) or ``"any"``, which add a table of every
        creator's identity, ``item_creators.parquet``. With ``"any"`` the table of items has the
        identity that creators have too, where it is one; with ``"all"`` that of the first.
    flag_authors
        Clusters with more distinct first authors are flagged.
    fold_marks
        Whether accents are taken off names before they are compared.
    fuzzy
        None, or the probability from which splink's matches of similar names count.
    published
        Whether any contradiction makes an item ambiguous, as in the published study: assertions
        of different dates contradict, and names count beside ids.
    """

    attribute: str = "gender"
    reader: ReaderOptions = field(default_factory=ReaderOptions)
    set_isbns: Literal["use", "ignore"] = "use"
    cancelled_isbns: bool = False
    exclude: str | None = None
    mapping: str | None = None
    placeholders: str | None = None
    creators: Literal["first", "all", "any"] = "first"
    flag_authors: int = 5
    fold_marks: bool = False
    fuzzy: float | None = None
    published: bool = False


_WHOLE_FOLDERS = frozenset({"author-lists", "bookcrossing", "goodbooks", "goodreads", "bookdata"})
"""Formats of several files, whose reader takes the folder; of others a folder is all its files."""


def _files(name: str, path: str | Path) -> list[tuple[str, str | Path]]:
    """Return the files that an input stands for: a file, a folder, or a pattern such as ``*.mrc``.

    What is not there stays, for the message that says so.
    """
    whole = Path(path)
    if whole.is_dir() and name not in _WHOLE_FOLDERS:
        found = sorted(f for f in whole.iterdir() if f.is_file() and not f.name.startswith("."))
    elif not whole.exists() and set("*?[") & set(str(path)):
        found = [Path(f) for f in sorted(glob(str(path)))]
        found = [f for f in found if f.is_file() or name in _WHOLE_FOLDERS]
    else:
        return [(name, path)]
    return [(name, file) for file in found] or [(name, path)]


def build_links(
    inputs: Sequence[tuple[str, str | Path]],
    to: str | Path,
    options: LinkOptions | None = None,
    *,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Path:
    """Read records, cluster them, resolve their creators, and write a folder.

    The folder appears when it is complete: ``items.parquet`` (the table for an audit),
    ``item_facts.parquet`` (how each outcome came about, and clusters that are flagged),
    ``interactions/`` (ratings on items), ``exclude.txt`` (ISBNs that split the largest clusters),
    ``link.json`` (counts, options, mapping, faults), ``link/`` (what ``explain`` reads).

    Parameters
    ----------
    inputs
        Pairs of a format (see `ombud.link.READERS`) and a path: a file, a folder of such files, or
        a pattern such as ``BooksAll.*.mrc.gz``.
    to
        The folder to write.
    options
        How to link.
    overwrite
        Whether an existing folder is replaced.
    progress
        Called with steps done, steps in all, and what is going on.

    Returns
    -------
    pathlib.Path
        The folder.
    """
    asked = options or LinkOptions()
    asked = replace(asked, reader=replace(asked.reader, attribute=asked.attribute))
    target = Path(to)
    remove_leftovers(target)
    inputs = [file for name, path in inputs for file in _files(name, path)]
    _check(inputs, target, overwrite, asked)
    tell = progress or (lambda done, total, note: None)
    write_folder(target, lambda part: _build(inputs, part, asked, tell))
    return target


def _check(
    inputs: Sequence[tuple[str, str | Path]], target: Path, overwrite: bool, asked: LinkOptions
) -> None:
    faults = [
        f"no format is called {name!r}; known: {', '.join(READERS)}"
        for name, _ in inputs
        if name not in READERS
    ]
    faults += [
        f"there is no file or folder {path}" for _, path in inputs if not Path(path).exists()
    ]
    faults += [
        f"there is no file in the folder {path}; of folders in it, give a pattern: {path}/*/*"
        for name, path in inputs
        if name in READERS and name not in _WHOLE_FOLDERS and Path(path).is_dir()
    ]
    if not inputs:
        faults.append("nothing to read; name at least one format and path")
    if target.exists() and not overwrite:
        faults.append(f"{target} exists; choose another folder, or let it be replaced")
    if target.exists() and overwrite and not (target / "link.json").is_file():
        faults.append(f"{target} is no link folder, so it is not replaced")
    if asked.fuzzy is not None and not 0 < asked.fuzzy <= 1:
        faults.append(f"fuzzy must be a probability above 0 and up to 1; found {asked.fuzzy}")
    if faults:
        raise DataError("link", faults)


def _build(
    inputs: Sequence[tuple[str, str | Path]], part: Path, asked: LinkOptions, progress: Progress
) -> None:
    problems = Problems()
    mapping = read_mapping(asked.mapping)
    nobody = placeholders(asked.placeholders)
    excluded = read_exclusions(asked.exclude)
    steps = len(inputs) + 4
    store = Store(part / "link", problems)
    for step, (name, path) in enumerate(inputs):
        progress(step, steps, f"reading {name}")
        for batch in READERS[name].read(Path(path), asked.reader, problems):
            store.append(batch)
    tables = store.close()
    if not store.records and not store.ratings:
        fault = "the files hold neither books nor ratings; there is nothing to link"
        met = [f"{p['source']}: {p['reason']} (times: {p['count']:,})" for p in problems.rows()]
        raise DataError("link", [fault, *met])
    progress(len(inputs), steps, "clustering")
    kinds = kinds_of_isbn(asked.set_isbns == "use", asked.cancelled_isbns)
    if asked.exclude is not None:
        unmet = _in_no_record(tables, excluded)
        texts = ", ".join(isbn_text(int(isbn)) for isbn in unmet[:5])
        reason = "an ISBN to exclude that no record has"
        problems.add(Path(asked.exclude).name, reason, texts, count=len(unmet))
    clusters = cluster_tables(
        tables,
        set_isbns=asked.set_isbns == "use",
        cancelled=asked.cancelled_isbns,
        excluded=excluded,
    )
    progress(len(inputs) + 1, steps, "matching names")
    first_only = asked.creators == "first"
    people = write_people(tables, nobody, first_only=first_only, fold_marks=asked.fold_marks)
    people |= match_people(tables, nobody, fold_marks=asked.fold_marks)
    if asked.fuzzy is not None:
        people["matches_by_similarity"] = add_fuzzy_matches(tables, asked.fuzzy)
    reason = "an assertion that ends before it begins (its dates are not used)"
    for source, count in count_reversed(tables, asked.attribute).items():
        problems.add(source, reason, count=count)
    items = resolve_items(
        tables, mapping, asked.attribute, flag_authors=asked.flag_authors,
        creators=asked.creators, published=asked.published,
    )  # fmt: skip
    if not first_only:
        shares = creator_shares(tables, asked.attribute, asked.creators)
        write_parquet(part / "item_creators.parquet", shares)
    progress(len(inputs) + 2, steps, "linking ratings")
    linked = {
        source: link_ratings(tables, known, part / "interactions", problems, kinds)
        for source, known in sorted(store.ratings.items())
    }
    items = _with_lone_ids(tables, items, sorted(store.ratings), asked.attribute)
    facts = items.drop("cluster")
    write_parquet(part / "item_facts.parquet", facts)
    table = facts.select("item", asked.attribute, f"{asked.attribute}_status")
    write_parquet(part / "items.parquet", table)
    progress(len(inputs) + 3, steps, "reporting")
    outcomes = outcome_table(tables, items, part / "interactions", asked.attribute)
    tables.write("outcomes", outcomes)
    tables.write("mapping", mapping.terms)
    top, splits = largest_clusters(tables, excluded=excluded, kinds=kinds)
    top = top.join(items.select("item", "n_first_authors", "flagged"), on="item", how="left")
    tables.write("largest", top)
    tables.write("splits", splits)
    write_text(part / "exclude.txt", _exclusion_file(top, splits))
    write_json(
        part / "link.json",
        {
            "format": FORMAT,
            "ombud": ombud.__version__,
            "options": _without_paths(asked),
            "inputs": [
                {"format": name, "name": Path(path).name, "files": _hashes(Path(path))}
                for name, path in inputs
            ],
            "rows": store.rows,
            "clusters": clusters,
            "people": people,
            "homonyms": homonym_facts(items, asked.attribute),
            "platform_names": _platform_names(tables, items, asked),
            "ratings": linked,
            "ways": _ways(items),
            "ways_known": _ways(items.filter(pl.col(f"{asked.attribute}_status") == "known")),
            "mixed_creators": int(items["mixed_creators"].sum()),
            "flagged_items": int(items["flagged"].sum()),
            "mapping": _mapping_used(tables, mapping, asked.attribute),
            "inferred": bool(items[f"{asked.attribute}_inferred"].any()),
            "problems": problems.rows(),
        },
    )


def _in_no_record(tables: LinkTables, isbns: NDArray[np.int64]) -> NDArray[np.int64]:
    asked = pl.DataFrame({"isbn": isbns}, schema={"isbn": pl.Int64}).lazy()
    known = tables.scan("isbns").select("isbn").join(asked, on="isbn", how="semi").unique()
    return np.setdiff1d(isbns, known.collect(engine="streaming")["isbn"].to_numpy())


def _ways(items: pl.DataFrame) -> dict[str, int]:
    """Return how many items met authority records by id, by name, by similarity."""
    counts = items.drop_nulls("via").group_by("via").len().sort("via")
    return {str(way): int(n) for way, n in counts.rows()}


_PLATFORMS = ("bookcrossing", "amazon", "goodreads", "goodbooks")


def _platform_names(tables: LinkTables, items: pl.DataFrame, asked: LinkOptions) -> dict[str, int]:
    """Return how many items have creators that only platforms name, and how many are known."""
    people = tables.scan("people").select("person", own=pl.col("source").is_in(_PLATFORMS))
    named = tables.scan("cluster_people").join(people, on="person").group_by("cluster")
    by_cluster = named.agg(some=pl.col("own").any(), alone=pl.col("own").all()).collect()
    table = items.join(by_cluster, on="cluster")
    known = pl.col(f"{asked.attribute}_status") == "known"
    return {
        "items_with_a_name_of_a_platform": int(table["some"].sum()),
        "items_that_only_platforms_name_a_creator_of": int(table["alone"].sum()),
        "of_them_known": table.filter(pl.col("alone") & known).height,
    }


def _without_paths(asked: LinkOptions) -> dict[str, Any]:
    """Return the options with the names of files only: no folder of this machine is told."""
    content = asdict(asked)
    for name in ("exclude", "mapping", "placeholders"):
        if content[name] is not None:
            content[name] = Path(content[name]).name
    return content


def _mapping_used(tables: LinkTables, mapping: IdentityMapping, attribute: str) -> dict[str, Any]:
    """Return each term that sources used, its code, how often, and whether the file knows it."""
    said = tables.scan("assertions").filter(pl.col("attribute") == attribute)
    counts = (
        single_values(said)
        .with_columns(value=normalised_terms(pl.col("value")))
        .group_by("attribute", "vocabulary", "value")
        .agg(n=pl.len())
        .collect()
    )
    rows = (
        mapping.codes(counts)
        .group_by("value", "code", "known")
        .agg(pl.col("n").sum())
        .sort("n", "value", "code", descending=[True, False, False])
    )
    terms = [
        {"term": term, "code": code, "assertions": n, "known": known}
        for term, code, known, n in rows.rows()
    ]
    return {"version": mapping.version, "terms": terms[:500], "distinct_terms": len(terms)}


def _hashes(path: Path) -> dict[str, str]:
    """Return SHA-256 of the files of an input; of a folder, those directly in it and one below."""
    if path.is_file():
        return {path.name: hash_file(path)}
    files = [f for f in sorted([*path.glob("*"), *path.glob("*/*")]) if f.is_file()]
    return {str(f.relative_to(path)): hash_file(f) for f in files[:200]}


def _with_lone_ids(
    tables: LinkTables, items: pl.DataFrame, sources: list[str], attribute: str
) -> pl.DataFrame:
    """Add the rated ids that are in no record: each is an item of its own, with *no book*."""
    parts = [
        tables.scan(f"ids/{source}").filter(pl.col("cluster").is_null()).select("item").collect()
        for source in sources
    ]
    if not parts:
        return items
    lone = pl.concat(parts).unique().sort("item")
    zero = ["n_authorities", "n_first_authors", "n_isbns", "n_records", "n_works"]
    flags = [
        f"{attribute}_inferred",
        "homonyms",
        "changed",
        "changed_by_records",
        "mixed_creators",
        "flagged",
    ]
    lone = lone.with_columns(
        pl.lit("no_book").alias(f"{attribute}_status"),
        *(pl.lit(0).cast(items.schema[c]).alias(c) for c in zero),
        *(pl.lit(False).alias(c) for c in flags),
    )
    return pl.concat([items, lone], how="diagonal")


_LISTED = 50


def _exclusion_file(top: pl.DataFrame, splits: pl.DataFrame) -> str:
    lines = [
        "# ISBNs whose removal splits one of the largest clusters; those that cut off most first.",
        "# Look at them ('ombud link explain ISBN'), take the '#' away before those that tie",
        "# unrelated books together, and build again with --exclude THIS-FILE.",
    ]
    for row in top.iter_rows(named=True):
        lines.append(
            f"\n# cluster {row['item']}: {row['n_isbns']:,} ISBNs, {row['n_records']:,} records, "
            f"{row['n_works']:,} works, {row['n_first_authors'] or 0:,} first authors"
        )
        own = splits.filter(pl.col("item") == row["item"])
        lines += [
            f"#{isbn}  # leaves {pieces:,} pieces, cuts off {cut:,}"
            for isbn, pieces, cut, _ in own.head(_LISTED).rows()
        ]
        if own.height > _LISTED:
            lines.append(f"# and {own.height - _LISTED:,} more")
    return "\n".join(lines) + "\n"


# Names that are similar but not the same, through splink: an extra, off by default.


def similar_names(left: pl.DataFrame, right: pl.DataFrame, threshold: float) -> pl.DataFrame:
    """Return pairs of similar names: `left`, `right` (their numbers) and `probability`.

    Names are compared, without accents, when they share the last word, or its first three letters
    and the first letter of all; the comparison is Jaro-Winkler on the last word and on the rest.

    Both have `number` and `key` (a normalised name).
    """
    require("splink", "fuzzy")
    import splink.comparison_library as cl
    from splink import DuckDBAPI, Linker, SettingsCreator, block_on

    settings = SettingsCreator(
        link_type="link_only",
        comparisons=[
            cl.JaroWinklerAtThresholds("given", [0.95, 0.88]).configure(
                m_probabilities=[0.80, 0.12, 0.05, 0.03], u_probabilities=[0.02, 0.01, 0.03, 0.94]
            ),
            cl.JaroWinklerAtThresholds("family", [0.95, 0.90]).configure(
                m_probabilities=[0.90, 0.07, 0.02, 0.01],
                u_probabilities=[0.002, 0.002, 0.01, 0.986],
            ),
        ],
        blocking_rules_to_generate_predictions=[
            block_on("family"),
            block_on("substr(family, 1, 3)", "substr(given, 1, 1)"),
        ],
        probability_two_random_records_match=1e-3,
        unique_id_column_name="number",
    )
    api: Any = DuckDBAPI()
    frames = [
        api.register(_words(frame).to_arrow(), dataset_display_name=name)
        for name, frame in (("left_names", left), ("right_names", right))
    ]
    linker = Linker(frames, settings, log_level="ERROR")
    found: Any = linker.inference.predict(threshold_match_probability=threshold)
    table = pl.DataFrame(found.as_record_list(), infer_schema_length=None)
    if not table.height:
        return pl.DataFrame(
            schema={"left": pl.UInt32, "right": pl.UInt32, "probability": pl.Float64}
        )
    swapped = pl.col("source_dataset_l") == "right_names"
    return table.select(
        left=pl.when(swapped).then("number_r").otherwise("number_l"),
        right=pl.when(swapped).then("number_l").otherwise("number_r"),
        probability="match_probability",
    )


def _words(frame: pl.DataFrame) -> pl.DataFrame:
    plain = pl.col("key").str.normalize("NFKD").str.replace_all(r"\p{M}+", "")
    parts = plain.str.split(" ")
    return frame.select(
        "number",
        given=parts.list.head(parts.list.len() - 1).list.join(" "),
        family=parts.list.last(),
    )


def add_fuzzy_matches(tables: LinkTables, threshold: float) -> int:
    """Match people that nothing has matched to authority records of similar names; count them."""
    matches = tables.scan("matches").collect()
    keys = tables.scan("person_keys").filter(~pl.col("placeholder")).collect()
    open_people = keys.join(matches, on="person", how="anti").unique("person", maintain_order=True)
    authorities = tables.scan("authority_keys").collect()
    authorities = authorities.unique("authority", keep="first", maintain_order=True)
    left = open_people.select(number="person", key="key")
    right = authorities.select(number="authority", key="key")
    if not left.height or not right.height:
        return 0
    pairs = similar_names(left, right, threshold)
    found = pairs.join(right.rename({"number": "right"}), on="right").select(
        person=pl.col("left").cast(pl.UInt32),
        authority=pl.col("right").cast(pl.UInt32),
        key="key",
        via=pl.lit("similar"),
    )
    tables.write("matches", pl.concat([matches, found.select(matches.columns)]))
    return found.height
