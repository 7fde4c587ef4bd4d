"""MovieLens in the forms it is published in: CSV files, ``::`` files, a ZIP archive of either."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl

from ombud.data.archives import extract_zip, gunzip
from ombud.data.card import Card
from ombud.data.csv_columns import CsvColumns, open_columns
from ombud.data.dataset import Dataset
from ombud.data.groups import Grouping
from ombud.data.interactions import Interactions
from ombud.errors import DataError
from ombud.files import hash_file
from ombud.registry import source

__all__ = [
    "CITATION",
    "LICENCE",
    "MovieLensFiles",
    "locate",
    "movielens",
    "open_ratings",
    "read_links",
    "read_titles",
    "read_user_groups",
]

LICENCE = (
    "GroupLens terms: research use with acknowledgement; no commercial use without permission; "
    "see the README of the edition for redistribution"
)
CITATION = (
    "F. Maxwell Harper and Joseph A. Konstan. 2015. The MovieLens Datasets: History and Context. "
    "ACM Transactions on Interactive Intelligent Systems 5, 4, Article 19. doi:10.1145/2827872"
)
_AGES = {
    "1": "under 18",
    "18": "18-24",
    "25": "25-34",
    "35": "35-44",
    "45": "45-49",
    "50": "50-55",
    "56": "56 and over",
}
_OCCUPATIONS = [
    "other",
    "academic/educator",
    "artist",
    "clerical/admin",
    "college/grad student",
    "customer service",
    "doctor/health care",
    "executive/managerial",
    "farmer",
    "homemaker",
    "K-12 student",
    "lawyer",
    "programmer",
    "retired",
    "sales/marketing",
    "scientist",
    "self-employed",
    "technician/engineer",
    "tradesman/craftsman",
    "unemployed",
    "writer",
]
_MEMBERS = ("ratings.csv", "links.csv", "movies.csv", "ratings.dat", "movies.dat", "users.dat")


@dataclass(frozen=True)
class MovieLensFiles:
    """Where the files of one edition are.

    Parameters
    ----------
    ratings
        ``ratings.csv`` or an unpacked ``ratings.dat``.
    links, movies, users
        The other files; None where the edition has none.
    hashes
        SHA-256 of the files as they were given.
    """

    ratings: Path
    links: Path | None = None
    movies: Path | None = None
    users: Path | None = None
    hashes: dict[str, str] = field(default_factory=dict)

    @property
    def dotted(self) -> bool:
        """Whether columns are separated by ``::``."""
        return self.ratings.suffix == ".dat"

    @property
    def rating_scale(self) -> tuple[float, float]:
        """Lowest and highest rating: whole stars in the editions that describe their users."""
        return (1.0, 5.0) if self.users is not None else (0.5, 5.0)


@contextmanager
def locate(path: str | Path, *, scratch: Path | None = None) -> Iterator[MovieLensFiles]:
    """Find the files of a MovieLens edition in a folder or a ZIP archive.

    Parameters
    ----------
    path
        A folder with ``ratings.csv`` or one ``ratings*.dat`` (also ``.gz``), or the ZIP archive.
    scratch
        Where archives are unpacked for as long as they are needed.
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
    ratings = [file for file in files if file.name.startswith("ratings")]
    if len(ratings) != 1:
        names = ", ".join(file.name for file in ratings) or "none"
        raise DataError(name, [f"one file of ratings was expected (ratings.csv); found {names}"])
    by_name = {file.name.removesuffix(file.suffix): file for file in files}
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
    if not files.dotted:
        names = ("userId", "movieId", "rating", "timestamp")
    types = (pl.Int64, pl.Int64, pl.Float32, pl.Int64)
    pairs = list(zip(names, types, strict=True))
    columns = dict(zip(("user", "item", "rating", "time"), pairs, strict=True))
    if not times:
        del columns["time"]
    separator = ":" if files.dotted else ","
    with open_columns(
        files.ratings, columns, header=not files.dotted, separator=separator, scratch=scratch
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
    if files.movies.suffix == ".dat":
        rows = [line.split("::") for line in _latin_lines(files.movies)]
        table = pl.DataFrame(
            {"item": [int(row[0]) for row in rows], "title": [row[1] for row in rows]}
        )
    else:
        table = pl.read_csv(files.movies, columns=["movieId", "title"]).rename({"movieId": "item"})
    year = pl.col("title").str.extract(r"\((\d{4})\)\s*$").cast(pl.Int32)
    return table.with_columns(year=year)


def read_user_groups(files: MovieLensFiles) -> pl.DataFrame | None:
    """Return ``user``, ``gender``, ``age`` and ``occupation``; None where users are not described.

    The postal code that the file also holds is not read.
    """
    if files.users is None:
        return None
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
        schema={"user": pl.Int64, "gender": pl.String, "age": pl.String, "occupation": pl.String},
    )


def _latin_lines(path: Path) -> list[str]:
    return [line for line in path.read_text(encoding="latin-1").split("\n") if line.strip()]


def _dataset(files: MovieLensFiles) -> Dataset:
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
    card = Card(
        name="movielens",
        title="MovieLens ratings",
        source="GroupLens Research, University of Minnesota (grouplens.org/datasets/movielens)",
        licence=LICENCE,
        citation=CITATION,
        known_harms="Ratings can identify people who rated in public elsewhere.",
        unknowns="No labels. A title that a user has not rated is unknown, not disliked.",
        hashes=files.hashes,
        facts={
            "users": interactions.n_users,
            "movies": interactions.n_items,
            "interactions": len(interactions),
            "interaction_density": interactions.density,
        },
    )
    return Dataset(interactions=interactions, users=users, card=card)


@source("movielens")
def movielens(path: str | Path) -> Dataset:
    """MovieLens ratings: a folder or ZIP archive of any edition (CSV or ``::`` files).

    Holds ratings from 0.5 to 5 stars with times; the 1M edition also says the gender, age and
    occupation that its users gave. There are no labels: see `movielens-tmdb` and `ml-ddd`.

    Licence: GroupLens terms, research use with acknowledgement. Known harms: ratings can identify
    people who rated in public elsewhere.

    Parameters
    ----------
    path
        The folder or the archive.
    """
    with locate(path) as files:
        return _dataset(files)
