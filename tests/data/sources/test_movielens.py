"""MovieLens in its published forms, and warnings from TMDB keywords."""

from __future__ import annotations

import csv
import gzip
import zipfile
from pathlib import Path
from types import ModuleType

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ombud import registry
from ombud.data import LabelState
from ombud.data.sources.keyword_mapping import mapping_names, read_mapping
from ombud.data.sources.movielens import locate, movielens, read_links, read_titles
from ombud.data.sources.tmdb_keywords import (
    keyword_labels,
    movielens_tmdb,
    parse_keywords,
    read_keywords,
)
from ombud.errors import DataError
from ombud.taxonomy import load_taxonomy
from ombud.taxonomy.resources import is_refused

RATINGS = "userId,movieId,rating,timestamp\n1,31,2.5,1260759144\n1,10,3.0,1260759179\n2,10,5,5\n"


def csv_folder(tmp_path: Path) -> Path:
    (tmp_path / "ratings.csv").write_text(RATINGS)
    (tmp_path / "links.csv").write_text("movieId,imdbId,tmdbId\n10,0114709,862\n31,0113497,\n")
    (tmp_path / "movies.csv").write_text('movieId,title,genres\n10,"A, The (1995)",X\n31,B,Y\n')
    return tmp_path


def dat_folder(tmp_path: Path, packed: bool) -> Path:
    ratings = b"1::1193::5::978300760\n2::661::3::978302109\n1::661::4::978301968\n"
    if packed:
        (tmp_path / "ratings_users1-2.dat.gz").write_bytes(gzip.compress(ratings))
    else:
        (tmp_path / "ratings.dat").write_bytes(ratings)
    (tmp_path / "users.dat").write_bytes(
        b"1::F::1::10::48067\n2::M::56::16::70072\n3::M::56::16::1\n"
    )
    movies = "661::Two: Parts (1996)::Drama\n1193::Café (1975)::Drama\n"
    (tmp_path / "movies.dat").write_bytes(movies.encode("latin-1"))
    return tmp_path


def test_csv_folder(tmp_path: Path) -> None:
    data = movielens(str(csv_folder(tmp_path)))
    assert data.interactions is not None and data.users is None
    table = data.interactions.to_frame()
    assert table.rows() == [
        (1, 10, 3.0, 1260759179.0),
        (1, 31, 2.5, 1260759144.0),
        (2, 10, 5.0, 5.0),
    ]
    assert data.interactions.rating_scale == (0.5, 5.0)
    assert set(data.card.hashes) == {"ratings.csv", "links.csv", "movies.csv"}
    with locate(tmp_path) as files:
        assert read_links(files).rows() == [(10, 114709, 862), (31, 113497, None)]
        assert read_titles(files).rows() == [(10, "A, The (1995)", 1995), (31, "B", None)]


@pytest.mark.parametrize("packed", [False, True])
def test_dat_folder(tmp_path: Path, packed: bool) -> None:
    data = movielens(str(dat_folder(tmp_path, packed)))
    assert data.interactions is not None and data.users is not None
    assert data.interactions.matrix.toarray().tolist() == [[4.0, 5.0], [3.0, 0.0]]
    assert data.interactions.rating_scale == (1.0, 5.0)
    groups = dict(zip(data.users.names, data.users.members.T.tolist(), strict=True))
    assert groups["gender=F"] == [True, False, False]
    assert groups["age=under 18"] == [True, False, False]
    assert groups["age=56 and over"] == [False, True, True]
    assert groups["occupation=K-12 student"] == [True, False, False]
    assert any("1 of 3 users excluded" in str(e) for e in data.exclusions)
    with locate(tmp_path) as files:
        assert read_titles(files)["title"].to_list() == ["Two: Parts (1996)", "Café (1975)"]
        with pytest.raises(DataError, match="no links.csv"):
            read_links(files)


def test_zip(tmp_path: Path, formats: ModuleType) -> None:
    formats.write_movielens_zip(tmp_path / "ml-25m.zip", users=50, movies=40, ratings=400)
    data = movielens(str(tmp_path / "ml-25m.zip"))
    assert data.interactions is not None and len(data.interactions) == 400
    with zipfile.ZipFile(tmp_path / "ml-25m.zip") as archive:
        raw = pl.read_csv(archive.read("ml-25m/ratings.csv"))
    mine = data.interactions.to_frame().select("user", "item", pl.col("rating").cast(pl.Float64))
    theirs = raw.select(user="userId", item="movieId", rating="rating").sort("user", "item")
    assert mine.equals(theirs)


def test_faults(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="ombud data get movielens-25m"):
        movielens(str(tmp_path / "absent"))
    with pytest.raises(DataError, match="one file of ratings was expected"):
        movielens(str(tmp_path))
    csv_folder(tmp_path)
    (tmp_path / "ratings.dat").write_text("1::2::3::4\n")
    with pytest.raises(DataError, match=r"found ratings.csv, ratings.dat"):
        movielens(str(tmp_path))
    (tmp_path / "ratings.dat").unlink()
    (tmp_path / "ratings.csv").write_text(RATINGS + "3,4,many,5\n")
    with pytest.raises(DataError, match="column 'rating' is not a number in row 4"):
        movielens(str(tmp_path))


texts = st.text(st.characters(blacklist_categories=("Cs",)), max_size=12)


@given(st.lists(st.tuples(st.integers(0, 10**9), texts), max_size=5))
def test_python_lists_of_keywords_are_parsed(pairs: list[tuple[int, str]]) -> None:
    written = repr([{"id": number, "name": name} for number, name in pairs])
    assert parse_keywords(written) == [name for _, name in pairs]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[",
        "[{'id': 1, 'name': 'x'}",
        "[{'id': 1, 'name': 'x'} {'id': 2, 'name': 'y'}]",
        "[{'id': 1, 'name': x}]",
        "[{'id': 1, 'name': 'x' + 'y'}]",
        "[{'id': 1, 'name': f'{1}'}]",
        "[{'id': 1, 'name': __import__('os').system('true')}]",
        "[{'name': 'x', 'id': 1}]",
        "[" + "{'id': 1, 'name': 'x'}, " * 20_000 + "]",
    ],
)
def test_anything_else_is_not_a_list_of_keywords(text: str) -> None:
    assert parse_keywords(text) is None


def keywords_file(tmp_path: Path) -> Path:
    path = tmp_path / "keywords.csv"
    path.write_text(
        "id,keywords\n"
        "862,\"[{'id': 1, 'name': 'gore'}, {'id': 2, 'name': 'toy'}]\"\n"
        "5,[]\n"
        "862,\"[{'id': 3, 'name': 'spider'}]\"\n"
        "7,\"[{'id': 2, 'name': 'toy'}]\"\n"
    )
    return path


def test_a_missing_keyword_is_unknown(tmp_path: Path) -> None:
    words = read_keywords(keywords_file(tmp_path))
    assert words == {862: {"gore", "toy", "spider"}, 5: frozenset(), 7: {"toy"}}
    titles = pl.DataFrame({"item": [1, 2, 3, 4], "tmdb": [862, 5, 7, None]})
    labels = keyword_labels(titles, words, read_mapping())
    yes = {labels.names[place] for place in np.flatnonzero(labels.states[0] == LabelState.YES)}
    assert yes == {"blood-gore", "excessive-gore", "spiders"}
    assert set(np.unique(labels.states[0]).tolist()) == {LabelState.UNKNOWN, LabelState.YES}
    assert (labels.states[1:] == LabelState.UNKNOWN).all()
    assert "2 of 4 items" in str(labels.exclusions[-1])
    weaker = keyword_labels(titles, words, read_mapping(), "no-if-any-keyword")
    assert (weaker.states[0] >= 0).all() and (weaker.states[2] == LabelState.NO).all()
    assert (weaker.states[[1, 3]] == LabelState.UNKNOWN).all(), "no keyword at all says nothing"


def test_damaged_keyword_files(tmp_path: Path) -> None:
    path = keywords_file(tmp_path)
    path.write_text(path.read_text() + "8,nonsense\nx,[]\n")
    with pytest.raises(DataError, match=r"in rows 5, 6 \(2 in all\)"):
        read_keywords(path)
    path.write_text("id,words\n1,[]\n")
    with pytest.raises(DataError, match="column 'keywords' is missing"):
        read_keywords(path)


@pytest.mark.parametrize("name", mapping_names())
def test_mappings_that_come_with_the_package(name: str) -> None:
    mapping = read_mapping(name)
    taxonomy = load_taxonomy(mapping.taxonomy)
    assert len({keyword for keyword, _ in mapping.pairs}) >= 40
    assert len(mapping.warnings) >= 25
    assert mapping.exclusions == ()
    for keyword, warning in mapping.pairs:
        assert warning in taxonomy.ids
        assert not is_refused(keyword) and keyword == keyword.lower().strip()
        childish = {"teenage", "minor", "childhood", "statutory", "underage"}
        assert not childish & set(keyword.split()), "sexual content of minors is never mapped"


def test_a_mapping_of_your_own(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("# taxonomy: warnings-ddd@1\nkeyword,warning\nhound,Does the dog die\n")
    assert read_mapping(path).pairs == (("hound", "a-dog-dies"),)
    path.write_text("keyword,warning\nhound,unicorns\n,a-dog-dies\nx,a-dog-dies\nx,a-dog-dies\n")
    with pytest.raises(DataError) as error:
        read_mapping(path)
    assert len(error.value.faults) == 3
    refused = sorted(load_taxonomy("warnings-ddd@1").refused_spellings)[0]
    path.write_text(f"keyword,warning\nhound,a-dog-dies\nx,{refused}\n")
    assert "refuses" in str(read_mapping(path).exclusions[0])
    with pytest.raises(DataError, match="tmdb-to-ddd@1"):
        read_mapping(tmp_path / "absent.csv")


def test_links_from_another_edition(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    for folder in (old, new):
        folder.mkdir()
    dat_folder(old, packed=False)
    csv_folder(new)
    (new / "links.csv").write_text("movieId,imdbId,tmdbId\n661,1,862\n1193,2,7\n")
    (new / "movies.csv").write_text("movieId,title,genres\n661,Two (1997),X\n1193,New (2001),Y\n")
    data = movielens_tmdb(str(old), str(keywords_file(tmp_path)), links=str(new))
    assert data.labels is not None and data.users is not None
    # 1996 and 1997 may be one film; 1975 and 2001 are not.
    states = dict(zip(data.labels.items.ids.tolist(), data.labels.states, strict=True))
    assert (states[661] == LabelState.YES).any()
    assert (states[1193] == LabelState.UNKNOWN).all()
    assert any("the two titles differ in year" in line for line in data.card.dropped)
    # A title without a year contradicts nothing.
    (new / "movies.csv").write_text("movieId,title,genres\n661,Two,X\n1193,New (2001),Y\n")
    labels = movielens_tmdb(str(old), str(keywords_file(tmp_path)), links=str(new)).labels
    assert labels is not None
    states = dict(zip(labels.items.ids.tolist(), labels.states, strict=True))
    assert (states[661] == LabelState.YES).any()


@pytest.mark.realdata
def test_real_movielens(realdata: Path) -> None:
    small = registry.create("source", "movielens", {"path": str(realdata / "movielens-small")})
    assert (len(small.interactions), small.interactions.n_users) == (100_004, 671)
    assert small.interactions.n_items == 9_066
    half = movielens(str(realdata / "movielens-1m-half"))
    assert half.interactions is not None and half.users is not None
    assert (len(half.interactions), half.interactions.n_users) == (487_650, 2_999)
    assert half.interactions.n_items == 3_615
    with (realdata / "movielens-1m-half" / "users.dat").open(encoding="latin-1") as file:
        women = sum(line.split("::")[1] == "F" for line in file)
    assert half.users.members[:, half.users.names.index("gender=F")].sum() == women


@pytest.mark.realdata
def test_real_keywords(realdata: Path) -> None:
    words = read_keywords(realdata / "tmdb-keywords")
    assert len(words) == 45_432
    with (realdata / "tmdb-keywords" / "keywords.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    import ast

    for row in rows[::200]:
        names = {entry["name"] for entry in ast.literal_eval(row["keywords"])}
        assert names <= words[int(row["id"])]
    folder = str(realdata / "movielens-small")
    data = movielens_tmdb(folder, str(realdata / "tmdb-keywords"))
    assert data.interactions is not None and data.labels is not None
    has = (data.labels.states == LabelState.YES).any(axis=1)
    assert has.sum() == data.card.facts["movies_with_a_known_warning"] > 2_000
    with locate(folder) as files:
        tmdb = dict(read_links(files).select("item", "tmdb").iter_rows())
    some = [bool(words.get(tmdb.get(item))) for item in data.interactions.items.ids.tolist()]
    counts = np.asarray((data.interactions.matrix != 0).sum(axis=0)).ravel()
    assert counts[some].sum() / counts.sum() > 0.97, "98% of ratings, says the data's README"
    murder = movielens_tmdb(folder, str(realdata / "tmdb-keywords"), mapping="tmdb-to-ao3@1")
    assert murder.labels is not None
    death = murder.labels.states[:, murder.labels.names.index("death")]
    assert np.count_nonzero(death == LabelState.YES) > 500


def folder_100k(tmp_path: Path) -> Path:
    """Files of exactly the form of the 100K edition."""
    (tmp_path / "u.data").write_text(
        "196\t242\t3\t881250949\n186\t302\t3\t891717742\n196\t302\t5\t1\n"
    )
    (tmp_path / "u.user").write_text("186|17|F|executive|00000\n196|49|M|writer|55105\n")
    flags = {242: "0|0|0|0|0|1" + "|0" * 13, 302: "0|0|0|0|0|0|1" + "|0" * 12, 267: "1" + "|0" * 18}
    titles = {242: "Kolya (1996)", 302: "L.A. Confidential (1997)", 267: "unknown"}
    lines = [f"{i}|{titles[i]}|24-Jan-1997||http://x/é|{flags[i]}\n" for i in flags]
    (tmp_path / "u.item").write_bytes("".join(lines).encode("latin-1"))
    (tmp_path / "u.genre").write_text("unknown|0\nAction|1\n")
    return tmp_path


def test_100k_folder_and_archive(tmp_path: Path) -> None:
    folder = tmp_path / "ml-100k"
    folder.mkdir()
    folder_100k(folder)
    with zipfile.ZipFile(tmp_path / "ml-100k.zip", "w") as archive:
        for file in folder.iterdir():
            archive.write(file, f"ml-100k/{file.name}")
    for path in (folder, tmp_path / "ml-100k.zip"):
        data = movielens(path, genres=True)
        assert data.interactions is not None and data.users is not None
        assert data.interactions.to_frame().rows() == [
            (186, 302, 3.0, 891717742.0),
            (196, 242, 3.0, 881250949.0),
            (196, 302, 5.0, 1.0),
        ]
        assert data.interactions.rating_scale == (1.0, 5.0)
        groups = dict(zip(data.users.names, data.users.members.T.tolist(), strict=True))
        assert groups["age=under 18"] == [True, False] and groups["age=45-49"] == [False, True]
        assert groups["occupation=writer"] == [False, True]
        assert data.labels is not None
        states = {(r["item"], r["label"]): r["state"] for r in data.labels.to_frame().to_dicts()}
        assert states == {
            (242, "Comedy"): 1,
            (242, "Crime"): 0,
            (302, "Comedy"): 0,
            (302, "Crime"): 1,
        }
    with locate(folder) as files:
        assert read_titles(files)["year"].to_list() == [1996, 1997, None]
    (folder / "u.item").write_text("242|Kolya\n")
    with pytest.raises(DataError, match="line 1 has fewer than 24 columns"):
        movielens(folder, genres=True)


def test_genres_of_the_other_editions_are_labels(tmp_path: Path) -> None:
    folder = csv_folder(tmp_path)
    movies = 'movieId,title,genres\n10,"A, The (1995)",Horror|War\n31,B,(no genres listed)\n'
    (folder / "movies.csv").write_text(movies)
    data = movielens(folder, genres=True)
    assert data.labels is not None
    assert sorted(data.labels.names) == ["Horror", "War"] and len(data.labels.items) == 1
    assert any("1 of 2 titles excluded: no genre is listed" in str(e) for e in data.exclusions)
    assert movielens(folder).labels is None
    (folder / "movies.csv").unlink()
    with pytest.raises(DataError, match="no file of movies"):
        movielens(folder, genres=True)
    other = tmp_path / "dat"
    other.mkdir()
    assert movielens(dat_folder(other, False), genres=True).labels.names == ("Drama",)
