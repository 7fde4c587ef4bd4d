"""Book ratings as data sources of a plan: BookCrossing, goodbooks-10k, and any link folder."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

import polars as pl

from ombud.data.card import Card
from ombud.data.dataset import Dataset
from ombud.data.exclusions import Exclusion
from ombud.data.frames import open_frame
from ombud.data.interactions import Interactions
from ombud.data.items import CREATOR, Items
from ombud.data.labels import Labels
from ombud.errors import DataError
from ombud.link.build import LinkOptions, build_links
from ombud.link.explain import LinkFolder
from ombud.link.readers.base import ReaderOptions
from ombud.link.readers.platforms import read_goodbooks_genres
from ombud.registry import source

Feedback = Literal["explicit", "implicit"]

_NAMES = {"bookcrossing": "BookCrossing", "amazon": "Amazon", "goodreads": "GoodReads",
          "goodbooks": "goodbooks-10k"}  # fmt: skip
_UNKNOWNS = (
    "Items whose creators' identity is not asserted anywhere keep an outcome instead of an "
    "identity: no book, no author, no authority record, unknown or ambiguous."
)


@source("linked")
def linked(
    path: Path,
    ratings: str,
    feedback: Feedback = "explicit",
    labels: Path | None = None,
    creator: bool = False,
) -> Dataset:
    """Ratings on linked items: a folder that ``ombud link build`` wrote.

    Holds the interactions of one source of ratings, with clusters of editions as items, and for
    each item the creators' identity and the outcome that led to it.

    Licence and known harms: those of the files that were linked; an identity may have been asserted
    by others than the person, and may be out of date.

    Parameters
    ----------
    path
        The folder.
    ratings
        Which source of ratings, such as ``"bookcrossing"``.
    feedback
        ``"explicit"`` (rows with a rating) or ``"implicit"`` (all rows, ratings ignored).
    labels
        A table of `item` and `label`, such as genres, by the ids of that source of ratings; an
        item has a label where one of its editions has it. Default, none.
    creator
        Whether items also have an attribute `creator`, the normalised name of the first creator,
        as ``new-creators`` needs it. No group of items is made of it.
    """
    frame = None
    if labels is not None:
        frame = open_frame(labels, ids=["item"])[0].collect().to_polars()
    return _linked(LinkFolder(path), ratings, feedback, frame, creator)


def _linked(
    folder: LinkFolder,
    ratings: str,
    feedback: Feedback,
    labels: pl.DataFrame | None,
    creator: bool = False,
) -> Dataset:
    file = folder.path / "interactions" / f"{ratings}-{feedback}.parquet"
    if not file.is_file():
        known = sorted(f.stem for f in file.parent.glob("*.parquet"))
        fault = (
            f"there are no {feedback} ratings of {ratings!r}; known: {', '.join(known) or 'none'}"
        )
        raise DataError("linked", [fault])
    frame = pl.read_parquet(file)
    interactions = Interactions.from_frame(frame, source=file.name)
    if feedback == "explicit":
        interactions = _told_unrated(interactions, folder, ratings)
    hashes = {
        f"{i['format']}/{name}": h for i in folder.facts["inputs"] for name, h in i["files"].items()
    }
    card = Card(
        name="linked",
        title=f"{_NAMES.get(ratings, ratings)}, {feedback} feedback, editions joined into items",
        source=", ".join(sorted({i["format"] for i in folder.facts["inputs"]})),
        licence="as the linked files state",
        known_harms=(
            "Ratings can identify people. Identities of creators were asserted by cataloguers and "
            "list makers, not always by the person."
        ),
        unknowns=_UNKNOWNS,
        hashes=hashes,
        facts={
            "users": interactions.n_users,
            "items": interactions.n_items,
            "interactions": len(interactions),
            "interaction_density": interactions.density,
            "inferred_identities": "yes" if folder.facts["inferred"] else "no",
        },
        dropped=tuple(
            f"{p['source']}: {p['count']:,} times: {p['reason']}" for p in folder.facts["problems"]
        ),
    )
    # Items that this source of ratings does not have belong to other sources or to catalogues.
    rated = frame.select("item").unique()
    resolved, by = folder.items, [folder.attribute]
    if creator:
        if CREATOR not in folder.item_facts.collect_schema():
            fault = f"{folder.path} does not name creators; build it again with this ombud"
            raise DataError("linked", [fault])
        names = folder.item_facts.select("item", CREATOR)
        resolved = resolved.join(names, on="item", how="left")
        by.append(CREATOR)
    facts = folder.item_facts.select("item", "flagged")
    resolved = resolved.join(facts, on="item", how="left")
    table = resolved.join(rated.lazy(), on="item", how="semi").sort("item").collect()
    items = Items.from_frame(table, by=by, source="items.parquet")
    items = replace(items, flagged=table["flagged"].fill_null(False).to_numpy())
    tagged = None if labels is None else _labels(folder, ratings, labels)
    return Dataset(interactions=interactions, labels=tagged, items=items, card=card)


def _told_unrated(interactions: Interactions, folder: LinkFolder, ratings: str) -> Interactions:
    """Say how many pairs of user and item are left out because nobody rated them."""
    every = folder.facts["ratings"].get(ratings, {}).get("implicit", {}).get("interactions", 0)
    count = every - len(interactions)
    if count <= 0:
        return interactions
    reason = (
        "the user met the item but did not rate it; feedback = 'implicit' of the source "
        "(under [data.options]) uses them"
    )
    left = Exclusion("interactions", "pairs of user and item", count, reason, every)
    return replace(interactions, exclusions=(*interactions.exclusions, left))


def _labels(folder: LinkFolder, ratings: str, labels: pl.DataFrame) -> Labels:
    """Return labels of items from labels of the ids of one source of ratings.

    Items of which no id is in the table are unknown; the others lack what no row gives them.
    """
    missing = [c for c in ("item", "label") if c not in labels.columns]
    if missing:
        raise DataError("labels", [f"column {c!r} is missing" for c in missing])
    ids = folder.tables.scan(f"ids/{ratings}").select("id", "item").collect()
    own = labels.select(pl.col("item").cast(pl.String).alias("id"), "label")
    found = own.join(ids, on="id").select("item", "label").unique().sort("item", "label")
    if not found.height:
        raise DataError("labels", [f"no id of the table is one of {ratings}"])
    return Labels.from_applied(found, source="labels").looked_at()


def _linked_now(
    name: str,
    path: Path,
    authors: Path | None,
    feedback: Feedback,
    inferred: bool,
    labels: pl.DataFrame | None = None,
) -> Dataset:
    inputs: list[tuple[str, str | Path]] = [(name, path)]
    if authors is not None:
        inputs.append(("author-lists", authors))
    options = LinkOptions(reader=ReaderOptions(platform_authors=True, inferred=inferred))
    with TemporaryDirectory(prefix="ombud-link-") as scratch:
        folder = build_links(inputs, Path(scratch) / "linked", options)
        return _linked(LinkFolder(folder), name, feedback, labels)


@source("bookcrossing")
def bookcrossing(
    path: Path, authors: Path | None = None, feedback: Feedback = "explicit", inferred: bool = False
) -> Dataset:
    """BookCrossing ratings from 1 to 10, either release, editions joined by ISBN.

    Published by Ziegler, McNee, Konstan and Lausen (WWW 2005, doi:10.1145/1060745.1060754) for
    research. Known harms: ratings and places of users can identify them. Unknowns: a rating of 0 is
    an interaction without a rating; the re-release with commas holds explicit ratings only.

    Parameters
    ----------
    path
        The folder with ``BX-Book-Ratings.csv`` or ``BX-Ratings.csv``.
    authors
        A folder of author lists that assert the creators' gender; default, none.
    feedback
        ``"explicit"`` or ``"implicit"``.
    inferred
        Whether lists inferred from first names are read too.
    """
    return _linked_now("bookcrossing", path, authors, feedback, inferred)


@source("goodbooks-10k")
def goodbooks(
    path: Path,
    authors: Path | None = None,
    feedback: Feedback = "explicit",
    inferred: bool = False,
    genres: bool = False,
) -> Dataset:
    """goodbooks-10k: about a million Goodreads ratings from 1 to 5 on ten thousand books.

    Licence: CC BY-SA 4.0 (Zygmunt Zając). Known harms: ratings can identify people. Unknowns: only
    popular books, at most 100 ratings a book in the first release; repeated pairs become medians.

    Parameters
    ----------
    path
        The folder with ``books*.csv`` and ``ratings.csv``, plain, gzip or ZIP.
    authors
        A folder of author lists that assert the creators' gender; default, none.
    feedback
        ``"explicit"`` or ``"implicit"``.
    inferred
        Whether lists inferred from first names are read too.
    genres
        Whether genres are labels: from ``book_genres*.csv`` (`book_id` and `genres`, joined by
        commas). A genre that is not listed is no.
    """
    labels = read_goodbooks_genres(Path(path)) if genres else None
    return _linked_now("goodbooks", path, authors, feedback, inferred, labels)
