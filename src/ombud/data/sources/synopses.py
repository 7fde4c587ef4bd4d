"""Synopses of films and series, labelled by their age rating."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import polars as pl

from ombud.data.dataset import Dataset
from ombud.data.exclusions import Exclusion
from ombud.data.sources.labelled import file_in, read_csv, text_dataset
from ombud.registry import source

PG = ("G", "PG", "TV-Y", "TV-Y7", "TV-Y7-FV", "TV-G", "TV-PG")
"""Ratings that are acceptable under *PG ok*."""

PG_13 = (*PG, "PG-13", "TV-14")
"""Ratings that are acceptable under *PG-13 ok*."""

ABOVE = ("R", "NC-17", "TV-MA")
"""Ratings above both."""


@source("synopses")
def synopses(
    path: str | Path,
    *,
    acceptable: Literal["pg", "pg-13"] = "pg-13",
    text: str = "description",
    rating: str = "rating",
    id: str = "show_id",
    cluster: str = "",
) -> Dataset:
    """Film and series synopses: a synopsis should not be flagged when the age rating is low.

    *PG ok*: G, PG, TV-Y, TV-Y7, TV-G, TV-PG; *PG-13 ok*: also PG-13 and TV-14. Titles that are
    unrated, or whose rating is another, are left out and counted.

    Licence: CC0 for the Netflix titles. Known harms: descriptions of violence and abuse.

    Parameters
    ----------
    path
        A CSV file such as ``netflix_titles.csv``, or its folder.
    acceptable
        Up to which rating a synopsis should not be flagged.
    text, rating, id
        The columns; an empty `id` numbers the rows.
    cluster
        A column that says what synopses share, such as the series of an episode.
    """
    file = file_in(path, "netflix_titles.csv")
    table = read_csv(file, [name for name in (text, rating, id, cluster) if name])
    marks = table[rating].str.strip_chars().str.to_uppercase()
    passed = PG if acceptable == "pg" else PG_13
    rated = marks.is_in([*PG_13, *ABOVE]).fill_null(False)
    dropped = []
    if not rated.all():
        kinds = marks.filter(~rated).fill_null("no rating").value_counts(sort=True, name="n")
        words = ", ".join(f"{n:,} {mark[:20]}" for mark, n in kinds.head(6).rows())
        count = int((~rated).sum())
        reason = f"they have no age rating that says what is acceptable ({words})"
        dropped.append(Exclusion("texts", "titles", count, reason, table.height))
    columns = [pl.col(text).alias("text"), (~marks.is_in(list(passed))).alias("label")]
    columns += [pl.col(name).alias(as_) for name, as_ in ((id, "id"), (cluster, "cluster")) if name]
    return text_dataset(
        table.select(columns).filter(rated),
        family="generative-ai",
        files=[file],
        exclusions=dropped,
        name="synopses",
        title=f"Synopses with age ratings, {acceptable.upper()} acceptable",
        source="kaggle.com/shivamb/netflix-shows",
        licence="CC0 (the Netflix titles); otherwise that of your file",
        citation="Identity-related Speech Suppression in Generative AI Content Moderation, for the "
        "use of age ratings as labels.",
        known_harms="Descriptions of violence, abuse and drugs.",
        unknowns="The rating is of the film, not of its synopsis: a mild synopsis of a film for "
        "adults counts as one that should be flagged. Unrated titles are left out.",
    )
