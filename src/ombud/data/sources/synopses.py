"""Synopses of films and series, labelled by their age rating."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Literal

import polars as pl

from ombud.data.card import Card
from ombud.data.dataset import Dataset
from ombud.data.exclusions import Exclusion
from ombud.data.faults import need_columns
from ombud.data.sources.identity_lists import groups_by_title, read_identity_lists, year_in
from ombud.data.sources.labelled import file_in, read_csv, text_dataset
from ombud.errors import DataError
from ombud.registry import source

PG = ("G", "PG", "TV-Y", "TV-Y7", "TV-Y7-FV", "TV-G", "TV-PG")
"""Ratings that are acceptable under *PG ok*."""

PG_13 = (*PG, "PG-13", "TV-14")
"""Ratings that are acceptable under *PG-13 ok*."""

ABOVE = ("R", "NC-17", "TV-MA")
"""Ratings above both."""


BUILT = "synopses.csv"
"""The table that ``ombud data build movie-plots`` and ``tv-synopses`` write."""

LENGTHS = ("short", "medium", "long")
"""Columns of synopses of one episode; each length is a set."""


@source("synopses")
def synopses(
    path: str | Path,
    *,
    acceptable: Literal["pg", "pg-13", "both"] = "pg-13",
    text: str | tuple[str, ...] = "",
    rating: str = "rating",
    id: str | None = None,
    cluster: str | None = None,
    title: str = "title",
    year: str | None = None,
    groups: str | Path = "",
) -> Dataset:
    """Film and series synopses: a synopsis should not be flagged when the age rating is low.

    *PG ok*: G, PG, TV-Y, TV-Y7, TV-G, TV-PG; *PG-13 ok*: also PG-13 and TV-14. Titles that are
    unrated, or whose rating is another, are left out and counted.

    Licence: CC0 for the Netflix titles. Known harms: descriptions of violence and abuse.

    Parameters
    ----------
    path
        A CSV file such as ``netflix_titles.csv``, its folder, or a folder that ``ombud data build
        movie-plots`` or ``tv-synopses`` wrote.
    acceptable
        Up to which rating a synopsis should not be flagged. ``both`` gives each text two labels,
        *PG-13 ok* (which counts for all texts) and *PG ok*, each measured with each text once.
    text
        The column of synopses, or several columns (short, medium and long synopses), each a set of
        its own; default, `description` or `plot`, or else those of `short`, `medium` and `long`.
    rating
        The column of age ratings.
    id, cluster
        The columns of ids and of what synopses share, such as the series of an episode; default,
        `show_id` or `id`, and `show`, where the table has them. An empty `id` numbers the rows.
    title, year
        The columns by which `groups` are joined; the year is in `year` or `release_year` by
        default.
    groups
        Lists of titles by identity, as `ombud.data.sources.identity_lists` reads them: a folder
        such as the paper's ``tags``, or a table. Entries that match no title are counted.
    """
    file = file_in(path, BUILT, "netflix_titles.csv")
    table = read_csv(file, [rating])
    asked = (text,) if isinstance(text, str) and text else tuple(text)
    asked = asked or _first(table, "description", "plot")
    asked = asked or tuple(c for c in LENGTHS if c in table.columns) or ("description",)
    names = {
        "id": _chosen(id, table, "show_id", "id"),
        "cluster": _chosen(cluster, table, "show"),
        "title": title if groups else "",
        "year": _chosen(year, table, "year", "release_year") if groups else "",
    }
    need_columns(
        file.name, dict.fromkeys([*asked, *filter(None, names.values())], ""), table.columns
    )
    marks = table[rating].str.strip_chars().str.to_uppercase()
    rated = marks.is_in([*PG_13, *ABOVE]).fill_null(False)
    built = _built_card(file)
    dropped: list[Exclusion] = []
    if not rated.all():
        kinds = marks.filter(~rated).fill_null("no rating").value_counts(sort=True, name="n")
        words = ", ".join(f"{n:,} {mark[:20]}" for mark, n in kinds.head(6).rows())
        count = int((~rated).sum())
        reason = f"they have no age rating that says what is acceptable ({words})"
        dropped.append(Exclusion("texts", "titles", count, reason, table.height))
    passed = PG if acceptable == "pg" else PG_13
    labels = {"label": passed}
    if acceptable == "both":
        labels |= {"label:PG-13 ok": PG_13, "label:PG ok": PG}
    columns: list[pl.Expr | pl.Series] = [
        (~marks.is_in(list(some))).alias(name) for name, some in labels.items()
    ]
    columns += [pl.col(name).alias(as_) for as_, name in names.items() if name]
    parts = [table.select(pl.col(one).alias("text"), *columns).filter(rated) for one in asked]
    if not names["id"]:
        parts = [part.with_row_index("id", offset=1) for part in parts]
    if len(asked) > 1:
        parts = [_as_set(part, one, dropped) for part, one in zip(parts, asked, strict=True)]
    frame = pl.concat(parts)
    made = None
    if groups:
        frame = frame.with_columns(pl.col("id").cast(pl.String))
        dates = frame["year"].to_list() if names["year"] else [None] * len(frame)
        titles = frame["title"].fill_null("").to_list()
        years = [year_in(date) for date in dates]
        made, missed = groups_by_title(frame["id"], titles, years, read_identity_lists(groups))
        dropped += missed
    data = text_dataset(
        frame.drop("title", "year", strict=False),
        family="generative-ai",
        files=[file],
        exclusions=dropped,
        groups=made,
        name="synopses" if built is None else built.name,
        title=f"Synopses with age ratings, {acceptable.upper()} acceptable",
        source="kaggle.com/shivamb/netflix-shows" if built is None else built.source,
        licence="CC0 (the Netflix titles); otherwise that of your file",
        citation="Identity-related Speech Suppression in Generative AI Content Moderation, for the "
        "use of age ratings as labels.",
        known_harms="Descriptions of violence, abuse and drugs.",
        unknowns="The rating is of the film, not of its synopsis: a mild synopsis of a film for "
        "adults counts as one that should be flagged. Unrated titles are left out.",
    )
    if built is None:
        return data
    card = data.card.model_copy(update={"dropped": (*built.dropped, *data.card.dropped)})
    return replace(data, card=card)


def _first(table: pl.DataFrame, *names: str) -> tuple[str, ...]:
    return tuple(name for name in names if name in table.columns)[:1]


def _chosen(given: str | None, table: pl.DataFrame, *names: str) -> str:
    """Return the column that was given, or the first of some that the table has; or nothing."""
    return given if given is not None else "".join(_first(table, *names))


def _as_set(part: pl.DataFrame, name: str, dropped: list[Exclusion]) -> pl.DataFrame:
    """Return the synopses of one length as a set, without the titles that have none."""
    blank = part["text"].is_null() | (part["text"].str.strip_chars() == "")
    if blank.any():
        reason = f"they have no {name} synopsis"
        dropped.append(Exclusion("texts", "titles", int(blank.sum()), reason, part.height))
    return part.filter(~blank).with_columns(
        pl.concat_str(pl.col("id").cast(pl.String), pl.lit(f":{name}")).alias("id"),
        pl.lit(name).alias("set"),
    )


def _built_card(file: Path) -> Card | None:
    """Return the card that a builder left beside its table."""
    card = file.parent / "card.json"
    if file.name != BUILT or not card.is_file():
        return None
    try:
        return Card.model_validate_json(card.read_text(encoding="utf-8"))
    except ValueError as error:
        raise DataError(str(card), [f"it is not a card: {error}"]) from None
