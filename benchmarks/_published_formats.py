"""Files in exactly the formats in which ML-DDD and AO3 were published, of any size.

The contents are drawn at random (heavy tails on both sides, as in the real data); nothing real is
in them. The tests use the same functions at small sizes.
"""

from __future__ import annotations

import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl

from ombud.taxonomy import load_taxonomy

__all__ = ["ddd_warnings", "write_ao3", "write_movielens_zip", "write_votes"]

_BLOCK = 2_000_000


def _pairs(
    rng: np.random.Generator, rows: int, columns: int, wanted: int, rare: float = 0.3
) -> tuple[np.ndarray, np.ndarray]:
    """Draw distinct pairs, sorted by row, with heavy tails; some columns occur 1 to 4 times."""
    common = max(1, int(columns * (1 - rare)))
    few = np.repeat(np.arange(common, columns), rng.integers(1, 5, columns - common))
    keys = np.unique(rng.integers(0, rows, len(few)) * columns + few)
    tail = len(keys)
    while len(keys) < wanted:
        more = int((wanted - len(keys)) * 1.1) + 1000
        row = (rows * rng.random(more) ** 2).astype(np.int64)
        column = (common * rng.random(more) ** 2.5).astype(np.int64)
        keys = np.unique(np.concatenate([keys, row * columns + column]))
    surplus = rng.choice(len(keys), len(keys) - wanted, replace=False, shuffle=False)
    keys = np.delete(keys, surplus)
    assert tail < wanted, "more pairs must be wanted than the rare columns have"
    return keys // columns, keys % columns


def _append(frame: pl.DataFrame, file: Any, header: bool) -> None:
    frame.write_csv(file, include_header=header)


def write_movielens_zip(
    path: Path, *, users: int, movies: int, ratings: int, seed: int = 0, name: str = "ml-25m"
) -> np.ndarray:
    """Write ``ml-25m.zip`` with ratings, links and movies in a folder; return the movie ids."""
    rng = np.random.default_rng(seed)
    user, item = _pairs(rng, users, movies, ratings)
    ids = np.sort(rng.choice(np.arange(1, 4 * movies), movies, replace=False))
    with TemporaryDirectory(dir=path.parent) as folder:
        files = {
            member: Path(folder) / member for member in ("ratings.csv", "links.csv", "movies.csv")
        }
        with files["ratings.csv"].open("wb") as file:
            for low in range(0, ratings, _BLOCK):
                part = slice(low, low + _BLOCK)
                size = len(user[part])
                frame = pl.DataFrame(
                    {
                        "userId": user[part] + 1,
                        "movieId": ids[item[part]],
                        "rating": rng.integers(1, 11, size) / 2,
                        "timestamp": rng.integers(789652009, 1574327703, size),
                    }
                )
                _append(frame, file, low == 0)
        imdb = pl.Series(np.arange(1, movies + 1) * 3).cast(pl.String).str.zfill(7)
        tmdb = pl.Series(np.arange(1, movies + 1) * 5)
        tmdb = tmdb.zip_with(pl.Series(np.arange(movies) % 50 != 7), pl.Series([None] * movies))
        pl.DataFrame({"movieId": ids, "imdbId": imdb, "tmdbId": tmdb}).write_csv(files["links.csv"])
        titles = [f'"Film {n}, The" ({1950 + n % 70})' for n in range(movies)]
        genres = ["Drama|War"] * movies
        pl.DataFrame({"movieId": ids, "title": titles, "genres": genres}).write_csv(
            files["movies.csv"]
        )
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            archive.mkdir(name)
            for member, file_path in files.items():
                archive.write(file_path, f"{name}/{member}")
    return ids


def ddd_warnings() -> list[str]:
    """Return 137 warnings as the published dictionary spells them; refused ones by number."""
    taxonomy = load_taxonomy("warnings-ddd@1")
    names = [label.description.removesuffix("?") or label.title for label in taxonomy.labels]
    return [*names, "topic 287"]


def write_votes(path: Path, movies: np.ndarray, *, voted: int, seed: int = 0) -> dict[str, Any]:
    """Write ``ddd_dict.pkl`` for some of the movies, and return what was pickled."""
    rng = np.random.default_rng(seed)
    chosen = np.sort(rng.choice(movies, voted, replace=False)).tolist()
    content: dict[str, Any] = {}
    for warning in ddd_warnings():
        asked = rng.random(voted) < 0.22
        lean = rng.random(voted) < 0.18
        size = rng.integers(1, 40, voted) * asked
        yes = rng.binomial(size, np.where(lean, 0.93, 0.06))
        content[warning] = {
            movie: {"yesSum": a, "noSum": b}
            for movie, a, b in zip(chosen, yes.tolist(), (size - yes).tolist(), strict=True)
        }
    path.write_bytes(pickle.dumps(content))
    return content


def write_ao3(
    folder: Path,
    *,
    users: int,
    works: int,
    kudos: int,
    seed: int = 0,
    user_name: Callable[[np.ndarray], Any] = lambda codes: codes,
) -> tuple[Path, Path]:
    """Write the two tables of AO3 with the index column that pandas adds; return their paths."""
    rng = np.random.default_rng(seed)
    work, user = _pairs(rng, works, users, kudos)
    ids = np.sort(rng.choice(np.arange(1, 60 * works), works, replace=False))
    taxonomy = load_taxonomy("warnings-ao3@1")
    applied = rng.random((works, len(taxonomy.ids))) < 0.0526
    given = np.bincount(work, minlength=works)
    sensitivity, interactions = (
        folder / f"ao3_{name}_table.csv" for name in ("sensitivity", "interaction")
    )
    with sensitivity.open("wb") as file:
        step = max(1, int(_BLOCK * works / kudos))
        for low in range(0, works, step):
            high = min(low + step, works)
            begin, end = np.searchsorted(work, [low, high])
            lists = (
                pl.DataFrame({"work": work[begin:end], "user": user_name(user[begin:end])})
                .group_by("work", maintain_order=True)
                .agg(pl.col("user").cast(pl.String))
                .select("work", users=pl.format("[{}]", pl.col("user").list.join(", ")))
            )
            rows = np.arange(low, high)
            marks = [
                str([name for name, on in zip(taxonomy.ids, row, strict=True) if on])
                for row in applied[low:high]
            ]
            frame = pl.DataFrame({"": rows, "work_id": ids[low:high], "work": rows}).join(
                lists, on="work", how="left", maintain_order="left"
            )
            frame = frame.select(
                "",
                "work_id",
                n_hits=pl.Series(given[low:high] * 36 + 100),
                n_kudos=pl.Series(given[low:high] * 2),
                n_users=pl.Series(given[low:high]),
                users=pl.col("users").fill_null("[]"),
                **{
                    name: pl.Series(applied[low:high, place].astype(np.int8))
                    for place, name in enumerate(taxonomy.ids)
                },
                warnings_fine_open=pl.Series(marks),
            )
            _append(frame, file, low == 0)
    order = rng.permutation(kudos)
    with interactions.open("wb") as file:
        for low in range(0, kudos, _BLOCK):
            part = order[low : low + _BLOCK]
            frame = pl.DataFrame(
                {
                    "": np.arange(low, low + len(part)),
                    "user_id": user_name(user[part]),
                    "work_id": ids[work[part]],
                }
            )
            _append(frame, file, low == 0)
    return sensitivity, interactions
