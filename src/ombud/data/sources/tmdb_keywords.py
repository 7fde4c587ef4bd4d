"""TMDB keywords as content warnings, by a mapping file; a missing keyword says nothing."""

from __future__ import annotations

import ast
import csv
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ombud.data.card import Card
from ombud.data.dataset import Dataset
from ombud.data.exclusions import Exclusion
from ombud.data.faults import first_rows
from ombud.data.ids import Vocabulary
from ombud.data.labels import Labels, LabelState
from ombud.data.sources.keyword_mapping import KeywordMapping, read_mapping
from ombud.data.sources.movielens import (
    CITATION,
    LICENCE,
    MovieLensFiles,
    locate,
    movielens,
    read_links,
    read_titles,
)
from ombud.errors import DataError, PlanError
from ombud.files import hash_file
from ombud.registry import source

MissingKeyword = Literal["no", "no-if-any-keyword", "unknown"]
"""What a missing keyword means: `Unlabeled`, or *no* for titles that have keywords at all."""

_LONGEST = 200_000
_ONE = re.compile(
    r"""\{'id':\s(?P<id>\d{1,12}),\s'name':\s(?P<name>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")\}(?:,\s)?"""
)


def parse_keywords(text: str) -> list[str] | None:
    r"""Return the names in a list such as ``[{'id': 1, 'name': 'x'}]``, or None if it is none.

    The text is matched, never evaluated.

    Examples
    --------
    >>> parse_keywords("[{'id': 931, 'name': 'jealousy'}, {'id': 7, 'name': \"boy's toy\"}]")
    ['jealousy', "boy's toy"]
    >>> parse_keywords("[]"), parse_keywords("__import__('os')")
    ([], None)
    """
    if len(text) > _LONGEST or text[:1] != "[" or text[-1:] != "]":
        return None
    names = []
    index = 1
    while result := _ONE.match(text, index):
        quoted = result["name"]
        # A quoted text with escapes is a literal and nothing else: the pattern says so.
        names.append(ast.literal_eval(quoted) if "\\" in quoted else quoted[1:-1])
        index = result.end()
    return names if index == len(text) - 1 else None


def read_keywords(path: str | Path) -> dict[int, frozenset[str]]:
    """Read ``keywords.csv``: `id` (of TMDB) and `keywords` (a list of names as Python writes it).

    A title that has several rows gets the keywords of all of them.

    `path` is the file, or the folder that holds it.
    """
    file = Path(path)
    file = file / "keywords.csv" if file.is_dir() else file
    if not file.is_file():
        raise DataError(file.name, [f"there is no file {file}"])
    result: dict[int, frozenset[str]] = {}
    wrong: list[int] = []
    csv.field_size_limit(max(csv.field_size_limit(), min(sys.maxsize, 2 * _LONGEST)))
    with file.open(encoding="utf-8", newline="") as opened:
        reader = csv.DictReader(opened)
        absent = sorted({"id", "keywords"} - set(reader.fieldnames or ()))
        if absent:
            raise DataError(file.name, [f"column {name!r} is missing" for name in absent])
        for number, row in enumerate(reader, start=1):
            names = parse_keywords(row["keywords"] or "")
            if names is None or not (row["id"] or "").isdecimal():
                wrong.append(number)
            else:
                key = int(row["id"])
                result[key] = result.get(key, frozenset()) | frozenset(names)
    if wrong:
        rows = first_rows(wrong, len(wrong))
        raise DataError(file.name, [f"no id with a list of keywords in {rows}"])
    return result


def keyword_labels(
    titles: pl.DataFrame,
    keywords: dict[int, frozenset[str]],
    mapping: KeywordMapping,
    unlabeled: MissingKeyword = "unknown",
) -> Labels:
    """Return the warnings of items by their keywords.

    `titles` has ``item`` and ``tmdb``, the id of its title (missing where there is none).
    `unlabeled` is what it means that a title has none of a warning's keywords: ``"unknown"``;
    ``"no"``, for every title; or ``"no-if-any-keyword"``: *no* for titles that have keywords at
    all. The last two are weaker readings of the data: nobody went through a list of warnings.
    """
    names = mapping.warnings
    places = {name: index for index, name in enumerate(names)}
    columns: dict[str, list[int]] = {}
    for keyword, warning in mapping.pairs:
        columns.setdefault(keyword, []).append(places[warning])
    items, order = Vocabulary.encode(titles["item"].to_arrow())
    states = np.full((len(items), len(names)), LabelState.UNKNOWN, dtype=np.int8)
    rows: list[int] = []
    hits: list[int] = []
    some: NDArray[np.bool_] = np.zeros(len(items), dtype=bool)
    for row, tmdb in zip(order.tolist(), titles["tmdb"].to_list(), strict=True):
        text = keywords.get(tmdb, frozenset()) if tmdb is not None else frozenset()
        some[row] |= bool(text)
        for word in text & columns.keys():
            hits += columns[word]
            rows += [row] * len(columns[word])
    if unlabeled != "unknown":
        states[some] = LabelState.NO
    states[rows, hits] = LabelState.YES
    meaning = "unknown" if unlabeled == "unknown" else "no where a title has any keyword"
    rule = f"TMDB keywords by {mapping.name}; a missing keyword is {meaning}"
    dropped = list(mapping.exclusions)
    none = int(np.count_nonzero(~some))
    if none:
        reason = "they have no keyword at all: every warning is unknown"
        dropped.append(Exclusion("labels", "items", none, reason, len(items)))
    labels = Labels(items, names, states, None, None, rule, tuple(dropped))
    return labels.with_unlabeled("no") if unlabeled == "no" else labels


def _titles(
    files: MovieLensFiles, links: str | Path | None
) -> tuple[pl.DataFrame, list[Exclusion]]:
    """Return ``item`` and ``tmdb``, from this edition or by movie id from another one."""
    if links is None:
        return read_links(files).select("item", "tmdb"), []
    with locate(links) as other:
        result = read_links(other).select("item", "tmdb")
        theirs = read_titles(other).select("item", their_year="year")
    ours = read_titles(files)
    joined = ours.join(result, on="item", how="left").join(theirs, on="item", how="left")
    # Editions share movie ids; a year that differs by more than one says that these two do not.
    same = (pl.col("year") - pl.col("their_year")).abs() <= 1
    tmdb = pl.when(same.fill_null(True)).then(pl.col("tmdb"))
    table = joined.select("item", tmdb=tmdb)
    dropped = []
    for count, reason in (
        (joined["tmdb"].null_count(), "the other edition has no link for them"),
        (table["tmdb"].null_count() - joined["tmdb"].null_count(), "the two titles differ in year"),
    ):
        if count:
            dropped.append(Exclusion("links", "movies", count, reason, joined.height))
    return table, dropped


@source("movielens-tmdb")
def movielens_tmdb(
    path: str | Path,
    keywords: str | Path,
    *,
    mapping: str | Path = "tmdb-to-ddd@1",
    unlabeled: MissingKeyword | None = None,
    absent: MissingKeyword | None = None,
    links: str | Path | None = None,
) -> Dataset:
    """MovieLens ratings with warnings derived from the keywords that TMDB users gave.

    A keyword that is missing is *unknown* by default. With only *yes* and *unknown* no share can be
    computed: declare what a missing keyword means with `unlabeled`. With ``"no"``, read a share as
    "share with a known warning", a lower bound of the share with the warning.

    Licence: GroupLens terms for ratings, TMDB terms for keywords. Known harms: names of warnings
    describe distressing content.

    Parameters
    ----------
    path
        A MovieLens folder or archive.
    keywords
        ``keywords.csv`` of TMDB, or its folder.
    mapping
        ``tmdb-to-ddd@1``, ``tmdb-to-ao3@1``, or a CSV file with `keyword` and `warning`.
    unlabeled
        What a missing keyword means: ``unknown`` (default), ``no``, or ``no-if-any-keyword``: *no*
        for titles that have keywords at all.
    absent
        The older name of `unlabeled`.
    links
        Another MovieLens edition with ``links.csv``, for editions that have none (1M); movies are
        matched by id, and left unlinked when their years differ by more than one.
    """
    mapped = read_mapping(mapping)
    with locate(path) as opened:
        titles, dropped = _titles(opened, links)
    ratings = movielens(path)
    assert ratings.interactions is not None  # MovieLens has ratings
    rated = pl.DataFrame({"item": ratings.interactions.items.ids})
    titles = rated.join(titles, on="item", how="left")
    text = read_keywords(keywords)
    if None not in (unlabeled, absent) and unlabeled != absent:
        raise PlanError("absent is the older name of unlabeled, and both differ; remove absent")
    labels = keyword_labels(titles, text, mapped, unlabeled or absent or "unknown")
    labels = replace(labels, exclusions=(*dropped, *labels.exclusions))
    known = labels.states == LabelState.YES
    file = Path(keywords) / "keywords.csv" if Path(keywords).is_dir() else Path(keywords)
    card = Card(
        name="movielens-tmdb",
        title="MovieLens ratings with warnings from TMDB keywords",
        source="MovieLens (GroupLens); keywords of The Movie Database (themoviedb.org)",
        licence=f"Ratings: {LICENCE}. Keywords: the terms of TMDB.",
        citation=CITATION,
        known_harms="Names of warnings describe distressing content.",
        unknowns=f"{labels.rule}. Where a missing keyword counts as no, shares are shares with a "
        "known warning: lower bounds.",
        hashes=ratings.card.hashes | {file.name: hash_file(file)},
        facts=ratings.card.facts
        | {
            "labels": len(labels.names),
            "mapping": mapped.name,
            "taxonomy": mapped.taxonomy,
            "known_warnings": int(np.count_nonzero(known)),
            "movies_with_a_known_warning": int(np.count_nonzero(known.any(axis=1))),
            "movies_without_keywords": int(
                sum(not text.get(tmdb) if tmdb is not None else True for tmdb in titles["tmdb"])
            ),
        },
        dropped=tuple(str(e) for e in labels.exclusions),
    )
    return replace(ratings, labels=labels, card=card)
