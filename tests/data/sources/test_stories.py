"""Film plots and episode synopses from local exports: every step counted, by hand."""

from __future__ import annotations

import bz2
import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from ombud import registry
from ombud.cli import app
from ombud.data.dataset import Dataset
from ombud.data.sources.stories import (
    build_movie_plots,
    build_tv_synopses,
    episodes_of,
    json_objects,
    plain_text,
    plot_of,
    wiki_pages,
    write_built,
)
from ombud.errors import DataError


def film(number: int, title: str, mark: str | None = "PG", **more: Any) -> dict[str, Any]:
    dates = [{"certification": ""}, {"certification": mark}] if mark is not None else []
    reply = {
        "id": number,
        "title": title,
        "original_language": "en",
        "release_date": "1999-03-01",
        "popularity": 100 - number,
        "release_dates": {"results": [{"iso_3166_1": "US", "release_dates": dates}]},
    }
    return reply | more


FRENCH = {"results": [{"iso_3166_1": "FR", "release_dates": [{"certification": "U"}]}]}
FILMS = [
    film(1, "The Boat"),
    film(2, "Twice", "PG-13"),
    film(3, "Le Bateau", original_language="fr"),
    film(4, "Abroad", release_dates=FRENCH),
    film(5, "Unrated", None),
    film(6, "No page"),
    film(7, "No plot", "R"),
    film(8, "Adults", adult=True),
    film(1, "The Boat"),
    film(9, "Unpopular"),
]
PAGES = [
    ("The Boat (1954 film)", "{{Infobox film}}\n== Plot ==\nAn older boat.\n"),
    ("The Boat", "A boat is a thing.\n== Plot ==\nNot a film. {{cite}}"),
    (
        "The Boat (film)",
        "{{Infobox film}}\n==Plot==\n[[Ann]] rows.<ref>x</ref>\n===End===\nIt sinks.",
    ),
    ("Twice (1999 film)", "{{Infobox film}}\n== Synopsis ==\n'''Two''' of them.\n== Cast ==\nx"),
    ("Twice (album)", "== Plot ==\nno"),
    ("No plot (film)", "{{Infobox film}}\nA film.\n== Cast ==\nx"),
]


def lines(path: Path, rows: Sequence[Any]) -> Path:
    text = "\n".join(json.dumps(row) for row in rows) + "\n"
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


def dump(path: Path, pages: Sequence[tuple[str, str]] = PAGES) -> Path:
    body = "".join(
        f"<page><title>{escape(title)}</title><revision><text>{escape(text)}</text></revision></page>"
        for title, text in pages
    )
    text = f'<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/">{body}</mediawiki>'
    path.write_bytes(bz2.compress(text.encode()) if path.suffix == ".bz2" else text.encode())
    return path


def test_film_plots_by_hand(tmp_path: Path) -> None:
    tmdb = lines(tmp_path / "movies.jsonl.gz", FILMS)
    ids = lines(
        tmp_path / "movie_ids_07_01_2024.json.gz",
        [
            {"id": n, "popularity": 60.0 if n == 77 else 50.0 - n}
            for n in (1, 2, 3, 4, 5, 6, 7, 8, 77, 9)
        ],
    )
    wiki = dump(tmp_path / "films.xml.bz2")
    table, card = build_movie_plots(tmdb, wiki, ids=ids, top=9)
    assert table.rows() == [
        ("1", "The Boat", 1999, "PG", "Ann rows.\nIt sinks."),
        ("2", "Twice", 1999, "PG-13", "Two of them."),
    ]
    told = "\n".join(card.dropped)
    for count, of, reason in (
        (1, 10, "another reply is about the same title"),
        (1, 9, "there is no reply about them"),
        (1, 9, "they are not among the most popular"),
        (1, 8, "they are for adults only"),
        (1, 7, "their language is not English"),
        (1, 6, "they were not released in the United States"),
        (1, 5, "they have no age rating"),
        (1, 4, "Wikipedia has no page of their title and year"),
        (1, 3, "their page has no section about the plot"),
    ):
        (line,) = [line for line in card.dropped if reason in line]
        assert f"{count}" in line and f"{of}" in line, (line, told)
    assert card.facts["plot_texts"] == 2
    assert card.facts["plot_mean_words"] == 3.5
    assert set(card.hashes) == {"movies.jsonl.gz", "films.xml.bz2"}


def test_without_the_daily_ids_popularity_is_that_of_the_replies(tmp_path: Path) -> None:
    tmdb = lines(tmp_path / "m.jsonl", FILMS)
    table, _ = build_movie_plots(tmdb, dump(tmp_path / "w.xml"), top=1)
    assert table["id"].to_list() == ["1"]


def episodes(show: int, *overviews: str) -> list[dict[str, Any]]:
    return [
        {"show_id": show, "episode_number": n, "overview": text}
        for n, text in enumerate(overviews, start=1)
    ]


def series(number: int, name: str, mark: str = "TV-PG", **more: Any) -> dict[str, Any]:
    ratings = {"results": [{"iso_3166_1": "US", "rating": mark}]}
    reply = {"id": number, "name": name, "original_language": "en", "first_air_date": "2010-01-01"}
    return reply | {"content_ratings": ratings, "origin_country": ["US"]} | more


LIST = """{{Infobox television}}
== Season 1 (2010) ==
{{Episode list
| EpisodeNumber  = 1
| EpisodeNumber2 = 1
| Title          = One
| ShortSummary   = [[Ann]] finds {{nowrap|a}} boat | in two parts [[x|y]].
}}
{{Episode list/sublist|Boats|EpisodeNumber=2|ShortSummary='''It''' sinks.}}
== Season 2 ==
{{Episode list|EpisodeNumber=3|EpisodeNumber2=1|ShortSummary=Later.}}
"""


def test_episode_synopses_by_hand(tmp_path: Path) -> None:
    folder = tmp_path / "tmdb"
    folder.mkdir()
    (folder / "1.json").write_text(json.dumps(series(1, "Boats")))
    season = {"season_number": 1, "episodes": episodes(1, "Ann rows.", "", "")}
    (folder / "1-1.json").write_text(json.dumps(season))
    inner = {"season/1": {"season_number": 1, "episodes": episodes(2, "Bo walks.")}}
    rest = [
        series(2, "Walks", "NR") | inner,
        series(3, "Pas ici", original_language="fr"),
        series(4, "No season"),
    ]
    lines(folder / "rest.jsonl", rest)
    wiki = dump(tmp_path / "tv.xml", [("List of Boats episodes", LIST), ("Walks", "text")])
    imdb = tmp_path / "imdb.csv"
    imdb.write_text(
        "show,year,season,episode,synopsis,rating\n"
        "boats,2010,1,1,A long story of Ann.,TV-14\n"
        "Boats,2010,2,1,Another season.,TV-14\n"
        "Nobody knows it,2010,1,1,x,TV-G\n"
        "Walks,2010,1,1,,tv-g\n"
    )
    table, card = build_tv_synopses(folder, wiki, imdb)
    assert table.drop("show", "year").rows() == [
        ("1-1", "Boats", "TV-14", "Ann rows.", "Ann finds boat", "A long story of Ann."),
        ("1-2", "Boats", "TV-PG", "", "It sinks.", ""),
        ("2-1", "Walks", "TV-G", "Bo walks.", "", ""),
    ]
    told = " ".join(card.dropped)
    for reason in (
        "their language is not English",
        "no reply about their first season",
        "they are of another season",
        "no series has their title",
        "they have no synopsis",
    ):
        assert reason in told
    assert (card.facts["short_texts"], card.facts["medium_texts"], card.facts["long_texts"]) == (
        2,
        2,
        1,
    )
    # From the builder's folder to an audit: three sets, clustered by show, two types of label.
    write_built(table, card, tmp_path / "tv")
    data = registry.create(
        "source", "synopses", {"path": str(tmp_path / "tv"), "acceptable": "both"}
    )
    assert isinstance(data, Dataset) and data.texts is not None
    texts = data.texts
    assert texts.sets is not None and texts.clusters is not None
    assert texts.sets.tolist() == ["short", "short", "medium", "medium", "long"]
    assert texts.clusters.tolist() == [0, 1, 0, 0, 0]
    assert texts.ids.tolist() == ["1-1:short", "2-1:short", "1-1:medium", "1-2:medium", "1-1:long"]
    assert texts.truth.tolist() == [0, 0, 0, 0, 0]
    assert texts.types["PG-13 ok"].tolist() == [0, 0, 0, 0, 0]
    assert texts.types["PG ok"].tolist() == [1, 0, 1, 0, 1]
    assert data.card.name == "tv-synopses"
    assert any("first season" in line for line in data.card.dropped)


def test_the_commands(tmp_path: Path) -> None:
    tmdb = lines(tmp_path / "m.jsonl", FILMS)
    wiki = dump(tmp_path / "w.xml")
    to = tmp_path / "plots"
    build = ["data", "build", "movie-plots", "--tmdb", str(tmdb), "--wikipedia", str(wiki)]
    done = CliRunner().invoke(app, [*build, "--to", str(to)])
    assert done.exit_code == 0, done.output
    assert "no section about the plot" in done.output
    data = registry.create("source", "synopses", {"path": str(to)})
    assert isinstance(data, Dataset) and data.texts is not None
    assert data.texts.texts.tolist() == ["Ann rows.\nIt sinks.", "Two of them."]
    again = CliRunner().invoke(app, [*build, "--to", str(to)])
    assert again.exit_code == 2
    assert "--replace" in again.output
    assert CliRunner().invoke(app, [*build, "--to", str(to), "--replace"]).exit_code == 0
    tv = lines(
        tmp_path / "tv.jsonl", [series(1, "Boats", **{"season/1": {"episodes": episodes(1, "x")}})]
    )
    end = [
        "data",
        "build",
        "tv-synopses",
        "--tmdb",
        str(tv),
        "--to",
        str(tmp_path / "tv"),
        "--json",
    ]
    made = CliRunner().invoke(app, end)
    assert made.exit_code == 0, made.output
    assert json.loads(made.stdout)["facts"]["short_texts"] == 1


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("cut.xml", b"<mediawiki><page><title>x", "no Wikipedia export, or is cut"),
        ("empty.xml", b"", "no Wikipedia export, or is cut"),
        ("cut.xml.bz2", bz2.compress(b"<a></a>" * 1000)[:30], "no Wikipedia export, or is cut"),
        ("pages.jsonl", b'{"title": "x"', "line 1 is not JSON"),
    ],
)
def test_damaged_exports(tmp_path: Path, name: str, content: bytes, words: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=words):
        list(wiki_pages(tmp_path / name))


def test_exports_without_titles(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no JSON files"):
        list(json_objects(tmp_path))
    other = lines(tmp_path / "x.jsonl", [{"a": 1}])
    with pytest.raises(DataError, match="no replies about films"):
        build_movie_plots(other, other)
    with pytest.raises(DataError, match="no replies about series"):
        build_tv_synopses(other)
    lost = lines(tmp_path / "y.jsonl", [film(1, "A", None)])
    with pytest.raises(DataError, match="no title is left"):
        build_movie_plots(lost, dump(tmp_path / "w.xml"))
    table = tmp_path / "i.csv"
    table.write_text("show,synopsis\na,b\n")
    tv = lines(
        tmp_path / "tv.jsonl", [series(1, "A", **{"season/1": {"episodes": episodes(1, "x")}})]
    )
    with pytest.raises(DataError, match="'episode' is missing"):
        build_tv_synopses(tv, imdb=table)


@given(st.text(alphabet="[]{}|<>'=ab \n#*", max_size=80))
def test_no_wikitext_is_too_odd(text: str) -> None:
    assert "{{}}" not in plain_text(text)
    assert isinstance(plot_of(f"== Plot ==\n{text}"), str)
    assert episodes_of("List of x episodes", text) == {} or "Episode list" in text


def test_plain_text_of_plain_text_is_itself() -> None:
    text = "Ann rows to the island.\nShe finds a boat; it sinks."
    assert plain_text(text) == text
    assert plot_of(f"x\n== Plot summary ==\n{text}\n== Cast ==\ny") == text
