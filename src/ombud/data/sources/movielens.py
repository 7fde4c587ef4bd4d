"""MovieLens as it is published: CSV files, ``::`` files, the 100K files, or a ZIP archive."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl

from ombud.data.archives import extract_zip, gunzip
from ombud.data.card import Card
from ombud.data.csv_columns import CsvColumns, open_columns
from ombud.data.dataset import Dataset
from ombud.data.exclusions import Exclusion
from ombud.data.groups import Grouping
from ombud.data.interactions import Interactions
from ombud.data.items import Items
from ombud.data.labels import Labels
from ombud.errors import DataError
from ombud.files import hash_file
from ombud.registry import source

LICENCE = (
    "GroupLens terms: research use with acknowledgement; no commercial use without permission; "
    "see the README of the edition for redistribution"
)
CITATION = (
    "F. Maxwell Harper and Joseph A. Konstan. 2015. The MovieLens Datasets: History and Context. "
    "ACM Transactions on Interactive Intelligent Systems 5, 4, Article 19. doi:10.1145/2827872"
)
_AGES = {
    "1": "under 18", "18": "18-24", "25": "25-34", "35": "35-44", "45": "45-49", "50": "50-55",
    "56": "56 and over",
}  # fmt: skip
_OCCUPATIONS = [
    "other", "academic/educator", "artist", "clerical/admin", "college/grad student",
    "customer service", "doctor/health care", "executive/managerial", "farmer", "homemaker",
    "K-12 student", "lawyer", "programmer", "retired", "sales/marketing", "scientist",
    "self-employed", "technician/engineer", "tradesman/craftsman", "unemployed", "writer",
]  # fmt: skip
_GENRES_100K = (
    "unknown", "Action", "Adventure", "Animation", "Children's", "Comedy", "Crime", "Documentary",
    "Drama", "Fantasy", "Film-Noir", "Horror", "Musical", "Mystery", "Romance", "Sci-Fi",
    "Thriller", "War", "Western",
)  # fmt: skip
_NO_GENRE = ("(no genres listed)", "unknown", "")
_NAMES_100K = {"u.data": "ratings", "u.item": "movies", "u.user": "users"}
_MEMBERS = (
    "ratings.csv", "links.csv", "movies.csv", "ratings.dat", "movies.dat", "users.dat",
    *_NAMES_100K,
)  # fmt: skip


_DESCRIBED = {"user": pl.Int64, "gender": pl.String, "age": pl.String, "occupation": pl.String}


@dataclass(frozen=True)
class MovieLensFiles:
    """Where the files of one edition are."""

    ratings: Path  # ``ratings.csv``, an unpacked ``ratings.dat``, or ``u.data`` of the 100K edition
    # The other files; None where the edition has none.
    links: Path | None = None
    movies: Path | None = None
    users: Path | None = None
    hashes: dict[str, str] = field(default_factory=dict)  # SHA-256 of the files as they were given

    @property
    def dotted(self) -> bool:
        """Whether columns are separated by ``::``."""
        return self.ratings.suffix == ".dat"

    @property
    def is_100k(self) -> bool:
        """Whether it is the 100K edition, whose files have names of their own."""
        return self.ratings.name == "u.data"

    @property
    def rating_scale(self) -> tuple[float, float]:
        """Lowest and highest rating: whole stars in the editions that describe their users."""
        return (1.0, 5.0) if self.users is not None or self.is_100k else (0.5, 5.0)


@contextmanager
def locate(path: str | Path, *, scratch: Path | None = None) -> Iterator[MovieLensFiles]:
    """Find the files of a MovieLens edition in a folder or a ZIP archive.

    `path` is a folder with ``ratings.csv``, one ``ratings*.dat`` (also ``.gz``) or ``u.data``, or
    the ZIP archive, which is unpacked in `scratch` for as long as it is needed.
    """
    index = Path(path)
    with TemporaryDirectory(dir=scratch, prefix="ombud-movielens-") as folder:
        if index.is_file() and index.suffix.lower() == ".zip":
            result = extract_zip(index, Path(folder), names=_MEMBERS)
            yield _sorted(list(result.values()), index.name, {index.name: hash_file(index)})
        elif index.is_dir():
            files = sorted(p for p in index.iterdir() if _is_member(p))
            hashes = {file.name: hash_file(file) for file in files}
            packed = [file for file in files if file.suffix == ".gz"]
            files = [file for file in files if file.suffix != ".gz"]
            files += [gunzip(file, Path(folder) / file.stem) for file in packed]
            yield _sorted(files, index.name, hashes)
        else:
            fault = f"there is no folder or ZIP archive {index}"
            raise DataError("MovieLens", [f"{fault}; 'ombud data get movielens-25m' fetches one"])


def _is_member(path: Path) -> bool:
    name = path.name.removesuffix(".gz")
    return name in _MEMBERS or (name.startswith("ratings") and name.endswith(".dat"))


def _sorted(files: list[Path], name: str, hashes: dict[str, str]) -> MovieLensFiles:
    ratings = [file for file in files if file.name.startswith("ratings") or file.name == "u.data"]
    if len(ratings) != 1:
        names = ", ".join(file.name for file in ratings) or "none"
        raise DataError(name, [f"one file of ratings was expected (ratings.csv); found {names}"])
    by_name = {_NAMES_100K.get(file.name, file.name.removesuffix(file.suffix)): file
               for file in files}  # fmt: skip
    return MovieLensFiles(
        ratings[0], by_name.get("links"), by_name.get("movies"), by_name.get("users"), hashes
    )


@contextmanager
def open_ratings(
    files: MovieLensFiles, *, times: bool = False, scratch: Path | None = None
) -> Iterator[CsvColumns]:
    """Open the ratings as columns ``user``, ``item``, ``rating`` and, if asked for, ``time``."""
    # With ':' between columns, every second column of a '::' file is empty.
    names: tuple[Any, ...] = (0, 2, 4, 6)
    if files.is_100k:
        names = (0, 1, 2, 3)
    elif not files.dotted:
        names = ("userId", "movieId", "rating", "timestamp")
    types = (pl.Int64, pl.Int64, pl.Float32, pl.Int64)
    pairs = list(zip(names, types, strict=True))
    columns = dict(zip(("user", "item", "rating", "time"), pairs, strict=True))
    if not times:
        del columns["time"]
    separator = "\t" if files.is_100k else ":" if files.dotted else ","
    header = not (files.dotted or files.is_100k)
    with open_columns(
        files.ratings, columns, header=header, separator=separator, scratch=scratch
    ) as opened:
        yield opened


def read_links(files: MovieLensFiles) -> pl.DataFrame:
    """Return ``item``, ``imdb`` and ``tmdb`` (whole numbers, missing where there is no link)."""
    if files.links is None:
        fault = "this edition has no links.csv; name another edition that has one"
        raise DataError("MovieLens", [fault])
    wanted = {"movieId": pl.Int64, "imdbId": pl.Int64, "tmdbId": pl.Int64}
    try:
        table = pl.read_csv(files.links, columns=list(wanted), schema_overrides=wanted)
    except pl.exceptions.PolarsError as error:
        raise DataError(files.links.name, [f"it cannot be read as links: {error}"]) from None
    return table.rename({"movieId": "item", "imdbId": "imdb", "tmdbId": "tmdb"})


def read_titles(files: MovieLensFiles) -> pl.DataFrame:
    """Return ``item``, ``title`` and ``year`` (missing where the title has none)."""
    if files.movies is None:
        return pl.DataFrame(schema={"item": pl.Int64, "title": pl.String, "year": pl.Int32})
    if files.movies.suffix != ".csv":
        rows = _rows(files.movies, 2)
        table = pl.DataFrame(
            {"item": [int(row[0]) for row in rows], "title": [row[1] for row in rows]}
        )
    else:
        table = pl.read_csv(files.movies, columns=["movieId", "title"]).rename({"movieId": "item"})
    year = pl.col("title").str.extract(r"\((\d{4})\)\s*$").cast(pl.Int32)
    return table.with_columns(year=year)


def read_genres(files: MovieLensFiles) -> pl.DataFrame:
    """Return ``item`` and ``label``, a row for each genre of a title; none where none is listed."""
    if files.movies is None:
        fault = "this edition has no file of movies, so no genres; leave genres = true out"
        raise DataError("MovieLens", [fault])
    if files.movies.suffix == ".csv":
        table = pl.read_csv(files.movies, columns=["movieId", "genres"])
        table = table.select(item="movieId", label=pl.col("genres").str.split("|"))
    elif files.is_100k:
        # After id, title, two dates and an address there is a flag for each genre.
        rows = _rows(files.movies, 5 + len(_GENRES_100K))
        told = [[g for g, flag in zip(_GENRES_100K, row[5:], strict=False) if flag.strip() == "1"]
                for row in rows]  # fmt: skip
        table = pl.DataFrame({"item": [int(row[0]) for row in rows], "label": told})
    else:
        rows = _rows(files.movies, 3)
        told = [row[2].strip().split("|") for row in rows]
        table = pl.DataFrame({"item": [int(row[0]) for row in rows], "label": told})
    table = table.with_columns(pl.col("label").cast(pl.List(pl.String)))
    return table.explode("label").filter(~pl.col("label").is_in(_NO_GENRE))


def _rows(path: Path, wanted: int) -> list[list[str]]:
    """Return the columns of each line of a ``::`` or ``|`` file."""
    separator = "::" if path.suffix == ".dat" else "|"
    rows = [line.split(separator) for line in _latin_lines(path)]
    short = [number for number, row in enumerate(rows, start=1) if len(row) < wanted]
    if short:
        fault = f"line {short[0]} has fewer than {wanted} columns ({len(short):,} such lines)"
        raise DataError(path.name, [fault])
    return rows


def _age_group(years: str) -> str | None:
    """Return the age in the groups of the 1M edition."""
    if not years.strip().isdigit():
        return None
    return _AGES[str(max(low for low in map(int, _AGES) if low <= max(1, int(years))))]


def read_user_groups(files: MovieLensFiles) -> pl.DataFrame | None:
    """Return ``user``, ``gender``, ``age`` and ``occupation``; None where users are not described.

    The postal code that the file also holds is not read.
    """
    if files.users is None:
        return None
    if files.is_100k:
        rows = _rows(files.users, 4)
        return pl.DataFrame(
            {
                "user": [int(row[0]) for row in rows],
                "gender": [row[2] or None for row in rows],
                "age": [_age_group(row[1]) for row in rows],
                "occupation": [row[3] or None for row in rows],
            },
            schema=_DESCRIBED,
        )
    rows = [line.split("::") for line in _latin_lines(files.users)]
    short = [number for number, row in enumerate(rows, start=1) if len(row) < 4]
    if short:
        fault = f"line {short[0]} has fewer than four columns ({len(short):,} such lines)"
        raise DataError(files.users.name, [f"{fault}; user::gender::age::occupation was expected"])
    jobs = {str(code): name for code, name in enumerate(_OCCUPATIONS)}
    return pl.DataFrame(
        {
            "user": [int(row[0]) for row in rows],
            "gender": [row[1] or None for row in rows],
            "age": [_AGES.get(row[2]) for row in rows],
            "occupation": [jobs.get(row[3]) for row in rows],
        },
        schema=_DESCRIBED,
    )


def _latin_lines(path: Path) -> list[str]:
    return [line for line in path.read_text(encoding="latin-1").split("\n") if line.strip()]


def _dataset(files: MovieLensFiles, genres: bool = False) -> Dataset:
    """Return ratings with times and, where the edition has them, groups of users."""
    with open_ratings(files, times=True) as columns:
        frame = pl.DataFrame([columns.column(c) for c in ("user", "item", "rating", "time")])
    interactions = Interactions.from_frame(
        frame, rating_scale=files.rating_scale, source=files.ratings.name
    )
    described = read_user_groups(files)
    users = None
    if described is not None:
        by = ("gender", "age", "occupation")
        users = Grouping.from_frame(described, by=by, source="users.dat")
    labels = _genre_labels(files, interactions) if genres else None
    unknowns = "No labels. A title that a user has not rated is unknown, not disliked."
    if labels is not None:
        unknowns = f"Genres: {labels.rule}. A title that a user has not rated is unknown."
    card = Card(
        name="movielens",
        title="MovieLens ratings",
        source="GroupLens Research, University of Minnesota (grouplens.org/datasets/movielens)",
        licence=LICENCE,
        citation=CITATION,
        known_harms="Ratings can identify people who rated in public elsewhere.",
        unknowns=unknowns,
        hashes=files.hashes,
        facts={
            "users": interactions.n_users,
            "movies": interactions.n_items,
            "interactions": len(interactions),
            "interaction_density": interactions.density,
        },
    )
    items = _described_items(files, interactions)
    return Dataset(interactions=interactions, labels=labels, users=users, items=items, card=card)


def _described_items(files: MovieLensFiles, interactions: Interactions) -> Items | None:
    """Return the title, and the genres joined by ``|``, of every rated movie."""
    if files.movies is None:
        return None
    rated = pl.DataFrame({"item": interactions.items.ids})
    genres = read_genres(files).group_by("item", maintain_order=True).agg(
        genres=pl.col("label").str.join("|")
    )  # fmt: skip
    titles = read_titles(files).select("item", "title").unique("item", keep="first")
    told = rated.join(titles, on="item", how="left").join(genres, on="item", how="left")
    return Items.from_frame(told, source=files.movies.name)


def _genre_labels(files: MovieLensFiles, interactions: Interactions) -> Labels:
    """Return genres as labels: *no* where others are listed, unknown where none is."""
    labels = Labels.from_applied(read_genres(files), source="genres").looked_at()
    bare = int((labels.items.codes(interactions.items.arrow) < 0).sum())
    rule = "a genre that is not listed is no; titles without any genre are unknown"
    reason = "no genre is listed: their labels are unknown"
    gone = Exclusion("genres", "titles", bare, reason, interactions.n_items)
    left = (*labels.exclusions, gone) if bare else labels.exclusions
    return replace(labels, rule=rule, exclusions=left)


@source("movielens")
def movielens(path: str | Path, genres: bool = False) -> Dataset:
    """MovieLens ratings: a folder or ZIP archive of any edition (CSV, ``::`` or 100K files).

    Holds ratings from 0.5 to 5 stars with times, titles and genres of movies; the 100K and 1M
    editions also say the gender, age and occupation that their users gave (ages of 100K in the
    groups of 1M). Labels are genres, on request; for content warnings see `movielens-tmdb` and
    `ml-ddd`.

    Licence: GroupLens terms, research use with acknowledgement. Known harms: ratings can identify
    people who rated in public elsewhere.

    Parameters
    ----------
    path
        The folder or the archive.
    genres
        Whether genres are labels: *no* where a title has other genres, unknown where it has none.
    """
    with locate(path) as files:
        return _dataset(files, genres)
