"""ML-DDD from small files of exactly the published formats."""

from __future__ import annotations

import io
import json
import pickle
import zipfile
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from ombud import registry
from ombud.data.sources._build import Filter, write_dataset
from ombud.data.sources.ddd_votes import read_dictionary
from ombud.data.sources.ml_ddd import build_ml_ddd, ml_ddd
from ombud.errors import DataError
from ombud.taxonomy import load_taxonomy


@pytest.fixture(scope="module")
def made(
    tmp_path_factory: pytest.TempPathFactory, formats: ModuleType
) -> tuple[Path, dict[str, Any]]:
    """ml-25m.zip and ddd_dict.pkl of 300 users and 400 movies."""
    folder = tmp_path_factory.mktemp("ml-ddd")
    ids = formats.write_movielens_zip(
        folder / "ml-25m.zip", users=300, movies=400, ratings=4_000, seed=3
    )
    votes = formats.write_votes(folder / "ddd_dict.pkl", ids, voted=260, seed=3)
    return folder, votes


def published_way(folder: Path, votes: dict[str, Any], strict: bool) -> tuple[Any, Any]:
    """The published pipeline in pandas, as a second route: three passes, one-hot statuses."""
    with zipfile.ZipFile(folder / "ml-25m.zip") as archive:
        ratings = pd.read_csv(io.BytesIO(archive.read("ml-25m/ratings.csv")))
    works = {movie for movies in votes.values() for movie in movies}
    for _ in range(3):
        counts = ratings["userId"].value_counts()
        ratings = ratings[ratings["userId"].isin(counts[counts >= 3].index)]
        counts = ratings["movieId"].value_counts()
        works &= set(counts[counts >= 3].index)
        ratings = ratings[ratings["movieId"].isin(works)]
    totals = {"clear_yes": 0, "clear_no": 0, "unclear": 0, "no_votes": 0}
    for warning, movies in votes.items():
        for movie in works if warning != "topic 287" else ():
            yes, no = movies[movie]["yesSum"], movies[movie]["noSum"]
            bar = 0.75 * (yes + no)
            if bar == 0:
                totals["no_votes"] += 1
            elif yes > bar or (not strict and yes == bar):
                totals["clear_yes"] += 1
            elif no > bar or (not strict and no == bar):
                totals["clear_no"] += 1
            else:
                totals["unclear"] += 1
    return ratings, totals


@pytest.mark.parametrize("strict", [False, True])
def test_the_published_code_gives_the_same(made: tuple[Path, dict[str, Any]], strict: bool) -> None:
    folder, votes = made
    data = build_ml_ddd(
        folder / "ml-25m.zip", folder / "ddd_dict.pkl", strict=strict, keep=Filter(3, 3)
    )
    ratings, totals = published_way(folder, votes, strict)
    facts = data.card.facts
    assert facts["interactions"] == len(ratings) < 4_000
    assert facts["users"] == ratings["userId"].nunique()
    assert facts["movies"] == ratings["movieId"].nunique()
    assert {key: facts[key] for key in totals} == totals
    per_user = ratings.groupby("userId").size()
    assert facts["median_interactions_per_user"] == per_user.median()
    assert facts["sd_interactions_per_user"] == pytest.approx(np.std(per_user))
    per_movie = ratings.groupby("movieId")["rating"]
    assert facts["mean_rating"] == pytest.approx(per_movie.mean().mean())
    assert facts["mean_ratings_per_movie"] == pytest.approx(per_movie.size().mean())
    pairs = facts["movies"] * 136
    assert facts["warning_density"] == pytest.approx(totals["clear_yes"] / pairs)
    assert facts["interaction_density"] == pytest.approx(
        len(ratings) / (facts["users"] * facts["movies"])
    )
    assert facts["threshold_rule"] == ("more than" if strict else "at least")


def test_to_the_fixed_point(made: tuple[Path, dict[str, Any]]) -> None:
    folder, _ = made
    data = build_ml_ddd(folder / "ml-25m.zip", folder / "ddd_dict.pkl")
    assert data.interactions is not None and data.labels is not None
    matrix = data.interactions.matrix
    assert np.diff(matrix.indptr).min() >= 3
    assert np.bincount(matrix.indices, minlength=matrix.shape[1]).min() >= 3
    assert data.card.facts["filter_complete"] == "yes"
    assert data.labels.items == data.interactions.items
    dropped = "\n".join(data.card.dropped)
    assert "filter, pass 1" in dropped
    assert "they are not in the votes" in dropped
    assert "1 labels that ombud refuses to store" in dropped
    assert "topic 287" not in data.card.model_dump_json()
    assert data.card.facts["labels"] == 136 and data.card.facts["labels_at_the_source"] == 137
    assert set(data.card.hashes) == {"ml-25m.zip", "ddd_dict.pkl"}
    assert not any(key.startswith("published") for key in data.card.facts), "too small to compare"


def test_votes_stay_with_their_movie(made: tuple[Path, dict[str, Any]]) -> None:
    folder, votes = made
    data = build_ml_ddd(folder / "ml-25m.zip", folder / "ddd_dict.pkl")
    assert data.labels is not None and data.labels.yes is not None and data.labels.no is not None
    taxonomy = load_taxonomy("warnings-ddd@1")
    by_id = {taxonomy.resolve(warning): movies for warning, movies in votes.items()}
    for row, movie in enumerate(data.labels.items.ids.tolist()):
        for place, name in enumerate(data.labels.names):
            pair = by_id[name][movie]
            assert data.labels.yes[row, place] == pair["yesSum"]
            assert data.labels.no[row, place] == pair["noSum"]


def test_ratings_survive_pseudonyms_and_the_folder(
    made: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    folder, _ = made
    data = build_ml_ddd(folder / "ml-25m.zip", folder / "ddd_dict.pkl")
    write_dataset(data, tmp_path / "built")
    names = sorted(p.name for p in (tmp_path / "built").iterdir())
    assert names == ["card.json", "interactions.parquet", "labels.parquet"]
    again = ml_ddd(str(tmp_path / "built"))
    assert again.interactions is not None and data.interactions is not None
    assert (again.interactions.matrix != data.interactions.matrix).nnz == 0
    assert again.interactions.items == data.interactions.items
    assert data.labels is not None and again.labels is not None
    assert again.labels.rule == data.labels.rule
    assert again.labels.names == tuple(sorted(data.labels.names))
    reordered = data.labels.select(again.labels.names)
    assert (again.labels.aligned(data.labels.items) == reordered.states).all()
    # Each history is that of one original user, whoever it is.
    with zipfile.ZipFile(folder / "ml-25m.zip") as archive:
        raw = pl.read_csv(archive.read("ml-25m/ratings.csv"))
    raw = raw.filter(pl.col("movieId").is_in(again.interactions.items.ids.tolist()))
    original = {
        frozenset(zip(movies, ratings, strict=True))
        for _, movies, ratings in raw.group_by("userId").agg("movieId", "rating").iter_rows()
    }
    built = again.interactions.to_frame().group_by("user").agg("item", "rating")
    histories = [frozenset(zip(i, r, strict=True)) for _, i, r in built.iter_rows()]
    assert set(histories) <= original


def test_no_original_user_id_is_recoverable(made: tuple[Path, dict[str, Any]]) -> None:
    folder, _ = made
    first, second = (
        build_ml_ddd(folder / "ml-25m.zip", folder / "ddd_dict.pkl").interactions for _ in range(2)
    )
    assert first is not None and second is not None
    assert first.users.ids.tolist() == list(range(1, first.n_users + 1))
    assert first.matrix.shape == second.matrix.shape
    assert (first.matrix != second.matrix).nnz > 0, "every build draws new pseudonyms"


def test_the_source_is_registered_and_reads_only_its_own(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="ombud data build ml-ddd"):
        registry.create("source", "ml-ddd", {"path": str(tmp_path)})
    (tmp_path / "card.json").write_text(json.dumps({"name": "ao3"}))
    with pytest.raises(DataError, match="'ml-ddd' was expected"):
        registry.create("source", "ml-ddd", {"path": str(tmp_path)})


def test_a_folder_is_not_overwritten(made: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    folder, _ = made
    data = build_ml_ddd(folder / "ml-25m.zip", folder / "ddd_dict.pkl")
    target = tmp_path / "built"
    target.mkdir()
    (target / "mine.txt").write_text("keep")
    with pytest.raises(DataError, match="it exists"):
        write_dataset(data, target)
    assert (target / "mine.txt").read_text() == "keep"
    write_dataset(data, target, replace=True)
    assert (target / "card.json").exists() and not (target / "mine.txt").exists()
    assert [p.name for p in tmp_path.iterdir()] == ["built"]


def test_a_failed_write_leaves_nothing(
    made: tuple[Path, dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, _ = made
    data = build_ml_ddd(folder / "ml-25m.zip", folder / "ddd_dict.pkl")

    def full(*_: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr("ombud.data.tables._write_labels", full)
    with pytest.raises(OSError, match="no space"):
        write_dataset(data, tmp_path / "built")
    assert list(tmp_path.iterdir()) == []


WRONG = {
    "shape": {"Does the dog die": [1]},
    "outer key": {1: {}},
    "no votes": {"Does the dog die": {1: {"yesSum": 1}}},
    "negative": {"Does the dog die": {1: {"yesSum": -1, "noSum": 2}}},
    "text": {"Does the dog die": {1: {"yesSum": "many", "noSum": 2}}},
    "not a movie": {"Does the dog die": {"x": {"yesSum": 1, "noSum": 2}}},
    "twice": {"Does the dog die": {1: {"yesSum": 1, "noSum": 2}, "1": {"yesSum": 1, "noSum": 2}}},
    "same label": {
        "Does the dog die": {1: {"yesSum": 1, "noSum": 2}},
        "a dog dies": {1: {"yesSum": 1, "noSum": 2}},
    },
    "nothing known": {"Is there a unicorn": {1: {"yesSum": 1, "noSum": 2}}},
    "empty": {},
}


@pytest.mark.parametrize("name", sorted(WRONG))
def test_other_dictionaries_are_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / "ddd_dict.pkl"
    path.write_bytes(pickle.dumps(WRONG[name]))
    with pytest.raises(DataError, match="ddd_dict.pkl"):
        read_dictionary(path)


def test_a_shared_dictionary_cannot_be_written_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = {n: {"yesSum": 1, "noSum": 2} for n in range(100)}
    path = tmp_path / "ddd_dict.pkl"
    path.write_bytes(pickle.dumps({f"w{n}": inner for n in range(1000)}))
    assert path.stat().st_size < 20_000, "a small file that stands for 100,000 pairs"
    monkeypatch.setattr("ombud.data.sources.ddd_votes._MOST_PAIRS", 50_000)
    with pytest.raises(DataError, match="100,000 pairs"):
        read_dictionary(path)
    monkeypatch.setattr("ombud.data.sources.ddd_votes._MOST_WARNINGS", 500)
    with pytest.raises(DataError, match="1,000 warnings"):
        read_dictionary(path)


def test_movie_ids_as_texts_and_unknown_topics(tmp_path: Path) -> None:
    path = tmp_path / "ddd_dict.pkl"
    votes = {
        "Does the dog die": {"12": {"yesSum": 3, "noSum": 1}},
        "Is there a unicorn": {"12": {}},
    }
    path.write_bytes(pickle.dumps(votes))
    found = read_dictionary(path)
    assert found.items.tolist() == [12]
    assert found.yes[0, found.names.index("a-dog-dies")] == 3
    assert "1 topics are not in warnings-ddd@1: Is there a unicorn" in str(found.exclusions[0])


def test_ratings_outside_the_scale_and_repeated_ratings(
    tmp_path: Path, made: tuple[Path, dict[str, Any]]
) -> None:
    votes = made[0] / "ddd_dict.pkl"
    for rows, words in (
        ("1,2,7.5,1\n1,3,4,1\n", "not from 0.5 to 5.0"),
        ("1,2,4.0,1\n1,2,3.0,2\n", "keep one rating"),
    ):
        (tmp_path / "ratings.csv").write_text("userId,movieId,rating,timestamp\n" + rows)
        with pytest.raises(DataError, match=words):
            build_ml_ddd(tmp_path, votes)
